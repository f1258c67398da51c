"""kafkajit.append: LogWriter, with all files that it writes beside a log."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

import shutil
from pathlib import Path

from kafkajit import LogWriter

from . import segments
from .rolled_logs import SEGMENT_BYTES, temporary_folder


class Append:
    """A segment appended to a new log, by size of value: as one segment, or in 82 small ones."""

    params = [segments.VALUE_SIZES, [1 << 30, SEGMENT_BYTES]]
    param_names = ["value_size", "segment_bytes"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, value_size: int, segment_bytes: int) -> None:
        self.log = segments.small(value_size).path().read_bytes()
        self.folder = temporary_folder()
        self.config = {"internal.segment.bytes": segment_bytes}
        self.time_append(value_size, segment_bytes)

    def teardown(self, value_size: int, segment_bytes: int) -> None:
        self.folder.cleanup()

    def time_append(self, value_size: int, segment_bytes: int) -> None:
        folder = Path(self.folder.name) / "orders-0"
        with LogWriter(folder, self.config) as writer:
            writer.append(self.log)
        shutil.rmtree(folder)
