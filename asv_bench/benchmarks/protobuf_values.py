"""Protobuf values for the benchmarks: flat orders of ten fields, as those of `avro_values`."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

import pyarrow as pa

from .avro_values import CITIES, repeated

ORDER = """\
syntax = "proto3";
package com.acme;
import "google/protobuf/timestamp.proto";

message Order {
  int64 id = 1;
  int32 customer = 2;
  int32 quantity = 3;
  double price = 4;
  double discount = 5;
  string sku = 6;
  string city = 7;
  optional string note = 8;
  bool paid = 9;
  google.protobuf.Timestamp created = 10;
}
"""


def flat(rows: int) -> pa.Array:
    """Orders in Confluent's framing: an id, and the indexes of the first message."""
    return repeated(_flat_values(), rows)


def _flat_values() -> Iterator[bytes]:
    r = random.Random(5)
    number = 0
    while True:
        note = b"" if r.random() < 0.5 else _text(8, f"leave at the door {r.randrange(100)}")
        micros = 1_700_000_000_000_000 + 17_001 * number
        moment = b"\x08" + varint(micros // 10**6) + b"\x10" + varint(micros % 10**6 * 1000)
        yield b"".join(
            (
                struct.pack(">bi", 0, 1) + b"\0",
                b"\x08" + varint(1_000_000 + 3 * number),
                b"\x10" + varint(r.randrange(1, 100_000)),
                b"\x18" + varint(r.randrange(1, 20)),
                b"\x21" + struct.pack("<d", 100 * r.random()),
                b"\x29" + struct.pack("<d", r.random()),
                _text(6, f"SKU-{r.randrange(10**6):06d}"),
                _text(7, r.choice(CITIES)),
                note,
                b"\x48\1" if r.random() < 0.7 else b"",
                b"\x52" + varint(len(moment)) + moment,
            )
        )
        number += 1


def _text(number: int, text: str) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(text.encode())) + text.encode()


def varint(rest: int) -> bytes:
    """A number of 64 bits without a sign."""
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])
