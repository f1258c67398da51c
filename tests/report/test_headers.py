"""A topic's figures are those that its batches have, one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from corpus import DAMAGED_LOGS, by_log
from scanning import by_folder, options_of, write_partition

import kafkajit
import kafkajit.testing as kt
from kafkajit.report import headers
from kafkajit.report.headers import TopicFigures
from kafkajit.scan.partitions import find_partitions

HOUR = 3_600_000
NOW = 2**62


def figures_of(location: Path, now: int = NOW) -> tuple[TopicFigures, list[Any]]:
    topic = TopicFigures("orders", now)
    gaps = [
        gap for partition in find_partitions(options_of(location)) for gap in topic.read(partition)
    ]
    return topic, gaps


def document_of(location: Path, now: int = NOW) -> dict[str, Any]:
    topic, gaps = figures_of(location, now)
    assert not gaps
    return topic.document()


def log(first: int, *timestamps: int, **fields: Any) -> bytes:
    fields = {"base_timestamp": timestamps[0]} | fields
    records = [kt.Record(key=b"k", value=b"v", timestamp=each) for each in timestamps]
    return kt.batch(records, base_offset=first, **fields)


@by_folder
def test_figures_are_those_of_the_batches_and_records(folder: Path) -> None:
    found = document_of(folder)
    batches: list[dict[str, Any]] = []
    records = 0
    for path in sorted(folder.glob("*.log")):
        batches += kafkajit.read_record_batches(path).to_pylist()
        rows = kafkajit.read_records(path, columns=["offset", "controlType"])
        records += rows["controlType"].null_count
    assert found["batches"] == len(batches)
    assert found["records"] == records
    assert found["bytes"] == sum(path.stat().st_size for path in folder.glob("*.log"))
    assert found["formats"] == Counter(f"v{batch['magic']}" for batch in batches)
    codecs = found["codecs"]
    assert {name: codec["batches"] for name, codec in codecs.items()} == Counter(
        batch["compressionType"] for batch in batches
    )
    sizes: Counter[str] = Counter()
    for batch in batches:
        sizes[batch["compressionType"]] += batch["sizeInBytes"]
    assert {name: codec["bytes"] for name, codec in codecs.items()} == sizes
    assert sum(codec["records"] for codec in codecs.values()) == records
    assert found["controlBatches"] == sum(bool(batch["isControlBatch"]) for batch in batches)
    ids = {batch["producerId"] for batch in batches}
    assert found["producers"] == len(ids - {-1, None})
    if batches:
        (partition,) = found["eachPartition"]
        assert partition["endOffset"] == max(batch["lastOffset"] for batch in batches) + 1


@by_log
def test_any_log_has_figures_and_every_byte_is_a_batch_s_or_told(path: Path) -> None:
    topic, gaps = figures_of(path)
    found = topic.document()
    told = sum(gap.length for gap in gaps)
    held = sum(codec["bytes"] for codec in found["codecs"].values())
    assert held + told <= found["bytes"] == path.stat().st_size
    if path not in DAMAGED_LOGS and not gaps:
        assert held == kafkajit.valid_bytes(path)


def test_records_of_compressed_messages_are_counted(tmp_path: Path) -> None:
    records = [kt.Record(value=b"%d" % number) for number in range(7)]
    folder = write_partition(tmp_path, {0: kt.message_set(records, codec="gzip", magic=1)})
    found = document_of(folder)
    assert (found["batches"], found["records"]) == (1, 7)


def test_bytes_and_records_are_shown_by_hour(tmp_path: Path) -> None:
    content = log(0, 5 * HOUR, 5 * HOUR + 1) + log(2, 7 * HOUR)
    found = document_of(write_partition(tmp_path, {0: content}))
    sizes = [len(log(0, 0, 1)), 0, len(log(0, 0))]
    assert found["life"] == {
        "step": HOUR,
        "from": 5 * HOUR,
        "bytes": sizes,
        "records": [2, 0, 1],
        "before": None,
        "after": None,
    }


def test_a_few_wrong_timestamps_do_not_stretch_a_life(tmp_path: Path) -> None:
    now = 480_000 * HOUR
    content = log(0, 1) + log(1, 2**52)
    content += b"".join(log(2 + number, now + number * HOUR) for number in range(100))
    life = document_of(write_partition(tmp_path, {0: content}))["life"]
    assert life["step"] == HOUR
    assert life["from"] == now
    assert life["records"] == [1] * 100
    assert life["before"] == life["after"] == {"bytes": len(log(0, 0)), "records": 1}


@pytest.mark.parametrize(("days", "step"), [(20, HOUR), (700, 24 * HOUR), (7000, 30 * 24 * HOUR)])
def test_a_long_life_is_shown_in_longer_steps(tmp_path: Path, days: int, step: int) -> None:
    content = b"".join(log(day, day * 24 * HOUR) for day in range(0, days, 10))
    life = document_of(write_partition(tmp_path, {0: content}))["life"]
    assert life["step"] == step
    assert len(life["bytes"]) <= 750
    assert sum(life["bytes"]) == len(content)


def test_a_damaged_timestamp_does_not_make_a_life_of_millions_of_steps(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: log(0, 0) + log(1, 2**63 - 1)})
    life = document_of(folder)["life"]
    assert len(life["bytes"]) <= headers._MOST_STEPS
    assert sum(life["records"]) == 2
    assert life["step"] % (365 * 24 * headers.HOUR) == 0


def test_timestamps_that_go_back_or_lie_ahead_are_counted(tmp_path: Path) -> None:
    folder = write_partition(
        tmp_path, {0: log(0, 50) + log(1, 40) + log(2, 60), 3: log(3, 59) + log(4, 70)}
    )
    found = document_of(folder, now=65)
    assert (found["batchesBack"], found["batchesAhead"]) == (2, 1)


def test_offsets_between_batches_are_missing(tmp_path: Path) -> None:
    found = document_of(write_partition(tmp_path, {10: log(10, 1) + log(14, 1), 20: log(20, 1)}))
    assert found["missingOffsets"] == 3 + 5
    (partition,) = found["eachPartition"]
    assert (partition["startOffset"], partition["endOffset"]) == (10, 21)


def test_a_compacted_log_starts_where_its_first_segment_does(tmp_path: Path) -> None:
    (partition,) = document_of(write_partition(tmp_path, {5: log(14, 1)}))["eachPartition"]
    assert (partition["startOffset"], partition["endOffset"]) == (5, 15)


def times_of(folder: Path) -> tuple[int | None, int | None]:
    found = document_of(folder)
    return found["firstTimestamp"], found["lastTimestamp"]


def test_a_broker_s_time_is_that_of_its_records(tmp_path: Path) -> None:
    append_time = {"timestamp_type": 1, "base_timestamp": 7, "max_timestamp": 900}
    assert times_of(write_partition(tmp_path, {0: log(0, 7, 8, **append_time)})) == (900, 900)


def test_markers_have_no_time_of_a_record(tmp_path: Path) -> None:
    begun = log(0, 100, producer_id=7, is_transactional=True)
    marker = kt.control_batch(1, base_offset=1, producer_id=7, base_timestamp=9_000)
    assert times_of(write_partition(tmp_path, {0: begun + marker})) == (100, 100)


def test_times_and_offsets_of_compressed_messages_are_those_of_its_records(tmp_path: Path) -> None:
    messages = kt.message_set(
        [kt.Record(value=b"v", offset_delta=n, timestamp=500 - 100 * n) for n in range(3)],
        base_offset=0,
        codec="gzip",
        magic=1,
    )
    path = write_partition(tmp_path, {0: messages})
    assert times_of(path) == (300, 500)
    (partition,) = document_of(path)["eachPartition"]
    assert (partition["startOffset"], partition["endOffset"], partition["records"]) == (0, 3, 3)


def test_batches_that_overlap_are_told(tmp_path: Path) -> None:
    first, second = (
        kt.message_set([kt.Record()], base_offset=offset, magic=1) for offset in (2, 1)
    )
    topic, _ = figures_of(write_partition(tmp_path, {0: first + second}))
    assert [partition.overlaps for partition in topic.partitions] == [1]


def flipped(batch: bytes, bit: int) -> bytes:
    """A batch with another bit in its base offset, which no checksum covers."""
    return (int.from_bytes(batch[:8], "big") ^ 1 << bit).to_bytes(8, "big") + batch[8:]


def message(offset: int) -> bytes:
    return kt.message_set([kt.Record()], base_offset=offset, magic=1)


@pytest.mark.parametrize("of", [lambda offset: log(offset, 1), message], ids=["v2", "v1"])
@pytest.mark.parametrize(
    "parts",
    [
        {0: (0, -1), 2: (2,)},
        {0: (0, -1, 2), 3: (3,)},
        {0: (0, -1), 2: ()},
        {0: (0,), 1: (-1,), 2: (2,)},
        {0: (0,), 1: (-1,), 2: ()},
    ],
)
def test_an_offset_that_a_segment_cannot_have_is_no_end(
    tmp_path: Path, of: Callable[[int], bytes], parts: dict[int, tuple[int, ...]]
) -> None:
    logs = {
        base: b"".join(flipped(of(1), 37) if one < 0 else of(one) for one in offsets)
        for base, offsets in parts.items()
    }
    topic, gaps = figures_of(write_partition(tmp_path, logs))
    (partition,) = topic.partitions
    ends = [one + 1 for offsets in parts.values() for one in offsets]
    assert partition.end_offset == max([*parts, *ends])
    assert len(gaps) + partition.overlaps == 1


@pytest.mark.parametrize(
    ("place", "bit"), [(57, 6), (23, 0), (35, 6)], ids=["records", "lastOffset", "timestamp"]
)
def test_figures_of_a_header_that_its_checksum_disproves_are_left_out(
    tmp_path: Path, place: int, bit: int
) -> None:
    spoilt = bytearray(log(1, 500))
    spoilt[place] ^= 1 << bit
    folder = write_partition(tmp_path, {0: log(0, 500) + bytes(spoilt)})
    topic, gaps = figures_of(folder, now=1000)
    (partition,) = topic.partitions
    assert (partition.records, partition.end_offset, partition.last_timestamp) == (1, 1, 500)
    assert "stored crc" in gaps[0].reason


def test_an_open_transaction_is_one_without_a_marker(tmp_path: Path) -> None:
    def of(first: int, producer: int) -> bytes:
        return log(first, 100 + first, producer_id=producer, is_transactional=True)

    content = of(0, 7) + of(1, 8) + kt.control_batch(1, base_offset=2, producer_id=7)
    content += of(3, 8) + of(4, 7)
    topic, _ = figures_of(write_partition(tmp_path, {0: content}))
    (partition,) = topic.partitions
    found = partition.open_transactions
    assert {id_: (one.first_offset, one.timestamp) for id_, one in found.items()} == {
        8: (1, 101),
        7: (4, 104),
    }


def test_an_empty_segment_begins_and_ends_at_its_name(tmp_path: Path) -> None:
    found = document_of(write_partition(tmp_path, {5: b""}))
    (partition,) = found["eachPartition"]
    assert (partition["startOffset"], partition["endOffset"]) == (5, 5)
    assert found["life"] is found["recordsPerBatch"] is found["firstTimestamp"] is None


def test_marks_are_where_batches_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "_MARK", 100)
    content = b"".join(log(number, 1) for number in range(20))
    topic, _ = figures_of(write_partition(tmp_path, {0: content}))
    ((_, marks),) = topic.partitions[0].marks
    size = len(log(0, 1))
    assert marks.tolist()[0] == 0
    assert marks.tolist()[-1] == len(content)
    assert all(mark % size == 0 for mark in marks.tolist())
    assert max(after - mark for mark, after in pairwise(marks)) < 100 + size
