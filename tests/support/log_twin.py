"""The slow twin of a broker's log: its files, built with struct, lists and loops, batch by batch.

Answers to Kafka 4.1.1's LogSegment, ProducerStateManager, LeaderEpochFileCache and UnifiedLog.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import reference

import kafkajit.testing as kt
from kafkajit.log.config import LogConfig

MAX_INT32 = 2**31 - 1
Entry = tuple[int, ...]


class Refused(Exception):
    """A broker refuses this input."""


class Indexes:
    """The files of one segment."""

    def __init__(self, base: int, config: LogConfig) -> None:
        self.base, self.interval = base, config.index_interval_bytes
        self.most_offsets = config.segment_index_bytes // 8
        self.most_times = config.segment_index_bytes // 12
        self.offsets: list[tuple[int, int]] = []
        self.times: list[tuple[int, int]] = []
        self.size = self.since = 0
        self.latest = (-1, base)

    @property
    def is_full(self) -> bool:
        full = len(self.offsets) >= self.most_offsets
        return full or len(self.times) >= self.most_times - 1

    def fits(self, offset: int) -> bool:
        return self.base <= offset <= self.base + MAX_INT32

    def add(self, batch: reference.Batch) -> None:
        offset = last_offset(batch)
        if not self.fits(offset):
            raise Refused
        latest = self.latest
        if batch.max_timestamp > latest[0]:
            latest = (batch.max_timestamp, offset)
        if self.since > self.interval and not self.is_full:
            if self.offsets and offset <= self.offsets[-1][0]:
                raise Refused
            if self.times and latest[1] < self.times[-1][1]:
                raise Refused
            self.offsets.append((offset, self.size))
            if latest[0] > (self.times[-1][0] if self.times else -1):
                self.times.append(latest)
            self.since = 0
        self.latest = latest
        self.size += batch.size
        self.since += batch.size

    def close(self) -> None:
        if self.latest[0] > (self.times[-1][0] if self.times else -1):
            self.times.append(self.latest)

    @property
    def offset_index(self) -> bytes:
        return kt.offset_index((offset - self.base, position) for offset, position in self.offsets)

    @property
    def time_index(self) -> bytes:
        return kt.time_index((timestamp, offset - self.base) for timestamp, offset in self.times)


def last_offset(batch: reference.Batch) -> int:
    return batch.base_offset + batch.last_offset_delta


@dataclass
class Producer:
    epoch: int = -1
    batches: list[tuple[int, int, int]] = field(default_factory=list)
    timestamp: int = -1
    coordinator_epoch: int = -1
    open_since: int | None = None

    def take_epoch(self, epoch: int) -> None:
        if self.epoch != epoch:
            self.epoch, self.batches = epoch, []


class Producers:
    """The files of a whole log."""

    def __init__(self) -> None:
        self.states: dict[int, Producer] = {}

    def update(self, batch: reference.Batch) -> list[Entry]:
        if batch.producer_id < 0:
            return []
        state = self.states.get(batch.producer_id) or Producer()
        aborted: list[Entry] = []
        if batch.is_control:
            records = reference.read_records(batch)
            if records:
                assert records[0].key is not None
                assert records[0].value is not None
                (type_id,) = struct.unpack_from(">h", records[0].key, 2)
                if type_id not in (0, 1):
                    raise Refused
                if state.open_since is not None and type_id == 0:
                    others = [
                        other.open_since
                        for id_, other in self.states.items()
                        if id_ != batch.producer_id and other.open_since is not None
                    ]
                    stable = min(others, default=batch.base_offset + 1)
                    aborted = [(batch.producer_id, state.open_since, batch.base_offset, stable)]
                state.take_epoch(batch.producer_epoch)
                (state.coordinator_epoch,) = struct.unpack_from(">i", records[0].value, 2)
                state.timestamp, state.open_since = records[0].timestamp, None
        else:
            if state.open_since is not None and not batch.is_transactional:
                raise Refused
            state.take_epoch(batch.producer_epoch)
            state.batches.append((batch.last_sequence, last_offset(batch), batch.last_offset_delta))
            state.timestamp = batch.max_timestamp
            if state.open_since is None and batch.is_transactional:
                state.open_since = batch.base_offset
        self.states[batch.producer_id] = state
        return aborted

    @property
    def entries(self) -> list[Entry]:
        rows = []
        for id_, state in self.states.items():
            sequence, offset, delta = state.batches[-1] if state.batches else (-1, -1, 0)
            since = -1 if state.open_since is None else state.open_since
            last = (sequence, offset, delta, state.timestamp)
            rows.append((id_, state.epoch, *last, state.coordinator_epoch, since))
        return rows

    @property
    def first_open_offset(self) -> int | None:
        starts = [state.open_since for state in self.states.values()]
        return min((start for start in starts if start is not None), default=None)

    def snapshot(self) -> bytes:
        by_id = {entry[0]: kt.Producer(*entry) for entry in self.entries}
        return kt.producer_snapshot(by_id[id_] for id_ in HashMap(list(by_id)))


class HashMap:
    """A Java HashMap of longs: lists in buckets, doubled when three in four are used."""

    def __init__(self, keys: list[int]) -> None:
        self.table: list[list[int]] = [[] for _ in range(16)]
        for size, key in enumerate(keys, start=1):
            self._put(key)
            if size > 0.75 * len(self.table):
                older = [key for bucket in self.table for key in bucket]
                self.table = [[] for _ in range(2 * len(self.table))]
                for older_key in older:
                    self._put(older_key)

    def _put(self, key: int) -> None:
        word = key % 2**64
        code = (word ^ word >> 32) % 2**32
        self.table[(code ^ code >> 16) % len(self.table)].append(key)

    def __iter__(self) -> Iterator[int]:
        return (key for bucket in self.table for key in bucket)


class Epochs:
    """LeaderEpochFileCache, as a map."""

    def __init__(self) -> None:
        self.starts: dict[int, int] = {}
        self.is_written = False

    def assign(self, epoch: int, start: int) -> None:
        if self.starts:
            latest = max(self.starts)
            if epoch == latest and start >= self.starts[latest]:
                return
        for known in sorted(self.starts, reverse=True):
            if known < epoch and self.starts[known] < start:
                break
            del self.starts[known]
        self.starts[epoch] = start
        self.is_written = True

    def forget(self) -> None:
        self.is_written |= bool(self.starts)
        self.starts = {}

    def truncate_from_end(self, end: int) -> None:
        self.starts = {epoch: start for epoch, start in self.starts.items() if start < end}

    def truncate_from_start(self, offset: int) -> None:
        before = [epoch for epoch, start in self.starts.items() if start <= offset]
        self.starts = {epoch: start for epoch, start in self.starts.items() if start > offset}
        if before:
            self.starts[max(before)] = offset

    @property
    def entries(self) -> list[tuple[int, int]]:
        return sorted(self.starts.items())

    def text(self) -> bytes:
        lines = ["0", str(len(self.starts)), *(f"{epoch} {start}" for epoch, start in self.entries)]
        return "".join(f"{line}\n" for line in lines).encode() if self.is_written else b""


class Segment:
    """The segment that is being written."""

    def __init__(self, base: int, config: LogConfig) -> None:
        self.base, self.config, self.log = base, config, b""
        self.indexes = Indexes(base, config)
        self.first_timestamp = -1
        self.aborted: list[Entry] = []

    def should_roll(self, batch: reference.Batch) -> bool:
        waited = 0
        if self.log and self.first_timestamp >= 0:
            waited = max(batch.max_timestamp, -1) - self.first_timestamp
        return (
            len(self.log) > self.config.segment_bytes - batch.size
            or waited > self.config.max_segment_ms
            or self.indexes.is_full
            or not self.indexes.fits(last_offset(batch))
        )

    def append(self, batch: reference.Batch, content: bytes, aborted: list[Entry]) -> None:
        if not self.log:
            self.first_timestamp = batch.max_timestamp
        self.indexes.add(batch)
        self.log += content
        self.aborted += aborted

    def files(self) -> dict[str, bytes]:
        self.indexes.close()
        files = {
            ".log": self.log,
            ".index": self.indexes.offset_index,
            ".timeindex": self.indexes.time_index,
        }
        if self.aborted:
            files[".txnindex"] = kt.transaction_index(self.aborted)  # type: ignore[arg-type]
        return {f"{self.base:020}{suffix}": content for suffix, content in files.items()}


class Log:
    """A partition's folder from its first append on."""

    def __init__(self, config: LogConfig, start: int = 0) -> None:
        self.config, self.end = config, start
        self.producers, self.epochs = Producers(), Epochs()
        self.snapshots: dict[int, bytes] = {}
        self.last_snapshot = 0
        self.take_snapshot(start)
        self.segments = [Segment(start, config)]

    def take_snapshot(self, offset: int) -> None:
        if offset > self.last_snapshot:
            self.snapshots[offset] = self.producers.snapshot()
            self.last_snapshot = offset

    def append(self, log: bytes) -> None:
        for batch in reference.read_batches(log)[0]:
            content = log[batch.position : batch.position + batch.size]
            first = last_offset(batch) if batch.magic < 2 else batch.base_offset
            if first < self.end:
                raise Refused
            if batch.magic < 2:
                self.epochs.forget()
            else:
                self.epochs.assign(batch.partition_leader_epoch, batch.base_offset)
            if self.segments[-1].should_roll(batch):
                earliest = last_offset(batch) - MAX_INT32 if batch.magic < 2 else batch.base_offset
                self.roll(max(earliest, self.end))
            aborted = self.producers.update(batch)
            self.segments[-1].append(batch, content, aborted)
            self.end = last_offset(batch) + 1

    def roll(self, base: int | None = None) -> None:
        base = self.end if base is None else base
        if self.segments[-1].log or base != self.segments[-1].base:
            self.segments.append(Segment(base, self.config))
        self.take_snapshot(base)

    def files(self) -> dict[str, bytes]:
        """The files as a stopped broker leaves them."""
        self.take_snapshot(self.end)
        files = {"leader-epoch-checkpoint": self.epochs.text()}
        files |= {f"{offset:020}.snapshot": content for offset, content in self.snapshots.items()}
        for segment in self.segments:
            files |= segment.files()
        return files
