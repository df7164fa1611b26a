"""Policies and settings: from files that people write to values that the core reads."""
