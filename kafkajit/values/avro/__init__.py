"""Avro: its schemas, and the kernels that read and write its binary encoding."""
