"""Raft's control records in __cluster_metadata, as kafka-dump-log prints them."""

from __future__ import annotations

import struct

import numpy as np

from kafkajit.errors import InvalidRecordError
from kafkajit.records.control_records import control_type_id
from kafkajit.topics.message import new_tables, version_row, write_message
from kafkajit.topics.message_errors import complaint
from kafkajit.topics.programs import written_program
from kafkajit.topics.status import FULL, MALFORMED

# The words before the JSON, by the control type.
_RAFT_HEADS = {
    2: "LeaderChange: ",
    3: "SnapshotHeader ",
    4: "SnapshotFooter ",
    5: "KRaftVersion ",
    6: "KRaftVoters ",
}


def raft_message(key: bytes | None, value: bytes | None) -> str:
    """A Raft control record as kafka-dump-log prints it, with the name of its type.

    >>> raft_message(bytes([0, 0, 0, 4]), bytes([0, 0, 0]))
    'SnapshotFooter {"version":0}'
    """
    type_id = control_type_id(key)
    return _RAFT_HEADS[type_id] + raft_json(type_id, value or b"")


def raft_json(type_id: int, value: bytes) -> str:
    """The JSON of a Raft control record, which kafka-dump-log always reads as version 0.

    >>> raft_json(5, bytes([0, 0, 0, 1, 0]))
    '{"version":0,"kRaftVersion":1}'
    """
    written = struct.unpack_from(">h", value)[0] if len(value) >= 2 else 0
    programs = written_program("control_record", type_id, written)
    tables = new_tables(programs)
    content = np.frombuffer(value, dtype=np.uint8)
    out = np.empty(1024, dtype=np.uint8)
    (row,) = programs.messages.values()
    while True:
        status, end = write_message(
            tables, content, 0, content.size, version_row(programs.rows, row, 0), out, 0
        )
        if status != FULL:
            break
        out = np.empty(4 * out.size, dtype=np.uint8)
    if status == MALFORMED:
        reason = complaint(programs, tables.scratch, 0)
        raise InvalidRecordError(f"Message is cut or malformed ({reason})")
    return out[:end].tobytes().decode()
