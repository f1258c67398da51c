"""Streams of logs that are truncated, made again, cleaned and expired after they were read."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
from pathlib import Path

import pytest
from changing_log import ChangingLog, Consumer
from partitions import data, log_name
from streaming import Query, append, started

from kafkajit.errors import OffsetOutOfRangeError
from kafkajit.scan.stream.options import Limits

LOGS = 60


def follow(seed: int, folder: Path, isolation: str) -> None:
    """Follow a log that changes at random: each record comes once, and each loss is reported."""
    rng = random.Random(seed)
    log = ChangingLog(folder / "orders-0", rng)
    for _ in range(rng.randint(0, 6)):
        log.append()
    consumer = Consumer(log, committed=isolation == "read_committed")
    lenient = Query(folder, isolationLevel=isolation, failOnDataLoss="false")
    lenient.trigger()
    for _ in range(12):
        done = [log.change() for _ in range(rng.randint(0, 4))]
        if rng.random() < 0.3:
            lenient.restart()
        is_lost, expected = consumer.next()
        strict = Query(folder, isolationLevel=isolation)
        strict.planned, strict.committed = list(lenient.planned), lenient.committed
        if is_lost:
            with pytest.raises(OffsetOutOfRangeError):
                strict.plan()
        else:
            strict.plan()
        limits = Limits(records=rng.choice([None, None, 3, 6]))
        found: list[tuple[int, int]] = []
        if lenient.plan(limits):
            if rng.random() < 0.2:
                lenient.restart()
            rows = lenient.read(["offset", "value", "controlType"])
            rows = rows.filter(rows["controlType"].is_null())
            values = map(int, rows["value"].to_pylist())
            found = list(zip(rows["offset"].to_pylist(), values, strict=True))
            lenient.commit()
        reached = lenient.ends[-1]["orders"]["0"]
        wanted = [one for one in expected if one[0] < reached]
        assert found == wanted, (seed, done, found, expected, reached)
        assert limits.records or found == expected, (seed, done, found, expected, reached)
        consumer.pass_to(reached)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("seed", range(LOGS))
def test_each_record_of_a_log_that_changes_comes_once(
    seed: int, isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkajit.scan.stream.log_stream._LOOK_SECONDS", 0)
    follow(seed, tmp_path, isolation)


@pytest.mark.thorough
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("block", range(50))
def test_each_record_of_ten_thousand_logs_comes_once(
    block: int, isolation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafkajit.scan.stream.log_stream._LOOK_SECONDS", 0)
    for seed in range(LOGS + 100 * block, LOGS + 100 * (block + 1)):
        follow(seed, tmp_path / str(seed), isolation)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChangingLog:
    """A log with two batches of five records, in epoch 0."""
    monkeypatch.setattr("kafkajit.scan.stream.log_stream._LOOK_SECONDS", 0)
    found = ChangingLog(tmp_path / "logs" / "orders-0", random.Random(1))
    found.grow(5)
    found.grow(5)
    return found


def read_to_its_end(log: ChangingLog) -> tuple[Query, Query]:
    """A strict and a lenient query that have read a log."""
    strict = started(log.folder.parent)
    assert len(strict.offsets()) == log.end
    lenient = Query(log.folder.parent, failOnDataLoss="false")
    lenient.planned, lenient.committed = list(strict.planned), strict.committed
    return strict, lenient


def values(query: Query) -> list[int]:
    return [int(value) for value in query.trigger(["value"])["value"].to_pylist()]


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("count", [4, 10, 25], ids=["shorter", "as long", "longer"])
def test_a_topic_that_is_made_again_is_noticed_whatever_its_length(
    log: ChangingLog, count: int, *, is_restarted: bool
) -> None:
    strict, lenient = read_to_its_end(log)
    old = log.topic_id
    log.make()
    log.grow(count)
    for query in (strict, lenient) if is_restarted else ():
        query.restart()
    with pytest.raises(OffsetOutOfRangeError) as caught:
        strict.offsets()
    assert str(caught.value) == (
        "orders-0 was read up to offset 10, but the topic was made again: its id is "
        f"{log.topic_id}, and that of the log that was read is {old} in {log.folder}: with "
        "failOnDataLoss=false the query goes on from offset 0 of this log on"
    )
    assert values(lenient) == list(range(10, 10 + count))
    log.grow(2)
    assert lenient.offsets() == [count, count + 1]


def test_a_topic_that_is_made_again_before_it_was_read_is_read(tmp_path: Path) -> None:
    log = ChangingLog(tmp_path / "orders-0", random.Random(1))
    query = started(tmp_path)
    log.make()
    log.grow(3)
    assert query.offsets() == [0, 1, 2]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_log_that_is_truncated_and_written_again_is_read_from_there(
    log: ChangingLog, *, is_restarted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    strict, lenient = read_to_its_end(log)
    log.cut(log.batches[1])
    log.elect()
    log.grow(9)
    for query in (strict, lenient) if is_restarted else ():
        query.restart()
    with pytest.raises(OffsetOutOfRangeError, match="the log was truncated to offset 5 and writ"):
        strict.offsets()
    with caplog.at_level(logging.WARNING, "kafkajit"):
        assert values(lenient) == list(range(10, 19))
    assert "leader epoch 1 follows there, and epoch 0 was read" in caplog.text
    assert "the query goes on from offset 5 of this log on" in caplog.text


def test_a_transaction_that_was_truncated_decides_about_no_record(log: ChangingLog) -> None:
    log.grow(3, 1)
    log.finish(1, 0)
    query = started(log.folder.parent, isolationLevel="read_committed")
    assert query.offsets(records=10) == list(range(10))  # and has seen the abort
    log.cut(log.batches[2])
    log.elect()
    log.grow(3, 1)
    log.finish(1, 1)
    assert query.offsets() == [10, 11, 12]


def test_a_log_that_has_lost_its_end_waits_until_it_grows_again(log: ChangingLog) -> None:
    strict, lenient = read_to_its_end(log)
    log.cut(log.batches[1])
    with pytest.raises(OffsetOutOfRangeError, match="offset 10, but its log now ends at 5: it was"):
        strict.offsets()
    assert values(lenient) == []
    log.elect()
    log.grow(1)
    assert values(lenient) == [10]


def test_a_copy_that_lacks_its_end_for_a_moment_is_not_read_twice(log: ChangingLog) -> None:
    _, lenient = read_to_its_end(log)
    path = log.folder / log_name(0)
    whole = path.read_bytes()
    for content in (b"", whole[:100]):
        path.write_bytes(content)
        assert values(lenient) == []
    path.write_bytes(whole)
    assert values(lenient) == []
    log.grow(1)
    assert values(lenient) == [10]


def test_a_copy_of_a_log_goes_on_where_the_log_was_read(log: ChangingLog, tmp_path: Path) -> None:
    strict, _ = read_to_its_end(log)
    log.grow(3)
    shutil.copytree(log.folder, tmp_path / "copy" / "orders-0")
    copy = started(tmp_path / "copy")
    copy.planned, copy.committed = list(strict.planned), strict.committed
    assert copy.offsets() == [10, 11, 12]


def test_a_read_batch_that_compaction_removes_is_no_loss(log: ChangingLog) -> None:
    strict = started(log.folder.parent, maxRecordsPerTrigger=5)
    assert strict.offsets() == [0, 1, 2, 3, 4]
    log.roll()
    path = log.folder / log_name(0)
    new = path.with_suffix(".new")
    new.write_bytes(log.batches[1].content)
    new.replace(path)
    assert strict.restart().offsets() == [5, 6, 7, 8, 9]


def test_a_checkpoint_of_an_older_version_is_read_on_and_gets_the_rest(log: ChangingLog) -> None:
    strict, _ = read_to_its_end(log)
    strict.planned = [{"orders": {"0": 10}}]
    strict.committed = 1
    strict.restart()
    assert strict.offsets() == []
    assert strict.planned[-1]["@read"]["orders"]["0"][0] == log.topic_id
    assert not strict.plan()  # once
    log.make()
    log.grow(12)
    with pytest.raises(OffsetOutOfRangeError, match="the topic was made again"):
        strict.offsets()


def test_a_checkpoint_of_an_older_version_behind_the_log_is_a_loss(log: ChangingLog) -> None:
    strict, lenient = read_to_its_end(log)
    for query in (strict, lenient):
        query.planned, query.committed = [{"orders": {"0": 12}}], 1
        query.restart()
    with pytest.raises(OffsetOutOfRangeError, match="offset 12, but its log now ends at 10"):
        strict.offsets()
    assert lenient.offsets() == list(range(10))


def test_a_planned_micro_batch_whose_log_was_made_again_is_a_loss(log: ChangingLog) -> None:
    strict, lenient = read_to_its_end(log)
    for query in (strict, lenient):
        log.grow(1)
        query.plan()
    log.make()
    log.grow(20)
    with pytest.raises(OffsetOutOfRangeError, match="the topic was made again"):
        strict.restart().read()
    assert lenient.restart().read().num_rows == 0
    lenient.commit()
    assert values(lenient) == list(range(12, 32))


def test_a_planned_micro_batch_of_a_new_log_is_read_from_its_start(log: ChangingLog) -> None:
    _, lenient = read_to_its_end(log)
    log.make()
    log.grow(4)
    lenient.plan()
    rows = lenient.restart().read(["offset"])
    assert rows["offset"].to_pylist() == [0, 1, 2, 3]


@pytest.mark.parametrize("makes", ["another log", "another end of the same size"])
def test_a_task_notices_that_its_log_is_another_one(log: ChangingLog, makes: str) -> None:
    strict, lenient = read_to_its_end(log)
    log.grow(2)
    tasks = {}
    for query in (strict, lenient):
        query.plan()
        tasks[query] = query.stream.tasks(*query.planned[-2:])
        query.stream.tasks = lambda *_, found=tasks[query]: found  # type: ignore[method-assign]
    if makes == "another log":
        log.make()
        log.grow(20)
    else:
        log.cut(log.batches[2])
        log.elect()
        log.grow(2)
    with pytest.raises(OffsetOutOfRangeError, match="offsets 10 to 11 are gone"):
        strict.read()
    assert lenient.read().num_rows == 0


def test_a_log_without_a_topics_id_is_known_by_its_last_batch(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    append(folder, data(0, 5) + data(5, 5))
    strict = started(tmp_path)
    strict.offsets()
    os.truncate(folder / log_name(0), 0)
    append(folder, data(0, 5) + data(5, 5) + data(10, 1))  # the same log
    assert strict.restart().offsets() == [10]
    os.truncate(folder / log_name(0), 0)
    append(folder, data(0, 11) + data(11, 1))
    with pytest.raises(OffsetOutOfRangeError, match="its batch at offset 10 is not the one that"):
        strict.offsets()


def test_offsets_of_a_checkpoint_that_kafkajit_did_not_write_are_an_error(
    log: ChangingLog,
) -> None:
    for epochs in ("[[0]]", "[[0, Infinity]]", "[[0, {}]]"):
        strict, _ = read_to_its_end(log)
        offsets = json.dumps(strict.planned[-1]).replace("[[0, 0]]", epochs)
        strict.planned[-1] = json.loads(offsets)
        with pytest.raises(ValueError, match="for orders-0, which kafkajit did not write"):
            strict.offsets()
