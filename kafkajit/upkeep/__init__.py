"""Change the logs of a stopped broker: repair, retain, compact."""
