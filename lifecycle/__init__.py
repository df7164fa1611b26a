"""Retention engine for AI training checkpoints: decides what lives where, and why."""

__version__ = "0.1.0"
