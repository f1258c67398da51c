"""Mutated files of every format: an import reads them, or raises one error that names the file.

    PYTHONPATH=.:tests:tests/support python tests/support/fuzz_inputs.py --files 100000

Each file is sound but for some bytes. A file that is read must have rows that Arrow accepts. A file
that takes longer than a minute ends the run, as does one that takes more than 1 GiB. Needs Linux.
"""

from __future__ import annotations

import argparse
import faulthandler
import gzip
import io
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from parquet_footers import mutated_footer

import kafkajit
from kafkajit.produce.inputs.input_files import input_files
from kafkajit.produce.inputs.readers import rows_in

SECONDS = 60  # that a file may take
MEBIBYTES = 1024  # that the process may grow by for a file
ROWS: list[dict[str, Any]] = [
    {
        "topic": "orders",
        "partition": n % 3,
        "offset": n,
        "timestamp": 1_767_225_600_000 + n,
        "key": None if n % 5 == 0 else f"key{n}",
        "value": None if n % 7 == 0 else f'v,"{n}"\n' * (n % 4),
        "headers": [{"key": "a", "value": f"é{n}"}, {"key": "b", "value": None}],
    }
    for n in range(40)
]
_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))),
    ]
)
_NULLABLE = {"topic": "string", "partition": "int", "offset": "long", "timestamp": "long"}


def table() -> pa.Table:
    """The rows as a table."""
    return pa.Table.from_pylist(ROWS, _SCHEMA)


def odd_table() -> pa.Table:
    """The rows in types that few writers use."""
    rows = table()
    views = pa.list_view(_SCHEMA.field("headers").type.value_type)
    wanted = {
        "topic": rows["topic"].dictionary_encode(),
        "key": rows["key"].cast(pa.string_view()),
        "value": rows["value"].cast(pa.large_binary()),
        "headers": pa.array([row["headers"] for row in ROWS], views),
    }
    for name, column in wanted.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def parquet(codec: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table(), sink, compression=codec, row_group_size=16)
    return sink.getvalue()


def arrow(rows: pa.Table, *, is_stream: bool, codec: str | None) -> bytes:
    sink = io.BytesIO()
    new = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    with new(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(rows, max_chunksize=16)
    return sink.getvalue()


def csv() -> bytes:
    def cell(value: Any) -> str:
        if value is None:
            return ""
        text = value if isinstance(value, str) else json.dumps(value)
        return '"' + text.replace('"', '""') + '"'

    lines = [",".join(ROWS[0])] + [",".join(map(cell, row.values())) for row in ROWS]
    return "\r\n".join(lines).encode()


def jsonl() -> bytes:
    return "".join(
        json.dumps(row, ensure_ascii=n % 2 == 0) + "\n" for n, row in enumerate(ROWS)
    ).encode()


def avro(codec: str) -> bytes:
    header = {
        "type": "record",
        "name": "H",
        "fields": [{"name": name, "type": ["null", "string"]} for name in ("key", "value")],
    }
    fields = [{"name": name, "type": kind} for name, kind in _NULLABLE.items()]
    fields += [{"name": name, "type": ["null", "string"]} for name in ("key", "value")]
    fields += [{"name": "headers", "type": {"type": "array", "items": header}}]
    sink = io.BytesIO()
    schema = {"type": "record", "name": "Row", "fields": fields}
    fastavro.writer(sink, schema, ROWS, codec=codec, sync_interval=300)
    return sink.getvalue()


# The suffix of each kind of file, and its sound bytes.
SEEDS: list[tuple[str, Callable[[], bytes]]] = [
    *((".parquet", lambda codec=codec: parquet(codec)) for codec in ("none", "snappy", "zstd")),
    (".arrow", lambda: arrow(table(), is_stream=False, codec=None)),
    (".arrow", lambda: arrow(odd_table(), is_stream=False, codec="zstd")),
    (".arrow", lambda: arrow(odd_table(), is_stream=True, codec=None)),
    (".arrow", lambda: arrow(table(), is_stream=True, codec="lz4")),
    (".csv", csv),
    (".csv.gz", lambda: gzip.compress(csv())),
    (".jsonl", jsonl),
    (".jsonl.zst", lambda: pa.Codec("zstd").compress(jsonl(), asbytes=True)),
    *((".avro", lambda codec=codec: avro(codec)) for codec in ("null", "deflate", "bzip2", "xz")),
]


def mutated(content: bytes, chance: random.Random) -> bytes:
    """The bytes with some of them changed, removed, repeated or exchanged."""
    if content.startswith(b"PAR1") and chance.randrange(2):
        return mutated_footer(content, chance)
    new = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 5, 20))):
        at = chance.randrange(len(new) + 1)
        size = chance.choice((1, 1, 2, 4, 8, 30))
        kind = chance.randrange(7)
        if kind == 0:
            new[at : at + 1] = bytes([chance.randrange(256)])
        elif kind == 1 and at < len(new):
            new[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            del new[at : at + size]
        elif kind == 3:
            new[at:at] = new[at : at + size]
        elif kind == 4:
            odd = (b"\xff", b"\0", b'"', b"\n", b"\x80" * 9, b"\x7f\xff\xff\xff", b"\\ud800", b",")
            new[at : at + size * chance.randrange(2)] = chance.choice(odd)
        elif kind == 5 and chance.randrange(4) == 0:
            del new[at:]
        else:
            other = chance.randrange(len(new) + 1)
            new[at : at + size] = new[other : other + size]
    return bytes(new)


def read(path: Path, folder: Path) -> str:
    """Read a file as an import does: how it ends."""
    try:
        for file in input_files(str(path)).files:
            for rows in rows_in(file, [*_SCHEMA.names]):
                for column in rows.columns.values():
                    getattr(column, "texts", column).validate()
        plan = kafkajit.import_files(path, folder / "logs", new_offsets=True)
        return f"{len(plan.partitions)} partitions"
    except ValueError as error:
        text = str(error)
    if path.name not in text or "\n" in text:
        raise AssertionError(text)
    return "error"


def main() -> None:
    """Read files, and print how they end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1000, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first file (%(default)s)")
    options = parser.parse_args()
    print(run(options.files, options.seed))  # noqa: T201


def peak(*, reset: bool = False) -> int:
    """The most MiB that this process has had, since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) // 1024


def run(files: int, first: int) -> Counter[str]:
    """Read mutated files; the first that is wrong ends the run."""
    seeds = [(suffix, content()) for suffix, content in SEEDS]
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for suffix, content in seeds:  # compiles the kernels
            path = folder / f"sound{suffix}"
            path.write_bytes(content)
            assert read(path, folder) == "3 partitions", suffix
        for seed in range(first, first + files):
            chance = random.Random(seed)
            suffix, content = chance.choice(seeds)
            path = folder / f"{seed}{suffix}"
            path.write_bytes(mutated(content, chance))
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            before = peak(reset=True)
            try:
                counts[f"{suffix} {read(path, folder)}"] += 1
            except Exception:
                print(f"seed {seed}, {suffix}")  # noqa: T201
                raise
            faulthandler.cancel_dump_traceback_later()
            used = peak() - before
            assert used < MEBIBYTES, f"{used} MiB for seed {seed}, {suffix}"
            path.unlink()
    return counts


if __name__ == "__main__":
    main()
