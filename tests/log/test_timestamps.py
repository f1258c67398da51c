from __future__ import annotations

import os
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from histories import histories
from retaining import RECORDS, SIZE, TIME, log_name, make_log
from scanning import FOLDERS

import kafkajit
import kafkajit.testing as kt
from kafkajit.log.segment import Segment
from kafkajit.log.timestamps import LargestTimestamp, largest_timestamp

MODIFIED = TIME + 12_345
TIME_INDEX = ".timeindex"


def segment_of(folder: Path, place: int = 0) -> Segment:
    for path in folder.glob("*.log"):
        os.utime(path, ns=(0, MODIFIED * 1_000_000 + 999_999))
    return kafkajit.Log(folder).segments[place]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log whose first segment has the timestamps TIME + 1000 and an earlier one behind it."""
    folder = tmp_path / "orders-0"
    batches = [
        kt.batch([kt.Record()] * 2, base_offset=2 * place, base_timestamp=time, max_timestamp=time)
        for place, time in enumerate([TIME, TIME + 1000, TIME + 500])
    ]
    with kafkajit.LogWriter(folder, {"index.interval.bytes": 1}) as log:
        for batch in batches:
            log.append(batch)
    return folder


def put(folder: Path, content: bytes, suffix: str = TIME_INDEX) -> None:
    (folder / log_name(0, suffix)).write_bytes(content)


def entries(*pairs: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *pair) for pair in pairs)


def test_it_is_what_kafka_states_of_every_segment_that_it_has_closed(tmp_path: Path) -> None:
    seen = 0
    for place, step in enumerate(
        s for kind in ("append", "retain") for h in histories(kind) for s in h
    ):
        folder = tmp_path / str(place) / "orders-0"
        folder.mkdir(parents=True)
        for name, content in step.after.items():
            (folder / name).write_bytes(content)
        for row, stated in enumerate(step.stated["state"]["segments"]):
            found = largest_timestamp(segment_of(folder, row))
            expected = stated["largestTimestamp"]
            if expected < 0:
                assert found == LargestTimestamp(MODIFIED, is_of_record=False)
            else:
                assert found == LargestTimestamp(expected, is_of_record=True)
            seen += 1
    assert seen > 40


# Their logs end in zeros: preallocated logs do until they are closed.
PADDED = {"preallocated-0", "v1-preallocated-0"}
CLOSED = [folder for folder in FOLDERS if folder.name not in PADDED]


@pytest.mark.parametrize("folder", CLOSED, ids=lambda folder: folder.name)
def test_it_is_the_largest_of_all_records_that_a_broker_has_appended(folder: Path) -> None:
    for segment in kafkajit.Log(folder).segments:
        times = kafkajit.read_record_batches(segment.log.key)["maxTimestamp"].cast(pa.int64())
        latest = pc.max(times).as_py()
        if latest is not None and latest >= 0:
            found = largest_timestamp(segment)
            assert (found.timestamp, found.is_of_record) == (latest, True)


def test_an_earlier_one_behind_it_does_not_count(folder: Path) -> None:
    assert largest_timestamp(segment_of(folder)) == LargestTimestamp(TIME + 1000, True)


def test_without_a_time_index_it_is_when_the_log_was_modified_as_kafka_has_it(folder: Path) -> None:
    (folder / log_name(0, TIME_INDEX)).unlink()
    assert largest_timestamp(segment_of(folder)) == LargestTimestamp(MODIFIED, False)
    put(folder, b"")
    assert largest_timestamp(segment_of(folder)) == LargestTimestamp(MODIFIED, False)


def test_records_without_timestamps_leave_it_to_the_time_of_the_file(tmp_path: Path) -> None:
    folder = make_log(tmp_path / "orders-0", [-1, -1])
    assert largest_timestamp(segment_of(folder)) == LargestTimestamp(MODIFIED, False)


def test_the_time_of_an_empty_segment_is_that_of_its_file(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    for suffix in (".log", ".index", TIME_INDEX):
        (folder / log_name(7, suffix)).touch()
    assert largest_timestamp(segment_of(folder)) == LargestTimestamp(MODIFIED, False)


def test_a_segment_without_an_index_is_read_as_a_broker_recovers_it(folder: Path) -> None:
    (folder / log_name(0, ".index")).unlink()
    put(folder, entries((5, 0)))  # a broker rebuilds it
    found = largest_timestamp(segment_of(folder))
    assert found == LargestTimestamp(TIME + 1000, True, "there is no .index")


DAMAGES = {
    "half an entry": entries((TIME + 1000, 3)) + b"\x00\x01",
    "zeros": bytes(1200),
    "zeros behind entries": entries((TIME + 1000, 3)) + bytes(120),
    "a later timestamp": entries((TIME, 1), (TIME + 10**9, 3)),
    "an earlier timestamp": entries((TIME, 1), (TIME + 10, 3)),
    "entries out of order": entries((TIME + 2000, 1), (TIME + 1000, 3)),
    "an offset that is not there": entries((TIME, 1), (TIME + 1000, 77)),
    "an offset before the segment": entries((TIME, 1), (TIME + 1000, -4)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_time_index_is_not_believed(folder: Path, damage: str) -> None:
    put(folder, DAMAGES[damage])
    found = largest_timestamp(segment_of(folder))
    assert found.timestamp == TIME + 1000
    assert found.is_of_record
    assert found.problem


def test_where_the_offset_index_is_damaged_the_log_is_read(folder: Path) -> None:
    put(folder, struct.pack(">ii", 1, 10**6), ".index")
    put(folder, struct.pack(">iiii", 1, 5, 3, 9), ".index")
    found = largest_timestamp(segment_of(folder))
    assert found.timestamp == TIME + 1000
    assert found.problem


def test_a_timestamp_that_is_known_to_be_there_finds_out_an_index_that_ends_too_early(
    folder: Path,
) -> None:
    put(folder, entries((TIME, 1)))
    assert largest_timestamp(segment_of(folder)).timestamp == TIME  # a broker would trust it
    found = largest_timestamp(segment_of(folder), at_least=TIME + 500)
    assert found.timestamp == TIME + 1000
    assert found.problem == f"the time index ends with timestamp {TIME}, the log has {TIME + 500}"


@pytest.mark.parametrize(
    ("content", "ends"),
    [
        (entries((TIME, 1)), f"ends with timestamp {TIME}"),
        (b"", "has no timestamp"),
        (None, "has no timestamp"),
    ],
    ids=["lost entries", "empty", "missing"],
)
def test_the_log_proves_that_a_segment_is_older_than_a_time(
    folder: Path, content: bytes | None, ends: str
) -> None:
    if content is None:
        (folder / log_name(0, TIME_INDEX)).unlink()
    else:
        put(folder, content)
    segment = segment_of(folder)
    indexed = largest_timestamp(segment).timestamp
    assert largest_timestamp(segment, proven_before=indexed).timestamp == indexed  # not before it
    problem = f"the time index {ends}, the log has {TIME + 1000}"
    expected = LargestTimestamp(TIME + 1000, True, problem)
    assert largest_timestamp(segment, proven_before=indexed + 1) == expected


def test_a_time_that_the_log_proves_is_no_problem(folder: Path, tmp_path: Path) -> None:
    found = largest_timestamp(segment_of(folder), proven_before=2**62)
    assert found == LargestTimestamp(TIME + 1000, True)
    without = segment_of(make_log(tmp_path / "orders-1", [-1, -1]))
    assert largest_timestamp(without, proven_before=2**62) == LargestTimestamp(MODIFIED, False)


def test_what_cannot_be_told_from_a_damaged_log_is_an_error(tmp_path: Path) -> None:
    folder = make_log(tmp_path / "orders-0", [TIME, TIME + 1, TIME + 2])
    (folder / log_name(0, ".index")).unlink()
    path = folder / log_name(0)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        kafkajit.CorruptRecordError, match=r"follows this segment, which ends in .* run `kafkajit"
    ):
        largest_timestamp(segment_of(folder))
    path.write_bytes(b"\x00" * 8 + b"\x00\x00\x00\x01" + b"\x07" * SIZE)
    with pytest.raises(kafkajit.CorruptRecordError, match="run `kafkajit repair` on"):
        largest_timestamp(segment_of(folder))


def test_a_damaged_header_does_not_prove_an_age_against_the_time_index(folder: Path) -> None:
    """One bit of the newest timestamp makes the segment look older: the checksum is wrong then."""
    log = folder / f"{0:020d}.log"
    found = largest_timestamp(segment_of(folder))
    assert found.is_of_record
    content = bytearray(log.read_bytes())
    at = content.index(found.timestamp.to_bytes(8, "big"), 35)
    content[at + 2] ^= 1
    log.write_bytes(content)
    with pytest.raises(kafkajit.CorruptRecordError, match="Record is corrupt"):
        largest_timestamp(segment_of(folder))


def test_other_segments_are_not_looked_at(tmp_path: Path) -> None:
    folder = make_log(tmp_path / "orders-0", [TIME, TIME + 1, TIME + 2])
    segment = segment_of(folder, 1)
    (folder / log_name(0)).unlink()
    (folder / log_name(2 * RECORDS)).unlink()
    assert largest_timestamp(segment).timestamp == TIME + 1
