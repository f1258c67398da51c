"""Make tests/data again: segments that real brokers wrote, and the output of Kafka's oracle.

In: nothing but Java, Maven (the first time) and this folder. Out, all of it or the parts that
--only names: tests/data/v2 and tests/data/internal, partition folders as Kafka 4.1.1 left them,
and tests/data/old, of formats v0 and v1 by Kafka 2.8.2; tests/data/tiered, of a Kafka 4.1.1 with
remote storage; tests/data/damaged, segments made of v2's
bytes; tests/data/messages, segments of older formats by our own builder; tests/data/payloads, what
internal topics can hold, by Kafka's own serializers; beside every file that
`kafka.tools.DumpLogSegments` reads, what it prints; tests/data/usage, what it says to arguments
that it refuses; tests/data/indexes, what Kafka's indexes answer; tests/data/written, segments by
encode_batches and what Kafka's classes read in them; and tests/data/logs, what Kafka's log does to
partition folders. All of it is written to build/test-data, and packed into an archive for each
folder of tests/data. tests/data/README.md has the naming rules.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from append_goldens import append_goldens
from broker import (
    Broker,
    Dump,
    compile_java,
    dump_log,
    dump_tool,
    java,
    running_broker,
    running_old_broker,
)
from damage import SOURCES, damaged_logs
from index_damage import damaged_indexes
from index_scripts import index_scripts
from log_goldens import log_goldens, write_tar
from log_operations import LogOperations
from messages import message_logs
from repair_goldens import repair_goldens

# In tests/support, which append_goldens puts on the path.
from data import pack, unpacked  # isort: skip
from written_logs import written_logs  # isort: skip

DATA = unpacked()
FIRST_SEGMENT = "00000000000000000000.log"
PAYLOADS = Path(__file__).with_name("Payloads.java")
TRAFFIC = sorted(Path(__file__).parent.glob("*Traffic.java"))

# Every kind of golden, and the oracle's flags for it.
KINDS = {
    "batches": (),
    "deep": ("--deep-iteration",),
    "data": ("--print-data-log",),
    "skip": ("--print-data-log", "--skip-record-metadata"),
}
SIDECAR_FILES = {".index", ".timeindex", ".txnindex", ".snapshot"}
DECODERS = ("Long", "Integer", "String", "Default")
DECODER_KINDS = {
    name.lower(): tuple(
        f"--{side}-decoder-class=org.apache.kafka.tools.api.{name}Decoder"
        for side in ("key", "value")
    )
    for name in DECODERS
}
SIDE_KINDS = {"dump": ()}
INDEX_KINDS = {"verify": ("--verify-index-only",), "sanity": ("--index-sanity-check",)}
# Folders whose indexes have those too; their empty side files are dumped as well.
INDEX_FOLDERS = {
    *("empty-0", "segments-0", "crashed-0", "preallocated-0"),
    *("v0-segments-0", "v1-crashed-0"),
}
# Further goldens of single folders.
MORE_KINDS = {
    "numbers-0": {
        **DECODER_KINDS,
        "unknown-decoder": ("--value-decoder-class", "no.such.Decoder"),
        "key-long": DECODER_KINDS["long"][:1],
        "value-long": DECODER_KINDS["long"][1:],
    },
    "numbers-4-0": DECODER_KINDS,
    "numbers-short-0": DECODER_KINDS,
    "none-0": {
        **{f"max-bytes-{size}": ("--max-bytes", str(size)) for size in (0, 60, 5000, 999999)},
        "deep-max-bytes-5000": ("--deep-iteration", "--max-bytes", "5000"),
        "deep-skip": ("--deep-iteration", "--skip-record-metadata"),
    },
}
# Kafka's options for internal topics.
TOPIC_DECODERS = {
    "__consumer_offsets": "--offsets-decoder",
    "__transaction_state": "--transaction-log-decoder",
    "__cluster_metadata": "--cluster-metadata-decoder",
    "__share_group_state": "--share-group-state-decoder",
    "__remote_log_metadata": "--remote-log-metadata-decoder",
}
USAGE = {
    "nothing": (),
    "help": ("--help",),
    "version": ("--version",),
    "unknown-option": ("--bogus",),
    "files-without-names": ("--files",),
    "no-files": ("--deep-iteration",),
    "missing-file": ("--files", "00000000000000000000.log"),
    "unknown-suffix": ("--files", "notes.txt"),
    "no-suffix": ("--files", "notes"),
    "not-a-number": ("--files", "notes.log"),
    "max-bytes-not-a-number": ("--files", "00000000000000000000.log", "--max-bytes", "ten"),
}

HASHED_ABOVE = 250_000  # bytes of standard output; larger goldens are kept as their SHA-256
TIERED_HASHED_ABOVE = 6_000  # the same in tiered, where the kinds in TIERED_TEXTS are enough
TIERED_TEXTS = ("batches", "decoded")
PADDING_KEPT = 4096  # bytes of a preallocated file's zeros
INDEX_SCRIPTS = 12  # of each kind
TOTAL_LIMIT = 6_000_000
PATIENCE_SECONDS = 60

# The oracle's output that shows every effect of the cleaner.
CLEANED = {
    "compacted-0": "Non-consecutive",
    "compacted-zstd-0": "Non-consecutive",
    "tombstones-0": "deleteHorizonMs: OptionalLong[",
    "emptied-0": "count: 0",
    "compacted-transactions-0": "deleteHorizonMs: OptionalLong[",
}
OLD_CLEANED = {
    f"{name}-0": "Non-consecutive"
    for name in (
        *("v0-compacted", "v0-compacted-lz4", "v1-compacted", "v1-compacted-gzip"),
        *("mixed-compacted", "mixed-compacted-gzip"),
    )
}

# A broker that copies segments, has Kafka Streams' groups, and whose metadata has rights.
TIERED = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": (
        "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
    ),
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "remote.log.manager.task.interval.ms": "500",
    "rsm.config.delete.on.close": "false",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "rlmm.config.remote.log.metadata.initialization.retry.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "1",
    "metadata.max.idle.interval.ms": "60000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "group.coordinator.rebalance.protocols": "classic,consumer,share,streams",
    "unstable.api.versions.enable": "true",
    "unstable.feature.versions.enable": "true",
}
TIERED_KEPT = (
    *("__remote_log_metadata-*", "__consumer_offsets-0", "__share_group_state-0"),
    *("__cluster_metadata-0", "tiered-0", "tiered-expired-0"),
)
TIERED_FEATURES = ("share.version=1", "streams.version=1")

# What has to be in the corpus: folder, golden kind, text that the oracle prints.
PROMISES = (
    ("v2/gzip-0", "batches", "compresscodec: gzip"),
    ("v2/snappy-0", "batches", "compresscodec: snappy"),
    ("v2/lz4-0", "batches", "compresscodec: lz4"),
    ("v2/zstd-0", "batches", "compresscodec: zstd"),
    ("v2/headers-0", "deep", "headerKeys: [same,other,same,same]"),
    ("v2/nulls-0", "deep", "keySize: -1 valueSize: -1"),
    ("v2/timestamps-0", "deep", "CreateTime: 0 keySize"),
    ("v2/binary-0", "data", "\N{REPLACEMENT CHARACTER}"),
    ("v2/append-time-gzip-0", "deep", "LogAppendTime: "),
    ("v2/recompressed-0", "batches", "compresscodec: zstd"),
    ("v2/uncompressed-0", "batches", "compresscodec: none"),
    ("v2/compressed-0", "batches", "compresscodec: gzip"),
    ("v2/large-batch-0", "batches", "count: 2000 baseSequence: 0 lastSequence: 1999"),
    ("v2/large-value-zstd-0", "deep", "valueSize: 10485760"),
    ("v2/idempotent-0", "batches", "baseSequence: 5 lastSequence: 7"),
    ("v2/transactions-0", "deep", "endTxnMarker: COMMIT"),
    ("v2/transactions-0", "deep", "endTxnMarker: ABORT"),
    ("v2/tombstones-0", "batches", "deleteHorizonMs: OptionalLong["),
    ("v2/emptied-0", "batches", "count: 0"),
    ("v2/compacted-transactions-0", "deep", "deleteHorizonMs: OptionalLong["),
    ("v2/crashed-0", "batches", "isvalid: true"),
    ("v2/epochs-0", "batches", "partitionLeaderEpoch: 2"),
    ("damaged/crc", "batches", "isvalid: false"),
    *(
        (f"old/{magic}-{codec}-0", "batches", f"magic: {magic[1]} compresscodec: {codec} ")
        for magic in ("v0", "v1")
        for codec in ("none", "gzip", "snappy", "lz4")
    ),
    ("old/v1-none-0", "deep", "keySize: -1 valueSize: -1"),
    ("old/v1-append-time-none-0", "deep", "LogAppendTime: "),
    ("old/v1-append-time-gzip-0", "deep", "LogAppendTime: "),
    ("old/v1-recompressed-0", "batches", "compresscodec: lz4"),
    ("old/v1-uncompressed-0", "batches", "compresscodec: none"),
    ("old/v1-compressed-0", "batches", "compresscodec: gzip"),
    ("old/v1-large-set-0", "batches", "offset: 2699 "),
    *(
        (f"old/{name}-0", "batches", f"magic: {magic} ")
        for name in ("mixed", "mixed-snappy", "mixed-compacted", "mixed-compacted-gzip")
        for magic in (0, 1, 2)
    ),
    ("old/v1-crashed-0", "batches", "isvalid: true"),
    *(
        ("tiered/__remote_log_metadata-*", "decoded", text)
        for text in (
            *(f"state=COPY_SEGMENT_{state}" for state in ("STARTED", "FINISHED")),
            *(f"state=DELETE_SEGMENT_{state}" for state in ("STARTED", "FINISHED")),
            "segmentLeaderEpochs={0=18, 2=19}",
            "txnIdxEmpty=false",
        )
    ),
    *(
        ("tiered/__consumer_offsets-0", "decoded", f'{{"type":"{number}",')
        for number in (3, *range(5, 9), *range(10, 18), *range(19, 24))
    ),
    ("tiered/__share_group_state-0", "decoded", '"deliveryState":0'),  # released
    ("tiered/__share_group_state-0", "decoded", '"deliveryState":2'),  # accepted
    ("tiered/__share_group_state-0", "decoded", '"deliveryState":4'),  # rejected
    ("tiered/__share_group_state-0", "decoded", '"snapshotEpoch":1'),
    ("tiered/__share_group_state-0", "decoded", "<DELETE>"),
    *(
        ("tiered/__cluster_metadata-0", "decoded", f'"type":"{name}_RECORD"')
        for name in (
            *("REMOVE_TOPIC", "CLIENT_QUOTA", "ACCESS_CONTROL_ENTRY"),
            *("REMOVE_ACCESS_CONTROL_ENTRY", "USER_SCRAM_CREDENTIAL"),
            "REMOVE_USER_SCRAM_CREDENTIAL",
        )
    ),
)
# And how many files: folder, pattern, at least. The oracle complains of gaps, and throws at zeros.
PROMISED_FILES = (
    ("v2/segments-0", "*.log", 3),
    ("v2/compacted-0", "*.log.deep.err", 1),
    ("v2/compacted-zstd-0", "*.log.deep.err", 1),
    *(("v2/preallocated-0", f"*.log.{kind}.exit", 1) for kind in KINDS),
    *(
        (f"old/{name}-0", "*.log", 3)
        for name in ("v0-segments", "v0-segments-gzip", "v1-segments", "v1-segments-gzip")
    ),
    *((f"old/{name}", "*.log.deep.err", 1) for name in OLD_CLEANED),
    *(("old/v1-preallocated-0", f"*.log.{kind}.exit", 1) for kind in KINDS),
)


class Part(NamedTuple):
    """What can be made alone: how, and the folders that it fills."""

    write: Callable[[Path, Path], None]
    folders: tuple[str, ...]


def main() -> None:
    """Make the corpus and print its size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="where to write (%(default)s)")
    parser.add_argument("--work", type=Path, help="a new folder to keep the brokers' files in")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, help="leave the rest as it is"
    )
    parser.add_argument(
        "--kinds", nargs="+", help="write only goldens of these kinds, beside the files there are"
    )
    options = parser.parse_args()
    started = time.monotonic()
    data = options.data.resolve()
    with tempfile.TemporaryDirectory(prefix="kafkajit-") as temporary:
        work = options.work.resolve() if options.work else Path(temporary)
        work.mkdir(parents=True, exist_ok=not options.work)
        parts = [part for part in PARTS if part in options.only]
        folders = [folder for part in parts for folder in PARTS[part].folders]
        found = data / "messages" / "dumps.json"  # by dump_differential.py, which is run by hand
        dumps = found.read_bytes()
        for part in () if options.kinds else parts:
            for folder in PARTS[part].folders:
                shutil.rmtree(data / folder, ignore_errors=True)
            PARTS[part].write(work, data)
        found.write_bytes(dumps)
        write_goldens(data, folders, kinds=options.kinds)
    missing = list(broken_promises(data, folders))
    total = sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
    progress(f"{total:,} bytes in {data} after {time.monotonic() - started:.0f} s")
    if data == DATA:
        pack(folders)
    if total > TOTAL_LIMIT:
        missing.append(f"more than {TOTAL_LIMIT:,} bytes")
    if missing:
        sys.exit("not as promised:\n" + "\n".join(missing))


def write_segments(work: Path, data: Path) -> None:
    """Run a broker to its clean shutdown and another one to its crash; keep what they wrote."""
    classes = traffic_classes(work)
    config = {
        "metadata.log.max.record.bytes.between.snapshots": "8000",
        "metadata.max.idle.interval.ms": "5000",
    }
    progress("starting a broker")
    with running_broker(work / "clean", config) as broker:
        traffic("make", broker, classes)
        wait_for_cleaner(broker, CLEANED)
    progress("starting a broker to be killed the second time")
    with running_broker(work / "crashed") as broker:
        traffic("epoch", broker, classes)
    with running_broker(work / "crashed") as broker:
        traffic("epoch", broker, classes)
        flood(broker, classes, "crashed", "preallocated")
    for folder in partition_folders(work / "clean" / "logs"):
        keep = data / ("internal" if folder.name.startswith("__") else "v2") / folder.name
        # One folder keeps the .deleted files of the cleaner; in the others they are only ballast.
        ballast = () if folder.name == "compacted-0" else ("*.deleted",)
        shutil.copytree(folder, keep, ignore=shutil.ignore_patterns(*ballast))
    for name in ("crashed-0", "preallocated-0", "epochs-0"):
        shutil.copytree(work / "crashed" / "logs" / name, data / "v2" / name)
    for log in (data / "v2" / "preallocated-0").glob("*.log"):
        cut_padding(log)
    log_dir = data / "internal" / "log-dir"
    log_dir.mkdir()
    for path in (work / "clean" / "logs").iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, log_dir)


def write_old_segments(work: Path, data: Path) -> None:
    """Do the same with a broker of formats v0 and v1."""
    classes = traffic_classes(work)
    progress("starting an old broker")
    with running_old_broker(work / "old") as broker:
        traffic("old", broker, classes)
        wait_for_cleaner(broker, OLD_CLEANED)
    progress("starting an old broker to be killed")
    with running_old_broker(work / "old-crashed") as broker:
        traffic("old-crash", broker, classes)
        broker.kill()
    for name in ("old", "old-crashed"):
        for folder in partition_folders(work / name / "logs"):
            # Snapshots list producers, which these formats do not have.
            ballast = shutil.ignore_patterns("*.deleted", "*.snapshot")
            shutil.copytree(folder, data / "old" / folder.name, ignore=ballast)


def write_tiered(work: Path, data: Path) -> None:
    """Run a broker with remote storage, and again after a restart, till a topic is gone there."""
    classes = traffic_classes(work)
    folder = work / "tiered"
    config = TIERED | {"rsm.config.dir": str(folder / "remote")}
    progress("starting a broker with remote storage")
    with running_broker(folder, config, TIERED_FEATURES) as broker:
        traffic("tiered", broker, classes)
    progress("starting it again")
    with running_broker(folder, config, TIERED_FEATURES) as broker:
        traffic("tiered", broker, classes)
        wait_for_deletion(broker)
    keep = data / "tiered"
    for name in TIERED_KEPT:
        for partition in sorted((folder / "logs").glob(name)):
            shutil.copytree(partition, keep / partition.name)
    shutil.copy(folder / "logs" / "log-start-offset-checkpoint", keep)


def write_damaged(work: Path, data: Path) -> None:
    """Damage some of the segments in v2."""
    sources = {name: (data / "v2" / f"{name}-0" / FIRST_SEGMENT).read_bytes() for name in SOURCES}
    write_logs(data / "damaged", damaged_logs(sources))


def write_messages(work: Path, data: Path) -> None:
    """Write segments of formats v0 and v1 by our own builder."""
    write_logs(data / "messages", message_logs())


def write_payloads(work: Path, data: Path) -> None:
    """Write logs of internal topics with every kind of record."""
    classes = work / "payloads"
    classes.mkdir()
    compile_java([PAYLOADS], classes)
    command = java("Payloads", str(data / "payloads"), classes=[classes])
    subprocess.run(command, check=True)


def write_indexes(work: Path, data: Path) -> None:
    """Write scripts of operations on indexes, each line with Kafka's answer."""
    classes = work / "index-classes"
    classes.mkdir()
    compile_java([Path(__file__).with_name("IndexOperations.java")], classes)
    run = subprocess.run(
        java("IndexOperations", str(work), classes=[classes]),
        input="".join(f"{line}\n" for line in index_scripts(INDEX_SCRIPTS)).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    (data / "indexes").mkdir()
    (data / "indexes" / "operations.txt").write_bytes(run.stdout)
    dumps = []
    for name, files in damaged_indexes().items():
        folder = work / name
        folder.mkdir()
        for suffix, content in files.items():
            (folder / FIRST_SEGMENT).with_suffix(suffix).write_bytes(content)
        for path in sorted(folder.glob("*.*index")):
            dump = dump_log(path)
            # For an exception only the fact is kept: Kafka then drops its findings.
            err = dump.stderr.decode().replace(f"{folder}/", "") if dump.returncode == 0 else None
            dumps.append([name, path.suffix, dump.stdout.decode(), err])
    (data / "indexes" / "dumps.json").write_text(json.dumps(dumps, indent=1) + "\n")


def write_log_operations(work: Path, data: Path) -> None:
    """Write the goldens of Kafka's log on random logs, without a broker."""
    (data / "logs").mkdir()
    with LogOperations(work) as kafka:
        for kind, contents in log_goldens(kafka, work / "logs").items():
            write_tar(data / "logs" / f"{kind}.tar.xz", contents)
        appended = append_goldens(kafka, work / "appends")
        (data / "logs" / "appends.json").write_text(appended)
        repaired = repair_goldens(kafka, work / "repairs")
        (data / "logs" / "repairs.json").write_text(repaired)


def write_written(work: Path, data: Path) -> None:
    """Write logs by encode_batches, and what Kafka's own classes read in them."""
    write_logs(data / "written", written_logs())
    classes = work / "read-classes"
    classes.mkdir()
    compile_java([Path(__file__).with_name("ReadLogs.java")], classes)
    folders = sorted(map(str, (data / "written").iterdir()))
    run = subprocess.run(
        java("ReadLogs", *folders, classes=[classes]), stdout=subprocess.PIPE, check=True
    )
    (data / "written" / "read.txt").write_bytes(run.stdout)


def write_logs(target: Path, logs: Mapping[str, bytes]) -> None:
    """Write segments, a folder for each."""
    for name, content in logs.items():
        folder = target / name
        folder.mkdir(parents=True)
        (folder / FIRST_SEGMENT).write_bytes(content)


def traffic_classes(work: Path) -> Path:
    """Return the folder of Traffic's classes."""
    classes = work / "classes"
    if not classes.exists():
        classes.mkdir()
        compile_java(TRAFFIC, classes)
    return classes


def traffic(kind: str, broker: Broker, classes: Path) -> None:
    """Run Traffic to its end."""
    command = java("Traffic", kind, broker.bootstrap, classes=[classes])
    subprocess.run(command, check=True, stdout=sys.stderr)


def wait_for_cleaner(broker: Broker, signs: Mapping[str, str]) -> None:
    """Return once the oracle shows the cleaner's work in each folder."""
    progress("waiting for the cleaner")
    deadline = time.monotonic() + PATIENCE_SECONDS
    signs = dict(signs)
    while signs and time.monotonic() < deadline:
        time.sleep(1)
        for folder, sign in list(signs.items()):
            logs = sorted((broker.log_dir / folder).glob("*.log"))
            dump = dump_log(logs, "--deep-iteration")
            if sign.encode() in dump.stdout + dump.stderr:
                del signs[folder]
    # One more round, so that what was just cleaned is joined with its neighbours.
    time.sleep(3)


def wait_for_deletion(broker: Broker) -> None:
    """Return once the metadata log marks the remote segments of a deleted topic as deleted."""
    progress("waiting for remote segments to be deleted")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        dumps = [
            dump_log(log, *decoded_kinds(log)["decoded"]).stdout
            for log in broker.log_dir.glob("__remote_log_metadata-*/*.log")
        ]
        lines = b"".join(dumps).splitlines()
        deleted = [line for line in lines if b"DELETE_SEGMENT_FINISHED" in line]
        if sum(b":tiered-deleted-0," in line for line in deleted) == 2:
            return
        time.sleep(1)


def flood(broker: Broker, classes: Path, *topics: str) -> None:
    """Kill the broker while a producer writes to its third segment."""
    command = java("Traffic", "flood", broker.bootstrap, *topics, classes=[classes])
    with subprocess.Popen(command, stdout=sys.stderr) as producer:
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not in_third_segment(broker.log_dir / f"{topics[0]}-0"):
                if time.monotonic() > deadline or producer.poll() is not None:
                    raise RuntimeError("the flood did not reach a third segment")
                time.sleep(0.02)
            broker.kill()
        finally:
            producer.kill()


def in_third_segment(folder: Path) -> bool:
    """Tell whether the third segment has enough batches for a few index entries."""
    logs = sorted(folder.glob("*.log"))
    return len(logs) > 2 and logs[2].stat().st_size > 1000


def partition_folders(log_dir: Path) -> list[Path]:
    """Return the folders of partitions in a log directory."""
    return sorted(path for path in log_dir.iterdir() if any(path.glob("*.log")))


def cut_padding(log: Path) -> None:
    """Leave PADDING_KEPT of the zeros behind the last batch of a preallocated segment."""
    # A record may end in zeros of its own; they go and come back with the padding.
    content = log.read_bytes().rstrip(b"\0")
    log.write_bytes(content + bytes(min(PADDING_KEPT, log.stat().st_size - len(content))))


def write_goldens(
    data: Path,
    parts: Iterable[str],
    hashed_above: int = HASHED_ABOVE,
    kinds: Iterable[str] | None = None,
) -> None:
    """Run the oracle over all that it reads, two processes at a time."""
    jobs = [job for job in golden_jobs(data, parts) if kinds is None or job[1] in kinds]
    progress(f"running the oracle {len(jobs)} times")
    with ThreadPoolExecutor(2) as pool:
        for path, kind, dump in pool.map(lambda job: (*job[:2], dump_log(job[0], *job[2])), jobs):
            stem = path.with_name(f"{path.name}.{kind}")
            part = path.parent.parent.name
            is_short = part == "written" or (part == "tiered" and kind not in TIERED_TEXTS)
            limit = min(hashed_above, TIERED_HASHED_ABOVE) if is_short else hashed_above
            write_golden(stem, dump, path.parent, limit)


def write_usage(work: Path, data: Path) -> None:
    """Write the oracle's errors for arguments that it refuses."""
    nowhere = work / "nowhere"
    nowhere.mkdir(parents=True)
    (data / "usage").mkdir(parents=True)
    for kind, arguments in USAGE.items():
        write_golden(data / "usage" / kind, dump_tool(*arguments, cwd=nowhere), nowhere)


def golden_jobs(data: Path, parts: Iterable[str]) -> Iterator[tuple[Path, str, tuple[str, ...]]]:
    """Yield file, kind and flags of every golden."""
    for path in sorted(p for part in parts for p in data.glob(f"{part}/*/*")):
        if path.parent.parent.name in ("damaged", "clients", "written"):
            for kind in ("batches", "data"):
                yield path, kind, KINDS[kind]
        elif path.suffix in {".log", ".checkpoint"}:
            of_folder = MORE_KINDS.get(path.parent.name, {})
            plain = {} if path.parent.parent.name == "payloads" else KINDS
            for kind, flags in (plain | of_folder | decoded_kinds(path)).items():
                yield path, kind, flags
        elif path.suffix in SIDECAR_FILES:
            watched = path.parent.name in INDEX_FOLDERS and path.suffix in {".index", ".timeindex"}
            if watched or path.stat().st_size:
                for kind, flags in (SIDE_KINDS | (INDEX_KINDS if watched else {})).items():
                    yield path, kind, flags


def decoded_kinds(path: Path) -> dict[str, tuple[str, ...]]:
    """The goldens of a log of an internal topic that show its payloads."""
    folder = path.parent
    topic = "__cluster_metadata" if path.suffix == ".checkpoint" else folder.name.rpartition("-")[0]
    if topic not in TOPIC_DECODERS:
        return {}
    kinds: dict[str, tuple[str, ...]] = {"decoded": (TOPIC_DECODERS[topic],)}
    if folder.parent.name in ("internal", "tiered") or topic == "__share_group_state":
        kinds["decoded-skip"] = (TOPIC_DECODERS[topic], "--skip-record-metadata")
    return kinds


def write_golden(stem: Path, dump: Dump, folder: Path, hashed_above: int = HASHED_ABOVE) -> None:
    """Write what one run printed, and its exit code when that is not 0."""
    if len(dump.stdout) > hashed_above:
        digest = hashlib.sha256(dump.stdout).hexdigest()
        Path(f"{stem}.sha256").write_text(digest + "\n")
    else:
        Path(f"{stem}.out").write_bytes(dump.stdout)
    # Lines that begin with a tab are Java's stack trace; they change with any compiler.
    lines = dump.stderr.replace(f"{folder}/".encode(), b"").splitlines(keepends=True)
    if stderr := b"".join(line for line in lines if not line.startswith(b"\t")):
        Path(f"{stem}.err").write_bytes(stderr)
    if dump.returncode:
        Path(f"{stem}.exit").write_text(f"{dump.returncode}\n")


def broken_promises(data: Path, made: Iterable[str]) -> Iterator[str]:
    """Yield everything that is missing in the folders that were made."""
    for folder, kind, text in PROMISES:
        goldens = data.glob(f"{folder}/*.log.{kind}.out")
        if folder.split("/")[0] in made and not any(
            text in path.read_text("utf-8") for path in goldens
        ):
            yield f"{folder}: {text}"
    for folder, pattern, least in PROMISED_FILES:
        if folder.split("/")[0] in made and len(list((data / folder).glob(pattern))) < least:
            yield f"{folder}: {pattern}"


def progress(message: str) -> None:
    """Print the current step."""
    print(message, file=sys.stderr, flush=True)


PARTS = {
    "v2": Part(write_segments, ("v2", "internal")),
    "old": Part(write_old_segments, ("old",)),
    "tiered": Part(write_tiered, ("tiered",)),
    "damaged": Part(write_damaged, ("damaged",)),  # after v2, of which it is made
    "messages": Part(write_messages, ("messages",)),
    "payloads": Part(write_payloads, ("payloads",)),
    "written": Part(write_written, ("written",)),
    "usage": Part(write_usage, ("usage",)),
    "indexes": Part(write_indexes, ("indexes",)),
    "logs": Part(write_log_operations, ("logs",)),
}

if __name__ == "__main__":
    main()
