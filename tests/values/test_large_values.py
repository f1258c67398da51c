"""Values of a few bytes for each of very many elements."""

from __future__ import annotations

import pyarrow as pa
import pytest
from corpus import NO_JIT

import kafkajit
from kafkajit.values import block

pytestmark = pytest.mark.skipif(NO_JIT, reason="megabytes")

PROTO = 'syntax="proto3"; message Top { message M { int32 a = 1; } repeated M m = 1; }'


@pytest.mark.parametrize("format_", ["protobuf", "avro"])
def test_a_value_with_more_elements_than_there_is_room_for_is_malformed(
    format_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block, "_MOST_BYTES", 0)  # so only the size at the beginning counts
    schema, one = PROTO, b"\x0a\0"
    if format_ == "avro":
        schema, one = '{"type": "array", "items": "boolean"}', b"\2\1"
    end = b"" if format_ == "protobuf" else b"\0"
    counts = [3, 3_000_000, 2]
    values = pa.array([one * count + end for count in counts], pa.binary())
    decoded = kafkajit.decode_values(values, schema, mode="PERMISSIVE").to_pylist()
    read = [tuple(row.values()) for row in decoded]
    assert read[1][1].startswith("the value has more elements than there is room for")
    lists = [row[0] for row in read]
    if format_ == "protobuf":
        lists = [row["m"] if row else None for row in lists]
    assert [len(each) if each else each for each in lists] == [3, None, 2]
