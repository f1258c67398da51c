"""A segment from end to end: its chunks, its damaged gaps, and what a reader asks for."""
