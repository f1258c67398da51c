"""Names that the command, its help and its prompt share; importing them costs nothing."""

from __future__ import annotations

BINARY = ("arrow", "parquet")
TEXT = ("table", "line", "csv", "json")
FORMATS = (*TEXT, *BINARY)

BINARY_FILE = "binaryFile"
# view: what a row of it is
VIEW_DOCS = {
    "records": "the records of all segments",
    "batches": "the headers of their record batches",
    "files": "the files of the folders, indexes and snapshots too",
    "corruption": "what is damaged: where, how much, and why",
    BINARY_FILE: "the segments as they are, for functions of content",
    "indexes": "each index: how much is in it, and what is wrong with it",
    "offset_index": "what the .index files have: offsets and positions",
    "time_index": "what the .timeindex files have: timestamps and offsets",
    "transaction_index": "what the .txnindex files have: aborted transactions",
    "producers": "what the .snapshot files have: the state of producers",
    "leader_epochs": "which leader's epoch began at which offset",
    "checkpoints": "how far partitions are flushed, replicated and cleaned",
    "partition_metadata": "the ids of topics",
    "meta_properties": "whose folder it is: cluster, node and directory",
    "quorum_state": "what a node of the KRaft quorum knows of its election",
    "consumer_offsets": "commits in __consumer_offsets, each as it was made",
    "transactions": "states in __transaction_state, each as it was reached",
}
