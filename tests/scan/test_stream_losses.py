"""A loss of records that a stream has not read is reported, whichever files tell of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from partitions import data, log_name, marker, transactional
from streaming import Query, append

import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.errors import LeftOutError, OffsetOutOfRangeError
from kafkajit.scan.stream import followed
from kafkajit.state.leader_epochs import LEADER_EPOCHS, leader_epochs_text

READ_COMMITTED = {"isolationLevel": "read_committed"}


def logs_of(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def snapshot(folder: Path, offset: int, producer: int, first: int) -> None:
    """A snapshot that names an open transaction."""
    entry = kt.Producer(producer, 0, 0, first, 0, current_txn_first_offset=first)
    (folder / log_name(offset, ".snapshot")).write_bytes(kt.producer_snapshot([entry]))


def starting(offset: int) -> dict[str, str]:
    return {"startingOffsets": json.dumps({"orders": {"0": offset}})} | READ_COMMITTED


@pytest.mark.parametrize("begin", [5, 7])
@pytest.mark.parametrize("at", [data(3, 1), b""], ids=["another batch", "compacted"])
def test_a_transaction_is_open_only_if_its_first_batch_is_there(
    at: bytes, begin: int, tmp_path: Path
) -> None:
    """A cleaner removes a committed transaction's records and its marker, but no snapshot."""
    folder = tmp_path / "orders-0"
    append(folder, data(0, 3) + at + data(4, 1))
    append(folder, data(5, 5), base_offset=5)
    snapshot(folder, 5, producer=9, first=3)
    assert Query(tmp_path, **starting(begin)).offsets(records=100) == []  # where it begins
    query = Query(tmp_path, **starting(begin))
    query.trigger()
    assert query.offsets() == list(range(begin, 10))


def test_an_open_transaction_of_a_snapshot_hides_what_is_behind_it(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    append(folder, data(0, 3) + transactional(3, 9))
    append(folder, data(5, 5), base_offset=5)
    snapshot(folder, 5, producer=9, first=3)
    query = Query(tmp_path, **starting(5))
    query.trigger()
    assert query.offsets() == []
    append(folder, marker(10, 9, control_type=1), base_offset=5)
    assert query.offsets() == list(range(5, 10))


@pytest.fixture
def without_logs(tmp_path: Path) -> Query:
    """A query that has read 4 of 20 records of a partition, whose logs are gone since."""
    folder = tmp_path / "orders-0"
    append(folder, data(0, 10))
    append(folder, data(10, 10), base_offset=10)
    append(tmp_path / "pay-0", data(0, 1))
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    query = Query(tmp_path)
    query.trigger()
    query.trigger(records=5)
    for log in logs_of(folder):
        log.unlink()
    return query


def test_a_partition_that_has_files_and_no_log_is_reported(
    without_logs: Query, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(LeftOutError, match="orders-0 has files of a log, and no log"):
        without_logs.restart().stream.freeze()
    assert main(["tail", "-n", "all", str(tmp_path)]) == 1
    assert "orders-0 has files of a log, and no log" in capsys.readouterr().err


def test_a_query_that_runs_reports_it_once_a_broker_would_have_made_a_log(
    without_logs: Query, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = without_logs.restart()
    assert query.offsets() == []
    monkeypatch.setattr(followed, "SETTLE_SECONDS", 0)
    with pytest.raises(LeftOutError, match="orders-0 has files of a log, and no log"):
        query.offsets()
    append(tmp_path / "orders-0", data(0, 10) + data(10, 10))
    assert query.offsets()[:1] == [4]


def test_an_empty_folder_of_a_new_partition_is_waited_for(tmp_path: Path) -> None:
    append(tmp_path / "orders-0", data(0, 5))
    (tmp_path / "orders-1").mkdir()
    query = Query(tmp_path)
    query.stream.freeze()
    query.trigger()
    assert query.offsets() == list(range(5))


@pytest.mark.parametrize("is_new", [True, False], ids=["a query", "a partition"])
def test_what_expires_before_a_planned_first_micro_batch_is_read_again_is_reported(
    is_new: bool, tmp_path: Path
) -> None:
    if not is_new:
        append(tmp_path / "orders-0", data(0, 1))
    query = Query(tmp_path)
    if not is_new:
        query.trigger()
        query.offsets()
    folder = tmp_path / "orders-1"
    for base_offset in (0, 10, 20):
        append(folder, data(base_offset, 10), base_offset=base_offset)
    query.plan(None)  # as Trigger.Once does
    os.unlink(logs_of(folder)[0])  # noqa: PTH108
    query.restart()
    with pytest.raises(OffsetOutOfRangeError, match="offsets 0 to 9 of orders-1 are gone"):
        query.read(["offset"])
    lenient = Query(tmp_path, failOnDataLoss=False)
    lenient.planned, lenient.committed = query.planned, query.committed
    assert lenient.read(["offset"])["offset"].to_pylist() == list(range(10, 30))


def test_a_first_micro_batch_that_begins_later_lacks_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    for base_offset in (0, 10, 20):
        append(folder, data(base_offset, 10), base_offset=base_offset)
    query = Query(tmp_path, startingOffsets='{"orders":{"0":10}}')
    query.plan(None)
    os.unlink(logs_of(folder)[0])  # noqa: PTH108
    assert query.restart().read(["offset"])["offset"].to_pylist() == list(range(10, 30))


def test_epochs_tell_of_a_truncation_without_an_id(tmp_path: Path) -> None:
    """A cleaner has taken the last batch that was read, and what was written in its place."""
    folder = tmp_path / "orders-0"
    append(folder, b"".join(data(at, 1) for at in range(10)))
    (folder / LEADER_EPOCHS).write_bytes(leader_epochs_text([(0, 0)]))
    query = Query(tmp_path)
    query.trigger()
    assert query.offsets() == list(range(10))
    logs_of(folder)[0].unlink()
    (folder / LEADER_EPOCHS).write_bytes(leader_epochs_text([(0, 0), (1, 5)]))
    others = (data(at, 1, partition_leader_epoch=1) for at in range(12, 15))
    append(folder, b"".join([*(data(at, 1) for at in range(5)), *others]))
    with pytest.raises(OffsetOutOfRangeError, match="truncated to offset 5 and written again"):
        query.restart().offsets()
    lenient = Query(tmp_path, failOnDataLoss=False)
    lenient.planned, lenient.committed = query.planned[:2], 2
    assert lenient.offsets() == [*range(5), 12, 13, 14]


@pytest.mark.parametrize("fails", [True, False])
def test_a_damaged_batch_that_reaches_into_the_next_segment_is_no_other_history(
    fails: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "orders-0"
    damaged = bytearray(data(4, 7))
    damaged[-3] ^= 4
    append(folder, data(0, 4) + bytes(damaged))
    append(folder, data(9, 4), base_offset=9)
    append(folder, data(13, 4), base_offset=13)
    query = Query(tmp_path, mode="DROPMALFORMED", failOnDataLoss=fails)
    query.trigger()
    found = []
    for _ in range(3):
        found += query.offsets(files=1)
        query.restart()
    assert found == [*range(4), *range(9, 17)]
