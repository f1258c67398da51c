"""Streams of a real broker's logs that are made again, truncated, expired, compacted and moved.

    KAFKAJIT_KAFKA_LIB=~/kafka/4.4.0/lib PYTHONPATH=.:tests:tests/support \\
        python tests/broker/changed_logs.py

Each row of the table "Logs that change" in docs/datasource.md that a broker can bring about is
brought about, between two triggers of a query that fails on a loss, and of one that goes on. What
the second one has read then must be what the broker's own consumer reads.

Needs Java 17 and Kafka's jars (Maven brings them).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from broker import Broker, compile_java, java, running_broker
from streaming import Query

from kafkajit import cli
from kafkajit.errors import OffsetOutOfRangeError

# A broker takes this long for what it does in the background.
MOST_SECONDS = 60.0
STOPPED_SEGMENT_SECONDS = 20  # longer than a stop and a start
SETTINGS = {
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "file.delete.delay.ms": "100",
    "log.segment.delete.delay.ms": "100",
}


class Logs:
    """The logs of a broker in two folders, and a client that changes them."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self.folders = [work / "logs", work / "more"]
        self._classes = work / "classes"
        self._classes.mkdir()
        compile_java([Path(__file__).with_name("ChangedLogs.java")], self._classes)

    @contextmanager
    def running(self) -> Iterator[Broker]:
        """The broker, started on these logs."""
        settings = SETTINGS | {"log.dirs": ",".join(map(str, self.folders))}
        with running_broker(self._work, settings) as broker:
            command = java("ChangedLogs", broker.bootstrap, classes=[self._classes])
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as self._client:
                yield broker
                assert self._client.stdin is not None
                self._client.stdin.close()

    def ask(self, *words: object) -> str:
        assert self._client.stdin is not None
        assert self._client.stdout is not None
        self._client.stdin.write(" ".join(map(str, words)) + "\n")
        self._client.stdin.flush()
        answer = self._client.stdout.readline().strip()
        assert answer, f"no answer to {words}"
        return answer

    def consumed(self, topic: str) -> list[int]:
        return [int(value) for value in self.ask("consume", topic).split()[1:]]

    def folder(self, topic: str) -> Path:
        (found,) = (root / f"{topic}-0" for root in self.folders if (root / f"{topic}-0").is_dir())
        return found


class Queries:
    """A query that fails on a loss, and one that goes on, over the logs of topics."""

    def __init__(self, logs: Logs, *topics: str) -> None:
        self._strict = Query(*logs.folders)
        self._lenient = Query(*logs.folders, failOnDataLoss="false")
        self.found: list[int] = []
        for query in (self._strict, self._lenient):
            query.options = replace(query.options, topics=topics)
            query.restart()
            query.trigger()
            query.committed = len(query.planned)

    def read(self) -> list[int]:
        """The values of the next micro-batch, which both read without a loss."""
        new = self._values(self._strict)
        assert new == self._go_on()
        return new

    def lose(self, words: str) -> list[int]:
        """The values that the query reads which goes on, and the error of the other."""
        with pytest.raises(OffsetOutOfRangeError, match=words):
            self._strict.plan()
        return self._go_on()

    def _go_on(self) -> list[int]:
        new = self._values(self._lenient)
        self.found += new
        return new

    def _values(self, query: Query) -> list[int]:
        return [int(value) for value in query.trigger(["value"])["value"].to_pylist()]


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + MOST_SECONDS
    while not is_so():
        assert time.monotonic() < end, "the broker has not done it"
        time.sleep(0.1)


def written(logs: Logs, topic: str, *configs: str, keys: int = 1000) -> Queries:
    """Queries that have read ten records of a new topic."""
    logs.ask("create", topic, "retention.ms=-1", *configs)
    logs.ask("write", topic, 0, 10, keys)
    queries = Queries(logs, topic)
    assert queries.read() == list(range(10))
    return queries


def made_again(logs: Logs) -> None:
    for topic, count in (("shorter", 4), ("equal", 10), ("longer", 25)):
        queries = written(logs, topic)
        logs.ask("delete", topic)
        until(lambda topic=topic: not any((it / f"{topic}-0").is_dir() for it in logs.folders))
        logs.ask("create", topic, "retention.ms=-1")
        logs.ask("write", topic, 100, count, 1000)
        assert queries.lose("the topic was made again") == logs.consumed(topic)


def expired(logs: Logs) -> None:
    queries = written(logs, "expired", "segment.ms=1")
    logs.ask("write", "expired", 10, 10, 1000)
    logs.ask("before", "expired", 15)
    folder = logs.folder("expired")
    until(lambda: int(min(path.stem for path in folder.glob("*.log"))) == 15)
    assert queries.lose("offsets 10 to 14 of expired-0 are gone") == list(range(15, 20))
    assert logs.consumed("expired") == list(range(15, 20))
    lacks_nothing(folder)


def lacks_nothing(folder: Path) -> None:
    """The deletion of a log's first segments is not a loss for the commands that look for one."""
    until(lambda: not [*folder.glob("*.deleted")])
    assert cli.main(["info", str(folder)]) == 0
    assert cli.main(["repair", str(folder)]) != 1


def below_the_start(logs: Logs) -> None:
    queries = written(logs, "below")
    logs.ask("write", "below", 10, 10, 1000)
    logs.ask("before", "below", 15)
    assert queries.read() == list(range(10, 20))
    assert logs.consumed("below") == list(range(15, 20))


def compacted(logs: Logs) -> None:
    configs = ("cleanup.policy=compact", "segment.ms=300", "min.cleanable.dirty.ratio=0.01")
    queries = written(logs, "compacted", *configs, "max.compaction.lag.ms=300", keys=3)
    time.sleep(0.5)
    logs.ask("write", "compacted", 10, 10, 3)
    behind = Queries(logs, "compacted")
    until(lambda: logs.consumed("compacted")[0] == 7)  # the first one of three keys
    assert queries.read() == logs.consumed("compacted")[-len(queries.found[10:]) :]
    assert behind.read() == logs.consumed("compacted")
    logs.ask("write", "compacted", 20, 1, 3)
    assert queries.read() == behind.read() == [20]


def deleted(logs: Logs) -> None:
    queries = written(logs, "deleted-a")
    logs.ask("create", "deleted-b", "retention.ms=-1")
    both = Queries(logs, "deleted-a", "deleted-b")
    assert both.read() == list(range(10))
    logs.ask("delete", "deleted-a")
    logs.ask("write", "deleted-b", 50, 3, 1000)
    until(lambda: not any((it / "deleted-a-0").is_dir() for it in logs.folders))
    assert queries.read() == []
    until(lambda: bool(both.read()) or both.found[10:] == [50, 51, 52])


def moved(logs: Logs) -> None:
    queries = written(logs, "moved")
    here = logs.folder("moved").parent
    (there,) = (folder for folder in logs.folders if folder != here)
    for first, folder in ((10, there), (20, here)):
        logs.ask("write", "moved", first, 10, 1000)
        logs.ask("move", "moved", folder)
        while len(queries.found) < first + 10:
            queries.read()
    assert queries.found == logs.consumed("moved") == list(range(30))


def truncated(logs: Logs, end: Callable[[], None]) -> Callable[[], None]:
    """A log whose newest records were in no file yet when the machine went down."""
    queries = {name: written(logs, name) for name in ("lost", "grown")}
    for name in queries:
        logs.ask("write", name, 10, 10, 1000)
        assert queries[name].read() == list(range(10, 20))

    def cut() -> None:
        for name in queries:
            (log,) = logs.folder(name).glob("*.log")
            content = log.read_bytes()
            end = 0
            for _ in range(15):
                end += 12 + int.from_bytes(content[end + 8 : end + 12])
            os.truncate(log, end + 1)
            assert queries[name].lose("but its log now ends at 15") == []

    def check() -> None:
        assert queries["lost"].lose("but its log now ends at 15") == []
        logs.ask("write", "grown", 100, 20, 1000)
        assert queries["grown"].lose("the log was truncated to offset 15") == list(range(100, 120))
        kept = [*range(15), *range(100, 120)]
        assert logs.consumed("grown") == kept
        logs.ask("write", "lost", 100, 2, 1000)
        assert queries["lost"].lose("the log was truncated to offset 15") == [100, 101]

    end()
    cut()
    return check


def expired_after_a_stop(logs: Logs, queries: Queries) -> None:
    """The snapshot of a broker's stop inside a segment may stay when that segment is deleted."""
    logs.ask("write", "stopped", 10, 5, 1000)
    time.sleep(STOPPED_SEGMENT_SECONDS)
    logs.ask("write", "stopped", 15, 5, 1000)
    folder = logs.folder("stopped")
    assert {10, 15} <= {int(path.stem) for path in folder.glob("*.snapshot")}
    logs.ask("before", "stopped", 15)
    until(lambda: [int(path.stem) for path in folder.glob("*.log")] == [15])
    sys.stdout.write(f"files: {' '.join(sorted(path.name for path in folder.iterdir()))}\n")
    assert queries.lose("offsets 10 to 14 of stopped-0 are gone") == list(range(15, 20))
    lacks_nothing(folder)


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        logs = Logs(Path(temporary))
        with logs.running() as broker:
            for case in (made_again, expired, below_the_start, compacted, deleted, moved):
                case(logs)
                sys.stdout.write(f"{case.__name__}\n")
            check = truncated(logs, broker.kill)
        with logs.running():
            check()
            sys.stdout.write("truncated\n")
            stopped = written(logs, "stopped", f"segment.ms={1000 * STOPPED_SEGMENT_SECONDS}")
        lacks_nothing(logs.folder("expired"))
        with logs.running():
            expired_after_a_stop(logs, stopped)
            sys.stdout.write("expired after a stop\n")


if __name__ == "__main__":
    main()
