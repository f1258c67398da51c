"""decode_values side by side with other readers of Avro, Protobuf and JSON, on one core.

All take turns in one process, on the same values in memory, in Confluent's framing. fastavro and
protobuf make Python's objects, of which protobuf's ten fields are read; pyruhvro makes a
RecordBatch of a list of Python's bytes, ptars one of an array, both without framing; pyarrow reads
values that are joined by ends of lines. Making that list, array or text is not counted.

  pip install fastavro pyruhvro grpcio-tools ptars
  python -m asv_bench.peers.values                    2 M orders, 5 rounds: five minutes
  python -m asv_bench.peers.values --record           and into docs/performance
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.json

import kafkajit
from asv_bench.benchmarks import avro_values, protobuf_values
from asv_bench.peers import report
from asv_bench.peers.options import add_measuring, add_record, finish, keep, parser_of
from asv_bench.peers.record import measured_with
from asv_bench.peers.rounds import summary
from kafkajit.values.decoder import ValueDecoder
from kafkajit.values.framing import CONFLUENT

_SLOW_ROWS = 50_000  # of those that make objects, and take as long for each
_MILLION = 1_000_000


class Subject(NamedTuple):
    """A function that is measured, and how many values it reads."""

    read: Callable[[], Any]
    rows: int


class Comparison(NamedTuple):
    """Readers of the same values, and the bytes of one."""

    bytes: float
    subjects: dict[str, Subject]


def flat_avro(rows: int) -> Comparison:
    """Orders of ten fields."""
    import fastavro
    import pyruhvro

    flat, by_turns = avro_values.flat(rows), avro_values.flat(rows, 10)
    text = json.dumps(avro_values.FLAT)
    bare = without_frames(flat, 5)
    parsed = fastavro.parse_schema(json.loads(text))
    decode = kafkajit.decode_values
    subjects = {
        report.US: Subject(lambda: decode(flat, schemas={1: text}), rows),
        report.TWO_FIELDS: Subject(
            lambda: decode(flat, schemas={1: text}, columns=avro_values.TWO), rows
        ),
        report.TEN_SCHEMAS: Subject(
            lambda: decode(by_turns, text, schemas=avro_values.versions(10)), rows
        ),
        "pyruhvro": Subject(lambda: pyruhvro.deserialize_array(bare, text), rows),
        "fastavro": objects(partial(fastavro_reader, parsed), bare),
    }
    return Comparison(bytes_each(flat), subjects)


def nested_avro(rows: int) -> Comparison:
    """Baskets with lists of records and maps."""
    import fastavro

    nested = avro_values.nested(rows // 4)
    text = json.dumps(avro_values.NESTED)
    parsed = fastavro.parse_schema(json.loads(text))
    subjects = {
        report.US: Subject(lambda: kafkajit.decode_values(nested, schemas={1: text}), len(nested)),
        "fastavro": objects(partial(fastavro_reader, parsed), without_frames(nested, 5)),
    }
    return Comparison(bytes_each(nested), subjects)


def fastavro_reader(schema: Any, value: bytes) -> Any:
    import fastavro

    return fastavro.schemaless_reader(io.BytesIO(value), schema)


def flat_protobuf(rows: int) -> Comparison:
    """The same orders as messages."""
    import ptars

    order = message_type(protobuf_values.ORDER, "Order")
    handler = ptars.HandlerPool([order.DESCRIPTOR.file]).get_for_message(order.DESCRIPTOR)
    flat = protobuf_values.flat(rows)
    bare = without_frames(flat, 6)
    array = pa.array(bare, pa.binary())
    fields = [field.name for field in order.DESCRIPTOR.fields if field.message_type is None]
    schemas = {1: protobuf_values.ORDER}
    decode = kafkajit.decode_values

    def read(value: bytes) -> None:
        message = order.FromString(value)
        for name in fields:
            getattr(message, name)
        message.created.ToDatetime()

    subjects = {
        report.US: Subject(lambda: decode(flat, schemas=schemas), rows),
        report.TWO_FIELDS: Subject(
            lambda: decode(flat, schemas=schemas, columns=avro_values.TWO), rows
        ),
        "ptars": Subject(lambda: handler.array_to_record_batch(array), rows),
        "protobuf": objects(read, bare),
    }
    return Comparison(bytes_each(flat), subjects)


def flat_json(rows: int) -> Comparison:
    """The same orders as JSON, read into the same types."""
    orders = kafkajit.decode_values(
        avro_values.flat(rows // 4), schemas={1: json.dumps(avro_values.FLAT)}
    )
    texts = [json.dumps(row, default=str).encode() for row in orders[:100_000].to_pylist()]
    some = pa.array(texts, pa.binary())
    values = pa.concat_arrays([some] * (len(orders) // len(some)))
    type_ = pa.struct(
        [
            field.with_type(pa.string()) if field.name == "created" else field
            for field in orders.type
        ]
    )
    joined = b"\n".join(values.to_pylist())
    options = pyarrow.json.ParseOptions(explicit_schema=pa.schema(list(type_)))
    serial = pyarrow.json.ReadOptions(use_threads=False, block_size=1 << 24)
    subjects = {
        report.US: Subject(lambda: kafkajit.decode_values(values, type_), len(values)),
        "pyarrow.json": Subject(
            lambda: pyarrow.json.read_json(io.BytesIO(joined), serial, options), len(values)
        ),
        "json": objects(json.loads, texts),
    }
    return Comparison(bytes_each(values), subjects)


COMPARISONS: dict[str, Callable[[int], Comparison]] = {
    "avro": flat_avro,
    "avro-nested": nested_avro,
    "protobuf": flat_protobuf,
    "json": flat_json,
}


def objects(read: Callable[[bytes], Any], values: list[bytes]) -> Subject:
    """A reader that makes an object of each value."""
    some = values[:_SLOW_ROWS]
    return Subject(lambda: [read(value) for value in some], len(some))


def without_frames(values: pa.Array, size: int) -> list[bytes]:
    """Values without as many bytes in front."""
    return [value.as_py()[size:] for value in values]


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


def compare(comparison: Comparison, rounds: int) -> dict[str, Any]:
    """Measure by turns: the seconds of a million values."""
    seconds: dict[str, list[float]] = {name: [] for name in comparison.subjects}
    for subject in comparison.subjects.values():
        subject.read()  # warm
    for _ in range(rounds):
        for name, (read, rows) in comparison.subjects.items():
            start = time.perf_counter()
            read()
            seconds[name].append((time.perf_counter() - start) * _MILLION / rows)
    return {
        "bytes": comparison.bytes,
        "seconds": {name: summary(all_) for name, all_ in seconds.items()},
    }


def main() -> None:
    """Run the chosen comparisons and print a table of each."""
    parser = parser_of("values", __doc__)
    add_measuring(parser, list(COMPARISONS), rounds=5, of="values")
    add_record(parser)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    packages = ("fastavro", "pyruhvro", "protobuf", "ptars")
    for name in options.only:
        result = compare(COMPARISONS[name](round(2_000_000 * options.scale)), options.rounds)
        result["with"] = measured_with(packages)
        print(report.values_table({name: result}), flush=True)
        keep(options, "values", {name: result})
    if "avro" in options.only:
        decode = new_schema(avro_values.flat(1), json.dumps(avro_values.FLAT))
        decode()
        start = time.perf_counter()
        for _ in range(20):
            decode()
        print(f"a new schema: {(time.perf_counter() - start) / 20 * 1e3:.1f} ms")
    finish(options)


if __name__ == "__main__":
    main()
