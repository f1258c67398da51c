"""Packs the files of a scan, or stretches of them, into tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from kafkajit.scan.options import ScanOptions
from kafkajit.storage.stored_file import StoredFile

# Without the option maxPartitionBytes a task's share is what each core gets of all bytes, within
# these limits. A task costs Spark some 20 ms, and reading 16 MiB takes about as long.
_LEAST_BYTES = 16 << 20
_MOST_BYTES = 128 << 20
# Opening a file counts as reading this many bytes. Opening a small local file takes 0.1 ms: 10,000
# of them are 20 tasks. Opening a remote file takes a round trip, and counts as in Spark's own
# spark.sql.files.openCostInBytes.
_OPEN_COST = 256 << 10
_REMOTE_OPEN_COST = 4 << 20


class _Sized(Protocol):
    """A unit of work that can be packed into tasks."""

    @property
    def file(self) -> StoredFile: ...
    @property
    def size(self) -> int: ...


_Piece = TypeVar("_Piece", bound=_Sized)


def task_share(options: ScanOptions, files: Iterable[tuple[StoredFile, int]]) -> int:
    """The number of bytes a task should read, given the number to read from each file."""
    cost = sum(size + _open_cost(file) for file, size in files)
    return options.max_partition_bytes or min(
        max(cost // options.parallelism, _LEAST_BYTES), _MOST_BYTES
    )


def packed(pieces: Iterable[_Piece], share: int) -> list[list[_Piece]]:
    """Group pieces into tasks of about `share` bytes, in order."""
    tasks: list[list[_Piece]] = []
    room = 0
    for piece in pieces:
        opening = _open_cost(piece.file)
        cost = piece.size + opening
        if not tasks or cost > room:
            tasks.append([])
            room = share + opening
        tasks[-1].append(piece)
        room -= cost
    return tasks


def _open_cost(file: StoredFile) -> int:
    return _OPEN_COST if file.is_local else _REMOTE_OPEN_COST
