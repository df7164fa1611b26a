"""Runs case files: each lays out a small tree, a policy and what happens, and says what a safe engine must do."""
