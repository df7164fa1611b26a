"""Arithmetic on sizes, times and prices: pure functions and tables with their sources."""
