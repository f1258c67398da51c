"""read_records and iter_records with typed keys and values."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from typed_logs import (
    CLICKS,
    ORDER,
    ORDERS,
    SHIPMENTS,
    confluent,
    encoded,
    schema_record,
    write_clicks,
    write_registry,
    write_shipments,
    write_values,
)

import kafkajit
from kafkajit import InvalidSchemaError, RecordDeserializationError

GOOD = confluent(7, encoded(ORDER, *ORDERS))
LOG = f"{0:020}.log"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A topic with values, one of them NULL, and with keys; and the registry's log."""
    records = [
        schema_record("orders-value", 1, 7, json.dumps(ORDER)),
        schema_record("orders-key", 1, 8, '"long"'),
    ]
    write_registry(tmp_path / "_schemas-0", records)
    keys = [b"\0\0\0\0\x08" + bytes([2 * n]) for n in range(4)]
    write_values(tmp_path / "orders-0", [*GOOD, None], keys)
    return tmp_path


@pytest.fixture
def log(root: Path) -> Path:
    return root / "orders-0" / LOG


@pytest.fixture
def damaged(root: Path) -> Path:
    """As `log`; the second value is cut short, and the third key has a schema that is not known."""
    keys = [b"\0\0\0\0\x08" + bytes([2 * n]) for n in range(4)]
    keys[2] = b"\0\0\0\0\x63\0"
    values = [GOOD[0], GOOD[1][:-2], GOOD[2], None]
    return write_values(root / "orders-0", values, keys) / LOG


def test_keys_and_values_are_those_of_the_topics_schemas(log: Path, root: Path) -> None:
    for schemas in ("auto", root, root / "_schemas-0", kafkajit.read_schemas(root)):
        table = kafkajit.read_records(log, schemas=schemas)
        assert table["value"].to_pylist() == [*ORDERS, None]
        assert table["key"].to_pylist() == [0, 1, 2, 3]
        assert "rawValue" not in table.column_names
    batches = list(kafkajit.iter_records(log, 2, schemas="auto", columns=["offset", "value"]))
    assert [batch.num_rows for batch in batches] == [2, 2]
    assert pa.Table.from_batches(batches)["value"].to_pylist() == [*ORDERS, None]


def test_columns_may_name_fields_and_the_bytes(log: Path) -> None:
    columns = ["value.note", "offset", "rawValue", "value.id"]
    table = kafkajit.read_records(log, schemas="auto", columns=columns)
    assert table.column_names == ["value", "offset", "rawValue"]
    assert table["value"].type == pa.struct([("id", pa.int64()), ("note", pa.string())])
    assert table["rawValue"].to_pylist() == [*GOOD, None]
    whole = kafkajit.read_records(log, schemas="auto", columns=["value.id", "value"])
    assert whole["value"].to_pylist() == [*ORDERS, None]
    with pytest.raises(ValueError, match="unknown column 'rawHeaders'"):
        kafkajit.read_records(log, schemas="auto", columns=["rawHeaders"])
    with pytest.raises(ValueError, match="unknown column 'rawValue'"):
        kafkajit.read_records(log, columns=["rawValue"])
    with pytest.raises(InvalidSchemaError, match="has no field 'ids'; did you mean 'id'"):
        kafkajit.read_records(log, schemas="auto", columns=["value.ids"])


def test_a_schema_may_be_named(log: Path, tmp_path: Path) -> None:
    reader = {**ORDER, "fields": [*ORDER["fields"], {"name": "x", "type": "int", "default": 5}]}
    table = kafkajit.read_records(log, value_schema=reader, schemas="auto")
    assert table["value"].to_pylist() == [*(order | {"x": 5} for order in ORDERS), None]
    alone = kafkajit.read_records(log, value_schema=ORDER, columns=["key", "value"])
    assert alone["value"].to_pylist() == [*ORDERS, None]
    assert alone["key"].type == pa.binary()
    content = kafkajit.read_records(log.read_bytes(), key_schema="long", columns=["key"])
    assert content["key"].to_pylist() == [0, 1, 2, 3]


def test_an_error_has_kafkas_words_and_the_place(damaged: Path) -> None:
    with pytest.raises(RecordDeserializationError) as raised:
        kafkajit.read_records(damaged, schemas="auto")
    assert str(raised.value) == (
        "Error deserializing KEY for partition orders-0 at offset 2: "
        "the schema is not known, schema id 99"
    )
    with pytest.raises(RecordDeserializationError) as raised:
        kafkajit.read_records(damaged, schemas="auto", columns=["value.id"])
    assert str(raised.value) == (
        "Error deserializing VALUE for partition orders-0 at offset 1: a size reaches past the end "
        "of the value, field note, byte 17, schema id 7"
    )
    with pytest.raises(RecordDeserializationError, match="VALUE at offset 1: "):
        kafkajit.read_records(damaged.read_bytes(), value_schema=ORDER)
    # Columns that nobody asks for are not decoded.
    assert kafkajit.read_records(damaged, schemas="auto", columns=["offset"]).num_rows == 4


def test_permissive_returns_null_and_the_reason(damaged: Path) -> None:
    table = kafkajit.read_records(damaged, schemas="auto", mode="PERMISSIVE")
    assert table.column_names[-3:] == ["keyError", "valueError", "corruption"]
    assert table["value"].to_pylist() == [ORDERS[0], None, ORDERS[2], None]
    assert table["key"].to_pylist() == [0, 1, None, 3]
    assert [error is not None for error in table["valueError"].to_pylist()] == [0, 1, 0, 0]
    assert [error is not None for error in table["keyError"].to_pylist()] == [0, 0, 1, 0]
    # Also of columns that are not asked for.
    errors = kafkajit.read_records(
        damaged, schemas="auto", mode="PERMISSIVE", columns=["valueError"]
    )
    assert errors["valueError"].null_count == 3


@pytest.mark.parametrize("columns", [["offset"], ["offset", "value"], ["offset", "key", "value"]])
def test_dropmalformed_drops_the_record_whatever_its_columns(
    columns: list[str], damaged: Path
) -> None:
    table = kafkajit.read_records(damaged, schemas="auto", mode="DROPMALFORMED", columns=columns)
    assert table["offset"].to_pylist() == [0, 3]


def test_without_schemas_nothing_is_guessed(log: Path, root: Path, tmp_path: Path) -> None:
    other = write_values(root / "payments-0", GOOD) / LOG
    with pytest.raises(InvalidSchemaError) as raised:
        kafkajit.read_records(other, schemas=root)
    assert str(raised.value) == (
        "no schema is known for the topic payments; there are schemas of orders-key, "
        "orders-value: name the value's schema"
    )
    # "auto" is for those who may have no schemas.
    assert kafkajit.read_records(other, schemas="auto")["value"].to_pylist() == GOOD
    alone = write_values(tmp_path / "alone" / "orders-0", GOOD) / LOG
    assert kafkajit.read_records(alone, schemas="auto")["value"].type == pa.binary()


def test_keys_may_be_bare_while_values_are_not(root: Path) -> None:
    """As those of Kafka's own LongSerializer are not: a schema is only for what has one."""
    keys: list[Any] = [b"k1", None, b"k3"]
    write_values(root / "orders-0", GOOD, keys)
    log = root / "orders-0" / LOG
    table = kafkajit.read_records(
        log, value_schema=ORDER, schemas=root / "_schemas-0", columns=["value"]
    )
    assert table["value"].to_pylist() == ORDERS
    table = kafkajit.read_records(log, value_schema=ORDER, columns=["key", "value"])
    assert table["key"].to_pylist() == keys


def test_protobuf_values_are_those_of_the_message_that_the_first_one_has(tmp_path: Path) -> None:
    """Not of the first message in the file; the schema imports another one."""
    write_shipments(tmp_path)
    table = kafkajit.read_records(tmp_path / "shipments-0" / LOG, schemas="auto")
    empty, first, second, third = table["value"].to_pylist()
    assert empty is None
    assert first["id"] == 2**32 - 1
    assert first["carrier"] == "SHIP"
    assert first["weight"] == {"kilos": 0.0, "notes": ["n"]}
    assert second["parcels"] == [("a", 5)]
    assert third["weight"] is None
    some = kafkajit.read_records(
        tmp_path / "shipments-0" / LOG, schemas="auto", columns=["value.weight.kilos"]
    )
    assert some["value"].to_pylist()[1] == {"weight": {"kilos": 0.0}}
    assert kafkajit.read_schemas(tmp_path)["schemaType"].to_pylist() == ["PROTOBUF"] * 2


def test_a_protobuf_message_may_be_named(tmp_path: Path) -> None:
    proto = 'syntax = "proto3"; message A { int32 a = 1; } message B { int32 b = 1; }'
    write_values(tmp_path / "t-0", [b"\0\0\0\0\x01" + at + b"\x08\x05" for at in (b"\0", b"\2\2")])
    log = tmp_path / "t-0" / LOG
    named = {"value_schema": proto, "schemas": {1: proto}, "mode": "DROPMALFORMED"}
    assert kafkajit.read_records(log, **named)["value"].to_pylist() == [{"a": 5}]
    table = kafkajit.read_records(log, value_message="B", **named)
    assert table["value"].to_pylist() == [{"b": 5}]
    with pytest.raises(InvalidSchemaError, match=r"no messages 'C'; there are: A, B"):
        kafkajit.read_records(log, value_message="C", **named)
    with pytest.raises(InvalidSchemaError, match="message A is named, but no schema of keys"):
        kafkajit.read_records(log, key_message="A", **named)
    with pytest.raises(InvalidSchemaError, match="message A is named, but no schema of values"):
        kafkajit.read_records(log, value_message="A")
    for schema, format_ in (
        ('"string"', "an Avro schema"),
        ('{"type": "object", "properties": {}}', "JSON"),
    ):
        with pytest.raises(ValueError, match=f"{format_} has no messages, such as 'A'"):
            kafkajit.read_records(log, value_schema=schema, value_message="A")


def test_json_values_are_those_of_the_topics_json_schema(tmp_path: Path) -> None:
    write_clicks(tmp_path)
    log = tmp_path / "clicks-0" / LOG
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    expected = [
        {"page": "/a", "user": {"id": 5}, "at": at},
        {"page": None, "user": None, "at": None},
        None,
    ]
    assert kafkajit.read_records(log, schemas="auto")["value"].to_pylist() == expected
    some = kafkajit.read_records(log, schemas="auto", columns=["value.user.id"])
    assert some["value"].to_pylist()[0] == {"user": {"id": 5}}
    bad = b'\0\0\0\0\x03{"user": {"id": "five"}}'
    unknown = b"\0\0\0\0\x63{}"
    write_values(tmp_path / "clicks-0", [CLICKS[0], bad, unknown, b"{}"])
    table = kafkajit.read_records(log, schemas="auto", mode="PERMISSIVE")
    assert table["value"].to_pylist() == [expected[0], None, None, None]
    assert table["valueError"].to_pylist() == [
        None,
        "expected an integer, found a string, field user.id, byte 21, schema id 3",
        "the schema is not known, schema id 99",
        "the value does not begin with a schema id",
    ]


def header(name: str, content: bytes) -> dict[str, Any]:
    return {"key": name, "value": content}


def test_headers_may_name_the_schemas(root: Path) -> None:
    """Confluent's ids and UUIDs, Apicurio's ids; the last header counts, else what is in front."""
    (guid,) = kafkajit.read_schemas(root)["guid"].to_pylist()[:1]
    bare = encoded(ORDER, *ORDERS)
    uuid = b"\1" + UUID(guid).bytes
    other = header("trace", b"\0\0\0\0\x63")
    headers = [
        [other, header("__value_schema_id", b"\0\0\0\0\7")],
        [header("__value_schema_id", b"\1" + bytes(16)), header("__value_schema_id", uuid), other],
        [header("apicurio.value.globalId", (7).to_bytes(8, "big"))],
        None,
        [other],
        [header("__value_schema_id", b"\1" + bytes(16))],
        [header("__value_schema_id", uuid)],
    ]
    values = [*bare, GOOD[0], GOOD[1], bare[0], None]
    log = write_values(root / "orders-0", values, headers=headers) / LOG
    table = kafkajit.read_records(log, schemas=root, framing="headers", mode="PERMISSIVE")
    assert table["value"].to_pylist() == [*ORDERS, ORDERS[0], ORDERS[1], None, None]
    assert table["valueError"].to_pylist()[5:] == [
        "the schema is not known, schema 00000000-0000-0000-0000-000000000000",
        None,
    ]
    some = kafkajit.read_records(
        log, schemas=root, framing="headers", columns=["value.id"], mode="DROPMALFORMED"
    )
    assert [row and row["id"] for row in some["value"].to_pylist()][:3] == [1, -(2**40), 3]
    with pytest.raises(ValueError, match=r"framing must be one of .*, headers, not 'header'"):
        kafkajit.read_records(log, schemas=root, framing="header")


def test_a_protobuf_message_may_be_named_in_a_header(tmp_path: Path) -> None:
    write_shipments(tmp_path)
    guid = kafkajit.read_schemas(tmp_path)["guid"].to_pylist()[1]
    headers = [[header("__value_schema_id", b"\1" + UUID(guid).bytes + b"\2\2")]] * 3
    values = [value[7:] for value in SHIPMENTS]
    log = write_values(tmp_path / "shipments-0", values, headers=headers) / LOG
    table = kafkajit.read_records(log, schemas="auto", framing="headers")
    assert [row["id"] for row in table["value"].to_pylist()] == [2**32 - 1, 2, 0]
