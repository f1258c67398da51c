"""Batches → a partition's segments, as a broker appends them."""
