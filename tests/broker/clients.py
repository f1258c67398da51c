"""Make tests/data/clients again: segments of clients other than Kafka's own, in every format.

In: the records below, and the clients (tests/data/README.md has their versions). Out:
tests/data/clients/CLIENT-FORMAT-CODEC, a segment each, with what DumpLogSegments prints of it
beside; tests/data/clients/records.json, what every client was given. All of it is written to
build/test-data and packed into tests/data/clients.tar.xz.

kafka-python and aiokafka have builders that need no broker. librdkafka, franz-go and sarama
(goclients) send format v2 to a real Kafka 4.1.1 that keeps their bytes (compression.type=producer),
and v0 and v1 to recording_broker.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import struct
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from broker import KAFKA, running_broker
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.record.memory_records import MemoryRecordsBuilder
from make_corpus import DATA, FIRST_SEGMENT, pack, progress, write_goldens, write_logs
from recording_broker import running_recording_broker

import kafkajit.testing as kt

GO = Path(__file__).with_name("goclients")
GO_CLIENTS = ("franz-go", "sarama")
BY_NETWORK = ("librdkafka", *GO_CLIENTS)
# The format's magic, and the release that the client takes the broker for.
FORMATS = {"v0": (0, "0.9.0.0"), "v1": (1, "0.10.0.0"), "v2": (2, KAFKA.version)}

_START = 1_700_000_000_000
RECORDS = [
    kt.Record(key, value, headers, timestamp=_START + 10 * place)
    for place, (key, value, headers) in enumerate(
        [
            (b"key", b"value", []),
            (None, b"no key", []),
            (b"no value", None, []),
            (None, None, []),
            (b"", b"", []),
            ("ключ".encode(), "Grüße, 世界 🦉".encode(), []),
            (b"\x00\xff", bytes(range(256)), []),
            (b"long", b"offset, timestamp, key, value; " * 10, []),
            (b"one header", b"value", [("h", b"1")]),
            (b"again", b"value", [("h", b"1"), ("other", b"2"), ("h", b"3"), ("h", b"3")]),
            (b"nothing", b"value", [("null", None), ("empty", b""), ("ключ", "世界".encode())]),
            (b"key", b"value", []),
        ]
    )
]
# Over several blocks of snappy's (32 KiB) and lz4's (64 KiB); goldens that print it are kept as
# their SHA-256.
HASHED_ABOVE = 50_000
_LINE, _LINES = b"0123456789abcde\n", 4375
LARGE = kt.Record(b"large", _LINE * _LINES, timestamp=_START + 5000)


def main() -> None:
    """Make the segments and print their size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="where to write (%(default)s)")
    data = parser.parse_args().data.resolve()
    with tempfile.TemporaryDirectory(prefix="kafkajit-") as temporary:
        work = Path(temporary)
        go = work / "goclients"
        subprocess.run(["go", "build", "-o", go, "."], cwd=GO, check=True)
        shutil.rmtree(data / "clients", ignore_errors=True)
        write_logs(data / "clients", dict(built_logs()))
        for version in ("v0", "v1"):
            write_logs(data / "clients", dict(old_logs(version, go)))
        write_logs(data / "clients", dict(new_logs(work, go)))
    given = [as_json(record) for record in RECORDS]
    given.append(as_json(replace(LARGE, value=_LINE)) | {"repeated": _LINES})
    (data / "clients" / "records.json").write_text(json.dumps(given, indent=1) + "\n")
    write_goldens(data, ["clients"], HASHED_ABOVE)
    total = sum(path.stat().st_size for path in (data / "clients").rglob("*") if path.is_file())
    progress(f"{total:,} bytes in {data / 'clients'}")
    if data == DATA:
        pack(["clients"])


def batches(codec: str) -> list[list[kt.Record]]:
    """Return the records for a client, request by request."""
    return [RECORDS] if codec == "none" else [RECORDS, [LARGE]]


def codecs(client: str, version: str) -> list[str]:
    """Return the codecs that a client writes in a format."""
    without = {"zstd"} if version != "v2" else set()
    if version == "v0" and client in ("aiokafka", "sarama"):
        without.add("lz4")  # refused, because the frames of that time were wrong
    return [codec for codec in kt.CODECS if codec not in without]


def built_logs() -> Iterator[tuple[str, bytes]]:
    """Yield the segments of the clients that build batches without a broker, by name."""
    for client, build in (("kafka-python", kafka_pythons), ("aiokafka", aiokafkas)):
        for version, (magic, _) in FORMATS.items():
            for codec in codecs(client, version):
                codec_id, _ = kt.COMPRESSORS[codec]
                log, offset = b"", 0
                for records in batches(codec):
                    # Gzip's header has the time of day.
                    with mock.patch("time.time", return_value=_START / 1000):
                        # In a compressed set offsets are the log's in v0, the set's in v1.
                        built = build(records, offset if magic == 0 else 0, magic, codec_id)
                    log += with_offsets(built, offset, len(records))
                    offset += len(records)
                yield f"{client}-{version}-{codec}", log


def kafka_pythons(records: Sequence[kt.Record], offset: int, magic: int, codec: int) -> bytes:
    """Build a batch with kafka-python."""
    builder = MemoryRecordsBuilder(magic, codec, batch_size=1 << 20, offset=offset)
    for record in records:
        headers = list(record.headers) if magic == 2 else None
        builder.append(record.timestamp, record.key, record.value, headers)
    builder.close()
    return bytes(builder.buffer())


def aiokafkas(records: Sequence[kt.Record], offset: int, magic: int, codec: int) -> bytes:
    """Build a batch with aiokafka."""
    if magic == 2:
        builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    else:
        builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for place, record in enumerate(records, offset):
        headers = list(record.headers) if magic == 2 else []
        builder.append(place, record.timestamp, record.key, record.value, headers)
    return bytes(builder.build())


def with_offsets(sent: bytes, offset: int, count: int) -> bytes:
    """Set the offsets outside as a broker does that compresses nothing anew.

    A batch has its first record's, a message its own, a message around a set the set's last one.
    """
    log, position = bytearray(sent), 0
    while position < len(log):
        length, _, magic, attributes = struct.unpack_from(">iIbb", log, position + 8)
        if magic < 2 and attributes & 7:
            offset += count - 1
        struct.pack_into(">q", log, position, offset)
        position += 12 + length
        offset += 1
    return bytes(log)


def old_logs(version: str, go: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the segments of format v0 or v1 that clients send to an old broker, by name."""
    magic, _ = FORMATS[version]
    with running_recording_broker(magic) as broker:
        for client in BY_NETWORK:
            progress(f"{client} sends {version}")
            send(client, version, broker.bootstrap, go)
    for topic, sent in broker.message_sets.items():
        given = batches(topic.rpartition("-")[2])
        counts = [len(records) for records in given]
        if len(sent) != len(counts):
            raise RuntimeError(f"{topic}: {len(sent)} requests for {len(counts)} batches")
        firsts = (sum(counts[:place]) for place in range(len(counts)))
        yield topic, b"".join(map(with_offsets, sent, firsts, counts))


def new_logs(work: Path, go: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the segments of format v2 that clients send to a broker of today, by name."""
    topics = [f"{client}-v2-{codec}" for client in BY_NETWORK for codec in codecs(client, "v2")]
    progress("starting a broker")
    with running_broker(work / "broker") as broker:
        create_topics(broker.bootstrap, topics)
        for client in BY_NETWORK:
            progress(f"{client} sends v2")
            send(client, "v2", broker.bootstrap, go)
    for topic in topics:
        yield topic, (broker.log_dir / f"{topic}-0" / FIRST_SEGMENT).read_bytes()


def create_topics(bootstrap: str, topics: Sequence[str]) -> None:
    """Create topics of one partition that keep what they are sent."""
    config = {"compression.type": "producer", "retention.ms": "-1"}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([NewTopic(topic, 1, config=config) for topic in topics])
    for future in created.values():
        future.result()


def send(client: str, version: str, bootstrap: str, go: Path) -> None:
    """Have a client send its batches, a topic for each codec."""
    jobs = [(f"{client}-{version}-{codec}", codec) for codec in codecs(client, version)]
    if client not in GO_CLIENTS:
        for topic, codec in jobs:
            librdkafka_sends(topic, codec, version, bootstrap)
        return
    text = json.dumps(
        [
            {
                "topic": topic,
                "codec": codec,
                "batches": [
                    [as_json(record, headers=version == "v2") for record in records]
                    for records in batches(codec)
                ],
            }
            for topic, codec in jobs
        ]
    )
    _, release = FORMATS[version]
    subprocess.run([go, client, release, bootstrap], input=text.encode(), check=True)


def librdkafka_sends(topic: str, codec: str, version: str, bootstrap: str) -> None:
    """Have librdkafka send each batch in one request."""
    config: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "compression.type": codec,
        "linger.ms": 1000,  # flush sends at once what is there
    }
    for records in batches(codec):
        producer = Producer(config | {"batch.num.messages": len(records)})
        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=0,
                timestamp=record.timestamp,
                headers=list(record.headers) if version == "v2" else None,
                on_delivery=raise_error,
            )
        if left := producer.flush(30):
            raise TimeoutError(f"{topic}: {left} records were not sent")


def raise_error(error: Exception | None, _: object) -> None:
    """Raise at the first record that the broker refused."""
    if error is not None:
        raise RuntimeError(error)


def as_json(record: kt.Record, *, headers: bool = True) -> dict[str, Any]:
    """Return a record with its bytes in base64."""
    return {
        "timestamp": record.timestamp,
        "key": _base64(record.key),
        "value": _base64(record.value),
        "headers": [
            {"key": key, "value": _base64(value)} for key, value in record.headers if headers
        ],
    }


def _base64(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()


if __name__ == "__main__":
    main()
