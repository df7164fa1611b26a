"""The deciding core: laws, a second planner to compare with, golden decisions, and the small parts one by one."""
