"""Streams of logs that grow, roll, shrink and vanish, without Spark."""

from __future__ import annotations

import logging
import os
import random
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from partitions import data, log_name, make_partition, marker, transactional
from scanning import far_away, read_table
from streaming import Query, append, finish, started, stream_options

import kafkajit
import kafkajit.testing as kt
from kafkajit.errors import CorruptRecordError, OffsetOutOfRangeError
from kafkajit.scan.stream.limits import shares
from kafkajit.scan.stream.log_stream import LogStream
from kafkajit.scan.stream.offsets import from_json
from kafkajit.scan.stream.options import (
    Limits,
    refuse_stream_options,
    without_stream_options,
)
from kafkajit.storage.live_file import LiveFile

GZIP = {"codec": "gzip"}


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """A partition with ten records in batches of five."""
    folder = tmp_path / "orders-0"
    append(folder, data(0, 5) + data(5, 5))
    return folder


# Offsets


def test_offsets_are_those_of_sparks_kafka_source_in_order(tmp_path: Path) -> None:
    for name in ("b-10", "b-2", "a-0"):
        append(tmp_path / name, data(0, 2))
    query = Query(tmp_path)
    assert str(query.stream.initial_offsets()).startswith(
        "{'a': {'0': 0}, 'b': {'2': 0, '10': 0}, '@read': {'a': {'0': "
    )
    query.trigger()
    assert str(query.stream.latest_offsets(query.planned[0], None)).startswith(
        "{'a': {'0': 2}, 'b': {'2': 2, '10': 2}, '@read': {'a': {'0': "
    )


def test_a_new_query_stores_where_it_begins_and_then_reads(orders: Path) -> None:
    query = Query(orders.parent)
    assert query.offsets() == []
    assert query.ends == [{"orders": {"0": 0}}]
    assert query.offsets() == list(range(10))
    assert query.ends[-1] == {"orders": {"0": 10}}
    assert query.offsets() == []
    assert len(query.planned) == 2


def test_one_trigger_without_limits_reads_everything(orders: Path) -> None:
    query = Query(orders.parent)
    query.plan(None)
    assert query.read(["offset"])["offset"].to_pylist() == list(range(10))


@pytest.mark.parametrize(
    ("starting", "offsets"),
    [
        ("earliest", list(range(10))),
        ("latest", []),
        ('{"orders": {"0": 7}}', [7, 8, 9]),
        ('{"orders": {"0": -1}}', []),
        ('{"orders": {"0": -2}}', list(range(10))),
        ('{"orders": {}}', list(range(10))),
    ],
)
def test_a_new_query_begins_where_the_option_says(
    orders: Path, starting: str, offsets: list[int]
) -> None:
    query = started(orders.parent, startingOffsets=starting)
    assert query.offsets() == offsets
    append(orders, data(10, 2))
    assert query.offsets() == [10, 11]


@pytest.mark.parametrize(
    ("starting", "words"),
    [
        ('{"payments": {"0": 7}}', "payments-0, which startingOffsets names, at "),
        ('{"orders": {"1": -1}}', "orders-1, which .*: orders has the partition 0$"),
        ('{"ordres": {}}', "ordres, which .*: did you mean 'orders'"),
    ],
)
def test_a_new_query_refuses_offsets_of_a_partition_that_does_not_exist(
    orders: Path, starting: str, words: str
) -> None:
    with pytest.raises(FileNotFoundError, match=f"^there are no segments of {words}"):
        started(orders.parent, startingOffsets=starting)


@pytest.mark.parametrize(("moment", "offsets"), [(5, [5, 6, 7, 8, 9]), (3600, [])])
def test_a_new_query_begins_at_a_time(orders: Path, moment: int, offsets: list[int]) -> None:
    time = 1_700_000_000_000 + 1000 * moment
    query = started(orders.parent, startingTimestamp=time)
    assert query.offsets() == offsets


def test_latest_stays_where_it_was_if_the_first_micro_batch_fails(orders: Path) -> None:
    query = Query(orders.parent, startingOffsets="latest")
    query.plan()
    append(orders, data(10, 2))
    query.restart()
    assert query.read().num_rows == 0
    query.commit()
    assert query.offsets() == [10, 11]


def test_a_stream_begins_before_there_is_a_partition(tmp_path: Path) -> None:
    query = started(tmp_path)
    append(tmp_path / "orders-0", data(0, 2))
    assert query.offsets() == []  # stores where the partition begins
    assert query.offsets() == [0, 1]


def test_an_unknown_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is nothing at .*/nowhere"):
        Query(tmp_path / "nowhere").plan()


def test_a_segment_is_not_a_path_of_a_stream(orders: Path) -> None:
    with pytest.raises(NotADirectoryError, match="is a file: a stream reads a partition's folder"):
        Query(orders / log_name(0)).plan()


def test_two_copies_of_a_partition_are_an_error(tmp_path: Path) -> None:
    append(tmp_path / "a" / "orders-0", data(0))
    append(tmp_path / "b" / "orders-0", data(0))
    with pytest.raises(ValueError, match="both hold partition orders-0: a stream reads one copy"):
        Query(tmp_path / "*").plan()


def test_a_folder_without_a_partitions_name_is_an_error(tmp_path: Path) -> None:
    append(tmp_path / "backup", data(0))
    with pytest.raises(ValueError, match="backup is not a partition's folder"):
        Query(tmp_path / "backup").plan()


# Growth


def test_records_come_as_they_are_appended(orders: Path) -> None:
    query = started(orders)
    assert query.offsets() == list(range(10))
    for offset in range(10, 40, 3):
        append(orders, data(offset, 3))
        assert query.offsets() == [offset, offset + 1, offset + 2]


@pytest.mark.parametrize("cut", [1, 11, 12, 17, 60, 61, 80, -1])
def test_a_torn_tail_waits_for_its_rest(orders: Path, cut: int) -> None:
    query = started(orders)
    query.offsets()
    batch = data(10, 3)
    append(orders, batch[:cut])
    assert query.offsets() == []
    assert query.restart().offsets() == []
    append(orders, batch[cut:] + data(13, 1))
    assert query.offsets() == [10, 11, 12, 13]


def test_a_batch_whose_checksum_does_not_hold_yet_waits(orders: Path) -> None:
    query = started(orders)
    query.offsets()
    batch = bytearray(data(10, 3))
    batch[-1] ^= 1
    append(orders, bytes(batch))
    assert query.offsets() == []
    log = orders / log_name(0)
    log.write_bytes(log.read_bytes()[: -len(batch)] + data(10, 3))
    assert query.offsets() == [10, 11, 12]


def test_a_bad_batch_before_a_sound_one_is_damage(orders: Path) -> None:
    query = started(orders)
    query.offsets()
    batch = bytearray(data(10, 3))
    batch[-1] ^= 1
    append(orders, bytes(batch) + data(13, 2))
    with pytest.raises(CorruptRecordError, match="Record is corrupt"):
        query.offsets()
    lenient = Query(orders, mode="DROPMALFORMED")
    assert lenient.offsets() == []
    assert lenient.offsets() == [*range(10), 13, 14]


def _aged(folder: Path) -> None:
    """Let the folder's last segment have been written a while ago."""
    log = max(folder.glob("*.log"))
    before = log.stat().st_mtime_ns - 60_000_000_000
    os.utime(log, ns=(before, before))


# What becomes of a batch of 75 bytes: where its bytes are changed, and the message about it.
BROKEN = {
    "size too small": (8, bytes(4), "Found record size 0 smaller than minimum record overhead"),
    "size too large": (8, b"\x7f", r"record size \d+ leads past the end of the log, but a sound"),
    "zeros": (0, bytes(40), "record size 0"),
}


@pytest.mark.parametrize(("at", "wrong", "message"), BROKEN.values(), ids=BROKEN)
def test_damaged_framing_is_reported_once_a_sound_batch_follows(
    orders: Path, at: int, wrong: bytes, message: str
) -> None:
    query, lenient = started(orders), started(orders, mode="DROPMALFORMED")
    reporting = started(orders, mode="PERMISSIVE")
    batch = bytearray(data(10, 3))
    batch[at : at + len(wrong)] = wrong
    append(orders, bytes(batch))
    _aged(orders)
    assert query.offsets() == lenient.offsets() == reporting.offsets() == list(range(10))
    assert query.restart().offsets() == []  # it may be a torn tail
    append(orders, data(13, 2))
    _aged(orders)
    with pytest.raises(CorruptRecordError, match=message) as raised:
        query.offsets()
    with pytest.raises(CorruptRecordError) as of_a_batch:
        read_table(orders)
    assert str(raised.value) == str(of_a_batch.value)
    assert lenient.offsets() == [13, 14]
    rows = reporting.trigger().to_pylist()
    assert rows == read_table(orders, mode="PERMISSIVE").to_pylist()[10:]
    append(orders, data(15, 1) + data(16, 1)[:70])
    assert reporting.restart().offsets() == lenient.restart().offsets() == [15]
    assert reporting.offsets() == lenient.offsets() == []
    append(orders, data(16, 1)[70:])
    assert reporting.offsets() == lenient.offsets() == [16]


def test_a_large_batch_with_a_wrong_checksum_does_not_stall_a_stream(orders: Path) -> None:
    query = started(orders, mode="DROPMALFORMED")
    batch = bytearray(kt.batch([kt.Record(value=bytes(300_000))], base_offset=10))
    batch[-1] ^= 1
    append(orders, bytes(batch) + data(11, 2))
    _aged(orders)
    assert query.offsets() == [*range(10), 11, 12]


@pytest.mark.parametrize("base_offset", [3, 50])
def test_a_batch_in_the_value_of_a_torn_batch_is_no_damage(orders: Path, base_offset: int) -> None:
    query = started(orders, mode="DROPMALFORMED")
    batch = kt.batch([kt.Record(value=data(base_offset, 4) + bytes(100))], base_offset=10)
    append(orders, batch[:-50])
    if base_offset < 10:  # offsets that the log has had before
        _aged(orders)
    assert query.offsets() == list(range(10))
    append(orders, batch[-50:])
    assert query.offsets() == [10]


def test_damage_that_a_busy_broker_writes_on_behind_is_reported_soon(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = started(orders)
    query.offsets()
    append(orders, b"\xff" * 75 + data(11, 1))
    assert query.offsets() == []
    later = time.time_ns() + 3_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)
    append(orders, data(13, 1))
    with pytest.raises(CorruptRecordError):
        query.offsets()


def test_a_preallocated_segment_grows_within_its_size(orders: Path) -> None:
    log = orders / log_name(0)
    size = log.stat().st_size
    os.truncate(log, 1 << 20)
    query = started(orders)
    assert query.offsets() == list(range(10))
    assert query.offsets() == []
    with log.open("r+b") as file:
        file.seek(size)
        file.write(data(10, 2))
    assert query.offsets() == [10, 11]
    assert query.restart().offsets() == []


def test_a_batch_is_seen_that_came_within_a_tick_of_the_files_clock(orders: Path) -> None:
    log = orders / log_name(0)
    size = log.stat().st_size
    os.truncate(log, 1 << 20)
    when = log.stat().st_mtime_ns
    os.utime(orders, (1, 1))  # so it is not listed again
    query = started(orders)
    assert query.offsets() == list(range(10))
    assert query.offsets() == []
    with log.open("r+b") as file:
        file.seek(size)
        file.write(data(10, 2))
    os.utime(log, ns=(when, when))
    assert query.offsets() == [10, 11]


def test_segments_roll(orders: Path) -> None:
    query = started(orders)
    append(orders, data(10, 2))
    append(orders, data(12, 2), base_offset=12)
    assert query.offsets() == list(range(14))
    append(orders, data(14, 1), base_offset=12)
    append(orders, b"", base_offset=15)
    assert query.offsets() == [14]
    append(orders, data(15, 1), base_offset=15)
    assert query.offsets() == [15]


def test_the_end_of_a_segment_counts_once_another_follows(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tail that is still torn when the next segment has begun is damage, or a copy's."""
    query = started(orders)
    query.offsets()
    append(orders, data(10, 3)[:70])
    assert query.offsets() == []
    append(orders, data(13, 1), base_offset=13)
    assert query.offsets() == []
    monkeypatch.setattr("kafkajit.scan.stream.gaps.COPIED_NS", 0)
    with pytest.raises(CorruptRecordError):
        query.offsets()


def test_a_change_within_one_step_of_the_clock_is_seen(orders: Path) -> None:
    query = started(orders)
    query.offsets()
    when = orders.stat().st_mtime_ns
    append(orders, data(10, 1), base_offset=10)
    os.utime(orders, ns=(when, when))
    assert query.offsets() == [10]


def test_a_segment_renamed_within_one_step_of_the_clock_is_no_loss(orders: Path) -> None:
    query = started(orders)
    query.offsets()
    before = orders.stat().st_mtime_ns - 60_000_000_000
    os.utime(orders, ns=(before, before))
    assert query.offsets() == []
    append(orders, data(10, 1), base_offset=10)
    (orders / log_name(0)).rename(orders / log_name(0, ".log.deleted"))
    os.utime(orders, ns=(before, before))
    assert query.offsets() == [10]


def test_new_partitions_and_topics_are_found(orders: Path) -> None:
    query = started(orders.parent, startingOffsets="latest")
    append(orders.parent / "orders-1", data(0, 2))
    append(orders.parent / "payments-0", data(7, 1), base_offset=7)
    assert query.places() == []
    assert query.ends[-1] == {"orders": {"0": 10, "1": 0}, "payments": {"0": 7}}
    assert query.places() == [("orders", 0 + 1, 0), ("orders", 1, 1), ("payments", 0, 7)]


def test_a_glob_finds_new_partitions_too(orders: Path) -> None:
    query = started(orders.parent / "orders-*")
    query.offsets()
    append(orders.parent / "orders-1", data(0, 2))
    append(orders.parent / "payments-0", data(0, 2))
    query.offsets()
    assert query.places() == [("orders", 1, 0), ("orders", 1, 1)]


def test_many_batches_are_found_by_the_index(tmp_path: Path) -> None:
    folder = make_partition(
        tmp_path / "orders-0",
        {0: (data(n) for n in range(0, 400, 2)), 400: (data(n) for n in range(400, 800, 2))},
    )
    query = started(folder, startingOffsets='{"orders": {"0": 301}}')
    assert query.offsets(records=150) == list(range(301, 450))
    assert query.restart().offsets() == list(range(450, 800))


def test_an_index_that_leads_to_a_torn_tail_is_used_up_to_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_partition(tmp_path / "orders-0", {0: (data(n) for n in range(0, 4000, 2))})
    log = folder / log_name(0)
    size = log.stat().st_size
    with (folder / log_name(0, ".index")).open("ab") as index:
        index.write((4001).to_bytes(4) + size.to_bytes(4))
    append(folder, data(4000)[:70])
    query = started(folder, startingOffsets="latest")
    positions = []
    read = LiveFile.read

    def counting(file: LiveFile, position: int = 0, count: int | None = None) -> bytes:
        if file.name == log.name:
            positions.append(position)
        return read(file, position, count)

    monkeypatch.setattr(LiveFile, "read", counting)
    assert query.restart().offsets() == []
    assert min(positions) > size // 2
    assert "without its offset index" not in caplog.text
    append(folder, data(4000)[70:])
    assert query.offsets() == [4000, 4001]


@pytest.mark.parametrize("content", [b"\xff" * 80, bytes(80), b"\0\0\0\1\0\0\0\1" * 10])
def test_a_wrong_index_costs_no_record(tmp_path: Path, content: bytes) -> None:
    folder = make_partition(tmp_path / "orders-0", {0: (data(n) for n in range(0, 400, 2))})
    (folder / log_name(0, ".index")).write_bytes(content)
    query = started(folder, startingOffsets='{"orders": {"0": 301}}')
    assert query.offsets(bytes=1000)[0] == 301
    rest = query.restart().offsets()
    assert rest[-1] == 399
    assert rest == list(range(rest[0], 400))


# The same rows as a batch


@pytest.mark.parametrize("kind", ["records", "batches"])
@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
def test_the_rows_are_those_of_a_batch(tmp_path: Path, kind: str, mode: str) -> None:
    folder = make_partition(
        tmp_path / "orders-0",
        {0: (data(n, **GZIP) for n in range(0, 40, 2)), 40: (data(n) for n in range(40, 60, 2))},
    )
    query = started(folder, kind=kind, mode=mode)
    tables = [query.trigger(records=7) for _ in range(12)]
    found = [row for table in tables for row in table.to_pylist()]
    assert found == read_table(folder, kind=kind, mode=mode).to_pylist()
    assert query.trigger().num_rows == 0


@pytest.mark.parametrize("limit", ["records", "bytes", "files"])
@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
@pytest.mark.parametrize("at", [30, 10, 61])  # a magic, a length, a record
def test_damage_is_reported_once(tmp_path: Path, limit: str, mode: str, at: int) -> None:
    folder = tmp_path / "orders-0"
    batches = [bytearray(data(offset, 4)) for offset in range(0, 40, 4)]
    batches[3][at] ^= 0x40
    append(folder, b"".join(batches[:8]))
    append(folder, b"".join(batches[8:]), base_offset=32)
    for most in (1, 3, 5, 500):
        query = started(folder, mode=mode)
        found = [row for _ in range(45) for row in query.trigger(**{limit: most}).to_pylist()]
        assert found == read_table(folder, mode=mode).to_pylist()


def test_large_stretches_are_split_where_the_index_leads(tmp_path: Path) -> None:
    folder = make_partition(tmp_path / "orders-0", {0: (data(n) for n in range(0, 400, 2))})
    query = started(folder, maxPartitionBytes=2000)
    query.plan()
    assert len(query.stream.tasks(*query.planned)) > 5
    assert query.read(["offset"])["offset"].to_pylist() == list(range(400))


def test_messages_of_old_formats_are_read_once(tmp_path: Path) -> None:
    records = [kt.Record(b"k", b"v")] * 4
    sets = b"".join(
        kt.message(
            kt.Record(value=_gzip(kt.message_set(records, base_offset=0, magic=1))),
            offset=last,
            attributes=1,
            magic=1,
        )
        for last in range(3, 43, 4)
    )
    append(tmp_path / "orders-0", sets)
    for limits in ({"records": 3}, {"bytes": 100}, {}):
        query = started(tmp_path)
        found = [offset for _ in range(45) for offset in query.offsets(**limits)]
        assert found == list(range(40))


def _gzip(content: bytes) -> bytes:
    import gzip

    return gzip.compress(content)


# Limits


@pytest.mark.parametrize("most", [1, 3, 5, 7, 100])
def test_a_micro_batch_has_at_most_so_many_records(orders: Path, most: int) -> None:
    append(orders, data(10, 7), base_offset=10)
    query = started(orders.parent, maxRecordsPerTrigger=most)
    found = [query.offsets() for _ in range(18)]
    assert max(map(len, found)) <= most
    assert [offset for part in found for offset in part] == list(range(17))


def test_records_that_compaction_has_left_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    append(folder, b"".join(data(n * 100, 2) for n in range(10)))
    query = started(folder)
    assert query.offsets(records=4) == [0, 1, 100, 101]
    assert len(query.offsets(records=100)) == 16


def test_a_micro_batch_has_at_most_so_many_bytes_but_a_batch(orders: Path) -> None:
    size = len(data(0, 5))
    query = started(orders)
    assert query.offsets(bytes=1) == [0, 1, 2, 3, 4]
    append(orders, data(10, 5))
    assert query.offsets(bytes=2 * size) == list(range(5, 15))


def test_bytes_are_counted_over_segments(orders: Path) -> None:
    append(orders, data(10, 5) + data(15, 5), base_offset=10)
    query = started(orders, maxBytesPerTrigger=3 * len(data(0, 5)) + 10)
    assert query.offsets() == list(range(15))
    assert query.offsets() == list(range(15, 20))


def test_a_micro_batch_has_at_most_so_many_segments(orders: Path) -> None:
    for offset in (10, 12, 14):
        append(orders, data(offset), base_offset=offset)
    query = started(orders, maxFilesPerTrigger=2)
    assert query.offsets() == list(range(12))
    assert query.offsets() == list(range(12, 16))


def test_the_smallest_of_several_limits_wins(orders: Path) -> None:
    append(orders, data(10), base_offset=10)
    query = started(orders, maxRecordsPerTrigger=7, maxBytesPerTrigger="1g", maxFilesPerTrigger=1)
    assert [query.offsets() for _ in range(4)] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11], []]


def test_limits_are_shared_and_no_partition_starves(tmp_path: Path) -> None:
    for partition in range(4):
        append(tmp_path / f"orders-{partition}", data(0, 50 if partition else 1))
    query = started(tmp_path)
    found = query.places(records=22)
    assert [sum(place[1] == p for place in found) for p in range(4)] == [1, 7, 7, 7]
    for _ in range(3):
        assert len(query.places(records=1)) == 1
    assert min(query.planned[-1]["orders"].values()) > 0
    for limit in ("bytes", "files", "records"):
        query = started(tmp_path)
        rest = [place for _ in range(160) for place in query.places(**{limit: 1})]
        assert len(rest) == 151


@given(st.lists(st.integers(1, 20), min_size=1), st.integers(1, 100), st.integers(0, 9))
def test_shares_use_what_they_may(sizes: list[int], most: int, turn: int) -> None:
    given_ = shares(sizes, most, turn)
    assert sum(given_) == min(sum(sizes), most)
    assert all(0 <= part <= size for part, size in zip(given_, sizes, strict=True))
    assert given_[turn % len(sizes)] > 0


def test_an_idle_limit_does_not_read_headers(orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = started(orders, maxRecordsPerTrigger=5)
    while query.offsets():
        pass
    for path in (orders / log_name(0), orders):  # what has just changed may change unnoticed
        os.utime(path, (1, 1))
    assert not query.plan()
    monkeypatch.setattr(LiveFile, "read", None)
    monkeypatch.setattr(LiveFile, "open", None)
    assert not query.plan()


# Available now


def test_available_now_ends_at_what_was_there(orders: Path) -> None:
    query = Query(orders.parent, maxRecordsPerTrigger=4)
    query.stream.freeze()
    found = []
    for _ in range(10):
        found += query.offsets()
        append(orders.parent / "orders-1", data(0) if not found else b"")
        append(orders, data(10 + len(query.planned), 1))
    assert found == list(range(10))
    assert query.ends[-1] == {"orders": {"0": 10}}


def test_available_now_reads_partitions_that_have_come_since(orders: Path) -> None:
    query = started(orders.parent)
    append(orders.parent / "orders-1", data(0))
    query.restart().stream.freeze()
    found = [place for _ in range(5) for place in query.places()]
    assert found == [("orders", 0, n) for n in range(10)] + [("orders", 1, 0), ("orders", 1, 1)]


# Loss


def test_retention_before_reading_is_an_error_that_names_the_offsets(orders: Path) -> None:
    append(orders, data(10), base_offset=10)
    query = started(orders)
    (orders / log_name(0)).unlink()
    with pytest.raises(
        OffsetOutOfRangeError,
        match=r"offsets 0 to 9 of orders-0 are gone: its log now begins at 10 .*failOnDataLoss",
    ):
        query.offsets()


def test_retention_before_reading_is_a_warning_on_request(
    orders: Path, caplog: pytest.LogCaptureFixture
) -> None:
    append(orders, data(10), base_offset=10)
    query = started(orders, failOnDataLoss="false")
    (orders / log_name(0)).unlink()
    with caplog.at_level(logging.WARNING, "kafkajit"):
        assert query.offsets() == [10, 11]
    assert "offsets 0 to 9 of orders-0 are gone" in caplog.text


def test_retention_between_plan_and_task_is_noticed(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(orders, data(10), base_offset=10)
    query = started(orders)
    query.plan()
    tasks = query.stream.tasks(*query.planned[-2:])
    (orders / log_name(0)).unlink()
    monkeypatch.setattr(query.stream, "tasks", lambda *_: tasks)
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 9 are gone"):
        query.read()


def test_a_segment_about_to_be_deleted_is_read(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(orders, data(10), base_offset=10)
    query = started(orders)
    query.plan()
    tasks = query.stream.tasks(*query.planned[-2:])
    (orders / log_name(0)).rename(orders / log_name(0, ".log.deleted"))
    monkeypatch.setattr(query.stream, "tasks", lambda *_: tasks)
    assert query.read(["offset"])["offset"].to_pylist() == list(range(12))


def test_retention_of_what_was_read_is_no_loss(orders: Path) -> None:
    query = started(orders)
    query.offsets()
    append(orders, data(10), base_offset=10)
    (orders / log_name(0)).unlink()
    assert query.offsets() == [10, 11]


def test_a_partition_that_is_gone_is_a_loss(orders: Path) -> None:
    append(orders.parent / "orders-1", data(0))
    query = started(orders.parent, maxRecordsPerTrigger=5)
    query.offsets()
    for path in orders.iterdir():
        path.unlink()
    orders.rmdir()
    with pytest.raises(OffsetOutOfRangeError, match="partition orders-0 is gone"):
        query.offsets()
    lenient = Query(orders.parent, failOnDataLoss="false")
    lenient.planned, lenient.committed = query.planned, query.committed
    assert lenient.offsets() == []


def test_a_partition_that_was_read_to_its_end_may_go(orders: Path) -> None:
    append(orders.parent / "orders-1", data(0))
    query = started(orders.parent)
    query.offsets()
    shutil.rmtree(orders)
    append(orders.parent / "orders-1", data(2))
    assert query.places() == [("orders", 1, 2), ("orders", 1, 3)]
    append(orders, data(0, 3))  # made again, without a topic's id
    with pytest.raises(OffsetOutOfRangeError, match="orders-0 was read up to offset 10, but its"):
        query.offsets()


@pytest.mark.parametrize("offset", [11, 1000])
def test_a_new_query_does_not_begin_behind_a_log(
    orders: Path, offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    asked = f'{{"orders": {{"0": {offset}}}}}'
    with pytest.raises(OffsetOutOfRangeError) as caught:
        started(orders, startingOffsets=asked)
    assert str(caught.value) == (
        f"startingOffsets has offset {offset} of orders-0, but its log ends at 10 in {orders}: "
        "with failOnDataLoss=false the query begins at offset 10"
    )
    with caplog.at_level(logging.WARNING, "kafkajit"):
        query = started(orders, startingOffsets=asked, failOnDataLoss="false")
    assert "but its log ends at 10" in caplog.text
    append(orders, data(10))
    assert query.offsets() == [10, 11]


def test_a_log_that_ends_before_what_was_read_is_a_loss(orders: Path) -> None:
    query = started(orders)
    query.offsets()
    os.truncate(orders / log_name(0), len(data(0, 5)))
    with pytest.raises(OffsetOutOfRangeError, match="orders-0 was read up to offset 10, but its"):
        query.offsets()
    query.options = stream_options(orders, failOnDataLoss="false")
    query.restart()
    assert query.offsets() == [0, 1, 2, 3, 4]  # another log, for all that this one tells
    append(orders, data(5, 1))
    assert query.offsets() == [5]


def test_a_truncation_is_noticed_although_the_log_has_grown_since(orders: Path) -> None:
    query = started(orders)
    query.offsets()
    log = orders / log_name(0)
    log.write_bytes(log.read_bytes()[: len(data(0, 5))] + data(5, 9) + data(14, 1))
    with pytest.raises(OffsetOutOfRangeError, match="its batch at offset 9 is not the one that"):
        query.offsets()


def test_a_truncation_between_plan_and_task_is_noticed(
    orders: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    query = started(orders)
    query.plan()
    tasks = query.stream.tasks(*query.planned[-2:])
    os.truncate(orders / log_name(0), len(data(0, 5)) + 1)
    monkeypatch.setattr(query.stream, "tasks", lambda *_: tasks)
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 9 are gone"):
        query.read()
    query.options = stream_options(orders, failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "kafkajit"):
        assert query.read().num_rows == 0
    assert "offsets 0 to 9 are gone" in caplog.text
    query.commit()
    monkeypatch.undo()
    assert query.restart().offsets() == [0, 1, 2, 3, 4]


def test_a_truncation_while_a_task_reads_is_an_error_and_not_the_end_of_the_process(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = started(orders)
    query.plan()

    def and_truncated(*_: object) -> bool:
        os.truncate(orders / log_name(0), 100)
        return True

    monkeypatch.setattr("kafkajit.scan.stream.tasks._stands_in", and_truncated)
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 9 cannot be read: the segment"):
        query.read()


# Compaction


def _compacted(folder: Path, records: bytes) -> None:
    """Swap a segment in as the cleaner does."""
    cleaned = folder / log_name(0, ".log.cleaned")
    cleaned.write_bytes(records)
    cleaned.rename(folder / log_name(0, ".log.swap"))
    (folder / log_name(0)).rename(folder / log_name(0, ".log.deleted"))


def test_a_segment_that_is_being_swapped_is_waited_for(orders: Path) -> None:
    append(orders, data(10), base_offset=10)
    query = started(orders)
    query.trigger()  # a query that goes on
    query.planned, query.committed = query.planned[:1], 1
    _compacted(orders, data(3, 1) + data(8, 1))
    assert query.restart().offsets() == []
    (orders / log_name(0, ".log.swap")).rename(orders / log_name(0))
    finish(orders)
    assert query.offsets() == [3, 8, 10, 11]


def test_a_segment_that_was_seen_before_its_swap_is_read_as_it_was(orders: Path) -> None:
    append(orders, data(10), base_offset=10)
    query = started(orders)
    _compacted(orders, data(3, 1) + data(8, 1))
    assert query.offsets() == list(range(12))


def test_a_segment_is_compacted_in_the_middle_of_reading_it(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(orders, data(10), base_offset=10)
    query = started(orders)
    assert query.offsets(records=5) == [0, 1, 2, 3, 4]
    query.plan()
    tasks = query.stream.tasks(*query.planned[-2:])
    _compacted(orders, data(3, 1) + data(8, 1))
    (orders / log_name(0, ".log.swap")).rename(orders / log_name(0))
    (orders / log_name(0, ".log.deleted")).unlink()
    monkeypatch.setattr(query.stream, "tasks", lambda *_: tasks)
    assert query.read(["offset"])["offset"].to_pylist() == [8, 10, 11]


def _once_behind(monkeypatch: pytest.MonkeyPatch, place: str, change: Callable[[], None]) -> None:
    """Let a broker change something right after a function has looked at a folder."""
    module, _, name = place.rpartition(".")
    look = getattr(resolve_name(module), name)

    def looks(*arguments: object) -> object:
        monkeypatch.setattr(place, look)
        found = look(*arguments)
        change()
        return found

    monkeypatch.setattr(place, looks)


@pytest.mark.parametrize("limit", ["records", "bytes", "files"])
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_segment_is_compacted_while_a_micro_batch_is_planned(
    orders: Path, monkeypatch: pytest.MonkeyPatch, limit: str, is_gone: bool
) -> None:
    append(orders, data(10), base_offset=10)
    query = started(orders)
    assert query.offsets(records=5) == [0, 1, 2, 3, 4]
    query.restart()

    def swap() -> None:
        _compacted(orders, data(3, 1) + data(8, 1))
        (orders / log_name(0, ".log.swap")).rename(orders / log_name(0))
        if is_gone:
            (orders / log_name(0, ".log.deleted")).unlink()
        finish(orders)

    _once_behind(monkeypatch, "kafkajit.scan.stream.folders.Folders.refresh", swap)
    assert query.offsets(**{limit: 1000}) == [8, 10, 11]


def test_retention_while_a_micro_batch_is_planned_is_a_loss(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(orders, data(10), base_offset=10)
    query = started(orders)
    refresh = "kafkajit.scan.stream.folders.Folders.refresh"
    _once_behind(monkeypatch, refresh, (orders / log_name(0)).unlink)
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 9 of orders-0 are gone"):
        query.offsets(records=5)


def test_a_segment_is_compacted_twice_while_a_task_looks_for_it(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(orders, data(10), base_offset=10)
    query = started(orders)
    query.plan()
    tasks = query.stream.tasks(*query.planned[-2:])
    monkeypatch.setattr(query.stream, "tasks", lambda *_: tasks)

    def swap(*offsets: int) -> None:
        _compacted(orders, b"".join(data(offset, 1) for offset in offsets))
        (orders / log_name(0, ".log.swap")).rename(orders / log_name(0))
        (orders / log_name(0, ".log.deleted")).unlink()

    swap(3, 7, 8)
    _once_behind(monkeypatch, "kafkajit.scan.stream.tasks.list_settled", lambda: swap(3, 8))
    assert query.read(["offset"])["offset"].to_pylist() == [3, 8, 10, 11]


def test_compaction_by_kafkajit_between_two_triggers(tmp_path: Path) -> None:
    folder = make_partition(
        tmp_path / "orders-0",
        {0: [data(0, 5), data(5, 5)], 10: [data(10, 5)], 15: [data(15, 5)]},
    )
    query = started(folder)
    assert query.offsets(records=7) == list(range(5))
    config = kafkajit.LogConfig(cleanup_policy=("compact",), index_interval_bytes=100)
    kafkajit.compact(folder, config=config).apply()
    left = read_table(folder)["offset"].to_pylist()
    assert left[0] > 5
    assert query.restart().offsets() == left


# Transactions


def test_committed_records_come_once_their_transaction_has_ended(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    append(folder, data(0) + transactional(2, 7) + data(4))
    query = started(folder, isolationLevel="read_committed")
    everything = started(folder)
    assert query.offsets() == [0, 1]
    assert everything.offsets() == [0, 1, 2, 3, 4, 5]
    append(folder, transactional(6, 8) + marker(8, 7, 1))
    assert query.offsets() == [2, 3, 4, 5]
    append(folder, marker(9, 8, 0) + data(10))
    assert query.restart().offsets() == [10, 11]
    assert query.offsets() == []


@pytest.mark.parametrize("is_late", [False, True])
def test_damage_that_seems_to_open_a_transaction_holds_nothing_back(
    is_late: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "orders-0"
    bad = bytearray(data(2))
    bad[22] ^= 0x10  # transactional
    append(folder, data(0) + (b"" if is_late else bytes(bad) + data(4)))
    options = {"isolationLevel": "read_committed"}
    lenient = started(folder, mode="DROPMALFORMED", **options)
    strict = started(folder, **options)
    if is_late:
        assert lenient.offsets() == [0, 1]
        append(folder, bytes(bad) + data(4))
    assert lenient.offsets() == ([4, 5] if is_late else [0, 1, 4, 5])
    with pytest.raises(CorruptRecordError, match="Record is corrupt"):
        strict.offsets()


def test_records_behind_a_marker_that_damage_took_are_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "orders-0"
    bad = bytearray(marker(4, 7, 1))
    bad[50] ^= 1  # of another producer
    append(folder, data(0) + transactional(2, 7) + bytes(bad) + data(5))
    query = started(folder, mode="DROPMALFORMED", isolationLevel="read_committed")
    assert query.offsets() == [0, 1]
    append(folder, data(7))
    assert query.offsets() == []
    assert caplog.text.count("records from offset 2 on are left out: a transaction is open") == 1


@pytest.mark.parametrize("most", [1, 2, 3])
def test_an_aborted_transaction_is_left_out_in_pieces(tmp_path: Path, most: int) -> None:
    folder = tmp_path / "orders-0"
    append(folder, transactional(0, 7) + data(2) + transactional(4, 7, 2) + marker(6, 7) + data(7))
    query = started(folder, isolationLevel="read_committed")
    found = [offset for _ in range(10) for offset in query.restart().offsets(records=most)]
    assert found == [2, 3, 7, 8]


def test_latest_is_the_last_stable_offset(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    ended = transactional(2, 8) + marker(4, 8)
    append(folder, transactional(0, 7) + ended + data(5))
    query = started(folder, isolationLevel="read_committed", startingOffsets="latest")
    assert query.ends == [{"orders": {"0": 0}}]
    append(folder, marker(7, 7, 1))
    assert query.offsets() == [0, 1, 5, 6]


def test_a_snapshot_of_producers_says_which_transactions_are_open(tmp_path: Path) -> None:
    folder = make_partition(
        tmp_path / "orders-0",
        {0: [data(0), transactional(2, 7)], 4: [data(4), transactional(6, 7, 2)]},
    )
    assert (folder / log_name(4, ".snapshot")).exists()
    query = started(folder, isolationLevel="read_committed", startingOffsets='{"orders": {"0": 5}}')
    assert query.offsets() == []
    append(folder, marker(8, 7, 1), base_offset=4)
    assert query.offsets() == [5, 6, 7]


# Options


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("maxRecordsPerTrigger", "0", "expected a number of records from 1"),
        ("maxRecordsPerTrigger", "many", "expected a number of records, such as 1000, not 'many'"),
        ("maxOffsetsPerTrigger", "-1", "expected a number of records"),
        ("maxOffsetsPerTrigger", "9" * 5000, "expected a number of records from 1"),
        ("maxBytesPerTrigger", "0", "expected a number of bytes from 1"),
        ("maxFilesPerTrigger", "1.5", "expected a number of files"),
        ("failOnDataLoss", "no", "expected true or false"),
        ("startingOffsets", "newest", "expected earliest, latest or JSON"),
        ("startingOffsets", '{"orders": {"0": -3}}', "expected earliest, latest or JSON"),
        ("endingOffsets", "latest", "a stream has no end"),
        ("endingTimestamp", "0", "a stream has no end"),
        ("layout", "kafscale", "narrow the path"),
        ("oneTaskPerPartition", "true", "a stream plans the tasks"),
        ("pathGlobFilter", "*.log", "narrow the path"),
        ("kind", "files", "a stream reads records or batches, not files"),
    ],
)
def test_a_bad_option_is_an_error_with_its_name(name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^option {name}: .*{message}"):
        stream_options("/logs", **{name.lower(): text})


def test_options_are_parsed_in_any_case() -> None:
    options = stream_options(
        "/logs",
        MAXRECORDSPERTRIGGER=" 7 ",
        maxoffsetspertrigger=5,
        maxBytesPerTrigger="2m",
        maxfilespertrigger=3,
        failondataloss="FALSE",
        startingoffsets="LATEST",
    )
    assert options.limits == Limits(5, 2 << 20, 3)
    assert not options.fail_on_data_loss
    assert options.starting.of("any", 0) == -1


def test_a_batch_refuses_the_options_of_streams() -> None:
    given_ = {"maxFilesPerTrigger": "5", "startingOffsets": "latest", "path": "/logs"}
    assert without_stream_options(given_) == {"path": "/logs"}
    with pytest.raises(ValueError, match="maxFilesPerTrigger: only spark"):
        refuse_stream_options(given_)
    with pytest.raises(ValueError, match=r"begins at latest$"):
        refuse_stream_options({"startingOffsets": "latest"})
    refuse_stream_options({"startingOffsets": '{"orders": {"0": 5}}', "kind": "files"})


# Remote folders


def test_a_remote_folder_is_a_stream_too(orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = far_away(monkeypatch, orders.parent)
    query = started(uri)
    assert query.offsets(records=7) == list(range(5))
    append(orders, data(10) + data(12)[:60])
    append(orders.parent / "orders-1", data(0))
    assert query.restart().offsets() == list(range(5, 12))
    assert query.places() == [("orders", 1, 0), ("orders", 1, 1)]


def test_in_a_remote_folder_the_option_chooses_a_topic_too(
    orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = "pUM3BMsVQk2fe-klgEgLLA"
    (orders / "partition.metadata").write_text(f"version: 0\ntopic_id: {id_}")
    append(orders.parent / "orders-1", data(0))
    uri = far_away(monkeypatch, orders.parent)
    query = started(uri, topicId=id_)
    assert query.places() == [("orders", 0, offset) for offset in range(10)]
    assert started(uri, topicId="AAAAAAAAAAAAAAAAAAAAAQ").offsets() == []


# Segments of KafScale's


@pytest.mark.parametrize("folder", ["orders/0", "default/orders/0", "ns/default/orders/0"])
@pytest.mark.parametrize("is_remote", [False, True])
def test_segments_of_kafscale_are_refused(
    tmp_path: Path, folder: str, is_remote: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = tmp_path / folder / f"segment-{0:020}.kfs"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(kt.kafscale_segment(data(0), 0, 1, 2))
    for place in (tmp_path, segment.parent):
        where = far_away(monkeypatch, place) if is_remote else place
        with pytest.raises(ValueError, match=r"\.kfs: streams .* do not read KafScale's segments"):
            started(where)


def test_segments_of_kafscale_that_come_later_are_refused(orders: Path) -> None:
    query = started(orders.parent)
    assert query.offsets() == list(range(10))
    (orders / f"segment-{0:020}.kfs").write_bytes(kt.kafscale_segment(data(0), 0, 1, 2))
    with pytest.raises(ValueError, match="do not read KafScale's segments"):
        query.offsets()


# Everything at once


@given(st.data())
def test_every_record_comes_once(data_: st.DataObject) -> None:
    with TemporaryDirectory() as root:
        _append_and_read(Path(root), data_)


def _append_and_read(root: Path, data_: st.DataObject) -> None:
    """Appends between micro-batches, of which some fail and are read again."""
    ends = {0: 0, 1: 0}
    bases = {0: 0, 1: 0}
    torn = {0: b"", 1: b""}
    append(root / "orders-0", b"")
    query = Query(root)
    found: list[tuple[str, int, int]] = []
    limits = st.fixed_dictionaries(
        {},
        optional={
            "records": st.integers(1, 9),
            "bytes": st.integers(1, 900),
            "files": st.integers(1, 2),
        },
    )
    for _ in range(data_.draw(st.integers(1, 12))):
        match data_.draw(st.sampled_from(["append", "append", "tear", "roll", "read", "restart"])):
            case "append" | "tear" as what:
                place = data_.draw(st.integers(0, 1))
                count = data_.draw(st.integers(1, 5))
                append(root / f"orders-{place}", torn[place], bases[place])
                batch = data(ends[place], count)
                cut = len(batch) - (data_.draw(st.integers(1, 70)) if what == "tear" else 0)
                append(root / f"orders-{place}", batch[:cut], bases[place])
                torn[place] = batch[cut:]
                ends[place] += count
            case "roll":
                place = data_.draw(st.integers(0, 1))
                if ends[place]:
                    append(root / f"orders-{place}", torn[place], bases[place])
                    torn[place] = b""
                    bases[place] = ends[place]
                    append(root / f"orders-{place}", b"", bases[place])
            case "read":
                found += query.places(**data_.draw(limits))
            case "restart":
                if query.plan(Limits(**data_.draw(limits))):
                    query.restart()  # before the micro-batch was committed
                    table = query.read(["topic", "partition", "offset"])
                    query.commit()
                    found += zip(*(column.to_pylist() for column in table.columns), strict=True)
                query.restart()
    for place, rest in torn.items():
        append(root / f"orders-{place}", rest, bases[place])
    for _ in range(4):
        found += query.places()
    expected = [("orders", place, offset) for place in ends for offset in range(ends[place])]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("seed", range(3))
def test_every_record_of_a_log_that_is_written_meanwhile_comes_once(
    tmp_path: Path, seed: int
) -> None:
    """Another thread writes a few bytes at a time, rolls segments, and deletes old ones."""
    rng = random.Random(seed)
    folder = tmp_path / "orders-0"
    append(folder, b"")
    query = started(tmp_path)
    read_up_to = 0

    def write() -> None:
        base = offset = 0
        bases = [0]
        while offset < 600:
            if rng.random() < 0.1 and offset:
                base = offset
                bases.append(base)
                append(folder, b"", base)
            batch = data(offset, rng.randint(1, 9))
            offset += int.from_bytes(batch[57:61])
            with (folder / log_name(base)).open("ab", buffering=0) as log:
                while batch:
                    log.write(batch[: (cut := rng.randint(1, 60))])
                    batch = batch[cut:]
            while len(bases) > 1 and bases[1] <= read_up_to:
                old = folder / log_name(bases.pop(0))
                old.rename(old.with_suffix(".log.deleted"))

    writer = threading.Thread(target=write)
    writer.start()
    found: list[int] = []
    while True:
        is_done = not writer.is_alive()
        found += query.offsets(records=rng.randint(1, 50))
        read_up_to = len(found)
        if is_done and read_up_to == query.stream.reported_offsets()["orders"]["0"]:
            break
        if rng.random() < 0.2:
            query.restart()
    writer.join()
    assert found == list(range(len(found)))
    assert len(found) >= 600


def test_the_stream_of_a_process_is_its_own(orders: Path) -> None:
    options = stream_options(orders)
    assert from_json(LogStream(options).initial_offsets()) == {("orders", 0): 0}
    assert LogStream(options).reported_offsets() == {}


def test_offsets_in_two_segments_are_read_once(orders: Path) -> None:
    append(orders, data(8, 4), base_offset=8)
    query = started(orders)
    table = query.trigger(["offset", "baseOffset"])
    assert table["offset"].to_pylist() == list(range(12))
    assert table["baseOffset"].to_pylist() == read_table(orders)["baseOffset"].to_pylist()
    assert table["baseOffset"].to_pylist()[8] < 8  # in the first segment
