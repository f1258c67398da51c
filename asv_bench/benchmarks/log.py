"""kafkajit.log: a log in its folder; a lookup touches one batch."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import numpy as np
from crc32c import crc32c

from kafkajit import Log
from kafkajit.index.offset_index import ENTRY as OFFSET_ENTRY
from kafkajit.index.time_index import ENTRY as TIME_ENTRY
from kafkajit.log.indexing import SegmentIndexes
from kafkajit.storage.source import Source
from kafkajit.testing import Record, batch
from kafkajit.walk.frames import frames

from . import segments

START = segments.BASE_TIMESTAMP
BATCHES = 16_000
RECORDS = 148  # about 16 KB a batch, which is what a producer sends by default


class Lookup:
    """In a segment of 256 MB with its indexes, warm."""

    def setup(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        stem = Path(self.folder.name) / "orders-0" / f"{0:020}"
        stem.parent.mkdir()
        content = bytearray(batch([Record(key=b"k" * 8, value=bytes(92))] * RECORDS))
        offsets = np.empty(BATCHES, OFFSET_ENTRY)
        times = np.empty(BATCHES, TIME_ENTRY)
        with stem.with_suffix(".log").open("wb") as log:
            for number in range(BATCHES):
                last = (number + 1) * RECORDS - 1
                struct.pack_into(">q", content, 0, number * RECORDS)
                struct.pack_into(">qq", content, 27, START + last, START + last)
                struct.pack_into(">I", content, 17, crc32c(content[21:]))
                offsets[number] = last, log.tell()
                times[number] = START + last, last
                log.write(content)
        offsets.tofile(stem.with_suffix(".index"))
        times.tofile(stem.with_suffix(".timeindex"))
        self.log = Log(stem.parent)
        self.offset = BATCHES * RECORDS // 3
        self.time_read()
        self.time_offset_for_timestamp()

    def teardown(self) -> None:
        self.folder.cleanup()

    def time_read(self) -> None:
        """One record."""
        self.log.read(self.offset, 1)

    def time_offset_for_timestamp(self) -> None:
        self.log.offset_for_timestamp(START + self.offset)

    def time_end_offset(self) -> None:
        """From opening the folder on."""
        assert Log(self.log.segments[0].log.folder).end_offset == BATCHES * RECORDS


class Indexing:
    """Both indexes of a segment, made from its batches, beside reading and checking these alone."""

    params = segments.VALUE_SIZES
    param_names = ["value_size"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, value_size: int) -> None:
        self.source = Source(segments.small(value_size).path().read_bytes())
        self.time_rebuild(value_size)

    def time_check(self, value_size: int) -> None:
        for framing in frames(self.source):
            assert framing.batches.is_valid(self.source.content).all()

    def time_rebuild(self, value_size: int) -> None:
        indexes = SegmentIndexes(0)
        for framing in frames(self.source):
            assert framing.batches.is_valid(self.source.content).all()
            indexes.add(framing.batches)
        indexes.close()
        assert indexes.size == self.source.content.size
