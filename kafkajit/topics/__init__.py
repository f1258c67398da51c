"""What brokers keep in topics of their own: payloads → the JSON that kafka-dump-log prints."""

# Kinds of internal topics, by the names that messages.schema has for them, and the topics.
TOPICS = {
    "offsets": "__consumer_offsets",
    "transaction_state": "__transaction_state",
    "cluster_metadata": "__cluster_metadata",
    "share_group_state": "__share_group_state",
    "remote_log_metadata": "__remote_log_metadata",
}
