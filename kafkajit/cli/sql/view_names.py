"""The names of formats and views that the command, its help and its prompt share.

Importing this module costs nothing.
"""

from __future__ import annotations

BINARY = ("arrow", "parquet")
TEXT = ("table", "line", "csv", "json")
FORMATS = (*TEXT, *BINARY)

BINARY_FILE = "binaryFile"
# The views of topics, as help shows them.
TOPICS_DOC = ("orders, …", "the records of the topic of that name; quote `my.topic`")
# view: its rows
VIEW_DOCS = {
    "records": "the records of all segments",
    "batches": "the headers of all record batches",
    "files": "the files in the folders, including indexes and snapshots",
    "corruption": "damaged ranges: position, length and reason",
    "schemas": "a registry's schemas, including deleted ones",
    "remote_segments": "segments in tiered storage: their states and problems",
    BINARY_FILE: "whole segments as bytes, for functions that take content",
    "indexes": "each index: its number of entries and its problems",
    "offset_index": "the entries of .index files: offsets and positions",
    "time_index": "the entries of .timeindex files: timestamps and offsets",
    "transaction_index": "the entries of .txnindex files: aborted transactions",
    "producers": "the contents of .snapshot files: the state of producers",
    "leader_epochs": "leader epochs and their first offsets",
    "checkpoints": "how far partitions are flushed, replicated and cleaned",
    "partition_metadata": "the ids of topics",
    "meta_properties": "a folder's owner: cluster, node and directory",
    "quorum_state": "a KRaft node's view of the quorum's election",
    "consumer_offsets": "the commits in __consumer_offsets, one row each",
    "transactions": "the states in __transaction_state, one row each",
}
