from __future__ import annotations

from pathlib import Path
from typing import Any

import log_twin
import numpy as np
import pytest
import reference
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st
from log_twin import Entry

import kafkajit
import kafkajit.testing as kt
from kafkajit.index import TransactionIndex
from kafkajit.index.transaction_index import ENTRY as ABORTED
from kafkajit.log.producers import ProducerStates, are_markers, markers_of
from kafkajit.records.batches import Batches, frame
from kafkajit.records.markers import NO_MARKERS, Markers
from kafkajit.state.producer_snapshot import ENTRY
from kafkajit.storage.source import Source, as_bytes


def framed(log: bytes) -> tuple[Batches, Markers]:
    source = Source(log)
    batches = frame(source.content).batches
    return batches, markers_of(source, batches)


def entries_of(states: ProducerStates) -> list[Entry]:
    entries: list[Entry] = states.entries[list(ENTRY.names or ())].tolist()
    return entries


def update(states: ProducerStates, log: bytes) -> list[Entry]:
    aborted = states.update(*framed(log))
    assert aborted.dtype == ABORTED
    rows: list[Entry] = aborted.tolist()
    assert all(version == 0 for version, *_ in rows)
    return [tuple(row) for _, *row in rows]


@st.composite
def batches_of_producers(draw: st.DrawFn) -> list[bytes]:
    """Batches of a few producers, in and out of transactions, some of them not as in a real log."""
    offset, made = draw(st.sampled_from([0, 45, 2**40])), []
    coordinator_epoch = 0
    producer = st.sampled_from([1, 2, 3, 17, 2**62, -1])
    is_transactional = {id_: draw(st.sampled_from([True, True, False])) for id_ in (1, 2, 3, 17)}
    for _ in range(draw(st.integers(0, 20))):
        id_, epoch = draw(producer), draw(st.sampled_from([0, 0, 0, 1, 32767]))
        fields: dict[str, Any] = {
            "producer_id": id_,
            "producer_epoch": epoch,
            "base_offset": offset,
        }
        kind = draw(
            st.sampled_from(["data", "data", "data", "abort", "commit", "empty", "message"])
        )
        delta = draw(st.sampled_from([0, 0, 1, 5]))
        if kind == "data":
            made.append(
                kt.batch(
                    [kt.Record(value=b"v", timestamp=draw(st.integers(0, 99)))],
                    base_timestamp=50,
                    is_transactional=is_transactional.get(id_, False),
                    base_sequence=draw(st.sampled_from([-1, 0, 7, 2**31 - 3, 2**31 - 1])),
                    last_offset_delta=delta,
                    **fields,
                )
            )
        elif kind == "empty":  # compaction has removed the records
            control = draw(st.booleans())
            made.append(kt.batch([], is_control=control, is_transactional=True, **fields))
        elif kind == "message":
            made.append(kt.message(kt.Record(value=b"v"), offset=offset))
        else:
            coordinator_epoch += draw(st.sampled_from([0, 0, 1]))
            made.append(
                kt.control_batch(
                    kind == "commit",
                    coordinator_epoch=coordinator_epoch,
                    base_timestamp=draw(st.integers(0, 99)),
                    codec=draw(st.sampled_from(["none", "none", "gzip"])),
                    **fields,
                )
            )
        offset += delta + 1
    return made


@given(batches_of_producers(), st.data())
def test_producers_are_those_of_a_broker(made: list[bytes], data: Any) -> None:
    twin, states = log_twin.Producers(), ProducerStates()
    expected: list[Entry] = []
    found: list[Entry] = []
    row = 0
    while row < len(made):  # in runs of any length
        run = made[row : row + data.draw(st.integers(1, 6))]
        try:
            for batch in reference.read_batches(b"".join(run))[0]:
                expected += twin.update(batch)
        except log_twin.Refused:
            with pytest.raises(kafkajit.InvalidRecordError, match="Expected transactional write"):
                update(states, b"".join(run))
            break
        found += update(states, b"".join(run))
        row += len(run)
        assert entries_of(states) == twin.entries
        assert states.first_open_offset == twin.first_open_offset
    else:
        assert found == expected


@given(batches_of_producers(), batches_of_producers())
def test_producers_of_a_snapshot_go_on_where_they_were(one: list[bytes], more: list[bytes]) -> None:
    states, later = ProducerStates(), b"".join(more)
    try:
        update(states, b"".join(one))
    except kafkajit.InvalidRecordError:
        return
    snapshot = states.snapshot()
    loaded = ProducerStates.of_snapshot(as_bytes(snapshot))
    assert sorted(entries_of(loaded)) == sorted(entries_of(states))
    assert loaded.first_open_offset == states.first_open_offset
    assert loaded.snapshot() == snapshot
    answers = []
    for ones in (states, loaded):
        try:
            answers.append((update(ones, later), sorted(entries_of(ones)), ones.first_open_offset))
        except kafkajit.InvalidRecordError as error:
            answers.append((str(error), sorted(entries_of(ones)), ones.first_open_offset))
    assert answers[0] == answers[1]


@given(batches_of_producers())
def test_a_copy_goes_its_own_way(made: list[bytes]) -> None:
    states = ProducerStates()
    half = len(made) // 2
    try:
        update(states, b"".join(made[:half]))
        before = (entries_of(states), states.first_open_offset)
        update(states.copy(), b"".join(made[half:]))
    except kafkajit.InvalidRecordError:
        return
    assert (entries_of(states), states.first_open_offset) == before


def test_a_snapshot_may_have_a_producer_twice() -> None:
    producers = [
        kt.Producer(1, last_offset=5, current_txn_first_offset=4),
        kt.Producer(2, last_offset=-1, last_sequence=8, offset_delta=3, timestamp=9),
        kt.Producer(1, last_offset=7),
        kt.Producer(2, last_offset=9, current_txn_first_offset=-5),
        kt.Producer(3, last_offset=9, current_txn_first_offset=6),
        kt.Producer(4, last_offset=9, current_txn_first_offset=2),
    ]
    states = ProducerStates.of_snapshot(as_bytes(kt.producer_snapshot(producers)))
    assert [entry[0] for entry in entries_of(states)] == [1, 2, 3, 4]
    assert states.first_open_offset == 2
    # The earliest transaction ends, and the other stays open.
    log = kt.control_batch(0, producer_id=4, base_offset=10)
    assert update(states, log) == [(4, 2, 10, 6)]
    assert states.first_open_offset == 6


def test_a_producer_without_a_batch_is_read_as_kafka_reads_it() -> None:
    producer = kt.Producer(2, last_offset=-1, last_sequence=8, offset_delta=3, timestamp=9)
    states = ProducerStates.of_snapshot(as_bytes(kt.producer_snapshot([producer])))
    assert entries_of(states) == [(2, 0, -1, -1, 0, 9, -1, -1)]


def test_a_corrupt_snapshot_is_told() -> None:
    with pytest.raises(kafkajit.CorruptSnapshotError, match=r"CRC is no longer valid.* in a/b"):
        ProducerStates.of_snapshot(as_bytes(kt.producer_snapshot([], crc=1)), "a/b")


def test_many_producers_are_kept_apart() -> None:
    count = 3000
    ids = np.random.default_rng(7).integers(0, 2**63 - 1, count).tolist()
    log = b"".join(
        kt.batch([kt.Record()], base_offset=offset, producer_id=id_, is_transactional=True)
        for offset, id_ in enumerate(ids)
    )
    states = ProducerStates()
    update(states, log)
    assert [entry[0] for entry in entries_of(states)] == ids
    ends = b"".join(
        kt.control_batch(0, producer_id=id_, base_offset=count + place)
        for place, id_ in enumerate(reversed(ids))
    )
    expected = [
        (id_, count - 1 - place, count + place, 0 if place < count - 1 else 2 * count)
        for place, id_ in enumerate(reversed(ids))
    ]
    assert update(states, ends) == expected
    assert states.first_open_offset is None


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (kt.batch([kt.Record()], producer_id=7, base_offset=9), "write from producer 7 at posit"),
        (
            kt.control_batch(2, producer_id=7, base_offset=9),
            "Invalid control record type for end transaction marker of producer 7: 2 at position",
        ),
    ],
)
def test_where_a_broker_fails_it_is_told(batch: bytes, message: str) -> None:
    before = kt.batch([kt.Record()], producer_id=7, is_transactional=True, base_offset=5)
    states = ProducerStates()
    batches, markers = framed(before + batch)
    with pytest.raises(kafkajit.InvalidRecordError, match=message) as error:
        states.update(batches, markers, "a/b")
    assert (error.value.position, error.value.base_offset) == (len(before), 9)
    assert error.value.path == "a/b"
    assert [entry[3] for entry in entries_of(states)] == [5]


def test_a_marker_that_cannot_be_read_is_an_error() -> None:
    data = kt.batch([kt.Record()], producer_id=7, is_transactional=True)
    nothing = kt.batch([kt.Record(b"")], producer_id=7, is_control=True)
    source = Source(data + nothing, path="a/b")
    with pytest.raises(kafkajit.InvalidRecordError) as error:
        markers_of(source, frame(source.content).batches)
    assert (error.value.position, error.value.path) == (len(data), "a/b")


def test_a_markers_checksum_is_looked_at_if_asked() -> None:
    source = Source(kt.control_batch(1, producer_id=7, crc=1))
    batches = frame(source.content).batches
    assert markers_of(source, batches).type_id.tolist() == [1]
    with pytest.raises(kafkajit.CorruptRecordError, match="stored crc = 1"):
        markers_of(source, batches, check_crcs=True)


def test_rafts_control_batches_are_nobodys() -> None:
    log = kt.control_batch(2, producer_id=-1)
    batches = frame(as_bytes(log)).batches
    assert not are_markers(batches).any()
    states = ProducerStates()
    assert states.update(batches, NO_MARKERS).size == 0
    assert len(states) == 0


# Logs of a stopped broker: the last snapshot is of the end.
FOLDERS = sorted(
    folder
    for folder in (DATA / "v2").iterdir()
    if any(folder.glob("*.snapshot"))
    # Compaction has removed batches since, or the broker has continued.
    and not folder.name.startswith(("compacted", "tombstones", "emptied", "epochs"))
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_snapshots_and_aborted_transactions_are_those_of_a_broker(folder: Path) -> None:
    states = ProducerStates()
    snapshots = {int(path.stem): path.read_bytes() for path in folder.glob("*.snapshot")}
    for log in sorted(folder.glob("*.log")):
        if int(log.stem) in snapshots:
            assert states.snapshot() == snapshots.pop(int(log.stem))
        aborted = update(states, log.read_bytes())
        index = log.with_suffix(".txnindex")
        written = TransactionIndex(index).aborted
        assert aborted == [tuple(entry) for entry in written]
    # The others are of the ends that the log had when the broker stopped.
    assert not snapshots or states.snapshot() == snapshots[max(snapshots)]


def test_the_corpus_has_producers() -> None:
    assert len(FOLDERS) > 30
    assert {"transactions-0", "transactions-open-0"} <= {folder.name for folder in FOLDERS}
