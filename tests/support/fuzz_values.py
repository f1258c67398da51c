"""Spoilt values: whatever the bytes and the schema, decode_values returns columns or a named error.

    PYTHONPATH=.:tests:tests/support python tests/support/fuzz_values.py 1 300000

takes the first schema and how many values there are. The values lie in memory that ends where the
last of them does, with a guard page behind it: a read of one byte more ends the process.
"""

from __future__ import annotations

import random
import sys
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
from avro_schemas import Author, Json, broken, encoded, named_types
from fuzz import Guarded

import kafkajit
from kafkajit.values.avro.schema import fingerprint, parse_schema

VALUES = 60  # of a schema
FRAMINGS = ("bare", "confluent", "apicurio8", "glue", "single-object")


class Fuzzer:
    """Rounds of spoilt values, each of one random schema in one framing."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._guarded = Guarded(1 << 20)
        self.read = self.refused = 0

    def run(self, values: int) -> None:
        while self.read + self.refused < values:
            self._seed += 1
            try:
                self._round(Author(self._seed))
            except BaseException:
                print(f"schema {self._seed}")  # noqa: T201 - for the report
                raise

    def _round(self, author: Author) -> None:
        r = author.random
        schema = author.record()
        named = named_types(schema)
        sound = encoded(schema, *(author.value(schema, named) for _ in range(12)))
        framing = r.choice(FRAMINGS)
        values = [self._spoilt(r.choice(sound), schema, framing, r) for _ in range(VALUES)]
        # The last value ends in the middle: what is behind it must not be read.
        cut = r.choice(sound)
        values.append(framed(cut[: r.randrange(len(cut) + 1)], schema, framing, r))
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
        self._check(values, reader, options, r)

    def _spoilt(self, value: bytes, schema: Json, framing: str, r: random.Random) -> bytes | None:
        kind = r.randrange(10)
        if kind == 0:
            return None
        if kind < 6:
            value = broken(value, r)
        whole = framed(value, schema, framing, r)
        return broken(whole, r) if kind == 9 else whole

    def _check(
        self, values: list[bytes | None], reader: Json, options: Any, r: random.Random
    ) -> None:
        array = self._array(values, r)
        try:
            found = kafkajit.decode_values(array, reader, mode="PERMISSIVE", **options)
        except kafkajit.KafkaJitError:  # a schema that cannot be used
            self.refused += len(values)
            return
        found.validate(full=True)
        rows = found.to_pylist()
        assert len(rows) == len(values)
        for value, row in zip(values, rows, strict=True):
            assert (value is None) == (row == {"value": None, "error": None})
            assert value is None or (row["value"] is None) != (row["error"] is None)
        good = [row["value"] for row in rows if row["error"] is None]
        self.read += len(good)
        self.refused += len(rows) - len(good)
        dropped = kafkajit.decode_values(array, reader, mode="DROPMALFORMED", **options)
        assert repr(dropped.to_pylist()) == repr(good)
        failed = None
        try:
            kafkajit.decode_values(array, reader, mode="FAILFAST", **options)
        except kafkajit.RecordDeserializationError as error:
            failed = error.row
        # Not the reason: of a value with two, another value's text may decide which one is named.
        assert failed == next((n for n, row in enumerate(rows) if row["error"]), None)

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


def framed(value: bytes, schema: Json, framing: str, r: random.Random) -> bytes:
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


def main(seed: int, values: int) -> None:
    """Print how many values are read and how many are refused."""
    fuzzer = Fuzzer(seed)
    fuzzer.run(values)
    print(fuzzer.read, fuzzer.refused)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
