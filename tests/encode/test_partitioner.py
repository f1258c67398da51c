from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st
from strategies import NULLABLE

from kafkajit.encode.batch_plan import ByteStrings
from kafkajit.encode.partitioner import NO_KEY, partitions_of
from kafkajit.encode.rows import byte_strings_of
from kafkajit.storage.source import as_bytes

HEAD, *ROWS = [line.split("\t") for line in (DATA / "partitions.tsv").read_text().splitlines()]
KEYS = [bytes.fromhex(row[0]) for row in ROWS]


def murmur2(key: bytes) -> int:
    """The twin: its author's MurmurHash2, with the seed of Java's client."""
    factor, low = 0x5BD1E995, 2**32 - 1
    hashed = 0x9747B28C ^ len(key)
    whole = len(key) // 4 * 4
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * factor % 2**32
        word = (word ^ word >> 24) * factor % 2**32
        hashed = (hashed * factor & low) ^ word
    if len(key) > whole:
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * factor % 2**32
    hashed = (hashed ^ hashed >> 13) * factor % 2**32
    return hashed ^ hashed >> 15


def keys_of(keys: list[bytes | None]) -> ByteStrings:
    return byte_strings_of(pa.array(keys, pa.binary()), "key")


@pytest.mark.parametrize("column", range(2, len(HEAD)))
def test_a_key_has_the_partition_that_kafkas_producer_chooses(column: int) -> None:
    found = partitions_of(keys_of(KEYS), int(HEAD[column]))
    assert found.tolist() == [int(row[column]) for row in ROWS]


def test_the_twin_hashes_as_kafka_does() -> None:
    assert [murmur2(key) for key in KEYS] == [int(row[1]) % 2**32 for row in ROWS]


@given(st.lists(NULLABLE, max_size=20), st.integers(1, 2**31 - 1))
def test_keys_are_hashed_in_place_and_null_keys_have_no_partition(
    keys: list[bytes | None], partitions: int
) -> None:
    data = b"<" + b"|".join(key or b"" for key in keys) + b">"
    starts = np.cumsum([1, *(len(key or b"") + 1 for key in keys)])[: len(keys)]
    sizes = np.array([-1 if key is None else len(key) for key in keys], dtype=np.int64)
    expected = [NO_KEY if key is None else (murmur2(key) & 0x7FFFFFFF) % partitions for key in keys]
    found = partitions_of(ByteStrings(as_bytes(data), starts.astype(np.int64), sizes), partitions)
    assert found.tolist() == expected


def test_each_key_may_be_one_of_another_number_of_partitions() -> None:
    numbers = np.array([1, 3, 12], dtype=np.int64)
    together = partitions_of(keys_of([b"user-1"] * 3), numbers).tolist()
    apart = [partitions_of(keys_of([b"user-1"]), number)[0] for number in (1, 3, 12)]
    assert together == apart
    assert len({*apart}) == 3
