"""Arrow tables → record batches."""
