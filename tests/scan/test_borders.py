"""The borders of what is read, by offsets and by times, next to damage."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from partitions import data, log_name, make_partition, moved
from scanning import read_rows, read_table
from streaming import finish, finished, started

import kafkajit
from kafkajit.cli import main
from kafkajit.errors import CorruptRecordError
from kafkajit.scan.predicates import Predicate

TIME = 1_700_000_000_000  # of offset 0; each batch is a second later for each offset before it
START = TIME + 10_000


def wrong_checksum(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


def zeros(batch: bytes) -> bytes:
    return bytes(len(batch))


# Segments of which the batch with the offsets 10 to 14 is damaged, the first one of a time.
PLACES: dict[str, Any] = {
    "in the middle": lambda bad: {0: [data(0, 10), bad, data(15, 5)]},
    "at a segment's start": lambda bad: {0: [data(0, 10)], 10: [bad, data(15, 5)]},
    "at a segment's end": lambda bad: {0: [data(0, 10), bad], 15: [data(15, 5)]},
    "at the log's start": lambda bad: {10: [bad, data(15, 5)]},
    "at the log's end": lambda bad: {0: [data(0, 10)], 10: [bad]},
}


def after(folder: Path) -> list[int]:
    """The offsets of the sound records from the time on."""
    rows = read_rows(folder, mode="DROPMALFORMED", columns=["offset"])
    return [row["offset"] for row in rows if row["offset"] >= 15]


@pytest.mark.parametrize("spoil", [wrong_checksum, zeros])
@pytest.mark.parametrize("place", PLACES)
def test_damage_before_the_first_record_of_a_time_is_read_with_it(
    place: str, spoil: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if spoil is zeros and place == "at the log's end":
        return  # preallocated
    folder = finished(tmp_path / "logs" / "orders-0", PLACES[place](spoil(data(10, 5))))
    sound = after(folder)
    options = {"startingTimestamp": str(START), "mode": "PERMISSIVE"}
    rows = read_rows(folder, **options, columns=["offset", "corruption"])
    assert [row["offset"] for row in rows] == [None, *sound]
    words = [str(folder), "--starting-timestamp", str(START)]
    assert main(["grep", "-c", ".", *words]) == 2
    out = ["-o", str(tmp_path / "out"), "--to", "jsonl", "--mode", "DROPMALFORMED"]
    assert main(["export", *words, *out]) == 2
    assert "bytes are damaged" in capsys.readouterr().err
    query = started(folder, **options)
    found = query.trigger(["offset"])["offset"].to_pylist()
    assert [one for one in found if one is not None] == sound


@pytest.mark.parametrize("place", PLACES)
def test_a_time_begins_behind_damage_that_sound_records_follow(place: str, tmp_path: Path) -> None:
    segments = PLACES[place](wrong_checksum(data(10, 5)))
    folder = finished(tmp_path / "logs" / "orders-0", segments | {20: [data(20, 5)]})
    options = {"startingTimestamp": str(TIME + 20_000), "mode": "PERMISSIVE"}
    rows = read_rows(folder, **options, columns=["offset", "corruption"])
    expected = [*range(20, 25)] if place != "at the log's end" else [None, *range(20, 25)]
    assert [row["offset"] for row in rows] == expected


MOVED = {"far": 10 ^ 1 << 18, "into the next one": 10 ^ 4}


@pytest.mark.parametrize("base_offset", MOVED.values(), ids=MOVED)
@pytest.mark.parametrize("end", [11, 15, 16, 18])
def test_a_batch_that_lies_about_its_offset_is_not_left_out_at_an_end(
    end: int, base_offset: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batches = [data(0, 10), moved(data(10, 5), base_offset), data(15, 5), data(20, 5), data(25, 5)]
    folder = finished(tmp_path / "logs" / "orders-0", {0: batches})
    until = {"endingOffsets": f'{{"orders": {{"0": {end}}}}}'}
    with pytest.raises(CorruptRecordError, match="base offset does not fit"):
        read_rows(folder, **until)
    rows = read_rows(folder, **until, mode="PERMISSIVE", columns=["offset", "corruption"])
    assert [row["offset"] for row in rows] == [*range(10), None, *range(15, end)]
    words = ["--partition", "orders-0", "--ending-offset", str(end)]
    assert main(["grep", "-c", ".", *words, str(folder)]) == 2
    assert main(["restore", "--apply", *words, str(folder), str(tmp_path / "kafka")]) == 1
    assert "with --ending-offset 10 the log ends before it" in capsys.readouterr().err
    plan = kafkajit.restore(folder, tmp_path / "kafka", partitions="orders-0", ending_offset=10)
    plan.apply()
    assert kafkajit.Log(tmp_path / "kafka" / "orders-0").end_offset == 10


def test_damage_outside_of_the_offsets_that_are_asked_for_is_not_read(tmp_path: Path) -> None:
    batches = [data(0, 5), zeros(data(5, 5)), data(10, 5), zeros(data(15, 5)), data(20, 5)]
    folder = finished(tmp_path / "orders-0", {0: batches})
    places = {"orders": {"0": 11}}, {"orders": {"0": 14}}
    asked = dict(zip(("startingOffsets", "endingOffsets"), map(str, places), strict=True))
    asked = {name: text.replace("'", '"') for name, text in asked.items()}
    rows = read_rows(folder, **asked, mode="PERMISSIVE", columns=["offset", "corruption"])
    assert [row["offset"] for row in rows] == [11, 12, 13]


LYING = [14, 16, 18, 24, 31, 15 + (1 << 20)]


def with_lie(folder: Path, base_offset: int) -> Path:
    """A log of two segments whose batch with the offsets 15 to 19 has another base offset."""
    segments = {
        0: [data(0, 5), data(5, 5)],
        10: [data(10, 5), moved(data(15, 5), base_offset), data(20, 5)],
        25: [data(25, 5), data(30, 5)],
    }
    return finished(folder / "logs" / "orders-0", segments)


@pytest.mark.parametrize("base_offset", LYING)
def test_a_batch_that_lies_about_its_offset_does_not_begin_a_time(
    base_offset: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = with_lie(tmp_path, base_offset)
    since = {"startingTimestamp": str(TIME + 15_000)}
    with pytest.raises(CorruptRecordError, match="base offset does not fit"):
        read_rows(folder, **since)
    rows = read_rows(folder, **since, mode="PERMISSIVE", columns=["offset", "corruption"])
    assert [row["offset"] for row in rows] == [None, *range(20, 35)]
    words = ["--partition", "orders-0", "--starting-timestamp", str(TIME + 15_000), str(folder)]
    assert main(["grep", "-c", ".", *words]) == 2
    assert main(["restore", "--apply", *words, str(tmp_path / "kafka")]) == 1
    assert "base offset does not fit" in capsys.readouterr().err


@pytest.mark.parametrize("base_offset", [0, *LYING])
@pytest.mark.parametrize("offset", [15, 17])
def test_a_restored_log_does_not_begin_behind_a_batch_that_lies(
    offset: int, base_offset: int, tmp_path: Path
) -> None:
    folder = with_lie(tmp_path, base_offset)
    with pytest.raises(CorruptRecordError, match="does not fit"):
        kafkajit.restore(
            folder, tmp_path / "kafka", partitions="orders-0", starting_offset=offset
        ).apply()


@pytest.mark.parametrize("base_offset", [0, *LYING])
@pytest.mark.parametrize("size", [150, 300, 500])
def test_tasks_do_not_part_before_or_behind_a_batch_that_lies(
    size: int, base_offset: int, tmp_path: Path
) -> None:
    sound = [data(10, 5), data(15, 5), data(20, 5), data(25, 5)]
    folder = make_partition(tmp_path / "orders-0", {10: sound})
    log = folder / log_name(10)
    log.write_bytes(b"".join([sound[0], moved(sound[1], base_offset), *sound[2:]]))
    with pytest.raises(CorruptRecordError, match="does not fit"):
        read_rows(folder, maxPartitionBytes=size)


@pytest.mark.parametrize("bit", [0, 2, 4, 18])
@pytest.mark.parametrize("end", [12, 14, 15, 17])
def test_a_first_batch_that_lies_before_a_single_one_is_not_left_out(
    end: int, bit: int, tmp_path: Path
) -> None:
    lying = moved(data(10, 5), 10 ^ 1 << bit)
    segments = {0: [data(0, 5), data(5, 5)], 10: [lying, data(15, 5)]}
    folder = finished(tmp_path / "orders-0", segments)
    with pytest.raises(CorruptRecordError, match="does not fit"):
        kafkajit.restore(
            folder, tmp_path / "kafka", partitions="orders-0", ending_offset=end
        ).apply()


@pytest.mark.parametrize(("first", "end"), [(0, 10), (5, 10), (7, 12)])
def test_batches_that_have_changed_places_are_reported(
    first: int, end: int, tmp_path: Path
) -> None:
    batches = [data(0, 5), data(10, 5), data(5, 5), data(15, 5), data(20, 5)]
    folder = finished(tmp_path / "orders-0", {0: batches})
    places = {"startingOffsets": first, "endingOffsets": end}
    asked = {name: f'{{"orders": {{"0": {offset}}}}}' for name, offset in places.items()}
    rows = read_rows(folder, **asked, mode="PERMISSIVE", columns=["offset", "corruption"])
    assert any(row["corruption"] for row in rows)
    with pytest.raises(CorruptRecordError):
        read_rows(folder, **asked)


@pytest.mark.parametrize("base_offset", [0, 10, 14, 16, 18])
@pytest.mark.parametrize("first", [15, 17, 19])
def test_what_is_asked_for_does_not_begin_with_a_batch_that_lies(
    first: int, base_offset: int, tmp_path: Path
) -> None:
    sound = [data(0, 5), data(5, 5), data(10, 5), data(15, 5), data(20, 5), data(25, 5)]
    folder = make_partition(tmp_path / "orders-0", {0: sound})
    batches = [*sound[:3], moved(sound[3], base_offset), *sound[4:]]
    (folder / log_name(0)).write_bytes(b"".join(batches))
    since = {"startingOffsets": f'{{"orders": {{"0": {first}}}}}'}
    with pytest.raises(CorruptRecordError, match="does not fit"):
        read_rows(folder, **since)
    rows = read_rows(folder, **since, mode="PERMISSIVE", columns=["offset", "corruption"])
    assert [row["offset"] for row in rows] == [None, *range(20, 30)]


def shrunk(batch: bytes) -> bytes:
    """A batch whose last offset is damaged: its header has only its first record."""
    return batch[:23] + bytes(4) + batch[27:]


def early(batch: bytes) -> bytes:
    """A batch whose largest timestamp is damaged."""
    return batch[:35] + (1).to_bytes(8, "big") + batch[43:]


@pytest.mark.parametrize("place", PLACES)
def test_a_batch_whose_last_offset_is_damaged_is_not_left_out(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = finished(tmp_path / "logs" / "orders-0", PLACES[place](shrunk(data(10, 5))))
    since = {"startingOffsets": '{"orders": {"0": 12}}'}
    sound = [] if place == "at the log's end" else [*range(15, 20)]
    for until in ({}, {"endingOffsets": '{"orders": {"0": 14}}'}):
        with pytest.raises(CorruptRecordError, match="stored crc"):
            read_rows(folder, **since, **until)
    rows = read_rows(folder, **since, mode="PERMISSIVE", columns=["offset", "corruption"])
    assert [row["offset"] for row in rows] == [None, *sound]
    words = [str(folder), "--partition", "orders-0", "--starting-offset", "12"]
    assert main(["grep", "-c", ".", *words]) == 2
    assert main(["export", *words, "-o", str(tmp_path / "out"), "--to", "jsonl"]) == 1
    assert main(["restore", "--apply", *words, str(tmp_path / "kafka")]) == 1
    assert "stored crc" in capsys.readouterr().err
    if sound:  # else the log ends before the offset
        with pytest.raises(CorruptRecordError, match="stored crc"):
            started(folder, **since).trigger(["offset"])


@pytest.mark.parametrize("place", PLACES)
def test_a_batch_whose_largest_timestamp_is_damaged_is_not_left_out(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = finished(tmp_path / "logs" / "orders-0", PLACES[place](early(data(10, 5))))
    with pytest.raises(CorruptRecordError, match="stored crc"):
        read_rows(folder, startingTimestamp=str(START))
    later = [Predicate("timestamp", ">=", datetime.fromtimestamp(START / 1000, UTC))]
    with pytest.raises(CorruptRecordError, match="stored crc"):
        read_table(folder, predicates=later)
    rows = read_table(folder, predicates=later, mode="PERMISSIVE").to_pylist()
    sound = [] if place == "at the log's end" else [*range(15, 20)]
    assert [row["offset"] for row in rows] == [None, *sound]
    words = [str(folder), "--partition", "orders-0", "--starting-timestamp", str(START)]
    assert main(["restore", "--apply", *words, str(tmp_path / "kafka")]) == 1
    assert "stored crc" in capsys.readouterr().err


def test_headers_outside_of_what_is_asked_for_are_checked_only_at_its_borders(
    tmp_path: Path,
) -> None:
    damaged = {5: shrunk, 15: wrong_checksum, 25: early, 45: shrunk}
    batches = [damaged.get(at, bytes)(data(at, 5)) for at in range(0, 60, 5)]
    folder = finished(tmp_path / "orders-0", {0: batches})
    places = {"startingOffsets": 30, "endingOffsets": 40}
    asked = {name: f'{{"orders": {{"0": {offset}}}}}' for name, offset in places.items()}
    assert [row["offset"] for row in read_rows(folder, **asked)] == [*range(30, 40)]


def test_a_stream_begins_with_damage_that_may_have_its_first_offset(tmp_path: Path) -> None:
    for base_offset in LYING:
        folder = with_lie(tmp_path / str(base_offset), base_offset)
        since = {"startingOffsets": '{"orders": {"0": 17}}'}
        with pytest.raises(CorruptRecordError, match="does not fit"):
            started(folder, **since).trigger(["offset"])
        rows = started(folder, **since, mode="PERMISSIVE").trigger(["offset", "corruption"])
        assert rows["offset"].to_pylist()[0] is None


# The first offset of a batch of five records, and the base offset that it has instead.
LIES = [(5, 7), (5, 4), (5, 1), (20, 21), (20, 16), (20, 22), (15, 11)]
AT_ENDS = [(10, 14), (10, 8), (25, 27), (25, 24), (25, 25 + (1 << 20))]  # of segments


def with_indexes(folder: Path, first: int, base_offset: int) -> Path:
    """A log of three segments, and the indexes from before one batch got another base offset."""
    starts = {0: (0, 5, 10), 15: (15, 20, 25), 30: (30, 35)}
    sound = {base: [data(one, 5) for one in firsts] for base, firsts in starts.items()}
    make_partition(folder, sound)
    for base, firsts in starts.items():
        batches = [moved(data(one, 5), base_offset if one == first else one) for one in firsts]
        (folder / log_name(base)).write_bytes(b"".join(batches))
    finish(folder)
    return folder


@pytest.mark.parametrize(("first", "base_offset"), LIES + AT_ENDS)
@pytest.mark.parametrize("at", [0, 1, 4, 5])
def test_a_range_with_a_batch_that_lies_is_neither_restored_nor_exported(
    at: int, first: int, base_offset: int, tmp_path: Path
) -> None:
    folder = with_indexes(tmp_path / "orders-0", first, base_offset)
    words = [str(folder), "--partition", "orders-0"]
    for name, offset in (("--starting-offset", first + at), ("--ending-offset", first + at)):
        if (at, name) == (5, "--starting-offset") or (at, name) == (0, "--ending-offset"):
            continue  # the range lies beside the batch
        out = tmp_path / name
        assert main(["restore", "--apply", *words, name, str(offset), str(out / "kafka")]) == 1
        to_file = ["-o", str(out / "a.csv"), "--to", "csv"]
        assert main(["export", *words, name, str(offset), *to_file]) == 1


def test_damage_far_from_the_times_that_are_asked_for_is_not_read(tmp_path: Path) -> None:
    batches = [data(at, 5) for at in range(0, 50, 5)]
    batches[:3] = map(wrong_checksum, batches[:3])
    folder = finished(tmp_path / "orders-0", {0: batches})
    later = [Predicate("timestamp", ">=", datetime.fromtimestamp(TIME / 1000 + 20, UTC))]
    assert read_table(folder, predicates=later)["offset"].to_pylist() == [*range(20, 50)]


def test_damage_at_the_end_of_a_segment_is_reported_with_later_times(tmp_path: Path) -> None:
    segments = {0: [data(0, 5), wrong_checksum(data(5, 5))[:-20]], 10: [data(10, 5)]}
    folder = finished(tmp_path / "orders-0", segments)
    later = [Predicate("timestamp", ">=", datetime.fromtimestamp(TIME / 1000 + 5, UTC))]
    rows = read_table(folder, predicates=later, mode="PERMISSIVE")
    assert rows["offset"].to_pylist() == [None, *range(10, 15)]


@pytest.mark.parametrize(("first", "base_offset"), AT_ENDS)
def test_a_time_in_a_last_batch_that_lies_is_named_or_lies_behind_sound_ones(
    first: int, base_offset: int, tmp_path: Path
) -> None:
    folder = with_indexes(tmp_path / "logs" / "orders-0", first, base_offset)
    query = started(folder, startingTimestamp=str(TIME + first * 1000), mode="PERMISSIVE")
    rows = query.trigger(["offset", "corruption"])
    rows = rows if rows.num_rows else query.trigger(["offset", "corruption"])
    assert rows["offset"].to_pylist()[0] is None
    out = tmp_path / "a.parquet"
    until = ["--ending-timestamp", str(TIME + first * 1000), "--mode", "DROPMALFORMED"]
    main(["export", str(folder), *until, "-o", str(out)])
    assert pq.read_table(out)["offset"].to_pylist() == [*range(first)]


@pytest.mark.parametrize(("first", "base_offset"), LIES + AT_ENDS)
def test_a_time_behind_a_batch_that_lies_begins_with_the_sound_one(
    first: int, base_offset: int, tmp_path: Path
) -> None:
    folder = with_indexes(tmp_path / "logs" / "orders-0", first, base_offset)
    behind = first + 5
    since = ["--starting-timestamp", str(TIME + behind * 1000), "--mode", "DROPMALFORMED"]
    main(["export", str(folder), *since, "-o", str(tmp_path / "a.parquet")])
    offsets = pq.read_table(tmp_path / "a.parquet")["offset"].to_pylist()
    assert offsets == [*range(behind, 40)]
