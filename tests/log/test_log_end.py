from __future__ import annotations

import shutil
from pathlib import Path

import log_twin
import pytest
import reference
from corpus import DATA
from scanning import FOLDERS as ALL_FOLDERS

import kafkajit
import kafkajit.testing as kt
from kafkajit.log.config import LogConfig
from kafkajit.log.log_end import read_log_end

CONFIG = LogConfig()


# Their logs end in zeros: preallocated logs do until they are closed.
PADDED = {"preallocated-0", "v1-preallocated-0"}
FOLDERS = [folder for folder in ALL_FOLDERS if folder.name not in PADDED]
by_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def test_a_log_that_ends_in_zeros_is_refused() -> None:
    for folder in ALL_FOLDERS:
        if folder.name in PADDED:
            with pytest.raises(
                kafkajit.CorruptRecordError, match="not a sound batch: run `kafkajit"
            ):
                read_log_end(folder, CONFIG)


@by_folder
def test_a_brokers_log_goes_on_where_it_ends(folder: Path) -> None:
    end = read_log_end(folder, CONFIG)
    log = kafkajit.Log(folder)
    assert (end.start_offset, end.end_offset) == (log.start_offset, log.end_offset)
    assert str(end.active) == log.segments[-1].log.key
    assert not end.strays
    assert end.is_new == (log.end_offset == 0)
    epochs = folder / "leader-epoch-checkpoint"
    if epochs.exists():
        table = kafkajit.read_leader_epochs(epochs)
        rows = [tuple(row.values()) for row in table.to_pylist()]
        # A broker that loads the log forgets a leader that has not appended anything.
        assert end.epochs.entries == [row for row in rows if row[1] < end.end_offset]
        assert end.latest_epoch == max((epoch for epoch, _ in rows), default=None)


# A stopped broker leaves a snapshot of the end; these were copied from a running one.
LIVING = {"crashed-0", "epochs-0", "v1-crashed-0"}


@by_folder
def test_what_a_stopped_broker_left_is_closed(folder: Path) -> None:
    end = read_log_end(folder, CONFIG)
    snapshots = {int(path.stem): path for path in folder.glob("*.snapshot")}
    if folder.name in LIVING:
        assert end.indexes is not None
    elif end.end_offset in snapshots:
        assert end.indexes is None
        assert end.snapshot == end.end_offset
        assert end.producers.snapshot() == snapshots[end.end_offset].read_bytes()


def test_the_corpus_has_logs_of_stopped_and_of_living_brokers() -> None:
    assert {folder.name for folder in FOLDERS} >= LIVING
    closed = [folder for folder in FOLDERS if read_log_end(folder, CONFIG).indexes is None]
    assert len(closed) > 60


TRANSACTIONAL = sorted(folder for folder in (DATA / "v2").glob("*transactions*"))


@pytest.mark.parametrize("folder", TRANSACTIONAL, ids=lambda folder: folder.name)
def test_without_snapshots_producers_are_those_of_the_log(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    for path in copy.glob("*.snapshot"):
        path.unlink()
    twin = log_twin.Producers()
    for log in sorted(copy.glob("*.log")):
        for batch in reference.read_batches(log.read_bytes())[0]:
            twin.update(batch)
    end = read_log_end(copy, CONFIG)
    assert end.producers.snapshot() == twin.snapshot()
    assert end.snapshot == end.start_offset


def test_what_was_appended_behind_a_snapshot_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    twin, log = log_twin.Producers(), b""
    for offset in range(6):
        log += kt.batch([kt.Record()], producer_id=offset % 4, base_offset=offset)
        if offset == 3:
            (folder / f"{0:020}.log").write_bytes(log)
            log = b""
    (folder / f"{4:020}.log").write_bytes(log)
    # The snapshot differs from the log for offsets 0 to 2, and counts.
    lie = kt.producer_snapshot([kt.Producer(9)])
    (folder / f"{3:020}.snapshot").write_bytes(lie)
    for batch in reference.read_batches(
        b"".join((folder / f"{base:020}.log").read_bytes() for base in (0, 4))
    )[0]:
        if batch.base_offset >= 3:
            twin.update(batch)
    end = read_log_end(folder, CONFIG)
    found = {entry["producerId"]: int(entry["lastOffset"]) for entry in end.producers.entries}
    expected = {id_: state.batches[-1][1] for id_, state in twin.states.items()}
    assert found == {9: 0} | expected
    assert (end.end_offset, end.snapshot) == (6, 3)


def test_a_damaged_marker_is_told_with_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    bad = kt.control_batch(1, crc=1)
    (folder / f"{0:020}.log").write_bytes(bad + kt.batch([kt.Record()], base_offset=1))
    with pytest.raises(
        kafkajit.CorruptRecordError, match=r"corrupt .*: run `kafkajit repair` on the folder first"
    ):
        read_log_end(folder, CONFIG)


def test_a_folder_without_a_log_is_a_new_one(tmp_path: Path) -> None:
    for folder in (tmp_path / "orders-0", tmp_path / "orders-1"):
        end = read_log_end(folder, CONFIG)
        assert end.is_new
        assert (end.start_offset, end.end_offset, end.active) == (0, 0, None)
        (tmp_path / "orders-1").mkdir(exist_ok=True)
        (tmp_path / "orders-1" / "leader-epoch-checkpoint").write_text("0\n1\n3 0\n")
    assert end.epochs.entries == []
    assert end.latest_epoch == 3


@pytest.mark.parametrize("is_there", [True, False])
def test_a_log_that_lacks_its_last_segment_is_refused(is_there: bool, tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    config = {"segment.bytes": 1000, "index.interval.bytes": 1}
    with kafkajit.LogWriter(folder, config) as writer:
        for base_offset in range(0, 40, 10):
            records = [kt.Record(value=b"v" * 50)] * 10
            writer.append(kt.batch(records, base_offset=base_offset, producer_id=1))
    last = max(folder.glob("*.log"))
    whole = last.read_bytes()
    last.write_bytes(b"")
    if not is_there:
        last.unlink()
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(kafkajit.InvalidOffsetError) as caught:
        kafkajit.LogWriter(folder)
    assert "are missing at the log's end" in str(caught.value)
    assert "put the missing segment back, or give it up with" in str(caught.value)
    assert sorted(path.name for path in folder.iterdir()) == before
    last.write_bytes(whole)
    assert read_log_end(folder, CONFIG).end_offset == 40
    last.unlink()
    kafkajit.repair(folder).apply()
    assert read_log_end(folder, CONFIG).end_offset == int(last.stem)
