"""Schemas made to harm, and JSON of wrong types: always an error with a name."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kafkajit
from kafkajit import InvalidSchemaError, RecordDeserializationError
from kafkajit.schema import SCHEMA_COLUMNS, table_schema
from kafkajit.values.avro.schema import canonical_form, parse_schema
from kafkajit.values.registry import _Registry, _row
from kafkajit.values.schema import Reference, Schema, registered

WRONG = [5, None, [], {}, "x", True, [5], [None], {"a": 5}, 1.5, "\ud800", 10**400, -1]
SOUND: list[Any] = [
    {
        "type": "record",
        "name": "R",
        "namespace": "n",
        "aliases": ["Q"],
        "fields": [{"name": "a", "type": "long", "default": 1, "aliases": ["z"]}],
    },
    {"type": "enum", "name": "E", "symbols": ["A"], "default": "A", "aliases": ["B"]},
    {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 3, "scale": 1},
    {"type": "array", "items": "long"},
    {"type": "map", "values": "int"},
    ["null", "long"],
]


def wrong(sound: Any) -> Iterator[Any]:
    """JSON with one wrong thing at each place."""
    if isinstance(sound, dict):
        for key in sound:
            yield {other: sound[other] for other in sound if other != key}
            yield from ({**sound, key: value} for value in [*WRONG, *wrong(sound[key])])
    elif isinstance(sound, list):
        for place in range(len(sound)):
            for value in [*WRONG, *wrong(sound[place])]:
                yield [*sound[:place], value, *sound[place + 1 :]]


@pytest.mark.parametrize("sound", SOUND, ids=[str(number) for number in range(len(SOUND))])
def test_json_of_a_wrong_type_is_an_error_with_a_name(sound: Any) -> None:
    value = b"\0\0\0\0\1\0"
    for given in wrong(sound):
        text = json.dumps(given)
        for writer, reader in ((text, text), (text, sound), (sound, text)):
            try:
                found = kafkajit.decode_values(
                    [value], reader, schemas={1: writer}, mode="PERMISSIVE"
                )
            except kafkajit.KafkaJitError:
                continue
            found.validate(full=True)


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 2}


@pytest.mark.parametrize(
    "default",
    ["\x7f" * 40, "\x7f\x7f"],
)
def test_a_default_that_its_type_cannot_hold_is_an_error(default: str) -> None:
    fields = [{"name": "f", "type": DECIMAL, "default": default}]
    reader = {"type": "record", "name": "R", "fields": fields}
    writer = reader | {"fields": []}
    (row,) = kafkajit.decode_values(
        [b"\0\0\0\0\1"], reader, schemas={1: writer}, mode="PERMISSIVE"
    ).to_pylist()
    assert "is not a default of 'f'" in row["error"]


@pytest.mark.parametrize("size", [33, 2000, 2**31 - 1])
def test_a_fixed_of_any_size_may_be_a_decimal(size: int) -> None:
    fixed = {"type": "fixed", "name": "F", "size": size, "logicalType": "decimal", "precision": 5}
    assert parse_schema(fixed).logical is not None
    if size < 9999:
        value = (-7).to_bytes(size, "big", signed=True)
        assert str(kafkajit.decode_values([value], fixed, framing="bare")[0]) == "-7"


def nested(depth: int) -> Any:
    schema: Any = "long"
    for number in range(depth):
        fields = [{"name": "f", "type": schema}]
        schema = {"type": "record", "name": f"N{number}", "fields": fields}
    return schema


def test_a_schema_that_may_be_nested_too_deep_is_read_or_an_error() -> None:
    with contextlib.suppress(InvalidSchemaError):  # how deep Python goes depends on its version
        found: Any = kafkajit.decode_values([b"\2"], nested(300), framing="bare")[0].as_py()
        for _ in range(300):
            found = found["f"]
        assert found == 1


@pytest.mark.parametrize("depth", [490, 3000])
def test_a_schema_that_is_nested_too_deep_is_an_error(depth: int) -> None:
    with pytest.raises(InvalidSchemaError, match="nested"):
        kafkajit.decode_values([b"\2"], nested(depth), framing="bare")
    chain = {"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null", "R"]}]}
    with pytest.raises(InvalidSchemaError, match="nested too deeply for columns"):
        kafkajit.decode_values([b"\0"], chain, framing="bare", recursion=depth + 700)


def test_a_fingerprint_of_a_deep_schema_is_one_or_an_error() -> None:
    schema: Any = "long"
    for _ in range(240):
        schema = {"type": "array", "items": schema}
    assert canonical_form(parse_schema(schema)).count("array") == 240


def test_schemas_may_refer_to_each_other_in_a_circle() -> None:
    schemas = [
        Schema('"long"', id=1, subject="a", version=1, references=(Reference("B", "b", 1),)),
        Schema('"int"', id=2, subject="b", version=1, references=(Reference("A", "a", 1),)),
    ]
    values = [b"\0\0\0\0\1\2"]
    assert kafkajit.decode_values(values, schemas=schemas).to_pylist() == [1]


def test_a_chain_of_references_may_not_be_endless() -> None:
    schemas = [
        Schema('"long"', id=n, subject="a", version=n, references=(Reference("B", "a", n + 1),))
        for n in range(2000)
    ]
    with pytest.raises(RecordDeserializationError, match="too long a chain"):
        kafkajit.decode_values([b"\0\0\0\0\1\2"], "long", schemas=schemas)


REGISTERED = {
    "subject": "s",
    "version": 1,
    "id": 1,
    "schema": '"int"',
    "schemaType": "AVRO",
    "guid": "01234567-89ab-cdef-0123-456789abcdef",
    "references": [{"name": "n", "subject": "t", "version": 1}],
    "metadata": {"tags": {"a": ["b"]}, "properties": {"c": "d"}, "sensitive": ["e"]},
    "deleted": False,
}


CONFIG = {"keytype": "CONFIG", "subject": "s"}


def test_what_a_registry_does_not_write_is_an_error_with_a_name() -> None:
    without_guid = {name: value for name, value in REGISTERED.items() if name != "guid"}
    for sound in (REGISTERED, without_guid, without_guid | {"md5": "x"}):
        for given in wrong(sound):
            try:
                found = registered(given)
            except InvalidSchemaError:
                continue
            assert isinstance(found.text, str)
            assert found.id is None or -(2**31) <= found.id < 2**31
            assert hash(found)


def test_a_record_that_is_not_a_registrys_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    registry = _Registry()
    key = {"keytype": "SCHEMA", "subject": "s", "version": 1}
    for given_key, value in (
        *((key, given) for given in wrong(REGISTERED)),
        *((given, REGISTERED) for given in wrong(key)),
        *((given, {"alias": "t"}) for given in wrong(CONFIG)),
        *(
            (CONFIG | {"subject": f"s{number}"}, given)  # the last alias of a subject counts
            for number, given in enumerate(wrong({"alias": "t"}))
        ),
    ):
        registry.read(0, json.dumps(given_key).encode(), json.dumps(value).encode())
    registry.read(0, b"[" * 100_000, None)
    registry.read(0, b'{"keytype": "SCHEMA", "subject": "s", "version": Infinity}', b"{}")
    registry.report("_schemas-0")
    rows = [_row(schema) for schema in registry.schemas]
    pa.Table.from_pylist(rows, schema=table_schema(SCHEMA_COLUMNS)).validate(full=True)
    assert "do not come from a schema registry" in caplog.text


def test_a_file_that_is_not_text_is_an_error_with_a_name(tmp_path: Path) -> None:
    for name, content in (("a.avsc", b"\xff"), ("b.json", b"\xff"), ("c.json", b"[" * 100_000)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidSchemaError, match=name):
            kafkajit.decode_values([b""], "int", schemas=tmp_path / name)


def test_a_record_that_is_too_large_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    value = json.dumps(REGISTERED).encode()
    monkeypatch.setattr("kafkajit.values.registry.MOST_BYTES", len(value) - 1)
    registry = _Registry()
    registry.read(7, b'{"keytype": "SCHEMA", "subject": "s", "version": 1}', value)
    with pytest.raises(InvalidSchemaError, match=r"offset 7: .*a record of \d+ bytes, more than"):
        registry.report("_schemas-0")
