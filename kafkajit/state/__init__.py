"""The small files that Kafka keeps beside its segments, to start from after a restart."""
