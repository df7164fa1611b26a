"""What stands in deploy/: held against the real tools, and its commands run as processes."""
