"""The indexes that Kafka keeps beside a log."""
