"""Batches → consecutive segments, rolled where a broker rolls them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kafkajit.append.new_segment import NewSegment
from kafkajit.format.limits import MAX_INT32
from kafkajit.index.transaction_index import ENTRY as ABORTED
from kafkajit.log.config import LogConfig
from kafkajit.records.batches import Batches
from kafkajit.storage.source import Bytes

_NONE_ABORTED = np.empty(0, dtype=ABORTED)


class RolledSegment(NamedTuple):
    """A segment that was written and closed, with its indexes."""

    base_offset: int
    next_offset: int
    size: int
    has_producers: bool  # idempotent or transactional


class RolledSegments:
    """Writes batches of increasing offsets to consecutive segments.

    `next_offset` is the offset after the last batch written. The caller may set `least_offset`, at
    which the next batch begins at the earliest: a message set of v0 or v1 does not give its first
    offset.

    Args:
        path_of: returns the path to create for each file name
        config: when to roll a segment
    """

    def __init__(self, path_of: Callable[[str], Path], config: LogConfig) -> None:
        self.next_offset = self.least_offset = 0
        self._path_of = path_of
        self._config = config
        self._written: list[RolledSegment] = []
        self._segment: NewSegment | None = None
        self._has_producers = False

    def append(self, content: Bytes, batches: Batches) -> None:
        """Write batches; `content` holds their bytes at their positions."""
        if self._segment is None:
            self._segment = self._begin(batches[:1])
        row = 0
        while row < len(batches):
            taken = self._segment.take(batches[row:])
            if taken == 0:
                if not self._segment.is_empty:
                    self._close(self._segment)
                    self._segment = self._begin(batches[row : row + 1])
                self._segment.take_first(batches[row : row + 1])
                taken = 1
            run = batches[row : row + taken]
            self._segment.write(content[int(run.position[0]) : int(run.end[-1])], _NONE_ABORTED)
            self._has_producers |= bool((run.header["producerId"] >= 0).any())
            self.next_offset = int(run.last_offset[-1]) + 1
            row += taken

    def suspend(self) -> None:
        """Close the file until more is written."""
        if self._segment is not None:
            self._segment.suspend()

    def close(self) -> list[RolledSegment]:
        """Close the last segment, and return all of them."""
        if self._segment is not None:
            self._close(self._segment)
            self._segment = None
        return self._written

    def abandon(self) -> None:
        """Stop writing; the caller removes the files."""
        if self._segment is not None:
            self._segment.abandon()

    def _begin(self, batch: Batches) -> NewSegment:
        base_offset = int(batch.header["baseOffset"][0])
        if batch.is_message[0]:
            base_offset = max(base_offset - MAX_INT32, self.next_offset, self.least_offset)
        return NewSegment(self._path_of, base_offset, self._config)

    def _close(self, segment: NewSegment) -> None:
        segment.close()
        self._written.append(
            RolledSegment(segment.base_offset, self.next_offset, segment.size, self._has_producers)
        )
        self._has_producers = False
