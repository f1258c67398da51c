"""The places of logs: folders on every file system, and objects of tiered storage."""
