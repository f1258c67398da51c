"""Tables of the files beside logs, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from corpus import DATA, rows_of
from scanning import copied, far_away, options_of, read_rows, read_table, write_partition
from streaming import finish

import kafkajit
import kafkajit.testing as kt
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.table import plan_tasks, schema_of
from kafkajit.schema import MICROSECONDS_TYPE, TIMESTAMP_TYPE
from kafkajit.state.sidecar_files import SIDECAR_FILES

READERS = {
    "offsetIndex": kafkajit.index.read_offset_index,
    "timeIndex": kafkajit.index.read_time_index,
    "transactionIndex": kafkajit.index.read_transaction_index,
    "producers": kafkajit.read_producer_snapshot,
    "leaderEpochs": kafkajit.read_leader_epochs,
    "checkpoints": kafkajit.read_checkpoint,
    "partitionMetadata": kafkajit.read_partition_metadata,
    "metaProperties": kafkajit.read_meta_properties,
    "quorumState": kafkajit.read_quorum_state,
}
QUORUM = (
    b'{"leaderId":1,"leaderEpoch":3,"votedId":-1,'
    b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
)
# kind: a good file's name and bytes, and bytes that are refused
SAMPLES: dict[str, tuple[str, bytes, bytes]] = {
    "offsetIndex": (f"{7:020}.index", bytes.fromhex("0000000900001000"), b"\xff" * 8),
    "timeIndex": (f"{7:020}.timeindex", bytes.fromhex("000000000000006400000009"), b"\xff" * 12),
    "transactionIndex": (f"{7:020}.txnindex", bytes(34), b"\1" + bytes(33)),
    "producers": (
        f"{7:020}.snapshot",
        kt.producer_snapshot([kt.Producer(9)]),
        kt.producer_snapshot([kt.Producer(9)], crc=1),
    ),
    "leaderEpochs": ("leader-epoch-checkpoint", b"0\n2\n0 0\n2 5\n", b"0\n2\n0 0\n"),
    "checkpoints": ("recovery-point-offset-checkpoint", b"0\n1\norders 3 42\n", b"1\n"),
    "partitionMetadata": (
        "partition.metadata",
        b"version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA",
        b"version: 0\n",
    ),
    "metaProperties": ("meta.properties", b"version=1\ncluster.id=c\nnode.id=1\n", b"a=\\u12\n"),
    "quorumState": ("quorum-state", QUORUM, b"{}"),
}
by_corpus_folder = pytest.mark.parametrize(
    "folder", [DATA / "v2", DATA / "internal"], ids=lambda folder: folder.name
)
by_kind = pytest.mark.parametrize("kind", SIDECAR_FILES)


def files_of(kind: str, folder: Path) -> list[Path]:
    """The files of a folder, and of the partitions in it, that are in use."""
    found = [*folder.glob("*"), *folder.glob("*-[0-9]*/*")]
    return sorted(
        path
        for path in found
        if SIDECAR_FILES[kind].name.fullmatch(path.name) and not path.name.endswith(".deleted")
    )


def expected_rows(kind: str, folder: Path) -> list[dict[str, Any]]:
    rows = []
    for file in files_of(kind, folder):
        path = kafkajit.parse_log_path(file)
        place = {"topic": path.topic, "partition": path.partition, "baseOffset": path.base_offset}
        place = {"name": file.name, **place}
        where = {name: place[name] for name in SIDECAR_FILES[kind].path_columns}
        rows += [where | row | {"path": str(file)} for row in rows_of(READERS[kind](file))]
    for row in rows:
        for name, column in SIDECAR_FILES[kind].columns.items():
            if column.type == TIMESTAMP_TYPE and row[name] is not None:
                row[name] *= 1000
    return rows


def two_files(kind: str, root: Path) -> tuple[Path, Path]:
    """A good one in orders-0, and a bad one in orders-1."""
    name, good, bad = SAMPLES[kind]
    paths = (root / "orders-0" / name, root / "orders-1" / name)
    for path, content in zip(paths, (good, bad), strict=True):
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    return paths


@by_kind
def test_rows_are_those_of_its_reader_over_everything_that_a_broker_wrote(kind: str) -> None:
    found = 0
    of_a_root = kind in ("checkpoints", "metaProperties")
    for root in ("internal/log-dir",) if of_a_root else ("v2", "internal", "old", "tiered"):
        rows = expected_rows(kind, DATA / root)
        assert read_rows(DATA / root, kind=kind) == rows
        found += len(rows)
    assert found


@by_kind
def test_columns_are_the_place_the_contents_and_the_path_with_sparks_timestamps(kind: str) -> None:
    schema = schema_of(options_of("/logs", kind=kind))
    assert schema.names == list(SIDECAR_FILES[kind].folder_columns)
    for name, column in SIDECAR_FILES[kind].folder_columns.items():
        wanted = MICROSECONDS_TYPE if column.type == TIMESTAMP_TYPE else column.type
        assert schema.field(name).type == wanted


@by_kind
def test_a_copy_without_its_log_is_read(kind: str, tmp_path: Path) -> None:
    good, _ = two_files(kind, tmp_path)
    rows = expected_rows(kind, good.parent)
    assert rows
    assert read_rows(good, kind=kind) == rows
    assert read_rows(good.parent, kind=kind) == rows
    assert read_rows(f"{tmp_path}/*-0", kind=kind) == rows


@by_kind
def test_a_folder_without_such_files_is_an_error_with_their_names(
    kind: str, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(FileNotFoundError) as raised:
        read_table(tmp_path, kind=kind)
    assert f"no files ({SIDECAR_FILES[kind].called}) and no segments at {tmp_path}" in str(
        raised.value
    )


@by_kind
def test_a_log_without_such_files_has_no_rows(kind: str, tmp_path: Path) -> None:
    write_partition(tmp_path, {0: kt.batch([kt.Record(value=b"v")])})
    table = read_table(tmp_path, kind=kind)
    assert table.num_rows == 0
    assert table.column_names == list(SIDECAR_FILES[kind].folder_columns)


@by_kind
def test_failfast_names_the_bad_file(kind: str, tmp_path: Path) -> None:
    _, bad = two_files(kind, tmp_path)
    with pytest.raises(kafkajit.KafkaJitError) as raised:
        read_table(tmp_path, kind=kind)
    assert str(bad) in str(raised.value)


@by_kind
def test_dropmalformed_leaves_the_bad_file_out_and_nothing_else(kind: str, tmp_path: Path) -> None:
    good, _ = two_files(kind, tmp_path)
    rows = expected_rows(kind, good.parent)
    assert read_rows(tmp_path, kind=kind, mode="DROPMALFORMED") == rows


@by_kind
def test_permissive_also_reports_the_bad_file(kind: str, tmp_path: Path) -> None:
    good, bad = two_files(kind, tmp_path)
    rows = read_rows(tmp_path, kind=kind, mode="PERMISSIVE")
    expected = [row | {"corruption": None} for row in expected_rows(kind, good.parent)]
    assert rows[:-1] == expected
    stated = rows[-1]
    gap = stated["corruption"]
    size = len(SAMPLES[kind][2])
    assert gap | {"reason": ""} == {"path": str(bad), "position": 0, "length": size, "reason": ""}
    with pytest.raises(kafkajit.KafkaJitError) as raised:
        read_table(tmp_path, kind=kind)
    assert f"{gap['reason']} in {bad}" == str(raised.value)
    said = {"topic": "orders", "partition": 1, "baseOffset": 7, "name": bad.name}
    for name in SIDECAR_FILES[kind].folder_columns:
        wanted = said.get(name) if name in SIDECAR_FILES[kind].path_columns else None
        assert stated[name] == (str(bad) if name == "path" else wanted)


@by_kind
def test_a_narrower_schema_gives_fewer_columns(kind: str, tmp_path: Path) -> None:
    good, _ = two_files(kind, tmp_path)
    for name in SIDECAR_FILES[kind].folder_columns:
        rows = read_rows(good, kind=kind, columns=[name])
        assert rows == [{name: row[name]} for row in expected_rows(kind, good.parent)]


@by_kind
def test_files_of_an_object_store_give_the_same_rows(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, _ = two_files(kind, tmp_path / "store")
    uri = far_away(monkeypatch, tmp_path / "store")
    rows = read_rows(f"{uri}/orders-0", kind=kind)
    path = f"{uri}/orders-0/{good.name}"
    assert rows == [row | {"path": path} for row in expected_rows(kind, good.parent)]


@pytest.mark.parametrize(
    ("kind", "predicate", "left"),
    [
        ("producers", Predicate("topic", "=", "orders"), ["orders-0", "orders-1"]),
        ("producers", Predicate("partition", "=", 1), ["orders-1", "payments-1"]),
        ("producers", Predicate("topic", "=", "orders", negated=True), ["payments-1"]),
        ("producers", Predicate("baseOffset", ">", 6), ["orders-0", "orders-1", "payments-1"]),
        ("producers", Predicate("baseOffset", ">", 7), []),
        ("producers", Predicate("path", "contains", "orders-0/"), ["orders-0"]),
        ("producers", Predicate("lastOffset", ">", 99), ["orders-0", "orders-1", "payments-1"]),
        ("leaderEpochs", Predicate("partition", "<", 1), ["orders-0"]),
        # This value is in the file, not in its path.
        ("checkpoints", Predicate("topic", "=", "x"), ["orders-0", "orders-1", "payments-1"]),
        ("checkpoints", Predicate("name", "startswith", "clean"), []),
        ("indexes", Predicate("suffix", "=", ".index"), ["orders-0", "orders-1", "payments-1"]),
        ("indexes", Predicate("suffix", "=", ".txnindex"), []),
    ],
)
def test_conditions_on_columns_of_the_path_leave_files_out(
    kind: str, predicate: Predicate, left: list[str], tmp_path: Path
) -> None:
    name, good, _ = SAMPLES["offsetIndex" if kind == "indexes" else kind]
    for folder in ("orders-0", "orders-1", "payments-1"):
        write_partition(tmp_path, {0: b""}, folder)
        (tmp_path / folder / name).write_bytes(good)
    tasks = plan_tasks(options_of(tmp_path, kind=kind), [predicate])
    assert [Path(split.file.folder).name for task in tasks for split in task] == left


@pytest.mark.parametrize("column", ["topic", "partition", "name", "path", "offset"])
def test_only_conditions_on_columns_of_the_path_are_exact(column: str) -> None:
    predicate = Predicate(column, "=", "x")
    assert predicate.is_exact("leaderEpochs") == (column in ("topic", "partition", "path"))
    assert predicate.is_exact("checkpoints") == (column in ("name", "path"))
    assert predicate.is_exact("metaProperties") == (column == "path")


@pytest.mark.thorough
def test_ten_thousand_small_files_share_tasks(tmp_path: Path) -> None:
    for partition in range(10_000):
        folder = tmp_path / f"orders-{partition}"
        folder.mkdir()
        (folder / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 0\n")
    tasks = plan_tasks(options_of(tmp_path, kind="leaderEpochs"), [])
    assert len(tasks) <= 400
    assert sum(map(len, tasks)) == 10_000


def test_rows_of_small_files_come_in_few_record_batches(tmp_path: Path) -> None:
    for partition in range(20):
        write_partition(tmp_path, {0: b""}, f"orders-{partition}")
        (tmp_path / f"orders-{partition}/leader-epoch-checkpoint").write_bytes(b"0\n1\n0 0\n")
    table = read_table(tmp_path, kind="leaderEpochs")
    assert table.num_rows == 20
    assert table["epoch"].num_chunks < 10


def test_a_file_that_was_replaced_after_it_was_listed_is_read_as_it_is(tmp_path: Path) -> None:
    from kafkajit.scan.table import read_task

    path = tmp_path / "leader-epoch-checkpoint"
    path.write_bytes(b"0\n1\n0 0\n")
    options = options_of(path, kind="leaderEpochs")
    tasks = plan_tasks(options, [])
    path.write_bytes(b"0\n2\n0 0\n1 5\n")
    (batch,) = read_task(tasks[0], schema_of(options), options)
    assert batch["epoch"].to_pylist() == [0, 1]


def test_files_on_their_way_out_are_asked_for_by_name(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: b""})
    for suffix in ("", ".deleted"):
        (folder / f"{7:020}.index{suffix}").write_bytes(SAMPLES["offsetIndex"][1])
    assert [row["path"] for row in read_rows(folder, kind="offsetIndex")] == [
        f"{folder}/{7:020}.index"
    ]
    rows = read_rows(folder, kind="offsetIndex", pathGlobFilter="*.index.deleted")
    assert [row["path"] for row in rows] == [f"{folder}/{7:020}.index.deleted"]


def test_timestamps_that_microseconds_cannot_hold_are_null(tmp_path: Path) -> None:
    entries = np.array([(1, 1), (2**62, 2)], [("timestamp", ">i8"), ("offset", ">i4")])
    (tmp_path / f"{7:020}.timeindex").write_bytes(entries.tobytes())
    table = read_table(tmp_path, kind="timeIndex")
    assert table["timestamp"].cast(pa.int64()).to_pylist() == [1000, None]
    assert table["offset"].to_pylist() == [8, 9]


def test_an_index_that_is_not_named_after_an_offset_is_reported(tmp_path: Path) -> None:
    (tmp_path / "copy.idx").write_bytes(SAMPLES["offsetIndex"][1])
    with pytest.raises(ValueError, match="base_offset is missing"):
        read_table(tmp_path, kind="offsetIndex", pathGlobFilter="*.idx")


def test_every_index_has_a_row_even_a_damaged_one(tmp_path: Path) -> None:
    folder = tmp_path / "orders-3"
    folder.mkdir()
    for kind in ("offsetIndex", "timeIndex", "transactionIndex"):
        name, good, bad = SAMPLES[kind]
        (folder / name).write_bytes(good)
        (folder / name.replace("7.", "8.")).write_bytes(bad)
    (folder / f"{9:020}.index").write_bytes(b"")
    rows = read_rows(tmp_path, kind="indexes")
    assert {(row["topic"], row["partition"]) for row in rows} == {("orders", 3)}
    found = [
        [row[name] for name in ("baseOffset", "suffix", "entries", "lastOffset", "problems")]
        for row in rows
    ]
    assert found == [
        [7, ".index", 1, 16, 0],
        [7, ".timeindex", 1, 16, 0],
        [7, ".txnindex", 1, 0, 0],
        [8, ".index", None, None, 1],
        [8, ".timeindex", None, None, 1],
        [8, ".txnindex", None, None, 1],
        [9, ".index", 0, None, 0],
    ]
    problems = [row["problem"] for row in rows]
    assert problems[:3] == [None] * 3
    assert problems[3] == "entries out of order: entry 0 has relativeOffset -1 at position 0"
    assert problems[5] == "Unexpected aborted transaction version 256 (entry 0) at position 0"


@pytest.mark.parametrize(
    ("glob", "expected"), [("*", [7]), ("*.log", []), ("*7.i*", [7]), ("*.idx", [])]
)
def test_other_files_that_a_glob_matches_have_no_rows(
    glob: str, expected: list[int], tmp_path: Path
) -> None:
    (tmp_path / SAMPLES["offsetIndex"][0]).write_bytes(SAMPLES["offsetIndex"][1])
    for name in (f"{7:020}.log", "copy.idx", "leader-epoch-checkpoint", "copy.index"):
        (tmp_path / name).write_bytes(b"")
    rows = read_rows(tmp_path, kind="indexes", pathGlobFilter=glob)
    assert [row["baseOffset"] for row in rows] == expected


@by_corpus_folder
def test_no_index_of_a_broker_has_a_problem(folder: Path) -> None:
    for row in read_rows(folder, kind="indexes"):
        kind = {".index": "offsetIndex", ".timeindex": "timeIndex"}.get(
            row["suffix"], "transactionIndex"
        )
        entries = READERS[kind](row["path"])
        assert (row["problems"], row["problem"]) == (0, None), row["path"]
        assert row["entries"] == entries.num_rows


def test_an_index_is_held_against_the_log_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [
        kt.batch([kt.Record(value=b"v", timestamp=1000 * place)], base_offset=7 + place)
        for place in range(3)
    ]
    folder = write_partition(tmp_path / "store", {7: b"".join(batches)})
    index = np.array(
        [(1, len(batches[0])), (2, 5), (3, 999)], [("relative", ">i4"), ("position", ">i4")]
    )
    (folder / f"{7:020}.index").write_bytes(index.tobytes())
    times = np.array([(999, 1), (2000, 2)], [("timestamp", ">i8"), ("relative", ">i4")])
    (folder / f"{7:020}.timeindex").write_bytes(times.tobytes())
    uri = far_away(monkeypatch, tmp_path / "store")
    for location in (str(folder), f"{uri}/orders-0"):
        offsets, timestamps = read_rows(location, kind="indexes")
        # The file by itself is out of order, which comes first; the log reveals a second problem.
        assert (offsets["entries"], offsets["problems"]) == (None, 2)
        assert offsets["problem"].startswith("entries out of order: entry 1 has position 5")
        assert (timestamps["entries"], timestamps["lastOffset"]) == (2, 9)
        assert timestamps["problems"] == 2
        assert timestamps["problem"] == "entry 0: its batch's largest timestamp is another"


@pytest.fixture
def being_written(tmp_path: Path) -> Path:
    """A .txnindex of a broker that does not have its entries yet, beside its log."""
    folder = copied(DATA / "v2" / "transactions-0", tmp_path)
    (index,) = (path for path in folder.glob("*.txnindex") if path.stat().st_size)
    index.write_bytes(b"")
    return index


def problems_of(index: Path) -> list[str | None]:
    rows = read_rows(index.parent, kind="indexes")
    return [row["problem"] for row in rows if row["suffix"] == ".txnindex"]


def test_an_index_that_a_broker_writes_meanwhile_is_looked_at_again(
    being_written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (DATA / "v2" / "transactions-0" / being_written.name).read_bytes()
    monkeypatch.setattr("time.sleep", lambda _: being_written.write_bytes(whole))
    assert problems_of(being_written) == [None]


def test_an_index_that_nobody_changes_is_looked_at_once(
    being_written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(being_written.parent)
    monkeypatch.setattr("time.sleep", None)
    assert problems_of(being_written) == ["the index lacks this aborted transaction"]


def test_an_index_that_a_broker_deletes_meanwhile_has_no_row(
    being_written: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: being_written.unlink(missing_ok=True))
    assert problems_of(being_written) == []


def test_several_locations_are_one_table(tmp_path: Path) -> None:
    first, second = (two_files("leaderEpochs", tmp_path / name)[0] for name in ("a", "b"))
    tasks = plan_tasks(options_of(first, second, kind="leaderEpochs"), [])
    assert sum(map(len, tasks)) == 2
