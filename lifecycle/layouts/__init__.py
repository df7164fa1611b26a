"""Pure recognisers of what training frameworks write, and their one registry."""
