"""Typed keys and values in files: other programs find each value as it was written."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import kafkajit
import kafkajit.testing as kt
from kafkajit.errors import RecordSerializationError

FAR = 2**63 - 1


def avro(fields: dict[str, Any], name: str = "R") -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": key, "type": type_} for key, type_ in fields.items()],
    }


def log_of(folder: Path, fields: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """A log with these values in Avro, without a framing."""
    schema = fastavro.parse_schema(avro(fields))
    values = []
    for row in rows:
        value = io.BytesIO()
        fastavro.schemaless_writer(value, schema, row)
        values.append(value.getvalue())
    folder.mkdir(parents=True)
    content = kt.batch([kt.Record(b"k", value) for value in values])
    (folder / f"{0:020}.log").write_bytes(content)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("is_local", [False, True])
@pytest.mark.parametrize("to", ["parquet", "arrow"])
def test_timestamps_keep_their_unit_and_all_of_their_digits(
    to: str, is_local: bool, unit: str, tmp_path: Path
) -> None:
    numbers = [1_700_000_000_123_456_789, 0, -1, FAR, -FAR]
    log_of(tmp_path / "t-0", {"at": "long"}, [{"at": n} for n in numbers])
    logical = {"ms": "millis", "us": "micros", "ns": "nanos"}[unit]
    kind = {"type": "long", "logicalType": f"{'local-' * is_local}timestamp-{logical}"}
    out = tmp_path / f"t.{to}"
    kafkajit.export(tmp_path / "t-0", out, value_schema=json.dumps(avro({"at": kind})))
    table = pq.read_table(out) if to == "parquet" else pa.ipc.open_file(out).read_all()
    column = table["value"].combine_chunks().field("at")
    assert column.type == pa.timestamp(unit, tz=None if is_local else "UTC")
    assert column.cast(pa.int64()).to_pylist() == numbers


@pytest.mark.parametrize(
    ("unit", "number", "text"),
    [
        ("millis", 2_046_785_000_000_000_456, "+64862004-08-23T16:53:20.456"),
        ("micros", 1_700_000_000_123_456, "2023-11-14T22:13:20.123456"),
        ("nanos", 1_700_000_000_123_456_789, "2023-11-14T22:13:20.123456789"),
    ],
)
def test_timestamps_in_text_have_all_of_their_digits(
    unit: str, number: int, text: str, tmp_path: Path
) -> None:
    log_of(tmp_path / "t-0", {"at": "long"}, [{"at": number}])
    kind = {"type": "long", "logicalType": f"timestamp-{unit}"}
    named: dict[str, Any] = {"value_schema": json.dumps(avro({"at": kind})), "columns": ["value"]}
    kafkajit.export(tmp_path / "t-0", tmp_path / "t.jsonl", **named)
    kafkajit.export(tmp_path / "t-0", tmp_path / "t.avro", codec="none", **named)
    assert json.loads((tmp_path / "t.jsonl").read_text()) == {"value": {"at": f"{text}Z"}}
    content = (tmp_path / "t.avro").read_bytes()
    written: Any = fastavro.reader(io.BytesIO(content)).writer_schema
    assert f'"logicalType": "timestamp-{unit}"' in json.dumps(written)
    long = io.BytesIO()
    fastavro.schemaless_writer(long, "long", number)
    assert long.getvalue() in content


BYTES = avro({"b": "bytes"}, "B")
DEEP: dict[str, tuple[Any, Any, Any]] = {
    "map": ({"type": "map", "values": "bytes"}, {"a": b"\xff", "": b""}, {"a": "/w==", "": ""}),
    "map of lists": (
        {"type": "map", "values": {"type": "array", "items": "bytes"}},
        {"a": [b"\xff", b"x"], "b": []},
        {"a": ["/w==", "eA=="], "b": []},
    ),
    "list of maps": (
        {"type": "array", "items": {"type": "map", "values": "bytes"}},
        [{}, {"a": b"\xff"}],
        [{}, {"a": "/w=="}],
    ),
    "map of structs": (
        {"type": "map", "values": BYTES},
        {"a": {"b": b"\xff"}},
        {"a": {"bBase64": "/w=="}},
    ),
}


@pytest.mark.parametrize("to", ["csv", "jsonl"])
@pytest.mark.parametrize("kind", DEEP)
def test_bytes_at_any_depth_are_text_or_base64(kind: str, to: str, tmp_path: Path) -> None:
    type_, value, expected = DEEP[kind]
    rows = [{"v": value}, {"v": type(value)()}, {"v": value}]
    log_of(tmp_path / "t-0", {"v": type_}, rows)
    out = tmp_path / f"t.{to}"
    named: dict[str, Any] = {"value_schema": json.dumps(avro({"v": type_})), "columns": ["value"]}
    with pytest.raises(RecordSerializationError, match="value is not UTF-8 text at row 0"):
        kafkajit.export(tmp_path / "t-0", out, **named)
    assert not out.exists()
    kafkajit.export(tmp_path / "t-0", out, encoding="base64", **named)
    if to == "csv":
        lines = [line[1:-1].replace('""', '"') for line in out.read_text().splitlines()[1:]]
        found = [json.loads(line) for line in lines]
    else:
        found = [json.loads(line)["value"] for line in out.read_text().splitlines()]
    assert found == [{"v": expected}, {"v": type(expected)()}, {"v": expected}]


@pytest.mark.parametrize("columns", [["offset", "valueError"], ["valueError"], ["value"], None])
def test_malformed_values_count_if_only_their_errors_are_exported(
    columns: list[str] | None, tmp_path: Path
) -> None:
    log_of(tmp_path / "t-0", {"at": "string"}, [{"at": "a"}, {"at": "b"}])
    schema = json.dumps(avro({"at": {"type": "fixed", "name": "F", "size": 9}}))
    result = kafkajit.export(
        tmp_path / "t-0",
        tmp_path / "t.jsonl",
        mode="PERMISSIVE",
        value_schema=schema,
        columns=columns,
    )
    assert result.malformed == 2


def test_a_type_that_a_format_does_not_have_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    fields = {"list": {"type": "array", "items": avro({}, "Empty")}}
    log_of(tmp_path / "logs" / "t-0", fields, [{"list": [{}]}])
    named = {"value_schema": json.dumps(avro(fields))}
    with pytest.raises(ValueError, match=r"Parquet has no structs without fields, as value\.list"):
        kafkajit.export(tmp_path / "logs", tmp_path / "out", to="parquet", **named)
    assert not (tmp_path / "out").exists()
    kafkajit.export(tmp_path / "logs", tmp_path / "out", to="jsonl", **named)


def test_nested_records_of_avro_have_names_of_their_own(tmp_path: Path) -> None:
    fields = {
        "a": avro({"b": avro({"x": "int"}, "AB")}, "A"),
        "a_b": avro({"y": "int"}, "A_B"),
    }
    row = {"a": {"b": {"x": 1}}, "a_b": {"y": 2}}
    log_of(tmp_path / "t-0", fields, [row])
    named: dict[str, Any] = {"value_schema": json.dumps(avro(fields)), "columns": ["value"]}
    kafkajit.export(tmp_path / "t-0", tmp_path / "t.avro", **named)
    with (tmp_path / "t.avro").open("rb") as file:
        assert list(fastavro.reader(file)) == [{"value": row}]


def test_maps_of_messages_are_exported(tmp_path: Path) -> None:
    message = 'syntax="proto3"; message M { message I {int32 x=1; int32 y=2;} map<string,I> m=1; }'
    (tmp_path / "t-0").mkdir()
    value = bytes([0x0A, 7, 0x0A, 1, ord("a"), 0x12, 2, 8, 5])
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(kt.batch([kt.Record(value=value)]))
    out = tmp_path / "t.jsonl"
    kafkajit.export(tmp_path / "t-0", out, value_schema=message, columns=["value"])
    assert json.loads(out.read_text()) == {"value": {"m": {"a": {"x": 5, "y": 0}}}}


@pytest.mark.parametrize("to", ["jsonl", "parquet"])
def test_names_with_dots_are_names(to: str, tmp_path: Path) -> None:
    number = {"type": "integer"}
    inner = {"type": "object", "properties": {"b": number, "c.d": number}}
    schema = {"type": "object", "properties": {"a.b": number, "a": inner}}
    value = {"a.b": 1, "a": {"b": 2, "c.d": 3}}
    (tmp_path / "t-0").mkdir()
    content = kt.batch([kt.Record(value=json.dumps(value).encode())])
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(content)
    out = tmp_path / f"t.{to}"
    named: dict[str, Any] = {"value_schema": json.dumps(schema), "columns": ["value"]}
    kafkajit.export(tmp_path / "t-0", out, **named)
    rows = pq.read_table(out).to_pylist() if to == "parquet" else [json.loads(out.read_text())]
    assert rows == [{"value": value}]


def test_null_types_are_exported_to_avro(tmp_path: Path) -> None:
    again: dict[str, Any] = {"type": "array", "items": "Tree"}
    tree = avro({"n": "null", "list": {"type": "array", "items": "null"}, "more": again}, "Tree")
    row = {"n": None, "list": [None], "more": [{"n": None, "list": [], "more": []}]}
    (tmp_path / "t-0").mkdir()
    value = io.BytesIO()
    fastavro.schemaless_writer(value, fastavro.parse_schema(tree), row)
    content = kt.batch([kt.Record(value=value.getvalue())])
    (tmp_path / "t-0" / f"{0:020}.log").write_bytes(content)
    named: dict[str, Any] = {"value_schema": json.dumps(tree), "columns": ["value"]}
    kafkajit.export(tmp_path / "t-0", tmp_path / "t.avro", **named)
    with (tmp_path / "t.avro").open("rb") as file:
        assert list(fastavro.reader(file)) == [{"value": row}]
