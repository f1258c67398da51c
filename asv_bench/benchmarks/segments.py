"""Log segments to measure on: seeded, JSON-like values, written once into a cache folder.

In: the properties of a segment. Out: the path of a file with these properties, under the name that
Kafka would give it. The folder is KAFKAJIT_BENCH_DIR, or else ~/.cache/kafkajit/bench.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import cycle
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kafkajit.testing import CODECS, Record, batch, message, message_set, varint

SEED = 20240229
VALUE_SIZES = (10, 100, 1000)
MESSAGE_CODECS = CODECS[:-1]  # v0 and v1 have no zstd
KEY_SIZE = 9
BASE_TIMESTAMP = 1_700_000_000_000
# Plain bytes of a segment for asv: a few chunks of the reader, and short enough to repeat.
SMALL = 16 << 20

_BATCH_BYTES = 64 << 10
_BATCH_OVERHEAD = 61
_HEADERS = (("traceparent", b"00-4bf92f3577b34da6-01"), ("retries", None), ("kind", b"order"))


@dataclass(frozen=True)
class Segment:
    """The contents of a segment: `records` records in batches of up to 64 KiB before compression.

    Keys are 9 digits. A batch's records have the same shape in every batch, so that a batch is a
    template into which keys and values are scattered.
    """

    records: int
    value_size: int = 100
    codec: str = "none"
    headers: int = 0  # of each record, up to 3
    magic: int = 2  # of 0 and 1: messages, each by itself or in compressed sets
    keys: int = 10**KEY_SIZE  # how many there are, if format is v2

    @property
    def name(self) -> str:
        """The name of the topic, in the folder of whose partition 0 the file is."""
        keys = "" if self.keys == 10**KEY_SIZE else f"-{self.keys}k"
        return f"v{self.magic}-{self.codec}-{self.value_size}B-{self.headers}h-{self.records}{keys}"

    @cached_property
    def records_per_batch(self) -> int:
        """The number of records that fit into 64 KiB."""
        sizes = np.cumsum([len(record) for record in self._encoded(_BATCH_BYTES // 16)])
        return int(np.searchsorted(sizes, _BATCH_BYTES - _BATCH_OVERHEAD))

    @property
    def plain_bytes(self) -> int:
        """The size of the file without compression."""
        if self.magic < 2:
            return self.records * len(message(self._record(0), magic=self.magic))
        full, rest = divmod(self.records, self.records_per_batch)
        return sum(
            batches * (_BATCH_OVERHEAD + sum(map(len, self._encoded(records))))
            for batches, records in ((full, self.records_per_batch), (1, rest))
            if batches and records
        )

    def path(self) -> Path:
        """The file, written now if it is missing; files of earlier versions are removed."""
        folder = cache_folder()
        digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
        path = folder / digest / f"{self.name}-0" / "00000000000000000000.log"
        if not path.exists():
            for other in folder.glob(f"*/{self.name}-0"):
                shutil.rmtree(other)
            partial = path.with_suffix(f".{os.getpid()}.part")
            partial.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.writelines(self._batches())
            partial.rename(path)
        return path

    def _batches(self) -> Iterator[bytes]:
        if self.magic < 2:
            yield from self._message_sets()
            return
        numbers = np.random.default_rng(SEED)
        values = _values(self.value_size)
        step = self.records_per_batch
        base_timestamp = BASE_TIMESTAMP
        for base_offset in range(0, self.records, step):
            count = min(step, self.records - base_offset)
            payload, keys_at, values_at, last_delta = self._template(count)
            payload[keys_at] = _digits(numbers.integers(0, self.keys, count))
            payload[values_at] = values[numbers.integers(0, len(values), count)]
            yield batch(
                [payload.tobytes()],
                base_offset=base_offset,
                codec=self.codec,
                base_timestamp=base_timestamp,
                max_timestamp=base_timestamp + last_delta,
                last_offset_delta=count - 1,
                records_count=count,
            )
            base_timestamp += last_delta

    def _message_sets(self) -> Iterator[bytes]:
        step = self.records_per_batch
        for first in range(0, self.records, step):
            records = [
                self._record(place) for place in range(first, min(first + step, self.records))
            ]
            yield message_set(records, base_offset=first, magic=self.magic, codec=self.codec)

    def _record(self, place: int) -> Record:
        values = _values(self.value_size)
        value = values[place * 7919 % len(values)].tobytes()
        return Record(
            b"%09d" % (place * 31337 % 10**KEY_SIZE), value, timestamp=BASE_TIMESTAMP + place
        )

    @cache  # noqa: B019  # a segment lives as long as the process
    def _template(self, count: int) -> tuple[npt.NDArray[np.uint8], Places, Places, int]:
        """Records as bytes; where in them each key and each value goes; the last timestampDelta."""
        encoded = self._encoded(count)
        after_value = len(Record(headers=_HEADERS[: self.headers]).encode(0, 0)) - 6
        ends = np.cumsum([len(record) for record in encoded])
        values_at = ends - after_value - self.value_size
        keys_at = values_at - len(varint(self.value_size)) - KEY_SIZE
        return (
            np.frombuffer(b"".join(encoded), dtype=np.uint8).copy(),
            keys_at[:, None] + np.arange(KEY_SIZE),
            values_at[:, None] + np.arange(self.value_size),
            int(_timestamp_deltas(count)[-1]),
        )

    def _encoded(self, count: int) -> list[bytes]:
        key, value = bytes(KEY_SIZE), bytes(self.value_size)
        return [
            Record(key, value, _HEADERS[: self.headers], timestamp=int(delta)).encode(place, 0)
            for place, delta in enumerate(_timestamp_deltas(count))
        ]


@dataclass(frozen=True)
class Commits(Segment):
    """Offset commits as __consumer_offsets has them, in batches of 100."""

    value_size: int = 38

    @property
    def name(self) -> str:
        return f"commits-{self.records}"

    @property
    def plain_bytes(self) -> int:
        return self.path().stat().st_size

    def _batches(self) -> Iterator[bytes]:
        for base_offset in range(0, self.records, 100):
            numbers = range(base_offset, min(base_offset + 100, self.records))
            yield batch([self._commit(number) for number in numbers], base_offset=base_offset)

    def _commit(self, number: int) -> Record:
        group, topic = b"payments-%02d" % (number % 37), b"orders"
        timestamp = BASE_TIMESTAMP + number
        key = struct.pack(
            f">hh{len(group)}sh{len(topic)}si", 1, len(group), group, len(topic), topic, number % 50
        )
        value = struct.pack(">hqih12sq", 3, 1000 * number, 5, 12, b"member-1-abc", timestamp)
        return Record(key, value, timestamp=timestamp)


Places = npt.NDArray[np.int64]


def cache_folder() -> Path:
    """The folder of segments and compiled peers."""
    default = Path.home() / ".cache" / "kafkajit" / "bench"
    return Path(os.environ.get("KAFKAJIT_BENCH_DIR", default)).expanduser().absolute()


def small(value_size: int = 100, codec: str = "none", headers: int = 0, magic: int = 2) -> Segment:
    """A segment for asv: 16 MiB of records before compression."""
    return Segment(SMALL // (value_size + 20), value_size, codec, headers, magic)


HEADERS = small(headers=len(_HEADERS))
_HEADER_BYTES = len(Record(headers=_HEADERS).encode(0, 0)) - len(Record().encode(0, 0))
AS_VALUES = Segment(HEADERS.records, HEADERS.value_size + _HEADER_BYTES)  # the same bytes in values
COMMITS = Commits(1_000_000)
LARGE = Segment(2_000_000)  # 240 MB: enough to tell bounded memory from unbounded


def setup_cache() -> None:
    """Write all files that the benchmarks read; asv calls this once for all of them."""
    for codec in CODECS:
        for value_size in VALUE_SIZES:
            small(value_size, codec).path()
    HEADERS.path()
    AS_VALUES.path()
    for magic in (0, 1):
        for codec in MESSAGE_CODECS:
            small(codec=codec, magic=magic).path()
    LARGE.path()


def _timestamp_deltas(count: int) -> npt.NDArray[np.int64]:
    """Milliseconds since the batch's first record: never falling, one and two bytes long."""
    steps = np.random.default_rng(SEED).integers(0, 3, _BATCH_BYTES)
    deltas: npt.NDArray[np.int64] = np.cumsum(steps[:count]) - steps[0]
    return deltas


def _digits(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    """Each number as KEY_SIZE ASCII digits, a row each."""
    places = 10 ** np.arange(KEY_SIZE - 1, -1, -1)
    return (numbers[:, None] // places % 10 + ord("0")).astype(np.uint8)


@cache
def _values(size: int) -> npt.NDArray[np.uint8]:
    """Distinct values to draw from, a row each: JSON-like text, cut to `size` bytes.

    Every value has the same fields in the same order, words and numbers in them.
    """
    chance = random.Random(SEED)
    letters = "aaabcdeeefghiiijklmnooopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(3, 9))) for _ in range(400)]

    def value() -> str:
        text = f'{{"id":{chance.randrange(10**6)}'
        for name in cycle(words[:24]):
            if len(text) >= size:
                return text[: size - 1] + "}"
            word = chance.choice((*chance.choices(words, k=2), f"{chance.randrange(10**4)}"))
            text += f',"{name}":"{word}"'
        raise AssertionError  # a cycle does not end

    rows = [value() for _ in range(min(1 << 16, (16 << 20) // size))]
    return np.frombuffer("".join(rows).encode(), dtype=np.uint8).reshape(-1, size)
