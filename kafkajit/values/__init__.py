"""Keys and values with a schema: Avro → Arrow columns, and back."""
