"""Random but reproducible logs to append, with their topic configs.

In: a seed. Out: batches in the order of their offsets, which Kafka takes one by one, and the place
at which the log is closed and opened again. Segments are only a few bytes large, so there are many.
"""

from __future__ import annotations

import hashlib
import random
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import kafkajit.testing as kt

TIME = 1_000_000_000


@dataclass(frozen=True)
class Append:
    """A log, and its topic config."""

    config: dict[str, Any]
    start: int
    batches: list[bytes]
    cut: int  # the number of batches after which the log is opened again, if more follow

    @property
    def parts(self) -> list[bytes]:
        """The batches before the cut and, if there are any, behind it."""
        parts = [b"".join(self.batches[: self.cut]), b"".join(self.batches[self.cut :])]
        return [part for part in parts if part]


def files_of(folder: Path) -> dict[str, bytes]:
    """The files in a folder, without those that Kafka is about to delete."""
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    return {path.name: path.read_bytes() for path in paths if path.suffix != ".deleted"}


def digests(files: Mapping[str, bytes], start: int) -> dict[str, str]:
    """A part of the SHA-256 of the files of each kind, with their names.

    The snapshot of a log's start is left out: Kafka makes one, and removes it the next time.
    """
    kinds: dict[str, list[str]] = {}
    for name, content in sorted(files.items()):
        if name == f"{start:020}.snapshot":
            continue
        digest = hashlib.sha256(content).hexdigest()
        kinds.setdefault(PurePath(name).suffix or name, []).append(f"{name} {digest}")
    return {
        kind: hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
        for kind, lines in kinds.items()
    }


def append(seed: int) -> Append:
    """Append the log of this seed."""
    rng = random.Random(seed)
    start = rng.choice([0, 0, 77, 2**40])
    maker = _Maker(rng, start)
    batches = [maker.next() for _ in range(rng.choice([1, 5, 30, 60]))]
    largest = max(map(len, batches))
    config: dict[str, Any] = {
        "internal.segment.bytes": rng.choice([largest, largest + 300, 5 * largest, 1 << 30]),
        "segment.ms": rng.choice([1, 2000, 10_000, 10**9]),
        "index.interval.bytes": rng.choice([0, 1, 100, 200, 4096]),
        "segment.index.bytes": rng.choice([12, 24, 40, 120, 10 << 20]),
    }
    if rng.random() < 0.2:
        config |= {"cleanup.policy": "compact", "max.compaction.lag.ms": 3000}
    return Append(config, start, batches, rng.randint(1, len(batches)))


@dataclass
class _Producer:
    producer_id: int
    epoch: int = 0
    sequence: int = 2**31 - 9
    is_open: bool = False


class _Maker:
    def __init__(self, rng: random.Random, start: int) -> None:
        self.rng, self.offset, self.time = rng, start, TIME
        self.leader_epoch = self.coordinator_epoch = 0
        count = rng.choice([1, 3, 40])
        self.producers = [_Producer(id_) for id_ in rng.sample(range(500), count)]
        # The log's producers.
        self.kinds = rng.choice(
            [
                ["data"],
                ["data", "idempotent"],
                ["data", "transaction", "transaction", "transaction"],
                ["data", "message", "set", "idempotent"],
            ]
        )

    def next(self) -> bytes:
        rng = self.rng
        self.offset += rng.choice([0, 0, 0, 0, 5])
        if rng.random() < 0.02:
            self.offset += 2**31 + rng.randrange(-3, 3)
        self.time += rng.choice([0, 1, 900, -700])
        self.leader_epoch += rng.choice([0] * 19 + [1])
        kind = rng.choice(self.kinds)
        producer = rng.choice(self.producers)
        if kind == "message":
            made = kt.message(self.record(), offset=self.offset, magic=rng.randrange(2))
            self.offset += 1
        elif kind == "set":
            made = self.message_set()
        elif kind == "transaction" and rng.random() < (0.5 if producer.is_open else 0.1):
            made = self.marker(producer)
        else:
            made = self.data(kind, producer)
        return made

    def message_set(self) -> bytes:
        """Some messages, compressed into one."""
        count, magic = self.rng.randint(1, 3), self.rng.randrange(2)
        entries = kt.message_set(
            [self.record() for _ in range(count)],
            base_offset=0 if magic else self.offset,
            magic=magic,
        )
        self.offset += count
        return kt.message(
            kt.Record(value=_stored(entries), timestamp=self.time),
            offset=self.offset - 1,
            magic=magic,
            attributes=1,
        )

    def data(self, kind: str, producer: _Producer) -> bytes:
        rng = self.rng
        records = [self.record() for _ in range(rng.randint(0, 3))]
        delta = max(len(records) - 1, 0) + rng.choice([0, 0, 2])
        fields: dict[str, Any] = {}
        if kind != "data":
            fields = self.of(producer) | {"base_sequence": producer.sequence}
            producer.sequence = (producer.sequence + delta + 1) % 2**31
            producer.is_open = fields["is_transactional"] = kind == "transaction"
        timestamp = rng.choice([self.time] * 9 + [-1])
        made = kt.batch(
            [kt.Record(record.key, record.value, timestamp=timestamp) for record in records],
            base_timestamp=timestamp,
            timestamp_type=rng.choice([0, 0, 1]),
            base_offset=self.offset,
            last_offset_delta=delta,
            partition_leader_epoch=self.leader_epoch,
            **fields,
        )
        self.offset += delta + 1
        return made

    def marker(self, producer: _Producer) -> bytes:
        rng = self.rng
        self.coordinator_epoch += rng.choice([0, 0, 1])
        producer.epoch += rng.choice([0, 0, 1])
        made = kt.control_batch(
            rng.randrange(2),
            coordinator_epoch=self.coordinator_epoch,
            base_offset=self.offset,
            base_timestamp=self.time,
            partition_leader_epoch=self.leader_epoch,
            **self.of(producer),
        )
        producer.is_open = False
        self.offset += 1
        return made

    def of(self, producer: _Producer) -> dict[str, Any]:
        return {"producer_id": producer.producer_id, "producer_epoch": producer.epoch}

    def record(self) -> kt.Record:
        size = self.rng.choice([0, 3, 60, 200])
        return kt.Record(value=self.rng.randbytes(size), timestamp=self.time)


def _stored(data: bytes) -> bytes:
    """A gzip member whose bytes are the same with every zlib."""
    head = bytes.fromhex("1f8b08000000000000ff 01") + struct.pack(
        "<HH", len(data), ~len(data) & 0xFFFF
    )
    return head + data + struct.pack("<II", zlib.crc32(data), len(data))
