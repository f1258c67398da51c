"""decode_values side by side with fastavro and pyruhvro, on one core.

All take turns in one process, on the same values in memory, in Confluent's framing. fastavro makes
Python's objects; pyruhvro makes a RecordBatch of a list of Python's bytes without framing, and
making that list is not counted.

  pip install fastavro pyruhvro
  python -m asv_bench.peers.values                    2 M orders, 5 rounds: five minutes
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import kafkajit
from asv_bench.benchmarks import avro_values
from kafkajit.values.decoder import ValueDecoder
from kafkajit.values.framing import CONFLUENT

_SLOW_ROWS = 50_000  # of fastavro, which takes as long for each


def subjects(rows: int) -> dict[str, tuple[Callable[[], Any], int]]:
    """The functions that are measured, and the rows of each."""
    import fastavro
    import pyruhvro

    flat, by_turns = avro_values.flat(rows), avro_values.flat(rows, 10)
    nested = avro_values.nested(rows // 4)
    text = json.dumps(avro_values.FLAT)
    found: dict[str, tuple[Callable[[], Any], int]] = {
        "kafkajit, ten fields": (lambda: kafkajit.decode_values(flat, schemas={1: text}), rows),
        "kafkajit, two of ten fields": (
            lambda: kafkajit.decode_values(flat, schemas={1: text}, columns=avro_values.TWO),
            rows,
        ),
        "kafkajit, ten schemas by turns": (
            lambda: kafkajit.decode_values(by_turns, text, schemas=avro_values.versions(10)),
            rows,
        ),
        "kafkajit, nested": (
            lambda: kafkajit.decode_values(nested, schemas={1: json.dumps(avro_values.NESTED)}),
            len(nested),
        ),
    }
    bare = {
        name: [value.as_py()[5:] for value in values[:_SLOW_ROWS]]
        for name, values in (("ten fields", flat), ("nested", nested))
    }
    for name, schema in (("ten fields", avro_values.FLAT), ("nested", avro_values.NESTED)):
        parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
        found[f"fastavro, {name}"] = (
            lambda parsed=parsed, some=bare[name]: [
                fastavro.schemaless_reader(io.BytesIO(value), parsed) for value in some
            ],
            len(bare[name]),
        )
    many = [value.as_py()[5:] for value in flat[: 4 * _SLOW_ROWS]]
    found["pyruhvro, ten fields"] = (lambda: pyruhvro.deserialize_array(many, text), len(many))
    found["a new schema"] = (new_schema(flat[:1], text), 1)
    return found


def new_schema(values: pa.Array, text: str) -> Callable[[], None]:
    """Parse and compile a schema, and decode the first value."""

    def decode() -> None:
        decoder = ValueDecoder(text, None, CONFLUENT, None, stops=True)
        decoder.settle([values])
        decoder.decode(values)

    return decode


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    measured = subjects(given.rows)
    seconds: dict[str, list[float]] = {name: [] for name in measured}
    for function, _ in measured.values():
        function()  # warm
    for _ in range(given.rounds):
        for name, (function, _) in measured.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    each = {name: statistics.median(seconds[name]) / measured[name][1] * 1e9 for name in measured}
    mean = {
        "ten fields": avro_values.flat(100_000).nbytes / 100_000 - 4,
        "nested": avro_values.nested(100_000).nbytes / 100_000 - 4,
    }
    print("| | ns a value | MB/s | fastavro's time | pyruhvro's time |")
    print("|---|---|---|---|---|")
    for name, nanoseconds in each.items():
        kind = "nested" if "nested" in name else "ten fields"
        if name == "a new schema":
            print(f"| {name} | {nanoseconds:,.0f} | | | |")
            continue
        columns = [
            f"{nanoseconds:,.0f}",
            f"{mean[kind] / nanoseconds * 1000:,.0f}",
            f"{each[f'fastavro, {kind}'] / nanoseconds:.1f} ×",
            f"{each['pyruhvro, ten fields'] / nanoseconds:.1f} ×" if kind == "ten fields" else "",
        ]
        print(f"| {name} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main()
