"""Segments of a log on disk: their files, and what their indexes know of them."""
