"""A partition's log put right."""
