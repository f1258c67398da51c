"""The payloads of brokers' internal topics → the JSON that kafka-dump-log prints."""

# The kinds of internal topics: the name in messages.schema → the topic.
TOPICS = {
    "offsets": "__consumer_offsets",
    "transaction_state": "__transaction_state",
    "cluster_metadata": "__cluster_metadata",
    "share_group_state": "__share_group_state",
    "remote_log_metadata": "__remote_log_metadata",
}

# The states of a transaction, by the number that __transaction_state has.
TRANSACTION_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
