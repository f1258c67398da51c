from __future__ import annotations

import gc
import os
import pickle
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark import cloudpickle

from kafkajit.scan.options import ScanOptions
from kafkajit.schema import RECORD_COLUMNS, record_schema
from kafkajit.spark.columns import _deferred
from kafkajit.spark.readers import KafkaLogReader
from kafkajit.spark.table_functions import KafkaLog
from kafkajit.spark.worker import acknowledge, in_worker, reported


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")


@pytest.mark.parametrize("error", [ValueError, TypeError, FileNotFoundError, EOFError])
def test_what_a_user_can_cause_is_reported_without_a_traceback(error: type[Exception]) -> None:
    with pytest.raises(error), in_worker():
        raise error
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1"


def test_a_bug_keeps_its_traceback() -> None:
    @reported
    def bug() -> None:
        raise AssertionError

    with pytest.raises(AssertionError):
        bug()
    assert os.environ["SPARK_HIDE_TRACEBACK"] == ""


def test_the_collector_does_not_walk_numbas_modules() -> None:
    import kafkajit.kernel  # noqa: F401
    from kafkajit.spark.worker import _leave_modules_alone

    _leave_modules_alone.cache_clear()
    try:
        with in_worker():
            pass
        assert gc.get_freeze_count() > 100_000
    finally:
        gc.unfreeze()


def answers_late(connection: socket.socket) -> bool:
    """Whether the system keeps an acknowledgement back until there is something to say with it."""
    return not connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK)


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    """A TCP connection that has carried questions and answers, as a worker's has."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
        listening.accept()[0] as served,
    ):
        for _ in range(8):
            client.send(b"?")
            served.recv(1)
            served.send(b"!")
            client.recv(1)
        yield served


# What a worker does when Spark has sent a task, before it waits for the task's data.
UNPICKLED: dict[str, Any] = {
    "stated": acknowledge,
    "a reader": lambda: pickle.loads(
        pickle.dumps(KafkaLogReader(ScanOptions(("/",)), record_schema(RECORD_COLUMNS)))
    ),
    "a function": lambda: cloudpickle.loads(cloudpickle.dumps(_deferred("kafka_records"))),
    "a table function": KafkaLog,
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the option")
@pytest.mark.parametrize("what", UNPICKLED)
def test_what_comes_with_a_task_is_acknowledged_at_once(
    what: str, connection: socket.socket
) -> None:
    assert answers_late(connection)
    UNPICKLED[what]()
    assert not answers_late(connection)


def test_whatever_else_is_open_stays_open() -> None:
    here, there = socket.socketpair()
    from_pipe, into_pipe = os.pipe()
    try:
        for _ in range(3):
            acknowledge()
        here.send(b"s")
        os.write(into_pipe, b"p")
        assert (there.recv(1), os.read(from_pipe, 1)) == (b"s", b"p")
    finally:
        here.close()
        there.close()
        os.close(from_pipe)
        os.close(into_pipe)
