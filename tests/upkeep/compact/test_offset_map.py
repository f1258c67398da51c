from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest
from corpus import NO_JIT
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.records.columns import RECORD
from kafkajit.storage.source import Bytes, as_bytes
from kafkajit.upkeep.compact import offset_map
from kafkajit.upkeep.compact.offset_map import OffsetMap

PRIME = 2**61 - 1
Key = bytes | None


def records_of(keys: list[Key], behind: bytes = b"") -> tuple[Bytes, npt.NDArray[np.void]]:
    """The keys in one array of bytes, and their places in it."""
    records = np.zeros(len(keys), dtype=RECORD)
    content = b""
    for row, key in enumerate(keys):
        records["key"][row], records["keySize"][row] = len(content), -1 if key is None else len(key)
        content += key or b""
    return as_bytes(content + behind), records


def bits_of(bits: npt.NDArray[np.uint8], count: int) -> list[bool]:
    return [bool(bits[row // 8] >> (row % 8) & 1) for row in range(count)]


def superseded(keys: list[Key], max_bytes: int, passes: list[int] | None = None) -> list[bool]:
    """The records that a map marks, in one pass or in several."""
    found = OffsetMap(max_bytes)
    bits = np.zeros(len(keys) // 8 + 1, dtype=np.uint8)
    content, records = records_of(keys)
    parts = [(0, 0)]
    while parts:
        found.restart(*parts.pop())
        hashes = found.hashes(content, records)
        row = 0
        while (row := found.put(hashes, 0, bits, row)) < len(keys):
            parts.append(found.halve())
        if passes is not None:
            passes.append(len(found))
    return bits_of(bits, len(keys))


def expected_of(keys: list[Key]) -> list[bool]:
    last = {key: row for row, key in enumerate(keys)}
    return [key is None or last[key] > row for row, key in enumerate(keys)]


KEYS = st.lists(st.one_of(st.none(), st.binary(max_size=2), st.binary(max_size=30)), max_size=60)


@given(KEYS)
def test_a_record_is_superseded_where_its_key_comes_again_or_is_none(keys: list[Key]) -> None:
    assert superseded(keys, 1 << 20) == expected_of(keys)


def test_keys_that_do_not_fit_are_gone_through_some_after_the_others() -> None:
    rng = random.Random(7)
    keys: list[Key] = [b"key-%d" % rng.randrange(400) for _ in range(600 if NO_JIT else 2000)]
    for max_bytes in (400, 3000, 1 << 20):
        passes: list[int] = []
        assert superseded(keys, max_bytes, passes) == expected_of(keys)
        assert (len(passes) > 1) == (max_bytes < 1 << 20)
        assert sum(passes) == len(set(keys))
        assert all(count * 16 <= max_bytes for count in passes)


def test_a_table_never_takes_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    zeros = np.zeros

    def counted(shape: int, dtype: type) -> npt.NDArray[np.generic]:
        made.append(shape * np.dtype(dtype).itemsize)
        return zeros(shape, dtype)

    content, records = records_of([b"%d" % number for number in range(5000)])
    monkeypatch.setattr(offset_map.np, "zeros", counted)
    found = OffsetMap(100_000)
    row = found.put(found.hashes(content, records), 0, zeros(999, np.uint8))
    assert max(one + other for one, other in zip(made, [*made[1:], 0], strict=True)) <= 100_000
    assert row == len(found)
    assert 3700 < row < 4000  # slots of 16 bytes, not all of them used


def test_too_few_bytes_for_any_table_are_refused() -> None:
    with pytest.raises(ValueError, match="300 bytes are too few for a map of keys"):
        OffsetMap(300)


def test_records_that_are_left_out_are_neither_put_nor_marked() -> None:
    found = OffsetMap(1 << 20)
    content, records = records_of([b"a", b"a", b"b", None, b"b"])
    left_out = np.array([False, True, False, True, True])
    bits = np.zeros(1, dtype=np.uint8)
    found.put(found.hashes(content, records, left_out), 0, bits)
    assert bits_of(bits, 5) == [False] * 5
    assert len(found) == 2


def test_what_is_older_is_found_by_its_key_and_nothing_is_put() -> None:
    found = OffsetMap(1 << 20)
    content, records = records_of([b"a", b"b"])
    found.put(found.hashes(content, records), 0, np.zeros(1, dtype=np.uint8))
    content, records = records_of([b"c", b"b", None, b"a", b"c"])
    bits = np.zeros(2, dtype=np.uint8)
    found.find(found.hashes(content, records), 8, bits)
    assert bits_of(bits, 16) == [False] * 8 + [False, True, True, True, False] + [False] * 3
    assert len(found) == 2


def test_numbers_go_on_from_chunk_to_chunk() -> None:
    found = OffsetMap(1 << 20)
    bits = np.zeros(2, dtype=np.uint8)
    for first, keys in ((0, [b"a", b"b", b"c"]), (3, [b"b"]), (4, [b"d", b"b", b"a"])):
        content, records = records_of(list(keys))
        found.put(found.hashes(content, records), first, bits)
    assert bits_of(bits, 7) == [True, True, False, True, False, False, False]


def test_more_records_than_are_counted_are_refused() -> None:
    found = OffsetMap(1 << 20)
    with pytest.raises(OverflowError, match="map counts at most"):
        found.put(np.zeros(2, dtype=np.uint64), 2**36 - 1, np.zeros(1, dtype=np.uint8))


def hashed(key: bytes, points: list[int]) -> tuple[int, int]:
    """The two words, computed with Python's integers."""
    sums = []
    for point in points:
        total = len(key) + 1
        for at in range(0, len(key), 7):
            total = (total * point + int.from_bytes(key[at : at + 7])) % PRIME
        sums.append(total)
    word = sums[0] | (sums[1] & 7) << 61
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        word = (word ^ word >> 33) * factor % 2**64
    return word ^ word >> 33, (sums[1] >> 3) % 2**28 << 36


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=5), st.binary(max_size=9))
def test_a_hash_is_two_polynomials_wherever_the_key_stands(keys: list[bytes], tail: bytes) -> None:
    found = OffsetMap(1 << 20)
    content, records = records_of(list(keys), tail)
    hashes = found.hashes(content, records)
    points = found._points.tolist()
    assert [tuple(pair) for pair in hashes.reshape(-1, 2).tolist()] == [
        hashed(key, points) for key in keys
    ]


@pytest.mark.parametrize("word", [b"\0" * 7, b"\xff" * 7, b"\x1f" + b"\xff" * 6])
def test_a_hash_is_right_at_the_field_s_edges(word: bytes) -> None:
    found = OffsetMap(1 << 20)
    for points in ([PRIME - 1, 1], [2, PRIME // 2], [PRIME - 2, 2**60]):
        found._points[:] = points
        content, records = records_of([word * 30])
        assert tuple(found.hashes(content, records).tolist()) == hashed(word * 30, points)


def test_points_are_chosen_anew() -> None:
    first, second = OffsetMap(1 << 20), OffsetMap(1 << 20)
    assert (first._points != second._points).all()


@pytest.mark.skipif(NO_JIT, reason="a million keys, interpreted")
def test_keys_that_differ_little_do_not_crowd() -> None:
    found = OffsetMap(64 << 20)
    keys = np.arange(1_000_000, dtype=">u8").tobytes()
    records = np.zeros(1_000_000, dtype=RECORD)
    records["key"], records["keySize"] = np.arange(1_000_000) * 8, 8
    words = found.hashes(as_bytes(keys), records)[::2]
    homes = np.bincount((words >> np.uint64(44)).astype(np.int64))  # of 2**20
    assert homes.max() < 12
