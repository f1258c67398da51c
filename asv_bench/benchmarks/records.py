"""kafkajit.records: finding batches, and the records in them, before anything becomes Arrow."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.source import Source
from kafkajit.walk import frames

from . import segments

WANTED = Wanted(offset=True, timestamp=True, key=True, value=True)


class Batches:
    """A whole segment's batches."""

    params = segments.VALUE_SIZES
    param_names = ["value_size"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, value_size: int) -> None:
        self.source = Source(segments.small(value_size).path().read_bytes())
        self.framings = list(frames(self.source))
        self.decoder = Decoder(self.source, ColumnMemory(WANTED))
        self.time_check(value_size)
        self.time_decode(value_size)

    def time_frames(self, value_size: int) -> None:
        """Headers only."""
        for _ in frames(self.source):
            pass

    def time_check(self, value_size: int) -> None:
        """Magic and checksum."""
        for framing in self.framings:
            self.decoder.sound(framing.batches, check_crcs=True)

    def time_decode(self, value_size: int) -> None:
        """Where every record's fields are, checked as Kafka does."""
        for framing in self.framings:
            batches = framing.batches
            while len(batches):
                batches = batches[len(self.decoder.decode(batches).batches) :]
