from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.index.offset_index import ENTRY, read_offset_index

INDEXES = [
    path
    for path in sorted(DATA.rglob("*.index"))
    if path.with_name(path.name + ".dump.out").exists()
]


def encode(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", offset, position) for offset, position in entries)


@pytest.mark.parametrize("path", INDEXES, ids=lambda path: f"{path.parent.name}/{path.stem[-3:]}")
def test_the_entries_are_those_that_kafka_prints(path: Path) -> None:
    printed = re.findall(
        r"^offset: (\d+) position: (\d+)$",
        path.with_name(path.name + ".dump.out").read_text(),
        re.M,
    )
    base_offset = int(path.stem)
    entries = [
        (base_offset + offset, position)
        for offset, position in read_offset_index(path.read_bytes()).tolist()
    ]
    # Of a preallocated index without an entry the tool prints one of zeros.
    assert [entry for entry in printed if entry != (str(base_offset), "0")] == [
        (str(offset), str(position)) for offset, position in entries
    ]


def test_the_corpus_has_indexes() -> None:
    assert len(INDEXES) > 20
    assert sum(len(read_offset_index(path.read_bytes())) for path in INDEXES) > 50


GROWING = st.lists(st.tuples(st.integers(1, 2**31 // 10), st.integers(1, 2**31 // 10)), max_size=8)


@given(GROWING, st.integers(0, 7), st.integers(0, 40))
def test_entries_that_grow_are_read_and_what_is_left_behind_them_is_not(
    steps: list[tuple[int, int]], cut: int, padding: int
) -> None:
    entries, offset, position = [], 0, 0
    for offset_step, position_step in steps:
        offset, position = offset + offset_step, position + position_step
        entries.append((offset, position))
    assert read_offset_index(encode(*entries) + bytes(padding)).tolist() == entries
    assert read_offset_index(encode(*entries) + b"\x7f" * cut).tolist() == entries


@pytest.mark.parametrize(
    ("entries", "kept"),
    [
        ([], 0),
        ([(0, 0)], 0),
        ([(0, 0), (5, 100)], 0),
        ([(0, 100)], 1),  # the base offset itself, which only the first may be
        ([(5, 0)], 1),
        ([(5, 100), (5, 200)], 1),
        ([(5, 100), (6, 100)], 1),
        ([(5, 100), (6, 200), (4, 300), (7, 400)], 2),
        ([(5, 100), (6, 99)], 1),
        ([(-1, 100)], 0),
        ([(5, -100)], 0),
        ([(5, 100), (6, -1)], 1),
        ([(2**31 - 1, 2**31 - 1)], 1),
    ],
)
def test_entries_end_where_they_stop_growing(entries: list[tuple[int, int]], kept: int) -> None:
    assert read_offset_index(encode(*entries)).tolist() == entries[:kept]


@given(st.binary(max_size=100))
def test_whatever_the_bytes_entries_grow_from_nothing_below_zero(content: bytes) -> None:
    entries = read_offset_index(content)
    assert entries.dtype == ENTRY
    assert len(entries) <= len(content) // 8
    for name in ENTRY.names or ():
        numbers = entries[name].astype(int).tolist()
        assert numbers == sorted(set(numbers))
        assert all(number >= 0 for number in numbers)
