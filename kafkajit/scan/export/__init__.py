"""Records of logs → Parquet, Arrow, CSV, JSON lines or Avro files that a later run continues."""
