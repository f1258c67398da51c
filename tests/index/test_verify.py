from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st

import kafkajit.testing as kt
from kafkajit.index import OffsetIndex
from kafkajit.index.verify import verify_offset_index, verify_time_index

INDEXES = [
    path
    for path in sorted(DATA.rglob("*.*index"))
    if path.suffix in (".index", ".timeindex") and path.with_suffix(".log").exists()
]
T = 1_700_000_000_000


def problems(path: Path) -> list[str]:
    verify = verify_offset_index if path.suffix == ".index" else verify_time_index
    return verify(path.with_suffix(".log"), path)["problem"].to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("path", INDEXES, ids=lambda path: f"{path.parent.name}/{path.name[17:]}")
def test_a_brokers_indexes_fit_its_logs_but_where_kafka_says_so_too(path: Path) -> None:
    error = path.with_name(f"{path.name}.dump.err")
    stated = error.read_text() if error.exists() else ""
    # For messages that were appended at once, Kafka's tool reports a mismatch.
    expected = ["no batch ends with its offset"] if "offsets are not found" in stated else []
    assert problems(path) == expected


def test_the_corpus_has_indexes_of_all_formats_and_one_that_does_not_fit() -> None:
    assert len(INDEXES) > 150
    assert {path.parent.name[:2] for path in INDEXES} >= {"v0", "v1", "mi", "se", "cr"}
    assert sum(len(problems(path)) for path in INDEXES) == 1


def batch(first: int, count: int, timestamp: int) -> bytes:
    return kt.batch([kt.Record(value=b"v", timestamp=timestamp)] * count, base_offset=first)


BATCHES = [batch(100, 3, T), batch(103, 2, T + 5), batch(105, 1, T + 3), batch(106, 4, T + 9)]
POSITIONS = [sum(map(len, BATCHES[:row])) for row in range(5)]
LOG = b"".join(BATCHES)


def index(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", offset - 100, position) for offset, position in entries)


def time_index(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", time, offset - 100) for time, offset in entries)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([(104, POSITIONS[1]), (109, POSITIONS[3])], []),
        # Several batches that were appended at once.
        ([(105, POSITIONS[1]), (109, POSITIONS[3])], []),
        ([(109, POSITIONS[1])], []),
        ([(102, 0)], []),
        ([(103, POSITIONS[1])], [(0, 104, "its batch ends with another offset")]),
        ([(102, POSITIONS[1])], [(0, 104, "its batch ends with another offset")]),
        (
            [(105, POSITIONS[1]), (109, POSITIONS[2])],
            [(0, 104, "its batch ends with another offset")],
        ),
        ([(104, POSITIONS[1] + 1)], [(0, None, "no batch begins at its position")]),
        ([(104, POSITIONS[4])], [(0, None, "its position is past the log's end")]),
        ([(104, 2**31 - 1)], [(0, None, "its position is past the log's end")]),
        (
            [(109, POSITIONS[3]), (104, POSITIONS[1])],
            [(1, 104, "entries out of order: it is not behind the one before")],
        ),
        ([(104, -1)], [(0, None, "entries out of order: it is not behind the one before")]),
        ([(99, 0)], [(0, 102, "entries out of order: it is not behind the one before")]),
    ],
)
def test_an_entry_has_to_lead_to_a_batch_of_its_offset(
    entries: list[tuple[int, int]], expected: list[tuple[int, int | None, str]]
) -> None:
    found = verify_offset_index(LOG, index(*entries), 100).to_pylist()
    assert [(row["entry"], row["logOffset"], row["problem"]) for row in found] == expected
    assert [(row["offset"], row["position"]) for row in found] == [
        entries[entry] for entry, _, _ in expected
    ]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([(T, 102), (T + 5, 104), (T + 9, 109)], []),
        ([(T + 5, 104)], []),
        ([(T + 4, 104)], [(0, T + 5, 104, "its batch's largest timestamp is another")]),
        ([(T + 5, 103)], [(0, T + 5, 104, "no batch ends with its offset")]),
        ([(T + 3, 105)], [(0, T + 3, 105, "a batch before its own has a later timestamp")]),
        ([(T + 9, 110)], [(0, None, None, "its offset is past the log's end")]),
        (
            [(T + 5, 104), (T, 109)],
            [(1, T + 9, 109, "entries out of order: it is not behind the one before")],
        ),
        (
            [(T, 104), (T + 5, 102)],
            [
                (0, T + 5, 104, "its batch's largest timestamp is another"),
                (1, T, 102, "entries out of order: it is not behind the one before"),
            ],
        ),
    ],
)
def test_an_entry_has_to_name_the_largest_timestamp_so_far(
    entries: list[tuple[int, int]], expected: list[tuple[int, int | None, int | None, str]]
) -> None:
    table = verify_time_index(LOG, time_index(*entries), 100)
    times = table["logTimestamp"].cast("int64").to_pylist()
    found = table.to_pylist()
    assert [
        (row["entry"], time, row["logOffset"], row["problem"])
        for row, time in zip(found, times, strict=True)
    ] == expected


def test_an_index_that_ends_inside_an_entry_is_told_behind_the_rest() -> None:
    table = verify_offset_index(LOG, index((103, POSITIONS[1])) + b"\1", 100)
    assert table["entry"].to_pylist() == [0, 1]
    assert table["problem"][1].as_py() == "the file ends inside this entry"
    table = verify_time_index(LOG, time_index((T, 102)) + b"\1" * 5, 100)
    assert table["problem"].to_pylist() == ["the file ends inside this entry"]


def test_of_a_damaged_log_what_is_sound_is_compared() -> None:
    broken = bytearray(LOG)
    broken[POSITIONS[1] : POSITIONS[2]] = b"\xff" * len(BATCHES[1])
    entries = [(104, POSITIONS[1]), (105, POSITIONS[2])]
    table = verify_offset_index(bytes(broken), index(*entries), 100)
    assert table["problem"].to_pylist() == ["no batch begins at its position"]


def test_an_index_of_another_segment_fits_nowhere() -> None:
    log = DATA / "v2" / "segments-0" / f"{0:020}.log"
    other = (DATA / "v2" / "segments-lz4-0" / f"{0:020}.index").read_bytes()
    assert verify_offset_index(log, other, 0).num_rows == len(OffsetIndex(other, 0)) > 0


def test_an_empty_and_a_preallocated_index_have_no_problem() -> None:
    for content in (b"", bytes(4096)):
        assert verify_offset_index(LOG, content, 100).num_rows == 0
    for content in (b"", bytes(1200)):
        assert verify_time_index(LOG, content, 100).num_rows == 0


def test_the_base_offset_is_that_of_a_name(tmp_path: Path) -> None:
    (tmp_path / f"{100:020}.log").write_bytes(LOG)
    (tmp_path / f"{100:020}.index").write_bytes(index((104, POSITIONS[1])))
    assert problems(tmp_path / f"{100:020}.index") == []
    with pytest.raises(ValueError, match="base_offset is missing"):
        verify_offset_index(LOG, index((104, POSITIONS[1])))


@given(st.binary(max_size=200))
def test_whatever_the_bytes_each_problem_is_about_one_entry(content: bytes) -> None:
    for verify in (verify_offset_index, verify_time_index):
        table = verify(LOG, content, 100)
        entries = table["entry"].to_pylist()
        assert entries == sorted(set(entries))
        assert all(re.fullmatch(r"[a-z' :]+", text) for text in table["problem"].to_pylist())
