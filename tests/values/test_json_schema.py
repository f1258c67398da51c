"""JSON Schema: the columns that are made of it, and the schemas that are refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafkajit import InvalidSchemaError
from kafkajit.values.json.json_schema import json_column, parse_json_schema
from kafkajit.values.json.types import JSON_TEXT, MILLIS, MOMENT, Column
from kafkajit.values.layout import Types

INTEGER = {"type": "integer"}
STRING = {"type": "string"}
CONNECT = "org.apache.kafka.connect.data."


def column(schema: Any, others: Any = None, **options: Any) -> Column:
    return json_column(parse_json_schema(schema, others), **options)


def type_of(schema: Any, others: Any = None, **options: Any) -> pa.DataType:
    return column(schema, others, **options).type


def record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "type_"),
    [
        (INTEGER, pa.int64()),
        ({"type": "number"}, pa.float64()),
        ({"type": "boolean"}, pa.bool_()),
        ({"type": "null"}, pa.null()),
        (STRING, pa.string()),
        ({**STRING, "format": "date-time"}, MOMENT),
        ({**STRING, "format": "date"}, pa.date32()),
        ({**STRING, "format": "time"}, pa.string()),
        ({**STRING, "format": "uuid"}, pa.string()),
        ({**STRING, "contentEncoding": "base64"}, pa.string()),
        (record(a=INTEGER, b=STRING), pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ({"properties": {"a": INTEGER}}, pa.struct([("a", pa.int64())])),
        ({"type": "object", "additionalProperties": INTEGER}, pa.map_(pa.string(), pa.int64())),
        ({"type": "object", "patternProperties": {"^": STRING}}, pa.map_(pa.string(), pa.string())),
        (
            {**record(a=INTEGER), "additionalProperties": STRING},
            pa.struct([("a", pa.int64())]),
        ),
        ({"type": "array", "items": INTEGER}, pa.list_(pa.field("element", pa.int64()))),
        ({"type": "array"}, pa.list_(pa.field("element", pa.string()))),
        ({"enum": ["a", "b", None]}, pa.string()),
        ({"const": 3}, pa.int64()),
        ({"enum": [1, 2.5]}, pa.float64()),
        ({"type": ["null", "integer"]}, pa.int64()),
        ({"type": ["integer", "number"]}, pa.float64()),
        ({"oneOf": [{"type": "null"}, INTEGER]}, pa.int64()),
        ({"anyOf": [STRING, {"type": "null"}]}, pa.string()),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, pa.string()),
        ({"allOf": [record(a=INTEGER), record(b=STRING)]},
         pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ({**record(a=INTEGER), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
         pa.struct([("a", pa.int64())])),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.whole
def test_a_schema_has_the_column_that_the_table_lists(schema: Any, type_: pa.DataType) -> None:
    assert type_of(schema) == type_


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": ["string", "integer"]},
        {"oneOf": [STRING, INTEGER]},
        {"oneOf": [record(a=INTEGER), record(b=INTEGER)]},
        {"oneOf": [{"oneOf": [STRING, INTEGER]}, STRING]},
        {"type": "object"},
        {"type": "object", "additionalProperties": True},
        {"type": "array", "items": [INTEGER, STRING]},
        {"type": "array", "prefixItems": [INTEGER]},
        {"enum": ["a", 1]},
    ],
    ids=str,
)
@pytest.mark.whole
def test_a_schema_without_one_clear_type_is_json_text(schema: Any) -> None:
    assert column(schema) == JSON_TEXT


@pytest.mark.parametrize(
    ("schema", "type_", "in_spark"),
    [
        ({**INTEGER, "connect.type": "int8"}, pa.int8(), pa.int8()),
        ({**INTEGER, "connect.type": "int16"}, pa.int16(), pa.int16()),
        ({**INTEGER, "connect.type": "int32"}, pa.int32(), pa.int32()),
        ({"type": "number", "connect.type": "float32"}, pa.float32(), pa.float32()),
        ({**STRING, "connect.type": "bytes"}, pa.binary(), pa.binary()),
        ({**INTEGER, "title": CONNECT + "Date", "connect.type": "int32"},
         pa.date32(), pa.date32()),
        ({**INTEGER, "title": CONNECT + "Time", "connect.type": "int32"},
         pa.time32("ms"), pa.int32()),
        ({**INTEGER, "title": CONNECT + "Timestamp", "connect.type": "int64"}, MILLIS, MOMENT),
        ({"type": "number", "title": CONNECT + "Decimal", "connect.type": "bytes",
          "connect.parameters": {"scale": "2", "connect.decimal.precision": "9"}},
         pa.decimal128(9, 2), pa.decimal128(9, 2)),
        ({"oneOf": [{"type": "null"}, {**INTEGER, "connect.type": "int16"}]},
         pa.int16(), pa.int16()),
    ],
)  # fmt: skip
@pytest.mark.whole
def test_kafka_connect_decides_a_type(
    schema: Any, type_: pa.DataType, in_spark: pa.DataType
) -> None:
    assert type_of(schema) == type_
    assert type_of(schema, types=Types.SPARK) == in_spark


@pytest.mark.parametrize("keyword", ["$defs", "definitions"])
def test_a_reference_is_followed(keyword: str) -> None:
    schema = {**record(a={"$ref": f"#/{keyword}/x~1y%20z"}), keyword: {"x/y z": INTEGER}}
    assert type_of(schema) == pa.struct([("a", pa.int64())])


def test_other_schemas_are_found_by_name_pointer_id_and_anchor() -> None:
    others = {
        "base.json": {**record(id=INTEGER), "$defs": {"w": {**STRING, "$anchor": "word"}}},
        "money": {"$id": "https://acme.example/money.json", **record(cents=INTEGER)},
    }
    schema = {
        "$id": "https://acme.example/order.json",
        "allOf": [{"$ref": "base.json"}],
        "properties": {
            "w": {"$ref": "base.json#/$defs/w"},
            "v": {"$ref": "base.json#word"},
            "price": {"$ref": "money.json"},
            "self": {"$ref": "https://acme.example/money.json#/properties/cents"},
        },
    }
    assert type_of(schema, others) == pa.struct(
        {
            "w": pa.string(),
            "v": pa.string(),
            "price": pa.struct({"cents": pa.int64()}),
            "self": pa.int64(),
            "id": pa.int64(),
        }
    )


def test_a_type_that_contains_itself_ends_in_json_text() -> None:
    schema = record(next={"$ref": "#"}, v=INTEGER)
    assert type_of(schema, recursion=1) == pa.struct({"next": pa.string(), "v": pa.int64()})
    text = str(type_of(schema))
    assert (text.count("next"), text.count("string")) == (4, 1)
    assert column({"$ref": "#"}) == JSON_TEXT


def test_a_field_that_two_schemas_describe_has_a_type_if_both_agree() -> None:
    narrow = {"allOf": [record(a={"type": "number"}), record(a=INTEGER)]}
    assert type_of(narrow) == pa.struct({"a": pa.int64()})
    assert type_of({"type": "number", "allOf": [{"type": ["string", "integer"]}]}) == pa.int64()


def test_columns_name_the_fields_that_are_wanted() -> None:
    schema = record(a=INTEGER, c=record(id=INTEGER, x=STRING), l={"items": record(q=INTEGER, z={})})
    assert type_of(schema, columns=["c.id", "l.q"]) == pa.struct(
        {
            "c": pa.struct({"id": pa.int64()}),
            "l": pa.list_(pa.field("element", pa.struct({"q": pa.int64()}))),
        }
    )
    with pytest.raises(InvalidSchemaError, match=r"no field 'aa'; did you mean 'a'\?"):
        column(schema, columns=["aa"])
    with pytest.raises(InvalidSchemaError, match="columns names the field 'b' of a value"):
        column(schema, columns=["a.b"])


def test_of_a_schema_with_too_many_columns_some_can_be_read() -> None:
    refers = {f"f{n}": {"$ref": "#/$defs/t"} for n in range(30)}
    schema = {**record(**refers), "$defs": {"t": record(**refers)}}
    with pytest.raises(InvalidSchemaError, match="more than 10,000 columns; name those"):
        column(schema)
    assert str(type_of(schema, columns=["f1.f2.f3"])).startswith("struct<f1: struct<f2: struct<f3")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("nope", "must be JSON"),
        (3, r"a schema must be an object, not 3, JSON Schema #$"),
        (record(a={"type": "int"}), r"no type 'int', JSON Schema #/properties/a$"),
        (record(**{"a~/b": {"items": 3}}), r"items must be a schema, not 3, .* #/.*/a~0~1b$"),
        ({"properties": []}, "properties must be an object"),
        ({"type": "object", "additionalProperties": 3}, "additionalProperties must be a schema"),
        ({"allOf": {}}, "allOf must be a list"),
        ({"enum": 3}, "enum must be a list"),
        ({"$ref": 3}, "must be a string"),
        ({"$ref": "gone.json"}, r"refers to 'gone.json', which does not exist, JSON Schema #$"),
        ({"$ref": "#/a/b"}, "refers to '#/a/b'"),
        ({"$ref": "#anchor"}, "refers to '#anchor'"),
        ({"$ref": "#/allOf/" + "9" * 50, "allOf": [{}]}, "which does not exist"),
        ({"$id": "http://[x", "$ref": "gone.json"}, "refers to 'gone.json'"),
        ({"$id": "http://a", "$ref": "http://[x"}, r"refers to 'http://\[x'"),
        (record(**{"\ud800": INTEGER}), "a property has the name"),
        ('{"items":' * 400 + "{}" + "}" * 400, ""),
        (
            '{"items":' * 600 + "{}" + "}" * 600,
            "nested deeper than 500 levels, JSON Schema #/items",
        ),
        ('{"items":' * 5000 + "{}" + "}" * 5000, "must be JSON|nested deeper than 500"),
    ],
)
@pytest.mark.whole
def test_an_invalid_schema_is_named_with_its_place(schema: Any, words: str) -> None:
    if not words:
        assert str(type_of(schema)).count("list") == 64
        return
    with pytest.raises(InvalidSchemaError, match=words) as raised:
        column(schema)
    assert len(str(raised.value)) < 400


def test_a_reference_to_an_item_may_have_any_number_of_digits() -> None:
    schema = {"$ref": f"#/allOf/{'9' * 5000}", "allOf": [{}]}
    with pytest.raises(InvalidSchemaError, match="which does not exist"):
        column(schema)


def test_a_schema_whose_id_is_no_uri_is_read() -> None:
    schema = {"$id": "http://[x", **record(a={"$id": "b", **INTEGER})}
    assert type_of(schema) == type_of(record(a=INTEGER))
