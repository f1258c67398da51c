"""Aggregates are those of the rows that a scan returns, whether or not headers suffice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from corpus import DATA, rows_of
from scanning import FOLDERS, by_folder, options_of, read_rows, write_partition

import kafkajit
import kafkajit.scan.aggregates
import kafkajit.scan.packing
import kafkajit.scan.plan
import kafkajit.testing as kt
from kafkajit.errors import KafkaJitError
from kafkajit.scan.aggregates import Aggregate, Aggregates, plan_aggregates, read_aggregates
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.table import plan_tasks, schema_of

ROWS = Aggregate("count", None)
COLUMNS = ("topic", "partition", "offset", "timestamp")
BOUNDS = [Aggregate(name, column) for column in COLUMNS for name in ("count", "min", "max")]
OFFSETS = [ROWS, Aggregate("min", "offset"), Aggregate("max", "offset")]


@pytest.fixture(autouse=True)
def _headers_of_small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafkajit.scan.aggregates, "SMALL", 0)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of splits that each task decodes."""
    counts: list[int] = []
    read = kafkajit.scan.aggregates.read_task

    def counting(task: Any, *others: Any) -> Any:
        counts.append(len(task))
        return read(task, *others)

    monkeypatch.setattr(kafkajit.scan.aggregates, "read_task", counting)
    return counts


def partial(
    *locations: str | Path,
    of: Iterable[Aggregate],
    by: Iterable[str] = (),
    predicates: Iterable[Predicate] = (),
    **given: object,
) -> list[tuple[Any, ...]]:
    """The rows of all tasks."""
    asked = Aggregates(list(by), list(of))
    options = options_of(*locations, **given)
    table = schema_of(options)
    fields = [table.field(name) for name in asked.by]
    for number, (function, column) in enumerate(asked.of):
        is_number = column is None or function in ("count", "sum")
        type_ = pa.int64() if is_number else table.field(column).type
        fields.append(pa.field(f"aggregate{number}", type_))
    rows: list[tuple[Any, ...]] = []
    for task in plan_aggregates(options, list(predicates), asked) or [[]]:
        for found in read_aggregates(task, asked, pa.schema(fields), options):
            found.validate(full=True)
            rows += [tuple(row.values()) for row in rows_of(found)]
    return rows


def combined(rows: list[tuple[Any, ...]], asked: Aggregates) -> dict[tuple[Any, ...], list[Any]]:
    """The aggregates of all tasks, as Spark combines them."""
    groups: defaultdict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        groups[row[: len(asked.by)]].append(row[len(asked.by) :])
    functions = {"count": sum, "sum": sum, "min": min, "max": max}
    found = {}
    for group, parts in groups.items():
        columns = [
            [value for value in column if value is not None] for column in zip(*parts, strict=True)
        ]
        found[group] = [
            functions[each.function](column) if column else None
            for each, column in zip(asked.of, columns, strict=True)
        ]
    return found


def aggregated(rows: list[dict[str, Any]], asked: Aggregates) -> dict[tuple[Any, ...], list[Any]]:
    """The aggregates of rows, one by one."""
    groups: defaultdict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    if not asked.by:
        groups[()] = []
    for row in rows:
        groups[tuple(row[name] for name in asked.by)].append(row)
    functions = {"count": len, "sum": sum, "min": min, "max": max}
    found = {}
    for group, members in groups.items():
        found[group] = []
        for function, column in asked.of:
            values = (
                [row[column] for row in members if row[column] is not None] if column else members
            )
            empty = 0 if function == "count" else None
            found[group].append(functions[function](values) if values else empty)  # type: ignore[operator]
    return found


def check(
    *locations: str | Path, by: Iterable[str] = (), of: Iterable[Aggregate], **given: Any
) -> None:
    asked = Aggregates(list(by), list(of))
    # A marker is checked if its columns are read.
    columns = (
        None if "kind" in given else [*COLUMNS, *["corruption"] * ("PERMISSIVE" in given.values())]
    )
    rows = read_rows(*locations, columns=columns, **given)
    assert combined(partial(*locations, by=by, of=of, **given), asked) == aggregated(rows, asked)


@by_folder
@pytest.mark.parametrize("of", [[ROWS], OFFSETS, BOUNDS], ids=["count", "offsets", "all"])
def test_they_are_those_of_the_rows(folder: Path, of: list[Aggregate]) -> None:
    check(folder, of=of)
    check(folder, by=["topic"], of=of)


@pytest.mark.parametrize("by", [[], ["topic"], ["partition"], ["partition", "topic"]], ids=str)
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"isolationLevel": "read_committed"},
        {"mode": "DROPMALFORMED"},
        {"checkCrcs": "false"},
        {"maxPartitionBytes": "4k"},
        {"startingOffsets": '{"segments": {"0": 7}}'},
        {"predicates": [Predicate("topic", ">", "s")]},
    ],
    ids=str,
)
def test_groups_options_and_conditions_are_those_of_the_rows(by: list[str], given: Any) -> None:
    check(*FOLDERS, by=by, of=BOUNDS, **given)


def test_sizes_of_batches_are_added_up() -> None:
    of = [ROWS, Aggregate("sum", "sizeInBytes"), Aggregate("max", "lastOffset")]
    check(*FOLDERS, by=["topic", "partition"], of=of, kind="batches")


@pytest.mark.parametrize(
    "folder",
    sorted(path for path in (DATA / "damaged").iterdir() if path.is_dir()),
    ids=lambda path: path.name,
)
def test_damage_is_reported_as_when_records_are_read(folder: Path) -> None:
    for mode in ("PERMISSIVE", "DROPMALFORMED"):
        check(folder, of=OFFSETS, mode=mode)
    try:
        check(folder, of=OFFSETS)
    except KafkaJitError as expected:
        try:
            found = partial(folder, of=OFFSETS)
        except KafkaJitError as error:
            assert str(error) == str(expected)  # noqa: PT017 - either is right
        else:
            # Headers are trusted if checksums are right, whatever the records are.
            (log,) = folder.glob("*.log")
            batches = kafkajit.read_record_batches(log).to_pylist()
            assert all(batch["isValid"] for batch in batches)
            assert found[0][0] == sum(batch["recordsCount"] for batch in batches)


def test_headers_suffice_for_a_log_as_it_was_written(tmp_path: Path, decoded: list[int]) -> None:
    batches = [
        kt.batch([kt.Record(b"k")] * 5, base_offset=5 * n, base_timestamp=n) for n in range(4)
    ]
    folder = write_partition(tmp_path, [b"".join(batches)])
    of = [*OFFSETS, Aggregate("max", "timestamp"), Aggregate("count", "offset")]
    assert partial(folder, by=["partition"], of=of) == [(0, 20, 0, 19, 3000, 20)]
    assert decoded == [0]


@pytest.mark.parametrize(
    ("log", "of"),
    [
        (kt.batch([kt.Record(b"k", offset_delta=3)], last_offset_delta=9), OFFSETS),
        (
            kt.batch([kt.Record(b"k", timestamp=7), kt.Record(b"k", timestamp=5)]),
            [Aggregate("min", "timestamp")],
        ),
    ],
    ids=["compacted", "a producer's clock"],
)
def test_records_are_decoded_if_headers_do_not_know(
    log: bytes, of: list[Aggregate], tmp_path: Path, decoded: list[int]
) -> None:
    check(write_partition(tmp_path, {0: log}), of=of)
    assert decoded == [1]


def test_each_core_gets_one_task_if_headers_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafkajit.scan.packing, "_LEAST_BYTES", 1000)
    monkeypatch.setattr(kafkajit.scan.packing, "_OPEN_COST", 0)
    monkeypatch.setattr(kafkajit.scan.packing, "_MOST_BYTES", 1000)
    options = replace(options_of(*FOLDERS), parallelism=2)
    tasks = plan_tasks(options, [])
    assert len(tasks) > 4
    for cores in (1, 2, 3, len(tasks)):
        monkeypatch.setattr(kafkajit.scan.aggregates, "_MOST_JOINED", len(tasks))
        options = replace(options, parallelism=cores)
        joined = plan_aggregates(options, [], Aggregates([], OFFSETS))
        assert len(joined) == cores
        assert covered(joined) == covered(tasks)
        monkeypatch.setattr(kafkajit.scan.aggregates, "_MOST_JOINED", 1)
        assert len(plan_aggregates(options, [], Aggregates([], OFFSETS))) == len(tasks)
    for unknown in (Aggregate("count", "key"), Aggregate("sum", "partition")):
        assert len(plan_aggregates(options, [], Aggregates([], [unknown]))) == len(tasks)
    given = options_of(*FOLDERS, maxPartitionBytes="1000")
    assert len(plan_aggregates(given, [], Aggregates([], OFFSETS))) == len(plan_tasks(given, []))


def covered(tasks: Iterable[Any]) -> dict[str, list[tuple[int, int]]]:
    """The bytes of each file that tasks read, as runs without a hole."""
    runs: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for split in chain.from_iterable(tasks):
        run = runs[split.file.path]
        if run and run[-1][1] == split.start:
            run[-1] = (run[-1][0], split.end)
        else:
            run.append((split.start, split.end))
    return runs
