"""Batches → new segments of a partition's log, written as a broker appends them."""
