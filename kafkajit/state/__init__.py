"""The small files that Kafka keeps beside its segments: what it has to know after a restart."""
