"""kafkajit.recovery: one pass makes all that is beside a log, for little more than checksums."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import kafkajit
from kafkajit.source import Source
from kafkajit.testing import Record, batch
from kafkajit.walk import frames

SIZE = 64 << 20


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

    def teardown(self, batch_bytes: int, idempotent: bool) -> None:  # noqa: ARG002
        self.folder.cleanup()

    def time_repair(self, batch_bytes: int, idempotent: bool) -> None:  # noqa: ARG002
        assert kafkajit.repair(self.log.parent).is_needed

    def time_checksums(self, batch_bytes: int, idempotent: bool) -> None:  # noqa: ARG002
        """What it is to be compared with: framing, and each batch's checksum."""
        source = Source(str(self.log))
        for framing in frames(source):
            assert framing.batches.is_valid(source.content).all()
            source.forget(framing.position)
