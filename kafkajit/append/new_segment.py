"""A segment being written: its log, its indexes, and when to roll it.

Answers to LogSegment.append and shouldRoll of Kafka 4.1.1, called once per batch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kafkajit.format.layout import LOG_OVERHEAD
from kafkajit.format.log_path import INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
from kafkajit.index.time_index import NO_TIMESTAMP
from kafkajit.kernel import kernel
from kafkajit.log.config import LogConfig
from kafkajit.log.indexing import SegmentIndexes
from kafkajit.records.batches import Batches
from kafkajit.storage.source import Bytes
from kafkajit.system import disk


class NewSegment:
    """A segment being written; `path_of` returns the path to create for each file name."""

    def __init__(self, path_of: Callable[[str], Path], base_offset: int, config: LogConfig) -> None:
        self.base_offset = base_offset
        self._path_of = path_of
        self._config = config
        self._indexes = SegmentIndexes(base_offset, config)
        self._first_timestamp = NO_TIMESTAMP
        self._aborted = bytearray()
        self._log = disk.create(self._new(".log"), buffering=0)
        self._is_suspended = False

    @property
    def size(self) -> int:
        """Bytes of the segment's log."""
        return self._indexes.size

    @property
    def is_empty(self) -> bool:
        return self.size == 0

    def take(self, batches: Batches) -> int:
        """Count in batches up to the first that rolls the segment; return how many."""
        rows = _rows_until_roll(
            batches.header,
            self._indexes.size,
            self._first_timestamp,
            self._config.segment_bytes,
            self._config.max_segment_ms,
        )
        self._note_first(batches)
        return self._indexes.add_until_roll(batches[:rows])

    def take_first(self, batch: Batches) -> None:
        """Count in the batch for which the segment was rolled."""
        self._note_first(batch)
        self._indexes.add(batch)

    def write(self, content: Bytes, aborted: npt.NDArray[np.void]) -> None:
        """Write the bytes of counted batches, and the transactions that they abort."""
        if self._is_suspended:
            self._log = disk.extend(self._new(".log"), buffering=0)
            self._is_suspended = False
        rest = content.data
        while rest:  # the system may write only a part
            rest = rest[self._log.write(rest) :]
        self._aborted += aborted.tobytes()

    def suspend(self) -> None:
        """Close the file until more is written: there may be thousands of such segments."""
        self._log.close()
        self._is_suspended = True

    def close(self) -> None:
        """Close the log, and write the indexes as a broker does when it rolls a segment."""
        self._log.close()
        self._indexes.close()
        disk.write(self._new(INDEX_SUFFIX), self._indexes.offset_index)
        disk.write(self._new(TIME_INDEX_SUFFIX), self._indexes.time_index)
        if self._aborted:
            disk.write(self._new(TXN_INDEX_SUFFIX), self._aborted)

    def abandon(self) -> None:
        """Stop writing; the caller removes the files."""
        self._log.close()

    def _note_first(self, batches: Batches) -> None:
        if self.is_empty and len(batches):
            self._first_timestamp = int(batches.header["maxTimestamp"][0])

    def _new(self, suffix: str) -> Path:
        return self._path_of(f"{self.base_offset:020}{suffix}")


@kernel
def _rows_until_roll(headers, size, first_timestamp, most_bytes, most_ms):
    """The number of batches before the first that exceeds a segment's size or time."""
    for row in range(headers.size):
        header = headers[row]
        timestamp = max(np.int64(header["maxTimestamp"]), np.int64(NO_TIMESTAMP))
        added = np.int64(header["batchLength"]) + LOG_OVERHEAD
        if size > 0:
            # If the first batch has no timestamp, a broker would use its clock.
            is_late = first_timestamp >= 0 and timestamp - first_timestamp > most_ms
            if is_late or size + added > most_bytes:
                return row
        else:
            first_timestamp = timestamp
        size += added
    return headers.size
