"""Logs for LogOperations.java: random contents of a partition, always the same for a seed.

In: a seed, and what the log shall be like. Out: its batches, as a follower gets them, their offsets
in order; Kafka takes all of them. And topic configs under which few bytes make many segments.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkajit import testing as kt

TIME = 1_700_000_000_000
DAY = 24 * 60 * 60 * 1000
WORDS = (b"alpha", b"bravo", b"charlie", b"delta", b"echo", b"foxtrot")


@dataclass(frozen=True)
class Shape:
    """The shape of a log. Numbers between 0 and 1 are probabilities for each batch."""

    batches: int = 80
    records: int = 8  # in a batch, at most
    value_size: int = 120  # at most
    keys: int = 15
    codecs: Sequence[str] = kt.CODECS
    start_offset: int = 0
    start_time: int = TIME
    step_ms: int = 10_000  # from batch to batch, on average
    idempotent: float = 0.2
    transactional: float = 0.3
    producers: int = 3  # of either kind
    ends: float = 0.35  # a producer's next batch is a marker
    aborts: float = 0.4  # of those
    stays_open: float = 0.3  # a transaction that is open at the end
    epoch_changes: float = 0.05  # of the leader
    gaps: float = 0.1  # between batches
    wide_gaps: float = 0.0  # for which no segment is wide enough
    cleaned: float = 0.1  # records are gone, or all of them; a delete horizon
    tombstones: float = 0.2  # of the records
    null_keys: float = 0.0  # of the records; the cleaner takes them away
    headers: float = 0.2  # of the records
    old: float = 0.05  # days older than those before
    no_timestamp: float = 0.02
    append_time: float = 0.1
    old_formats: float = 0.0  # v0 or v1


def random_log(seed: int | str, shape: Shape | None = None) -> list[bytes]:
    """The batches of a log."""
    return _Maker(random.Random(seed), shape or Shape()).batches()


def random_config(seed: int | str, batches: Sequence[bytes], at_once: int = 1) -> dict[str, object]:
    """Topic configs for these batches, of which `at_once` are appended together."""
    rng = random.Random(seed)
    sizes = [len(batch) for batch in batches]
    largest = max(sum(sizes[at : at + at_once]) for at in range(len(sizes)))
    return {
        "segment.bytes": rng.choice([largest, largest + rng.randrange(5000), 3 * largest, 1 << 30]),
        "segment.ms": rng.choice([7 * DAY, 60_000, 300_000]),
        "index.interval.bytes": rng.choice([0, 1, 100, 400, 4096]),
        # Kafka looks whether an index is full before an append, and not batch by batch.
        "segment.index.bytes": rng.choice(
            [36, 120, 1200, 10 << 20] if at_once == 1 else [10 << 20]
        ),
    }


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a folder, except those that are about to be deleted."""
    names = sorted(path for path in folder.iterdir() if path.suffix != ".deleted")
    return {path.name: path.read_bytes() for path in names}


def date_segments(folder: Path, start: int, step_ms: int) -> None:
    """Say when segments were modified, one after the other; Kafka believes it of what has no time.

    So does its cleaner of formats v0 and v1: whether deletes stay depends on it.
    """
    for place, path in enumerate(sorted(folder.glob("*.log"))):
        nanoseconds = (start + place * step_ms) * 1_000_000
        os.utime(path, ns=(nanoseconds, nanoseconds))


@dataclass
class _Producer:
    producer_id: int
    is_transactional: bool
    epoch: int = 0
    sequence: int = 0
    is_open: bool = False

    def fields(self) -> dict[str, Any]:
        return {"producer_id": self.producer_id, "producer_epoch": self.epoch}


class _Maker:
    def __init__(self, rng: random.Random, shape: Shape) -> None:
        self.rng, self.shape = rng, shape
        self.offset, self.time, self.leader_epoch = shape.start_offset, shape.start_time, 0
        self.coordinator_epoch = 0
        # Ids as they come from several brokers, in no order; sequences start again at 2^31.
        ids = rng.sample(range(1000, 9000), 2 * shape.producers)
        self.producers = [
            _Producer(
                producer_id,
                is_transactional=place < shape.producers,
                sequence=rng.choice([0, 0, 2**31 - 5]),
            )
            for place, producer_id in enumerate(ids)
        ]

    def chance(self, likelihood: float) -> bool:
        return self.rng.random() < likelihood

    def batches(self) -> list[bytes]:
        made = [self.next() for _ in range(self.shape.batches)]
        ended = [producer for producer in self.producers if producer.is_open]
        ended = [producer for producer in ended if not self.chance(self.shape.stays_open)]
        return made + [self.marker(producer) for producer in ended]

    def next(self) -> bytes:
        self.time += int(self.rng.expovariate(1 / self.shape.step_ms))
        if self.chance(self.shape.epoch_changes):
            self.leader_epoch += self.rng.choice([1, 1, 2])
        if self.chance(self.shape.gaps):
            self.offset += self.rng.randrange(1, 40)
        if self.chance(self.shape.wide_gaps):
            self.offset += 2**31 + self.rng.randrange(-20, 20)
        if self.chance(self.shape.old_formats):
            return self.old_format()
        draw = self.rng.random() - self.shape.transactional
        if draw < 0:
            producer = self.rng.choice(self.producers[: self.shape.producers])
            # A partition without records of the transaction may get a marker too.
            if self.chance(self.shape.ends if producer.is_open else 0.05):
                return self.marker(producer)
            return self.data(producer)
        if draw < self.shape.idempotent:
            return self.data(self.rng.choice(self.producers[self.shape.producers :]))
        return self.data(None)

    def data(self, producer: _Producer | None) -> bytes:
        codec = self.rng.choice(self.shape.codecs)
        records = self.records()
        fields: dict[str, Any] = self.times(records)
        last_delta = len(records) - 1
        if producer is not None:
            fields |= producer.fields()
            fields |= {
                "base_sequence": producer.sequence,
                "is_transactional": producer.is_transactional,
            }
            producer.is_open = producer.is_transactional
            producer.sequence = (producer.sequence + last_delta + 1) % 2**31
        if self.chance(self.shape.cleaned):
            kept = sorted(
                self.rng.sample(range(len(records)), self.rng.randrange(len(records) + 1))
            )
            records = [_placed(records[place], place) for place in kept]
            fields["last_offset_delta"] = last_delta
            if not kept:
                codec = "none"
                fields["base_timestamp"] = fields["max_timestamp"]
            elif self.chance(0.5):
                fields["delete_horizon_ms"] = self.time + self.rng.randrange(-DAY, DAY)
        return self.placed(records, last_delta, codec=codec, **fields)

    def marker(self, producer: _Producer) -> bytes:
        if self.chance(0.05):
            self.coordinator_epoch += 1
        is_abort = self.chance(self.shape.aborts)
        # The coordinator fences a slow producer: it aborts with an epoch of its own.
        if is_abort and self.chance(0.2):
            producer.epoch, producer.sequence = producer.epoch + 1, 0
        marker = kt.control_batch(
            0 if is_abort else 1,
            coordinator_epoch=self.coordinator_epoch,
            base_offset=self.offset,
            base_timestamp=self.time,
            partition_leader_epoch=self.leader_epoch,
            **producer.fields(),
        )
        self.offset += 1
        producer.is_open = False
        if self.chance(0.2):
            producer.epoch, producer.sequence = producer.epoch + 1, 0
        return marker

    def old_format(self) -> bytes:
        records = self.records()
        codec = self.rng.choice([codec for codec in self.shape.codecs if codec != "zstd"])
        if codec == "none":  # each would be a batch of its own
            records = records[:1]
        made = kt.message_set(
            [kt.Record(record.key, record.value, timestamp=record.timestamp) for record in records],
            base_offset=self.offset,
            magic=self.rng.choice([0, 1]),
            codec=codec,
            timestamp=self.time,
        )
        self.offset += len(records)
        return made

    def placed(self, records: list[kt.Record], last_delta: int, **fields: Any) -> bytes:
        made = kt.batch(
            records,
            base_offset=self.offset,
            partition_leader_epoch=self.leader_epoch,
            **fields,
        )
        self.offset += last_delta + 1
        return made

    def times(self, records: list[kt.Record]) -> dict[str, Any]:
        """The timestamp of a batch whose records have their own."""
        if self.chance(self.shape.no_timestamp):
            records[:] = [_timed(record, -1) for record in records]
            return {"base_timestamp": -1, "max_timestamp": -1}
        timestamps = [record.timestamp or 0 for record in records]
        if self.chance(self.shape.append_time):
            return {
                "base_timestamp": timestamps[0],
                "max_timestamp": self.time,
                "timestamp_type": kt.LOG_APPEND_TIME,
            }
        return {"base_timestamp": timestamps[0], "max_timestamp": max(timestamps)}

    def records(self) -> list[kt.Record]:
        count = self.rng.randint(1, self.shape.records)
        ago = self.rng.randrange(10) * DAY if self.chance(self.shape.old) else 0
        return [self.record(self.time - ago) for _ in range(count)]

    def record(self, now: int) -> kt.Record:
        # Some keys come often, most seldom.
        key = b"key-%d" % int(self.shape.keys * self.rng.random() ** 2)
        size = self.rng.randrange(self.shape.value_size + 1)
        value = b" ".join(self.rng.choices(WORDS, k=1 + size // 6))[:size]
        if self.chance(0.3):
            value = self.rng.randbytes(size)
        headers = [("source", b"web"), ("trace", self.rng.randbytes(8)), ("none", None)]
        return kt.Record(
            key=None if self.chance(self.shape.null_keys) else key,
            value=None if self.chance(self.shape.tombstones) else value,
            headers=headers[: self.rng.randint(1, 3)] if self.chance(self.shape.headers) else (),
            timestamp=now + self.rng.randrange(-2 * self.shape.step_ms, self.shape.step_ms),
        )


def _timed(record: kt.Record, timestamp: int) -> kt.Record:
    return kt.Record(record.key, record.value, record.headers, timestamp)


def _placed(record: kt.Record, offset_delta: int) -> kt.Record:
    return kt.Record(record.key, record.value, record.headers, record.timestamp, offset_delta)
