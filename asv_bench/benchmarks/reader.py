"""kafkajit.reader: the whole line, from bytes in memory to Arrow."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import kafkajit
from kafkajit.testing import CODECS

from . import segments

PROJECTIONS = {
    "offset": ["offset"],
    "key, value, offset, timestamp": ["key", "value", "offset", "timestamp"],
    "all": None,
}


def exhaust(batches: Iterable[object]) -> None:
    """Read to the end and keep nothing."""
    deque(batches, maxlen=0)


class Records:
    """Every column of a segment, by codec and size of value."""

    params = [CODECS, segments.VALUE_SIZES]
    param_names = ["codec", "value_size"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, codec: str, value_size: int) -> None:
        self.content = segments.small(value_size, codec).path().read_bytes()
        self.time_iter_records(codec, value_size)
        self.time_read_record_batches(codec, value_size)

    def time_iter_records(self, codec: str, value_size: int) -> None:
        exhaust(kafkajit.iter_records(self.content))

    def time_read_record_batches(self, codec: str, value_size: int) -> None:
        """Headers and checksums."""
        kafkajit.read_record_batches(self.content)


class Projection:
    """Some columns, with and without checksums."""

    params = [list(PROJECTIONS), [True, False]]
    param_names = ["columns", "check_crcs"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, columns: str, check_crcs: bool) -> None:
        self.content = segments.small().path().read_bytes()
        self.time_iter_records(columns, check_crcs)

    def time_iter_records(self, columns: str, check_crcs: bool) -> None:
        exhaust(
            kafkajit.iter_records(self.content, columns=PROJECTIONS[columns], check_crcs=check_crcs)
        )


class Headers:
    """Three headers for each record: looked over, and decoded."""

    params = ["value", "headers"]
    param_names = ["columns"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, column: str) -> None:
        self.content = segments.small(headers=3).path().read_bytes()
        self.time_iter_records(column)

    def time_iter_records(self, column: str) -> None:
        exhaust(kafkajit.iter_records(self.content, columns=[column]))


class BinaryView:
    """Keys and values as views into the segment, or copied out of it."""

    params = [segments.VALUE_SIZES, [True, False]]
    param_names = ["value_size", "binary_view"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, value_size: int, binary_view: bool) -> None:
        self.content = segments.small(value_size).path().read_bytes()
        self.time_iter_records(value_size, binary_view)

    def time_iter_records(self, value_size: int, binary_view: bool) -> None:
        exhaust(
            kafkajit.iter_records(self.content, columns=["key", "value"], binary_view=binary_view)
        )


class Memory:
    """Peak memory over a file of 240 MB: of the interpreter and its imports, and of reading."""

    setup_cache = staticmethod(segments.setup_cache)

    def peakmem_import(self) -> None:
        kafkajit.read_records(b"")

    def peakmem_iter_records(self) -> None:
        exhaust(kafkajit.iter_records(segments.LARGE.path()))


class Messages:
    """Formats v0 and v1: each record a batch by itself, or in compressed sets."""

    params = [[0, 1], segments.MESSAGE_CODECS]
    param_names = ["magic", "codec"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, magic: int, codec: str) -> None:
        self.content = segments.small(codec=codec, magic=magic).path().read_bytes()
        self.time_iter_records(magic, codec)

    def time_iter_records(self, magic: int, codec: str) -> None:
        exhaust(kafkajit.iter_records(self.content))
