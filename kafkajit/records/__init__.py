"""Batches and records: where they begin and end, and what is in them."""
