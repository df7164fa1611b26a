"""Known true values and what our own functions answer: ``python -m tests.truth FILE.json`` tells where they differ."""
