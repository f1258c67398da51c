"""kafkajit.upkeep: repairs, retention and compaction, beside reading the same log."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import kafkajit
from kafkajit import LogConfig, compact, encode_batches
from kafkajit.storage.source import Source
from kafkajit.testing import Record, batch, producer_snapshot
from kafkajit.walk.frames import frames

from . import segments
from .rolled_logs import rolled_log, temporary_folder

SIZE = 64 << 20
RECORDS = 500_000
COMPACT = LogConfig(cleanup_policy=("compact",))


class Repair:
    """A segment whose indexes are gone, warm; batches of some bytes, by many producers or none."""

    params = ([300, 16_000], [False, True])
    param_names = ("batch_bytes", "idempotent")

    def setup(self, batch_bytes: int, idempotent: bool) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.log = Path(self.folder.name) / "orders-0" / f"{0:020}.log"
        self.log.parent.mkdir()
        value = Record(value=bytes(batch_bytes - 80))
        ids = [{"producer_id": 1000 + row} if idempotent else {} for row in range(50)]
        batches = [bytearray(batch([value], base_timestamp=row, **ids[row])) for row in range(50)]
        with self.log.open("wb") as log:
            for number in range(SIZE // len(batches[0])):
                struct.pack_into(">q", batches[number % 50], 0, number)
                log.write(batches[number % 50])
        self.time_repair(batch_bytes, idempotent)
        self.time_checksums(batch_bytes, idempotent)

    def teardown(self, batch_bytes: int, idempotent: bool) -> None:
        self.folder.cleanup()

    def time_repair(self, batch_bytes: int, idempotent: bool) -> None:
        assert kafkajit.repair(self.log.parent).is_needed

    def time_checksums(self, batch_bytes: int, idempotent: bool) -> None:
        """The baseline: framing, and each batch's checksum."""
        source = Source(str(self.log))
        for framing in frames(source):
            assert framing.batches.is_valid(source.content).all()
            source.forget(framing.position)


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
        """Planning, without deleting."""
        assert kafkajit.retain(self.path, config={"retention.ms": 0}, now=self.now).is_needed


class Compact:
    """500,000 records, 64 MB of them, in which a key comes ten times or not again."""

    params = [["none", "lz4"], [RECORDS // 10, RECORDS]]
    param_names = ["codec", "keys"]

    def setup(self, codec: str, keys: int) -> None:
        self.folder = temporary_folder()
        self.path = Path(self.folder.name) / "users-0"
        self.path.mkdir()
        numbers = np.random.default_rng(segments.SEED).integers(0, keys, RECORDS)
        values = [b"%d " % number * 20 for number in range(100)]
        table = pa.table(
            {
                "key": [b"user-%08d" % number for number in numbers.tolist()],
                "value": [values[number % 100][:100] for number in numbers.tolist()],
            }
        )
        log = encode_batches(table, compression_type=codec, timestamp=segments.BASE_TIMESTAMP)
        (self.path / f"{0:020}.log").write_bytes(log)
        (self.path / f"{RECORDS:020}.log").touch()
        (self.path / f"{RECORDS:020}.snapshot").write_bytes(producer_snapshot([]))
        self.time_find_out(codec, keys)

    def teardown(self, codec: str, keys: int) -> None:
        self.folder.cleanup()

    def time_find_out(self, codec: str, keys: int) -> None:
        """Planning, without writing."""
        assert compact(self.path, config=COMPACT).partitions[0].segments
