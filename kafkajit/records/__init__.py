"""Batches and records: where they begin and end, and what stands in them."""
