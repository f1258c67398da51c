"""Logs compacted: of each key the last record stays."""
