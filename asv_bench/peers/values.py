"""decode_values side by side with fastavro, pyruhvro, protobuf and ptars, on one core.

All take turns in one process, on the same values in memory, in Confluent's framing. fastavro and
protobuf make Python's objects, of which protobuf's ten fields are read; pyruhvro makes a
RecordBatch of a list of Python's bytes, ptars one of an array, both without framing. Making that
list or array is not counted.

  pip install fastavro pyruhvro grpcio-tools ptars
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
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa

import kafkajit
from asv_bench.benchmarks import avro_values, protobuf_values
from kafkajit.values.decoder import ValueDecoder
from kafkajit.values.framing import CONFLUENT

_SLOW_ROWS = 50_000  # of those that make objects, and take as long for each


class Subject(NamedTuple):
    """A function that is measured, its values, and the peers that its time is compared with."""

    function: Callable[[], Any]
    rows: int
    bytes: float = 0  # of a value
    peers: tuple[str, ...] = ()


def subjects(rows: int) -> dict[str, Subject]:
    """The functions that are measured."""
    return avro_subjects(rows) | protobuf_subjects(rows)


def avro_subjects(rows: int) -> dict[str, Subject]:
    """Avro: kafkajit, fastavro and pyruhvro."""
    import fastavro
    import pyruhvro

    flat, by_turns = avro_values.flat(rows), avro_values.flat(rows, 10)
    nested = avro_values.nested(rows // 4)
    text, basket = json.dumps(avro_values.FLAT), json.dumps(avro_values.NESTED)
    decode = kafkajit.decode_values
    size, peers = bytes_each(flat), ("fastavro, ten fields", "pyruhvro, ten fields")
    found = {
        "Avro, ten fields": Subject(lambda: decode(flat, schemas={1: text}), rows, size, peers),
        "Avro, two of ten fields": Subject(
            lambda: decode(flat, schemas={1: text}, columns=avro_values.TWO), rows, size, peers
        ),
        "Avro, ten schemas by turns": Subject(
            lambda: decode(by_turns, text, schemas=avro_values.versions(10)), rows, size, peers
        ),
        "Avro, nested": Subject(
            lambda: decode(nested, schemas={1: basket}),
            len(nested),
            bytes_each(nested),
            ("fastavro, nested",),
        ),
        "Avro, a new schema": Subject(new_schema(flat[:1], text), 1),
    }
    for name, values, schema in (
        ("ten fields", flat, avro_values.FLAT),
        ("nested", nested, avro_values.NESTED),
    ):
        parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
        some = [value.as_py()[5:] for value in values[:_SLOW_ROWS]]
        found[f"fastavro, {name}"] = Subject(
            lambda parsed=parsed, some=some: [
                fastavro.schemaless_reader(io.BytesIO(value), parsed) for value in some
            ],
            len(some),
            bytes_each(values),
        )
    bare = [value.as_py()[5:] for value in flat]
    found["pyruhvro, ten fields"] = Subject(
        lambda: pyruhvro.deserialize_array(bare, text), rows, size
    )
    return found


def protobuf_subjects(rows: int) -> dict[str, Subject]:
    """Protobuf: kafkajit, Protobuf's own reader, and ptars."""
    import ptars

    order = message_type(protobuf_values.ORDER, "Order")
    handler = ptars.HandlerPool([order.DESCRIPTOR.file]).get_for_message(order.DESCRIPTOR)
    flat = protobuf_values.flat(rows)
    bare = pa.array([value.as_py()[6:] for value in flat], pa.binary())
    some = [value.as_py() for value in bare[:_SLOW_ROWS]]
    fields = [field.name for field in order.DESCRIPTOR.fields if field.message_type is None]
    schemas, size, peers = {1: protobuf_values.ORDER}, bytes_each(flat), ("protobuf", "ptars")
    decode = kafkajit.decode_values

    def read_objects() -> None:
        for value in some:
            message = order.FromString(value)
            for name in fields:
                getattr(message, name)
            message.created.ToDatetime()

    return {
        "Protobuf, ten fields": Subject(lambda: decode(flat, schemas=schemas), rows, size, peers),
        "Protobuf, two of ten fields": Subject(
            lambda: decode(flat, schemas=schemas, columns=avro_values.TWO), rows, size, peers
        ),
        "protobuf": Subject(read_objects, len(some), size),
        "ptars": Subject(lambda: handler.array_to_record_batch(bare), rows, size),
    }


def message_type(text: str, name: str) -> Any:
    """A message's class, which protoc makes of a .proto file."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from grpc_tools import protoc

    with TemporaryDirectory() as folder:
        (Path(folder) / "order.proto").write_text(text)
        builtin = Path(protoc.__file__).parent / "_proto"
        arguments = ["", f"-I{folder}", f"-I{builtin}", "--include_imports"]
        out = f"--descriptor_set_out={folder}/set"
        assert protoc.main([*arguments, out, f"{folder}/order.proto"]) == 0
        files = descriptor_pb2.FileDescriptorSet.FromString((Path(folder) / "set").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    package = files.file[-1].package
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))


def bytes_each(values: pa.Array) -> float:
    """The bytes of a value."""
    return float(values.nbytes) / len(values) - 4


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
    for subject in measured.values():
        subject.function()  # warm
    for _ in range(given.rounds):
        for name, subject in measured.items():
            start = time.perf_counter()
            subject.function()
            seconds[name].append(time.perf_counter() - start)
    each = {name: statistics.median(seconds[name]) / measured[name].rows * 1e9 for name in measured}
    print("| | ns a value | MB/s | peers' times |")
    print("|---|---|---|---|")
    for name, subject in measured.items():
        rate = f"{subject.bytes / each[name] * 1000:,.0f}" if subject.bytes else ""
        ratios = [f"{peer} {each[peer] / each[name]:.1f} ×" for peer in subject.peers]
        print(f"| {name} | {each[name]:,.0f} | {rate} | {'; '.join(ratios)} |")


if __name__ == "__main__":
    main()
