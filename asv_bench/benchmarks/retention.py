"""kafkajit.retention: which segments of a log may go."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import kafkajit

from . import segments
from .logs import rolled_log, temporary_folder


class Retain:
    """A log of 82 segments, half of whose records are too old."""

    setup_cache = staticmethod(segments.setup_cache)

    def setup(self) -> None:
        self.folder = temporary_folder()
        self.path = rolled_log(Path(self.folder.name))
        timestamps = kafkajit.read_record_batches(segments.small().path())["maxTimestamp"]
        self.now = timestamps.cast(pa.int64())[len(timestamps) // 2].as_py()
        self.time_find_out()

    def teardown(self) -> None:
        self.folder.cleanup()

    def time_find_out(self) -> None:
        """All but deleting them."""
        assert kafkajit.retain(self.path, retention_ms=0, now=self.now).is_needed
