"""What encode_batches writes is read by Kafka's own classes, and other clients', as it was given.

tests/broker/make_corpus.py keeps the logs of tests/support/written_logs.py in tests/data/written,
with what Kafka reads in them. tests/cli/test_dump_log.py compares dump-log with what its tool
prints.
"""

from __future__ import annotations

import warnings
import zlib
from typing import Any

import pyarrow as pa
import pytest
import reference
from aiokafka.record.memory_records import MemoryRecords as AiokafkasRecords
from corpus import DATA, NO_JIT, split
from written_logs import CODECS, records, written_logs

import kafkajit
import kafkajit.testing as kt

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of what kafka-python reads its tables by
    from kafka.record.memory_records import MemoryRecords as KafkaPythonsRecords

WRITTEN = DATA / "written"
LOG = "00000000000000000000.log"
MOST_BYTES = 70  # of what ReadLogs.java prints in full
LOGS = {name: log for name, log in written_logs().items() if not (NO_JIT and "blocks" in name)}

by_log = pytest.mark.parametrize("name", LOGS)


def _hexadecimal(value: bytes | None) -> str:
    if value is None:
        return "-"
    if len(value) > MOST_BYTES:
        return f"{len(value)}:{zlib.crc32(value)}"
    return f"x{value.hex()}"


def lines_of(log: bytes) -> list[str]:
    """The lines of ReadLogs.java for a log, made with the reference."""
    types = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
    lines = []
    for batch in reference.read_batches(log)[0]:
        records = reference.read_records(batch)
        is_old = batch.magic < 2
        # For an old batch Kafka takes the first offset within.
        base = records[0].offset if is_old else batch.base_offset
        last = batch.base_offset + batch.last_offset_delta
        words = [
            *("batch", batch.magic, kt.CODECS[batch.codec], types[batch.timestamp_type]),
            *(base, last, batch.max_timestamp, batch.producer_id, batch.producer_epoch),
            *(batch.base_sequence, batch.last_sequence, batch.partition_leader_epoch),
            *(str(batch.is_transactional).lower(), str(batch.is_control).lower()),
            "-" if batch.delete_horizon_ms is None else batch.delete_horizon_ms,
            "-" if is_old else batch.records_count,
        ]
        lines.append(" ".join(map(str, words)))
        for record in records:
            words = ["record", record.offset, record.timestamp, record.sequence]
            words += [_hexadecimal(record.key), _hexadecimal(record.value)]
            for key, value in record.headers:
                words.append(f"{key.hex()}={'-' if value is None else value.hex()}")
            lines.append(" ".join(map(str, words)))
    return lines


def kafkas_lines() -> dict[str, list[str]]:
    """The output of ReadLogs.java for each log."""
    found: dict[str, list[str]] = {}
    for line in (WRITTEN / "read.txt").read_text().splitlines():
        if line.startswith("log "):
            lines = found[line.removeprefix("log ")] = []
        else:
            lines.append(line)
    return found


KAFKAS = kafkas_lines()


def test_every_log_is_there_with_what_kafka_reads() -> None:
    assert {path.name for path in WRITTEN.iterdir() if path.is_dir()} == KAFKAS.keys()
    if not NO_JIT:
        assert KAFKAS.keys() == LOGS.keys()
    for magic, codecs in CODECS.items():
        assert {f"v{magic}-{codec}" for codec in codecs} <= KAFKAS.keys()
    assert not list(WRITTEN.glob("*/*.exit"))
    for err in WRITTEN.glob("*/*.err"):  # these come from compaction and gaps
        assert err.parent.name in ("compacted", "extremes")
        assert err.read_text().startswith("Non-consecutive offsets in ")


@pytest.mark.parametrize("name", KAFKAS)
def test_kafka_reads_the_written_records(name: str) -> None:
    log = (WRITTEN / name / LOG).read_bytes()
    assert lines_of(log) == KAFKAS[name]


@by_log
def test_what_is_written_today_is_read_the_same(name: str) -> None:
    assert lines_of(LOGS[name]) == KAFKAS[name]


@by_log
def test_uncompressed_logs_have_the_same_bytes_today(name: str) -> None:
    kept = (WRITTEN / name / LOG).read_bytes()
    assert [whole[:8] for whole in split(LOGS[name])] == [whole[:8] for whole in split(kept)]
    plain = [whole for whole in split(kept) if not reference.read_batches(whole)[0][0].codec]
    assert [
        whole for whole in split(LOGS[name]) if not reference.read_batches(whole)[0][0].codec
    ] == plain


# Python's clients, whose parsers share no code and no author with ours


CLIENTS = {"aiokafka": AiokafkasRecords, "kafka-python": KafkaPythonsRecords}
# aiokafka knows no way around the checksum that v0's lz4 frames have to have; kafka-python needs
# libraries for that and for snappy that are not here (with them it reads these as well).
UNREADABLE = {("aiokafka", "v0-lz4"), ("kafka-python", "v0-lz4")}
UNREADABLE |= {("kafka-python", name) for name in LOGS if name.endswith("snappy")}


def clients_rows(client: str, log: bytes) -> list[tuple[Any, ...]]:
    rows = []
    found = CLIENTS[client](log)
    while found.has_next():
        batch = found.next_batch()
        assert batch.validate_crc()
        rows += [
            (r.offset, r.timestamp, r.timestamp_type, r.key, r.value, list(r.headers))
            for r in batch
        ]
    return rows


def given(name: str) -> list[tuple[Any, ...]]:
    """The records that the log was written from, by the reference."""
    found = []
    for row in reference.rows(LOGS[name]):
        headers = [(header["key"], header["value"]) for header in row["headers"] or ()]
        is_v0 = row["magic"] == 0
        stamp = None if is_v0 else row["timestamp"]
        kind = None if is_v0 else row["timestampType"]
        found.append((row["offset"], stamp, kind, row["key"], row["value"], headers))
    return found


@pytest.mark.parametrize(
    ("client", "name"),
    [pair for client in CLIENTS for name in LOGS if (pair := (client, name)) not in UNREADABLE],
)
def test_other_clients_read_the_written_records(client: str, name: str) -> None:
    # They take a log's format from its first batch.
    pieces = split(LOGS[name]) if name == "mixed" else [LOGS[name]]
    assert [row for piece in pieces for row in clients_rows(client, piece)] == given(name)


def test_records_are_those_that_were_given() -> None:
    table = records()
    read = kafkajit.read_records(LOGS["v2-zstd"], columns=["key", "value", "timestamp"])
    assert read["key"].to_pylist() == table["key"].to_pylist()
    assert read["value"].to_pylist() == table["value"].to_pylist()
    assert read["timestamp"].cast(pa.int64()).to_pylist() == table["timestamp"].to_pylist()
