"""The tables of a log folder: the same rows, however it is split, stored and read."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st
from scanning import (
    FOLDERS,
    batches_by_segment,
    by_folder,
    copied,
    far_away,
    logs_of,
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
from typed_logs import schema_record, write_registry

import kafkajit
import kafkajit.reader
import kafkajit.testing as kt
from kafkajit.places.locations import find_files
from kafkajit.scan.options import KINDS
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.table import schema_of
from kafkajit.schema import (
    BATCH_COLUMNS,
    CORRUPTION_COLUMNS,
    FILE_COLUMNS,
    INDEX_FILE_COLUMNS,
    RECORD_COLUMNS,
    REMOTE_SEGMENT_COLUMNS,
    SCHEMA_COLUMNS,
)
from kafkajit.state.sidecar_files import SIDECAR_FILES
from kafkajit.storage.stored_file import StoredFile

LEASTS = ["1", "300", "1g"]  # maxPartitionBytes: a batch each, a few, all in one
EPOCH = datetime.fromtimestamp(0, UTC)
# Several segments of many batches, which their indexes split.
_SPLIT = ("segments-0", "preallocated-0", "v1-segments-gzip-0")
SPLIT = [folder for folder in FOLDERS if folder.name in _SPLIT]
by_split_folder = pytest.mark.parametrize("folder", SPLIT, ids=lambda folder: folder.name)
by_place = pytest.mark.parametrize("is_far", [False, True], ids=["mapped", "in ranges"])


def test_the_corpus_has_folders() -> None:
    assert len(FOLDERS) > 45
    assert {"v2", "internal", "old", "tiered"} == {folder.parent.name for folder in FOLDERS}
    assert len(SPLIT) == len(_SPLIT)


@by_folder
def test_a_folders_rows_are_those_of_its_segments_however_it_is_split(folder: Path) -> None:
    records, batches = records_by_segment(folder), batches_by_segment(folder)
    for least in LEASTS:
        assert read_table(folder, maxPartitionBytes=least).equals(records), least
        read = read_table(folder, kind="batches", maxPartitionBytes=least)
        assert read.equals(batches), least


@by_folder
def test_a_brokers_log_has_no_corruption_however_it_is_split(folder: Path) -> None:
    records = records_by_segment(folder)
    for least in LEASTS[1:]:
        assert read_table(folder, kind="corruption", maxPartitionBytes=least).num_rows == 0
        lenient = read_table(folder, mode="PERMISSIVE", maxPartitionBytes=least)
        assert lenient["corruption"].null_count == lenient.num_rows
        assert lenient.drop_columns(["corruption"]).equals(records)


@by_folder
def test_a_folder_that_is_read_in_ranges_has_the_same_rows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = records_by_segment(folder)
    location = f"{far_away(monkeypatch, folder.parent)}/{folder.name}"
    for least in LEASTS[1:]:
        assert read_table(location, maxPartitionBytes=least).equals(records), least
    batches = batches_by_segment(folder, location)
    assert read_table(location, kind="batches", maxPartitionBytes=300).equals(batches)
    assert read_table(location, kind="corruption", maxPartitionBytes=300).num_rows == 0


@by_folder
@by_place
def test_pieces_smaller_than_a_batch_change_nothing(
    folder: Path, is_far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = records_by_segment(folder)
    largest = max(log.stat().st_size for log in logs_of(folder))
    location = str(folder)
    if is_far:
        location = f"{far_away(monkeypatch, folder.parent)}/{folder.name}"
    batches = batches_by_segment(folder, location)
    read_in_small_pieces(monkeypatch, window=max(64, largest // 100))
    assert read_table(location, maxPartitionBytes=700).equals(records)
    assert read_table(location, kind="batches").equals(batches)
    assert read_table(location, kind="corruption").num_rows == 0


def test_a_root_is_all_of_its_partitions() -> None:
    root = DATA / "internal"
    folders = sorted(folder for folder in FOLDERS if folder.parent == root)
    assert len(folders) == 7
    expected = pa.concat_tables(map(records_by_segment, folders))
    assert read_table(root).equals(expected)
    assert read_table(*reversed(folders)).equals(expected)


# Bytes in the place of an index, none of which may change a row.


def _of_another_segment(index: Path) -> bytes:
    entries = index.read_bytes()
    return b"".join(
        entries[at : at + 4] + (int.from_bytes(entries[at + 4 : at + 8]) + 7).to_bytes(4)
        for at in range(0, len(entries), 8)
    )


def _at_the_last_byte(index: Path) -> bytes:
    return b"\0\0\0\x05" + (index.with_suffix(".log").stat().st_size - 1).to_bytes(4)


INDEXES: dict[str, Callable[[Path], bytes | None]] = {
    "removed": lambda _: None,
    "empty": lambda _: b"",
    "preallocated": lambda _: bytes(1024),
    "preallocated behind its entries": lambda index: index.read_bytes() + bytes(1024),
    "of an entry less": lambda index: index.read_bytes()[:-8],
    "past the end": lambda _: bytes.fromhex("00000005 00ffffff"),
    "with an entry at the beginning": lambda _: bytes.fromhex("00000005 00000000"),
}
WRONG_INDEXES: dict[str, Callable[[Path], bytes | None]] = {
    "cut inside an entry": lambda index: index.read_bytes()[:-3],
    "of other positions": _of_another_segment,
    "at the last byte": _at_the_last_byte,
    "of lower offsets": lambda index: bytes(4) + index.read_bytes()[4:8],
    "negative": lambda _: b"\xff" * 64,
    "text": lambda _: b"This is no index, though it has bytes enough to be one.",
    "of a falling position": lambda _: bytes.fromhex("7fffffff 00000001 00000000 00000000"),
}


def with_indexes(folder: Path, to: Path, content: Callable[[Path], bytes | None]) -> Path:
    changed = copied(folder, to)
    for index in changed.glob("*.index"):
        instead = content(folder / index.name)
        if instead is None:
            index.unlink()
        else:
            index.write_bytes(instead)
    return changed


@by_split_folder
@by_place
@pytest.mark.parametrize("kind", INDEXES)
def test_a_sparse_index_changes_no_row(
    kind: str,
    is_far: bool,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    changed = with_indexes(folder, tmp_path, INDEXES[kind])
    location = far_away(monkeypatch, changed) if is_far else str(changed)
    expected = records_by_segment(folder)
    for least in (1, 700):
        assert read_table(location, maxPartitionBytes=least).equals(expected)
        stretches = stretches_of(plan_of(location, maxPartitionBytes=least))
        assert all(start < end for start, end in stretches)
    assert not caplog.records


@by_split_folder
@by_place
@pytest.mark.parametrize("kind", WRONG_INDEXES)
def test_a_wrong_index_is_reported_and_changes_no_row(
    kind: str,
    is_far: bool,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    changed = with_indexes(folder, tmp_path, WRONG_INDEXES[kind])
    location = far_away(monkeypatch, changed) if is_far else str(changed)
    expected = records_by_segment(folder)
    assert read_table(location).equals(expected)
    assert not caplog.records  # a segment in one piece needs no index
    assert read_table(location, maxPartitionBytes=1).equals(expected)
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert f"{location}/{logs_of(folder)[0].stem}.index" in caplog.text
    assert caplog.text.count("the segment is split without it") == len(logs_of(folder))


def test_an_index_splits_at_its_positions_without_framing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def framed(*_: object) -> None:
        raise AssertionError("read the log's headers")

    monkeypatch.setattr(kafkajit.walk.walk.Walk, "framed", framed)
    folder = DATA / "v2" / "segments-0"
    index = logs_of(folder)[0].with_suffix(".index").read_bytes()
    cuts = [int.from_bytes(index[at + 4 : at + 8]) for at in range(0, len(index), 8)]
    plan = plan_of(logs_of(folder)[0].parent, maxPartitionBytes=1)
    size = logs_of(folder)[0].stat().st_size
    expected = list(zip([0, *cuts], [*cuts, size], strict=True))
    assert stretches_of(plan)[: len(expected)] == expected


# Predicates: what a scan drops, Spark's own filter would have dropped.

COMPARISONS = ["=", "<", "<=", ">", ">="]
INSTANTS = st.builds(
    lambda millis, micros, zone: (
        EPOCH + timedelta(milliseconds=millis, microseconds=micros)
    ).astimezone(zone),
    st.one_of(st.integers(1_700_000_000_000, 1_700_000_000_020), st.sampled_from([-1, 0])),
    st.sampled_from([0, 0, 1, 500, 999]),
    st.sampled_from([UTC, timezone(timedelta(hours=2))]),
)


def predicates_on(column: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Predicate]:
    compared = st.builds(
        Predicate, st.just(column), st.sampled_from(COMPARISONS), values, st.booleans()
    )
    chosen = st.lists(values, max_size=3).map(tuple)
    listed = st.builds(Predicate, st.just(column), st.just("in"), chosen, st.booleans())
    return st.one_of(compared, listed)


def predicates_on_text(column: str, texts: list[str]) -> st.SearchStrategy[Predicate]:
    parts = st.sampled_from(texts)
    tests = st.sampled_from(["startswith", "endswith", "contains"])
    matched = st.builds(Predicate, st.just(column), tests, parts, st.booleans())
    return st.one_of(predicates_on(column, parts), matched)


NUMBERS = st.one_of(st.integers(0, 40), st.sampled_from([-1, 2**63 - 1, -(2**63)]))
ANYWHERE = [
    predicates_on_text("topic", ["orders", "ord", "payments", "", "s"]),
    predicates_on("partition", st.integers(0, 2)),
]
PREDICATES: dict[str, st.SearchStrategy[Predicate]] = {
    "records": st.one_of(
        *[predicates_on("offset", NUMBERS)] * 2,
        *[predicates_on("timestamp", INSTANTS)] * 2,
        predicates_on("baseOffset", NUMBERS),
        *ANYWHERE,
    ),
    "batches": st.one_of(
        *[predicates_on("baseOffset", NUMBERS)] * 2,
        *[predicates_on("lastOffset", NUMBERS)] * 2,
        predicates_on("maxTimestamp", INSTANTS),
        predicates_on("recordsCount", NUMBERS),
        *ANYWHERE,
    ),
    "files": st.one_of(
        predicates_on("baseOffset", NUMBERS),
        predicates_on("length", st.integers(0, 300)),
        predicates_on_text("suffix", [".log", ".index", ".", "x"]),
        predicates_on_text("path", ["/orders-0/", ".log", "/"]),
        predicates_on("modificationTime", INSTANTS),
        *ANYWHERE,
    ),
}
COMPARE = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt}
COMPARE |= {">=": operator.ge, "in": lambda value, chosen: value in chosen}
COMPARE |= {"startswith": str.startswith, "endswith": str.endswith, "contains": operator.contains}


def micros_of(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(micros_of, value))
    return (value - EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else value


def meeting(rows: list[dict[str, Any]], predicates: list[Predicate]) -> list[dict[str, Any]]:
    """The rows that SQL's WHERE leaves: NULL meets no condition, nor its negation."""
    return [
        row
        for row in rows
        if all(
            row[predicate.column] is not None
            and COMPARE[predicate.test](row[predicate.column], micros_of(predicate.value))
            != predicate.negated
            for predicate in predicates
        )
    ]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", PREDICATES)
@given(st.data())
def test_a_pruned_scan_has_the_rows_that_meet_the_predicates(
    kind: str, data: st.DataObject
) -> None:
    segments = data.draw(partitions())
    asked = data.draw(st.lists(PREDICATES[kind], min_size=1, max_size=3))
    options = {"kind": kind, "maxPartitionBytes": data.draw(st.sampled_from([1, 200, 10**6]))}
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        root = Path(folder)
        write_partition(root, segments)
        write_partition(root, dict(list(segments.items())[:1]), "payments-1")
        (root / "meta.properties").touch()
        location = far_away(monkeypatch, root) if data.draw(st.booleans()) else str(root)
        everything = read_rows(location, **options)
        scanned = read_rows(location, predicates=asked, **options)
    exact = [predicate for predicate in asked if predicate.is_exact(kind)]
    assert meeting(scanned, asked) == meeting(everything, asked)
    assert meeting(scanned, exact) == scanned
    in_everything = iter(everything)
    assert all(row in in_everything for row in scanned)  # each once, in its order
    if len(exact) == len(asked):
        assert scanned == meeting(everything, asked)


# Columns.


COLUMNS = {
    "records": [*RECORD_COLUMNS],
    "batches": ["topic", "partition", *BATCH_COLUMNS, "path"],
    "files": [*FILE_COLUMNS],
    "corruption": [*CORRUPTION_COLUMNS],
    "indexes": [*INDEX_FILE_COLUMNS],
    "schemas": [*SCHEMA_COLUMNS],
    "remoteSegments": [*REMOTE_SEGMENT_COLUMNS],
    **{kind: [*file.folder_columns] for kind, file in SIDECAR_FILES.items()},
}


def test_the_columns_of_every_kind_are_tested() -> None:
    assert set(COLUMNS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_a_kind_has_its_columns_and_permissive_one_more(kind: str, mode: str) -> None:
    schema = schema_of(options_of("/logs", kind=kind, mode=mode))
    never = ("files", "corruption", "indexes", "schemas", "remoteSegments")
    says_what_is_wrong = mode == "PERMISSIVE" and kind not in never
    assert schema.names == COLUMNS[kind] + ["corruption"] * says_what_is_wrong
    assert {type_.unit for type_ in schema.types if pa.types.is_timestamp(type_)} <= {"us"}


@pytest.mark.parametrize("kind", KINDS)
def test_any_columns_may_be_asked_for_in_any_order(kind: str, tmp_path: Path) -> None:
    folder = DATA / "v2" / "transactions-0"
    if kind == "schemas":
        registered = [schema_record("orders-value", version, 7, '"int"') for version in (1, 2)]
        folder = write_registry(tmp_path / "_schemas-0", registered)
    everything = read_table(folder, kind=kind)
    some = everything.schema.names[::-2]
    assert read_table(folder, kind=kind, columns=some).equals(everything.select(some))
    for name in everything.schema.names:
        assert read_table(folder, kind=kind, columns=[name]).equals(everything.select([name]))


@by_place
def test_files_lists_each_files_place_and_size(
    is_far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = DATA / "internal"
    location = far_away(monkeypatch, root) if is_far else str(root)
    rows = read_rows(location, kind="files")
    paths = sorted(path for folder in FOLDERS if folder.parent == root for path in folder.iterdir())
    assert [row["path"] for row in rows] == [
        f"{location}/{path.relative_to(root)}" for path in paths
    ]
    for row, path in zip(rows, paths, strict=True):
        parsed = kafkajit.parse_log_path(path)
        assert (row["topic"], row["partition"]) == (parsed.topic, parsed.partition)
        assert (row["baseOffset"], row["suffix"]) == (parsed.base_offset, parsed.suffix)
        assert row["length"] == path.stat().st_size
        assert row["modificationTime"] == path.stat().st_mtime_ns // 1000


def test_a_file_system_that_keeps_no_times_leaves_them_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_partition(tmp_path, {0: kt.batch([kt.Record()])})

    def find_timeless(*arguments: Any) -> list[StoredFile]:
        return [replace(file, modified_ns=None) for file in find_files(*arguments)]

    monkeypatch.setattr("kafkajit.places.locations.find_files", find_timeless)
    (row,) = read_rows(folder, kind="files")
    assert row["modificationTime"] is None
    assert row["length"] == 68


def test_a_time_that_spark_cannot_hold_is_null_and_still_selected(tmp_path: Path) -> None:
    stamps = [0, 2**63 - 1, -(2**63), 5]
    log = kt.batch([kt.Record(timestamp=stamp) for stamp in stamps], base_timestamp=0)
    folder = write_partition(tmp_path, {0: log})
    stamped = [row["timestamp"] for row in read_rows(folder)]
    assert stamped == [0, None, None, 5000]
    assert [row["offset"] for row in read_rows(folder, startingTimestamp="6ms")] == [1, 2, 3]
