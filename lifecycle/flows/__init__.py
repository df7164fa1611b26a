"""Straight-line use cases: each takes ports and values, and touches the world only through them."""
