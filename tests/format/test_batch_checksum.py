from __future__ import annotations

import random

import numpy as np
import pytest
from crc32c import crc32c

from kafkajit import testing as kt
from kafkajit.format.batch_checksum import batch_checksums
from kafkajit.format.layout import ATTRIBUTES_OFFSET
from kafkajit.storage.source import as_bytes


def checksum(log: bytes) -> int:
    computed = batch_checksums(as_bytes(log), np.array([0]), np.array([len(log)]))
    return int(computed[0])


@pytest.mark.parametrize(
    ("data", "value"),
    [  # RFC 3720, B.4, and the usual check value
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (b"", 0),
    ],
)
def test_a_checksum_is_the_crc_32c_from_the_attributes_on(data: bytes, value: int) -> None:
    assert checksum(b"baseOffset, length, epoch"[:21] + data) == value
    assert crc32c(data) == value


def test_each_batch_has_its_own(three_batches: bytes) -> None:
    parts = [kt.batch([kt.Record(b"%d" % place)] * place) for place in range(4)]
    ends = np.cumsum([len(part) for part in parts])
    starts = ends - [len(part) for part in parts]
    computed = batch_checksums(as_bytes(b"".join(parts)), starts, ends)
    assert computed.dtype == np.uint32
    assert computed.tolist() == [int.from_bytes(part[17:21]) for part in parts]


def test_no_batch_has_no_checksum() -> None:
    none = np.empty(0, dtype=np.int64)
    assert batch_checksums(as_bytes(b""), none, none).tolist() == []


@pytest.mark.parametrize("at", range(75))
def test_a_flipped_bit_shows_from_the_attributes_on(at: int) -> None:
    batch = kt.batch([kt.Record(b"key", b"value")])
    assert len(batch) == 75 + 1
    flipped = bytearray(batch)
    flipped[at] ^= 0x10
    same = checksum(bytes(flipped)) == checksum(batch)
    assert same == (at < 21)  # brokers set the base offset and the leader's epoch on append


# Lengths around those at which the kernel changes from one kind of step to another.
SIZES = [*range(20), *range(760, 790), *range(12_280, 12_310), 13_000, 65_536, 100_001]


@pytest.mark.parametrize("start", [0, 1, 7, 61])
def test_every_length_at_every_place_has_the_packages_sum(start: int) -> None:
    content = as_bytes(random.Random(start).randbytes(200_000))
    positions = np.full(len(SIZES), start, dtype=np.int64)
    ends = positions + ATTRIBUTES_OFFSET + np.array(SIZES)
    expected = [crc32c(content[start + ATTRIBUTES_OFFSET : end]) for end in ends.tolist()]
    assert batch_checksums(content, positions, ends).tolist() == expected


def test_a_batch_that_ends_with_the_bytes_is_summed_to_its_end() -> None:
    for size in SIZES:
        content = as_bytes(random.Random(size).randbytes(ATTRIBUTES_OFFSET + size))
        end = np.array([content.size])
        (computed,) = batch_checksums(content, np.zeros(1, dtype=np.int64), end).tolist()
        assert computed == crc32c(content[ATTRIBUTES_OFFSET:])
