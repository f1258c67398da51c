"""Compact logs: the last record of each key stays."""
