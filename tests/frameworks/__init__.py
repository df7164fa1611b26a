"""Real frameworks train a toy, `lifecycle` retires what they saved, and they go on: see docs/compatibility.md."""
