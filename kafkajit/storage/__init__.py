"""Where logs are stored, and how their bytes are read: local files and remote ones."""
