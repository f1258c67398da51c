"""kafkajit.reader: the whole path from bytes in memory to Arrow."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

import resource
from collections import deque
from collections.abc import Iterable

import kafkajit
from kafkajit.testing import CODECS, Record, batch

from . import segments
from .throughput import gigabytes_per_second

FOUR = ["key", "value", "offset", "timestamp"]
PROJECTIONS = {
    "offset": ["offset"],
    "key, value, offset, timestamp": FOUR,
    "all": None,
}
CRC_OFFSET = 17
BATCH = batch([Record(key=b"key", value=b"value")])


def exhaust(batches: Iterable[object]) -> None:
    """Read to the end and keep nothing."""
    deque(batches, maxlen=0)


def peak_memory() -> int:
    """The peak memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


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


class Throughput:
    """Four columns of 100-byte records, by codec; bytes before compression."""

    params = CODECS
    param_names = ["codec"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, codec: str) -> None:
        self.content = segments.small(codec=codec).path().read_bytes()
        self.size = segments.small().path().stat().st_size

    def track_iter_records(self, codec: str) -> float:
        return gigabytes_per_second(
            self.size, lambda: exhaust(kafkajit.iter_records(self.content, columns=FOUR))
        )

    track_iter_records.unit = "GB/s"


class Headers:
    """Three headers for each record, looked over and decoded; or the same bytes in its value."""

    params = [["headers", "values"], ["value", "headers", "all"]]
    param_names = ["bytes_in", "columns"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, bytes_in: str, columns: str) -> None:
        segment = segments.HEADERS if bytes_in == "headers" else segments.AS_VALUES
        self.content = segment.path().read_bytes()
        self.columns = None if columns == "all" else [columns]
        self.time_iter_records(bytes_in, columns)

    def time_iter_records(self, bytes_in: str, columns: str) -> None:
        exhaust(kafkajit.iter_records(self.content, columns=self.columns))


class Damage:
    """A segment in which 0, 1 or 10 of 100 batches are damaged, in the modes that skip damage."""

    params = [["DROPMALFORMED", "PERMISSIVE"], [0, 1, 10]]
    param_names = ["mode", "damaged"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, mode: str, damaged: int) -> None:
        content = bytearray(segments.small().path().read_bytes())
        positions = kafkajit.read_record_batches(bytes(content))["position"].to_pylist()
        for position in positions[50 :: 100 // damaged] if damaged else []:
            content[position + CRC_OFFSET] ^= 1
        self.content = bytes(content)
        self.time_iter_records(mode, damaged)

    def time_iter_records(self, mode: str, damaged: int) -> None:
        exhaust(kafkajit.iter_records(self.content, mode=mode))


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

    def track_iter_records_above_import(self) -> int:
        """The difference, kernels loaded: what reading itself needs."""
        kafkajit.read_records(BATCH)
        before = peak_memory()
        exhaust(kafkajit.iter_records(segments.LARGE.path()))
        return peak_memory() - before

    track_iter_records_above_import.unit = "bytes"


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
