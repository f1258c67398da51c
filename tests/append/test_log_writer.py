from __future__ import annotations

import json
import random
import resource
import shutil
from pathlib import Path
from typing import Any

import log_twin
import pytest
import reference
from appends import append, digests, files_of
from corpus import DATA, NO_JIT

import kafkajit
import kafkajit.testing as kt
from kafkajit import LogConfig, LogWriter
from kafkajit.change.lock import FolderLock

KAFKAS = json.loads((DATA / "logs" / "appends.json").read_text())
SEEDS = sorted(map(int, KAFKAS))[: 25 if NO_JIT else None]
by_seed = pytest.mark.parametrize("seed", SEEDS)


def begun(folder: Path, seed: int) -> tuple[LogWriter, Any]:
    log = append(seed)
    return LogWriter(folder, log.config, start_offset=log.start), log


@by_seed
def test_files_are_kafkas_and_the_twins(seed: int, tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    writer, log = begun(folder, seed)
    rng, at = random.Random(seed), 0
    while at < len(log.batches):  # several at a time
        count = rng.choice([1, 2, 7, 100])
        writer.append(b"".join(log.batches[at : at + count]))
        at += count
    writer.commit()
    twin = log_twin.Log(LogConfig.of(log.config), log.start)
    twin.append(b"".join(log.batches))
    assert files_of(folder) == twin.files()
    assert writer.log_end_offset == twin.end
    assert digests(files_of(folder), log.start) == KAFKAS[str(seed)]["once"]


@by_seed
def test_a_log_goes_on_as_kafkas_that_was_rolled(seed: int, tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    writer, log = begun(folder, seed)
    for part in log.parts:
        with writer:
            writer.append(part)
        end = writer.log_end_offset
        writer = LogWriter(folder, log.config)
    writer.abort()
    assert digests(files_of(folder), log.start) == KAFKAS[str(seed)]["twice"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["orders-0"]  # the lock file is gone
    read = kafkajit.Log(folder)
    assert (read.start_offset, read.end_offset) == (log.start, end)


@by_seed
def test_an_append_continues_a_log_that_was_not_closed(seed: int, tmp_path: Path) -> None:
    # A running broker's indexes are preallocated and lack the last entry; it has no snapshot.
    folder = tmp_path / "orders-0"
    writer, log = begun(folder, seed)
    with writer:
        writer.append(log.parts[0])
    active = max(folder.glob("*.log"))
    for suffix, kept in ((".index", None), (".timeindex", -12)):
        path = active.with_suffix(suffix)
        path.write_bytes(path.read_bytes()[:kept] + bytes(120))
    max(folder.glob("*.snapshot")).unlink()
    with LogWriter(folder, log.config) as writer:
        writer.append(b"".join(log.parts[1:]))
    if len(log.parts) > 1:
        assert digests(files_of(folder), log.start) == KAFKAS[str(seed)]["twice"]


def record(offset: int, size: int = 0, **fields: Any) -> bytes:
    return kt.batch([kt.Record(value=b"v" * size)], base_offset=offset, **fields)


def offsets_in(folder: Path) -> list[int]:
    log = kafkajit.Log(folder)
    read = log.read(log.start_offset, 10**6, columns=["offset"])
    offsets: list[int] = read["offset"].to_pylist()
    return offsets


def bases_in(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*.log"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of offsets 0 to 2."""
    folder = tmp_path / "orders-0"
    with LogWriter(folder) as writer:
        writer.append(b"".join(map(record, range(3))))
    return folder


def test_what_is_not_committed_leaves_no_trace(folder: Path) -> None:
    before = files_of(folder)
    writer = LogWriter(folder)
    writer.append(record(3))
    assert writer.log_end_offset == 4
    assert files_of(folder) == before
    writer.abort()
    writer.abort()
    writer = LogWriter(folder)
    writer.append(record(3))
    goes_on = f"the log in {folder} goes on at offset 4"
    with pytest.raises(kafkajit.InvalidOffsetError, match=goes_on), writer:
        writer.append(record(2))
    with LogWriter(folder) as writer:  # append nothing
        writer.append(b"")
    assert files_of(folder) == before
    assert sorted(folder.parent.iterdir()) == [folder]
    assert not any(path.name.startswith(".") for path in folder.iterdir())


def test_a_writer_without_a_batch_makes_no_folder(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "orders-0"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_folders_around_a_log_are_made(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "new" / "logs" / "orders-0") as log:
        log.append(kt.batch([kt.Record(b"a")]))
    assert kafkajit.Log(log.folder).end_offset == 1


def test_a_commit_is_the_end(folder: Path) -> None:
    writer = LogWriter(folder)
    writer.append(record(3))
    writer.commit()
    for late in (lambda: writer.append(record(4)), writer.commit):
        with pytest.raises(ValueError, match=r"the writer of .*orders-0 is closed"):
            late()
    writer.abort()
    assert offsets_in(folder) == [0, 1, 2, 3]
    assert bases_in(folder) == [0, 3]


@pytest.mark.parametrize(
    ("bad", "kind", "message"),
    [
        (record(3), kafkajit.InvalidOffsetError, "First offset 3 is less than the next offset 4"),
        (record(4, crc=1), kafkajit.CorruptRecordError, "Record is corrupt"),
        (record(4, 2 << 20), kafkajit.RecordTooLargeError, r"\(max.message.bytes\)"),
        (
            record(4)[:-1],
            kafkajit.CorruptRecordError,
            ": 67 bytes after the last batch are not a whole one",
        ),
        (
            b"\0" * 40,
            kafkajit.CorruptRecordError,
            ": 40 bytes after the last batch are not a whole one",
        ),
        (
            b"garbage" * 40,
            kafkajit.CorruptRecordError,
            ": 280 bytes after the last batch are not a whole one",
        ),
        (b"\0" * 11 + b"\1" * 40, kafkajit.CorruptRecordError, "smaller than minimum record"),
        (
            record(4, producer_id=1, is_transactional=True) + record(5, producer_id=1),
            kafkajit.InvalidRecordError,
            "Expected transactional write from producer 1",
        ),
        (
            kt.batch([kt.Record(b"\0")], base_offset=4, is_control=True, producer_id=1),
            kafkajit.InvalidRecordError,
            "Must have at least 4 bytes",
        ),
    ],
)
def test_an_append_that_is_refused_leaves_no_trace(
    folder: Path, bad: bytes, kind: type[Exception], message: str
) -> None:
    with LogWriter(folder) as writer:
        with pytest.raises(kind, match=message) as error:
            writer.append(record(3) + bad)
        assert isinstance(error.value, kafkajit.KafkaJitError)
        assert error.value.position in (68, 136)
        assert writer.log_end_offset == 3
        writer.append(record(3, 5))
    assert offsets_in(folder) == [0, 1, 2, 3]
    assert (folder / f"{3:020}.log").read_bytes() == record(3, 5)
    assert (folder / f"{4:020}.snapshot").read_bytes() == kt.producer_snapshot([])


def test_an_error_about_a_segment_names_its_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "segment").write_bytes(record(3) + record(3))
    with LogWriter(folder) as writer, pytest.raises(kafkajit.InvalidOffsetError) as error:
        writer.append(tmp_path / "segment")
    assert f"at position 68, base offset 3 in {tmp_path}/segment: " in str(error.value)


def test_a_segment_is_appended_by_its_path(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "segment").write_bytes(record(3) + record(4))
    with LogWriter(folder) as writer:
        writer.append(tmp_path / "segment")
    assert offsets_in(folder) == [0, 1, 2, 3, 4]


# Logs that do not end as they should.


@pytest.mark.parametrize(
    ("tail", "left"),
    [
        (record(3)[:-1], 67),
        (b"\0" * 100, 100),
        (b"garbage", 7),
        (b"\xff" * 100, 100),
        (record(3, crc=1), 68),
    ],
)
@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_log_that_does_not_end_in_a_whole_batch_is_refused(
    folder: Path, tail: bytes, left: int, is_indexed: bool
) -> None:
    if is_indexed:
        with LogWriter(folder, {"index.interval.bytes": 0}) as writer:
            writer.append(b"".join(record(offset, 100) for offset in range(3, 9)))
    else:
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / f"{3:020}.log").write_bytes(record(3))
    log = folder / f"{3:020}.log"
    size = log.stat().st_size
    log.write_bytes(log.read_bytes() + tail)
    before = files_of(folder)
    with pytest.raises(
        kafkajit.CorruptRecordError,
        match=rf"last {left} bytes are not a sound batch: run `kafkajit repair` .*first, at "
        rf"position {size} in .*orders-0/0+3.log",
    ):
        LogWriter(folder)
    assert files_of(folder) == before
    with FolderLock(folder):  # nobody holds it any more
        pass


def test_an_index_that_lies_is_made_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = files_of(folder)
    (folder / f"{0:020}.index").write_bytes(kt.offset_index([(1, 30)]))
    with LogWriter(folder) as writer:
        writer.append(record(3))
    assert "no sound batch of it begins" in caplog.text
    assert {name: files_of(folder)[name] for name in before} == before


@pytest.mark.parametrize("missing", [".index", ".timeindex"])
def test_an_index_that_is_missing_is_made(folder: Path, missing: str) -> None:
    before = files_of(folder)
    (folder / f"{0:020}{missing}").unlink()
    with LogWriter(folder) as writer:
        writer.append(record(3))
    assert {name: files_of(folder)[name] for name in before} == before


def test_a_time_index_without_its_last_entry_gets_it(folder: Path) -> None:
    before = files_of(folder)
    times = folder / f"{0:020}.timeindex"
    assert times.stat().st_size == 12
    times.write_bytes(b"")
    with LogWriter(folder) as writer:
        writer.append(record(3))
    assert {name: files_of(folder)[name] for name in before} == before


# The first offset, and the next.


def test_an_empty_active_segment_is_replaced(tmp_path: Path) -> None:
    # the files that a broker creates for a new topic
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").touch()
    for suffix in (".index", ".timeindex"):
        (folder / f"{0:020}{suffix}").write_bytes(bytes(10 << 20))
    (folder / "leader-epoch-checkpoint").touch()
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA")
    with LogWriter(folder) as writer:
        writer.append(record(0) + record(1))
    twin = log_twin.Log(LogConfig())
    twin.append(record(0) + record(1))
    metadata = {"partition.metadata": b"version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA"}
    assert files_of(folder) == twin.files() | metadata


def test_an_empty_active_segment_makes_way_for_a_later_start(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").touch()
    with LogWriter(folder, start_offset=40) as writer:
        writer.append(record(45))
    assert bases_in(folder) == [40]
    assert not (folder / f"{0:020}.index").exists()
    assert kafkajit.Log(folder).start_offset == 40


def test_only_a_new_log_has_a_start_to_choose(folder: Path) -> None:
    with pytest.raises(ValueError, match="goes on at 3: start_offset is for a new one"):
        LogWriter(folder, start_offset=7)
    with LogWriter(folder, start_offset=3) as writer:
        assert writer.log_end_offset == 3


def test_a_log_starts_at_its_checkpoints_offset(tmp_path: Path) -> None:
    checkpoint = tmp_path / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n2\norders 1 7\norders 0 50\n")
    folder = tmp_path / "orders-0"
    with LogWriter(folder) as writer:
        assert writer.log_end_offset == 50
    with pytest.raises(kafkajit.InvalidOffsetError, match="cannot begin at 49 before its start"):
        LogWriter(folder, start_offset=49)
    with LogWriter(folder, start_offset=60) as writer:
        writer.append(record(60))
    checkpoint.write_text("0\n1\norders 0 62\n")
    with pytest.raises(kafkajit.InvalidOffsetError, match="ends at 61, before its start 62"):
        LogWriter(folder)


def test_snapshots_that_the_log_has_not_are_taken_away(folder: Path) -> None:
    lie = kt.producer_snapshot([kt.Producer(9)])
    for offset in (0, 2, 5, 6):
        (folder / f"{offset:020}.snapshot").write_bytes(lie)
    with LogWriter(folder) as writer:
        writer.append(record(3) + record(4) + record(5))
    assert sorted(int(path.stem) for path in folder.glob("*.snapshot")) == [0, 2, 3, 6]
    for offset in (3, 6):
        content = (folder / f"{offset:020}.snapshot").read_bytes()
        assert content == kt.producer_snapshot([])


def test_producers_are_read_from_the_log_if_a_snapshot_is_corrupt_or_missing(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with LogWriter(folder, {"index.interval.bytes": 0}) as writer:
        for offset in range(3, 9):
            writer.append(record(offset, producer_id=offset, is_transactional=True))
        writer.append(kt.control_batch(0, producer_id=4, base_offset=9))
    before = (folder / f"{10:020}.snapshot").read_bytes()
    (folder / f"{10:020}.snapshot").write_bytes(b"\0\1" + bytes(9))
    (folder / f"{3:020}.snapshot").unlink()
    with LogWriter(folder) as writer:
        writer.append(record(10))
    assert (folder / f"{11:020}.snapshot").read_bytes() == before
    assert (folder / f"{10:020}.snapshot").read_bytes() == before
    assert "producers are read without it" in caplog.text


# Leader epochs.


def epochs_in(folder: Path) -> list[tuple[int, ...]]:
    table = kafkajit.read_leader_epochs(folder / "leader-epoch-checkpoint")
    return [tuple(row.values()) for row in table.to_pylist()]


def batch_epochs_in(folder: Path) -> list[int]:
    logs = [path.read_bytes() for path in sorted(folder.glob("*.log"))]
    return [
        batch.partition_leader_epoch for log in logs for batch in reference.read_batches(log)[0]
    ]


def test_a_batch_without_an_epoch_is_of_the_latest(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    said = [-1, 4, -1, 6, -1, -7]
    with LogWriter(folder) as writer:
        for offset, epoch in enumerate(said):
            writer.append(record(offset, partition_leader_epoch=epoch))
    with LogWriter(folder) as writer:
        log = [record(6 + at, partition_leader_epoch=epoch) for at, epoch in enumerate([-1, 8, -1])]
        writer.append(b"".join(log))
    assert batch_epochs_in(folder) == [0, 4, 4, 6, 6, 6, 6, 8, 8]
    assert epochs_in(folder) == [(0, 0), (4, 1), (6, 3), (8, 7)]
    assert all(
        kafkajit.read_record_batches(path)["isValid"].to_numpy().all()
        for path in folder.glob("*.log")
    )


def test_an_epoch_is_given_to_all(folder: Path) -> None:
    message = kt.message(kt.Record(), offset=3)
    with LogWriter(folder) as writer:
        writer.append(record(3, partition_leader_epoch=9) + record(4), leader_epoch=7)
        with pytest.raises(ValueError, match="leader_epoch must be 7, the log's latest, or later"):
            writer.append(record(5), leader_epoch=6)
        writer.append(message.replace((3).to_bytes(8), (5).to_bytes(8)), leader_epoch=2**31 - 1)
    assert batch_epochs_in(folder) == [0, 0, 0, 7, 7, -1]
    assert epochs_in(folder) == []  # no epoch is known before the message


def test_a_leader_that_has_appended_nothing_is_the_latest(folder: Path) -> None:
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n5 3\n")
    with LogWriter(folder) as writer:
        writer.append(record(3, partition_leader_epoch=-1))
    assert epochs_in(folder) == [(0, 0), (5, 3)]
    assert batch_epochs_in(folder)[-1] == 5


# Several writers, and brokers.


def test_a_log_has_one_writer(folder: Path) -> None:
    writer = LogWriter(folder)
    with pytest.raises(kafkajit.LockedError, match="this process is changing the log already"):
        LogWriter(folder)
    with pytest.raises(kafkajit.LockedError), FolderLock(folder):
        pass
    writer.abort()
    LogWriter(folder).abort()


def test_partitions_are_written_side_by_side(tmp_path: Path) -> None:
    folders = [tmp_path / f"orders-{partition}" for partition in range(3)]
    writers = [LogWriter(folder) for folder in folders]
    for offset in range(9):
        writers[offset % 3].append(record(offset))
    writers[0].commit()
    with pytest.raises(kafkajit.LockedError), FolderLock(folders[1]):
        pass
    for writer in writers[1:]:
        writer.commit()
    assert [offsets_in(folder) for folder in folders] == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert sorted(tmp_path.iterdir()) == folders


def test_a_folder_is_called_as_a_partition_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a partition's folder"):
        LogWriter(tmp_path / "orders")


def test_a_log_is_written_to_a_local_folder_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="s3: is not a local file system"):
        LogWriter("s3://bucket/orders-0")
    assert not list(tmp_path.iterdir())
    with LogWriter(f"file://{tmp_path}/orders-0") as writer:
        assert writer.folder == tmp_path / "orders-0"


def test_a_configuration_is_given_in_kafkas_words_or_as_one(tmp_path: Path) -> None:
    for place, config in enumerate([LogConfig(segment_bytes=70), {"segment.bytes": "70"}]):
        folder = tmp_path / f"orders-{place}"
        with LogWriter(folder, config) as writer:
            writer.append(record(0) + record(1))
        assert bases_in(folder) == [0, 1]
    with pytest.raises(ValueError, match="unknown topic config name"):
        LogWriter(tmp_path / "orders-2", {"segment.byte": 1})


# Large inputs and full disks.


def test_what_is_appended_in_many_pieces_is_one_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = append(11)
    for place, size in enumerate([8 << 20, 300]):
        monkeypatch.setattr("kafkajit.walk.frames.CHUNK_BYTES", size)
        with LogWriter(tmp_path / f"orders-{place}", log.config, start_offset=log.start) as writer:
            writer.append(b"".join(log.batches))
            with pytest.raises(kafkajit.InvalidOffsetError):
                writer.append(log.batches[0])
    assert files_of(tmp_path / "orders-0") == files_of(tmp_path / "orders-1")


def test_a_disk_that_fills_breaks_the_writer(folder: Path) -> None:
    before = files_of(folder)
    writer = LogWriter(folder)
    writer.append(record(3))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(OSError, match=f"File too large: '{folder}'"):
            writer.append(record(4, 100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    for more in (lambda: writer.append(record(4)), writer.commit):
        with pytest.raises(ValueError, match="failed: abort the writer, and append again"):
            more()
    writer.abort()
    assert files_of(folder) == before
    assert not any(path.name.startswith(".") for path in folder.iterdir())
    with LogWriter(folder) as writer:
        writer.append(record(3) + record(4, 100_000))
    assert offsets_in(folder) == [0, 1, 2, 3, 4]


def test_a_system_may_take_a_part_at_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LogWriter(folder) as writer:
        writer.append(record(3))
        segment = writer._segment
        assert segment is not None
        whole = segment._log.write

        class Slow:
            def write(self, content: Any) -> Any:
                return whole(content[:13])

            def close(self) -> None:
                segment._log = self.log
                segment._log.close()

            log = segment._log

        monkeypatch.setattr(segment, "_log", Slow())
        writer.append(record(4, 100) + record(5))
    assert offsets_in(folder) == [0, 1, 2, 3, 4, 5]


@pytest.fixture(autouse=True)
def _no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/change/test_change.py checks the files on disk."""
    monkeypatch.setattr("os.fsync", lambda _: None)
