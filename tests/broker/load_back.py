"""A real broker loads what kafkajit wrote without one: python tests/broker/load_back.py [WORK].

A real broker makes topics, and is stopped. Their folders are written as docs/restore.md says: a
million records by Spark in every codec, transactions and keys that come again by LogWriter. The
broker starts and stops once more, and has taken all of it up; then our commands repair logs,
truncate, compact and expire them. The broker's own cleaner compacts a copy, which has to become the
same records. The broker starts on what is left, a consumer reads all there is in both isolation
levels, and has to have read what our reader reads, record for record; the broker appends to each
partition, and both read again.

Needs Java 17, Kafka 4.1.1's jars (Maven brings them) and pyspark.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from broker import Broker, compile_java, java, running_broker

import kafkajit

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = 1_000_000
SEGMENT_BYTES = "segment.bytes=1048576"  # the least that a broker takes
# topic: its partitions and its configs
TOPICS: dict[str, tuple[int, tuple[str, ...]]] = {
    "written": (len(CODECS), ()),
    "transactions": (1, ()),
    "repaired": (1, (SEGMENT_BYTES,)),
    "salvaged": (1, (SEGMENT_BYTES,)),
    "truncated": (1, (SEGMENT_BYTES,)),
    "compacted": (1, (SEGMENT_BYTES, "cleanup.policy=compact")),
    "cleaned": (1, (SEGMENT_BYTES, "cleanup.policy=compact", "min.cleanable.dirty.ratio=0")),
    "retained": (1, (SEGMENT_BYTES,)),
    "packed": (1, ()),
    "cured": (1, ()),
    "copied": (3, ()),
}
APPENDED = 100
SEED = 4711


def main(work: Path) -> None:
    """Run everything; raise AssertionError if the broker and kafkajit disagree."""
    classes = work / "classes"
    classes.mkdir()
    compile_java([Path(__file__).with_name("LoadBack.java")], classes)

    def load_back(command: str, broker: Broker, *arguments: str) -> list[Any]:
        run = java("LoadBack", command, broker.bootstrap, *arguments, classes=[classes])
        done = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    config = {"log.cleaner.enable": "false", "log.retention.ms": "-1"}
    with running_broker(work, config) as broker:
        for topic, (partitions, configs) in TOPICS.items():
            load_back("create", broker, topic, str(partitions), *configs)
        log_dir = broker.log_dir
    for topic, write in WRITTEN.items():
        write(log_dir)
        progress(f"{topic}: written")
    with running_broker(work, config):
        progress("the broker has taken that up")
    for topic, change in CHANGED.items():
        change(log_dir / f"{topic}-0")
        progress(f"{topic}: done")
    cleaner = {"log.cleaner.enable": "true", "log.cleaner.backoff.ms": "100"}
    with running_broker(work, config | cleaner):
        wait_for_cleaner(log_dir, "cleaned")
    cleaned, compacted = (records_of(log_dir / f"{name}-0") for name in ("cleaned", "compacted"))
    assert cleaned == compacted
    progress(f"the broker's cleaner and ours leave the same {len(cleaned)} records")
    for appended in (0, APPENDED):
        ours = {topic: digests(log_dir, topic) for topic in TOPICS}
        with running_broker(work, config) as broker:
            for topic in TOPICS:
                read = []
                for isolation in ("read_uncommitted", "read_committed"):
                    theirs = load_back("consume", broker, topic, isolation)
                    assert theirs == ours[topic][isolation], (topic, theirs, ours[topic])
                    read.append(sum(partition["records"] for partition in theirs))
                records, committed = read
                progress(f"{topic}: both read the same {records} records, {committed} committed")
                if not appended:
                    load_back("produce", broker, topic, str(APPENDED))
    progress("after the broker's own appends as well")


def write_with_spark(log_dir: Path) -> None:
    """A million records by column partition, a codec each."""
    from pyspark.sql import functions

    spark = session()
    for partition, codec in enumerate(CODECS):
        rows = spark.range(RECORDS // len(CODECS)).select(
            functions.when(
                functions.col("id") % 7 > 0,
                functions.concat(functions.lit("key "), functions.col("id")),
            ).alias("key"),
            functions.when(
                functions.col("id") % 11 > 0,
                functions.repeat(functions.sha2(functions.col("id").cast("string"), 256), 2),
            )
            .cast("binary")
            .alias("value"),
            functions.expr(
                "CASE WHEN id % 5 = 0 THEN array("
                "named_struct('key', 'h', 'value', CAST(string(id) AS BINARY)),"
                "named_struct('key', 'none', 'value', CAST(NULL AS BINARY))) END"
            ).alias("headers"),
            functions.timestamp_millis(
                functions.lit(1_780_000_000_000) + functions.col("id")
            ).alias("timestamp"),
            functions.lit("written").alias("topic"),
            functions.lit(partition).alias("partition"),
        )
        writer = rows.coalesce(1).write.format("kafkaLog").mode("append")
        writer.option("compressionType", codec).save(str(log_dir))


def copy_with_spark(log_dir: Path) -> None:
    """The same records again, over another number of partitions, by their keys."""
    rows = session().read.format("kafkaLog").load(f"{log_dir}/written-*")
    rows = rows.select("key", "value", "headers", "timestamp")
    writer = rows.write.format("kafkaLog").mode("append")
    writer.option("topic", "copied").option("partitions", 3).save(str(log_dir))


def session() -> Any:
    """A local Spark that knows kafkaLog."""
    from kafkajit.spark import local_session

    return local_session()


def write_transactions(log_dir: Path) -> None:
    """Write committed and aborted transactions of two producers, and one that stays open."""
    with kafkajit.LogWriter(log_dir / "transactions-0", {"segment.bytes": 50_000}) as log:
        for number in range(2000):
            producer, epoch = number % 2 + 1000, 0
            end = ("COMMIT", "COMMIT", "ABORT")[number % 3]
            values = [b"%d of %s" % (row, end.encode()) for row in range(number % 50 + 1)]
            said = {"producer_id": producer, "producer_epoch": epoch, "is_transactional": True}
            append(log, pa.table({"value": values}), base_sequence=0, **said)
            if number != 1998:
                append(log, pa.table({"controlType": [end]}), **said)


def append(log: kafkajit.LogWriter, records: pa.Table, **options: Any) -> None:
    """Append behind the existing records."""
    log.append(kafkajit.encode_batches(records, base_offset=log.log_end_offset, **options))


def fill(folder: Path, batches: int = 5000) -> None:
    """A partition of batches in all codecs whose keys come again and again."""
    rng = random.Random(SEED)
    with kafkajit.LogWriter(folder, {"segment.bytes": 1 << 20}) as log:
        for number in range(batches):
            rows = range(rng.randint(1, 40))
            table = pa.table(
                {
                    "key": [b"key %d" % rng.randrange(3000) for _ in rows],
                    "value": [rng.choice([None, rng.randbytes(100)]) for _ in rows],
                    "timestamp": [1_780_000_000_000 + 1000 * number + row for row in rows],
                }
            )
            append(log, table, compression_type=CODECS[number % len(CODECS)])


def repair(folder: Path) -> None:
    """A log whose end is garbage, and whose indexes are gone."""
    last = max(folder.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-30] + random.Random(1).randbytes(1000))
    for index in folder.glob("*index"):
        index.unlink()
    command("repair", folder, "--apply")


def salvage(folder: Path) -> None:
    """A log with damaged blocks in the middle."""
    for log in sorted(folder.glob("*.log"))[1:4]:
        content = bytearray(log.read_bytes())
        content[400_000:404_096] = bytes(4096)
        log.write_bytes(content)
    command("repair", folder, "--salvage", "--apply")


def truncate(folder: Path) -> None:
    """Truncate to an offset in the middle of a batch."""
    command("repair", folder, "--truncate-to", "4711", "--apply")


def compact(folder: Path) -> None:
    """The last value of each key."""
    command("compact", folder, "--config", "cleanup.policy=compact", "--apply")


def wait_for_cleaner(log_dir: Path, topic: str) -> None:
    """Wait until the broker has compacted a partition."""
    deadline = time.monotonic() + 120
    checkpoint = log_dir / "cleaner-offset-checkpoint"
    while time.monotonic() < deadline:
        if checkpoint.exists() and any(
            row["topic"] == topic and row["offset"] > 0
            for row in kafkajit.read_checkpoint(checkpoint).to_pylist()
        ):
            return
        time.sleep(0.2)
    raise TimeoutError(f"the broker has not compacted {topic} in two minutes")


def records_of(folder: Path) -> list[dict[str, Any]]:
    """The summary of a log's records."""
    columns = ["offset", "timestamp", "key", "value", "headers"]
    return [
        row
        for segment in kafkajit.Log(folder).segments
        for row in kafkajit.read_records(segment.log.path, columns=columns).to_pylist()
    ]


def retain(folder: Path) -> None:
    """The last segments."""
    command("retain", folder, "--config", "retention.bytes=3000000", "--apply")


def pack(folder: Path) -> None:
    """Another log's batches, compressed anew."""
    with kafkajit.LogWriter(folder) as log:
        for segment in kafkajit.Log(folder.with_name("retained-0")).segments:
            path = segment.log.path
            batches = kafkajit.read_record_batches(path)
            records = kafkajit.iter_records(path)
            for part in kafkajit.iter_encoded_batches(
                records, batches=batches, compression_type="zstd", compression_level=9
            ):
                log.append(part)


def cure(folder: Path) -> None:
    """Another log without some of its records."""
    with kafkajit.LogWriter(folder) as log:
        for segment in kafkajit.Log(folder.with_name("truncated-0")).segments:
            records = kafkajit.read_records(segment.log.path)
            poison = pc.is_in(records["offset"], pa.array([0, 7, 8, 9, 4700]))
            sound = records.filter(pc.invert(poison))
            log.append(kafkajit.encode_batches(sound, source=segment.log.path))


CHANGED: dict[str, Callable[[Path], None]] = {
    "repaired": repair,
    "salvaged": salvage,
    "truncated": truncate,
    "compacted": compact,
    "retained": retain,
    "packed": pack,
    "cured": cure,
}
WRITTEN: dict[str, Callable[[Path], None]] = {
    "written": write_with_spark,
    "transactions": write_transactions,
    "copied": copy_with_spark,
    **{
        topic: lambda log_dir, name=f"{topic}-0": fill(log_dir / name)
        for topic in ("repaired", "salvaged", "truncated", "compacted", "cleaned", "retained")
    },
}


def command(*arguments: object) -> None:
    """Run kafkajit as a user would."""
    subprocess.run([sys.executable, "-m", "kafkajit.cli", *map(str, arguments)], check=True)


def digests(log_dir: Path, topic: str) -> dict[str, list[dict[str, Any]]]:
    """The lines that LoadBack has to print for each isolation level."""
    found: dict[str, list[dict[str, Any]]] = {"read_uncommitted": [], "read_committed": []}
    for partition in range(TOPICS[topic][0]):
        log = kafkajit.Log(log_dir / f"{topic}-{partition}")
        for isolation, rows in found.items():
            rows.append({"partition": partition, **digest(log, isolation)})
    return found


def digest(log: kafkajit.Log, isolation: str) -> dict[str, Any]:
    """How many records, the first and the last offset, and their SHA-256."""
    sha, count, first, last = hashlib.sha256(), 0, -1, -1
    is_committed = isolation == "read_committed"
    end = log.last_stable_offset if is_committed else log.end_offset
    aborted = log.aborted_transactions(log.start_offset, end).to_pylist() if is_committed else []
    for segment in log.segments:
        for batch in kafkajit.iter_records(segment.log.path):
            for row in batch.to_pylist():
                offset, producer = row["offset"], row["producerId"]
                if row["controlType"] or not log.start_offset <= offset < end:
                    continue
                if row["isTransactional"] and any(
                    gone["producerId"] == producer
                    and gone["firstOffset"] <= offset <= gone["lastOffset"]
                    for gone in aborted
                ):
                    continue
                sha.update(bytes_of(row))
                first = offset if count == 0 else first
                last, count = offset, count + 1
    return {
        "start": log.start_offset,
        "end": end,
        "records": count,
        "first": first,
        "last": last,
        "sha256": sha.hexdigest(),
    }


def bytes_of(row: dict[str, Any]) -> bytes:
    """A record as LoadBack.java writes it down."""

    def field(data: bytes | None) -> bytes:
        return struct.pack(">i", -1 if data is None else len(data)) + (data or b"")

    millis = round(row["timestamp"].timestamp() * 1000)
    parts = [struct.pack(">qq", row["offset"], millis), field(row["key"]), field(row["value"])]
    for header in row["headers"] or ():
        key = header["key"].encode()
        parts += [struct.pack(">H", len(key)), key, field(header["value"])]
    return b"".join(parts)


def progress(message: str) -> None:
    """Print a line of progress."""
    print(message, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
