from __future__ import annotations

import os
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from corpus import DAMAGED_LOGS, SOUND_LOGS, log_id

import kafkajit
import kafkajit.testing as kt
from kafkajit import read_record_batches, read_records, reader
from kafkajit.storage.source import Source
from kafkajit.walk import threads
from kafkajit.walk.damage import Stretch
from kafkajit.walk.threads import stretches, thread_count


@pytest.fixture(autouse=True)
def small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "LEAST_BYTES", 100)
    monkeypatch.setattr(threads, "_SHARES", 1000)
    monkeypatch.setattr(reader, "LEAST_BYTES", 50)
    monkeypatch.setattr("kafkajit.walk.frames.CHUNK_BYTES", 50)


@pytest.mark.parametrize("path", SOUND_LOGS, ids=log_id)
def test_many_threads_read_what_one_does(path: Path) -> None:
    one, many = (read_records(str(path), threads=count) for count in (1, 3))
    assert many.equals(one, check_metadata=True)


@pytest.mark.parametrize("path", DAMAGED_LOGS, ids=log_id)
def test_many_threads_come_upon_the_first_error_in_the_log(path: Path) -> None:
    log = path.read_bytes()
    said = []
    for count in (1, 3):
        try:
            table = read_records(log, threads=count)
            said.append(str(table.schema.metadata))
        except kafkajit.KafkaJitError as error:
            said.append(repr((type(error), str(error), error.position)))
    assert said[0] == said[1]


@pytest.mark.parametrize("mode", ["DROPMALFORMED", "PERMISSIVE"])
def test_what_is_damaged_is_told_by_one_thread(mode: str) -> None:
    good = kt.batch([kt.Record(value=b"v" * 90)])
    log = good + kt.broken("wrong crc", base_offset=1) + kt.batch([kt.Record()], base_offset=3)
    assert read_records(log, mode=mode, threads=3).equals(read_records(log, mode=mode, threads=1))


@pytest.mark.parametrize("path", SOUND_LOGS, ids=log_id)
def test_stretches_are_whole_batches_from_end_to_end(path: Path) -> None:
    found = list(stretches(Source(str(path)), 3))
    assert found[0].start == 0
    assert all(one.end == next_.start for one, next_ in pairwise(found))
    assert found[-1].end == path.stat().st_size
    batches = read_record_batches(str(path))
    positions = {*batches["position"].to_pylist(), kafkajit.valid_bytes(str(path))}
    assert {stretch.start for stretch in found} <= positions
    assert all(one.end - one.start >= 100 for one in found[:-1])


def test_behind_what_is_no_batch_nothing_is_divided() -> None:
    batch = kt.batch([kt.Record(value=b"v" * 90)])
    log = batch * 2 + kt.broken("batch shorter than its header") + batch * 5
    assert list(stretches(Source(log), 3)) == [
        Stretch(0, len(batch)),
        Stretch(len(batch), 2 * len(batch)),
        Stretch(2 * len(batch), len(log)),
    ]


def test_there_is_a_thread_for_each_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 4, 6}, raising=False)
    assert thread_count(None) == 3
    assert thread_count(2) == 2
    with pytest.raises(ValueError, match="threads must be at least 1, not 0"):
        read_records(b"", threads=0)


def test_in_a_task_of_spark_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 4, 6}, raising=False)
    for context, expected in ((object(), 1), (None, 3)):
        task = SimpleNamespace(TaskContext=SimpleNamespace(get=lambda context=context: context))
        monkeypatch.setitem(sys.modules, "pyspark", task)
        assert thread_count(None) == expected


@pytest.mark.parametrize("count", [float("nan"), 2.5, "3"])
def test_a_count_that_is_no_whole_number_is_an_error_and_no_wait(count: object) -> None:
    log = kt.batch([kt.Record(value=b"v" * 90)]) * 3
    with pytest.raises(TypeError, match="integer"):
        read_records(log, threads=count)  # type: ignore[arg-type]
