"""What a real broker serves of segments that overlap.

    PYTHONPATH=.:tests:tests/support python tests/broker/overlaps.py [SEED] [LOGS]

A broker makes a topic and is stopped. Its partitions get random segments that overlap: by whole
segments, by parts, with equal and with other records, three and more deep, with the offsets that
compaction removes, in codecs. The broker starts again and a consumer reads each partition from its
start. It must get the records that tests/support/overlapping.py predicts, and that kafkajit's
dataset, export and Log.read return.

Needs Java 17 and Kafka's jars (Maven brings those of 4.1.1; KAFKAJIT_KAFKA_LIB names others).
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from broker import compile_java, java, running_broker
from load_back import bytes_of
from overlapping import Batch, Segments, consumed, leaps, write

import kafkajit

TOPIC = "overlaps"
TIME = datetime.fromtimestamp(1_700_000_000, UTC)  # of the batches that kafkajit.testing makes


def main(seed: int, logs: int, work: Path) -> None:
    """Run everything; raise AssertionError if the broker and kafkajit disagree."""
    chance = random.Random(seed)
    written = [random_segments(chance) for _ in range(logs)]
    classes = work / "classes"
    classes.mkdir()
    compile_java([Path(__file__).with_name("LoadBack.java")], classes)
    config = {"log.cleaner.enable": "false", "log.retention.ms": "-1"}
    with running_broker(work, config) as broker:
        run = java("LoadBack", "create", broker.bootstrap, TOPIC, str(logs), classes=[classes])
        subprocess.run(run, check=True)
        log_dir = broker.log_dir
    for number, segments in enumerate(written):
        folder = log_dir / f"{TOPIC}-{number}"
        metadata = (folder / "partition.metadata").read_bytes()
        shutil.rmtree(folder)
        write(folder, segments, chance.choice(["none", "lz4", "zstd"]))
        (folder / "partition.metadata").write_bytes(metadata)
    with running_broker(work, config) as broker:
        run = java(
            *("LoadBack", "consume", broker.bootstrap, TOPIC, "read_uncommitted"), classes=[classes]
        )
        done = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True)
        out = (broker.log_dir.parent / "broker.out").read_text()
    served = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    hidden = 0
    for number, (segments, found) in enumerate(zip(written, served, strict=True)):
        folder = log_dir / f"{TOPIC}-{number}"
        wanted = [(offset, b"%d" % base) for offset, base in consumed(segments)]
        assert found["sha256"] == digest(wanted), (seed, number, segments, found)
        columns = ["offset", "value"]
        for rows in (
            kafkajit.dataset(folder).to_table(columns=columns),
            kafkajit.Log(folder).read(min(segments), 1 << 20, columns=columns),
            exported(folder, work / f"{number}.parquet").select(columns),
        ):
            assert pairs(rows) == wanted, (seed, number, segments)
        there = sum(len(batch.deltas) for batches in segments.values() for batch in batches)
        hidden += there - len(wanted)
    assert "ERROR" not in out, out
    print(
        f"{logs} logs as a broker serves them; {hidden} records are in segments that are not read"
    )


def random_segments(chance: random.Random) -> Segments:
    """Segments that overlap; the last one has the log's last offset, at which a broker stops."""
    while True:
        bases = sorted(chance.sample(range(200), chance.randint(2, 6)))
        segments: Segments = {}
        is_compacted = chance.random() < 0.5
        for base in bases:
            at, batches = base, []
            for _ in range(chance.randint(1, 12)):
                at += chance.choice([0, 0, 1, 7]) if is_compacted else 0
                span = chance.randint(1, 20)
                kept = [n for n in range(span) if not is_compacted or chance.random() < 0.7]
                batches.append(Batch(at, tuple(kept), span))
                at += span
            segments[base] = batches
        ends = [segments[base][-1].last for base in bases]
        if ends[-1] > max(ends[:-1]) and not leaps(segments):
            return segments


def digest(records: Iterable[tuple[int, bytes]]) -> str:
    sha = hashlib.sha256()
    for offset, value in records:
        row = {"offset": offset, "timestamp": TIME, "key": b"k", "value": value, "headers": []}
        sha.update(bytes_of(row))
    return sha.hexdigest()


def pairs(rows: Any) -> list[tuple[int, bytes]]:
    return list(zip(rows["offset"].to_pylist(), rows["value"].to_pylist(), strict=True))


def exported(folder: Path, out: Path) -> Any:
    kafkajit.export(folder, out)
    return pq.read_table(out)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        main(*(given + [1, 60][len(given) :]), Path(folder))
