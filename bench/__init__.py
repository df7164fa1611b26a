"""Every speed we claim, with the peer beside it."""
