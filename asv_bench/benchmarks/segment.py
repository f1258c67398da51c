"""A log in its folder: a lookup touches one batch; LogWriter, and what it writes; compaction."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

import shutil
import struct
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from crc32c import crc32c

from kafkajit import (
    Log,
    LogConfig,
    LogWriter,
    OffsetIndex,
    TimeIndex,
    compact,
    encode_batches,
)
from kafkajit.segment.indexing import SegmentIndexes
from kafkajit.source import Source
from kafkajit.testing import Record, batch, producer_snapshot
from kafkajit.walk import frames

from . import segments

MEMORY = Path("/dev/shm")

START = 1_700_000_000_000
BATCHES = 16_000
RECORDS = 148  # about 16 KB a batch, which is what a producer sends by default


class Lookup:
    """In a segment of 256 MB with its indexes, warm."""

    def setup(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        stem = Path(self.folder.name) / "orders-0" / f"{0:020}"
        stem.parent.mkdir()
        content = bytearray(batch([Record(key=b"k" * 8, value=bytes(92))] * RECORDS))
        offsets = OffsetIndex(stem.with_suffix(".index"), writable=True)
        times = TimeIndex(stem.with_suffix(".timeindex"), writable=True)
        with stem.with_suffix(".log").open("wb") as log:
            for number in range(BATCHES):
                last = (number + 1) * RECORDS - 1
                struct.pack_into(">q", content, 0, number * RECORDS)
                struct.pack_into(">qq", content, 27, START + last, START + last)
                struct.pack_into(">I", content, 17, crc32c(content[21:]))
                offsets.append(last, log.tell())
                times.maybe_append(START + last, last)
                log.write(content)
        offsets.make_read_only()
        times.make_read_only()
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


class Append:
    """A segment appended to a new log, in memory if there is a file system of it."""

    params = segments.VALUE_SIZES
    param_names = ["value_size"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, value_size: int) -> None:
        self.log = segments.small(value_size).path().read_bytes()
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)

    def teardown(self, value_size: int) -> None:
        self.folder.cleanup()

    def time_append(self, value_size: int) -> None:
        folder = Path(self.folder.name) / "orders-0"
        with LogWriter(folder) as writer:
            writer.append(self.log)
        shutil.rmtree(folder)


class Compact:
    """500,000 records, 64 MB of them, in which a key comes ten times or not again."""

    params = [["none", "lz4"], [50_000, 500_000]]
    param_names = ["codec", "keys"]

    def setup(self, codec: str, keys: int) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.path = Path(self.folder.name) / "users-0"
        self.path.mkdir()
        rng = np.random.default_rng(7)
        numbers = rng.integers(0, keys, 500_000)
        values = [b"%d " % number * 20 for number in range(100)]
        table = pa.table(
            {
                "key": [b"user-%08d" % number for number in numbers.tolist()],
                "value": [values[number % 100][:100] for number in numbers.tolist()],
            }
        )
        log = encode_batches(table, compression_type=codec, timestamp=START)
        (self.path / f"{0:020}.log").write_bytes(log)
        (self.path / f"{500_000:020}.log").touch()
        (self.path / f"{500_000:020}.snapshot").write_bytes(producer_snapshot([]))
        self.time_find_out(codec, keys)

    def teardown(self, codec: str, keys: int) -> None:
        self.folder.cleanup()

    def time_find_out(self, codec: str, keys: int) -> None:
        """All but writing what stays."""
        plan = compact(self.path, config=LogConfig(cleanup_policy=("compact",)))
        assert plan.partitions[0].segments
