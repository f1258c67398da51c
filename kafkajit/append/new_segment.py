"""A segment that is being written: its log, its indexes, and when it has to be rolled.

Answers to LogSegment.append and shouldRoll of Kafka 4.1.1, for one batch at a time.
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


class NewSegment:
    """A segment whose files are made where `place` says for each of their names."""

    def __init__(self, place: Callable[[str], Path], base_offset: int, config: LogConfig) -> None:
        self.base_offset = base_offset
        self._place = place
        self._config = config
        self._indexes = SegmentIndexes(base_offset, config)
        self._first_timestamp = NO_TIMESTAMP
        self._aborted = bytearray()
        self._log = self._new(".log").open("wb", buffering=0)
        self._is_suspended = False

    @property
    def size(self) -> int:
        """Bytes of its log."""
        return self._indexes.size

    @property
    def is_empty(self) -> bool:
        return self.size == 0

    def take(self, batches: Batches) -> int:
        """Count in the batches before the first for which a broker rolls the segment; how many."""
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
        """Write the bytes of batches that were counted in, and the transactions they abort."""
        if self._is_suspended:
            self._log = self._new(".log").open("ab", buffering=0)
            self._is_suspended = False
        rest = content.data
        while rest:  # the system may take a part at a time
            rest = rest[self._log.write(rest) :]
        self._aborted += aborted.tobytes()

    def suspend(self) -> None:
        """Hold no file open until more is written: there may be thousands of such segments."""
        self._log.close()
        self._is_suspended = True

    def close(self) -> None:
        """Write the indexes as a broker leaves them when it rolls or closes a segment."""
        self._log.close()
        self._indexes.close()
        self._new(INDEX_SUFFIX).write_bytes(self._indexes.offset_index)
        self._new(TIME_INDEX_SUFFIX).write_bytes(self._indexes.time_index)
        if self._aborted:
            self._new(TXN_INDEX_SUFFIX).write_bytes(self._aborted)

    def abandon(self) -> None:
        """Write no more; its files are somebody else's to remove."""
        self._log.close()

    def _note_first(self, batches: Batches) -> None:
        if self.is_empty and len(batches):
            self._first_timestamp = int(batches.header["maxTimestamp"][0])

    def _new(self, suffix: str) -> Path:
        return self._place(f"{self.base_offset:020}{suffix}")


@kernel
def _rows_until_roll(headers, size, first_timestamp, most_bytes, most_ms):
    """Batches before the first that is too much for a segment, by its bytes or its time."""
    for row in range(headers.size):
        header = headers[row]
        timestamp = max(np.int64(header["maxTimestamp"]), np.int64(NO_TIMESTAMP))
        added = np.int64(header["batchLength"]) + LOG_OVERHEAD
        if size > 0:
            # Where the first batch has no timestamp a broker looks at its clock.
            is_late = first_timestamp >= 0 and timestamp - first_timestamp > most_ms
            if is_late or size + added > most_bytes:
                return row
        else:
            first_timestamp = timestamp
        size += added
    return headers.size
