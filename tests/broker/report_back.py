"""Reports of a real broker's folder, and a real broker that loads imported files.

    PYTHONPATH=.:tests:tests/support python tests/broker/report_back.py 40

ReportTraffic.java makes topics with records of all codecs, transactions (committed, aborted, one
left open), consumer groups with and without members, deleted records and a compacted topic, and
goes on writing. Meanwhile `kafkajit report` and `kafkajit info` read the folder again and again.
Their offsets, lags, share groups, sizes and open transactions have to lie between the broker's own
figures before and after, and they may report no damage. Once the producer has ended, and again
after the broker has stopped, they have to be the same.

Then `kafkajit import` makes logs of Parquet, JSON lines and CSV files that pyarrow wrote. The
broker loads them, its consumer has to read the records of the files, and it appends to them.

Needs Java 17 and Kafka 4.1.1's jars (Maven brings them).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from broker import compile_java, java, running_broker
from load_back import bytes_of

# Consumers see the start of a log in the checkpoint, and segments are never too old.
CONFIG = {
    "log.retention.ms": "-1",
    "log.flush.start.offset.checkpoint.interval.ms": "300",
    "log.initial.task.delay.ms": "300",
}
MOVING = ("busy", "users")  # the topics that are written to until the end
DEPTHS = ("--deep", "--quick", None)
# Findings of a sound folder. A cleaner may be at work.
SOUND = {"openTransaction", "leftover"}
IMPORTED = ("parquet", "jsonl", "csv")
RECORDS = 20_000  # of each imported topic
APPENDED = 100
_TRANSACTION = re.compile(r"the transaction of producer (\d+) is open since offset (\d+)")

Partition = tuple[str, int]


class Figures(NamedTuple):
    """What the broker says."""

    offsets: dict[Partition, tuple[int, int, int]]  # earliest, latest, last stable
    groups: dict[tuple[str, str, int], tuple[int, int]]  # committed offset, members
    shares: dict[tuple[str, str, int], int]  # the start of a share group
    sizes: dict[Partition, int]  # bytes of the logs
    open: set[tuple[str, int, int, int]]  # topic, partition, producer, first offset

    @classmethod
    def parsed(cls, lines: str) -> Figures:
        found = cls({}, {}, {}, {}, set())
        for what, *words in (line.split("\t") for line in lines.splitlines()):
            if what == "offsets":
                earliest, latest, stable = map(int, words[2:])
                found.offsets[words[0], int(words[1])] = earliest, latest, stable
            elif what == "group":
                found.groups[words[0], words[1], int(words[2])] = int(words[3]), int(words[4])
            elif what == "share":
                found.shares[words[0], words[1], int(words[2])] = int(words[3])
            elif what == "size":
                found.sizes[words[0], int(words[1])] = int(words[2])
            elif what == "open":
                found.open.add((words[0], *map(int, words[1:])))  # type: ignore[arg-type]
        return found


def main(work: Path, seconds: int, seed: int) -> None:
    """Run everything; raise AssertionError if the broker and kafkajit disagree."""
    classes = work / "classes"
    classes.mkdir()
    sources = ("ReportTraffic.java", "LoadBack.java")
    compile_java([Path(__file__).with_name(name) for name in sources], classes)
    check_reports(work, classes, seconds, random.Random(seed))
    check_imports(work, classes, seed)


def check_reports(work: Path, classes: Path, seconds: int, rng: random.Random) -> None:
    """Compare reports with a broker that is written to, that rests, and that has stopped."""
    with running_broker(work, CONFIG) as broker:

        def figures() -> Figures:
            run = java("ReportTraffic", "figures", broker.bootstrap, classes=[classes])
            done = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True)
            return Figures.parsed(done.stdout)

        log_dir = broker.log_dir
        producer = subprocess.Popen(
            java("ReportTraffic", "write", broker.bootstrap, classes=[classes]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert producer.stdin is not None
        assert producer.stdout is not None
        try:
            assert producer.stdout.readline() == "ready\n", "the producer failed"
            reports = 0
            deadline = time.monotonic() + seconds
            before = figures()
            while time.monotonic() < deadline or reports < len(DEPTHS):
                taken = report(log_dir, DEPTHS[reports % len(DEPTHS)])
                seen = info(log_dir)
                after = figures()
                check(taken, seen, before, after)
                check_members(taken, after)
                before = after
                reports += 1
                time.sleep(rng.random())
            assert producer.poll() is None, "the producer ended early"
            check_page(log_dir, work / "live.html")
        finally:
            producer.stdin.close()
            producer.wait(30)
        progress(f"{reports} reports of a broker that is written to")
        last = figures()
        check(report(log_dir, "--deep"), info(log_dir), last, last)
        assert last.shares
        assert last.sizes
        progress("a report of the running broker has its figures")
    taken = report(log_dir, "--deep")
    check(taken, info(log_dir), last, last)
    check_content(taken)
    check_page(log_dir, work / "stopped.html")
    totals = taken["totals"]
    progress(
        f"a report of the stopped broker, too: {totals['partitions']} partitions, "
        f"{totals['records']:,} records, {len(last.groups)} commits, "
        f"{len(last.open)} open transactions"
    )


def check(
    taken: Mapping[str, Any], seen: Mapping[str, Any], before: Figures, after: Figures
) -> None:
    """Compare a report and the quick look behind it with the broker before and after both."""
    wrong = troubles_of(taken)
    assert not wrong, wrong
    reported, looked_at = partitions_of(taken), partitions_of(seen)
    for partition, (_, latest, _) in before.offsets.items():
        _, later, _ = after.offsets[partition]
        for found in (reported, looked_at):
            one = found[partition]
            assert latest <= one["endOffset"] <= later, (partition, one, latest, later)
        assert looked_at[partition]["problem"] is None
        if partition[0] not in MOVING and not partition[0].startswith("__"):
            earliest = after.offsets[partition][0]
            starts = reported[partition]["startOffset"], looked_at[partition]["startOffset"]
            assert starts == (earliest, earliest), (partition, starts, earliest)
    for partition, size in after.sizes.items():
        if partition[0] not in MOVING and before.sizes.get(partition) == size:
            found = reported[partition]["bytes"], looked_at[partition]["bytes"]
            assert found == (size, size), (partition, found, size)
    shares = {
        (one["group"], one["topic"], one["partition"]): one["offset"]
        for one in taken["groups"]
        if one["kind"] == "share"
    }
    assert shares == after.shares, (shares, after.shares)
    commits = {
        (one["group"], one["topic"], one["partition"]): one
        for one in taken["groups"]
        if one["kind"] == "consumers"
    }
    assert commits.keys() == after.groups.keys(), commits.keys() ^ after.groups.keys()
    for name, (offset, _) in after.groups.items():
        _, end, _ = after.offsets[name[1:]]
        assert (commits[name]["offset"], commits[name]["lag"]) == (offset, end - offset), name
    assert {one for one in transactions(taken) if one[0] not in MOVING} == after.open


def troubles_of(taken: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The trouble that a sound folder has not; a compacted log lacks offsets between segments."""
    return [
        one for one in taken["trouble"] if one["kind"] not in SOUND and one["severity"] != "note"
    ]


def commits_of(taken: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The commits of groups of consumers."""
    return [one for one in taken["groups"] if one["kind"] == "consumers"]


def check_members(taken: Mapping[str, Any], figures: Figures) -> None:
    """Compare whether groups have members with the broker."""
    for one in commits_of(taken):
        _, members = figures.groups[one["group"], one["topic"], one["partition"]]
        assert one["hasMembers"] == (members > 0), one


def check_content(taken: Mapping[str, Any]) -> None:
    """Compare a report with what the producer has sent."""
    topics = {topic["topic"]: topic for topic in taken["topics"]}
    assert topics["codecs"]["records"] == 5 * 2000
    assert set(topics["codecs"]["codecs"]) == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert [one["records"] for one in topics["codecs"]["eachPartition"]] == [2000] * 5
    assert topics["plain"]["records"] == topics["appended"]["records"] == 500
    assert set(topics["appended"]["timestampTypes"]) == {"LogAppendTime"}
    assert topics["ledger"]["records"] == 7 * 50
    assert topics["ledger"]["controlBatches"] == 2 * 6
    assert topics["ledger"]["abortedTransactions"] == 2 * 3
    assert topics["users"]["missingOffsets"] > 0, "the cleaner has not run"


def transactions(taken: Mapping[str, Any]) -> Iterator[tuple[str, int, int, int]]:
    """The transactions that a report calls open."""
    for one in taken["trouble"]:
        if one["kind"] == "openTransaction":
            found = _TRANSACTION.search(one["problem"])
            assert found is not None, one
            yield one["topic"], one["partition"], int(found[1]), int(found[2])


def partitions_of(document: Mapping[str, Any]) -> dict[Partition, dict[str, Any]]:
    """A document's partitions."""
    return {
        (topic["topic"], one["partition"]): one
        for topic in document["topics"]
        for one in topic["eachPartition"]
    }


def report(log_dir: Path, depth: str | None) -> dict[str, Any]:
    """Run `kafkajit report` as a user would."""
    options = [] if depth is None else [depth]
    document: dict[str, Any] = json.loads(command("report", "--format", "json", *options, log_dir))
    return document


def info(log_dir: Path) -> dict[str, Any]:
    """Run `kafkajit info` as a user would, for a reader and for a program."""
    assert "busy" in command("info", log_dir)
    document: dict[str, Any] = json.loads(command("info", "--format", "json", log_dir))
    return document


def check_page(log_dir: Path, path: Path) -> None:
    """Make a page; its summary mentions no damage."""
    words = [sys.executable, "-m", "kafkajit.cli", "report", "-o", str(path), str(log_dir)]
    done = subprocess.run(words, check=True, stderr=subprocess.PIPE, text=True)
    assert "damage" not in done.stderr, done.stderr
    assert path.read_text().startswith("<!DOCTYPE html>")


def check_imports(work: Path, classes: Path, seed: int) -> None:
    """Import files, have the broker load them, and compare what its consumer reads."""

    def load_back(name: str, bootstrap: str, *arguments: str) -> list[Any]:
        run = java("LoadBack", name, bootstrap, *arguments, classes=[classes])
        done = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    with running_broker(work, CONFIG) as broker:
        for format_ in IMPORTED:
            load_back("create", broker.bootstrap, f"from-{format_}", "2")
        log_dir = broker.log_dir
    tables = {}
    for number, format_ in enumerate(IMPORTED):
        topic = f"from-{format_}"
        tables[topic] = source(random.Random(seed + number), topic, is_text=format_ != "parquet")
        file = work / f"{topic}.{format_}"
        WRITERS[format_](tables[topic], file)
        codec = ("zstd", "lz4", "none")[number]
        command("import", "--apply", "--codec", codec, file, work / "imported")
        for partition in range(2):  # as docs/restore.md says
            target = log_dir / f"{topic}-{partition}"
            for name in target.glob(f"{0:020}.*"):
                name.unlink()
            for name in (work / "imported" / target.name).iterdir():
                if name.name != "partition.metadata":
                    shutil.copy2(name, target)
    ours = partitions_of(report(log_dir, "--deep"))
    with running_broker(work, CONFIG) as broker:
        for topic, table in tables.items():
            theirs = load_back("consume", broker.bootstrap, topic, "read_committed")
            assert theirs == [expected(table, partition) for partition in range(2)], (topic, theirs)
            for one in theirs:
                found = ours[topic, one["partition"]]
                assert (found["records"], found["endOffset"]) == (one["records"], one["end"])
            load_back("produce", broker.bootstrap, topic, str(APPENDED))
            read = sum(one["records"] for one in theirs)
            progress(f"{topic}: the consumer reads the {read:,} records of the file")
    taken = report(log_dir, "--deep")
    wrong = troubles_of(taken)
    assert not wrong, wrong
    for name, found in partitions_of(taken).items():
        if name[0] in tables:
            assert found["records"] == ours[name]["records"] + APPENDED, name
    progress("after the broker's own appends as well")


def source(rng: random.Random, topic: str, *, is_text: bool) -> pa.Table:
    """Records of two partitions, with gaps between their offsets."""
    offsets = [0, 0]
    columns: dict[str, list[Any]] = {
        name: []
        for name in ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
    }
    for number in range(RECORDS):
        partition = rng.randrange(2)
        value = f'Grüße {number}, "世界"\n' * rng.randrange(1, 6)
        row = (
            topic,
            partition,
            offsets[partition],
            1_780_000_000_000 + 37 * number - rng.randrange(1000),
            None if number % 7 == 0 else f"key {rng.randrange(500)}",
            None if number % 11 == 0 else "" if number % 13 == 0 else value,
            [{"key": "h", "value": str(number)}, {"key": "ü", "value": None}]
            if number % 5 == 0
            else [],
        )
        for column, cell in zip(columns.values(), row, strict=True):
            column.append(cell)
        offsets[partition] += rng.choice([1, 1, 1, 2, 70])
    bytes_ = pa.string() if is_text else pa.binary()
    types = {
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("ms", "UTC"),
        "key": bytes_,
        "value": bytes_,
        "headers": pa.list_(pa.struct({"key": pa.string(), "value": bytes_})),
    }
    return pa.table({name: pa.array(columns[name], type_) for name, type_ in types.items()})


def write_json_lines(table: pa.Table, path: Path) -> None:
    """Write JSON lines, with timestamps in milliseconds."""
    millis = table["timestamp"].cast(pa.int64())
    place = table.schema.get_field_index("timestamp")
    rows = table.set_column(place, "timestamp", millis).to_pylist()
    lines = (json.dumps(row, ensure_ascii=number % 2 == 0) for number, row in enumerate(rows))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_csv(table: pa.Table, path: Path) -> None:
    """Write CSV, with headers in JSON and times in ISO 8601."""
    headers = pa.array([json.dumps(cell) for cell in table["headers"].to_pylist()])
    times = pa.array([cell.isoformat() for cell in table["timestamp"].to_pylist()])
    for name, column in (("headers", headers), ("timestamp", times)):
        table = table.set_column(table.schema.get_field_index(name), name, column)
    pyarrow.csv.write_csv(table, path)


WRITERS = {
    "parquet": pyarrow.parquet.write_table,
    "jsonl": write_json_lines,
    "csv": write_csv,
}


def expected(table: pa.Table, partition: int) -> dict[str, Any]:
    """The line that LoadBack has to print for a partition of these records."""
    rows = [row for row in table.to_pylist() if row["partition"] == partition]
    sha = hashlib.sha256()
    for row in rows:
        headers = [header | {"value": _encoded(header["value"])} for header in row["headers"]]
        fields = {"key": _encoded(row["key"]), "value": _encoded(row["value"]), "headers": headers}
        sha.update(bytes_of(row | fields))
    first, last = rows[0]["offset"], rows[-1]["offset"]
    return {
        "partition": partition,
        "start": first,
        "end": last + 1,
        "records": len(rows),
        "first": first,
        "last": last,
        "sha256": sha.hexdigest(),
    }


def _encoded(text: str | bytes | None) -> bytes | None:
    return text.encode() if isinstance(text, str) else text


def command(*arguments: object) -> str:
    """Run kafkajit as a user would, and return what it prints."""
    words = [sys.executable, "-m", "kafkajit.cli", *map(str, arguments)]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def progress(text: str) -> None:
    """Print a line with the time."""
    print(time.strftime("%H:%M:%S"), text, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", type=int, nargs="?", default=40, help="of traffic (%(default)s)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument("--work", type=Path, help="an empty folder to keep")
    given = parser.parse_args()
    progress(f"seed {given.seed}")
    with tempfile.TemporaryDirectory(prefix="kafkajit-") as temporary:
        main(given.work or Path(temporary), given.seconds, given.seed)
