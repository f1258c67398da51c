"""What a log's bytes mean, as data: layouts, varints, checksums, codecs, file names."""
