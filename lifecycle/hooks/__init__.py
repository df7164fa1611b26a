"""Adapters: what tells people elsewhere, over HTTP, at addresses that are secrets."""
