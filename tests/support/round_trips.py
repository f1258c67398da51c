"""Random logs, exported and imported again: each record comes back, or an error names it.

    PYTHONPATH=.:tests:tests/support python tests/support/round_trips.py --trips 5000

The records that come back are those that the slow twin reads in the logs: every column, NULL and
empty, and which of them a read_committed consumer gets.
"""

from __future__ import annotations

import argparse
import logging
import random
import re
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import reference

import kafkajit
import kafkajit.testing as kt
from kafkajit.produce.imported import LeftOut
from kafkajit.scan.export.options import CODECS

Row = dict[str, Any]

_TOPICS = (
    "orders",
    "a",
    ".x",
    "_x",
    "__x",
    "-",
    "...",
    "orders-0",
    "a.b_c-1",
    "topic=1",  # refused by no file system, and by Kafka: it is not drawn
    "2026-01-01",
    "00000000000000000000",
    "Ab",
    "x" * 225,
    "y" * 249,
    "z-" * 124,
)
_TEXTS = (
    "",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\x00",
    ",",
    '"',
    '""',
    "'",
    "\\",
    "\\N",
    "null",
    "NULL",
    "NaN",
    "true",
    "2026-01-01",
    "2026-01-01T00:00:00Z",
    "12:00",
    "1e5",
    "007",
    "9223372036854775808",
    "é",
    "\ufeff",
    "\u2028",
    "😀",
    '{"a": 1}',
    "[1,2]",
    "=1+1",
    "b'x'",
    "a\rb",
    'line\nbreak,"quoted"',
)
_BYTES = (b"\xff", b"\x80abc", b"\xc3", b"\xed\xa0\x80", b"\x00\x00\x00\x00\x01", bytes(range(256)))
_TIMES = (
    -1,
    0,
    1,
    999,
    -2,
    -1000,
    1_767_225_599_999,
    1_767_225_600_000,
    253_402_300_799_999,  # the last millisecond of 9999
    253_402_300_800_000,
    -62_135_596_800_000,  # the first of the year 1
    -62_135_596_800_001,
    2**53 + 1,
    9_223_372_036_854_775,  # the last in microseconds
    -9_223_372_036_854_775,
)
_NOT_IN_MICROSECONDS = (9_223_372_036_854_776, 2**63 - 1, -(2**63), 2**62)


class Trip(NamedTuple):
    """What is exported, how, and how it is imported."""

    export: dict[str, Any]
    imports: dict[str, Any]
    has_bytes: bool  # any that are not UTF-8
    has_far_times: bool  # any that microseconds do not hold
    has_old: bool  # messages of v0 and v1

    def may_refuse(self, refusal: str) -> bool:
        """Whether there is a reason for an error, which has to name the record."""
        reasons = [
            self.has_bytes and re.search(r"is not UTF-8 text at .*\boffset \d+: pass ", refusal),
            self.has_old and re.search(r"offset \d+: Magic v[01] does not support zstd", refusal),
            self.has_far_times and re.search(r"timestamp .*offset \d+", refusal),
        ]
        return any(reasons)


class Outcome(NamedTuple):
    """What became of a trip: an empty text is records that came back."""

    refusal: str
    records: int
    is_right: bool  # if there is a refusal, whether it has a reason


def data(random_: random.Random, *, has_bytes: bool, large: bool = False) -> bytes | None:
    """A key or a value."""
    kind = random_.random()
    if large and kind < 0.02:
        return random_.choice((b"x", b"ab\n", b'"')) * (random_.randrange(1, 20 << 20))
    if kind < 0.15:
        return None
    if kind < 0.3:
        return b""
    if has_bytes and kind < 0.5:
        return random_.choice(_BYTES)
    return "".join(random_.choices(_TEXTS, k=random_.choice((1, 1, 2, 5)))).encode()


def record(random_: random.Random, times: tuple[int, ...], **kind: bool) -> kt.Record:
    headers = []
    if not kind.pop("old", False):
        for _ in range(random_.choice((0, 0, 0, 1, 3))):
            name = random_.choice(("", "a", "a", "é", '"', "k\n", "\x00", "key", "value"))
            headers.append((name, data(random_, has_bytes=kind["has_bytes"])))
    return kt.Record(
        data(random_, has_bytes=kind["has_bytes"]),
        data(random_, **kind),
        headers=tuple(headers),
        timestamp=random_.choice(times),
    )


def log_of(random_: random.Random, times: tuple[int, ...], **kind: bool) -> dict[int, bytes]:
    """A partition's segments."""
    offset = random_.choice((0, 0, 5, 2**31 - 2, 2**53 - 1, 2**63 - 200))
    segments: dict[int, bytes] = {offset: b""}
    producers = {id_: [0, random_.choice((0, 5, 2**31 - 3))] for id_ in (1, 1000, 2**40)}
    opened: set[int] = set()
    epoch = 0
    for _ in range(random_.randrange(12)):
        if random_.random() < 0.2:
            offset += random_.choice((0, 0, 1, 3))
            segments.setdefault(offset, b"")
        last = max(segments)
        epoch += random_.random() < 0.1
        magic = random_.choice((2, 2, 2, 2, 1, 0)) if kind["old"] else 2
        if opened and random_.random() < 0.3:
            id_ = opened.pop()
            segments[last] += kt.control_batch(
                random_.randrange(2),
                coordinator_epoch=random_.randrange(3),
                producer_id=id_,
                producer_epoch=producers[id_][0],
                base_offset=offset,
                base_timestamp=random_.choice(times),
                partition_leader_epoch=epoch,
            )
            offset += 1
            continue
        count = random_.choice((1, 1, 2, 5, 20))
        drawn = {name: value for name, value in kind.items() if name != "old"}
        rows = [record(random_, times, old=magic < 2, **drawn) for _ in range(count)]
        codec = random_.choice(("none", "none", "gzip", "snappy", "lz4", "zstd"))
        append_time = random_.random() < 0.15
        if magic < 2:
            codec = "none" if codec == "zstd" else codec
            rows = [replace(row, timestamp=max(row.timestamp or 0, -1)) for row in rows]
            segments[last] += kt.message_set(rows, base_offset=offset, magic=magic, codec=codec)
            offset += count
            continue
        fields: dict[str, Any] = {}
        if random_.random() < 0.5:
            id_ = random_.choice(list(producers))
            number = producers[id_]
            is_transactional = id_ in opened or random_.random() < 0.5
            if is_transactional:
                opened.add(id_)
            fields = {
                "producer_id": id_,
                "producer_epoch": number[0],
                "base_sequence": number[1],
                "is_transactional": is_transactional,
            }
            number[1] = reference.increment_sequence(number[1], count)
        # Compaction removes records, and never the last offset's batch.
        rows = [replace(row, offset_delta=place) for place, row in enumerate(rows)]
        kept = [row for row in rows if random_.random() < 0.9]
        if fields.get("is_transactional"):  # the first batch of an open transaction is not cleaned
            kept = kept or rows
        base_timestamp = random_.choice(times)
        largest = max((row.timestamp or 0 for row in kept), default=base_timestamp)
        segments[last] += kt.batch(
            kept,
            base_offset=offset,
            codec=codec if kept else "none",
            base_timestamp=base_timestamp,
            max_timestamp=random_.choice(times) if append_time else largest,
            timestamp_type=kt.LOG_APPEND_TIME if append_time else kt.CREATE_TIME,
            last_offset_delta=count - 1,
            partition_leader_epoch=epoch,
            **fields,
        )
        offset += count
    return segments


def draw(random_: random.Random, root: Path, *, large: bool) -> Trip:
    """Write logs, and choose how they go out and come in."""
    has_bytes, old = random_.random() < 0.4, random_.random() < 0.3
    times: tuple[int, ...] = random_.choice(((1_767_225_600_000,), _TIMES, _TIMES))
    has_far_times = random_.random() < 0.1
    if has_far_times:
        times += _NOT_IN_MICROSECONDS
    names = random_.sample([name for name in _TOPICS if "=" not in name], random_.choice((1, 1, 3)))
    for name in names:
        for number in random_.sample((0, 1, 7, 2**31 - 1), random_.choice((1, 1, 2))):
            folder = root / f"{name}-{number}"
            if len(folder.name) > 255:  # no file system takes it
                folder = root / f"{name}-0"
            if folder.exists():
                continue
            folder.mkdir()
            log = log_of(random_, times, has_bytes=has_bytes, old=old, large=large)
            for base_offset, content in log.items():
                (folder / f"{base_offset:020}.log").write_bytes(content)
    to = random_.choice(list(CODECS))
    columns = random_.choice(
        (None, "all", "all", "all", "topic,partition,offset,key,value,headers")
    )
    by = [name for name in ("topic", "partition", "date") if random_.random() < 0.3]
    export: dict[str, Any] = {
        "to": to,
        "columns": columns,
        "partition_by": by,
        "file_size": random_.choice(("1k", "4k", "256m")),
        "codec": random_.choice((None, *CODECS[to])),
        "encoding": random_.choice(("text", "base64")) if to in ("csv", "jsonl") else "text",
        "isolation_level": random_.choice(("read_uncommitted",) * 3 + ("read_committed",)),
        "topics": names,
    }
    imports = {
        "compression_type": random_.choice((None, "gzip", "zstd", "lz4", "snappy")),
        "batch_size": random_.choice((None, 100, 1 << 20)),
        "segment_bytes": random_.choice((None, 1 << 20, 1 << 30)),
        "max_message_bytes": 1 << 30,
    }
    return Trip(export, imports, has_bytes, has_far_times, old)


def logs_in(root: Path) -> dict[str, list[bytes]]:
    """The segments of each partition."""
    folders = sorted(path for path in root.iterdir() if any(path.glob("*.log")))
    return {
        folder.name: [path.read_bytes() for path in sorted(folder.glob("*.log"))]
        for folder in folders
    }


def rows_of(logs: list[bytes], *, committed: bool = False) -> list[Row]:
    """The records of a log as the slow twin reads them, with markers."""
    rows = [row for log in logs for row in reference.rows(log)]
    if not committed:
        return rows
    aborted, last_stable_offset = reference.transactions(logs)
    ends = {one.last_offset for one in aborted}
    markers = [
        row
        for row in rows
        if row["controlType"] and row["offset"] < last_stable_offset and row["offset"] not in ends
    ]
    return sorted(reference.committed_rows(logs) + markers, key=itemgetter("offset"))


def wanted(rows: list[Row], trip: Trip) -> list[Row]:
    """The records that must come back, with the columns that were exported."""
    columns = trip.export["columns"]
    if columns != "all":
        rows = [row for row in rows if row["controlType"] is None]
    names = {
        None: ["offset", "timestamp", "timestampType", "key", "value", "headers"],
        "all": [
            "offset",
            "timestamp",
            "timestampType",
            "key",
            "value",
            "headers",
            "sequence",
            "controlType",
            "coordinatorEpoch",
            "baseOffset",
            "partitionLeaderEpoch",
            "producerId",
            "producerEpoch",
            "isTransactional",
            "magic",
        ],
    }.get(columns, ["offset", "key", "value", "headers"])
    found = [{name: row[name] for name in names} for row in rows]
    for row in found:
        if trip.imports["batch_size"] or row.get("magic", 2) < 2:
            row.pop("baseOffset", None)  # batches are divided, and sets by their compression
        if columns is None:
            row["timestampType"] = max(0, row["timestampType"])  # v0 becomes v2
    return found


def travel(seed: int, root: Path, *, large: bool = False) -> Outcome:
    """Export and import the logs of a seed, and compare what came back with what was there."""
    random_ = random.Random(seed)
    logs, files, back = root / "logs", root / "files", root / "back"
    logs.mkdir()
    trip = draw(random_, logs, large=large)
    committed = trip.export["isolation_level"] == "read_committed"
    before = logs_in(logs)
    expected = {
        name: rows
        for name, held in before.items()
        if (rows := wanted(rows_of(held, committed=committed), trip))
    }
    count = sum(map(len, expected.values()))
    try:
        result = kafkajit.export(logs, files, **trip.export)
    except (kafkajit.KafkaJitError, ValueError, OSError, OverflowError) as error:
        return Outcome(f"export: {error}", count, trip.may_refuse(str(error)))
    assert result.records == count, (result.records, count)
    if not count:
        return Outcome("", 0, is_right=True)
    try:
        plan = kafkajit.import_files(files, back, **trip.imports)
        columns = trip.export["columns"]
        has_time = columns in (None, "all") or "timestamp" in columns
        # A folder's date is named if nothing else has the time.
        by_date = "date" in trip.export["partition_by"] and not has_time
        assert plan.left_out == LeftOut({"date"} if by_date else set()), plan.left_out
        opened = {str(one.partition): one.open_transactions for one in plan.apply()}
    except (kafkajit.KafkaJitError, ValueError, OSError, OverflowError) as error:
        assert not back.exists() or not any(back.iterdir()), sorted(back.iterdir())
        return Outcome(f"import: {error}", count, trip.may_refuse(str(error)))
    held = logs_in(back)
    after = {name: wanted(rows_of(logs), trip) for name, logs in held.items()}
    assert after.keys() == expected.keys(), (after.keys(), expected.keys())
    for name, rows in expected.items():
        assert len(after[name]) == len(rows), (name, len(after[name]), len(rows))
        for one, other in zip(rows, after[name], strict=True):
            assert one == other, (name, difference(one, other))
        if trip.export["columns"] == "all" and not (committed and opened[name]):
            committed_before, committed_after = (
                [row["offset"] for row in reference.committed_rows(logs)]
                for logs in (before[name], held[name])
            )
            assert committed_before == committed_after, (name, opened[name])
    return Outcome("", count, is_right=True)


def difference(one: Row, other: Row) -> dict[str, tuple[Any, Any]]:
    """The columns in which two records differ."""
    return {name: (one[name], other[name]) for name in one if one[name] != other[name]}


def trips(first: int, count: int, *, large: bool) -> Iterator[tuple[int, Outcome]]:
    """The outcomes of many trips."""
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as root:
            try:
                yield seed, travel(seed, Path(root), large=large)
            except Exception as error:
                yield seed, Outcome(f"FAILED {error!r:.500}", 0, is_right=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trips", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--large", action="store_true", help="with values of up to 20 MiB")
    options = parser.parse_args()
    logging.getLogger("kafkajit").setLevel(logging.ERROR)
    refusals: dict[str, list[int]] = {}
    records = 0
    for seed, outcome in trips(options.first, options.trips, large=options.large):
        records += 0 if outcome.refusal else outcome.records
        if outcome.refusal:
            kind = "" if outcome.is_right else "WRONG "
            shape = kind + re.sub(r"\S*/\S*|\d+|'[^']*'", "#", outcome.refusal)[:250]
            refusals.setdefault(shape, []).append(seed)
    print(f"{options.trips} trips, {records} records came back")
    for shape, seeds in sorted(refusals.items(), key=lambda item: -len(item[1])):
        print(f"{len(seeds):6} × {shape}  (seeds {seeds[:4]})")


if __name__ == "__main__":
    main()
