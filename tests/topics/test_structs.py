"""decode_payloads, compared with Kafka's output and with the twin."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable

import messages_twin as twin
import numpy as np
import pyarrow as pa
import pytest
from corpus import DATA, NO_JIT
from payloads_twin import Row, expected_payload, payload_rows

from kafkajit.errors import InvalidRecordError
from kafkajit.topics import TOPICS
from kafkajit.topics.structs import DECODED_TYPE, decode_payloads

PRINTED = ("offsets", "transaction_state", "cluster_metadata", "share_group_state")
OFFSET_KEY = b"\0\1" + b"\0\1g" + b"\0\1t" + bytes(4)
OFFSET_VALUE = b"\0\3" + bytes(12) + bytes(2) + bytes(8)


def arrays(rows: list[Row]) -> tuple[pa.Array, pa.Array]:
    keys, values = zip(*rows, strict=True) if rows else ((), ())
    return pa.array(keys, pa.binary()), pa.array(values, pa.binary())


def decode(topic: str, rows: list[Row], **options: bool) -> list[dict | None]:
    decoded = decode_payloads(topic, *arrays(rows), **options)
    decoded.validate(full=True)
    assert decoded.type == DECODED_TYPE
    return decoded.to_pylist()


def expected(topic: str, key: bytes | None, value: bytes | None) -> dict | None:
    """The twin's result for a row; None if it cannot be decoded."""
    try:
        return expected_payload(topic, key, value)
    except (twin.Malformed, ValueError):
        return None


@pytest.mark.parametrize("topic", PRINTED)
def test_json_is_what_kafka_prints(topic: str) -> None:
    golden = DATA / "payloads" / f"{TOPICS[topic]}-0" / "00000000000000000000.log.decoded.out"
    lines = re.findall(r"headerKeys: \[\] (?:key: (.*?) )?payload: (.*)\n", golden.read_text())
    rows = payload_rows(topic, 0)
    assert len(lines) == len(rows)
    decoded = decode(topic, rows)
    assert decoded == [{"key": key or None, "value": value} for key, value in lines]


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("number", [0, 1])
def test_every_row_is_what_the_twin_makes_of_it_or_null(topic: str, number: int) -> None:
    rows = payload_rows(topic, number)
    assert decode(topic, rows, lenient=True) == [expected(topic, *row) for row in rows]


@pytest.mark.parametrize("topic", TOPICS)
def test_whatever_is_changed_each_row_is_what_the_twin_makes_of_it_or_null(topic: str) -> None:
    chance = random.Random(f"811 {topic}")
    rows = [
        (mutated(key, chance), mutated(value, chance))
        for key, value in payload_rows(topic, 0)
        for _ in range(1 if NO_JIT else 40)
    ]
    wanted = [expected(topic, *row) for row in rows]
    assert decode(topic, rows, lenient=True) == wanted
    bad = sum(row is None for row in wanted)
    assert 0.05 < bad / len(rows) < 0.95, "nothing is learnt of all or none"


def mutated(raw: bytes | None, chance: random.Random) -> bytes | None:
    if raw is None or chance.random() < 0.3:
        return raw
    if chance.random() < 0.03:
        return None
    changed = bytearray(raw)
    at = chance.randrange(len(changed)) if changed else 0
    changed[at : at + chance.randint(0, 1)] = chance.choice([b"", b"\xff", b"\x80", b"\0", b"\1"])
    return bytes(changed)


@pytest.mark.parametrize("topic", TOPICS)
def test_each_bad_row_alone_is_an_error_that_names_it(topic: str) -> None:
    rows = payload_rows(topic, 1)
    bad = [number for number, row in enumerate(rows) if expected(topic, *row) is None]
    assert bad
    good = [number for number, row in enumerate(rows) if expected(topic, *row) is not None]
    for number in bad[:: 40 if NO_JIT else 1]:
        some = [rows[n] for n in good[:3]]
        with pytest.raises(InvalidRecordError, match=f"of row {len(some)} is not one of __"):
            decode(topic, [*some, rows[number]])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((OFFSET_KEY, OFFSET_VALUE[:-1]), "the payload ends too early at position 16"),
        ((OFFSET_KEY[:-1], OFFSET_VALUE), "the payload ends too early at position 8"),
        ((OFFSET_KEY, b"\0"), "there is no version in it"),
        ((b"", OFFSET_VALUE), "there is no type in it"),
        ((None, OFFSET_VALUE), "it is NULL, and the value is not"),
        ((b"\0\2\xff\xff", None), "non-nullable field group was serialized as null at position 4"),
    ],
)
def test_an_error_names_the_reason_and_the_position(row: Row, message: str) -> None:
    side = "value" if row[0] == OFFSET_KEY else "key"
    with pytest.raises(InvalidRecordError) as caught:
        decode("offsets", [(OFFSET_KEY, OFFSET_VALUE), row])
    assert str(caught.value) == f"The {side} of row 1 is not one of __consumer_offsets: {message}"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"\2\0\0", "unknown frame version 2"),
        (b"\1\2\0\2a" + bytes(16) + b"\0!", "there are bytes behind its end at position 22"),
        (b"\1\2", "Error while reading version"),
    ],
)
def test_a_malformed_metadata_record_is_reported_with_its_reason(
    value: bytes, message: str
) -> None:
    with pytest.raises(InvalidRecordError, match=message):
        decode_payloads("cluster_metadata", None, pa.array([value]))


@pytest.mark.parametrize("topic", ["cluster_metadata", "remote_log_metadata"])
@pytest.mark.parametrize("number", [-281117493, -(2**31), -65535, -32768, -1])
def test_a_negative_type_or_version_is_cut_to_16_bits_as_in_java(topic: str, number: int) -> None:
    varint = bytes(number >> shift & 0x7F | 0x80 for shift in (0, 7, 14, 21))
    varint += bytes([number >> 28 & 0xF])
    for value in (b"\1" + varint + b"\0", b"\1\1" + varint, b"\1" + varint + varint):
        assert decode(topic, [(None, value)], lenient=True) == [expected(topic, None, value)]


def test_nulls_are_nulls() -> None:
    rows: list[Row] = [(OFFSET_KEY, None), (None, None), (OFFSET_KEY, OFFSET_VALUE)]
    decoded = decode("offsets", rows)
    assert decoded[0] is not None
    assert decoded[0]["key"].startswith('{"type":"1"')
    assert decoded[0]["value"] is None
    assert decoded[1] == {"key": None, "value": None}
    assert decode("cluster_metadata", [(None, None)]) == [{"key": None, "value": None}]


def test_nothing_is_nothing() -> None:
    assert decode("offsets", []) == []
    assert (
        decode_payloads("offsets", pa.nulls(2), pa.nulls(2)).to_pylist()
        == [{"key": None, "value": None}] * 2
    )


LAYOUTS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "large": lambda array: array.cast(pa.large_binary()),
    "view": lambda array: array.cast(pa.binary_view()),
    "sliced": lambda array: pa.concat_arrays([array[:3], array]).slice(3),
    "chunked": lambda array: pa.chunked_array([array[:5], array[5:]]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_arrow_is_read(layout: str) -> None:
    keys, values = arrays(payload_rows("transaction_state", 0))
    change = LAYOUTS[layout]
    plain = decode_payloads("transaction_state", keys, values)
    assert decode_payloads("transaction_state", change(keys), change(values)).equals(plain)


def test_text_that_is_larger_than_was_thought_is_written_whole() -> None:
    quotes = b'"' * 30_000
    key = b"\0\2" + struct.pack(">h", len(quotes)) + quotes
    (row,) = decode("offsets", [(key, None)])
    assert row is not None
    assert json.loads(row["key"])["data"] == {"group": quotes.decode()}
    value = b"\0\0" + bytes(8) + struct.pack(">h", len(quotes)) + quotes + bytes(8)
    (row,) = decode("offsets", [(b"\0\0" + bytes(2) + bytes(2) + bytes(4), value)])
    assert row is not None
    assert json.loads(row["value"])["data"]["metadata"] == quotes.decode()


def test_doubles_that_are_all_different_are_all_written() -> None:
    numbers = np.linspace(-1e9, 1e9, 10 if NO_JIT else 3000)
    head, tail = b"\1\x0e\0" + b"\1" + b"\2k", b"\0\0"
    values = pa.array([head + struct.pack(">d", number) + tail for number in numbers])
    decoded = decode_payloads("cluster_metadata", None, values).to_pylist()
    assert [json.loads(row["value"])["data"]["value"] for row in decoded] == numbers.tolist()


def test_what_is_not_binary_is_refused() -> None:
    with pytest.raises(TypeError, match="values must be binary, not int64"):
        decode_payloads("offsets", pa.array([b""]), pa.array([1]))
    with pytest.raises(TypeError, match=r"values must be a pyarrow\.Array of binary, not list"):
        decode_payloads("offsets", pa.array([b""]), [b""])
    with pytest.raises(ValueError, match="records of __consumer_offsets have keys"):
        decode_payloads("offsets", None, pa.array([b""]))
    with pytest.raises(ValueError, match="1 keys for 2 values"):
        decode_payloads("offsets", pa.array([b""]), pa.array([b"", b""]))
