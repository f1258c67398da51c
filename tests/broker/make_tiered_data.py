"""Make tests/data/objects/local-storage again: what a broker keeps in LocalTieredStorage.

    python tests/broker/make_tiered_data.py

A Kafka 4.1.1 copies the segments of three partitions with LocalTieredStorage, of Kafka's own tests,
and notes them in __remote_log_metadata. It is restarted once, so that there are two leader epochs,
and then deletes local segments. tests/data/README.md describes the folders.

Needs Java 17 with javac, and Maven the first time.
"""

from __future__ import annotations

import filecmp
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from broker import Broker, compile_java, java, running_broker

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))
from data import OBJECTS, objects, pack  # isort: skip

HERE = Path(__file__).resolve().parent
KIND = "local-storage"
# orders has two partitions; the other topic is called orders-1.
PARTITIONS = ("orders-0", "orders-1", "orders-1-0")
LOCAL_BYTES = 9000  # that remain: segments are in both places
LOG_START = 8  # of orders-1-0, inside a batch
LIMIT = 300_000

# Of any plugin.
REMOTE = {
    "remote.log.storage.system.enable": "true",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "remote.log.manager.task.interval.ms": "500",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "3",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.initialization.retry.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
LOCAL_STORAGE = {
    "remote.log.storage.manager.class.name": (
        "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
    ),
    "rsm.config.delete.on.close": "false",
}


def main(work: Path) -> None:
    """Run the broker twice, and keep its folders."""
    classes = compiled_traffic(work)
    target = emptied(KIND)
    folder = work / "broker"
    config = REMOTE | LOCAL_STORAGE | {"rsm.config.dir": str(folder / "remote")}
    with running_broker(folder, config) as broker:
        traffic(broker, classes, "write", "0", *PARTITIONS)
    with running_broker(folder, config) as broker:
        traffic(broker, classes, "write", "1", *PARTITIONS)
        for name in PARTITIONS:
            shutil.copytree(folder / "logs" / name, target / "original" / name)
        traffic(broker, classes, "start", str(LOG_START), PARTITIONS[-1])
        traffic(broker, classes, "expire", str(LOCAL_BYTES), *PARTITIONS)
        consumed = traffic(broker, classes, "read", *PARTITIONS)
    for name in PARTITIONS:
        add_last(folder / "logs" / name, target / "original" / name)
    keep_logs(folder / "logs", target / "logs", PARTITIONS)
    shutil.copytree(folder / "remote", target / "remote")
    (target / "consumed.tsv").write_bytes(b"partition\toffset\ttimestamp\n" + consumed)
    finish([KIND])


def compiled_traffic(work: Path) -> Path:
    """Return the folder of Traffic's classes."""
    classes = work / "classes"
    classes.mkdir()
    compile_java(sorted(HERE.glob("*Traffic.java")), classes)
    return classes


def traffic(broker: Broker, classes: Path, *arguments: str) -> bytes:
    """Run a command of ObjectsTraffic and return what it prints."""
    names = ("Traffic", "objects", broker.bootstrap, str(broker.log_dir), *arguments)
    return subprocess.run(
        java(*names, classes=[classes]), check=True, stdout=subprocess.PIPE
    ).stdout


def emptied(kind: str) -> Path:
    """Return the folder to fill."""
    target = objects() / kind
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    return target


def add_last(stopped: Path, original: Path) -> None:
    """Take what a stopped broker changes: it trims the active segment's indexes.

    Inactive segments, and all logs, must not have changed since they were copied.
    """
    last = max(path.stem for path in stopped.glob("*.log"))
    for path in sorted(stopped.glob("0*")):
        copy = original / path.name
        if (path.stem == last and path.suffix in {".index", ".timeindex"}) or not copy.exists():
            shutil.copy(path, copy)
        assert filecmp.cmp(path, copy, shallow=False), path


def keep_logs(log_dir: Path, target: Path, partitions: Sequence[str]) -> None:
    """Copy a log directory: partitions, metadata of segments where there is some, loose files."""
    events = [log.parent for log in log_dir.glob("__remote_log_metadata-*/*.log") if size(log)]
    cache = log_dir / "remote-log-index-cache"
    for folder in (*(log_dir / name for name in partitions), *events, cache):
        if folder.exists():
            shutil.copytree(folder, target / folder.name)
    for path in log_dir.glob("*-checkpoint"):
        shutil.copy(path, target)


def finish(kinds: Sequence[str]) -> None:
    """Write the archives, and print how large they are."""
    pack(kinds, OBJECTS, objects())
    sizes = {kind: sum(map(size, (objects() / kind).rglob("*"))) for kind in kinds}
    report(sizes)
    if sum(sizes.values()) > LIMIT:
        sys.exit(f"more than {LIMIT:,} bytes")


def size(path: Path) -> int:
    """Return the size of a file."""
    return path.stat().st_size if path.is_file() else 0


def report(sizes: Mapping[str, int]) -> None:
    """Print sizes, unpacked and packed."""
    for kind, unpacked in sizes.items():
        packed = size(OBJECTS / f"{kind}.tar.xz")
        print(f"{kind}: {unpacked:,} bytes, {packed:,} in its archive")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="kafkajit-") as work:
        main(Path(work))
