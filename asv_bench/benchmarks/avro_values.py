"""Avro values for the benchmarks: flat orders of ten fields, and nested ones."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "customer", "type": "int"},
    {"name": "quantity", "type": "int"},
    {"name": "price", "type": "double"},
    {"name": "discount", "type": "double"},
    {"name": "sku", "type": "string"},
    {"name": "city", "type": "string"},
    {"name": "note", "type": ["null", "string"]},
    {"name": "paid", "type": "boolean"},
    {"name": "created", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
FLAT = {"type": "record", "name": "Order", "namespace": "com.acme", "fields": FIELDS}
TWO = ["id", "price"]
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [
        {"name": "sku", "type": "string"},
        {"name": "quantity", "type": "int"},
        {"name": "price", "type": "double"},
    ],
}
NESTED = {
    "type": "record",
    "name": "Basket",
    "namespace": "com.acme",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "attributes", "type": {"type": "map", "values": "long"}},
    ],
}
CITIES = ["Amsterdam", "Berlin", "Zürich", "Paris", "San Francisco", "Rio"]
_DIFFERENT = 100_000  # values that differ; more are the same ones again


def flat(rows: int, schemas: int = 1) -> pa.Array:
    """Orders in Confluent's framing, whose ids from 1 on come by turns."""
    return repeated(_flat_values(schemas), rows)


def nested(rows: int) -> pa.Array:
    """Baskets of up to five lines and three attributes."""
    return repeated(_nested_values(), rows)


def versions(count: int) -> dict[int, str]:
    """As many schemas of the same bytes: their fields have other names and aliases."""
    return {
        number: json.dumps({**FLAT, "doc": f"version {number}"}) for number in range(1, count + 1)
    }


def repeated(values: Iterator[bytes], rows: int) -> pa.Array:
    """An array of that many values, most of which are the first ones again."""
    some = [next(values) for _ in range(min(rows, _DIFFERENT))]
    whole = pa.array(some, pa.binary())
    return pa.concat_arrays([whole] * (rows // len(some)))


def _flat_values(schemas: int) -> Iterator[bytes]:
    r = random.Random(5)
    number = 0
    while True:
        note = b"\0" if r.random() < 0.5 else b"\2" + _text(f"leave at the door {r.randrange(100)}")
        yield b"".join(
            (
                struct.pack(">bi", 0, number % schemas + 1),
                _long(1_000_000 + 3 * number),
                _long(r.randrange(100_000)),
                _long(r.randrange(1, 20)),
                struct.pack("<dd", 100 * r.random(), r.random()),
                _text(f"SKU-{r.randrange(10**6):06d}"),
                _text(r.choice(CITIES)),
                note,
                bytes([r.random() < 0.7]),
                _long(1_700_000_000_000 + 17 * number),
            )
        )
        number += 1


def _nested_values() -> Iterator[bytes]:
    r = random.Random(6)
    while True:
        lines = [
            _text(f"SKU-{r.randrange(10**6):06d}")
            + _long(r.randrange(20))
            + struct.pack("<d", r.random())
            for _ in range(r.randrange(6))
        ]
        attributes = [_text(f"key{k}") + _long(r.randrange(10**6)) for k in range(r.randrange(4))]
        parts = [
            struct.pack(">bi", 0, 1),
            _long(r.randrange(10**7)),
            _block(lines),
            _block(attributes),
        ]
        yield b"".join(parts)


def _block(items: list[bytes]) -> bytes:
    return _long(len(items)) + b"".join(items) + b"\0" if items else b"\0"


def _text(text: str) -> bytes:
    return _long(len(text.encode())) + text.encode()


def _long(value: int) -> bytes:
    rest = value << 1 ^ value >> 63
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])
