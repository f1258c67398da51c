"""A segment from end to end: its chunks, its damaged gaps, and the selection of its records."""
