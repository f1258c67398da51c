"""A folder of logs as tables: which files, which stretches of them, and what a task reads."""
