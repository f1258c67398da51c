"""The repair of one file: create it, replace it or remove it.

A plan holds the contents of all files that it will write. `Contents` keeps them in memory while
they are small and in a temporary file after that, so a plan for a large log stays small.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO
from weakref import finalize

from kafkajit.system import disk
from kafkajit.system.positioned import copy_range, read_at
from kafkajit.upkeep.repair.pieces import Extent, Piece, Written

_AT_ONCE = 8 << 20
_IN_MEMORY = 64 << 20


@dataclass(frozen=True)
class FileRepair:
    """One file to create, replace or remove."""

    path: Path
    what: tuple[str, ...]  # one line for each thing that is done, with its reason
    write: Callable[[Path], None] | None  # writes the new file; None removes the file
    is_needed: bool = True  # False: only done along with another repair
    first: bool = False  # before any log is touched


def removal(path: Path, reason: str, *, is_needed: bool = True) -> FileRepair:
    """The repair that removes a file."""
    return FileRepair(path, (f"remove: {reason}",), None, is_needed)


class Contents:
    """Contents of files that are written later."""

    def __init__(self) -> None:
        self._size = 0
        self._opened: int | None = None  # a temporary file without a name

    def writing(self, path: Path, content: bytes, *what: str, is_needed: bool = True) -> FileRepair:
        """The repair that writes this content to a file."""
        return FileRepair(path, what, self._keep(content), is_needed)

    def _keep(self, content: bytes) -> Callable[[Path], None]:
        """Keep the content and return what writes it."""
        size = len(content)
        self._size += size
        if self._size <= _IN_MEMORY:
            return partial(_write, content)
        if self._opened is None:
            with TemporaryFile() as file:
                self._opened = os.dup(file.fileno())
            finalize(self, os.close, self._opened)
        start = os.lseek(self._opened, 0, os.SEEK_END)
        with os.fdopen(os.dup(self._opened), "wb") as end:
            end.write(content)

        def write(staged: Path) -> None:
            assert self._opened is not None
            disk.write(staged, read_at(self._opened, size, start))

        return write


def _write(content: bytes, staged: Path) -> None:
    disk.write(staged, content)


def write_pieces(pieces: Sequence[Piece], staged: Path, like: Path) -> None:
    """Write a log of these pieces, with the age of another log: retention looks at that."""
    with ExitStack() as opened, disk.create(staged) as target:
        sources: dict[Path, BinaryIO] = {}
        for piece in pieces:
            if isinstance(piece, Written):
                target.write(piece.content)
                target.flush()
                continue
            if piece.log not in sources:
                sources[piece.log] = opened.enter_context(disk.open_to_copy(piece.log))
            _copy(piece, sources[piece.log], target)
        status = like.stat()
    disk.set_times(staged, ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy(extent: Extent, source: BinaryIO, target: BinaryIO) -> None:
    log, start, end = extent
    while start < end:
        count = min(end - start, _AT_ONCE)
        copied = copy_range(source.fileno(), target.fileno(), count, start)
        if copied == 0:
            raise EOFError(f"{log} ended at {start}, before its {end} bytes")
        start += copied
