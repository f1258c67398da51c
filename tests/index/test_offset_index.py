from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
from kafkajit.index.offset_index import OffsetIndex, offset_entries
from kafkajit.storage.source import as_bytes

INDEXES = [
    path
    for path in sorted(DATA.rglob("*.index"))
    if path.with_name(path.name + ".dump.out").exists()
]
NAME = "00000000000000000045.index"


def encode(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", offset, position) for offset, position in entries)


def entries_of(content: bytes) -> list[tuple[int, int]]:
    entries: list[tuple[int, int]] = offset_entries(as_bytes(content), "a/b").tolist()
    return entries


@pytest.mark.parametrize("path", INDEXES, ids=lambda path: f"{path.parent.name}/{path.stem[-3:]}")
def test_the_entries_are_those_that_kafka_prints(path: Path) -> None:
    printed = re.findall(
        r"^offset: (\d+) position: (\d+)$",
        path.with_name(path.name + ".dump.out").read_text(),
        re.M,
    )
    base_offset = int(path.stem)
    index = OffsetIndex(path)
    # For a preallocated index without entries, Kafka's tool prints an entry of zeros.
    expected = [
        (int(offset), int(position))
        for offset, position in printed
        if (offset, position) != (str(base_offset), "0")
    ]
    assert [index.entry(row) for row in range(len(index))] == expected
    found = [(base_offset + offset, position) for offset, position in entries_of(path.read_bytes())]
    assert found == expected


def test_the_corpus_has_indexes() -> None:
    assert len(INDEXES) > 20
    assert sum(len(OffsetIndex(path)) for path in INDEXES) > 50


STEPS = st.lists(st.tuples(st.integers(1, 2**31 // 10), st.integers(1, 2**31 // 10)), max_size=8)


def grown(steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    entries, offset, position = [], 0, 0
    for offset_step, position_step in steps:
        offset, position = offset + offset_step, position + position_step
        entries.append((offset, position))
    return entries


@given(STEPS, st.integers(0, 40))
def test_entries_end_where_only_zeros_are_left(steps: list[tuple[int, int]], padding: int) -> None:
    entries = grown(steps)
    content = encode(*entries) + bytes(8 * padding)
    assert entries_of(content) == entries
    assert len(OffsetIndex(content, 0)) == len(entries)


@pytest.mark.parametrize(
    ("entries", "wrong"),
    [
        ([(5, 100), (5, 200)], "entry 1 has relativeOffset 5 behind 5 at position 8 in a/b"),
        ([(5, 100), (6, 100)], "entry 1 has position 100 behind 100 at position 8 in a/b"),
        ([(5, 100), (6, 200), (4, 300)], "entry 2 has relativeOffset 4 behind 6 at position 16"),
        ([(5, 100), (0, 0), (7, 400)], "entry 1 has relativeOffset 0 behind 5 at position 8"),
        ([(-1, 100)], "entry 0 has relativeOffset -1 at position 0 in a/b"),
        ([(5, -100)], "entry 0 has position -100 at position 0"),
    ],
)
def test_entries_that_do_not_grow_are_refused(entries: list[tuple[int, int]], wrong: str) -> None:
    with pytest.raises(kafkajit.CorruptIndexError, match=f"^entries out of order: {wrong}"):
        entries_of(encode(*entries))


@pytest.mark.parametrize("entries", [[(0, 100)], [(5, 0)], [(2**31 - 1, 2**31 - 1)]])
def test_the_first_entry_may_be_the_base_offset_or_at_the_start(
    entries: list[tuple[int, int]],
) -> None:
    assert entries_of(encode(*entries)) == entries


@given(st.binary(min_size=1, max_size=100).filter(lambda content: len(content) % 8))
def test_a_part_of_an_entry_is_refused(content: bytes) -> None:
    with pytest.raises(kafkajit.CorruptIndexError, match=f"found {len(content)} bytes which is no"):
        entries_of(content)


@given(STEPS, st.lists(st.integers(-100, 2**31), max_size=40), st.integers(0, 2**62))
def test_a_lookup_finds_the_last_entry_that_is_no_later(
    steps: list[tuple[int, int]], targets: list[int], base: int
) -> None:
    entries = [(base + offset, position) for offset, position in grown(steps)]
    index = OffsetIndex(encode(*grown(steps)), base)
    targets = [base + target for target in targets] + [offset for offset, _ in entries]
    rows = [max((row for row, e in enumerate(entries) if e[0] <= t), default=-1) for t in targets]
    expected = [entries[row] if row >= 0 else (base, 0) for row in rows]
    assert [index.lookup(target) for target in targets] == expected
    assert index.slots(targets).tolist() == rows
    offsets, positions = index.lookup_all(targets)
    assert list(zip(offsets.tolist(), positions.tolist(), strict=True)) == expected
    for target in targets:
        following = [entry for entry in entries if entry[0] >= target]
        assert index.upper_bound(target) == (following[0] if following else None)


def test_without_a_name_the_base_offset_has_to_be_given(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pass it with bytes, which have no file name"):
        OffsetIndex(b"")
    path = tmp_path / "some.index"
    path.write_bytes(b"")
    with pytest.raises(
        kafkajit.CorruptIndexError,
        match=r"or name the file after it, in 20 digits in .*some\.index",
    ):
        OffsetIndex(path)
    assert OffsetIndex(path, 7).lookup(100) == (7, 0)


def test_the_sanity_check_is_that_of_a_broker(tmp_path: Path) -> None:
    path = tmp_path / NAME
    for content in (b"", encode((5, 100)), encode((5, 100)) + bytes(80)):
        OffsetIndex(content, 45).sanity_check()
    path.write_bytes(encode((5, 100), (-6, 200)))
    with pytest.raises(kafkajit.CorruptIndexError) as caught:
        OffsetIndex(path).sanity_check()
    assert str(caught.value) == (
        f"Corrupt index found, index file {path} has non-zero size but the last offset is 39 "
        "which is less than the base offset 45"
    )
    path.write_bytes(encode((5, 100)) + b"\0")
    with pytest.raises(kafkajit.CorruptIndexError) as caught:
        OffsetIndex(path).sanity_check()
    assert str(caught.value) == (
        f"Index file {path} is corrupt, found 9 bytes which is neither positive nor a multiple of 8"
    )


@given(st.binary(max_size=200), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_whatever_the_bytes_a_lookup_gives_an_entry_of_them(
    content: bytes, targets: list[int]
) -> None:
    index = OffsetIndex(content, 0)
    entries = {(0, 0), *(tuple(entry) for entry in index.entries.tolist())}
    assert entries.issuperset(index.lookup(target) for target in targets)
    offsets, positions = index.lookup_all(np.array(targets, dtype=np.int64))
    assert entries.issuperset(zip(offsets.tolist(), positions.tolist(), strict=True))
