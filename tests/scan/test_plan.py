"""The plan of a query: segments, stretches of them, and tasks."""

from __future__ import annotations

import json
import logging
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
import reference
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st
from scanning import (
    FOLDERS,
    copied,
    far_away,
    logs_of,
    offsets_of,
    options_of,
    plan_of,
    read_in_small_pieces,
    read_rows,
    read_table,
    records_by_segment,
    stretches_of,
    write_partition,
)
from strategies import partitions

import kafkajit
import kafkajit.scan.packing
import kafkajit.scan.plan
import kafkajit.testing as kt
from kafkajit.places.locations import stored_file
from kafkajit.reader import SegmentReader
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.partitions import find_partitions
from kafkajit.scan.predicates import Predicate, meets
from kafkajit.scan.table import plan_table

by_place = pytest.mark.parametrize("is_far", [False, True], ids=["mapped", "in ranges"])
TEN = 10  # offsets a segment
SIZE = len(kt.batch([kt.Record(value=b"v")]))


def batches(first: int, count: int = TEN) -> bytes:
    return b"".join(
        kt.batch([kt.Record(value=b"v")], base_offset=first + place, base_timestamp=first + place)
        for place in range(count)
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two topics of two partitions, each of three segments of ten batches of a record."""
    for topic in ("orders", "payments"):
        for partition in (0, 1):
            segments = {base: batches(base) for base in (0, 10, 20)}
            write_partition(tmp_path / "logs", segments, f"{topic}-{partition}")
    return tmp_path / "logs"


def read_by(plan: Any) -> list[tuple[str, int, list[tuple[int, int]]]]:
    """By segment: the folder, the base offset, and the stretches in batches."""
    read: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for split in [split for task in plan.tasks for split in task]:
        path = Path(split.file.path)
        stretch = (split.start // SIZE, split.end // SIZE)
        read.setdefault((path.parent.name, int(path.stem)), []).append(stretch)
    return [(*where, stretches) for where, stretches in read.items()]


def offset(test: str, value: Any) -> Predicate:
    return Predicate("offset", test, value)


ALL = [
    (f"{topic}-{partition}", base, [(0, 10)])
    for topic in ("orders", "payments")
    for partition in (0, 1)
    for base in (0, 10, 20)
]


def test_without_conditions_all_is_read(root: Path) -> None:
    plan = plan_of(root)
    assert read_by(plan) == ALL
    assert (plan.segments, plan.segments_read, plan.total_bytes) == (12, 12, 120 * SIZE)


PRUNED: list[tuple[list[Predicate], list[tuple[str, int, list[tuple[int, int]]]]]] = [
    ([Predicate("topic", "=", "orders")], ALL[:6]),
    ([Predicate("topic", "startswith", "pay"), Predicate("partition", ">", 0)], ALL[9:]),
    ([Predicate("partition", "in", (0, 5), negated=True)], ALL[3:6] + ALL[9:]),
    ([Predicate("topic", "=", "refunds")], []),
    (
        [Predicate("topic", "=", "orders"), Predicate("partition", "=", 0), offset(">=", 15)],
        [("orders-0", 10, [(5, 10)]), ("orders-0", 20, [(0, 10)])],
    ),
    ([offset("=", 12)], [(folder, 10, [(2, 3)]) for folder, base, _ in ALL if base == 10]),
    ([offset("in", (3, 5))], [(folder, 0, [(3, 6)]) for folder, base, _ in ALL if base == 0]),
    ([offset("<", 0)], []),
    ([offset(">", 2**63 - 1)], []),
    ([offset(">", 5), offset("<", 5)], []),
]


@pytest.mark.parametrize(("predicates", "expected"), PRUNED)
def test_segments_are_dropped_by_name_and_batches_by_header(
    predicates: list[Predicate], expected: list[Any], root: Path
) -> None:
    plan = plan_of(root, predicates=predicates)
    assert read_by(plan) == expected
    listed = [
        folder
        for folder, _, _ in ALL
        if meets({"topic": folder[:-2], "partition": int(folder[-1])}, predicates)
    ]
    assert plan.segments == len(listed)
    assert plan.segments_read == len(expected)
    assert plan.total_bytes == len(listed) * 10 * SIZE


@pytest.mark.parametrize(("predicates", "expected"), PRUNED)
def test_remote_files_without_an_index_are_judged_only_by_their_names(
    predicates: list[Predicate], expected: list[Any], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(far_away(monkeypatch, root), predicates=predicates)
    # A segment may go on where the next has begun.
    last = {folder: base for folder, base, _ in expected}
    assert read_by(plan) == [
        (folder, base, [(0, 10)]) for folder, base, _ in ALL if base <= last.get(folder, -1)
    ]


def test_a_condition_loses_no_row_of_segments_that_overlap(tmp_path: Path) -> None:
    """A log that was put together from copies, or that a broker left in the middle of a change."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    for base, count in ((0, 12), (10, 5)):
        batches = [kt.batch([kt.Record(b"k")], base_offset=base + n) for n in range(count)]
        (folder / f"{base:020}.log").write_bytes(b"".join(batches))
    assert offsets_of(folder, predicates=[offset(">", 9)]) == [10, 11, 12, 13, 14]
    both = offsets_of(folder, predicates=[offset(">", 9)], overlaps="all")
    assert both == [10, 11, 10, 11, 12, 13, 14]
    since = '{"orders": {"0": 10}}'
    assert offsets_of(folder, startingOffsets=since) == [10, 11, 12, 13, 14]


def test_the_plan_is_logged(
    root: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "kafkajit")
    uri = far_away(monkeypatch, root)
    plan_of(f"{uri}/orders-*", uri, predicates=[offset("<", 15)], maxPartitionBytes=10 * SIZE)
    assert caplog.messages == [
        f"{uri}/orders-*: listed 6 files in 5 requests, 0 bytes",
        # The end of each segment, in case that it overlaps the next one, or has its name.
        f"{uri}: listed 12 files in 31 requests, 5,568 bytes",
        f"{uri}/orders-*, {uri}: 8 of 12 segments, 8 splits in 8 tasks: "
        f"{80 * SIZE:,} bytes to read, {40 * SIZE:,} skipped",
    ]


@pytest.mark.parametrize("column", ["baseOffset", "lastOffset"])
def test_batches_are_dropped_by_their_offsets(column: str, root: Path) -> None:
    plan = plan_of(root / "orders-0", predicates=[Predicate(column, ">=", 15)], kind="batches")
    assert read_by(plan) == [("orders-0", 10, [(5, 10)]), ("orders-0", 20, [(0, 10)])]


@pytest.mark.parametrize(
    ("kind", "column"), [("batches", "maxTimestamp"), ("records", "timestamp")]
)
def test_batches_are_dropped_by_their_largest_timestamp(kind: str, column: str, root: Path) -> None:
    since = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=15)
    plan = plan_of(root / "orders-0", predicates=[Predicate(column, ">=", since)], kind=kind)
    assert read_by(plan) == [("orders-0", 10, [(5, 10)]), ("orders-0", 20, [(0, 10)])]


@by_place
def test_a_batch_is_found_by_both_its_ends(
    is_far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [1, 5, 2, 30]
    firsts = [sum(sizes[:place]) for place in range(4)]
    segments = {
        first: kt.batch([kt.Record()] * size, base_offset=first)
        for first, size in zip(firsts, sizes, strict=True)
    }
    folder = write_partition(tmp_path, {0: segments[0] + segments[1], 6: segments[6] + segments[8]})
    location = far_away(monkeypatch, folder) if is_far else str(folder)
    for first, size in zip(firsts, sizes, strict=True):
        ends = [Predicate("baseOffset", "=", first), Predicate("lastOffset", "=", first + size - 1)]
        rows = read_rows(location, kind="batches", predicates=ends)
        assert first in [row["baseOffset"] for row in rows]
    wrong = [Predicate("baseOffset", "=", 8), Predicate("lastOffset", "<", 0)]
    assert plan_of(location, kind="batches", predicates=wrong).tasks == []


# Splits and tasks.


@pytest.mark.parametrize("folder", FOLDERS[::3], ids=lambda folder: folder.name)
@pytest.mark.parametrize("least", [1, 100, 500, 10**9])
def test_splits_are_all_of_a_segment_once_and_cut_where_batches_begin(
    folder: Path, least: int
) -> None:
    plan = plan_of(folder, maxPartitionBytes=least)
    for log in logs_of(folder):
        content = log.read_bytes()
        begins = {batch.position for batch in reference.read_batches(content)[0]} | {0}
        splits = [split for task in plan.tasks for split in task if split.file.path == str(log)]
        assert [split.start for split in splits[1:]] == [split.end for split in splits[:-1]]
        if content:
            assert (splits[0].start, splits[-1].end) == (0, len(content))
        assert {split.start for split in splits} <= begins
        assert all(split.size > 0 for split in splits)


def test_pieces_are_as_large_as_is_asked_for(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: batches(0, 100)})
    for share in (1, 7, 33):
        plan = plan_of(folder, maxPartitionBytes=share * SIZE)
        sizes = [(end - start) // SIZE for start, end in stretches_of(plan)]
        assert len(sizes) == -(-100 // share)
        assert max(sizes) <= share
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("in_small_pieces", [False, True], ids=["at once", "in runs"])
def test_a_part_of_a_segment_is_split_like_the_whole(
    in_small_pieces: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if in_small_pieces:
        read_in_small_pieces(monkeypatch)
    folder = write_partition(tmp_path, {0: batches(0, 100)})
    asked = [offset(">=", 35), offset("<", 52)]
    plan = plan_of(folder, predicates=asked, maxPartitionBytes=10 * SIZE)
    assert read_by(plan) == [("orders-0", 0, [(35, 40), (40, 50), (50, 52)])]


def test_small_splits_share_a_task_up_to_its_bytes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafkajit.scan.packing, "_OPEN_COST", 0)
    tasks = plan_of(root, maxPartitionBytes=25 * SIZE).tasks
    assert [len(task) for task in tasks] == [2] * 6
    assert [len(task) for task in plan_of(root, maxPartitionBytes=120 * SIZE).tasks] == [12]
    assert [len(task) for task in plan_of(root, maxPartitionBytes=10 * SIZE).tasks] == [1] * 12


def test_opening_a_file_counts_as_some_of_a_tasks_bytes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafkajit.scan.packing, "_OPEN_COST", 10 * SIZE)
    # 10 to open and 10 to read, of 60 and the first opening
    assert [len(task) for task in plan_of(root, maxPartitionBytes=60 * SIZE).tasks] == [3] * 4


def test_by_default_a_task_has_what_a_core_gets_of_all_within_limits(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafkajit.scan.packing, "_OPEN_COST", 0)
    assert len(plan_of(root).tasks) == 1  # at least 16 MiB
    monkeypatch.setattr(kafkajit.scan.packing, "_LEAST_BYTES", 1)
    assert 8 <= len(plan_of(root).tasks) <= 12
    few = replace(ScanOptions.parse({"path": str(root)}), parallelism=2)
    assert 2 <= len(plan_table(few, []).tasks) <= 4
    monkeypatch.setattr(kafkajit.scan.packing, "_MOST_BYTES", 5 * SIZE)
    assert len(plan_of(root).tasks) == 24


def test_a_task_may_read_a_whole_partition(root: Path) -> None:
    plan = plan_of(root, oneTaskPerPartition="true", maxPartitionBytes=1)
    folders = [{split.file.folder for split in task} for task in plan.tasks]
    assert [len(folder) for folder in folders] == [1] * len(find_partitions(options_of(root)))
    assert read_rows(root, oneTaskPerPartition="true") == read_rows(root)


def test_a_segment_beyond_the_framing_budget_is_one_split(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafkajit.scan.plan, "_FRAMING_BUDGET", 25 * SIZE)
    plan = plan_of(root / "orders-0", predicates=[offset("in", (1, 11, 25))])
    assert read_by(plan) == [
        ("orders-0", 0, [(1, 10)]),
        ("orders-0", 10, [(0, 10)]),
        ("orders-0", 20, [(0, 10)]),
    ]
    assert offsets_of(root / "orders-0", predicates=[offset("=", 25)]) == [25]


@pytest.mark.parametrize(
    "asked",
    [{}, {"isolationLevel": "read_committed"}, {"startingOffsets": '{"segments": {"0": 50}}'}],
)
def test_an_index_splits_a_remote_segment_for_any_query(
    asked: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DATA / "v2" / "segments-0"
    location = f"{far_away(monkeypatch, folder.parent)}/{folder.name}"
    plan = plan_of(location, maxPartitionBytes=500, **asked)
    assert len(stretches_of(plan)) >= 3 * plan.segments_read
    assert plan.segments_read == (3 if "startingOffsets" in asked else 4)
    expected = records_by_segment(folder)
    rows = read_table(location, maxPartitionBytes=500, **asked)
    assert rows.equals(expected.slice(50 if "startingOffsets" in asked else 0))


def test_a_remote_segment_without_an_index_is_one_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(DATA / "v2" / "segments-0", tmp_path, without=["*.index"])
    plan = plan_of(far_away(monkeypatch, folder), maxPartitionBytes=1)
    assert stretches_of(plan) == [(0, log.stat().st_size) for log in logs_of(folder)]


@by_place
def test_an_index_that_lies_at_a_cut_makes_no_row_wrong(
    is_far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = kt.batch([kt.Record(value=b"planted")], base_offset=5)
    outer = kt.batch([kt.Record(value=inner)] * 2, base_offset=10)
    folder = write_partition(tmp_path, {0: batches(0) + outer + batches(12)})
    planted = (batches(0) + outer).index(inner)
    index = (15).to_bytes(4) + planted.to_bytes(4)
    (folder / "00000000000000000000.index").write_bytes(index)
    location = far_away(monkeypatch, folder) if is_far else str(folder)
    if is_far:
        wrong = pytest.raises(kafkajit.CorruptIndexError, match="where the segment was split: its")
        with wrong:
            read_rows(location, maxPartitionBytes=12 * SIZE)
    else:
        assert offsets_of(location, maxPartitionBytes=12 * SIZE) == list(range(22))
    assert len(offsets_of(location)) == 22


@by_place
def test_the_plan_counts_segments_without_an_index(
    is_far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafkajit.scan.plan, "_INDEXED", 9 * SIZE)
    folder = write_partition(
        tmp_path, {0: batches(0), 10: batches(10), 20: batches(20)[: 8 * SIZE]}
    )
    (folder / f"{0:020}.index").write_bytes((5).to_bytes(4) + (5 * SIZE).to_bytes(4))
    (folder / f"{10:020}.index").write_bytes(b"")
    location = far_away(monkeypatch, folder) if is_far else str(folder)
    stated = "; 1 segments have no offset index"
    assert str(plan_of(location, predicates=[offset(">=", 3)])).endswith(stated)
    assert stated not in str(plan_of(location))


@by_place
def test_bytes_that_only_look_like_a_batch_are_not_a_cut(
    is_far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    inner = kt.batch([kt.Record(value=b"planted")], base_offset=5, crc=1)
    outer = kt.batch([kt.Record(value=inner)] * 2, base_offset=10)
    folder = write_partition(tmp_path, {0: batches(0) + outer + batches(12)})
    planted = (batches(0) + outer).index(inner)
    (folder / f"{0:020}.index").write_bytes((15).to_bytes(4) + planted.to_bytes(4))
    location = far_away(monkeypatch, folder) if is_far else str(folder)
    assert offsets_of(location, maxPartitionBytes=12 * SIZE) == list(range(22))
    assert f"names position {planted} for offset 15, where no sound batch" in caplog.text


# Options for offsets and timestamps.


@by_place
def test_offsets_begin_and_end_by_topic_and_partition(
    is_far: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = far_away(monkeypatch, root) if is_far else str(root)
    rows = read_rows(
        location,
        startingOffsets='{"orders": {"0": 15, "1": -2}, "payments": {"1": 99}}',
        endingOffsets='{"orders": {"0": 18, "1": 3}, "payments": {"0": -1, "1": -1}}',
    )
    read: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        read.setdefault((row["topic"], row["partition"]), []).append(row["offset"])
    assert read == {
        ("orders", 0): [15, 16, 17],
        ("orders", 1): [0, 1, 2],
        ("payments", 0): list(range(30)),
    }


def test_offsets_and_predicates_are_both_met(root: Path) -> None:
    read = offsets_of(
        root / "orders-0",
        predicates=[offset("<", 22)],
        startingOffsets='{"orders": {"0": 19}}',
        endingOffsets='{"orders": {"0": 25}}',
    )
    assert read == [19, 20, 21]


# name, what the offsets name, the end of the error
WRONG_PLACES = [
    ("startingOffsets", {"ordres": {"0": 26}}, "ordres-0, {by} at {at}: did you mean 'orders-0'?"),
    ("endingOffsets", {"orders": {"0": 5, "7": 5}}, "orders-7, {by} at {at}: orders has the part"),
    ("startingOffsets", {"orders": {"7": -2}}, "orders-7, {by}"),
    ("endingOffsets", {"none": {"0": -1}}, "none-0, {by} at {at}; there are: orders, payments"),
    ("startingOffsets", {"none": {}}, "none, {by}"),
]


@pytest.mark.parametrize(("name", "offsets", "end"), WRONG_PLACES)
def test_offsets_of_a_partition_that_does_not_exist_are_an_error(
    name: str, offsets: dict[str, dict[str, int]], end: str, root: Path
) -> None:
    words = f"there are no segments of {end}".format(
        by="which startingOffsets or endingOffsets names,", at=root
    )
    asked: list[Predicate] = [Predicate("topic", "=", "payments")]
    for predicates in ([], asked):
        with pytest.raises(FileNotFoundError, match=f"^{re.escape(words)}"):
            offsets_of(root, predicates=predicates, **{name: json.dumps(offsets)})


def test_a_condition_does_not_make_the_offsets_of_other_topics_wrong(root: Path) -> None:
    asked = [Predicate("topic", "=", "payments"), Predicate("partition", "=", 0)]
    offsets = '{"orders": {"1": 15}}'
    assert offsets_of(root, predicates=asked, startingOffsets=offsets) == list(range(30))
    gone = [Predicate("topic", "=", "nothing")]
    assert offsets_of(root, predicates=gone, startingOffsets=offsets) == []


def test_a_folder_that_names_no_partition_has_no_offsets_to_begin_at(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: batches(0)}, "copies")
    with pytest.raises(FileNotFoundError, match=f"copies-0, .* at {folder}$"):
        offsets_of(folder, startingOffsets='{"copies": {"0": 5}}')


def first_offset_since(logs: list[bytes], timestamp: int) -> int | None:
    """KafkaConsumer.offsetsForTimes: the earliest record with this timestamp or a later one."""
    for log in logs:
        for row in reference.rows(log):
            if row["timestamp"] >= timestamp:
                return int(row["offset"])
    return None


MILLIS = st.one_of(
    st.integers(1_700_000_000_000 - 1, 1_700_000_000_021),
    st.sampled_from([0, 2**63 - 1, 1_800_000_000_000]),
)


@given(st.data())
def test_timestamps_begin_and_end_as_in_sparks_connector(data: st.DataObject) -> None:
    folders = {"orders-0": data.draw(partitions()), "orders-1": data.draw(partitions())}
    starting, ending = data.draw(st.tuples(st.none() | MILLIS, st.none() | MILLIS))
    options: dict[str, object] = {"maxPartitionBytes": data.draw(st.sampled_from([1, 10**6]))}
    if starting is not None:
        options["startingTimestamp"] = starting
    if ending is not None:
        options["endingTimestamp"] = ending
    expected = []
    for segments in folders.values():
        logs = list(segments.values())
        first = None if starting is None else first_offset_since(logs, starting)
        behind = None if ending is None else first_offset_since(logs, ending)
        expected += [
            row["offset"]
            for log in logs
            for row in reference.rows(log)
            if (starting is None or (first is not None and row["offset"] >= first))
            and (behind is None or row["offset"] < behind)
        ]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        for name, segments in folders.items():
            write_partition(Path(folder), segments, name)
        if data.draw(st.booleans()):
            folder = far_away(monkeypatch, Path(folder))
        assert offsets_of(folder, **options) == expected


def test_a_timestamp_takes_precedence_over_offsets(root: Path) -> None:
    # startingTimestamp over startingOffsets, as the connector's documentation has it
    folder = root / "orders-0"
    offsets = json.dumps({"orders": {"0": 15}})
    assert offsets_of(folder, startingTimestamp="5ms", startingOffsets=offsets) == list(
        range(5, 30)
    )
    assert offsets_of(folder, endingTimestamp="25ms", endingOffsets=offsets) == list(range(25))
    both = {"startingOffsets": offsets, "endingTimestamp": "17ms"}
    assert offsets_of(folder, **both) == [15, 16]


def test_timestamps_are_looked_up_as_the_records_are_read(tmp_path: Path) -> None:
    wrong = bytearray(batches(0))
    wrong[SIZE + 17] ^= 1  # a checksum
    folder = write_partition(tmp_path, {0: bytes(wrong)})
    with pytest.raises(kafkajit.CorruptRecordError):
        offsets_of(folder, startingTimestamp="1ms")
    assert offsets_of(folder, startingTimestamp="1ms", checkCrcs=False) == list(range(1, 10))
    assert offsets_of(folder, startingTimestamp="1ms", mode="DROPMALFORMED") == list(range(2, 10))
    large = kt.batch([kt.Record(value=bytes(1000), timestamp=5)], codec="zstd", base_timestamp=5)
    folder = write_partition(tmp_path, {0: large})
    assert offsets_of(folder, endingTimestamp="5ms") == []
    with pytest.raises(kafkajit.DecompressionLimitError):
        offsets_of(folder, endingTimestamp="5ms", maxDecompressedBytes=100)


@by_place
def test_nothing_is_read_if_no_record_is_late_enough(
    is_far: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = far_away(monkeypatch, root) if is_far else str(root)
    assert plan_of(location, startingTimestamp="30ms").tasks == []
    assert len(offsets_of(location, endingTimestamp="30ms")) == 120


# Which files are segments.


def test_the_same_file_named_twice_is_read_once(root: Path) -> None:
    log = root / "orders-0" / "00000000000000000010.log"
    assert offsets_of(log, log, f"file:{log}", root / "orders-0" / "..") == offsets_of(root)
    assert offsets_of(log, f"{log.parent}/*1?.log", log.parent) == list(range(30))
    files = read_rows(root, root / "orders-0", log, kind="files")
    assert len(files) == len({row["path"] for row in files}) == 12


@pytest.mark.parametrize("kind", ["records", "batches", "corruption"])
def test_files_of_other_names_are_left_out(kind: str, root: Path) -> None:
    expected = read_rows(root, kind=kind)
    log = root / "orders-0" / "00000000000000000010.log"
    for suffix in (".deleted", ".cleaned", ".swap", "~", ".gz"):
        shutil.copy(log, f"{log}{suffix}")
    shutil.copy(log, log.with_name("10.log"))
    shutil.copy(log, log.with_name("copy of 00000000000000000010.log"))
    log.with_name("00000000000000000010.snapshot").write_bytes(b"\x01")
    assert read_rows(root, kind=kind) == expected


HEX = "0123456789abcdef0123456789abcdef"


@by_place
@pytest.mark.parametrize("suffix", ["delete", "future", "stray"])
def test_a_partition_on_its_way_is_left_out_unless_it_is_named(
    suffix: str, is_far: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = offsets_of(root)
    (root / "orders-1").rename(root / f"orders-1.{HEX}-{suffix}")
    location = far_away(monkeypatch, root) if is_far else str(root)
    assert offsets_of(location) == before[30:]
    assert offsets_of(f"{location}/*") == before[30:]
    assert offsets_of(f"{location}/orders-[01]*/*.log") == before[:30]
    for named in (f"orders-1.{HEX}-{suffix}", f"orders-*-{suffix}"):
        rows = read_rows(f"{location}/{named}")
        assert {(row["topic"], row["partition"]) for row in rows} == {("orders", 1)}
        assert [row["offset"] for row in rows] == list(range(30))


@pytest.mark.parametrize("name", ["00000000000000000010.log.deleted", "notes.bin", "a b%20.log"])
@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}", "{}/../../orders-0/{name}"])
def test_a_file_that_is_named_is_a_segment_whatever_its_name(
    name: str, spelling: str, root: Path
) -> None:
    path = root / "orders-0" / name
    shutil.copy(root / "orders-0" / "00000000000000000010.log", path)
    location = spelling.format(path.parent if "{name}" in spelling else path, name=name)
    assert offsets_of(location.replace("orders-0/../../", "orders-0/../")) == list(range(10, 20))


def test_a_remote_file_that_is_named_is_a_segment(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "orders-0" / "00000000000000000010.log").rename(root / "orders-0" / "x.bin")
    uri = far_away(monkeypatch, root)
    assert offsets_of(f"{uri}/orders-0/x.bin") == list(range(10, 20))
    assert offsets_of(f"{uri}/orders-0") == [*range(10), *range(20, 30)]


@pytest.mark.parametrize("glob", ["*.log*", "*", "0*{.log,.log.deleted}"])
def test_a_glob_filter_selects_segments_by_name(glob: str) -> None:
    folder = DATA / "v2" / "compacted-0"
    assert len(logs_of(folder)) == 2
    segments = [path for path in folder.glob("*.log*") if path.suffix in (".log", ".deleted")]
    assert len(segments) > 5
    with TemporaryDirectory() as root:
        for path in segments:
            shutil.copy(path, root)
        read = sorted(offsets_of(root, pathGlobFilter=glob))
        for low in (0, 20, 50, 90):
            some = offsets_of(root, pathGlobFilter=glob, predicates=[offset(">=", low)])
            assert sorted(some) == [one for one in read if one >= low]
        assert offsets_of(root, pathGlobFilter="*.log") == offsets_of(folder)
    expected = [kafkajit.read_records(path)["offset"].to_pylist() for path in segments]
    assert read == sorted(one for offsets in expected for one in offsets)


def test_a_file_of_another_name_may_reach_over_the_next_segment(root: Path) -> None:
    folder = root / "orders-0"
    (folder / "00000000000000000000.log.bak").write_bytes(batches(0, 30))
    asked = [offset(">=", 15)]
    read = offsets_of(folder, pathGlobFilter="*.log*", predicates=asked)
    assert sorted(read) == sorted([*range(15, 30)] * 2)


def test_segments_end_where_the_next_begins(root: Path) -> None:
    (partition,) = find_partitions(options_of(root / "orders-0"))
    assert [segment.offsets[1] for segment in partition] == [9, 19, 2**63 - 1]
    assert [segment.offsets[0] for segment in partition] == [0, 10, 20]
    assert [segment.path.base_offset for segment in partition] == [0, 10, 20]


def test_partitions_are_in_order_and_so_are_their_segments(root: Path) -> None:
    found = find_partitions(options_of(root / "payments-1", root / "orders-1", root / "orders-0"))
    assert [partition[0].path[:2] for partition in found] == [
        ("orders", 0),
        ("orders", 1),
        ("payments", 1),
    ]


def test_empty_segments_are_not_read(root: Path) -> None:
    (root / "orders-0" / "00000000000000000030.log").touch()
    plan = plan_of(root / "orders-0")
    assert (plan.segments, plan.segments_read) == (4, 3)


def test_a_folder_of_empty_segments_is_not_an_error(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: b""})
    plan = plan_of(folder)
    assert plan.tasks == []
    assert str(plan) == "0 of 1 segments, 0 splits in 0 tasks: 0 bytes to read, 0 skipped"


@by_place
@pytest.mark.parametrize("kind", ["records", "batches", "corruption"])
def test_a_folder_without_segments_is_an_error_that_explains_paths(
    kind: str, is_far: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "logs"
    (folder / "orders-0").mkdir(parents=True)
    (folder / "orders-0" / "notes.txt").touch()
    location = far_away(monkeypatch, folder) if is_far else str(folder)
    both = rf"{re.escape(location)}/orders-\*, {re.escape(location)}"
    message = rf"^no segments \(20 digits and .log\) at {both}: a path is"
    with pytest.raises(FileNotFoundError, match=message):
        plan_of(f"{location}/orders-*", f"{location}/", kind=kind)
    (row,) = read_rows(location, kind="files")
    assert row["path"] == f"{location}/orders-0/notes.txt"
    with pytest.raises(FileNotFoundError, match="pathGlobFilter allows other names"):
        plan_of(location, pathGlobFilter="*.bin", kind=kind)


@pytest.mark.parametrize("kind", ["records", "batches", "files", "corruption"])
def test_a_missing_path_is_an_error(kind: str, root: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"^there is nothing at {root}/refunds-0$"):
        read_table(root, root / "refunds-0", kind=kind)


# Segments that change under the query's feet.


def test_a_segment_that_has_grown_is_read_as_it_was(tmp_path: Path) -> None:
    torn = batches(10, 1)[:40]
    folder = write_partition(tmp_path, {0: batches(0) + torn})
    log = logs_of(folder)[0]
    plan = plan_of(folder, maxPartitionBytes=3 * SIZE)
    log.write_bytes(batches(0, 20))
    options = options_of(folder)
    schema = kafkajit.scan.table.schema_of(options)
    read = [
        rows
        for task in plan.tasks
        for split in task
        for rows in kafkajit.scan.table.read_split(split, schema, options)
    ]
    assert pa.Table.from_batches(read)["offset"].to_pylist() == list(range(10))


def test_a_stretch_longer_than_its_source_ends_with_it() -> None:
    source = stored_file(kt.SAMPLE + "/orders-0/00000000000000000000.log").open()
    reader = SegmentReader(source, end=source.content.size + 1000)
    assert sum(map(len, reader.framed())) > 3
