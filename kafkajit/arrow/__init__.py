"""Arrow arrays and record batches of what kernels have read."""
