"""The events that brokers write to __remote_log_metadata, in plain Python."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from scanning import write_partition

import kafkajit.testing as kt

COPY_STARTED, COPY_FINISHED, DELETE_STARTED, DELETE_FINISHED = range(4)
_NO_TAGS = b"\0"


def write_events(root: Path, values: Sequence[bytes | None], *, partition: int = 0) -> Path:
    """A partition of the topic with a record for each of these values."""
    records = [kt.Record(value=value) for value in values]
    return write_partition(root, {0: kt.batch(records)}, f"__remote_log_metadata-{partition}")


def copy_started(
    path: Path,
    end_offset: int,
    *,
    start_offset: int | None = None,
    state: int = COPY_STARTED,
    max_timestamp: int = 1000,
    epochs: Mapping[int, int] | None = None,
    size: int | None = None,
) -> bytes:
    """The event that introduces a segment; its object is at the path, in Aiven's layout."""
    start = int(path.name[:20]) if start_offset is None else start_offset
    pairs = (epochs or {0: 0}).items()
    return (
        bytes([1, 0, 0])
        + _segment(path)
        + struct.pack(">qqiqq", start, end_offset, 1, max_timestamp, 5000)
        + bytes([len(pairs) + 1])
        + b"".join(struct.pack(">iq", *pair) + _NO_TAGS for pair in pairs)
        + struct.pack(">i", path.stat().st_size if size is None else size)
        + bytes([0, state])
        + _NO_TAGS
    )


def updated(path: Path, state: int, custom: bytes | None = None) -> bytes:
    """The event of a new state of a segment."""
    metadata = b"\0" if custom is None else bytes([len(custom) + 1]) + custom
    body = struct.pack(">iq", 2, 6000 + state) + metadata + bytes([state])
    return bytes([1, 1, 0]) + _segment(path) + body + _NO_TAGS


def partition_deleted(path: Path, state: int) -> bytes:
    """The event of a partition's deletion."""
    body = struct.pack(">iqb", 3, 7000, state)
    return bytes([1, 2, 0]) + _partition(path) + body + _NO_TAGS


def _segment(path: Path) -> bytes:
    return _partition(path) + _uuid(path.name.partition(".")[0][-22:]) + _NO_TAGS


def _partition(path: Path) -> bytes:
    topic = path.parent.parent.name[:-23].encode()
    number = struct.pack(">i", int(path.parent.name))
    id_ = _uuid(path.parent.parent.name[-22:])
    return bytes([len(topic) + 1]) + topic + id_ + number + _NO_TAGS


def _uuid(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")
