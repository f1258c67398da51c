"""Delete old segments."""
