"""The pure core: facts in as values, decisions out as values; no clock, no I/O, no environment."""
