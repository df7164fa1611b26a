"""Adapters that show and change what lies in a directory tree, a bucket or memory; the only place that destroys."""
