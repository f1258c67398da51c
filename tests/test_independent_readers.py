"""The same columns as aiokafka, whose record parser shares no code and no author with ours."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import reference
from aiokafka.record.memory_records import MemoryRecords
from corpus import DAMAGED_LOGS, OLD_LOGS, SOUND_LOGS, log_id, rows_of, split

import kafkajit

COLUMNS = ["key", "value", "headers", "offset", "timestamp", "timestampType"]

# Damage that both read as if nothing were wrong; aiokafka refuses more, with less detail.
# Not here: record-attributes (aiokafka reads that byte as a varint, and so one byte too many where
# it is 0x80 or more) and header-key-not-utf8 (aiokafka raises UnicodeDecodeError, Java replaces).
READABLE_DAMAGE = (
    "append-time-negative",
    "attributes-high",
    "control-on-data",
    "control-type-unknown",
    "control-version-1",
    "key-length-negative-2",
    "last-offset-delta-larger",
    "marker-epoch",
    "marker-version-5",
    "offsets-backwards",
    "offsets-twice",
    "record-length-overlong",
    "sequence-wraps",
    "tail-1",
    "tail-all-but-1",
    "timestamp-negative",
)


def aiokafkas_rows(log: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    records = MemoryRecords(log)
    while records.has_next():
        rows += [
            {
                "key": record.key,
                "value": record.value,
                "headers": [{"key": k, "value": v} for k, v in record.headers] or None,
                "offset": record.offset,
                # None in v0, which has no timestamps.
                "timestamp": -1 if record.timestamp is None else record.timestamp,
                "timestampType": -1 if record.timestamp_type is None else record.timestamp_type,
            }
            for record in records.next_batch()
        ]
    return rows


def our_rows(log: bytes) -> list[dict[str, Any]]:
    return rows_of(kafkajit.read_records(log, columns=COLUMNS))


def pieces(log: bytes) -> list[bytes]:
    """The log by format and without zeros behind it: aiokafka takes all for what the first is."""
    return [b"".join(run) for _, run in groupby(split(log), key=lambda whole: whole[16])]


def has_lz4_in_v0(path: Path) -> bool:
    """Whether aiokafka has to refuse it: it knows no way around that header checksum."""
    batches, _ = reference.read_batches(path.read_bytes())
    return any(batch.magic == 0 and batch.codec == 3 for batch in batches)


UNREADABLE = [path for path in OLD_LOGS if has_lz4_in_v0(path)]


@pytest.mark.parametrize(
    "path", [path for path in SOUND_LOGS if path not in UNREADABLE], ids=log_id
)
def test_a_brokers_log_is_read_as_aiokafka_reads_it(path: Path) -> None:
    log = path.read_bytes()
    assert our_rows(log) == [row for piece in pieces(log) for row in aiokafkas_rows(piece)]


def test_few_logs_are_not_for_aiokafka() -> None:
    assert 0 < len(UNREADABLE) < 8


@pytest.mark.parametrize(
    "path", [path for path in DAMAGED_LOGS if path.parent.name in READABLE_DAMAGE], ids=log_id
)
def test_odd_batches_are_read_as_aiokafka_reads_them(path: Path) -> None:
    log = path.read_bytes()
    assert our_rows(log) == aiokafkas_rows(log)


def test_the_odd_batches_are_there() -> None:
    assert set(READABLE_DAMAGE) <= {path.parent.name for path in DAMAGED_LOGS}
