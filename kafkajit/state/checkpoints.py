"""The four checkpoints of a log.dirs folder, which have an offset for each partition.

cleaner-offset-checkpoint            up to where the log is compacted
log-start-offset-checkpoint          where the log begins, if records before it were deleted
recovery-point-offset-checkpoint     up to where the log is flushed
replication-offset-checkpoint        the high watermark

Answers to OffsetCheckpointFile: reads the bytes into a row for each partition, and writes them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import pyarrow as pa

from kafkajit.schema import CHECKPOINT_COLUMNS, table_schema
from kafkajit.state.checkpoint_file import VERSION, checkpoint_text, parse_checkpoint
from kafkajit.storage.source import Bytes, as_bytes, whole
from kafkajit.storage.stored_file import StoredFile

CLEANER_OFFSETS = "cleaner-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
NAMES = (CLEANER_OFFSETS, START_OFFSETS, RECOVERY_POINTS, HIGH_WATERMARKS)

# The offsets of a checkpoint, each by its topic and partition.
Offsets = Mapping[tuple[str | None, int | None], int]

# All partitions of a folder ask for the same few files, and each of a change for new ones.
_parsed: dict[tuple[str, int, int | None], Offsets] = {}
_newest: dict[str, tuple[bytes, Offsets]] = {}  # by path: what it had last
_MOST_PARSED = 100
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
# A file can change twice within a step of its clock, and keep its size.
_STEP_NS = 2_000_000_000


def read_checkpoint(source: Any) -> pa.Table:
    r"""Read a checkpoint of partitions, in `kafkajit.schema.CHECKPOINT_COLUMNS`.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.

    >>> read_checkpoint(b"0\n1\norders 3 42\n").to_pylist()
    [{'topic': 'orders', 'partition': 3, 'offset': 42}]
    """
    return parse_offsets(*whole(source))


def parse_offsets(content: Bytes, path: str | None = None) -> pa.Table:
    """As `read_checkpoint`, from bytes and the path that they came from."""
    return parse_checkpoint(content, path, table_schema(CHECKPOINT_COLUMNS))


def read_offsets(file: StoredFile) -> tuple[bytes, Offsets]:
    """Read a checkpoint as it is now; it is not parsed again if it has the same bytes."""
    content = bytes(file.read_now())
    known = _newest.get(file.path)
    if known is None or known[0] != content:
        rows = parse_offsets(as_bytes(content), file.path)
        topics, partitions, offsets = (rows[name].to_pylist() for name in CHECKPOINT_COLUMNS)
        found = dict(zip(zip(topics, partitions, strict=True), offsets, strict=True))
        known = _remember(file.path, content, found)
    return known


def _remember(path: str, content: bytes, offsets: Offsets) -> tuple[bytes, Offsets]:
    _keep(_newest, path, (content, offsets))
    return content, offsets


def _keep(known: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """Keep a value in place of the oldest, if there are many."""
    known.pop(key, None)
    while len(known) >= _MOST_PARSED:
        del known[next(iter(known))]
    known[key] = value


def with_offset(file: StoredFile, topic: str, partition: int, offset: int | None) -> bytes:
    """A checkpoint as it is now, with another offset for a partition, or without its entry."""
    content, known = read_offsets(file)
    offsets = dict(known)
    if offset is not None:
        offsets[topic, partition] = offset  # at its place in the file
    else:
        offsets.pop((topic, partition), None)
    edited = _edited(content, known, (topic, partition), offset)
    if edited is None:
        edited = offsets_text((*name, value) for name, value in offsets.items())  # type: ignore[misc]
    # Whoever asks for it writes it.
    _remember(file.path, edited, offsets)
    return edited


def _edited(
    content: bytes, offsets: Offsets, where: tuple[str, int], offset: int | None
) -> bytes | None:
    """The text with another line for a partition; None if it is not as Kafka writes it."""
    head, name = b"%d\n%d\n" % (VERSION, len(offsets)), f"{where[0]} {where[1]} ".encode()
    if not content.startswith(head) or not content.endswith(b"\n"):
        return None
    line = b"" if offset is None else name + b"%d\n" % offset
    start = content.find(b"\n" + name, len(head) - 1) + 1
    if (where in offsets) != (start > 0):
        return None
    if start:
        content = content[:start] + line + content[content.index(b"\n", start) + 1 :]
    else:
        content += line
    change = (offset is not None) - (where in offsets)
    return b"%d\n%d\n" % (VERSION, len(offsets) + change) + content[len(head) :]


def offsets_in(file: StoredFile) -> Offsets:
    """The offsets of a checkpoint; it is read again only if it has changed since the last time."""
    key = file.path, file.size, file.modified_ns
    found = _parsed.get(key)
    if found is None:
        begun = time.time_ns()
        _, found = read_offsets(file)
        if file.modified_ns is not None and file.modified_ns < begun - _STEP_NS:
            _keep(_parsed, key, found)
    return found


def offsets_text(offsets: Iterable[tuple[str, int, int]]) -> bytes:
    r"""Write topics, partitions and offsets, in the given order, as Kafka does.

    >>> offsets_text([("orders", 3, 42)])
    b'0\n1\norders 3 42\n'
    """
    return checkpoint_text(offsets)
