"""The arithmetic of prices and sizes."""
