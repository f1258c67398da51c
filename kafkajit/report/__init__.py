"""The report about a folder of logs: its figures in one document, and a page drawn from it."""
