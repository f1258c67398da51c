"""Streams of a log.dirs folder that a real broker writes, is killed in and started on again.

    PYTHONPATH=.:tests:tests/support python tests/broker/live_stream.py 120 --seed 7

LiveTraffic.java writes records and transactions. The broker rolls segments every second, deletes
and compacts them, gets new partitions and topics, and is ended twice by SIGKILL. Meanwhile streams
read the folder as Spark drives them (tests/support/streaming.py): they are restarted from their
stored offsets at random moments, and micro-batches are read twice. At the end each acknowledged
record must have come exactly once, unless it was compacted, belongs to an aborted transaction, or
the stream reported its loss. Whatever is left in the broker must be what its own consumer reads.

Needs Java 17 and Kafka 4.1.1's jars (Maven brings them).
"""

from __future__ import annotations

import argparse
import logging
import random
import re
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from broker import (
    KAFKA,
    broker_config,
    compile_java,
    format_storage,
    free_ports,
    java,
    kraft_config,
    running_server,
    write_properties,
)
from streaming import Query

from kafkajit.errors import OffsetOutOfRangeError
from kafkajit.scan.stream.options import Limits

COLUMNS = ["topic", "partition", "offset", "controlType", "key", "value"]
KILLS = 2
# A broker starts within this time.
START_SECONDS = 120
# Within this time a broker ends transactions that nobody ended, and a late follower reads.
SETTLE_SECONDS = 30
_LOST = re.compile(r"offsets (\d+) to (\d+)(?: of (\S+))? are gone")


class Place(NamedTuple):
    """Where a record lies."""

    topic: str
    partition: int
    offset: int


class KilledBroker:
    """A broker that keeps its ports and its folder while it is killed and started again."""

    def __init__(self, work: Path) -> None:
        self._port, controller_port = free_ports(2)
        self.log_dir = work / "logs"
        settings = broker_config(self._port, self.log_dir)
        settings |= kraft_config(self._port, controller_port) | {
            "log.retention.check.interval.ms": "700",
            "log.initial.task.delay.ms": "500",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
        }
        self._properties = write_properties(work / "broker.properties", settings)
        format_storage(self._properties, ())
        self.bootstrap = f"127.0.0.1:{self._port}"
        self.start()

    def start(self) -> None:
        self._server: AbstractContextManager[subprocess.Popen[bytes]] = running_server(
            KAFKA, "kafka.Kafka", self._properties, self._port
        )
        self._process = self._server.__enter__()

    def kill(self) -> None:
        self._process.kill()
        self.stop()

    def stop(self) -> None:
        self._server.__exit__(None, None, None)


class Follower:
    """A query that reads the folder, fails, is restarted, and keeps what it has committed."""

    def __init__(self, name: str, path: Path, pause: float, **options: object) -> None:
        self.name = name
        self.is_committed = options.get("isolationLevel") == "read_committed"
        self.rows: dict[Place, tuple[str, str]] = {}
        self.lost: set[tuple[str, int, int]] = set()  # partition, the first and the last offset
        self.restarts = self.repeated = self.triggers = 0
        self._pause = pause
        self._due = 0.0
        self._ends: dict[tuple[str, int], int] = defaultdict(lambda: -1)
        self._query = Query(path, **options)
        self._lenient = Query(path, **options, failOnDataLoss=False)

    def step(self, rng: random.Random) -> int:
        """Run a micro-batch, if it is time for one; return the number of its rows."""
        if time.monotonic() < self._due:
            return 0
        self._due = time.monotonic() + rng.random() * self._pause
        self.triggers += 1
        try:
            return self._trigger(self._query, rng)
        except OffsetOutOfRangeError as error:
            self._note_loss(str(error))
        self._lenient.planned = self._query.planned
        self._lenient.committed = self._query.committed
        self._lenient.restart()
        is_planned = len(self._lenient.planned) > self._lenient.committed
        with heard() as warnings:
            rows = self._trigger(self._lenient, rng, is_planned=is_planned)
        for warning in warnings:
            self._note_loss(warning)
        self._query.committed = self._lenient.committed
        self._query.restart()
        return rows

    def _note_loss(self, text: str) -> None:
        found = _LOST.search(text)
        if found is None:
            raise AssertionError(f"{self.name}: {text}")
        partition = found[3] or re.findall(r"[^/]+-\d+(?=/\d{20}\.log)", text)[0]
        self.lost.add((partition, int(found[1]), int(found[2])))

    def _trigger(self, query: Query, rng: random.Random, *, is_planned: bool = False) -> int:
        if rng.random() < 0.2:
            self._restart(query)
        if not is_planned and not query.plan(_limits(rng)):
            return 0
        if rng.random() < 0.2:
            self._restart(query)
        table = query.read(COLUMNS)
        while rng.random() < 0.2:  # the process ended before it committed
            self._restart(query)
            self.repeated += 1
            table = query.read(COLUMNS)
        query.commit()
        return self._take(table.to_pydict())

    def _restart(self, query: Query) -> None:
        self.restarts += 1
        query.restart()

    def _take(self, columns: dict[str, list[Any]]) -> int:
        """Keep rows; return how many are not the broker's own, which never end."""
        before = len(self.rows)
        last = dict(self._ends)
        for topic, partition, offset, control, key, value in zip(*columns.values(), strict=True):
            place = Place(topic, partition, offset)
            assert control is None or not self.is_committed, f"{self.name}: {place} is a marker"
            assert place not in self.rows, f"{self.name}: {place} came twice"
            assert offset > last.get((topic, partition), -1), f"{self.name}: {place} came twice"
            self._ends[topic, partition] = max(offset, self._ends[topic, partition])
            if not topic.startswith("__") and control is None:
                self.rows[place] = (key.decode(), value.decode())
        return len(self.rows) - before


def _limits(rng: random.Random) -> Limits:
    match rng.randrange(6):
        case 0:
            return Limits(records=rng.randint(1, 3000))
        case 1:
            return Limits(bytes=rng.randint(1, 300_000))
        case 2:
            return Limits(files=rng.randint(1, 12))
    return Limits()


class heard(list[str]):  # noqa: N801 - used as a function
    """The warnings of kafkajit within a block."""

    def __enter__(self) -> heard:
        self._handler = logging.Handler(logging.WARNING)
        self._handler.emit = lambda record: self.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger("kafkajit").addHandler(self._handler)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("kafkajit").removeHandler(self._handler)


class Traffic(NamedTuple):
    """What a producer knows: acknowledged records, and the ends of its transactions."""

    acknowledged: dict[Place, tuple[str, str]]
    aborted: set[str]
    unknown: set[str]

    @classmethod
    def read(cls, path: Path) -> Traffic:
        found = cls({}, set(), set())
        for what, *words in _lines(path):
            if what == "ack":
                place = Place(words[0], int(words[1]), int(words[2]))
                assert place not in found.acknowledged, place
                found.acknowledged[place] = (words[3], words[4])
            elif what == "abort":
                found.aborted.add(words[0])
            elif what == "unknown":
                found.unknown.add(words[0])
        return found


def _lines(path: Path) -> Iterator[list[str]]:
    with path.open() as lines:
        for line in lines:
            yield line.rstrip("\n").split("\t")


def main(work: Path, seconds: int, seed: int) -> None:
    """Run everything; raise AssertionError if a record is missing, wrong, or there twice."""
    rng = random.Random(seed)
    classes = work / "classes"
    classes.mkdir()
    compile_java([Path(__file__).with_name("LiveTraffic.java")], classes)
    broker = KilledBroker(work)
    try:
        followers = run(work, classes, broker, seconds, rng)
        check(work, classes, broker, followers)
    finally:
        broker.stop()


def run(
    work: Path, classes: Path, broker: KilledBroker, seconds: int, rng: random.Random
) -> list[Follower]:
    """Let followers read while a producer writes and the broker is killed."""
    traffic = work / "traffic.tsv"
    command = ("produce", broker.bootstrap, str(seconds), str(rng.randrange(1 << 30)))
    with traffic.open("wb") as output:
        producer = subprocess.Popen(java("LiveTraffic", *command, classes=[classes]), stdout=output)
    while not (broker.log_dir / "retained-0").exists():
        time.sleep(0.1)
    killer = threading.Thread(target=keep_killing, args=(broker, seconds))
    killer.start()
    root = broker.log_dir
    followers = [
        Follower("everything", root, 0.5),
        Follower("committed", root, 0.5, isolationLevel="read_committed"),
        Follower("in steps", root, 0.1, isolationLevel="read_committed", maxBytesPerTrigger="400k"),
        Follower("late", root / "retained-*", 25.0),
    ]
    deadline = time.monotonic() + seconds + START_SECONDS
    try:
        while producer.poll() is None or killer.is_alive():
            assert time.monotonic() < deadline, "the producer does not end"
            for follower in followers:
                follower.step(rng)
    finally:
        if producer.poll() is None:
            producer.kill()
        killer.join()
    assert producer.returncode == 0, "the producer failed"
    last_rows = time.monotonic()
    while time.monotonic() < last_rows + SETTLE_SECONDS:
        if sum(follower.step(rng) for follower in followers):
            last_rows = time.monotonic()
    return followers


def keep_killing(broker: KilledBroker, seconds: int) -> None:
    """Kill the broker and start it again."""
    for number in range(KILLS):
        time.sleep(seconds / (KILLS + 1))
        broker.kill()
        progress(f"the broker was killed {number + 1} times")
        time.sleep(2)
        broker.start()


def check(work: Path, classes: Path, broker: KilledBroker, followers: list[Follower]) -> None:
    """Compare what followers have with what was acknowledged and with what a consumer reads."""
    traffic = Traffic.read(work / "traffic.tsv")
    latest: dict[tuple[str, int, str], int] = {}
    for (topic, partition, offset), (key, _) in traffic.acknowledged.items():
        of_key = (topic, partition, key)
        latest[of_key] = max(offset, latest.get(of_key, -1))
    progress(
        f"{len(traffic.acknowledged)} records were acknowledged; {len(traffic.aborted)} "
        f"transactions aborted, {len(traffic.unknown)} with an unknown end"
    )
    for follower in followers:
        isolation = "read_committed" if follower.is_committed else "read_uncommitted"
        consumed, starts = consume(work, classes, broker, isolation)
        topics = {name.rpartition("-")[0] for name in starts}
        if follower.name == "late":
            topics = {"retained"}
        counts: dict[str, int] = defaultdict(int)
        for place, row in traffic.acknowledged.items():
            if place.topic not in topics:
                continue
            if place in follower.rows:
                assert follower.rows[place] == row, (follower.name, place)
                continue
            why = reason(follower, traffic, latest, place, row)
            assert why is not None, f"{follower.name}: {place} is missing: {row}"
            counts[why] += 1
        ours = {place: row for place, row in follower.rows.items() if place.topic in topics}
        for place, row in ours.items():
            if place not in traffic.acknowledged:
                counts["not acknowledged"] += 1
            if follower.is_committed:
                assert row[1].split()[0] not in traffic.aborted, (follower.name, place)
            is_kept = place.topic not in ("retained", "compacted")
            assert not is_kept or place in consumed, f"{place} is not in the broker"
        for place, row in consumed.items():
            assert place.topic not in topics or ours.get(place) == row, (follower.name, place)
        for partition, first, last in follower.lost:
            assert first <= last < starts[partition], (follower.name, partition, first, last)
        progress(
            f"{follower.name}: {len(ours)} records, {follower.triggers} triggers, "
            f"{follower.restarts} restarts, {follower.repeated} micro-batches again, "
            f"{len(follower.lost)} losses; missing or more: {dict(counts)}; "
            f"the consumer reads {len(consumed)}"
        )
    assert starts["retained-0"] > 0, "retention deleted nothing"


def reason(
    follower: Follower,
    traffic: Traffic,
    latest: dict[tuple[str, int, str], int],
    place: Place,
    row: tuple[str, str],
) -> str | None:
    """Why a record that was acknowledged may be missing; None if it may not."""
    topic, partition, offset = place
    transaction = row[1].split()[0]
    if follower.is_committed and transaction in traffic.aborted | traffic.unknown:
        return "aborted"
    if topic == "compacted" and latest[topic, partition, row[0]] > offset:
        return "compacted"
    name = f"{topic}-{partition}"
    if any(name == lost and first <= offset <= last for lost, first, last in follower.lost):
        return "lost"
    return None


def consume(
    work: Path, classes: Path, broker: KilledBroker, isolation: str
) -> tuple[dict[Place, tuple[str, str]], dict[str, int]]:
    """The records that Kafka's own consumer reads, and where each partition starts."""
    path = work / f"{isolation}.tsv"
    command = java("LiveTraffic", "consume", broker.bootstrap, isolation, classes=[classes])
    with path.open("wb") as output:
        subprocess.run(command, check=True, stdout=output)
    found, starts = {}, {}
    for line in _lines(path):
        if line[0] == "starts":
            starts[f"{line[1]}-{line[2]}"] = int(line[3])
        else:
            found[Place(line[0], int(line[1]), int(line[2]))] = (line[3], line[4])
    return found, starts


def progress(text: str) -> None:
    """Print a line with the time."""
    print(time.strftime("%H:%M:%S"), text, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", type=int, nargs="?", default=90, help="of traffic (%(default)s)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument("--work", type=Path, help="an empty folder to keep")
    given = parser.parse_args()
    progress(f"seed {given.seed}")
    with tempfile.TemporaryDirectory(prefix="kafkajit-") as temporary:
        main(given.work or Path(temporary), given.seconds, given.seed)
