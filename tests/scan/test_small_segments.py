"""Segments that are read together give the rows and errors that each of them gives alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from scanning import far_away, write_partition

import kafkajit.scan.small_segments
import kafkajit.scan.table
import kafkajit.testing as kt
from kafkajit.errors import KafkaJitError
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.table import plan_tasks, read_task, schema_of
from kafkajit.walk.damage import MODES

TEN = 10  # offsets a segment; the fourth segment is the damaged one


def segment(base: int) -> bytes:
    """Batches of each format, compressed in turn, and one with headers."""
    codec = ("none", "gzip", "snappy", "lz4", "zstd")[base // TEN % 5]
    records = [kt.Record(b"k%d" % base, b"v" * n, [("h", b"x")] * n) for n in range(4)]
    plain = [kt.Record(record.key, record.value) for record in records[:3]]
    old = "none" if codec == "zstd" else codec
    return (
        kt.message_set(plain, magic=1, base_offset=base, codec=old)
        + kt.batch(records, base_offset=base + 3, codec=codec)
        + kt.batch(records[:3], base_offset=base + 7)
    )


def leading_past_the_end(log: bytes) -> bytes:
    """The last batch's length includes the next segment."""
    size = len(kt.batch([kt.Record(b"k30", b"v" * n, [("h", b"x")] * n) for n in range(3)]))
    at = len(log) - size + 8
    longer = int.from_bytes(log[at : at + 4]) + len(segment(4 * TEN))
    return log[:at] + longer.to_bytes(4) + log[at + 4 :]


WRONGS: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda log: log,
    "a torn end": lambda log: log[:-5],
    "zeros behind": lambda log: log + bytes(100),
    "a few bytes behind": lambda log: log + b"\x01" * 9,
    "garbage behind": lambda log: log + b"garbage " * 20,
    "a bit of the first batch": lambda log: log[:40] + bytes([log[40] ^ 1]) + log[41:],
    "a bit of the last batch": lambda log: log[:-1] + bytes([log[-1] ^ 1]),
    "garbage alone": lambda _: b"garbage " * 20,
    "zeros alone": lambda _: bytes(4096),
    "a size that leads into the next": leading_past_the_end,
}


def folder_of(root: Path, wrong: str) -> Path:
    for name in ("orders-0", "payments-12"):
        logs = {base: segment(base) for base in range(0, 8 * TEN, TEN)}
        if name == "orders-0":
            logs[3 * TEN] = WRONGS[wrong](logs[3 * TEN])
        write_partition(root, logs, name)
    return root


def stated(location: str, **options: str) -> tuple[list[dict[str, Any]], str]:
    """All rows up to the error, and the error."""
    parsed = ScanOptions.parse({"path": location, **options})
    rows: list[dict[str, Any]] = []
    try:
        for task in plan_tasks(parsed, []):
            for batch in read_task(task, schema_of(parsed), parsed):
                rows.extend(batch.to_pylist())
    except (KafkaJitError, OSError) as error:
        return rows, str(error)
    return rows, ""


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def told_alone(location: str, **options: str) -> tuple[list[dict[str, Any]], str]:
        with monkeypatch.context() as patch:
            patch.setattr(kafkajit.scan.table, "small_segments", lambda _: ())
            return stated(location, **options)

    return told_alone


@pytest.mark.parametrize("kind", ["records", "batches"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrong", WRONGS)
def test_rows_and_errors_are_those_of_each_segment_alone(
    wrong: str, mode: str, kind: str, alone: Callable[..., Any], tmp_path: Path
) -> None:
    root = str(folder_of(tmp_path / "logs", wrong))
    assert stated(root, mode=mode, kind=kind) == alone(root, mode=mode, kind=kind)


@pytest.mark.parametrize("kind", ["records", "batches"])
def test_segments_in_a_bucket_are_read_together_too(
    kind: str, alone: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of(tmp_path / "logs", "a torn end")
    location = far_away(monkeypatch, tmp_path / "logs")
    assert stated(location, kind=kind) == alone(location, kind=kind)


def test_a_segment_that_has_gone_is_named(tmp_path: Path) -> None:
    parsed = ScanOptions(paths=(str(folder_of(tmp_path / "logs", "nothing")),))
    (task,) = plan_tasks(parsed, [])
    (tmp_path / "logs" / "orders-0" / f"{30:020}.log").unlink()
    read: list[pa.RecordBatch] = []
    with pytest.raises(FileNotFoundError, match=f"{30:020}.log"):
        read.extend(read_task(task, schema_of(parsed), parsed))


def test_many_segments_are_few_record_batches(tmp_path: Path) -> None:
    parsed = ScanOptions(paths=(str(folder_of(tmp_path / "logs", "nothing")),))
    (task,) = plan_tasks(parsed, [])
    batches = list(read_task(task, schema_of(parsed), parsed))
    assert sum(batch.num_rows for batch in batches) == 2 * 8 * TEN
    # Messages of v1 and batches of v2 take turns: a chunk is of one kind.
    assert len(batches) <= 2 * 2 * 8


def test_no_more_are_read_at_once_than_make_a_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = ScanOptions(paths=(str(folder_of(tmp_path / "logs", "nothing")),))
    (task,) = plan_tasks(parsed, [])
    small = kafkajit.scan.small_segments.small_segments
    assert len(small(task)) == len(task) == 16
    monkeypatch.setattr(kafkajit.scan.small_segments, "CHUNK_BYTES", 3 * task[0].size)
    assert 1 <= len(small(task)) <= 3
    monkeypatch.setattr(kafkajit.scan.small_segments, "SMALL", 1)
    assert len(small(task)) == 0
