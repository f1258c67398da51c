"""JSON: schemas to types, and values to columns."""
