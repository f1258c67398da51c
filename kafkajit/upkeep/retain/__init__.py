"""Old segments deleted."""
