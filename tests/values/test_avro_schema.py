"""Avro schemas: what is read of them, their canonical form and fingerprint, and what is refused."""

from __future__ import annotations

import json

import fastavro.schema
import pytest
from avro_schemas import Author

from kafkajit import InvalidSchemaError
from kafkajit.values.avro.schema import (
    Logical,
    Named,
    Record,
    canonical_form,
    fingerprint,
    parse_schema,
)


@pytest.mark.parametrize("seed", range(100))
def test_the_canonical_form_and_fingerprint_are_fastavros(seed: int) -> None:
    schema = Author(seed).record()
    form = fastavro.schema.to_parsing_canonical_form(schema)
    ours = canonical_form(parse_schema(json.dumps(schema)))
    assert ours == form
    little_endian = fastavro.schema.fingerprint(form, "CRC-64-AVRO")
    assert fingerprint(parse_schema(schema)).to_bytes(8, "little").hex() == little_endian


@pytest.mark.parametrize("text", ["long", '"long"', ' "long" ', '{"type": "long"}'])
def test_a_primitive_type_may_be_written_bare(text: str) -> None:
    assert parse_schema(text).kind == "long"


def test_names_are_found_in_their_namespace() -> None:
    schema = parse_schema(
        {
            "type": "record",
            "name": "a.Outer",
            "fields": [
                {"name": "x", "type": {"type": "fixed", "name": "Inner", "size": 2}},
                {"name": "y", "type": "Inner"},
                {"name": "z", "type": ["null", "a.Outer"]},
            ],
        }
    )
    assert isinstance(schema, Record)
    inner, again = (field.type for field in schema.fields[:2])
    assert isinstance(inner, Named)
    assert inner.name == "a.Inner"
    assert again is inner


def test_a_schema_may_use_names_of_others() -> None:
    money = {"type": "fixed", "name": "com.acme.Money", "size": 8}
    order = {"type": "array", "items": "com.acme.Money"}
    assert parse_schema(order, money).kind == "array"


@pytest.mark.parametrize(
    ("schema", "logical"),
    [
        ({"type": "long", "logicalType": "timestamp-micros"}, Logical("timestamp-micros")),
        ({"type": "int", "logicalType": "timestamp-micros"}, None),
        ({"type": "int", "logicalType": "of our own"}, None),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            Logical("decimal", 9, 2),
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9}, Logical("decimal", 9)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}, None),
        ({"type": "bytes", "logicalType": "decimal"}, None),
        ({"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}, Logical("uuid")),
        ({"type": "fixed", "name": "F", "size": 12, "logicalType": "uuid"}, None),
        (
            {"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"},
            Logical("duration"),
        ),
    ],
)
def test_a_logical_type_that_is_wrong_is_ignored(schema: object, logical: Logical | None) -> None:
    assert parse_schema(json.dumps(schema)).logical == logical


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("{", "must be JSON"),
        ("number", "must be JSON"),
        ('"number"', "uses 'number', but does not define it"),
        ("{}", "unlike {}"),
        ('{"type": "array"}', "an Avro array lacks 'items'"),
        ('{"type": "record", "name": "R"}', "lacks 'fields'"),
        ('{"type": "record", "name": "1", "fields": []}', "letters, digits and _, not '1'"),
        ('{"type": "fixed", "name": "F", "size": -1}', "must be a number from 0 on, not -1"),
        ('["int", "int"]', "the same: int, int"),
        ('["int", ["long"]]', "another union"),
        ('{"type": "enum", "name": "E", "symbols": [1]}', "must be a list of strings"),
        ('{"type": "enum", "name": "E", "symbols": null}', "must be a list of strings"),
        (r'{"type": "enum", "name": "E", "symbols": ["\ud800"]}', "must be a list of strings"),
        ('{"type": "fixed", "name": "F", "size": 1, "aliases": [1]}', "must be a list of strings"),
        ('{"type": "record", "name": "R", "fields": null}', "must be a list, not null"),
        (
            '{"type": "record", "name": "R", "fields": [{"name": 5, "type": "int"}]}',
            "the name of a field of 'R' must be text",
        ),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"},'
            ' {"name": "a", "type": "int"}]}',
            "two fields named 'a'",
        ),
        ("[" * 2000, "must be JSON"),
        ('{"type": ' * 600 + '"int"' + "}" * 600, "nested deeper than 500"),
    ],
)
def test_a_schema_that_is_malformed_is_refused(schema: str, words: str) -> None:
    with pytest.raises(InvalidSchemaError) as raised:
        parse_schema(schema)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
