"""Benchmarks of kafkajit, one module for each of its rooms; `asv run` runs them."""
