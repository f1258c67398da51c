from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from producing import Job, files_of, holding, rows, write

from kafkajit.errors import LockedError
from kafkajit.produce.checks import check_columns
from kafkajit.produce.options import ProduceOptions
from kafkajit.schema import RECORD_COLUMNS, in_microseconds, table_schema

GOOD = {"topic": pa.string(), "partition": pa.int32(), "value": pa.binary()}
ROWS = rows(topic=["a"], partition=[0], value=[b""])


def check(columns: dict[str, pa.DataType], **given: str) -> None:
    schema = pa.schema(list(columns.items()))
    check_columns(schema, ProduceOptions.parse({"path": "/kafka", **given}))


def test_what_the_reader_gives_can_be_written() -> None:
    schema = in_microseconds(table_schema(RECORD_COLUMNS))
    for keeps in ("true", "false"):
        check_columns(schema, ProduceOptions.parse({"path": "/k", "keepOffsets": keeps}))


@pytest.mark.parametrize(
    "columns",
    [
        GOOD | {"key": pa.string(), "value": pa.large_string()},
        GOOD | {"partition": pa.int64(), "headers": pa.map_(pa.string(), pa.binary())},
        GOOD | {"timestamp": pa.timestamp("us", "Europe/Berlin"), "key": pa.large_binary()},
    ],
)
def test_types_that_say_the_same_are_fine(columns: dict[str, pa.DataType]) -> None:
    check(columns)


@pytest.mark.parametrize("name", ["value", "topic", "offset"])
def test_a_column_is_there_once(name: str) -> None:
    fields = [*GOOD.items(), ("offset", pa.int64()), (name, pa.string())]
    with pytest.raises(ValueError, match=f"there are several columns '{name}'"):
        check_columns(pa.schema(fields), ProduceOptions.parse({"path": "/kafka"}))


HEADERS = "ARRAY<STRUCT<key: STRING, value: BINARY>>"


@pytest.mark.parametrize(
    ("columns", "given", "message"),
    [
        (GOOD | {"vaule": pa.binary()}, {}, "no column 'vaule', did you mean 'value'? There are: "),
        (GOOD | {"xyz": pa.binary()}, {}, "no column 'xyz'. There are: key, value, topic"),
        (GOOD | {"value": pa.int32()}, {}, "column value must be STRING or BINARY, not int32"),
        (GOOD | {"topic": pa.binary()}, {}, "column topic must be STRING, not binary"),
        (GOOD | {"partition": pa.string()}, {}, "column partition must be INT, not string"),
        (GOOD | {"timestamp": pa.int64()}, {}, "column timestamp must be TIMESTAMP, not int64"),
        (GOOD | {"timestamp": pa.timestamp("us")}, {}, "timestamp must be TIMESTAMP, not timest"),
        (GOOD | {"headers": pa.string()}, {}, f"column headers must be {HEADERS}, not string"),
        (GOOD | {"headers": pa.list_(pa.string())}, {}, f"column headers must be {HEADERS}"),
        ({"topic": pa.string(), "partition": pa.int32()}, {}, "required column 'value' not found"),
        ({"partition": pa.int32(), "value": pa.binary()}, {}, "set the option topic, or add a"),
        ({"topic": pa.string(), "value": pa.binary()}, {}, "set the option partitions to the top"),
        (GOOD, {"keepOffsets": "true"}, "keepOffsets needs a column offset"),
    ],
)
def test_columns_that_cannot_be_written_are_an_error_before_the_job(
    columns: dict[str, pa.DataType], given: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        check(columns, **given)


@pytest.mark.parametrize(
    ("columns", "given"),
    [
        ({"partition": pa.int32(), "value": pa.binary()}, {"topic": "a"}),
        ({"topic": pa.string(), "value": pa.binary()}, {"partitions": "3"}),
    ],
)
def test_options_replace_missing_columns(
    columns: dict[str, pa.DataType], given: dict[str, str]
) -> None:
    check(columns, **given)


def test_a_partitions_folder_is_not_what_is_written_to(tmp_path: Path) -> None:
    write(tmp_path, [[ROWS]])
    before = files_of(tmp_path)
    with pytest.raises(ValueError, match=f"name the folder around it, {tmp_path}"):
        Job(tmp_path / "a-0", ROWS.schema)
    assert files_of(tmp_path) == before


def test_a_folder_in_a_brokers_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    with pytest.raises(ValueError, match=f"is in {tmp_path}, a broker's folder .*: name that one"):
        Job(tmp_path / "a-0", ROWS.schema)
    assert sorted(tmp_path.iterdir()) == [tmp_path / "meta.properties"]


def test_a_file_instead_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="file is not a folder"):
        Job(tmp_path / "file", ROWS.schema)


def test_a_brokers_folder_is_not_overwritten_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path, [[ROWS]])
    (tmp_path / "meta.properties").write_text("version=1\n")
    before = files_of(tmp_path)
    with pytest.raises(ValueError, match=r"would remove all of its 1 partitions: .* dynamic"):
        Job(tmp_path, ROWS.schema, mode="overwrite")
    assert files_of(tmp_path) == before
    write(tmp_path, [[ROWS]], mode="overwrite", partitionOverwriteMode="dynamic")
    write(tmp_path, [[ROWS]])


def test_a_running_brokers_folder_is_refused_before_the_job(tmp_path: Path) -> None:
    write(tmp_path, [[ROWS]])
    (tmp_path / "meta.properties").write_text("version=1\n")
    with holding(tmp_path, 60) as broker:
        before = files_of(tmp_path)
        with pytest.raises(LockedError, match="stop the broker first"):
            Job(tmp_path, ROWS.schema)
        assert files_of(tmp_path) == before
        broker.kill()
