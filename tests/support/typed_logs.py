"""Logs of topics with Avro values, beside the log of the registry that has their schemas."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from avro_schemas import encoded as encoded
from scanning import write_partition

import kafkajit
from kafkajit.schema import RECORD_COLUMNS

Records = Sequence[tuple[Any, Any]]

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "com.acme",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "sku", "type": "string"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "lines", "type": {"type": "array", "items": "int"}},
    ],
}
ORDERS = [
    {"id": 1, "sku": "a", "note": None, "lines": [1, 2]},
    {"id": -(2**40), "sku": "bé", "note": "n", "lines": []},
    {"id": 3, "sku": "", "note": "", "lines": [7]},
]


def confluent(id_: int, values: Sequence[bytes]) -> list[bytes]:
    """Values with an id in front."""
    return [b"\0" + id_.to_bytes(4, "big") + value for value in values]


def schema_key(subject: str, version: int) -> dict[str, Any]:
    return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}


def schema_record(subject: str, version: int, id_: int, text: str, **more: Any) -> tuple[Any, Any]:
    """The record with which a registry registers a schema."""
    value = {"subject": subject, "version": version, "id": id_, "schema": text, "deleted": False}
    return schema_key(subject, version), value | more


def write_registry(folder: Path, records: Records) -> Path:
    """A registry's log: JSON as keys and values, in two segments."""

    def column(place: int) -> pa.Array:
        texts = [None if r[place] is None else json.dumps(r[place]).encode() for r in records]
        return pa.array(texts, pa.binary())

    table = pa.table({"key": column(0), "value": column(1)})
    half = len(records) // 2
    segments = {
        0: kafkajit.encode_batches(table[:half]),
        half: kafkajit.encode_batches(table[half:], base_offset=half),
    }
    logs = {base: log for base, log in segments.items() if log}
    return write_partition(folder.parent, logs, folder.name)


def write_values(
    folder: Path, values: Sequence[bytes | None], keys: Any = None, headers: Any = None
) -> Path:
    """A partition's log with these values."""
    columns = {"value": pa.array(values, pa.binary())}
    if headers is not None:
        columns["headers"] = pa.array(headers, RECORD_COLUMNS["headers"].type)
    if keys is not None:
        columns["key"] = pa.array(keys, pa.binary())
    log = kafkajit.encode_batches(pa.table(columns), batch_records=2)
    return write_partition(folder.parent, {0: log}, folder.name)


def fastavros(schema: Any, content: bytes, reader: Any = None) -> Any:
    """A value as fastavro reads it."""
    schemas = [json.loads(json.dumps(given)) for given in (schema, reader) if given is not None]
    return fastavro.schemaless_reader(io.BytesIO(content), *map(fastavro.parse_schema, schemas))


SHIPMENT = """\
syntax = "proto3";
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "weights.proto";

message Ignored { int32 nothing = 1; }
message Shipment {
  uint32 id = 1;
  uint64 code = 2;
  enum Carrier { TRUCK = 0; SHIP = 1; }
  Carrier carrier = 3;
  Weight weight = 4;
  map<string, int64> parcels = 5;
  google.protobuf.Timestamp created = 6;
  google.protobuf.Duration took = 7;
}
"""
WEIGHTS = 'syntax = "proto3"; message Weight { double kilos = 1; repeated string notes = 2; }'
# The second message of the file, by its index.
SHIPMENTS = [
    b"\0\0\0\0\x05\x02\x02" + value
    for value in (
        b"\x08\xff\xff\xff\xff\x0f\x10" + b"\xff" * 9 + b"\x01\x18\x01\x22\x03\x12\x01n",
        b"\x08\x02\x2a\x05\x0a\x01a\x10\x05\x32\x02\x08\x05\x3a\x02\x08\x02",
        b"",
    )
]


def write_shipments(root: Path) -> None:
    """A topic with Protobuf values, whose schema imports another one, and the registry's log."""
    weight = {"name": "weights.proto", "subject": "weights", "version": 1}
    records = [
        schema_record("weights", 1, 4, WEIGHTS, schemaType="PROTOBUF"),
        schema_record(
            "shipments-value", 1, 5, SHIPMENT, schemaType="PROTOBUF", references=[weight]
        ),
    ]
    write_registry(root / "_schemas-0", records)
    write_values(root / "shipments-0", [None, *SHIPMENTS])


CLICK = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "page": {"type": "string"},
        "user": {"$ref": "user.json"},
        "at": {"type": "string", "format": "date-time"},
    },
}
USER = {"type": "object", "properties": {"id": {"type": "integer"}}}
CLICKS = [
    b'\0\0\0\0\x03{"page": "/a", "user": {"id": 5}, "at": "2026-01-02T03:04:05Z", "x": 1}',
    b'\0\0\0\0\x03{ "user":\n null }',
]


def write_clicks(root: Path) -> None:
    """A topic with JSON values, whose schema refers to another one, and the registry's log."""
    user = {"name": "user.json", "subject": "users", "version": 1}
    records = [
        schema_record("users", 1, 2, json.dumps(USER), schemaType="JSON"),
        schema_record(
            "clicks-value", 1, 3, json.dumps(CLICK), schemaType="JSON", references=[user]
        ),
    ]
    write_registry(root / "_schemas-0", records)
    write_values(root / "clicks-0", [*CLICKS, None])
