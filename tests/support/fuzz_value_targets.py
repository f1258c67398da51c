"""Targets of tests/support/coverage_fuzz.py: values and their schemas, and files to import."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import pyarrow as pa
import reference
from avro_schemas import Author, as_fastavro_has_it, encoded, named_types
from fuzz_inputs import SEEDS, csv, jsonl, read
from fuzz_log_targets import Target, file_with
from fuzz_values import JSON_SCHEMA, json_value
from google.protobuf.message import DecodeError
from proto_files import described
from proto_texts import IMPORTED, TEXTS
from protobuf_messages import PROTO, as_python, everything, in_order, python_module
from pyarrow.fs import LocalFileSystem
from typed_logs import confluent, fastavros

import kafkajit
from kafkajit.produce.inputs.csv_rows import csv_rows
from kafkajit.produce.inputs.header_cells import headers
from kafkajit.produce.inputs.json_rows import json_rows
from kafkajit.produce.inputs.rows import BadInputError
from kafkajit.produce.inputs.text_blocks import text_of
from kafkajit.schema import SCHEMA_COLUMNS, table_schema
from kafkajit.values.avro.schema import canonical_form, fingerprint, parse_schema
from kafkajit.values.decoder import ValueDecoder
from kafkajit.values.framing import FRAMINGS
from kafkajit.values.json.careful import MalformedError, read_value
from kafkajit.values.json.reading import JsonReader, bodies_of
from kafkajit.values.json.types import JSON_TEXT, column_of, struct_of
from kafkajit.values.protobuf.proto_text import parse_proto
from kafkajit.values.registry import _Registry, _row

FORMATS = 12  # schemas of Avro values
DEEP = 4


@cache
def _schema(number: int) -> tuple[Any, Any]:
    author = Author(number)
    schema = author.record()
    return schema, parse_schema(schema)


def _modes(values: list[bytes], schema: Any, **options: Any) -> list[dict[str, Any]]:
    """The rows of PERMISSIVE; checks that the other modes agree with them."""
    found = kafkajit.decode_values(values, schema, mode="PERMISSIVE", **options)
    found.validate(full=True)
    rows: list[dict[str, Any]] = found.to_pylist()
    good = [place for place, row in enumerate(rows) if row["error"] is None]
    dropped = kafkajit.decode_values(values, schema, mode="DROPMALFORMED", **options)
    dropped.validate(full=True)
    assert repr(dropped.to_pylist()) == repr([rows[place]["value"] for place in good])
    try:
        kafkajit.decode_values(values, schema, mode="FAILFAST", **options)
        failed = None
    except kafkajit.RecordDeserializationError as error:
        failed = error.row
    assert failed == next((place for place, row in enumerate(rows) if row["error"]), None)
    return rows


def avro_value(data: bytes) -> None:
    """Read a value; what fastavro refuses is refused, and what is read is what it reads."""
    if not data:
        return
    schema, type_ = _schema(data[0] % FORMATS)
    (row,) = _modes([data[1:]], schema, framing="bare", recursion=DEEP)
    if row["error"] is None:
        expected = fastavros(schema, data[1:])
        assert repr(as_fastavro_has_it(row["value"], type_)) == repr(expected)
    _modes([data[1:], data], schema, schemas={7: schema}, columns=[], recursion=DEEP)


def _avro_values() -> list[bytes]:
    found = []
    for number in range(FORMATS):
        author = Author(number)
        schema = author.record()
        named = named_types(schema)
        for value in encoded(schema, *(author.value(schema, named) for _ in range(3))):
            found += [bytes([number]) + value, bytes([number]) + confluent(7, [value])[0]]
    return found


@cache
def _protobuf_decoder(recursion: int, *columns: str) -> ValueDecoder:
    """A decoder of many arrays: to compile this schema takes longer than to read a value."""
    decoder = ValueDecoder(
        PROTO,
        None,
        FRAMINGS["bare"],
        columns or None,
        stops=False,
        message="Everything",
        recursion=recursion,
    )
    decoder.settle([pa.array([], pa.binary())])
    return decoder


def protobuf_value(data: bytes) -> None:
    """Read a message; what protobuf refuses is refused, and what is read is what it reads."""
    values = pa.array([data], pa.binary())
    found = _protobuf_decoder(2).decode(values)
    found.values.validate(full=True)
    try:
        message = python_module().Everything.FromString(data)
    except DecodeError:
        assert found.bad.tolist() == [0]
        return
    if not found.bad.size and _is_comparable(data):
        assert in_order(found.values[0].as_py()) == as_python(message)
    _protobuf_decoder(1, "node.next", "list.numbers").decode(values).values.validate(full=True)


def _is_comparable(data: bytes) -> bool:
    """Whether Python has no other form of NaN, and no time outside of its own."""
    return b"\xf8\x7f" not in data and b"\xf8\xff" not in data and len(data) < 2000


def json_value_target(data: bytes) -> None:
    """Read a value with the kernel and with the careful reader, and as Python does."""
    content = [data]
    bodies = bodies_of(pa.array(content, pa.binary()))
    for column in (MIXED, JSON_TEXT):
        found = JsonReader(column).decode(*bodies)
        found.values.validate(full=True)
        body = bodies.body(0)
        try:
            expected = pa.array([read_value(body, column)], column.type)[0].as_py()
            words = ""
        except MalformedError as error:
            expected, words = None, str(error)
        assert repr(found.values.to_pylist()) == repr([expected])
        assert bool(found.bad.size) == bool(words)
        assert not words or found.words(0) == words
    try:
        is_json = json.loads(body.decode(), parse_constant=_refuse) is not _refuse
    except RecursionError:
        return
    except ValueError:
        is_json = False
    assert is_json >= (not words), (body, words)
    _modes(content, None, format="json", framing="bare")
    _modes(content, JSON_SCHEMA, format="json", recursion=2)


def _refuse(text: str) -> None:
    raise ValueError(text)


MIXED = struct_of(
    {
        "id": column_of(pa.int64()),
        "n": column_of(pa.float64()),
        "t": column_of(pa.string()),
        "at": column_of(pa.timestamp("us", "UTC")),
        "b": column_of(pa.bool_()),
        "l": column_of(pa.list_(pa.struct({"q": pa.int8()}))),
        "m": column_of(pa.map_(pa.string(), pa.string())),
        "any": JSON_TEXT,
    }
)


def _json_values() -> list[bytes]:
    r = random.Random(1)
    mixed = {
        "id": 2**40, "n": 1.5e-9, "t": 'é\n"x"', "at": "2024-05-06T07:08:09.5Z", "b": True,
        "l": [{"q": 1}, None], "m": {"a": "b", "c": None}, "any": [1, {"y": 2}],
    }  # fmt: skip
    values = [mixed, *(json_value(r, 2) for _ in range(12))]
    return [json.dumps(value).encode() for value in values]


def avro_schema(data: bytes) -> None:
    """Parse a schema, and read a value with it, into it and from it."""
    sound, _ = _schema(0)
    text = data.decode(errors="replace") + "\n"
    for writer, reader in ((text, text), (text, sound), (sound, text)):
        with suppress(kafkajit.KafkaJitError):
            kafkajit.decode_values(
                [b"\0\0\0\0\1" + bytes(9)],
                reader,
                schemas={1: writer},
                format="avro",
                mode="PERMISSIVE",
            ).validate(full=True)
    with suppress(kafkajit.InvalidSchemaError):
        type_ = parse_schema(text)
        assert canonical_form(parse_schema(canonical_form(type_))) == canonical_form(type_)
        fingerprint(type_)


def json_schema(data: bytes) -> None:
    """Parse a JSON schema, and read a value with it."""
    text = data.decode(errors="replace") + "\n"
    with suppress(kafkajit.KafkaJitError):
        kafkajit.decode_values(
            [b'{"a": 1, "b": [{}], "c": {"a": null}}', b"[]", b"1"],
            text,
            format="json",
            mode="PERMISSIVE",
        ).validate(full=True)


def proto_schema(data: bytes) -> None:
    """Parse a .proto file, and read a message of it."""
    text = data.decode(errors="surrogateescape") + "\n"  # or else it may be the path of a file
    try:
        described(parse_proto(text, IMPORTED))
    except kafkajit.InvalidSchemaError as error:
        words = str(error)
        assert "\n" not in words, words
        words.encode()
        assert len(words) < 600
    with suppress(kafkajit.KafkaJitError):
        kafkajit.decode_values(
            [b"\x08\x01\x12\0"], text, format="protobuf", framing="bare", mode="PERMISSIVE"
        ).validate(full=True)


def registry(data: bytes) -> None:
    """Follow a schema registry's topic; the input is JSON, a key and a value by turns."""
    parts = data.split(b"\n")
    state = _Registry()
    for number in range(0, len(parts) - 1, 2):
        state.read(number, parts[number], parts[number + 1] or None)
    with suppress(kafkajit.InvalidSchemaError):
        state.report("_schemas-0")
    rows = [_row(schema) for schema in state.schemas]
    pa.Table.from_pylist(rows, schema=table_schema(SCHEMA_COLUMNS)).validate(full=True)
    for schema in state.schemas[:3]:
        with suppress(kafkajit.KafkaJitError):
            kafkajit.decode_values([b"\0\0\0\0\1\0"], schema, mode="PERMISSIVE")


def _registry_logs() -> list[bytes]:
    def of(kind: str, **fields: Any) -> bytes:
        return json.dumps({"keytype": kind, "magic": 1, **fields}).encode()

    key = of("SCHEMA", subject="a-value", version=1)
    value = {"subject": "a-value", "version": 1, "id": 1, "schema": '"long"', "deleted": False}
    typed = {
        **value,
        "schemaType": "PROTOBUF",
        "schema": "message M {int32 a = 1;}",
        "references": [{"name": "x", "subject": "b", "version": 2}],
        "guid": "11111111-2222-3333-4444-555555555555",
        "metadata": {"properties": {"a": "b"}},
    }
    deletion = of("DELETE_SUBJECT", subject="a-value")
    config = of("CONFIG", subject="a-value"), b'{"alias": "b", "compatibilityLevel": "NONE"}'
    of_deletion = b'{"subject": "a-value", "version": 1}'
    return [
        b"\n".join([key, json.dumps(value).encode(), deletion, of_deletion, *config]),
        b"\n".join([key, json.dumps(typed).encode(), key, b"", *config, b""]),
        b"\n".join([of("NOOP"), b"", of("CLEAR_SUBJECT", subject="a"), b'{"subject": "a"}']),
    ]


def csv_file(data: bytes) -> None:
    """Read a CSV file; the twin reads the same records, or refuses it too."""
    try:
        every = reference.csv_records(data)
        names = [name or "" for name in every[0][1]] if every else []
        kept = [pair for pair in every[1:] if len(names) == 1 or pair[1] != [None]]
        if names == [""] or any(len(fields) != len(names) for _, fields in kept):
            raise reference.Invalid("the number of fields")
        if len({*names}) < len(names):
            raise reference.Invalid("the same name")
        expected = [fields for _, fields in kept]
    except reference.Invalid:
        expected, names = None, []
    found: list[list[str | None]] | None = []
    with file_with("rows.csv", data) as path:
        try:
            with text_of(LocalFileSystem(), str(path), None) as text:
                for rows in csv_rows(text, names):
                    columns = [rows.columns[name].to_pylist() for name in names]
                    found += [[*cells] for cells in zip(*columns, strict=True)]
        except (BadInputError, OSError):
            found = None
        if not _is_other_text(data):
            assert found == expected, (found, expected)
        read(path, path.parent)


def json_lines(data: bytes) -> None:
    """Read JSON lines; the twin reads the same members, or refuses them too."""
    wanted = ["key", "value", "headers", "offset"]
    expected: list[dict[str, tuple[str, bytes]]] | None
    try:
        expected = [
            {
                name: (letter, b"" if letter == "n" else text)
                for name, (letter, text) in reference.json_members(line, wanted).items()
            }
            for line in data.split(b"\n")
            if line.strip(b" \t\r")
        ]
    except reference.Invalid:
        expected = None
    found: list[dict[str, tuple[str, bytes]]] | None = []
    with file_with("rows.jsonl", data) as path:
        try:
            with text_of(LocalFileSystem(), str(path), None) as text:
                for rows in json_rows(text, wanted):
                    found += [
                        {
                            name: (chr(cells.letters[row]), cells.texts[row].as_py() or b"")
                            for name, cells in rows.columns.items()
                            if cells.letters[row]
                        }
                        for row in range(rows.count)
                    ]
        except (BadInputError, OSError):
            found = None
        if not _is_other_text(data):
            assert found == expected, (found, expected)
        read(path, path.parent)


def _is_other_text(data: bytes) -> bool:
    """Whether bytes seem to be compressed, or of another encoding, which the twins do not read."""
    head = data[:2]
    is_packed = head == b"\x1f\x8b" or data[:4] == b"\x28\xb5\x2f\xfd"
    return is_packed or b"\0" in head or b"\xfe" in head or data[:3] == b"\xef\xbb\xbf"


def avro_file(data: bytes) -> None:
    """Import a file of Avro."""
    with file_with("rows.avro", data) as path:
        read(path, path.parent)


def header_cell(data: bytes) -> None:
    """Read the text of headers, as CSV has it."""
    with suppress(BadInputError, UnicodeDecodeError):
        headers(pa.array([data.decode()], pa.string())).validate(full=True)


def _inputs(suffix: str) -> Callable[[], list[bytes]]:
    return lambda: [content() for name, content in SEEDS if name == suffix]


def _protobuf_values() -> list[bytes]:
    r = random.Random(2)
    return [everything(r, 1).SerializeToString() for _ in range(30)]


def _avro_schemas() -> list[bytes]:
    return [json.dumps(Author(number).record()).encode() for number in range(30)]


TARGETS: dict[str, Target] = {
    "avro-value": (avro_value, _avro_values),
    "protobuf-value": (protobuf_value, _protobuf_values),
    "json-value": (json_value_target, _json_values),
    "avro-schema": (avro_schema, _avro_schemas),
    "json-schema": (json_schema, lambda: [json.dumps(JSON_SCHEMA).encode()]),
    "proto-schema": (proto_schema, lambda: [text.encode() for text in TEXTS.values()]),
    "registry": (registry, _registry_logs),
    "csv-file": (csv_file, lambda: [csv()[:600], b'a,"b"\n1,"x""\n"\r\n,\xc3\xa9\n']),
    "json-lines": (json_lines, lambda: [jsonl()[:900], b'{"key": "\\ud83d\\ude00", "a": [{}]}\n']),
    "avro-file": (avro_file, _inputs(".avro")),
    "header-cell": (header_cell, lambda: [b'[{"key": "a", "value": "Yg=="}]', b'{"a": "b"}']),
}
