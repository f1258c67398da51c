from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus import TESTS, rows_of
from exporting import append, records_in

import kafkajit
from kafkajit.errors import InvalidOffsetError
from kafkajit.produce import commit
from kafkajit.produce.commit import locked
from kafkajit.produce.inputs.rows import MOST_ROWS

ROWS: list[dict[str, Any]] = [
    {"id": 1, "payload": "one", "ts": "2026-01-01T00:00:00.123Z"},
    {"id": 2, "payload": None, "ts": "2026-01-01T00:00:01Z"},
    {"id": 3, "payload": 'th"r,\nee', "ts": "2026-01-01T00:00:02Z"},
]
CHOSEN = {"key_column": "id", "value_column": "payload", "timestamp_column": "ts"}


def foreign(folder: Path, format_: str) -> Path:
    """The rows in a file that another program wrote."""
    path = folder / f"rows.{format_}"
    if format_ == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    elif format_ == "arrow":
        table = pa.Table.from_pylist(ROWS)
        with pa.OSFile(str(path), "w") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write(table)
    elif format_ == "jsonl":
        path.write_text("\n".join(map(json.dumps, ROWS)))
    elif format_ == "csv":
        lines = ["id,payload,ts", "1,one,2026-01-01T00:00:00.123Z", "2,,2026-01-01T00:00:01Z"]
        path.write_text("\n".join([*lines, '3,"th""r,\nee",2026-01-01T00:00:02Z']))
    else:
        fields = [
            {"name": "id", "type": "int"},
            {"name": "payload", "type": ["null", "string"]},
            {"name": "ts", "type": "string"},
        ]
        schema = {"type": "record", "name": "Row", "fields": fields}
        with path.open("wb") as file:
            fastavro.writer(file, schema, ROWS, codec="deflate", sync_interval=1)
    return path


@pytest.mark.parametrize("format_", ["parquet", "arrow", "csv", "jsonl", "avro"])
def test_chosen_columns_of_another_programs_file(format_: str, tmp_path: Path) -> None:
    path = foreign(tmp_path, format_)
    kafkajit.import_files(path, tmp_path / "logs", topic="orders", partitions=1, **CHOSEN).apply()
    log = tmp_path / "logs" / "orders-0" / f"{0:020}.log"
    table = kafkajit.read_records(log, columns=["key", "value", "timestamp"])
    assert rows_of(table) == [
        {"key": b"1", "value": b"one", "timestamp": 1_767_225_600_123},
        {"key": b"2", "value": None, "timestamp": 1_767_225_601_000},
        {"key": b"3", "value": b'th"r,\nee', "timestamp": 1_767_225_602_000},
    ]


def test_keys_go_where_kafkas_producer_puts_them(tmp_path: Path) -> None:
    head, *lines = (TESTS / "data" / "partitions.tsv").read_text().splitlines()
    at = head.split("\t").index("12")
    wanted = {bytes.fromhex(row[0]): int(row[at]) for row in (line.split("\t") for line in lines)}
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"key": list(wanted), "value": ["v"] * len(wanted)}), path)
    kafkajit.import_files(path, tmp_path / "logs", topic="t", partitions=12).apply()
    logs = records_in(tmp_path / "logs")
    assert {row["key"]: row["partition"] for rows in logs.values() for row in rows} == wanted


def test_nothing_is_written_before_apply_and_nothing_is_overwritten(tmp_path: Path) -> None:
    path = foreign(tmp_path, "csv")
    given = {"topic": "orders", "partitions": 1, **CHOSEN}
    plan = kafkajit.import_files(path, tmp_path / "logs", **given)
    assert str(plan) == "orders-0: 3 records, offsets 0 to 2"
    assert not (tmp_path / "logs").exists()
    plan.apply()
    before = records_in(tmp_path / "logs")
    with pytest.raises(
        FileExistsError, match="has a log of orders-0, and an import overwrites nothing"
    ):
        kafkajit.import_files(path, tmp_path / "logs", **given).apply()
    assert records_in(tmp_path / "logs") == before
    assert not list((tmp_path / "logs").glob(".kafkajit*"))


def test_a_log_that_another_process_has_written_meanwhile_is_not_added_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = foreign(tmp_path, "csv")
    given = {"topic": "orders", "partitions": 1, **CHOSEN}
    plan = kafkajit.import_files(path, tmp_path / "logs", **given)

    @contextmanager
    def locked_late(*arguments: Any) -> Iterator[None]:
        monkeypatch.setattr(commit, "locked", locked)
        append(tmp_path / "logs" / "orders-0", range(100))
        with locked(*arguments):
            yield

    monkeypatch.setattr(commit, "locked", locked_late)
    with pytest.raises(
        FileExistsError, match="has a log of orders-0, and an import overwrites nothing"
    ):
        plan.apply()
    assert len(records_in(tmp_path / "logs")["orders-0"]) == 100


@pytest.mark.parametrize(
    ("name", "error"),
    [
        (f"{0:020}.index", "would replace or remove it, and it is not known to be a log's"),
        ("leader-epoch-checkpoint", "would replace or remove it"),
        ("partition.metadata", "Malformed line in checkpoint file"),
    ],
)
def test_an_import_replaces_no_files_of_others_in_a_partitions_folder(
    name: str, error: str, tmp_path: Path
) -> None:
    folder = tmp_path / "logs" / "orders-0"
    folder.mkdir(parents=True)
    (folder / name).write_text("somebody else's")
    plan = kafkajit.import_files(
        foreign(tmp_path, "csv"), tmp_path / "logs", topic="orders", partitions=1, **CHOSEN
    )
    with pytest.raises((OSError, ValueError), match=error):
        str(plan)
    with pytest.raises((OSError, ValueError), match=error):
        plan.apply()
    assert [path.name for path in (tmp_path / "logs").rglob("*")] == ["orders-0", name]
    assert (folder / name).read_text() == "somebody else's"


def test_an_import_keeps_the_id_of_a_partitions_folder(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "orders-0"
    folder.mkdir(parents=True)
    known = "version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA"
    (folder / "partition.metadata").write_text(known)
    path = foreign(tmp_path, "csv")
    given = {"topic": "orders", "partitions": 1, **CHOSEN}
    other = kafkajit.import_files(
        path, tmp_path / "logs", topic_id="MWJ6FHTfRYy67jzwZdeqSQ", **given
    )
    with pytest.raises(ValueError, match="has the topic's id pUM3BMsVQk2fe-klgEgLLA"):
        other.apply()
    kafkajit.import_files(path, tmp_path / "logs", **given).apply()
    assert (folder / "partition.metadata").read_text() == known


def test_a_damaged_file_writes_nothing(tmp_path: Path) -> None:
    append(tmp_path / "logs" / "orders-0", range(100))
    kafkajit.export(tmp_path / "logs", tmp_path / "rows.avro", codec="none")
    whole = (tmp_path / "rows.avro").read_bytes()
    (tmp_path / "rows.avro").write_bytes(whole[:-5])
    with pytest.raises(ValueError, match=r"rows\.avro, block \d+: a size of|missing"):
        kafkajit.import_files(tmp_path / "rows.avro", tmp_path / "back").apply()
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("offsets", [[5, 3], [5, 5], [5, 6, 6]])
def test_offsets_that_are_not_in_order_are_an_error_of_the_plan(
    offsets: list[int], tmp_path: Path
) -> None:
    lines = "".join(f"orders,0,{offset},v\n" for offset in offsets)
    (tmp_path / "rows.csv").write_text(f"topic,partition,offset,value\n{lines}")
    plan = kafkajit.import_files(tmp_path / "rows.csv", tmp_path / "back")
    for act in (lambda: plan.partitions, plan.apply):
        with pytest.raises(InvalidOffsetError, match="those of orders-0 are not: sort the rows by"):
            act()
    assert not (tmp_path / "back").exists()


def test_an_offset_behind_which_no_log_can_go_on_is_an_error_of_the_plan(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(f"topic,partition,offset,value\norders,0,{2**63 - 1},v\n")
    plan = kafkajit.import_files(tmp_path / "rows.csv", tmp_path / "back")
    for act in (lambda: plan.partitions, plan.apply):
        with pytest.raises(InvalidOffsetError, match=r"rows\.csv: .*behind which no log can go on"):
            act()
    assert not (tmp_path / "back").exists()


def test_an_offset_that_is_missing_is_an_error_of_the_plan(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("topic,partition,offset,value\norders,0,5,v\norders,0,,v\n")
    plan = kafkajit.import_files(tmp_path / "rows.csv", tmp_path / "back")
    for act in (lambda: plan.partitions, plan.apply):
        with pytest.raises(ValueError, match=r"rows\.csv, line 3: column 'offset': every record"):
            act()


def test_columns_that_are_not_imported_are_known(tmp_path: Path) -> None:
    path = foreign(tmp_path, "jsonl")
    plan = kafkajit.import_files(
        path, tmp_path / "logs", topic="t", partitions=1, value_column="payload"
    )
    plan.apply()
    assert plan.left_out.columns == {"id", "ts"}


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = foreign(tmp_path, "jsonl")
    with pytest.raises(ValueError, match="there is no column 'value': name it; there are id"):
        kafkajit.import_files(path, tmp_path / "logs", topic="t", partitions=1).apply()


def test_new_offsets_begin_at_0(tmp_path: Path) -> None:
    append(tmp_path / "logs" / "orders-0", range(100))
    kafkajit.export(tmp_path / "logs", tmp_path / "a.csv", starting_offsets={"orders": {"0": 40}})
    for new, first in ((False, 40), (True, 0)):
        folder = tmp_path / f"back-{first}"
        kafkajit.import_files(tmp_path / "a.csv", folder, new_offsets=new).apply()
        assert records_in(folder)["orders-0"][0]["offset"] == first


def test_structs_become_json(tmp_path: Path) -> None:
    pq.write_table(pa.table({"value": [{"id": 7, "tags": ["a"]}]}), tmp_path / "a.parquet")
    kafkajit.import_files(tmp_path / "a.parquet", tmp_path / "l", topic="t", partitions=1).apply()
    (row,) = records_in(tmp_path / "l")["t-0"]
    assert json.loads(row["value"]) == {"id": 7, "tags": ["a"]}


def test_members_that_first_come_late_in_json_lines_are_imported(tmp_path: Path) -> None:
    """A file is read in parts of this many lines."""
    late = [{"value": f"{row}", "timestamp": row} for row in range(MOST_ROWS + 10)]
    for row in late[-5:]:
        row |= {"headers": [{"key": "h", "value": "x"}], "partition": 1}
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, late)))
    kafkajit.import_files(
        tmp_path / "rows.jsonl", tmp_path / "logs", topic="t", partitions=2
    ).apply()
    found = kafkajit.dataset(tmp_path / "logs", columns=["partition", "headers"]).to_table()
    with_headers = [row for row in found.to_pylist() if row["headers"]]
    assert [row["partition"] for row in with_headers] == [1] * 5


def test_an_offset_that_first_comes_late_is_not_ignored(tmp_path: Path) -> None:
    rows = [{"value": f"{row}"} for row in range(MOST_ROWS + 10)]
    rows[-1]["offset"] = 10**6
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    plan = kafkajit.import_files(tmp_path / "rows.jsonl", tmp_path / "x", topic="t", partitions=1)
    with pytest.raises(ValueError, match=r"rows\.jsonl, line 1: column 'offset'"):
        plan.apply()
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("kept", [False, True])
def test_what_checkpoints_have_of_an_earlier_log_is_removed(kept: bool, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    checkpoint = logs / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n2\nother 0 7\nt 0 5\n")
    (tmp_path / "rows.csv").write_text("value,offset\na,0\nb,1\n" if kept else "value\na\nb\n")
    plan = kafkajit.import_files(tmp_path / "rows.csv", logs, topic="t", partitions=1)
    (part,) = plan.apply()
    assert (part.first_offset, part.last_offset) == (0, 1)
    offsets = kafkajit.dataset(logs / "t-0", columns=["offset"]).to_table()["offset"]
    assert offsets.to_pylist() == [0, 1]
    assert checkpoint.read_text() == "0\n1\nother 0 7\n"


@pytest.mark.parametrize("name", ["path", "keepOffsets", "keep_offsets", "partitionOverwriteMode"])
def test_options_that_the_arguments_decide_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"import_files has no option '{name}'"):
        kafkajit.import_files(foreign(tmp_path, "csv"), tmp_path, **{name: str(tmp_path / "x")})


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are no files to import"):
        kafkajit.import_files([], tmp_path)
    with pytest.raises(ValueError, match="unknown format 'CSV'; there are: parquet, arrow, csv"):
        kafkajit.import_files(foreign(tmp_path, "csv"), tmp_path, format="CSV")
