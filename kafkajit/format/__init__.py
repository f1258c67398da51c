"""The meaning of a log's bytes, as data: layouts, varints, checksums, codecs, file names."""
