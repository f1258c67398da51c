"""The slow twin of compaction: dicts and loops over the batches that tests/reference.py reads.

Follows Kafka's Cleaner, CleanedTransactionMetadata and MemoryRecords.filterTo line by line, and
shares nothing with the kernels but `kafkajit.testing`, which builds batches.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import reference
from reference import Batch, Record, read_batches, read_records

import kafkajit.testing as kt

CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
NEVER = 2**62


class Aborted(NamedTuple):
    """An entry of a transaction index."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int = 0


class LastRecord(NamedTuple):
    offset: int | None
    epoch: int


@dataclass
class Segment:
    base_offset: int
    log: bytes
    aborted: Sequence[Aborted] = ()
    modified_ms: int = 0


@dataclass
class Settings:
    first_dirty_offset: int
    end: int  # the first uncleanable offset
    start_offset: int = 0
    now: int = 0
    delete_retention_ms: int = 0
    producers: dict[int, LastRecord] = field(default_factory=dict)


class Cleaned(NamedTuple):
    log: bytes
    aborted: list[Aborted]
    records: int
    without_key: int


def compacted(segments: Sequence[Segment], settings: Settings) -> list[Cleaned]:
    """The remaining bytes of each segment before the end."""
    cleanable = [segment for segment in segments if segment.base_offset < settings.end]
    entries = [
        entry
        for segment in segments
        for entry in segment.aborted
        if entry.last_offset >= settings.start_offset and entry.first_offset < settings.end
    ]
    latest = _latest(cleanable, entries, settings)
    clean = [s for s in cleanable if s.base_offset < settings.first_dirty_offset]
    legacy_horizon = clean[-1].modified_ms - settings.delete_retention_ms if clean else 0
    transactions = Transactions(entries)
    return [
        _clean(segment, latest, transactions, settings, segment.modified_ms > legacy_horizon)
        for segment in cleanable
    ]


def _latest(
    segments: Sequence[Segment], entries: Iterable[Aborted], settings: Settings
) -> dict[bytes, int]:
    """The last offset of each key in the dirty section."""
    first = max(s.base_offset for s in segments if s.base_offset <= settings.first_dirty_offset)
    transactions = Transactions([entry for entry in entries if entry.last_offset >= first])
    latest: dict[bytes, int] = {}
    for segment in segments:
        for batch in read_batches(segment.log)[0] if segment.base_offset >= first else []:
            if transactions.discards(batch) or batch.is_control:
                continue
            for record in read_records(batch):
                if record.key is not None and record.offset >= settings.first_dirty_offset:
                    latest[record.key] = record.offset
    return latest


class Transactions:
    """CleanedTransactionMetadata."""

    def __init__(self, entries: Iterable[Aborted]) -> None:
        self.waiting = [(entry.first_offset, entry) for entry in entries]
        heapq.heapify(self.waiting)
        self.committing: set[int] = set()
        self.aborting: dict[int, Aborted] = {}
        self.with_data: set[int] = set()
        self.ended: list[Aborted] = []

    def discards(self, batch: Batch) -> bool:
        last_offset = batch.base_offset + batch.last_offset_delta
        while self.waiting and self.waiting[0][0] <= last_offset:
            entry = heapq.heappop(self.waiting)[1]
            if entry.producer_id not in self.aborting:
                self.aborting[entry.producer_id] = entry
                self.with_data.discard(entry.producer_id)
        producer = batch.producer_id
        if batch.is_control:
            return self.ends(producer, read_records(batch))
        if not batch.is_transactional:
            return False
        if producer in self.aborting:
            self.with_data.add(producer)
            return True
        self.committing.add(producer)
        return False

    def ends(self, producer: int, records: list[Record]) -> bool:
        if not records:
            return True
        assert records[0].key is not None
        control_type = int.from_bytes(records[0].key[2:4], signed=True)
        if control_type == 0:
            entry = self.aborting.pop(producer, None)
            if entry is None or producer not in self.with_data:
                return True
            self.ended.append(entry)
            return False
        if control_type == 1:
            is_empty = producer not in self.committing
            self.committing.discard(producer)
            return is_empty
        return False


def _clean(
    segment: Segment,
    latest: dict[bytes, int],
    transactions: Transactions,
    settings: Settings,
    keeps_old_tombstones: bool,
) -> Cleaned:
    written, kept, without_key = b"", 0, 0
    transactions.ended = []
    for batch in read_batches(segment.log)[0]:
        raw = segment.log[batch.position : batch.position + batch.size]
        horizon = batch.delete_horizon_ms if batch.magic == 2 else None
        discards = transactions.discards(batch)
        is_empty_marker = discards and batch.is_control
        if batch.is_control:
            discards = discards and horizon is not None and horizon <= settings.now
        keeps_tombstones = horizon is None or settings.now < horizon
        # Kafka believes its checkpoint: there it also removes and ages tombstones of these batches.
        is_clean = batch.base_offset < settings.first_dirty_offset
        if batch.magic < 2:
            keeps_tombstones = keeps_old_tombstones or is_clean
        records = read_records(batch)
        retained = []
        for record in records:
            if discards:
                continue
            if not batch.is_control:
                if record.key is None:
                    without_key += 1
                    continue
                if record.offset < latest.get(record.key, -1):
                    continue
                if record.value is None and not keeps_tombstones:
                    continue
            retained.append(record)
        kept += len(retained)
        has_tombstone = not is_clean and any(record.value is None for record in retained)
        needs_horizon = (has_tombstone or is_empty_marker) and horizon is None
        if not retained:
            if _keeps_header(batch, settings):
                written += emptied(batch)
        elif batch.magic == 2 and len(retained) == len(records) and not needs_horizon:
            written += raw
        else:
            if needs_horizon:
                horizon = reference.int64(settings.now + settings.delete_retention_ms)
            written += rewritten(batch, retained, horizon)
    return Cleaned(written, transactions.ended, kept, without_key)


def _keeps_header(batch: Batch, settings: Settings) -> bool:
    last_offset = batch.base_offset + batch.last_offset_delta
    last = settings.producers.get(batch.producer_id) if batch.producer_id >= 0 else None
    if last is not None:
        if last.offset is None and batch.is_control and batch.producer_epoch == last.epoch:
            return True
        if last.offset == last_offset:
            return True
    return last_offset + 1 == settings.end


def emptied(batch: Batch) -> bytes:
    """The batch's header alone."""
    return kt.batch(
        [],
        base_offset=batch.base_offset,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=-1,
        max_timestamp=batch.max_timestamp,
        timestamp_type=max(batch.timestamp_type, 0),
        **_of_producer(batch),
    )


def rewritten(batch: Batch, retained: list[Record], horizon: int | None) -> bytes:
    """The batch with some of its records."""
    if horizon is not None and horizon < 0:
        horizon = None
    is_append_time = batch.timestamp_type == 1
    timestamps = [
        batch.max_timestamp if is_append_time else record.timestamp for record in retained
    ]
    base_offset, last_delta = batch.base_offset, batch.last_offset_delta
    if batch.magic < 2:
        base_offset = retained[0].offset
        last_delta = retained[-1].offset - base_offset
    return kt.batch(
        [
            kt.Record(
                record.key,
                record.value,
                [(key, value) for key, value in record.headers],
                timestamp=timestamp,
                offset_delta=record.offset - base_offset,
            )
            for record, timestamp in zip(retained, timestamps, strict=True)
        ],
        base_offset=base_offset,
        codec=CODECS[batch.codec],
        base_timestamp=timestamps[0],
        max_timestamp=batch.max_timestamp if is_append_time else max(-1, *timestamps),
        timestamp_type=max(batch.timestamp_type, 0),
        delete_horizon_ms=horizon,
        last_offset_delta=last_delta,
        **_of_producer(batch),
    )


def _of_producer(batch: Batch) -> dict[str, int]:
    return {
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "partition_leader_epoch": batch.partition_leader_epoch,
    }


def seen(log: bytes) -> list[tuple[object, ...]]:
    """Batches and their records, independent of how they are compressed."""
    batches, end = read_batches(log)
    assert end == len(log)
    assert all(batch.is_valid for batch in batches)
    names = [name for name in vars(batches[0]) if name not in _OF_BYTES] if batches else []
    return [(*(getattr(batch, name) for name in names), read_records(batch)) for batch in batches]


_OF_BYTES = ("position", "size", "crc", "payload", "is_valid")
