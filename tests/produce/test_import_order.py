"""The order of records, the offsets that they keep or get, and what an import leaves out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exporting import COLUMNS, TIME, append, records_in

import kafkajit
import kafkajit.testing as kt
from kafkajit.errors import InvalidOffsetError
from kafkajit.storage.source import SAMPLE_FOLDER


def csv(path: Path, *rows: tuple[Any, ...], names: str = "topic,partition,offset,value") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([names, *(",".join(map(str, row)) for row in rows), ""]))
    return path


def values(folder: Path) -> dict[str, list[tuple[int, bytes]]]:
    """The offsets and values of each partition."""
    return {
        name: [(row["offset"], row["value"]) for row in rows]
        for name, rows in records_in(folder).items()
    }


@pytest.mark.parametrize("to", ["parquet", "jsonl"])
def test_new_offsets_keep_the_order_that_dates_have_divided(to: str, tmp_path: Path) -> None:
    append(tmp_path / "logs" / "orders-0", range(40, 500))
    append(tmp_path / "logs" / "orders-1", range(30))
    kafkajit.export(
        tmp_path / "logs", tmp_path / "files", to=to, partition_by="date", file_size="5k"
    )
    assert len({path.parent for path in (tmp_path / "files").glob("date=*/*")}) == 2
    plan = kafkajit.import_files(tmp_path / "files", tmp_path / "back", new_offsets=True)
    planned = plan.partitions
    assert plan.apply() == planned
    found = records_in(tmp_path / "back")
    for name, rows in records_in(tmp_path / "logs").items():
        wanted = [row | {"offset": place} for place, row in enumerate(rows)]
        assert found[name] == wanted


def test_new_offsets_follow_the_offsets_of_any_files(tmp_path: Path) -> None:
    csv(tmp_path / "a.csv", ("t", 0, 50, "c"), ("t", 0, 60, "d"), ("t", 1, 1, "x"))
    csv(tmp_path / "b.csv", ("t", 0, 7, "a"), ("t", 0, 9, "b"), ("t", 1, 2, "y"))
    plan = kafkajit.import_files(tmp_path, tmp_path / "logs", new_offsets=True)
    assert [str(part) for part in plan.apply()] == [
        "t-0: 4 records, offsets 0 to 3",
        "t-1: 2 records, offsets 0 to 1",
    ]
    assert values(tmp_path / "logs") == {
        "t-0": [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")],
        "t-1": [(0, b"x"), (1, b"y")],
    }


def test_files_without_offsets_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("c", "a", "b"):
        csv(tmp_path / "in" / f"{name}.csv", (name,), names="value")
    kafkajit.import_files(tmp_path / "in", tmp_path / "logs", topic="t", partitions=1).apply()
    assert values(tmp_path / "logs") == {"t-0": [(0, b"a"), (1, b"b"), (2, b"c")]}


@pytest.mark.parametrize("new_offsets", [False, True])
def test_files_whose_offsets_overlap_are_named(new_offsets: bool, tmp_path: Path) -> None:
    csv(tmp_path / "a.csv", ("t", 0, 5, "a"), ("t", 0, 9, "b"))
    csv(tmp_path / "b.csv", ("t", 0, 7, "a"))
    plan = kafkajit.import_files(tmp_path, tmp_path / "logs", new_offsets=new_offsets)
    for act in (lambda: plan.partitions, plan.apply):
        with pytest.raises(
            InvalidOffsetError, match=r"5 to 9 of t-0 are in .*a\.csv, and 7 to 7 in"
        ):
            act()
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("new_offsets", [False, True])
def test_some_files_with_offsets_and_some_without_are_an_error(
    new_offsets: bool, tmp_path: Path
) -> None:
    csv(tmp_path / "a.csv", ("t", 0, "v"), names="topic,partition,value")
    csv(tmp_path / "b.csv", ("t", 0, 7, "a"))
    (tmp_path / "c.csv").touch()
    with pytest.raises(ValueError, match=r"b\.csv has a column offset, and .*a\.csv has none"):
        kafkajit.import_files(tmp_path, tmp_path / "logs", new_offsets=new_offsets)
    plan = kafkajit.import_files(tmp_path, tmp_path / "logs", ignore_columns=["offset"])
    assert str(plan) == "t-0: 2 records, offsets 0 to 1"


def test_offsets_that_are_not_in_order_are_named_with_their_file(tmp_path: Path) -> None:
    csv(tmp_path / "a.csv", ("t", 0, 5, "a"), ("t", 0, 4, "b"))
    for new_offsets in (False, True):
        plan = kafkajit.import_files(tmp_path, tmp_path / "logs", new_offsets=new_offsets)
        with pytest.raises(InvalidOffsetError, match=r"a\.csv: rows that keep their offsets"):
            str(plan)


def odd_log(folder: Path) -> None:
    """A log with times before 1970, without a time, and beyond the year 9999."""
    stamps = [TIME, -1, -5_000, 253_402_300_800_000, 2**61, None, 8_000_000_000_000_000, TIME, 0]
    with kafkajit.LogWriter(folder) as log:
        for offset in range(60):
            stamp = stamps[offset % len(stamps)]
            record = kt.Record(b"k", b"v%d" % offset, timestamp=TIME if stamp is None else stamp)
            log.append(kt.batch([record], base_offset=offset, base_timestamp=0))


@pytest.mark.parametrize("to", ["parquet", "avro"])
def test_records_of_odd_times_come_back_from_folders_by_date(to: str, tmp_path: Path) -> None:
    odd_log(tmp_path / "logs" / "odd-0")
    kafkajit.export(tmp_path / "logs", tmp_path / "files", to=to, partition_by="topic,date")
    assert (tmp_path / "files" / "topic=odd" / "date=__HIVE_DEFAULT_PARTITION__").is_dir()
    kafkajit.import_files(tmp_path / "files", tmp_path / "back").apply()
    assert records_in(tmp_path / "back") == records_in(tmp_path / "logs")


def test_years_beyond_9999_come_back_from_text(tmp_path: Path) -> None:
    stamps = [253_402_300_800_000, -62_167_219_200_001, 9_223_372_036_854_775]
    with kafkajit.LogWriter(tmp_path / "logs" / "odd-0") as log:
        for offset, stamp in enumerate(stamps):
            record = kt.Record(b"k", b"v", timestamp=stamp)
            log.append(kt.batch([record], base_offset=offset, base_timestamp=stamp))
    for to in ("csv", "jsonl"):
        kafkajit.export(tmp_path / "logs", tmp_path / f"a.{to}")
        kafkajit.import_files(tmp_path / f"a.{to}", tmp_path / to).apply()
        assert records_in(tmp_path / to) == records_in(tmp_path / "logs")


def test_typed_json_lines_whose_first_value_is_null_come_back(tmp_path: Path) -> None:
    kafkajit.export("sample:typed", tmp_path / "a.jsonl", schemas="auto")
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    wanted = [json.loads(line) for line in lines]
    first = json.dumps(
        wanted[0] | {"value": None, "offset": 0, "partition": wanted[0]["partition"]}
    )
    wanted[0] = json.loads(first)
    (tmp_path / "a.jsonl").write_text("\n".join([first, *lines[1:]]))
    plan = kafkajit.import_files(tmp_path / "a.jsonl", tmp_path / "back")
    plan.apply()
    found = [row for rows in records_in(tmp_path / "back").values() for row in rows]
    for row in wanted:
        (same,) = [
            f for f in found if (f["partition"], f["offset"]) == (row["partition"], row["offset"])
        ]
        assert (None if same["value"] is None else json.loads(same["value"])) == row["value"]


def test_the_files_own_key_and_value_are_named_if_other_columns_are_chosen(tmp_path: Path) -> None:
    csv(tmp_path / "a.csv", ("k", "v", "x", "y"), names="key,value,id,payload")
    options = {"topic": "t", "partitions": 1}
    plan = kafkajit.import_files(
        tmp_path / "a.csv", tmp_path / "logs", key_column="id", value_column="payload", **options
    )
    assert str(plan).splitlines()[1:] == ["columns that are not imported: key, value"]
    plan = kafkajit.import_files(tmp_path / "a.csv", tmp_path / "logs", key_column="id", **options)
    assert str(plan).splitlines()[1:] == ["columns that are not imported: key, payload"]
    for names in ({"key_column": "id"}, {"value_column": "payload"}):
        plan = kafkajit.import_files(
            tmp_path / "a.csv", tmp_path / "logs", ignore_columns=["*d"], **names, **options
        )
        with pytest.raises(ValueError, match="is named, and is to be ignored as well"):
            plan.apply()
    ignored = kafkajit.import_files(
        tmp_path / "a.csv", tmp_path / "logs", ignore_columns=["pay*", "id"], **options
    )
    ignored.apply()
    assert not ignored.left_out
    assert [row["key"] for row in records_in(tmp_path / "logs")["t-0"]] == [b"k"]


def test_columns_that_new_offsets_lose_are_named_if_they_have_something(tmp_path: Path) -> None:
    columns = {
        "topic": ["t"],
        "partition": [0],
        "offset": [7],
        "value": ["v"],
        "timestampType": [0],
    }
    columns |= {"producerId": [-1], "isTransactional": [False], "baseOffset": [7], "sequence": [3]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    plan = kafkajit.import_files(tmp_path / "a.parquet", tmp_path / "logs", new_offsets=True)
    assert str(plan).splitlines()[1:] == ["columns that are not imported: sequence"]
    kept = kafkajit.import_files(tmp_path / "a.parquet", tmp_path / "logs")
    assert str(kept) == "t-0: 1 record, offset 7"


def test_a_column_of_a_records_old_place_is_named_if_there_are_no_offsets(tmp_path: Path) -> None:
    csv(tmp_path / "a.csv", ("v", "manager"), names="value,position")
    plan = kafkajit.import_files(tmp_path / "a.csv", tmp_path / "logs", topic="t", partitions=1)
    assert str(plan).splitlines()[1:] == ["columns that are not imported: position"]


@pytest.mark.parametrize("to", ["parquet", "arrow", "csv", "jsonl", "avro"])
def test_rows_of_damage_are_counted(to: str, tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "broken-0"
    folder.mkdir(parents=True)
    batches = [kt.batch([kt.Record(value=b"v")] * 2, base_offset=n) for n in (0, 2, 6)]
    content = [*batches[:2], kt.broken("wrong crc", base_offset=4), batches[2]]
    (folder / f"{0:020}.log").write_bytes(b"".join(content))
    kafkajit.export(tmp_path / "logs", tmp_path / f"a.{to}", mode="PERMISSIVE")
    plan = kafkajit.import_files(tmp_path / f"a.{to}", tmp_path / "back")
    (part,) = plan.apply()
    assert part.records == 6
    assert plan.left_out.damaged == {str(tmp_path / f"a.{to}"): 1}
    assert [offset for offset, _ in values(tmp_path / "back")["broken-0"]] == [0, 1, 2, 3, 6, 7]


def test_a_named_column_is_not_base64_because_of_its_name(tmp_path: Path) -> None:
    csv(tmp_path / "a.csv", ("abcd", "aGVsbG8="), names="idBase64,imageBase64")
    options = {"topic": "t", "partitions": 1, "value_column": "imageBase64"}
    kafkajit.import_files(tmp_path / "a.csv", tmp_path / "logs", **options).apply()  # type: ignore[arg-type]
    assert values(tmp_path / "logs")["t-0"] == [(0, b"aGVsbG8=")]


def test_base64_and_raw_columns_take_precedence_and_hide_nothing(tmp_path: Path) -> None:
    names = "topic,partition,value,valueBase64,keyBase64"
    csv(tmp_path / "a.csv", ("t", 0, "v", "/w==", "aw=="), names=names)
    kafkajit.import_files(tmp_path / "a.csv", tmp_path / "logs").apply()
    assert values(tmp_path / "logs")["t-0"] == [(0, b"\xff")]
    csv(tmp_path / "a.csv", ("t", 0, "v", "", "aw=="), names=names)
    with pytest.raises(ValueError, match=r"line 2: column 'value': valueBase64 takes precedence"):
        str(kafkajit.import_files(tmp_path / "a.csv", tmp_path / "logs"))
    csv(tmp_path / "a.csv", ("t", 0, "v", "/w==", "a"), names=names)
    with pytest.raises(ValueError, match=r"line 2: column 'keyBase64': 'a' is not base64"):
        str(kafkajit.import_files(tmp_path / "a.csv", tmp_path / "logs"))


def test_an_export_of_raw_bytes_comes_back_and_malformed_values_do_not_become_null(
    tmp_path: Path,
) -> None:
    columns = [*COLUMNS, "rawValue"]
    for to, encoding in (("parquet", "text"), ("csv", "base64"), ("jsonl", "base64")):
        options = {"to": to, "encoding": encoding, "columns": columns, "schemas": "auto"}
        kafkajit.export("sample:typed", tmp_path / to, topics=["shipments"], **options)
        plan = kafkajit.import_files(tmp_path / to, tmp_path / f"back-{to}")
        plan.apply()
        assert not plan.left_out
        wanted = {
            name: rows
            for name, rows in records_in(SAMPLE_FOLDER / "typed").items()
            if name.startswith("shipments-")
        }
        assert records_in(tmp_path / f"back-{to}") == wanted
    columns = {"value": [{"a": 1}, None], "valueError": [None, "the value is cut"]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"row 2: column 'value': the export could not decode it"):
        str(kafkajit.import_files(tmp_path / "a.parquet", tmp_path / "l", topic="t", partitions=1))


@pytest.mark.whole
@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("", 0, 1, "v"), "column 'topic': a record needs a topic"),
        (("a/b", 0, 1, "v"), "column 'topic': Topic name is invalid: 'a/b' contains"),
        (("t", "", 1, "v"), "column 'partition': a record needs a partition"),
        (("t", -1, 1, "v"), "column 'partition': there is no partition -1"),
        (("t", 2**31, 1, "v"), "column 'partition': 2147483648 does not fit int32"),
        (("t", 0, -1, "v"), "column 'offset': the offset -1 is below 0"),
        (("t", 0, "x", "v"), "column 'offset': 'x' is not an integer of 64 bits"),
    ],
)
def test_a_row_without_a_place_is_an_error_with_its_line(
    row: tuple[Any, ...], words: str, tmp_path: Path
) -> None:
    csv(tmp_path / "a.csv", ("t", 0, 0, "v"), row)
    plan = kafkajit.import_files(tmp_path / "a.csv", tmp_path / "logs")
    for act in (lambda: plan.partitions, plan.apply):
        with pytest.raises(ValueError, match=r"a\.csv, line 3: ") as caught:
            act()
        assert words in str(caught.value)
    assert not (tmp_path / "logs").exists()


def test_a_partition_beyond_those_of_the_topic_is_an_error(tmp_path: Path) -> None:
    csv(tmp_path / "a.csv", ("t", 3, 0, "v"))
    with pytest.raises(ValueError, match=r"line 2: .* there is no partition 3 in a topic of 3"):
        str(kafkajit.import_files(tmp_path / "a.csv", tmp_path / "logs", partitions=3))


def test_files_of_several_formats_and_columns_are_one_import(tmp_path: Path) -> None:
    csv(tmp_path / "in" / "a.csv", ("a", "k"), names="value,key")
    (tmp_path / "in" / "b.jsonl").write_text('{"value":"b","headers":[{"key":"h","value":"1"}]}')
    pq.write_table(pa.table({"value": [b"c"]}), tmp_path / "in" / "c.parquet")
    plan = kafkajit.import_files(tmp_path / "in", tmp_path / "logs", topic="t", partitions=1)
    plan.apply()
    rows = records_in(tmp_path / "logs")["t-0"]
    assert [row["value"] for row in rows] == [b"a", b"b", b"c"]
    assert [len(row["headers"] or []) for row in rows] == [0, 1, 0]


def test_an_error_of_a_whole_log_names_its_partition(tmp_path: Path) -> None:
    """Each batch is sound, and a broker refuses the second: the transaction goes on without it."""
    columns = {
        "topic": ["t"] * 2,
        "partition": [0] * 2,
        "offset": [0, 1],
        "value": ["v"] * 2,
        "producerId": [7] * 2,
        "producerEpoch": [0] * 2,
        "sequence": [0, 1],
        "isTransactional": [True, False],
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    plan = kafkajit.import_files(tmp_path / "a.parquet", tmp_path / "kafka")
    with pytest.raises(kafkajit.InvalidRecordError) as caught:
        plan.apply()
    assert str(caught.value) == (
        f"Expected transactional write from producer 7, base offset 1 in {tmp_path}/kafka/t-0"
    )
    assert not (tmp_path / "kafka").exists()


@pytest.mark.parametrize("names", ["partition", ["partition", "date"], "part*"])
def test_columns_in_the_path_are_ignored_too(names: str | list[str], tmp_path: Path) -> None:
    for partition in (0, 3):
        folder = tmp_path / "in" / f"topic=t/partition={partition}" / "date=2026-01-01"
        folder.mkdir(parents=True)
        (folder / "a.jsonl").write_text('{"key":"k","value":"v"}\n' * 2)
    plan = kafkajit.import_files(
        tmp_path / "in", tmp_path / "logs", ignore_columns=names, partitions=2
    )
    plan.apply()
    (made,) = (tmp_path / "logs").glob("t-*")  # the one of the key
    assert len(kafkajit.read_records(made / f"{0:020}.log")) == 4
    assert ("date" in plan.left_out.columns) == ("date" not in names)


def test_a_foreign_column_with_the_name_of_an_export_s_errors_is_named(tmp_path: Path) -> None:
    csv(tmp_path / "a.csv", ("k", "p", "why"), names="key,payload,valueError")
    options = {"topic": "t", "partitions": 1, "value_column": "payload"}
    plan = kafkajit.import_files(tmp_path / "a.csv", tmp_path / "logs", **options)
    assert str(plan).splitlines()[1:] == ["columns that are not imported: valueError"]
