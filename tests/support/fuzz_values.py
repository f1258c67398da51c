"""Spoilt values: whatever the bytes and the schema, decode_values returns columns or a named error.

    PYTHONPATH=.:tests:tests/support python tests/support/fuzz_values.py avro 1 300000

takes the format, the first seed and how many values there are. The values lie in memory that ends
where the last of them does, with a guard page behind it: a read of one byte more ends the process.
"""

from __future__ import annotations

import json
import random
import sys
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from avro_schemas import Author, Json, broken, encoded, named_types
from fuzz import Guarded
from protobuf_messages import PROTO, everything

import kafkajit
from kafkajit.values.avro.schema import fingerprint, parse_schema

VALUES = 250  # of a schema
COMPARED = 0.2  # of the rounds: making Python's objects takes longest
FRAMINGS = ("bare", "confluent", "apicurio8", "glue", "single-object")


class Round(NamedTuple):
    """Spoilt values of one schema, the schema to read them into, and the options."""

    values: list[bytes | None]
    reader: Any
    options: dict[str, Any]


class Fuzzer:
    """Rounds of spoilt values, each of one random schema in one framing."""

    def __init__(self, format_: str, seed: int) -> None:
        self._round = ROUNDS[format_]
        self._seed = seed
        self._guarded = Guarded(1 << 20)
        self.read = self.refused = 0

    def run(self, values: int) -> None:
        while self.read + self.refused < values:
            self._seed += 1
            try:
                round_ = self._round(self._seed)
                self._check(*round_, random.Random(self._seed))
            except BaseException:
                print(f"seed {self._seed}")  # noqa: T201 - for the report
                raise

    def _check(
        self, values: list[bytes | None], reader: Any, options: dict[str, Any], r: random.Random
    ) -> None:
        array = self._array(values, r)
        try:
            found = kafkajit.decode_values(array, reader, mode="PERMISSIVE", **options)
        except kafkajit.KafkaJitError:  # a schema that cannot be used
            self.refused += len(values)
            return
        found.validate(full=True)
        assert len(found) == len(values)
        is_bad = [error.is_valid for error in found.field("error")]
        has_value = np.asarray(found.field("value").is_valid()).tolist()
        for value, *row in zip(values, is_bad, has_value, strict=True):
            assert row in ([[False, False]] if value is None else [[True, False], [False, True]])
        good = [place for place, bad in enumerate(is_bad) if not bad]
        self.read += len(good)
        self.refused += len(values) - len(good)
        dropped = kafkajit.decode_values(array, reader, mode="DROPMALFORMED", **options)
        dropped.validate(full=True)
        assert len(dropped) == len(good)
        if r.random() < COMPARED:
            sound = found.field("value").take(pa.array(good, pa.int64()))
            assert repr(dropped.to_pylist()) == repr(sound.to_pylist())
        failed = None
        try:
            kafkajit.decode_values(array, reader, mode="FAILFAST", **options)
        except kafkajit.RecordDeserializationError as error:
            failed = error.row
        # Not the reason: of a value with two, another value's text may decide which one is named.
        assert failed == next((place for place, bad in enumerate(is_bad) if bad), None)

    def _array(self, values: list[bytes | None], r: random.Random) -> pa.Array:
        """The values as an array, whose last byte is the last one before the guard page."""
        content = b"".join(value or b"" for value in values)
        is_wide = r.random() < 0.3
        view = self._guarded.holding(content)
        offsets = np.cumsum([0, *(len(value or b"") for value in values)])
        valid = np.packbits([value is not None for value in values], bitorder="little")
        array = pa.Array.from_buffers(
            pa.large_binary() if is_wide else pa.binary(),
            len(values),
            [
                pa.py_buffer(valid),
                pa.py_buffer(offsets.astype(np.int64 if is_wide else np.int32)),
                pa.foreign_buffer(self._guarded.end - len(content), len(content), base=view),
            ],
        )
        array.validate(full=True)
        return array


def avro_round(seed: int) -> Round:
    author = Author(seed)
    r = author.random
    schema = author.record()
    named = named_types(schema)
    sound = encoded(schema, *(author.value(schema, named) for _ in range(12)))
    framing = r.choice(FRAMINGS)
    values = [
        spoilt(r.choice(sound), partial(framed, schema, framing, r), r) for _ in range(VALUES)
    ]
    # The last value ends in the middle: what is behind it must not be read.
    cut = r.choice(sound)
    values.append(framed(schema, framing, r, cut[: r.randrange(len(cut) + 1)]))
    reader = author.reader_of(schema) if r.random() < 0.5 else schema
    fields = [field["name"] for field in reader["fields"]]
    options: dict[str, Any] = {
        "columns": r.choice([None, None, [], r.sample(fields, len(fields) // 2)]),
        "recursion": r.choice([1, 2, 4]),
        "framing": r.choice([framing, framing, "auto", r.choice(FRAMINGS)]),
        "schemas": r.choice([None, {7: schema}, {7: schema}]),
    }
    if options["framing"] == "bare":
        options["schemas"] = None
    return Round(values, reader, options)


def protobuf_round(seed: int) -> Round:
    r = random.Random(seed)
    sound = [everything(r).SerializeToString() for _ in range(12)]
    indexes = r.choice([b"\2\2", b"\2\2", b"\x0c\x0a\x0aEverything", b"\0", b"\4\2\2"])

    def in_front(value: bytes) -> bytes:
        return b"\0" + r.choice([7, 7, 7, 8]).to_bytes(4, "big") + indexes + value

    is_bare = r.random() < 0.4
    frame = bytes if is_bare else in_front
    values = [spoilt(r.choice(sound), frame, r) for _ in range(VALUES)]
    cut = r.choice(sound)
    values.append(frame(cut[: r.randrange(len(cut) + 1)]))
    columns = r.sample(["int64", "counts", "nodes", "one_node", "list.numbers", "json", "fixed"], 3)
    options = {
        "columns": r.choice([None, None, [], columns]),
        "recursion": r.choice([1, 2, 6]),
        "framing": "bare" if is_bare else "auto",
        "schemas": None if is_bare else r.choice([None, {7: PROTO}, {7: PROTO}]),
        "message": "Everything",
    }
    return Round(values, PROTO, options)


def json_round(seed: int) -> Round:
    r = random.Random(seed)
    sound = [json.dumps(json_value(r, 3), indent=r.choice([None, 1])).encode() for _ in range(12)]
    is_bare = r.random() < 0.4

    def in_front(value: bytes) -> bytes:
        return b"\0" + r.choice([7, 7, 7, 8]).to_bytes(4, "big") + value

    frame = bytes if is_bare else in_front
    values = [spoilt(r.choice(sound), frame, r) for _ in range(VALUES)]
    cut = r.choice(sound)
    values.append(frame(cut[: r.randrange(len(cut) + 1)]))
    options = {
        "columns": r.choice([None, None, [], ["a", "c.a"]]),
        "recursion": r.choice([1, 2, 4]),
        "framing": r.choice(["bare", "auto"]) if is_bare else "auto",
        "schemas": None,
        "format": "json",
    }
    return Round(values, JSON_SCHEMA, options)


JSON_SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "array", "items": {"type": "number"}},
        "c": {"$ref": "#"},
        "d": {"type": "object", "additionalProperties": {"type": "string"}},
        "e": {"type": "string", "format": "date-time"},
        "f": True,
        "g": {"type": ["boolean", "null"]},
    },
}


def json_value(r: random.Random, depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {
        "a": r.choice([0, -1, 2**63 - 1, 2**70, 1.0, 1.5]),
        "b": [r.random() * 10 ** r.randrange(-20, 20) for _ in range(r.randrange(4))],
        "c": json_value(r, depth - 1) if depth and r.random() < 0.6 else None,
        "d": {
            r.choice(["k", "é", '"', "😀"]): r.choice(["", "text\n"]) for _ in range(r.randrange(3))
        },
        "e": r.choice(["2024-05-06T07:08:09Z", "2024-05-06T07:08:09.123456+01:00"]),
        "f": r.choice([None, "x", [1, {"y": []}], {"z": 1}, 5]),
        "g": r.choice([True, False, None]),
        "unknown": r.choice(["text", [[]], {"n": {}}]),
    }
    return {name: value[name] for name in r.sample(sorted(value), r.randrange(len(value) + 1))}


ROUNDS = {"avro": avro_round, "protobuf": protobuf_round, "json": json_round}


def spoilt(value: bytes, frame: Callable[[bytes], bytes], r: random.Random) -> bytes | None:
    """A value in its frame, either of which may be broken; or NULL."""
    kind = r.randrange(10)
    if kind == 0:
        return None
    if kind < 6:
        value = broken(value, r)
    whole = frame(value)
    return broken(whole, r) if kind == 9 else whole


def framed(schema: Json, framing: str, r: random.Random, value: bytes) -> bytes:
    """A value with the name of its schema in front."""
    if framing == "confluent":
        return b"\0" + r.choice([7, 7, 7, 8]).to_bytes(4, "big") + value
    if framing == "apicurio8":
        return b"\0" + r.choice([7, 7, 7, 2**40]).to_bytes(8, "big") + value
    if framing == "glue":
        if r.random() < 0.5:
            return b"\3\5" + bytes(16) + zlib.compress(value)
        return b"\3\0" + bytes(16) + value
    if framing == "single-object":
        return b"\xc3\1" + fingerprint(parse_schema(schema)).to_bytes(8, "little") + value
    return value


def main(format_: str, seed: int, values: int) -> None:
    """Print how many values are read and how many are refused."""
    fuzzer = Fuzzer(format_, seed)
    fuzzer.run(values)
    print(fuzzer.read, fuzzer.refused)  # noqa: T201 - for whoever runs it


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
