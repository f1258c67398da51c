"""kafkajit.encode: Arrow columns to batches, as they stand in a log."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

import kafkajit
from kafkajit.testing import CODECS

from . import segments
from .reader import exhaust

COLUMNS = ["key", "value", "offset", "timestamp"]


class EncodeBatches:
    """Batches of 16,384 bytes, by codec and size of value."""

    params = [CODECS, segments.VALUE_SIZES]
    param_names = ["codec", "value_size"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, codec: str, value_size: int) -> None:
        path = segments.small(value_size).path()
        self.records = list(kafkajit.iter_records(path, columns=COLUMNS))
        self.time_encode(codec, value_size)

    def time_encode(self, codec: str, value_size: int) -> None:
        exhaust(kafkajit.iter_encoded_batches(self.records, compression_type=codec))


class EncodeAgain:
    """Every column of a segment, its batches as they were; three headers a record, or none."""

    params = [[0, 3]]
    param_names = ["headers"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, headers: int) -> None:
        self.path = segments.small(headers=headers).path()
        self.records = list(kafkajit.iter_records(self.path))
        self.time_encode(headers)
        self.time_copy(headers)

    def time_encode(self, headers: int) -> None:
        exhaust(kafkajit.iter_encoded_batches(self.records))

    def time_copy(self, headers: int) -> None:
        """Compare all records with those of the segment, and copy their batches."""
        exhaust(kafkajit.iter_encoded_batches(self.records, source=self.path))


class EncodeMessages:
    """Formats v0 and v1: each record a batch by itself, or in compressed sets."""

    params = [[0, 1], segments.MESSAGE_CODECS]
    param_names = ["magic", "codec"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, magic: int, codec: str) -> None:
        path = segments.small().path()
        self.records = list(kafkajit.iter_records(path, columns=COLUMNS))
        self.time_encode(magic, codec)

    def time_encode(self, magic: int, codec: str) -> None:
        exhaust(kafkajit.iter_encoded_batches(self.records, magic=magic, compression_type=codec))
