from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
from kafkajit.index.time_index import TimeIndex, time_entries
from kafkajit.storage.source import as_bytes

INDEXES = [
    path
    for path in sorted(DATA.rglob("*.timeindex"))
    if path.with_name(path.name + ".dump.out").exists()
]
NAME = "00000000000000000045.timeindex"


def encode(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", timestamp, offset) for timestamp, offset in entries)


def entries_of(content: bytes) -> list[tuple[int, int]]:
    entries: list[tuple[int, int]] = time_entries(as_bytes(content), "a/b").tolist()
    return entries


@pytest.mark.parametrize("path", INDEXES, ids=lambda path: f"{path.parent.name}/{path.stem[-3:]}")
def test_the_entries_are_those_that_kafka_prints(path: Path) -> None:
    printed = re.findall(
        r"^timestamp: (\d+) offset: (\d+)$",
        path.with_name(path.name + ".dump.out").read_text(),
        re.M,
    )
    index = TimeIndex(path)
    # For a preallocated index without entries, Kafka's tool prints an entry of zeros.
    expected = [
        (int(timestamp), int(offset))
        for timestamp, offset in printed
        if (timestamp, offset) != ("0", str(index.base_offset))
    ]
    assert [index.entry(row) for row in range(len(index))] == expected
    found = [(time, index.base_offset + offset) for time, offset in entries_of(path.read_bytes())]
    assert found == expected


def test_the_corpus_has_indexes() -> None:
    assert sum(len(TimeIndex(path)) for path in INDEXES) > 50


STEPS = st.lists(st.tuples(st.integers(1, 2**40), st.integers(0, 2**31 // 10)), max_size=8)


def grown(steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    entries, timestamp, offset = [], 0, 0
    for timestamp_step, offset_step in steps:
        timestamp, offset = timestamp + timestamp_step, offset + offset_step
        entries.append((timestamp, offset))
    return entries


@given(STEPS, st.integers(0, 40))
def test_entries_end_where_only_zeros_are_left(steps: list[tuple[int, int]], padding: int) -> None:
    entries = grown(steps)
    content = encode(*entries) + bytes(12 * padding)
    assert entries_of(content) == entries
    assert len(TimeIndex(content, 0)) == len(entries)


@pytest.mark.parametrize(
    ("entries", "wrong"),
    [
        ([(5, 1), (5, 2)], "entry 1 has timestamp 5 behind 5 at position 12 in a/b"),
        ([(5, 2), (6, 1)], "entry 1 has relativeOffset 1 behind 2 at position 12 in a/b"),
        ([(-1, 2)], "entry 0 has timestamp -1 at position 0 in a/b"),
        ([(1, -2)], "entry 0 has relativeOffset -2 at position 0 in a/b"),
        ([(5, 1), (0, 0), (6, 2)], "entry 1 has timestamp 0 behind 5 at position 12 in a/b"),
        ([(-(2**63), 1), (2**63 - 1, 2)], f"entry 0 has timestamp {-(2**63)} at position 0"),
    ],
)
def test_entries_that_do_not_grow_are_refused(entries: list[tuple[int, int]], wrong: str) -> None:
    with pytest.raises(kafkajit.CorruptIndexError, match=f"^entries out of order: {wrong}"):
        entries_of(encode(*entries))


def test_one_offset_may_have_several_timestamps() -> None:
    assert entries_of(encode((5, 1), (6, 1))) == [(5, 1), (6, 1)]


@given(STEPS, st.lists(st.integers(-100, 2**42), max_size=40), st.integers(0, 2**62))
def test_a_lookup_finds_the_last_entry_that_is_no_later(
    steps: list[tuple[int, int]], targets: list[int], base: int
) -> None:
    entries = [(timestamp, base + offset) for timestamp, offset in grown(steps)]
    index = TimeIndex(encode(*grown(steps)), base)
    targets = targets + [timestamp for timestamp, _ in entries]
    rows = [max((row for row, e in enumerate(entries) if e[0] <= t), default=-1) for t in targets]
    expected = [entries[row] if row >= 0 else (-1, base) for row in rows]
    assert [index.lookup(target) for target in targets] == expected
    assert index.slots(targets).tolist() == rows
    timestamps, offsets = index.lookup_all(targets)
    assert list(zip(timestamps.tolist(), offsets.tolist(), strict=True)) == expected
    for target in targets:
        earlier = [entry for entry in entries if entry[0] < target]
        assert index.before(target) == (earlier[-1] if earlier else (-1, base))


def test_the_sanity_check_is_that_of_a_broker(tmp_path: Path) -> None:
    path = tmp_path / NAME
    TimeIndex(b"", 45).sanity_check()
    TimeIndex(encode((5, 100), (6, 100)), 45).sanity_check()
    wrong = f"Corrupt time index found, time index file ({path}) has non-zero size but the last "
    for content, message in (
        (
            encode((5, 100), (4, 101)),
            f"{wrong}timestamp is 4 which is less than the first timestamp 5",
        ),
        # Kafka takes the zeros of a preallocated file for an entry.
        (
            encode((5, 100)) + bytes(24),
            f"{wrong}timestamp is 0 which is less than the first timestamp 5",
        ),
        (encode((5, -6)), f"{wrong}offset is 39 which is less than the first offset 45"),
        (
            encode((5, 1)) + b"\0",
            f"Time index file {path} is corrupt, found 13 bytes which is neither positive nor a "
            "multiple of 12",
        ),
    ):
        path.write_bytes(content)
        with pytest.raises(kafkajit.CorruptIndexError) as caught:
            TimeIndex(path).sanity_check()
        assert str(caught.value) == message


def test_entries_that_do_not_grow_where_a_bisection_ends_are_noticed() -> None:
    def is_in_order(*entries: tuple[int, int], at: int) -> bool:
        content = b"".join(struct.pack(">qi", *entry) for entry in entries)
        index = TimeIndex(content, 0)
        return index.is_in_order_at(index.entry(at))

    assert is_in_order((1, 5), at=0)
    assert is_in_order((1, 5), (2, 5), (3, 9), (4, 11), at=2)
    assert not is_in_order((1, 5), (2, 6), (3, 9), (4, 8), at=2)
    assert not is_in_order((1, 5), (2, 10), (3, 9), (4, 11), at=2)
    assert not is_in_order((9, 5), (3, 9), at=1)
    assert not is_in_order((9, 5), (2, 6), (3, 9), (4, 10), at=2)
