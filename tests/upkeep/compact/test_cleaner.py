from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import reference
from compaction_twin import Aborted, LastRecord, Segment, Settings, compacted, seen
from corpus import NO_JIT

import kafkajit.testing as kt
from kafkajit.errors import (
    CorruptRecordError,
    DecompressionLimitError,
    InvalidOffsetError,
)
from kafkajit.log.log import Log
from kafkajit.upkeep.compact.cleanable import Cleanable
from kafkajit.upkeep.compact.cleaner import Cleaner
from kafkajit.upkeep.compact.cleaner import LastRecord as Last

NOW = 1_700_000_000_000
ROOMY, TIGHT = 1 << 20, 400  # bytes for keys: room for all, or for a dozen


def make_log(folder: Path, segments: Sequence[Segment], end: int) -> Log:
    """A partition's folder with these segments, and the active one behind them."""
    folder.mkdir(parents=True)
    for segment in [*segments, Segment(end, b"")]:
        stem = folder / f"{segment.base_offset:020d}"
        stem.with_suffix(".log").write_bytes(segment.log)
        if segment.aborted:
            index = kt.transaction_index([tuple(entry) for entry in segment.aborted])
            stem.with_suffix(".txnindex").write_bytes(index)
        moment = segment.modified_ms * 1_000_000
        os.utime(stem.with_suffix(".log"), ns=(moment, moment))
    return Log(folder)


def cleaner_of(log: Log, settings: Settings, **options: Any) -> Cleaner:
    """A cleaner of all segments but the active one."""
    producers = settings.producers.items()
    return Cleaner(
        Cleanable(log.segments[:-1], settings.first_dirty_offset, settings.end, ""),
        log.segments,
        settings.start_offset,
        {producer: Last(*last) for producer, last in producers},
        now=settings.now,
        delete_retention_ms=settings.delete_retention_ms,
        **{"dedupe_buffer_size": ROOMY, "max_decompressed_bytes": 1 << 20} | options,
    )


def clean(
    folder: Path, segments: Sequence[Segment], settings: Settings, buffer_size: int = ROOMY
) -> list[dict[str, Any]]:
    """What the cleaner leaves of each segment."""
    log = make_log(folder / "orders-0", segments, settings.end)
    cleaner = cleaner_of(log, settings, dedupe_buffer_size=buffer_size)
    cleaner.index()
    found = []
    for segment in log.segments[:-1]:
        content, records = b"", 0
        for run, filtered in cleaner.clean(segment):
            assert len(run.batches) == filtered.actions.size
            assert filtered.batches.size_in_bytes.sum() == filtered.content.size
            content += filtered.content.tobytes()
            records += filtered.records
        found.append(
            {
                "log": content,
                "aborted": [Aborted(*entry[1:]) for entry in cleaner.take_aborted().tolist()],
                "records": records,
                "without_key": cleaner.records_without_key(segment),
            }
        )
    return found


class Maker:
    """Random logs: few keys, a few producers, everything that compaction looks at."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.offset = 0
        self.codecs = self.rng.choice([["none"], ["none", "lz4", "gzip", "snappy", "zstd"]])
        self.keys = self.rng.choice([2, 6, 30])
        self.old = self.rng.choice([0, 0, 0.4])
        self.open: dict[int, int] = {}  # producers in a transaction, and where it began
        self.sequences: dict[int, int] = {}
        self.aborted: list[Aborted] = []
        self.last: dict[int, LastRecord] = {}

    def log(self) -> tuple[list[Segment], Settings]:
        segments = []
        for _ in range(self.rng.randrange(1, 5)):
            base, self.aborted = self.offset, []
            log = b"".join(self.batch() for _ in range(self.rng.randrange(6)))
            modified = NOW + self.rng.randrange(-1000, 1000)
            segments.append(Segment(base, log, self.aborted, modified))
            self.offset = max(self.offset, base + 1)
        base, self.aborted = self.offset, []
        log = b"".join(self.marker(producer) for producer in list(self.open))
        segments.append(Segment(base, log, self.aborted, NOW))
        self.offset = max(self.offset, base + 1)  # the last batch often ends here
        bases = [segment.base_offset for segment in segments]
        producers = {pid: self.last[pid] for pid in self.last if self.rng.random() < 0.7}
        start = self.rng.choice([0, 0, self.rng.randrange(self.offset)])
        dirty = [base for base in [*bases, start] if base >= start]
        settings = Settings(
            first_dirty_offset=self.rng.choice(dirty),
            end=self.offset,
            start_offset=start,
            now=NOW,
            delete_retention_ms=self.rng.choice([0, 500, 2**63 - 1]),
            producers=producers,
        )
        return segments, settings

    def batch(self) -> bytes:
        self.offset += self.rng.choice([0, 0, 0, 5])
        if self.rng.random() < self.old:
            return self.messages()
        producer = self.rng.choice([-1, -1, 1, 2, 3])
        if producer in self.open and self.rng.random() < 0.4:
            return self.marker(producer)
        if self.rng.random() < 0.1:
            return self.marker(self.rng.choice([1, 2]))
        return self.data(producer)

    def records(self) -> list[kt.Record]:
        rng, count = self.rng, self.rng.randrange(1, 6)
        return [
            kt.Record(
                key=None if rng.random() < 0.1 else b"key-%d" % rng.randrange(self.keys),
                value=None if rng.random() < 0.2 else rng.randbytes(rng.randrange(40)),
                headers=[("h", b"x"), ("n", None)][: rng.choice([0, 0, 1, 2])],
                timestamp=NOW + rng.randrange(-(10**6), 10**6),
                offset_delta=place,
            )
            for place in range(count)
        ]

    def data(self, producer: int) -> bytes:
        records = self.records()
        last_delta = len(records) - 1 + self.rng.choice([0, 0, 2])
        fields: dict[str, Any] = {}
        if producer > 0:
            is_transactional = producer < 3
            fields = {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": self.sequences.get(producer, 0),
                "is_transactional": is_transactional,
            }
            self.sequences[producer] = self.sequences.get(producer, 0) + last_delta + 1
            if is_transactional:
                self.open.setdefault(producer, self.offset)
            self.last[producer] = LastRecord(self.offset + last_delta, 0)
        if self.rng.random() < 0.3:
            fields["delete_horizon_ms"] = NOW + self.rng.choice([-1, 0, 1])
        if self.rng.random() < 0.2:
            fields |= {"timestamp_type": kt.LOG_APPEND_TIME, "max_timestamp": NOW}
        if self.rng.random() < 0.1:
            records = []
        made = kt.batch(
            records,
            base_offset=self.offset,
            codec=self.rng.choice(self.codecs) if records else "none",
            last_offset_delta=last_delta,
            base_timestamp=self.rng.choice([NOW, -1]),
            partition_leader_epoch=self.rng.randrange(3),
            **fields,
        )
        self.offset += last_delta + 1
        return made

    def marker(self, producer: int) -> bytes:
        is_abort = self.rng.random() < 0.5
        first = self.open.pop(producer, None)
        if first is not None and is_abort:
            self.aborted.append(Aborted(producer, first, self.offset, self.offset + 1))
        if producer not in self.last or self.rng.random() < 0.2:
            self.last[producer] = LastRecord(None, 0)
        fields = {}
        if self.rng.random() < 0.3:
            fields["delete_horizon_ms"] = NOW + self.rng.choice([-1, 0, 1])
        made = kt.control_batch(
            self.rng.choice([2, 3, 99]) if self.rng.random() < 0.05 else int(not is_abort),
            producer_id=producer,
            base_offset=self.offset,
            **fields,
        )
        self.offset += 1
        return made

    def messages(self) -> bytes:
        codec = self.rng.choice([codec for codec in self.codecs if codec != "zstd"])
        records = self.records()[: None if codec != "none" else 1]
        made = kt.message_set(
            [kt.Record(record.key, record.value, timestamp=record.timestamp) for record in records],
            base_offset=self.offset,
            magic=self.rng.choice([0, 1]),
            codec=codec,
            timestamp=NOW,
            timestamp_type=self.rng.choice([0, 0, 1]) if codec != "none" else 0,
        )
        self.offset += len(records)
        return made


SEEDS = range(12 if NO_JIT else 120)


@pytest.mark.parametrize("buffer_size", [ROOMY, TIGHT])
def test_what_is_left_is_what_the_twin_leaves(tmp_path: Path, buffer_size: int) -> None:
    changed = 0
    for seed in SEEDS:
        segments, settings = Maker(seed).log()
        expected = compacted(segments, settings)
        found = clean(tmp_path / str(seed), segments, settings, buffer_size)
        assert len(found) == len(expected), seed
        for before, after, right in zip(segments, found, expected, strict=True):
            assert after["aborted"] == right.aborted, seed
            assert (after["records"], after["without_key"]) == (right.records, right.without_key)
            if is_plain(right.log):
                assert after["log"] == right.log, seed
            else:
                assert seen(after["log"]) == seen(right.log), seed
            changed += after["log"] != before.log
    assert changed > len(SEEDS)


def is_plain(log: bytes) -> bool:
    return not any(batch.codec for batch in reference.read_batches(log)[0])


def plain(base_offset: int, *keys: bytes, **fields: Any) -> bytes:
    return kt.batch([kt.Record(key, b"v") for key in keys], base_offset=base_offset, **fields)


def test_only_batches_that_lose_some_of_their_records_are_read_again(tmp_path: Path) -> None:
    batches = [plain(0, b"a", b"b"), plain(2, b"a", b"c"), plain(4, b"b", b"d"), plain(6, b"a")]
    segment = Segment(0, b"".join(batches))
    log = make_log(tmp_path / "orders-0", [segment], 7)
    cleaner = cleaner_of(log, Settings(first_dirty_offset=0, end=7, now=NOW))
    cleaner.index()
    ((run, filtered),) = cleaner.clean(log.segments[0])
    # The first loses everything, the second one record, the others nothing.
    assert run.is_read.tolist() == [False, True, False, False]
    expected = kt.batch([kt.Record(b"c", b"v", offset_delta=1)], base_offset=2)
    assert filtered.content.tobytes() == expected + batches[2] + batches[3]


SETTINGS = Settings(first_dirty_offset=0, end=10, now=NOW)


def test_a_batch_that_is_damaged_is_an_error_and_no_batch_is_made_of_it(tmp_path: Path) -> None:
    broken = bytearray(plain(0, b"a") + plain(1, b"a"))
    broken[-1] ^= 1
    with pytest.raises(CorruptRecordError, match=r"stored crc.* at position 70"):
        clean(tmp_path, [Segment(0, bytes(broken))], SETTINGS)


@pytest.mark.parametrize("tail", [b"\0" * 100, plain(1, b"b")[:-1]], ids=["zeros", "half a batch"])
def test_what_is_behind_the_last_batch_of_a_segment_is_an_error(
    tmp_path: Path, tail: bytes
) -> None:
    with pytest.raises(
        CorruptRecordError, match=f"this segment, which ends in {len(tail)} bytes that are"
    ):
        clean(tmp_path, [Segment(0, plain(0, b"a") + tail)], SETTINGS)


@pytest.mark.parametrize(
    ("logs", "position"),
    [
        ([plain(0, b"a"), plain(20, b"a"), plain(10, b"a")], 0),  # names were exchanged
        ([plain(0, b"a") + plain(0, b"b"), b"", b""], 70),
        ([plain(3, b"a") + plain(2, b"b"), b"", b""], 70),
        ([plain(0, b"a") + plain(10, b"a"), b"", b""], 70),
        ([plain(0, b"a"), plain(9, b"a"), b""], 0),
    ],
)
def test_offsets_that_are_not_in_order_are_an_error(
    logs: list[bytes], position: int, tmp_path: Path
) -> None:
    segments = [Segment(base, log) for base, log in zip((0, 10, 20), logs, strict=True)]
    with pytest.raises(InvalidOffsetError, match=f"belong here at position {position} in "):
        clean(tmp_path, segments, replace(SETTINGS, end=30))


def test_a_batch_that_grows_too_large_is_an_error(tmp_path: Path) -> None:
    log = kt.batch([kt.Record(b"a", bytes(2 << 20))], codec="gzip")
    with pytest.raises(DecompressionLimitError):
        clean(tmp_path, [Segment(0, log)], SETTINGS)


def test_progress_counts_what_is_read(tmp_path: Path) -> None:
    log = make_log(tmp_path / "orders-0", [Segment(0, plain(0, b"a") + plain(1, b"a"))], 2)
    stated: list[int] = []
    cleaner = cleaner_of(
        log, Settings(first_dirty_offset=0, end=2, now=NOW), progress=stated.append
    )
    cleaner.index()
    list(cleaner.clean(log.segments[0]))
    assert sum(stated) == 2 * log.segments[0].log.size
