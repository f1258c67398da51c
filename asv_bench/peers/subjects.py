"""The subjects: each reads one segment, over and over, in a process of its own.

`python -m asv_bench.peers.subjects NAME PATH` answers every line on stdin with the nanoseconds
that one more pass took and the records it found. Loading the file and importing take no part.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Pass = Callable[[], int]


def kafkajit(path: Path, *, more: Sequence[str] = (), binary_view: bool = False) -> Pass:
    """Bytes in memory → Arrow batches of key, value, offset and timestamp; CRCs checked."""
    from kafkajit import iter_records

    data = path.read_bytes()
    columns = ("key", "value", "offset", "timestamp", *more)
    return lambda: sum(
        batch.num_rows for batch in iter_records(data, columns=columns, binary_view=binary_view)
    )


# With headers; and with keys and values as views into the bytes.
kafkajit_headers = partial(kafkajit, more=("headers",))
kafkajit_binary_view = partial(kafkajit, binary_view=True)
kafkajit_headers_binary_view = partial(kafkajit, more=("headers",), binary_view=True)


def kafkajit_decode(path: Path) -> Pass:
    """Bytes of __consumer_offsets in memory → JSON of every key and value; CRCs checked."""
    from kafkajit import decode_payloads, iter_records

    data = path.read_bytes()

    def read() -> int:
        count = 0
        for rows in iter_records(data, columns=["key", "value"]):
            count += len(decode_payloads("offsets", rows["key"], rows["value"]))
        return count

    return read


def kafkajit_encode(path: Path) -> Pass:
    """Arrow columns of key, value, offset and timestamp → batches of 16,384 bytes with CRCs."""
    from kafkajit import iter_encoded_batches, iter_records

    columns = ("key", "value", "offset", "timestamp")
    records = list(iter_records(path, columns=columns))
    codec = _codec(path)

    def write() -> int:
        for _ in iter_encoded_batches(records, batch_size=16384, compression_type=codec):
            pass
        return sum(batch.num_rows for batch in records)

    return write


def aiokafka_encode(path: Path) -> Pass:
    """aiokafka's Cython builder: the same from Python's bytes."""
    from aiokafka.record.default_records import DefaultRecordBatchBuilder

    from kafkajit import read_records
    from kafkajit.format.codecs import COMPRESSION_IDS

    table = read_records(path, columns=["key", "value", "timestamp"])
    keys, values = table["key"].to_pylist(), table["value"].to_pylist()
    timestamps = table["timestamp"].cast("int64").to_pylist()
    codec = COMPRESSION_IDS[_codec(path)]

    def write() -> int:
        row = 0
        while row < len(keys):
            builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 16384)
            place = 0
            while row < len(keys) and builder.append(
                place, timestamps[row], keys[row], values[row], []
            ):
                row += 1
                place += 1
            builder.build()
        return len(keys)

    return write


def bare_encoder(path: Path) -> Pass:
    """The records of batches of 16,384 bytes, compressed by kafkajit's encoder, nothing else."""
    from kafkajit import encode_batches, read_records
    from kafkajit.format.codecs import COMPRESSION_IDS
    from kafkajit.format.compressor import Compressor
    from kafkajit.format.layout import RECORD_BATCH_OVERHEAD
    from kafkajit.storage.source import Source
    from kafkajit.walk.frames import frames

    table = read_records(path, columns=["key", "value", "offset", "timestamp"])
    plain = np.frombuffer(encode_batches(table, batch_size=16384), dtype=np.uint8)
    compress = Compressor(COMPRESSION_IDS[_codec(path)]).write
    out = np.zeros(1 << 20, dtype=np.uint8)
    payloads = [
        plain[start + RECORD_BATCH_OVERHEAD : end]
        for framing in frames(Source(plain))
        for start, end in zip(framing.batches.position, framing.batches.end, strict=True)
    ]

    def write() -> int:
        for payload in payloads:
            compress(payload, out, 0)
        return 0

    return write


def _codec(path: Path) -> str:
    from kafkajit import read_record_batches

    name: str = read_record_batches(path)["compressionType"][0].as_py()
    return name


def aiokafka(path: Path) -> Pass:
    """aiokafka's Cython reader: every record's key, value, offset, timestamp; CRCs checked."""
    from aiokafka.record import memory_records
    from aiokafka.util import NO_EXTENSIONS

    if NO_EXTENSIONS:
        raise RuntimeError("aiokafka is here without its Cython extensions")
    return _every_field(memory_records.MemoryRecords, path)


def kafka_python(path: Path) -> Pass:
    """kafka-python's reader, which is pure Python: the same."""
    from kafka.record.memory_records import MemoryRecords

    return _every_field(MemoryRecords, path)


def _every_field(memory_records: Any, path: Path) -> Pass:
    """Read all batches and records; both clients have the same interface."""
    data = path.read_bytes()

    def read() -> int:
        count = 0
        records = memory_records(data)
        while (batch := records.next_batch()) is not None:
            if not batch.validate_crc():
                raise ValueError("CRC does not match")
            for record in batch:
                record.key, record.value, record.offset, record.timestamp  # noqa: B018
                count += 1
        return count

    return read


def memcpy(path: Path) -> Pass:
    """The file's bytes into another buffer, which is recycled."""
    data = np.fromfile(path, dtype=np.uint8)
    copy = np.zeros_like(data)

    def read() -> int:
        np.copyto(copy, data)
        return 0

    return read


def crc32c(path: Path) -> Pass:
    """One CRC-32C over the file's bytes."""
    from crc32c import crc32c as checksum

    data = path.read_bytes()

    def read() -> int:
        checksum(data)
        return 0

    return read


def varint_floor(path: Path) -> Pass:
    """The varints of every record, and nothing else of it."""
    from asv_bench.peers.floor import walk_varints
    from kafkajit.format.layout import RECORD_BATCH_OVERHEAD
    from kafkajit.storage.source import Source
    from kafkajit.walk.frames import frames

    data = np.fromfile(path, dtype=np.uint8)
    batches = [framing.batches for framing in frames(Source(data))]
    starts = np.concatenate([part.position for part in batches]) + RECORD_BATCH_OVERHEAD
    counts = np.concatenate([part.field("recordsCount") for part in batches]).astype(np.int64)
    return lambda: int(walk_varints(data, starts, counts)[0])


def bare_codec(path: Path) -> Pass:
    """Every batch decompressed by kafkajit's decoder into one recycled buffer, nothing else."""
    from kafkajit.format.decompressors import CompressedBatches, decompress_run
    from kafkajit.format.layout import RECORD_BATCH_OVERHEAD
    from kafkajit.storage.source import Source
    from kafkajit.walk.frames import frames

    source = Source(path.read_bytes())
    out = np.zeros(16 << 20, dtype=np.uint8)
    runs = [
        CompressedBatches(
            found.position + RECORD_BATCH_OVERHEAD,
            found.end,
            np.ascontiguousarray(found.codec),
            np.ascontiguousarray(found.field("magic")),
            np.ascontiguousarray(found.field("recordsCount")),
        )
        for found in (framing.batches for framing in frames(source))
    ]

    def read() -> int:
        for run in runs:
            row, extents = 0, np.zeros((run.starts.size, 2), dtype=np.int64)
            while row < extents.shape[0]:
                first = row
                row = decompress_run(
                    source.content, run, out, extents, row, limit=8 << 20, enough=8 << 20
                )
                if row == first:
                    raise ValueError("a batch is not as Kafka's clients write it")
        return 0

    return read


SUBJECTS: dict[str, Callable[[Path], Pass]] = {
    "kafkajit": kafkajit,
    "kafkajit binary_view": kafkajit_binary_view,
    "kafkajit headers": kafkajit_headers,
    "kafkajit headers binary_view": kafkajit_headers_binary_view,
    "kafkajit decode": kafkajit_decode,
    "kafkajit encode": kafkajit_encode,
    "aiokafka encode": aiokafka_encode,
    "bare encoder": bare_encoder,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
    "memcpy": memcpy,
    "crc32c": crc32c,
    "varint floor": varint_floor,
    "bare codec": bare_codec,
}


def peak_memory(path: Path) -> dict[str, int]:
    """Bytes that iter_records over a file needs at its peak, and the import before it."""
    from kafkajit import iter_records

    imported = _high_water_mark()
    records = sum(batch.num_rows for batch in iter_records(path))
    return {"imported": imported, "peak": _high_water_mark(), "records": records}


def _high_water_mark() -> int:
    """This process's own: ru_maxrss would begin with its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def main(name: str, path: str) -> None:
    """Prepare, report that, then answer each line with one pass."""
    read = SUBJECTS[name](Path(path))
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter_ns()
        records = read()
        print(time.perf_counter_ns() - start, records, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
