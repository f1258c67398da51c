from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from corpus import DATA, rows_of
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from log_twin import HashMap
from strategies import INT32, INT64

import kafkajit
from kafkajit import testing as kt
from kafkajit.schema import PRODUCER_COLUMNS, table_schema
from kafkajit.state.producer_snapshot import (
    ENTRY,
    SnapshotCutShortError,
    producer_snapshot_bytes,
    snapshot_entries,
)
from kafkajit.storage.source import as_bytes

SNAPSHOTS = [
    path for path in sorted(DATA.rglob("*.snapshot*")) if path.suffix in (".snapshot", ".deleted")
]
BATCH = ("firstSequence", "lastSequence", "lastOffset", "offsetDelta", "timestamp")
PRODUCER = st.builds(
    kt.Producer, INT64, st.integers(-(2**15), 2**15 - 1), INT32, INT64, INT32, INT64, INT32, INT64
)


class Corrupt(Exception):
    """The twin's."""


def twin(content: bytes) -> list[dict[str, Any]]:
    """readSnapshot with struct and loops."""
    if len(content) < 2:
        raise Corrupt
    (version,) = struct.unpack_from(">h", content)
    if version != 1 or len(content) < 10:
        raise Corrupt
    crc, count = struct.unpack_from(">Ii", content, 2)
    if count < 0 or 10 + 46 * count > len(content) or crc != crc32c(content[6:]):
        raise Corrupt
    rows = []
    for i in range(count):
        id_, epoch, last_sequence, offset, delta, timestamp, coordinator, transaction = (
            struct.unpack_from(">qhiqiqiq", content, 10 + 46 * i)
        )
        first = last_sequence - delta
        if last_sequence < delta:
            first = 2**31 - 1 - int32(delta - last_sequence) + 1
        batch = (int32(first), last_sequence, offset, delta, timestamp)
        rows.append(
            {
                "producerId": id_,
                "producerEpoch": epoch,
                "coordinatorEpoch": coordinator,
                "currentTxnFirstOffset": transaction if transaction >= 0 else None,
                "lastTimestamp": timestamp,
                **dict(zip(BATCH, batch if offset >= 0 else [None] * 5, strict=True)),
            }
        )
    return rows


def int32(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def printed(path: Path) -> list[dict[str, Any]]:
    """What Kafka prints of a snapshot."""
    rows = []
    for line in path.with_name(path.name + ".dump.out").read_text().splitlines()[1:]:
        fields: dict[str, Any] = dict(re.findall(r"(\w+): (\S+)", line))
        open_since = re.fullmatch(r"OptionalLong\[(\d+)\]", fields["currentTxnFirstOffset"])
        fields["currentTxnFirstOffset"] = open_since and open_since[1]
        rows.append(
            {
                name: None if fields.get(name) is None else int(fields[name])
                for name in PRODUCER_COLUMNS
            }
        )
    return rows


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: f"{path.parent.name}/{path.name[17:]}")
def test_the_producers_are_those_that_kafka_prints(path: Path) -> None:
    table = kafkajit.read_producer_snapshot(path)
    assert table.schema == table_schema(PRODUCER_COLUMNS)
    assert rows_of(table) == twin(path.read_bytes())
    if path.suffix == ".snapshot":
        assert rows_of(table) == printed(path)


def test_the_corpus_has_producers_of_every_sort() -> None:
    rows = [row for path in SNAPSHOTS for row in twin(path.read_bytes())]
    assert len(SNAPSHOTS) > 70
    assert {row["lastOffset"] is None for row in rows} == {True, False}
    assert {row["currentTxnFirstOffset"] is None for row in rows} == {True, False}


@given(st.lists(PRODUCER, max_size=5), st.binary(max_size=50))
def test_every_entry_is_read_and_what_is_behind_them_is_not(
    producers: list[kt.Producer], tail: bytes
) -> None:
    content = kt.producer_snapshot(producers, tail=tail)
    rows = rows_of(kafkajit.read_producer_snapshot(content))
    assert rows == twin(content)
    assert [row["producerId"] for row in rows] == [producer.producer_id for producer in producers]


@pytest.mark.parametrize(
    ("last_sequence", "offset_delta", "first_sequence"),
    [
        (5, 5, 0),
        (4, 5, 2**31 - 1),
        (3, 5, 2**31 - 2),
        (2**31 - 1, -5, -(2**31) + 4),  # as Java's int wraps
        (-(2**31), 2**31 - 1, -(2**31) + 1),
    ],
)
def test_a_sequence_wraps_as_in_java(
    last_sequence: int, offset_delta: int, first_sequence: int
) -> None:
    producer = kt.Producer(1, last_sequence=last_sequence, offset_delta=offset_delta)
    table = kafkajit.read_producer_snapshot(kt.producer_snapshot([producer]))
    assert table["firstSequence"].to_pylist() == [first_sequence]


ONE = [kt.Producer(1)]
SOUND = kt.producer_snapshot(ONE)
INVALID = "Snapshot failed schema validation: "


@pytest.mark.parametrize(
    ("content", "message", "position"),
    [
        *[
            (
                kt.producer_snapshot(ONE, version=version)[:end],
                f"{INVALID}Snapshot contained an unknown file version {version}",
                0,
            )
            for version in (2, 0, -1)
            for end in (2, 5, None)
        ],
        (
            kt.producer_snapshot(ONE, crc=1),
            "Snapshot is corrupt (CRC is no longer valid). Stored crc: 1. "
            f"Computed crc: {crc32c(SOUND[6:])}",
            None,
        ),
        (
            kt.producer_snapshot(ONE, count=-1),
            f"{INVALID}non-nullable field producerEntries was serialized as null",
            6,
        ),
        (
            kt.producer_snapshot(ONE, count=2**31 - 1),
            f"{INVALID}Tried to allocate a collection of size 2147483647, "
            "but there are only 46 bytes remaining.",
            6,
        ),
        (
            kt.producer_snapshot(ONE, count=47),
            f"{INVALID}Tried to allocate a collection of size 47, "
            "but there are only 46 bytes remaining.",
            6,
        ),
        (kt.producer_snapshot(ONE, count=46), "Snapshot is cut short in entry 1 of 46", 56),
        (kt.producer_snapshot(ONE * 3)[:-1], "Snapshot is cut short in entry 2 of 3", 147),
        *[(SOUND[:end], "Snapshot is cut short in its header", end) for end in (0, 1, 2, 9)],
    ],
)
def test_a_snapshot_that_is_none_is_refused_in_kafkas_words(
    content: bytes, message: str, position: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "00000000000000000042.snapshot"
    path.write_bytes(content)
    for source, name in ((content, None), (path, str(path))):
        with pytest.raises(kafkajit.CorruptSnapshotError) as caught:
            kafkajit.read_producer_snapshot(source)
        error = caught.value
        assert (error.message, error.position, error.path) == (message, position, name)
        assert isinstance(error, SnapshotCutShortError) == ("cut short" in message)


@given(
    st.lists(PRODUCER, max_size=3),
    st.integers(0, 200),
    st.binary(max_size=4),
    st.integers(0, 4),
    st.booleans(),
)
def test_whatever_the_bytes_they_are_read_or_refused(
    producers: list[kt.Producer], at: int, put: bytes, cut: int, repair: bool
) -> None:
    content = kt.producer_snapshot(producers)
    content = content[:at] + put + content[at + cut :]
    if repair and len(content) > 6:
        content = content[:2] + struct.pack(">I", crc32c(content[6:])) + content[6:]
    try:
        expected = twin(content)
    except Corrupt:
        with pytest.raises(kafkajit.CorruptSnapshotError):
            kafkajit.read_producer_snapshot(content)
    else:
        assert rows_of(kafkajit.read_producer_snapshot(pa.py_buffer(content))) == expected


def entries_of(producers: list[kt.Producer]) -> Any:
    return snapshot_entries(as_bytes(kt.producer_snapshot(producers)))


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: f"{path.parent.name}/{path.name[17:]}")
def test_the_producers_of_a_snapshot_are_written_as_they_were(path: Path) -> None:
    content = path.read_bytes()
    assert producer_snapshot_bytes(snapshot_entries(as_bytes(content))) == content


IDS = st.one_of(INT64, st.integers(0, 5000), st.integers(-8, 8).map(lambda id_: id_ * 2**28))


@given(st.lists(IDS, unique=True, max_size=80), st.randoms())
def test_producers_are_written_in_the_order_of_a_hash_map(ids: list[int], rng: Any) -> None:
    producers = [kt.Producer(id_, last_offset=rng.randrange(2**40)) for id_ in ids]
    by_id = {producer.producer_id: producer for producer in producers}
    expected = kt.producer_snapshot([by_id[id_] for id_ in HashMap(ids)])
    entries = entries_of(producers)
    assert producer_snapshot_bytes(entries) == expected
    native = entries.astype(ENTRY.newbyteorder("="))
    more = np.empty(native.size, [*native.dtype.descr, ("another", np.int64)])
    for name in ENTRY.names or ():
        more[name] = native[name]
    assert producer_snapshot_bytes(more) == expected


def test_the_order_of_a_hash_map_is_javas() -> None:
    # The order of a new HashMap<>() into which these are put in this order.
    ids = [4294967296, 17, 1, 33, -1, 1000, 16, 65536]
    assert list(HashMap(ids)) == [-1, 16, 4294967296, 17, 1, 33, 65536, 1000]
