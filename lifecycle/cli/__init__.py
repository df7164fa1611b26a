"""The command line: entry points without decisions of their own."""
