"""A real broker serves what was restored.

    PYTHONPATH=.:tests/support python tests/broker/restore_back.py [WORK]

The segments are those that brokers with tiered storage have copied (tests/data/objects). They come
back in the ways that docs/tiered.md describes:

new cluster     topics are created, the broker stops, and the empty logs are replaced
by id           a broker has lost its logs, and they come back under the ids of their topics
same cluster    a broker has lost its disk; its backup has the topics' ids
ends in a batch the logs end behind some records of a batch, which is rewritten
other producers the old cluster and the new one give their first producers the same ids

Each time the broker starts on what was restored, without a word about damage or a log put aside. A
consumer reads all of it in both isolation levels, and has to read what the original logs have,
record for record. The broker appends to each partition, and starts once more after a crash.

Needs Java 17 and Kafka 4.1.1's jars (Maven brings them).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import data
import load_back
from broker import Broker, compile_java, java, running_broker

import kafkajit

ARCHIVE = data.objects() / "local-storage"
TOPICS = {"orders": 2, "orders-1": 1}
PARTITIONS = [f"{topic}-{number}" for topic, count in TOPICS.items() for number in range(count)]
APPENDED = 50
CONFIG = {"log.cleaner.enable": "false", "log.retention.ms": "-1"}
# The broker's words about a log that it cannot take as it is.
COMPLAINTS = re.compile(r"ERROR|[Cc]orrupt|stray|Found file .* with non|no index|truncat", re.M)


class Cluster:
    """A cluster of one broker in a folder of its own."""

    def __init__(self, work: Path, classes: Path) -> None:
        self.work = work
        self._classes = classes
        work.mkdir()

    @property
    def log_dir(self) -> Path:
        return self.work / "logs"

    def running(self) -> Any:
        return running_broker(self.work, CONFIG, talks=True)

    def client(self, command: str, broker: Broker, *arguments: str) -> list[Any]:
        """Run LoadBack's command, and return its lines."""
        run = java("LoadBack", command, broker.bootstrap, *arguments, classes=[self._classes])
        done = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def create(self) -> None:
        """Create the topics, and stop the broker."""
        with self.running() as broker:
            for topic, count in TOPICS.items():
                self.client("create", broker, topic, str(count))

    def check(self, expected: dict[str, dict[str, Any]]) -> None:
        """Start the broker on what was restored; it has to serve the records that are expected."""
        with self.running() as broker:
            read = self.consume(broker, expected)
            said = (self.work / "broker.out").read_text()
            assert said.count("Completed load of Log") >= len(PARTITIONS)
            complaints = [line for line in said.splitlines() if COMPLAINTS.search(line)]
            assert not complaints, complaints
            for topic in TOPICS:
                self.client("produce", broker, topic, str(APPENDED))
            after = digests(self.log_dir)
            for name, there in after["read_uncommitted"].items():
                before = expected["read_uncommitted"][name]["records"]
                assert there["records"] == before + APPENDED, (name, there, before)
            self.consume(broker, after)
            broker.kill()
        with self.running() as broker:  # which recovers the logs
            self.consume(broker, after)
        assert not list(self.log_dir.glob("*-stray"))
        load_back.progress(f"  the same {read} records, also after appends and a crash")

    def consume(self, broker: Broker, expected: dict[str, dict[str, Any]]) -> int:
        """Read all records in both isolation levels, and compare; return how many there are."""
        count = 0
        for isolation in ("read_uncommitted", "read_committed"):
            for topic in TOPICS:
                for row in self.client("consume", broker, topic, isolation):
                    name = f"{topic}-{row.pop('partition')}"
                    assert row == expected[isolation][name], (name, row, expected[isolation][name])
                    count += row["records"]
        return count


def main(work: Path) -> None:
    """Run everything; raise AssertionError if the broker finds other records."""
    classes = work / "classes"
    classes.mkdir()
    compile_java([Path(__file__).with_name("LoadBack.java")], classes)
    expected = digests(originals(work / "original"))
    for name, restore in WAYS.items():
        load_back.progress(name)
        cluster = Cluster(work / name.replace(" ", "-"), classes)
        cluster.create()
        restore(cluster)
        cluster.check(expected)
    load_back.progress("other producers: the new cluster gives them the ids of the old one")
    old, new = (Cluster(work / name, classes) for name in ("old", "new"))
    old.create()
    with old.running() as broker:
        for topic in TOPICS:
            old.client("produce", broker, topic, str(APPENDED))
    new.create()
    run(["--apply", "--into-existing-topics", str(old.log_dir), str(new.log_dir)])
    new.check(digests(old.log_dir))
    for share in (0.3, 0.6, 0.9):
        load_back.progress(f"ends in a batch, at {share:.0%} of the log")
        cluster = Cluster(work / f"ends-{share}", classes)
        cluster.create()
        every = {name: rows_of(cluster.work.parent / "original", name) for name in PARTITIONS}
        for name, rows in every.items():
            every[name] = rows[: end_in_batch(rows, share)]
            end = str(every[name][-1]["offset"] + 1)
            command(cluster, "--into-existing-topics", "--partition", name, "--ending-offset", end)
        cluster.check(digests(cluster.log_dir))
        for name, rows in every.items():
            # The broker has appended after them.
            assert rows_of(cluster.log_dir, name)[: len(rows)] == rows, name


def into_new_cluster(cluster: Cluster) -> None:
    """Replace the empty logs of topics that were created for it."""
    command(cluster, "--into-existing-topics")


def by_id(cluster: Cluster) -> None:
    """Restore lost logs under the ids that their topics have in the cluster."""
    ids = {}
    for topic in TOPICS:
        metadata = cluster.log_dir / f"{topic}-0" / "partition.metadata"
        (row,) = kafkajit.read_partition_metadata(metadata).to_pylist()
        ids[topic] = row["topicId"]
    lose_logs(cluster)
    options = [word for topic, id_ in ids.items() for word in ("--topic-id", f"{topic}={id_}")]
    command(cluster, *options, "--leader-epoch", "0")


def same_cluster(cluster: Cluster) -> None:
    """Restore the logs of a broker's disk from a backup of it, which was restored before."""
    into_new_cluster(cluster)
    backup = cluster.work / "backup"
    shutil.copytree(cluster.log_dir, backup)
    lose_logs(cluster)
    # A new disk was not shut down: the broker recovers all logs.
    (cluster.log_dir / ".kafka_cleanshutdown").unlink()
    run(["--apply", str(backup), str(cluster.log_dir)])


WAYS: dict[str, Callable[[Cluster], None]] = {
    "new cluster": into_new_cluster,
    "by id": by_id,
    "same cluster": same_cluster,
}


def command(cluster: Cluster, *options: str) -> None:
    """Run kafkajit restore on the broker's folder: from tiered storage and the old broker's."""
    sources = (str(ARCHIVE / "remote"), str(ARCHIVE / "logs"))
    run(["--apply", *options, *sources, str(cluster.log_dir)])


def run(words: list[str]) -> None:
    """Run kafkajit restore as a user would."""
    subprocess.run([sys.executable, "-m", "kafkajit.cli", "restore", *words], check=True)


def lose_logs(cluster: Cluster) -> None:
    """Remove the folders of partitions, as a fault of the disk does."""
    for name in PARTITIONS:
        shutil.rmtree(cluster.log_dir / name)


def originals(folder: Path) -> Path:
    """The whole logs as their brokers had them."""
    shutil.copytree(ARCHIVE / "original", folder)
    shutil.copy(ARCHIVE / "logs" / "log-start-offset-checkpoint", folder)
    return folder


def rows_of(log_dir: Path, name: str) -> list[dict[str, Any]]:
    """The records of a log, with the fields that survive a move to another cluster."""
    log = kafkajit.Log(log_dir / name)
    names = ("offset", "timestamp", "key", "value", "headers", "controlType")
    return [
        {name: row[name] for name in names} | {"batch": row["baseOffset"]}
        for segment in log.segments
        for batch in kafkajit.iter_records(segment.log.path)
        for row in batch.to_pylist()
        if row["offset"] >= log.start_offset
    ]


def end_in_batch(rows: list[dict[str, Any]], share: float) -> int:
    """The number of rows up to an end inside a batch, near a share of the log."""
    inside = [at for at in range(1, len(rows)) if rows[at]["batch"] == rows[at - 1]["batch"]]
    return min(inside, key=lambda at: abs(at - share * len(rows)))


def digests(log_dir: Path) -> dict[str, dict[str, Any]]:
    """Per isolation level and partition, what a consumer has to read."""
    return {
        isolation: {
            name: load_back.digest(kafkajit.Log(log_dir / name), isolation) for name in PARTITIONS
        }
        for isolation in ("read_uncommitted", "read_committed")
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
