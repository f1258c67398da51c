from __future__ import annotations

import struct
from pathlib import Path

import pytest
from corpus import DATA, rows_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import INT32, INT64

import kafkajit
from kafkajit import testing as kt
from kafkajit.index.offset_index import OffsetIndex
from kafkajit.index.time_index import TimeIndex
from kafkajit.records import batches
from kafkajit.records.batches import Framing
from kafkajit.storage.source import Bytes, Source, as_bytes
from kafkajit.text import sidecar_dump as side_dump
from kafkajit.text.sidecar_dump import snapshot_complaint, snapshot_text

SNAPSHOTS = sorted(DATA.rglob("*.snapshot"))
PRODUCER = st.builds(
    kt.Producer, INT64, st.integers(-(2**15), 2**15 - 1), INT32, INT64, INT32, INT64, INT32, INT64
)


def text_of(content: bytes) -> str:
    return b"".join(snapshot_text(as_bytes(content))).decode()


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: f"{path.parent.name}/{path.name[17:]}")
def test_the_lines_are_those_that_kafka_prints(path: Path) -> None:
    golden = path.with_name(path.name + ".dump.out").read_text()
    assert f"Dumping {path.name}\n" + text_of(path.read_bytes()) == golden


def test_the_corpus_has_lines_of_every_sort() -> None:
    lines = "".join(text_of(path.read_bytes()) for path in SNAPSHOTS)
    for text in ("OptionalLong.empty", "OptionalLong[3]", " \n", "firstSequence: "):
        assert text in lines


def line_of(row: dict[str, int | None]) -> str:
    """One line, built as Scala builds it."""
    open_since = row["currentTxnFirstOffset"]
    optional = "OptionalLong.empty" if open_since is None else f"OptionalLong[{open_since}]"
    line = (
        f"producerId: {row['producerId']} producerEpoch: {row['producerEpoch']} "
        f"coordinatorEpoch: {row['coordinatorEpoch']} currentTxnFirstOffset: {optional} "
        f"lastTimestamp: {row['lastTimestamp']} "
    )
    if row["lastOffset"] is not None:
        line += (
            f"firstSequence: {row['firstSequence']} lastSequence: {row['lastSequence']} "
            f"lastOffset: {row['lastOffset']} offsetDelta: {row['offsetDelta']} "
            f"timestamp: {row['timestamp']}"
        )
    return line + "\n"


@given(st.lists(PRODUCER, max_size=7), st.integers(1, 8))
def test_every_producer_has_its_line_however_many_at_a_time(
    producers: list[kt.Producer], rows: int
) -> None:
    content = kt.producer_snapshot(producers)
    expected = map(line_of, rows_of(kafkajit.read_producer_snapshot(content)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(side_dump, "_ROWS", rows)
        assert text_of(content) == "".join(expected)


SOUND = kt.producer_snapshot([kt.Producer(1)])
INVALID = "Snapshot failed schema validation: "


# The output of Kafka 4.1.1's DumpLogSegments for these bytes.
@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", f"{INVALID}null"),
        (SOUND[:1], f"{INVALID}null"),
        (SOUND[:6], f"{INVALID}null"),
        (SOUND[:-1], f"{INVALID}null"),
        (kt.producer_snapshot([kt.Producer(1)], count=2), f"{INVALID}null"),
        (
            kt.producer_snapshot([], version=2),
            f"{INVALID}Snapshot contained an unknown file version 2",
        ),
        (
            kt.producer_snapshot([], count=-1),
            f"{INVALID}non-nullable field producerEntries was serialized as null",
        ),
        (
            kt.producer_snapshot([], count=9),
            f"{INVALID}Tried to allocate a collection of size 9, "
            "but there are only 0 bytes remaining.",
        ),
        (
            kt.producer_snapshot([], crc=1),
            "Snapshot is corrupt (CRC is no longer valid). Stored crc: 1. Computed crc: 1214729159",
        ),
    ],
)
def test_of_a_corrupt_snapshot_there_is_a_complaint_and_no_line(
    content: bytes, complaint: str
) -> None:
    with pytest.raises(kafkajit.CorruptSnapshotError) as caught:
        snapshot_text(as_bytes(content), "a/b")
    assert snapshot_complaint(caught.value) == complaint
    assert caught.value.path == "a/b"


@pytest.mark.parametrize("leads", [b"", struct.pack(">ii", 1, 1)], ids=["to the start", "astray"])
def test_entries_past_the_logs_end_do_not_read_it_each_anew(
    leads: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = kt.batch([kt.Record(value=b"v")]) + kt.batch([kt.Record(value=b"v")], base_offset=1)
    # The bytes from position 1 look like a batch that ends with the log.
    log = log if not leads else b"\0" + log
    framed: list[int] = []

    def frame(content: Bytes, position: int = 0, **limits: int) -> Framing:
        framed.append(position)
        return batches.frame(content, position, **limits)

    monkeypatch.setattr(side_dump, "frame", frame)
    entries = [(100 + n, 9 + n % 3) for n in range(50)]
    dump = side_dump.TimeIndexDump(
        TimeIndex(b"".join(struct.pack(">qi", *entry) for entry in entries), 0),
        OffsetIndex(leads, 0),
        Source(log),
        max_decompressed_bytes=1 << 20,
    )
    assert b"".join(dump.text()).count(b"\n") == 50
    assert dump.not_found == [(offset, -1) for _, offset in entries]
    assert len(framed) < 15
