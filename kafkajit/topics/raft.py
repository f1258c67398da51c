"""Raft's control records in __cluster_metadata, as kafka-dump-log prints them."""

from __future__ import annotations

from kafkajit.records.control_records import control_type_id
from kafkajit.topics.message import raft_json

# How kafka-dump-log heads what Raft's control records hold.
_RAFT_HEADS = {
    2: "LeaderChange: ",
    3: "SnapshotHeader ",
    4: "SnapshotFooter ",
    5: "KRaftVersion ",
    6: "KRaftVoters ",
}


def raft_message(key: bytes | None, value: bytes | None) -> str:
    """A Raft control record as kafka-dump-log prints it.

    >>> raft_message(bytes([0, 0, 0, 4]), bytes([0, 0, 0]))
    'SnapshotFooter {"version":0}'
    """
    type_id = control_type_id(key)
    return _RAFT_HEADS[type_id] + raft_json(type_id, value or b"")
