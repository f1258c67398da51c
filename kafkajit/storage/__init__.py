"""Read the bytes of logs, from local files and from remote ones."""
