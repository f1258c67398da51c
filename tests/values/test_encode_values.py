"""encode_values: what decode_values reads is written again, and fastavro reads the same."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any

import pyarrow as pa
import pytest
from avro_schemas import AT_ONCE, COUNT, DEEP, VALUES, Author, as_fastavro_has_it, named_types
from typed_logs import ORDER, ORDERS, confluent, encoded, fastavros

import kafkajit
from kafkajit import RecordSerializationError
from kafkajit.values.avro.schema import parse_schema


@pytest.mark.parametrize("first", range(0, COUNT, AT_ONCE))
def test_values_of_random_schemas_come_back(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        author = Author(seed)
        schema = author.record()
        named = named_types(schema)
        content = encoded(schema, *(author.value(schema, named) for _ in range(VALUES)))
        try:
            decoded = kafkajit.decode_values(content, schema, framing="bare", recursion=DEEP)
        except kafkajit.RecordDeserializationError as error:
            assert "than recursion allows" in str(error)  # noqa: PT017 - the others must not fail
            continue
        written = kafkajit.encode_values(decoded, schema)
        assert kafkajit.decode_values(written, schema, framing="bare", recursion=DEEP) == decoded
        type_ = parse_schema(schema)
        for value, row in zip(written.to_pylist(), decoded.to_pylist(), strict=True):
            assert fastavros(schema, value) == as_fastavro_has_it(row, type_), seed


def test_bytes_are_those_of_fastavro() -> None:
    assert kafkajit.encode_values(pa.array(ORDERS), ORDER).to_pylist() == encoded(ORDER, *ORDERS)


def test_logical_types_come_back() -> None:
    def of(logical: str, type_: str, **more: Any) -> dict[str, Any]:
        return {"type": type_, "logicalType": logical, **more}

    types = [
        of("date", "int"),
        of("time-millis", "int"),
        of("time-micros", "long"),
        of("timestamp-millis", "long"),
        of("timestamp-micros", "long"),
        of("timestamp-nanos", "long"),
        of("local-timestamp-micros", "long"),
        of("decimal", "bytes", precision=9, scale=2),
        of("decimal", "fixed", name="D", size=6, precision=9, scale=2),
        of("decimal", "bytes", precision=60),
        of("uuid", "string"),
        of("uuid", "fixed", name="U", size=16),
        of("duration", "fixed", name="P", size=12),
    ]
    at = datetime.datetime(2025, 11, 5, 12, 30, 15, 123000, tzinfo=datetime.UTC)
    values = [
        at.date(),
        at.time(),
        at.time(),
        at,
        at,
        at,
        at.replace(tzinfo=None),
        decimal.Decimal("-12345.67"),
        decimal.Decimal("0.01"),
        decimal.Decimal(-(10**59)),
        str(uuid.UUID(int=5)),
        str(uuid.UUID(int=2**127 + 9)),
        {"months": 1, "days": 2, "milliseconds": 2**32 - 1},
    ]
    fields = [{"name": f"f{n}", "type": ["null", type_]} for n, type_ in enumerate(types)]
    schema = {"type": "record", "name": "R", "fields": fields}
    row = {f"f{n}": value for n, value in enumerate(values)}
    type_ = kafkajit.decode_values([], schema).type
    array = pa.array([row, dict.fromkeys(row), row], type_)
    written = kafkajit.encode_values(array, schema)
    assert kafkajit.decode_values(written, schema, framing="bare") == array


@pytest.mark.parametrize(
    ("number", "content"),
    [(0, b"\0"), (127, b"\x7f"), (128, b"\0\x80"), (-128, b"\x80"), (-129, b"\xff\x7f")],
)
def test_a_decimal_has_as_few_bytes_as_can_be(number: int, content: bytes) -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 9}
    array = pa.array([decimal.Decimal(number)], pa.decimal128(9))
    assert kafkajit.encode_values(array, schema)[0].as_py() == bytes([2 * len(content)]) + content


@pytest.mark.parametrize(
    ("framing", "name"),
    [("confluent", 7), ("apicurio8", 7), ("glue", str(uuid.UUID(int=7))), ("single-object", None)],
)
def test_each_framing_is_read_again(framing: Any, name: Any) -> None:
    array = pa.array([*ORDERS, None])
    written = kafkajit.encode_values(array, ORDER, framing=framing, schema_id=name)
    assert written[3].as_py() is None
    found = kafkajit.decode_values(written, ORDER, framing=framing)
    assert found.to_pylist() == [*ORDERS, None]


def test_arrays_of_all_shapes_are_taken() -> None:
    array = pa.array([*ORDERS, None])
    expected = [*confluent(7, encoded(ORDER, *ORDERS)), None]
    chunked = pa.chunked_array([array.slice(0, 1), array.slice(1)])
    assert kafkajit.encode_values(chunked, ORDER, schema_id=7).to_pylist() == expected
    sliced = kafkajit.encode_values(array.slice(1, 2), ORDER, schema_id=7)
    assert sliced.to_pylist() == expected[1:3]
    assert kafkajit.encode_values(array.slice(0, 0), ORDER).to_pylist() == []
    shuffled = pa.array([dict(reversed(row.items())) for row in ORDERS])
    assert kafkajit.encode_values(shuffled, ORDER, schema_id=7).to_pylist() == expected[:3]
    assert kafkajit.encode_values(pa.array([1, 2], pa.int8()), "long").to_pylist() == [b"\2", b"\4"]
    assert kafkajit.encode_values(pa.array([None, 1]), '["null", "int"]').to_pylist() == [
        b"\0",
        b"\2\2",
    ]


def one(type_: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "a", "type": type_}]}


ENUM = {"type": "enum", "name": "E", "symbols": ["X"]}
FIXED = {"type": "fixed", "name": "F", "size": 2}
SMALL = {**FIXED, "size": 1, "logicalType": "decimal", "precision": 2}


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        (
            one("long"),
            None,
            "row 1: the value cannot be written in a: it is NULL, but its type is long",
        ),
        (one(ENUM), "Y", "row 1: the value cannot be written in a: the enum has no symbol 'Y'"),
        (one(FIXED), b"abc", "in a: it has 3 bytes, not 2"),
        (one({"type": "array", "items": "long"}), [None], "in a[]: it is NULL"),
        (one("int"), 2**40, "cannot be cast"),
        (one("long"), "text", "cannot be cast"),
        (one({**FIXED, "size": 16, "logicalType": "uuid"}), "no", "'no' is not a UUID"),
    ],
)
def test_a_row_that_does_not_fit_is_an_error(schema: Any, value: Any, words: str) -> None:
    good = {"long": 1, "int": 1}.get(str(schema["fields"][0]["type"]))
    type_ = pa.array([{"a": value}]).type
    if value is None or value == [None]:
        type_ = kafkajit.decode_values([], schema).type
    rows = [{"a": value}] if good is None else [{"a": good}, {"a": value}]
    if isinstance(value, str) and good is not None:
        rows = [{"a": value}]
    with pytest.raises(RecordSerializationError) as raised:
        kafkajit.encode_values(pa.array(rows, type_), schema)
    assert words.replace("row 1", f"row {len(rows) - 1}") in str(raised.value)


def test_a_decimal_that_is_too_large_for_a_fixed_is_an_error() -> None:
    array = pa.array([decimal.Decimal(99)], pa.decimal128(2))
    assert kafkajit.encode_values(array, SMALL).to_pylist() == [b"c"]
    wide = {**SMALL, "size": 1, "precision": 2}
    assert kafkajit.decode_values([b"c"], wide, framing="bare").to_pylist() == [decimal.Decimal(99)]


def test_a_framing_needs_its_id() -> None:
    with pytest.raises(ValueError, match="framing confluent needs a schema_id"):
        kafkajit.encode_values(pa.array(ORDERS), ORDER, framing="confluent")
    with pytest.raises(ValueError, match="framing must be one of bare, confluent"):
        kafkajit.encode_values(pa.array(ORDERS), ORDER, framing="auto")


def test_a_union_of_null_alone_comes_back() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null"]}]}
    rows = pa.array([{"n": None}, {"n": None}])
    written = kafkajit.encode_values(rows, schema)
    assert written.to_pylist() == [b"\0", b"\0"]
    assert kafkajit.decode_values(written, schema, framing="bare").to_pylist() == rows.to_pylist()
