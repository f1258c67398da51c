"""Where bytes come from: local files, buffers, and every file system that pyarrow opens."""
