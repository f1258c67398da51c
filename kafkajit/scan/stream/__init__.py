"""Streams of logs that grow: offsets, limits, and the tasks of a micro-batch, without Spark."""
