"""Repair a partition's log."""
