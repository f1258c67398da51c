"""Compares a report's estimates with the truth, for twenty kinds of topics: a table for the docs.

    PYTHONPATH=.:tests:tests/support python tests/support/estimates.py

Each topic has 16 times the bytes of its sample, as 1 GiB of logs has; the sample has eight
stretches, the fewest that a topic gets.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

import kafkajit
from kafkajit.report import headers
from kafkajit.report import take as taking
from kafkajit.report.savings import Encoding, measured

_RECORDS = 600_000
_SAMPLE = 16  # a topic has this number of times the bytes of its sample
_PARTS = 8
_ENCODING = Encoding("zstd", 3, 128 << 10)
_WORDS = [b"order", b"payment", b"refund", b"shipped", b"pending", b"customer", b"eu-west-1"]

Numbers = Any
Keys = Callable[[Any], Numbers]
Values = Callable[[Any, int], bytes]


class Kind(NamedTuple):
    """A kind of topic."""

    name: str
    keys: Keys  # a number for each record; below 0 it has no key
    values: Values
    partitions: int = 1
    codec: str = "none"
    batch: int = 100  # records


def _uniform(most: int) -> Keys:
    return lambda chance: chance.integers(0, most, _RECORDS)


def _skewed(power: float) -> Keys:
    return lambda chance: np.minimum(chance.zipf(power, _RECORDS), 1 << 40)


def _each(times: int) -> Keys:
    """Each key some times, one behind the other."""
    return lambda _: np.arange(_RECORDS) // times


def _again(most: int) -> Keys:
    """All keys in turn, again and again."""
    return lambda _: np.arange(_RECORDS) % most


def _moving(window: int) -> Keys:
    """Keys that are updated for some time, and then no more."""
    return lambda chance: np.arange(_RECORDS) // 10 + chance.integers(0, window, _RECORDS)


def _some_without(share: float) -> Keys:
    def keys(chance: Any) -> Numbers:
        found = chance.integers(0, 5_000, _RECORDS)
        return np.where(chance.random(_RECORDS) < share, -1, found)

    return keys


def _changing(chance: Any) -> Numbers:
    """Few keys at first, and later ever more."""
    return (chance.random(_RECORDS) * np.arange(1, _RECORDS + 1)).astype(np.int64)


def _json(chance: Any, number: int) -> bytes:
    word = _WORDS[int(chance.integers(0, len(_WORDS)))]
    return b'{"id":%d,"state":"%s","amount":%d}' % (number, word, chance.integers(0, 10_000))


def _noise(chance: Any, _: int) -> bytes:
    content: bytes = chance.bytes(100)
    return content


def _same(_: Any, __: int) -> bytes:
    return b"heartbeat"


def _growing(chance: Any, number: int) -> bytes:
    return b" ".join(_WORDS[int(one)] for one in chance.integers(0, 7, 1 + number // 40_000))


def _mixed(chance: Any, number: int) -> bytes:
    return _noise(chance, number) if number % 3 == 0 else _json(chance, number)


def _later_noise(chance: Any, number: int) -> bytes:
    return _noise(chance, number) if number > _RECORDS // 2 else _json(chance, number)


KINDS = (
    Kind("100 keys, uniform", _uniform(100), _json),
    Kind("10,000 keys, uniform", _uniform(10_000), _json),
    Kind("100,000 keys, uniform", _uniform(100_000), _json),
    Kind("10 million keys, uniform", _uniform(10_000_000), _json),
    Kind("few hot keys (Zipf 2)", _skewed(2.0), _json),
    Kind("a long tail (Zipf 1.2)", _skewed(1.2), _json),
    Kind("each key once", _each(1), _json),
    Kind("each key 10 times, at once", _each(10), _json),
    Kind("each key 1,000 times, at once", _each(1_000), _json),
    Kind("1,000 keys in turn", _again(1_000), _same),
    Kind("60,000 keys in turn", _again(60_000), _json),
    Kind("keys in use for a while", _moving(2_000), _json),
    Kind("more and more keys", _changing, _json),
    Kind("a third without key", _some_without(1 / 3), _json),
    Kind("random bytes", _uniform(10_000), _noise),
    Kind("values that grow", _uniform(10_000), _growing),
    Kind("JSON, and random bytes", _uniform(10_000), _mixed),
    Kind("JSON at first, then random bytes", _uniform(10_000), _later_noise),
    Kind("8 partitions, snappy", _uniform(10_000), _json, partitions=8, codec="snappy"),
    Kind("batches of one record", _uniform(2_000), _json, batch=1),
)


def _write(folder: Path, kind: Kind, seed: int) -> pa.Table:
    """Write a topic, and return its records."""
    chance = np.random.default_rng(seed)
    numbers = kind.keys(chance)
    keys = [None if number < 0 else b"key-%d" % number for number in numbers.tolist()]
    values = [kind.values(chance, at) for at in range(_RECORDS)]
    table = pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
    partitions = np.array([crc32(key or b"%d" % at) for at, key in enumerate(keys)])
    partitions %= kind.partitions
    for partition in range(kind.partitions):
        rows = np.flatnonzero(partitions == partition)
        log = folder / f"topic-{partition}" / f"{0:020}.log"
        log.parent.mkdir()
        own = table.take(pa.array(rows))
        batches = [
            kafkajit.encode_batches(
                own.slice(start, kind.batch).append_column(
                    "offset", pa.array(range(start, min(start + kind.batch, rows.size)), pa.int64())
                ),
                compression_type=kind.codec,
            ).to_pybytes()
            for start in range(0, rows.size, kind.batch)
        ]
        log.write_bytes(b"".join(batches))
    return table


def compared(kind: Kind, seed: int) -> dict[str, Any]:
    """The estimates for a topic, and the truth."""
    with tempfile.TemporaryDirectory() as folder:
        table = _write(Path(folder), kind, seed)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*.log"))
        taking._SAMPLE_BYTES = size // _SAMPLE
        taking._ENCODED_BYTES = size // _SAMPLE
        taking._LEAST_SAMPLE, taking._LEAST_PARTS = 4 << 10, _PARTS
        headers._MARK = size // _SAMPLE // _PARTS
        (topic,) = taking.take(taking.ReportOptions((folder,)))["topics"]
        keyed = table["key"].drop_null()
        distinct = len(keyed.unique())
        compaction, savings = topic["savings"]["compaction"], topic["savings"]
        (encoded,) = (
            one
            for one in savings["encodings"]
            if (one["codec"], one["level"], one["batchBytes"]) == tuple(_ENCODING)
        )
        saved = encoded["bytes"] / savings["now"]["bytes"]
        logs = sorted(Path(folder).rglob("*.log"))
        columns = ["timestamp", "key", "value", "headers"]
        records = pa.concat_tables(kafkajit.read_records(log, columns=columns) for log in logs)
        truth = measured(records, _ENCODING)["bytes"] / size
    return {
        "sample": compaction["records"] / compaction["ofRecords"],
        "least": compaction["leastShare"],
        "most": compaction["mostShare"],
        "superseded": 1 - distinct / len(keyed),
        "encoded": saved,
        "encodedTruth": truth,
    }


def _lines() -> Iterator[str]:
    yield "| topic | superseded | range | in the sample | zstd | estimate | error |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for seed, kind in enumerate(KINDS):
        found = compared(kind, seed)
        error = found["encoded"] / found["encodedTruth"] - 1
        yield (
            f"| {kind.name} | {found['superseded']:.1%} "
            f"| {found['least']:.1%} to {found['most']:.1%} | {found['sample']:.1%} "
            f"| {found['encodedTruth']:.1%} | {found['encoded']:.1%} | {error:+.1%} |"
        )


def main() -> None:
    """Print the table."""
    for line in _lines():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
