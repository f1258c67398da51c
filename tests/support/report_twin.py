"""Random folders with traffic of all kinds, and the figures of a report by tests/reference.py.

    PYTHONPATH=.:tests:tests/support python tests/support/report_twin.py --folders 1000

The figures come from a decoder of batches and records that shares nothing with kafkajit's.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import struct
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import reference
from reference import Batch, Record

import kafkajit.testing as kt
from kafkajit.report.info import info
from kafkajit.report.take import ALL, ReportOptions, take

NOW = 1_700_000_000_000
DAY = 86_400_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_FORMATS = {0: "v0", 1: "v1", 2: "v2"}
_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}


class Writer:
    """Writes one partition's log, segment by segment."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.chance = chance
        self.offset = chance.choice((0, 0, 5, 1000))
        self.time = NOW - chance.randrange(400) * DAY
        self.epoch = 0
        self.open: set[int] = set()

    def write(self, kind: str, segments: int) -> None:
        """Write segments of batches of a kind."""
        self.folder.mkdir(parents=True)
        for _ in range(segments):
            base = self.offset
            log = b"".join(self._batch(kind) for _ in range(self.chance.randrange(7)))
            (self.folder / f"{base:020}.log").write_bytes(log)
            if kind == "transactions" and self.chance.randrange(2):
                entries = [(self.offset, base, base, base)] * self.chance.randrange(4)
                index = self.folder / f"{base:020}.txnindex"
                index.write_bytes(kt.transaction_index(entries))

    def _records(self) -> list[kt.Record]:
        chance = self.chance
        keys = [None, b"", *(b"k%d" % number for number in range(12))]
        return [
            kt.Record(
                chance.choice(keys),
                chance.choice((None, b"", b"value" * chance.randrange(30))),
                [("h", b"1")] * chance.choice((0, 0, 2)),
                self._timestamp(),
            )
            for _ in range(chance.randrange(1, 9))
        ]

    def _timestamp(self) -> int:
        self.time += self.chance.choice((0, 1, 1000, 3_600_000, -1000, -DAY))
        return self.chance.choice((self.time, self.time, self.time, self.time - 30 * DAY))

    def _batch(self, kind: str) -> bytes:
        chance = self.chance
        if kind == "mixed":
            kind = chance.choice(KINDS[:-1])
        records = self._records()
        codec = chance.choice(CODECS)
        self.epoch += chance.randrange(8) == 0
        base = self.offset
        self.offset += len(records)
        if kind == "compacted":
            self.offset += chance.choice((0, 0, 3, 100))
        if kind == "messages":
            magic = chance.randrange(2)
            codec = chance.choice(("none", "gzip", "snappy", "lz4"))
            plain = [kt.Record(one.key, one.value, timestamp=one.timestamp) for one in records]
            more: dict[str, Any] = {}
            if magic and chance.randrange(4) == 0:
                more = {"timestamp_type": 1, "timestamp": self.time}
                plain = [kt.Record(one.key, one.value) for one in records]
            return kt.message_set(plain, base_offset=base, magic=magic, codec=codec, **more)
        fields: dict[str, Any] = {"base_offset": base, "partition_leader_epoch": self.epoch}
        fields["base_timestamp"] = records[0].timestamp
        if kind == "untimed":
            records = [kt.Record(one.key, one.value, one.headers) for one in records]
            fields["base_timestamp"] = -1
        if kind == "appended":
            fields |= {"timestamp_type": 1, "max_timestamp": self.time}
        if kind == "compacted" and chance.randrange(3) == 0:
            fields["delete_horizon_ms"] = NOW - DAY
            fields["max_timestamp"] = max(int(one.timestamp or 0) for one in records)
        if kind == "transactions":
            producer = chance.randrange(3)
            if producer in self.open and chance.randrange(2):
                self.open.discard(producer)
                self.offset = base + 1
                return kt.control_batch(
                    chance.randrange(2),
                    base_offset=base,
                    producer_id=producer,
                    base_timestamp=self.time + DAY,
                )
            if chance.randrange(4):
                self.open.add(producer)
                fields |= {"producer_id": producer, "producer_epoch": 0, "is_transactional": True}
        return kt.batch(records, codec=codec, **fields)


KINDS = ("plain", "untimed", "appended", "compacted", "transactions", "messages", "mixed")


_Place = tuple[str, str, int]  # a group, a topic, a partition


def write_commits(
    folder: Path, chance: random.Random, places: list[tuple[str, int]]
) -> dict[_Place, int]:
    """Write logs of __consumer_offsets: the newest offset that counts, by place."""
    found: dict[_Place, int] = {}
    for number in range(chance.randrange(1, 3)):
        logs: dict[int, bytes] = {0: b""}
        # The offsets of the records that count, and what transactions have not decided.
        decided: dict[_Place, tuple[int, int | None]] = {}
        open_: dict[int, dict[_Place, tuple[int, int | None]]] = {}
        for at in range(chance.randrange(40)):
            if chance.randrange(12) == 0:
                logs[at] = b""
            producer = chance.randrange(1, 3)
            if producer in open_ and chance.randrange(3) == 0:
                commits = chance.randrange(2)
                for place, commit in open_.pop(producer).items():
                    if commits and decided.get(place, (-1, None))[0] < commit[0]:
                        decided[place] = commit
                log = kt.control_batch(commits, base_offset=at, producer_id=producer)
            else:
                # A group's commits are in one partition.
                group = f"group{chance.randrange(3)}-{number}"
                place = (group, *chance.choice(places))
                offset = chance.choice((None, chance.randrange(2000), chance.randrange(2000)))
                is_open = chance.randrange(3) == 0
                more: dict[str, Any] = {}
                if is_open:
                    more = {"producer_id": producer, "is_transactional": True}
                (open_.setdefault(producer, {}) if is_open else decided)[place] = at, offset
                log = kt.batch([_commit(place, offset)], base_offset=at, **more)
            logs[max(logs)] += log
        for base, log in logs.items():
            path = folder / f"__consumer_offsets-{number}" / f"{base:020}.log"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(log)
        found |= {place: offset for place, (_, offset) in decided.items() if offset is not None}
    return found


def _commit(place: _Place, offset: int | None) -> kt.Record:
    group, topic, partition = place
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in (group, topic))
    key = struct.pack(">h", 1) + names + struct.pack(">i", partition)
    if offset is None:
        return kt.Record(key, None)
    return kt.Record(key, struct.pack(">hqihq", 3, offset, 0, 0, NOW))


def write_folder(folder: Path, seed: int) -> None:
    """Write the logs of some topics."""
    chance = random.Random(seed)
    starts = []
    for number in range(chance.randrange(1, 5)):
        kind = chance.choice(KINDS)
        for partition in range(chance.randrange(1, 4)):
            writer = Writer(folder / f"{kind}{number}-{partition}", chance)
            writer.write(kind, chance.randrange(1, 5))
            if chance.randrange(4) == 0:
                start = chance.randrange(writer.offset + 1)
                starts.append(f"{kind}{number} {partition} {start}\n")
    if chance.randrange(2):
        places = [
            (path.name.rpartition("-")[0], int(path.name.rpartition("-")[2]))
            for path in sorted(folder.iterdir())
        ]
        commits = write_commits(folder, chance, [*places, ("gone", 7)])
        (folder / "commits.json").write_text(json.dumps(list(commits.items())))
    text = f"0\n{len(starts)}\n{''.join(starts)}"
    (folder / "log-start-offset-checkpoint").write_text(text)


def expected(folder: Path) -> dict[str, dict[str, Any]]:
    """The figures of each topic."""
    lines = (folder / "log-start-offset-checkpoint").read_text().splitlines()[2:]
    starts = {f"{topic}-{number}": int(offset) for topic, number, offset in map(str.split, lines)}
    topics: dict[str, list[_Partition]] = {}
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        one = _Partition(path, starts.get(path.name, 0))
        topics.setdefault(path.name.rpartition("-")[0], []).append(one)
    return {topic: _topic(partitions) for topic, partitions in topics.items()}


class _Partition:
    def __init__(self, folder: Path, start: int) -> None:
        self.number = int(folder.name.rpartition("-")[2])
        self.logs = sorted(folder.glob("*.log"))
        self.batches = [
            batch for log in self.logs for batch in reference.read_batches(log.read_bytes())[0]
        ]
        self.records = {id(batch): reference.read_records(batch) for batch in self.batches}
        self.bytes = sum(log.stat().st_size for log in self.logs)
        first, last = int(self.logs[0].stem), int(self.logs[-1].stem)
        self.end = max([last, *(_last(batch) + 1 for batch in self.batches)])
        self.start = min(max(first, start), self.end)
        self.aborted = sum(path.stat().st_size // 34 for path in folder.glob("*.txnindex"))

    @property
    def data(self) -> list[tuple[Batch, list[Record]]]:
        return [(one, self.records[id(one)]) for one in self.batches if not one.is_control]

    def first_times(self) -> list[int]:
        return [time for batch, records in self.data if (time := _first_time(batch, records)) >= 0]

    def last_times(self) -> list[int]:
        times = (record.timestamp for _, records in self.data for record in records)
        return [time for time in times if time >= 0]

    def missing(self) -> int:
        missing, behind = 0, None
        for batch in self.batches:
            first = batch.base_offset
            if batch.magic < 2:
                first = self.records[id(batch)][0].offset
            if behind is not None:
                missing += max(0, first - behind)
            behind = _last(batch) + 1
        return missing

    def back(self) -> int:
        back, latest = 0, -1
        for batch in self.batches:
            back += 0 <= batch.max_timestamp < latest
            latest = max(latest, batch.max_timestamp)
        return back

    def open_transactions(self) -> set[tuple[int, int]]:
        found: dict[int, int] = {}
        for batch in self.batches:
            if batch.is_control:
                found.pop(batch.producer_id, None)
            elif batch.is_transactional:
                found.setdefault(batch.producer_id, batch.base_offset)
        return set(found.items())


def _last(batch: Batch) -> int:
    return batch.base_offset + (batch.last_offset_delta if batch.magic >= 2 else 0)


def _first_time(batch: Batch, records: list[Record]) -> int:
    if batch.magic < 2:
        times = [record.timestamp for record in records if record.timestamp >= 0]
        return min(times, default=-1)
    if batch.timestamp_type == 1 or batch.delete_horizon_ms is not None or batch.base_timestamp < 0:
        return batch.max_timestamp
    return min(batch.base_timestamp, batch.max_timestamp)


def _count(batch: Batch, records: list[Record]) -> int:
    return 0 if batch.is_control else len(records)


def _sizes(values: list[int]) -> dict[str, float] | None:
    return {"mean": round(sum(values) / len(values), 3), "max": max(values)} if values else None


def _topic(partitions: list[_Partition]) -> dict[str, Any]:
    batches = [(one, part.records[id(one)]) for part in partitions for one in part.batches]
    data = [pair for part in partitions for pair in part.data]
    records = [record for _, found in data for record in found]
    codecs: dict[str, Any] = {}
    for batch, found in batches:
        codec = codecs.setdefault(CODECS[batch.codec], {"batches": 0, "records": 0, "bytes": 0})
        codec["batches"] += 1
        codec["records"] += _count(batch, found)
        codec["bytes"] += batch.size
    firsts = [time for part in partitions for time in part.first_times()]
    lasts = [time for part in partitions for time in part.last_times()]
    keyed = [
        (part.number, record.key)
        for part in partitions
        for _, found in part.data
        for record in found
        if record.key is not None
    ]
    sample = None
    if records:
        sample = {
            "records": len(records),
            "nullKeys": sum(record.key is None for record in records),
            "tombstones": sum(record.value is None for record in records),
            "withHeaders": sum(bool(record.headers) for record in records),
            "keyBytes": _sizes([len(key) for _, key in keyed]),
            "valueBytes": _sizes([len(one.value) for one in records if one.value is not None]),
            "distinctKeys": len({key for _, key in keyed}),
            "hottest": Counter(key for _, key in keyed).most_common(1)[0][1] if keyed else None,
        }
    return {
        "partitions": len(partitions),
        "segments": sum(len(part.logs) for part in partitions),
        "bytes": sum(part.bytes for part in partitions),
        "records": len(records),
        "batches": len(batches),
        "firstTimestamp": min(firsts, default=None),
        "lastTimestamp": max(lasts, default=None),
        "formats": Counter(_FORMATS[batch.magic] for batch, _ in batches),
        "codecs": codecs,
        "timestampTypes": Counter(_TYPES[batch.timestamp_type] for batch, _ in batches),
        "recordsPerBatch": _sizes([len(found) for _, found in data]),
        "bytesPerBatch": _sizes([batch.size for batch, _ in data]),
        "batchesBack": sum(part.back() for part in partitions),
        "batchesAhead": sum(batch.max_timestamp > NOW for batch, _ in batches),
        "missingOffsets": sum(part.missing() for part in partitions),
        "producers": len({batch.producer_id for batch, _ in batches} - {-1}),
        "transactionalBatches": sum(batch.is_transactional for batch, _ in data),
        "controlBatches": len(batches) - len(data),
        "leaderEpochs": len({one.partition_leader_epoch for one, _ in batches if one.magic >= 2}),
        "abortedTransactions": sum(part.aborted for part in partitions),
        "eachPartition": [
            {
                "partition": part.number,
                "records": sum(len(found) for _, found in part.data),
                "bytes": part.bytes,
                "startOffset": part.start,
                "endOffset": part.end,
                "firstTimestamp": min(part.first_times(), default=None),
                "lastTimestamp": max(part.last_times(), default=None),
            }
            for part in sorted(partitions, key=lambda part: part.number)
        ],
        "sample": sample,
        "superseded": len(keyed) - len(set(keyed)) if keyed else None,
        "open": sorted(
            (part.number, *one) for part in partitions for one in part.open_transactions()
        ),
    }


def _groups(folder: Path, topics: dict[str, Any], document: dict[str, Any]) -> list[str]:
    """The lag of groups that differs."""
    path = folder / "commits.json"
    if not path.exists():
        return [] if document["groups"] is None else ["groups without __consumer_offsets"]
    ends = {
        (topic, one["partition"]): one["endOffset"]
        for topic, figures in topics.items()
        for one in figures["eachPartition"]
    }
    there = sorted(
        (*place, offset, None if end is None else end - offset)
        for place, offset in json.loads(path.read_text())
        for end in [ends.get((place[1], place[2]))]
    )
    names = ("group", "topic", "partition", "offset", "lag")
    here = sorted(tuple(one[name] for name in names) for one in document["groups"])
    return [] if there == here else [f"groups are {there}, reported {here}"]


def document_of(folder: Path) -> dict[str, Any]:
    """The document of a report that reads everything."""
    found = take(ReportOptions((str(folder),), depth=ALL, now=NOW))
    document: dict[str, Any] = json.loads(json.dumps(found))
    return document


def reported(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The same figures of a report."""
    found = {}
    for topic in document["topics"]:
        sample = topic["sample"]
        if sample is not None:
            hottest = sample.pop("hottestKeys")
            sample["hottest"] = hottest[0]["records"] if hottest else None
            del sample["bytes"], sample["distinctKeysError"]
        compaction = topic["savings"]["compaction"]
        open_ = [
            one
            for one in document["trouble"]
            if one["kind"] == "openTransaction" and one["topic"] == topic["topic"]
        ]
        words = [one["problem"].replace(":", "").split() for one in open_]
        found[topic["topic"]] = topic | {
            "superseded": None if compaction is None else compaction["records"],
            "open": sorted(
                (one["partition"], int(said[4]), int(said[9]))
                for one, said in zip(open_, words, strict=True)
            ),
        }
    return found


def differences(folder: Path) -> list[str]:
    """Each figure that differs."""
    document = document_of(folder)
    there, here = expected(folder), reported(document)
    found = [f"topics {sorted(here)}"] if here.keys() != there.keys() else []
    for topic, figures in there.items():
        for name, value in figures.items():
            other = here.get(topic, {}).get(name)
            if not _same(value, other):
                found.append(f"{topic}: {name} is {value}, reported {other}")
    found += _groups(folder, there, document)
    for topic in info([str(folder)])["topics"]:
        for one, two in zip(
            there[topic["topic"]]["eachPartition"], topic["eachPartition"], strict=True
        ):
            found += [
                f"{topic['topic']}: info has {name} {two[name]} of {one}"
                for name in ("partition", "bytes", "startOffset", "endOffset")
                if one[name] != two[name]
            ]
    return found


def _same(value: Any, other: Any) -> bool:
    """Whether a figure is the same; of a document, those that the twin has."""
    if isinstance(value, dict) and isinstance(other, dict) and not isinstance(value, Counter):
        return all(_same(one, other.get(name)) for name, one in value.items())
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(_same, value, other))
    return bool(value == other)


def main() -> None:
    """Compare folders; the first that differs ends the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folders", type=int, default=100, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first folder (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for seed in range(options.seed, options.seed + options.folders):
            folder = Path(name) / str(seed)
            folder.mkdir()
            write_folder(folder, seed)
            found = differences(folder)
            assert not found, f"seed {seed}:\n" + "\n".join(found)
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
