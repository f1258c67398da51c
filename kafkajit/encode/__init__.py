"""Arrow tables → record batches: the way back of `records`."""
