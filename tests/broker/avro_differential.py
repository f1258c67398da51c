"""decode_values against Avro's own reader, over random schemas, readers' schemas and broken values.

    PYTHONPATH=.:tests:tests/support python tests/broker/avro_differential.py --cases 20000

One JVM reads with Avro's GenericDatumReader (AvroReader.java), this process with ours. Sound values
have to be the same, and what one cannot read, the other must not read either. Of broken values
ours may refuse more; those that it reads have to be the same. A case follows from the seed and its
number. What differs is printed, and counted by class at the end.

The tables `MEANT` have the reasons for which one of them refuses more, which docs/values.md lists.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
from avro_cases import Author, Json, Writer, dressed
from broker import AVRO, SHORT_LIVED, classpath

import kafkajit
from kafkajit import InvalidSchemaError
from kafkajit.values.avro.columns import branch_names
from kafkajit.values.avro.schema import AvroType, Named, parse_schema

SOUND, BROKEN = 6, 12  # values of a case
DEEP = 12  # how often a record contains itself at most
LIMIT = 100_000  # elements, above what ours reads if they have no bytes

# What ours refuses, and Avro's reader does not.
MEANT = {
    "text that is not UTF-8": r"the text is not valid UTF-8",
    "units or scales": r"(date|time-|timestamp-|local-|decimal).* cannot be read as",
    "decimals without digits or with too many": r"the decimal does not fit",
    "depth": r"contains its own type more often|nested deeper",
}
MEANT_OF_BROKEN = MEANT | {
    "booleans": r"a boolean is neither",
    "numbers beyond 32 bits": r"the number does not fit",
    "varints beyond 64 bits": r"a varint has more",
    "sizes of blocks": r"a block's size is wrong|a size reaches|a size is negative",
    "many elements": r"a block claims more",
    # Avro's reader jumps over blocks that it does not need, and over negative sizes.
    "what is skipped": r"no such branch|no such symbol|the value ends.*\[\]",
}
# What Avro's reader refuses, and ours does not.
MEANT_OF_AVRO = {
    "another namespace in a union": r"Found \S*(Enum|Fixed)\w*, expecting union",
    "a field that is there by its name and by an alias": r"Duplicate field",
    "an empty list or map as the default of a union": r"Not an? (array|map): \[",
}
# What Avro's reader refuses in broken values, and ours does not.
MEANT_OF_BROKEN_AVRO = MEANT_OF_AVRO | {"an int in more than five bytes": r"Invalid int encoding"}


class AvroReader:
    """Avro's reader in a JVM that stays; a context manager."""

    def __init__(self, classes: Path) -> None:
        source = Path(__file__).with_name("AvroReader.java")
        path = classpath(classes, release=AVRO)
        subprocess.run(["javac", "-Xlint:all", "-d", classes, "-cp", path, source], check=True)
        limits = [
            f"-Dorg.apache.avro.limits.{what}.maxLength={LIMIT}"
            for what in ("collectionItems", "bytes", "string")
        ]
        command = ["java", *SHORT_LIVED, "-Xmx512m", *limits, "-cp", path, "AvroReader"]
        self._jvm = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> AvroReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._jvm.stdin is not None
        self._jvm.stdin.close()
        self._jvm.wait()

    def read(self, writer: Json, reader: Json, values: list[bytes]) -> Any:
        """The data of values, or {"error": …} if a schema cannot be parsed."""
        assert self._jvm.stdin is not None
        assert self._jvm.stdout is not None
        asked = {"writer": writer, "reader": reader, "values": [value.hex() for value in values]}
        self._jvm.stdin.write(json.dumps(asked).encode() + b"\n")
        self._jvm.stdin.flush()
        answer = self._jvm.stdout.readline()
        if not answer:
            raise RuntimeError("the JVM ended")
        return json.loads(answer)


def ours(writer: Json, reader: Json, values: list[bytes]) -> list[Any]:
    """The values as AvroReader.java writes them, or the error of each as {"error": …}."""
    options: Any = {"mode": "PERMISSIVE", "recursion": DEEP}
    if reader is None:
        found = kafkajit.decode_values(values, writer, framing="bare", **options)
    else:
        framed = [b"\0\0\0\0\1" + value for value in values]
        options |= {"schemas": {1: writer}, "framing": "confluent"}
        found = kafkajit.decode_values(framed, reader, **options)
    found.validate(full=True)
    type_ = parse_schema(writer if reader is None else reader)
    rows = with_bits(found.field("value"))
    errors = found.field("error").to_pylist()
    return [
        plain(row, type_) if error is None else {"error": error}
        for row, error in zip(rows, errors, strict=True)
    ]


def with_bits(array: pa.Array) -> list[Any]:
    """The rows of an array, with integers for floats, times and decimals."""
    type_ = array.type
    is_valid = array.is_valid().to_pylist()
    rows: Any
    if pa.types.is_struct(type_):
        names = [field.name for field in type_]
        columns = [with_bits(array.field(number)) for number in range(len(names))]
        rows = [
            {name: column[row] for name, column in zip(names, columns, strict=True)}
            for row in range(len(array))
        ]
    elif pa.types.is_list(type_) or pa.types.is_map(type_):
        items = (
            with_bits(array.values)
            if pa.types.is_list(type_)
            else list(zip(with_bits(array.keys), with_bits(array.items), strict=True))
        )
        offsets = array.offsets.to_pylist()
        rows = [items[first:end] for first, end in itertools.pairwise(offsets)]
    elif pa.types.is_floating(type_) or pa.types.is_temporal(type_):
        rows = array.view(pa.int32() if type_.bit_width == 32 else pa.int64()).to_pylist()
    elif pa.types.is_decimal(type_):
        decimal = pa.decimal128 if type_.bit_width == 128 else pa.decimal256
        rows = array.view(decimal(type_.precision, 0)).to_pylist()
    else:
        rows = array.to_pylist()
    return [row if valid else None for row, valid in zip(rows, is_valid, strict=True)]


def plain(value: Any, type_: AvroType) -> Any:
    """A value out of our columns as AvroReader.java writes it."""
    logical = type_.logical.name if type_.logical else ""
    match type_.kind:
        case "union":
            return plain_branch(value, type_)
        case "record":
            return {field.name: plain(value[field.name], field.type) for field in type_.fields}
        case "array":
            return [plain(item, type_.items) for item in value]
        case "map":
            # Avro's reader keeps the last value of a key.
            return {key.encode().hex(): plain(item, type_.values) for key, item in value}
        case "string":
            return value.encode().hex()
        case "float":
            return f"{value & 2**32 - 1:08x}"
        case "double":
            return f"{value & 2**64 - 1:016x}"
        case "long":
            return str(value)
    if logical == "decimal":
        return int(value)
    if logical == "uuid":
        return uuid.UUID(value).hex
    if logical == "duration":
        return struct.pack("<3I", *value.values()).hex()
    return value.hex() if isinstance(value, bytes) else value


def plain_branch(value: Any, union: AvroType) -> Any:
    others = [branch for branch in union.branches if branch.kind != "null"]
    if value is None:
        return ["null", None]
    branch = others[0]
    if len(others) > 1:
        branch = others[branch_names(others).index(value["tag"])]
        inside = {name: item for name, item in value.items() if name != "tag"}
        value = inside.pop(value["tag"])
        assert all(item is None for item in inside.values())
    return [branch.name if isinstance(branch, Named) else branch.kind, plain(value, branch)]


def with_numbers(value: Any, type_: AvroType) -> Any:
    """What AvroReader.java writes, with numbers for decimals."""
    if type_.logical and type_.logical.name == "decimal":
        return int.from_bytes(bytes.fromhex(value), "big", signed=True)
    match type_.kind:
        case "union":
            name, inside = value
            (branch,) = (b for b in type_.branches if name == getattr(b, "name", b.kind))
            return [name, with_numbers(inside, branch)]
        case "record":
            return {
                field.name: with_numbers(value[field.name], field.type) for field in type_.fields
            }
        case "array":
            return [with_numbers(item, type_.items) for item in value]
        case "map":
            return {key: with_numbers(item, type_.values) for key, item in value.items()}
    return value


def is_error(answer: Any) -> bool:
    return isinstance(answer, dict) and set(answer) == {"error"}


def reason(words: str, meant: dict[str, str]) -> str | None:
    """The reason for which a difference is meant; None for others."""
    return next((why for why, pattern in meant.items() if re.search(pattern, words)), None)


class Case:
    """Schemas and values, always the same of a seed and a number."""

    def __init__(self, seed: int, number: int) -> None:
        rng = random.Random(f"{seed}/{number}")
        while True:
            author = Author(rng)
            schema = author.root()
            reader = author.reader_of(schema) if rng.random() < 0.8 else None
            self.writer = dressed(schema, rng)
            self.reader = None if reader is None else dressed(reader, rng)
            try:
                type_ = parse_schema(self.writer)
                self.type = type_ if reader is None else parse_schema(self.reader)
            except InvalidSchemaError:
                continue
            break
        writer = Writer(rng)
        sound = [writer.value(type_) for _ in range(SOUND)]
        self.values = sound + [writer.broken(rng.choice(sound)) for _ in range(BROKEN)]


def compare(case: Case, avro: AvroReader, counts: Counter[str]) -> list[tuple[str, int]]:
    """The differences of a case: what it is, and the number of the value."""
    try:
        our = ours(case.writer, case.reader, case.values)
    except InvalidSchemaError as error:
        if "has more than" in str(error):
            counts["left out: too many columns"] += 1
            return []
        our = [{"error": str(error)}] * len(case.values)
    # Behind what ours refuses and Avro's reader does not, it may skip 2**62 elements.
    meant = [
        reason(mine["error"], MEANT_OF_BROKEN) if number >= SOUND and is_error(mine) else None
        for number, mine in enumerate(our)
    ]
    asked = [value for value, why in zip(case.values, meant, strict=True) if why is None]
    javas = avro.read(case.writer, case.reader, asked)
    if is_error(javas):
        return [(f"schema: {javas['error']}", -1)] if not all(map(is_error, our)) else []
    by_value = dict(zip(asked, javas, strict=True))
    found = []
    for number, (value, mine) in enumerate(zip(case.values, our, strict=True)):
        if meant[number] is not None:
            counts[f"broken: ours refuses {meant[number]}"] += 1
            continue
        what = difference(mine, by_value[value], case.type, is_sound=number < SOUND)
        if what.startswith("differs"):
            found.append((what, number))
        counts[what.partition(":")[0] if what.startswith("differs") else what] += 1
    return found


def difference(mine: Any, javas: Any, type_: AvroType, *, is_sound: bool) -> str:
    """What a value counts as; it begins with "differs" if it should not."""
    of = "sound" if is_sound else "broken"
    if is_error(mine) and is_error(javas):
        return f"{of}: both refuse it"
    if is_error(mine):
        why = reason(mine["error"], MEANT) if is_sound else None
        return f"{of}: ours refuses {why}" if why else f"differs: {of}, we refuse it"
    if is_error(javas):
        why = reason(javas["error"], MEANT_OF_AVRO if is_sound else MEANT_OF_BROKEN_AVRO)
        return f"{of}: Avro refuses {why}" if why else f"differs: {of}, Avro refuses it"
    return f"{of}: equal" if mine == with_numbers(javas, type_) else f"differs: {of}, the values"


def main() -> None:
    """Run cases, print those that differ, and how many of each class there are."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=1000, help="how many (%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first one's number")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1200, help="stop then (%(default)s)")
    parser.add_argument("--show", type=int, default=10, help="differences printed (%(default)s)")
    options = parser.parse_args()
    begun = time.monotonic()
    counts: Counter[str] = Counter()
    done = shown = 0
    with tempfile.TemporaryDirectory() as work, AvroReader(Path(work)) as avro:
        for number in range(options.first, options.first + options.cases):
            if time.monotonic() - begun > options.seconds:
                break
            case = Case(options.seed, number)
            differences = compare(case, avro, counts)
            done += 1
            for what, at in differences[:2]:
                shown += 1
                if shown <= options.show:
                    show(case, avro, number, what, at)
    print(f"{done} cases in {time.monotonic() - begun:.0f} s, {shown} differences")
    for name, count in counts.most_common():
        print(f"{count:>8} {name}")
    sys.exit(1 if shown else 0)


def show(case: Case, avro: AvroReader, number: int, what: str, at: int) -> None:
    """Print a difference, for a person to read."""
    print(f"{number}/{at} {what}")
    print("  writer", json.dumps(case.writer))
    print("  reader", json.dumps(case.reader))
    if at >= 0:
        print("  value ", case.values[at].hex())
        print("  ours  ", *ours(case.writer, case.reader, [case.values[at]]))
        print("  Avro  ", *avro.read(case.writer, case.reader, [case.values[at]]), flush=True)


if __name__ == "__main__":
    main()
