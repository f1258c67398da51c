"""A real broker loads repaired partitions: python tests/broker/repairs_back.py [WORK].

Partitions of each kind of tests/support/partition_damages.py are damaged and salvaged, as
tests/support/repair_differential.py does, and put into the log.dirs of a broker. It must load them
without a warning, leave the logs as they are, and give consumers the records that our reader reads,
with both isolation levels. Two more folders hold overlapping segments that were not repaired: a
consumer must get what `repair` keeps of them. Others have lost a marker, which was written anew: a
consumer with read_committed must get the outcome that the marker has. The rest are logs of rows
that were read with read_committed and written with their offsets: both isolation levels must get
them.

    KAFKAJIT_KAFKA_LIB=~/kafka/4.4.0/lib PYTHONPATH=.:tests:tests/support \
        python tests/broker/repairs_back.py

Needs Java 17 and the jars of Kafka, by default 4.1.1's.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from broker import Broker, compile_java, java, running_broker
from changing_log import ChangingLog
from partition_damages import CONFIG, KINDS, TIME, name_of
from producing import write
from repair_differential import run

import kafkajit
import kafkajit.testing as kt

CASES = 3 * len(KINDS)
PLAIN = 10
SETTINGS = {"log.cleaner.enable": "false", "log.retention.ms": "-1"}
Lines = dict[str, list[tuple[int, str]]]


def main(work: Path) -> None:
    """Run everything; raise an AssertionError if the broker and kafkajit disagree."""
    classes = work / "classes"
    classes.mkdir(parents=True)
    compile_java([Path(__file__).with_name("RepairedLogs.java")], classes)
    os.fsync = lambda _: None  # type: ignore[assignment]
    run(CASES, 0, work / "repaired", sorted(KINDS))
    folders = {path.name.replace("_", "-"): path for path in sorted((work / "repaired").iterdir())}
    progress(f"{len(folders)} partitions were damaged and repaired")
    folders |= overlapping(work / "made") | marked(work / "made") | plain(work / "made")
    topics = sorted(folders)
    with running_broker(work, SETTINGS) as broker:
        repaired_logs(classes, broker, "create", *topics)
        log_dirs = broker.log_dir
    expected: dict[str, Lines] = {"read_uncommitted": {}, "read_committed": {}}
    for topic, source in folders.items():
        target = log_dirs / f"{topic}-0"
        metadata = (target / "partition.metadata").read_bytes()
        shutil.rmtree(target)
        shutil.copytree(source / "orders-0", target)
        (target / "partition.metadata").write_bytes(metadata)
        kept = work / "kept" / f"{topic}-0"
        shutil.copytree(target, kept)
        if topic.startswith("overlap"):
            kafkajit.repair(kept, config=CONFIG).apply(keep=False)
        for isolation, lines in expected.items():
            lines[topic] = ours(kept, isolation)
    before = logs_of(log_dirs, topics)
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (log_dirs / name).unlink()
    (log_dirs / ".kafka_cleanshutdown").unlink(missing_ok=True)
    with running_broker(work, SETTINGS) as broker:
        time.sleep(5)
        for isolation, lines in expected.items():
            theirs = consumed(repaired_logs(classes, broker, "consume", isolation, *topics))
            for topic in topics:
                assert theirs[topic] == lines[topic], (
                    topic,
                    isolation,
                    theirs[topic],
                    lines[topic],
                )
            progress(f"{isolation}: {sum(map(len, lines.values())):,} records are the same")
    assert logs_of(log_dirs, topics) == before, "the broker has changed a log"
    progress(f"the broker left all {len(before)} segments as they were")
    check_after(log_dirs)


def check_after(log_dirs: Path) -> None:
    """After the broker's clean stop there is nothing to repair."""
    plan = kafkajit.repair(log_dirs)
    assert not plan.problems
    odd = ("overlap", "bit-in-leader-epoch")  # the broker's own epochs contradict the others
    for partition in plan.partitions:
        if not partition.folder.name.startswith(odd):
            assert not partition.is_needed, str(partition)
    progress(f"after a clean stop {len(plan.partitions)} partitions need no repair but for {odd}")


def overlapping(work: Path) -> dict[str, Path]:
    """Folders with segments that overlap, which a broker loads as they are."""
    histories = {
        "overlap-1": {0: (range(0, 8, 2), "a"), 6: (range(6, 10, 2), "b")},
        "overlap-2": {
            0: (range(0, 20, 2), "a"),
            6: (range(6, 30, 2), "b"),
            26: (range(26, 40, 2), "c"),
        },
        "overlap-3": {0: (range(0, 8, 4), "a"), 6: (range(6, 14, 4), "b")},
    }
    found = {}
    for topic, segments in histories.items():
        folder = work / topic / "orders-0"
        folder.mkdir(parents=True)
        for base, (offsets, word) in segments.items():
            step = offsets.step
            batches = [
                kt.batch(
                    [kt.Record(b"k", f"{word}{offset + row}".encode()) for row in range(step)],
                    base_offset=offset,
                    base_timestamp=TIME + offset,
                )
                for offset in offsets
            ]
            (folder / name_of(base)).write_bytes(b"".join(batches))
        found[topic] = folder.parent
    return found


def marked(work: Path) -> dict[str, Path]:
    """Folders whose lost markers were written."""
    found = {}
    for option in ("abort_open", "commit_open"):
        folder = work / option / "orders-0"
        folder.mkdir(parents=True)
        fields = {"producer_id": 4711, "producer_epoch": 0, "is_transactional": True}
        batches = [
            kt.batch([kt.Record(b"k", b"first")] * 2, base_sequence=0, **fields),  # type: ignore[arg-type]
            bytes(78),
            kt.batch(
                [kt.Record(b"k", b"second")],
                base_offset=3,
                base_sequence=2,
                **fields,  # type: ignore[arg-type]
            ),
            kt.control_batch(1, producer_id=4711, base_offset=4),
            kt.batch([kt.Record(b"k", b"third")], base_offset=5),
        ]
        (folder / name_of(0)).write_bytes(b"".join(batches))
        plan = kafkajit.repair(folder, config=CONFIG, salvage=True, **{option: True})  # type: ignore[arg-type]
        plan.apply(keep=False)
        found[option.replace("_", "-")] = folder.parent
    return found


def plain(work: Path) -> dict[str, Path]:
    """Folders of rows that were read with read_committed, and written with their offsets."""
    found = {}
    for seed in range(PLAIN):
        log = ChangingLog(work / f"source-{seed}" / "orders-0", random.Random(seed))
        for _ in range(12):
            log.append()
        rows = kafkajit.dataset(log.folder, isolation_level="read_committed").to_table()
        if rows.num_rows:
            found[f"plain-{seed}"] = work / f"plain-{seed}"
            options = {"keepOffsets": "true", "transactions": "plain", "segment.ms": 2**62}
            write(work / f"plain-{seed}", [rows.to_batches()], **options)
            expected = [(offset, b"%d" % value) for offset, value in log.records(committed=True)]
            written = ours(work / f"plain-{seed}" / "orders-0", "read_uncommitted")
            assert written == [(offset, value.hex()) for offset, value in expected]
    return found


def ours(folder: Path, isolation: str) -> list[tuple[int, str]]:
    """The records of a partition's folder, by our reader."""
    rows = kafkajit.dataset(
        str(folder), columns=["offset", "value", "controlType"], isolation_level=isolation
    ).to_table()
    rows = [row for row in rows.to_pylist() if row["controlType"] is None]
    return sorted((row["offset"], (row["value"] or b"").hex()) for row in rows)


def repaired_logs(classes: Path, broker: Broker, command: str, *arguments: str) -> str:
    run_ = java("RepairedLogs", command, broker.bootstrap, *arguments, classes=[classes])
    return subprocess.run(run_, check=True, stdout=subprocess.PIPE, text=True).stdout


def consumed(output: str) -> Lines:
    lines: Lines = {}
    for line in output.splitlines():
        topic, offset, value = line.split(" ") if line.count(" ") == 2 else (*line.split(" "), "")
        if offset == "end":
            lines[topic] = []
        else:
            lines[topic].append((int(offset), value))
    return lines


def logs_of(log_dirs: Path, topics: Sequence[str]) -> dict[str, bytes]:
    return {
        f"{topic}/{path.name}": path.read_bytes()
        for topic in topics
        for path in sorted((log_dirs / f"{topic}-0").glob("*.log"))
    }


def progress(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
