"""Write what is left of some segments as one segment, staged in a change.

Answers to Cleaner.cleanSegments of Kafka 4.1.1: to LogSegment.append for the log and its indexes,
and to CleanedTransactionMetadata for the transaction index.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from kafkajit.change.change import Change
from kafkajit.format.log_path import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
from kafkajit.log.config import LogConfig
from kafkajit.log.indexing import SegmentIndexes
from kafkajit.log.segment import Segment
from kafkajit.log.timestamps import modified_ms
from kafkajit.system import disk
from kafkajit.upkeep.compact.batch_rewriting import COPIED
from kafkajit.upkeep.compact.record_filter import Filtered


class CleanedSegment:
    """The segment that a group becomes; without a change only its size is computed.

    Kafka rewrites a segment that loses nothing. Here the segment and its indexes stay.
    """

    def __init__(self, group: Sequence[Segment], config: LogConfig, change: Change | None) -> None:
        self._group = group
        self._change = change
        self._log = Path(group[0].log.path)
        self._indexes = SegmentIndexes(group[0].base_offset, config)
        self._file: BinaryIO | None = None
        self.size = 0
        self.is_changed = len(group) > 1

    def add(self, filtered: Filtered) -> None:
        """Add what is left of the next batches."""
        self.is_changed |= bool((filtered.actions != COPIED).any())
        if self._change is not None:
            self._indexes.add(filtered.batches, self._log.name)
            if self.is_changed:
                self._opened(self._change).write(filtered.content.data)
        self.size += filtered.content.size

    def finish(self, aborted: bytes) -> None:
        """Write the indexes; `aborted` is the content of the transaction index."""
        before = self._group[0].transaction_index
        self.is_changed |= aborted != (b"" if before is None else before.read())
        if self._change is None or not self.is_changed:
            return
        self._opened(self._change).close()
        self._indexes.close()
        indexes = {
            INDEX_SUFFIX: self._indexes.offset_index,
            TIME_INDEX_SUFFIX: self._indexes.time_index,
        }
        if aborted:
            indexes[TXN_INDEX_SUFFIX] = aborted
        for suffix, content in indexes.items():
            disk.write(self._change.new(self._log.with_suffix(suffix)), content)
        # Retention may look at the age of the segment.
        modified = modified_ms(self._group[-1].log) * 1_000_000
        for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            staged = self._change.new(self._log.with_suffix(suffix))
            disk.set_times(staged, ns=(modified, modified))

    def _opened(self, change: Change) -> BinaryIO:
        """The new log; what was not written so far is copied from the old one."""
        if self._file is None:
            others = [segment.log.path for segment in self._group[1:]]
            self._file = disk.create(change.new(self._log, instead_of=others))
            self._file.write(self._group[0].log.open().content[: self.size].data)
        return self._file
