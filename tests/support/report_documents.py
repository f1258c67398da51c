"""Synthetic documents of `kafkajit report`: many topics, one, none, and all figures missing.

The same arguments give the same document. Two documents are compared figure by figure.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

NOW = 1_795_478_400_000  # 2026-11-24T00:00:00Z
HOUR = 3_600_000
DAY = 24 * HOUR

_NOUNS = (
    "orders",
    "payments",
    "clicks",
    "shipments",
    "prices",
    "users",
    "stock",
    "carts",
    "audit",
    "metrics",
)
_SUFFIXES = ("", ".v2", ".retry", ".dlq", "-enriched", "-changelog", ".eu", ".us", "-daily")
_CODECS = ("zstd", "lz4", "none", "snappy", "gzip")
_LEVELS = {"zstd": (1, 3, 9), "gzip": (1, 6), "lz4": (1, 9), "snappy": (None,), "none": (None,)}
_BATCH_SIZES = (16_384, 131_072, 1_048_576)
_RATIOS = {"none": 1.0, "snappy": 0.52, "lz4": 0.48, "gzip": 0.31, "zstd": 0.27}
_ENCODE_RATES = {"none": 4e9, "snappy": 6e8, "lz4": 7e8, "gzip": 6e7, "zstd": 4e8}
_DECODE_RATES = {"none": 9e9, "snappy": 1.4e9, "lz4": 3e9, "gzip": 3e8, "zstd": 1.1e9}
_SQL = {
    name: f"SELECT topic, count(*) AS n  -- {name}\nFROM batches\nGROUP BY topic\nORDER BY n DESC"
    for name in (
        "totals",
        "folders",
        "topics",
        "skew",
        "formats",
        "codecs",
        "life",
        "sizes",
        "keys",
        "producers",
        "timestamps",
        "partitions",
        "encodings",
        "retention",
        "compaction",
        "idle",
        "groups",
        "trouble",
    )
}


def document(
    topics: int = 30,
    partitions: int | None = None,
    *,
    steps: int = 120,
    depth: str = "sample",
    seed: int = 1,
) -> dict[str, Any]:
    """A document of a cluster; with `partitions`, each topic has this number of them."""
    dice = random.Random(seed)
    made = [
        topic(name, partitions or dice.choice((1, 3, 6, 12, 24)), dice, steps=steps, depth=depth)
        for name in _names(topics)
    ]
    groups = [row for each in made for row in _groups(each, dice)]
    return _complete(made, groups, dice, depth)


def one_topic() -> dict[str, Any]:
    """A document of one topic, `orders`, of which all records were read."""
    return document(1, 6, depth="all")


def empty_folder() -> dict[str, Any]:
    """A document of a folder without logs."""
    return _complete([], [], random.Random(1), "headers")


def all_null() -> dict[str, Any]:
    """A document of one topic in which each figure that may be missing is missing."""
    whole = document(1, 2, depth="headers")
    (only,) = whole["topics"]
    for name in ("firstTimestamp", "lastTimestamp", "lastModified", "topicId", "life"):
        only[name] = None
    for name in ("recordsPerBatch", "bytesPerBatch", "sample", "savings", "groups", "lastCommit"):
        only[name] = None
    for name in ("formats", "codecs", "timestampTypes"):
        only[name] = {}
    for row in only["eachPartition"]:
        row.update(firstTimestamp=None, lastTimestamp=None)
    for folder in whole["folders"]:
        folder.update(brokerId=None, clusterId=None)
    whole["totals"].update(firstTimestamp=None, lastTimestamp=None)
    return whole | {"groups": None, "trouble": [], "sql": {}}


def _names(count: int) -> list[str]:
    names = []
    for number in range(count):
        noun = _NOUNS[number % len(_NOUNS)]
        round_ = number // len(_NOUNS)
        suffix = _SUFFIXES[round_ % len(_SUFFIXES)]
        turn = round_ // len(_SUFFIXES)
        names.append(f"team{turn}.{noun}{suffix}" if turn else f"{noun}{suffix}")
    if count > 20:
        names[-2:] = ["__consumer_offsets", "__transaction_state"]
    return names


def topic(
    name: str, partitions: int, dice: random.Random, *, steps: int = 120, depth: str = "sample"
) -> dict[str, Any]:
    """One topic's part of a document."""
    size = dice.lognormvariate(18, 2.2)
    record = dice.choice((120, 300, 900, 4_000))
    skew = dice.choice((0.05, 0.1, 0.3, 1.2))
    weights = [dice.lognormvariate(0, skew) for _ in range(partitions)]
    idle = dice.choice((0, 0, 0, 0, 3, 45, 200)) * DAY
    last = NOW - idle - dice.randrange(HOUR)
    first = last - steps * HOUR + dice.randrange(HOUR)
    each = [
        _partition(number, int(size * weight / sum(weights)), record, (first, last), dice)
        for number, weight in enumerate(weights)
    ]
    total = {key: sum(row[key] for row in each) for key in ("bytes", "records", "batches")}
    codecs = _codecs(total, dice)
    return {
        "topic": name,
        "topicId": f"{dice.getrandbits(128):032x}"[:22],
        "isInternal": name.startswith("__"),
        "partitions": partitions,
        "segments": sum(row["segments"] for row in each),
        "otherBytes": total["bytes"] // 400,
        **total,
        "firstTimestamp": first,
        "lastTimestamp": last,
        "lastModified": last + 500,
        "formats": {"v2": total["batches"]},
        "codecs": codecs,
        "timestampTypes": {dice.choice(("CreateTime",) * 4 + ("LogAppendTime",)): total["batches"]},
        "life": _life(total, first, steps, dice),
        "recordsPerBatch": _spread(total["records"] / max(1, total["batches"]), dice),
        "bytesPerBatch": _spread(total["bytes"] / max(1, total["batches"]), dice),
        "batchesBack": dice.choice((0, 0, 12, 4_031)),
        "batchesAhead": dice.choice((0, 0, 0, 2)),
        "missingOffsets": dice.choice((0, 0, total["records"] // 9)),
        "producers": dice.randrange(1, 40),
        "transactionalBatches": (transactional := dice.choice((0, 0, total["batches"] // 3))),
        "controlBatches": transactional // 20,
        "abortedTransactions": transactional // 900,
        "leaderEpochs": dice.randrange(1, 9),
        "eachPartition": each,
        "sample": None if depth == "headers" else _sample(total, record, depth, dice),
        "savings": None if depth == "headers" else _savings(total, codecs, dice),
        "groups": dice.choice((0, 1, 1, 2, 3)),
        "lastCommit": last + 2_000 if dice.random() < 0.7 else None,
    }


def _partition(
    number: int, size: int, record: int, times: tuple[int, int], dice: random.Random
) -> dict[str, Any]:
    records = max(1, int(size / record * dice.uniform(1.5, 3)))
    start = dice.choice((0, dice.randrange(10**9)))
    return {
        "partition": number,
        "folder": f"/var/kafka/data{number % 2}",
        "segments": 1 + size // 2**30,
        "bytes": size,
        "records": records,
        "batches": max(1, records // dice.randrange(5, 90)),
        "startOffset": start,
        "endOffset": start + records,
        "firstTimestamp": times[0] + dice.randrange(HOUR),
        "lastTimestamp": times[1] - dice.randrange(HOUR),
    }


def _codecs(total: dict[str, int], dice: random.Random) -> dict[str, dict[str, int]]:
    first, second = dice.sample(_CODECS, 2)
    share = dice.choice((1.0, 1.0, 0.8))
    parts = {first: share} | ({second: 1 - share} if share < 1 else {})
    return {
        codec: {key: int(total[key] * part) for key in ("batches", "records", "bytes")}
        for codec, part in parts.items()
    }


def _life(total: dict[str, int], first: int, steps: int, dice: random.Random) -> dict[str, Any]:
    phase = dice.random() * 24
    weights = [
        (1.3 + math.sin((step + phase) / 24 * 2 * math.pi)) * dice.uniform(0.7, 1.3)
        for step in range(steps)
    ]
    return {
        "step": HOUR,
        "from": first // HOUR * HOUR,
        "bytes": _shares(total["bytes"], weights),
        "records": _shares(total["records"], weights),
    }


def _shares(total: int, weights: Sequence[float]) -> list[int]:
    shares = [int(total * weight / sum(weights)) for weight in weights]
    shares[0] += total - sum(shares)
    return shares


def _spread(mean: float, dice: random.Random) -> dict[str, float]:
    tail = dice.uniform(1.2, 3)
    return {
        "mean": round(mean, 1),
        "p50": int(mean * 0.9),
        "p90": int(mean * tail),
        "p99": int(mean * tail**2),
        "max": int(mean * tail**3) + 1,
    }


def _sample(total: dict[str, int], record: int, depth: str, dice: random.Random) -> dict[str, Any]:
    records = total["records"] if depth == "all" else min(total["records"], 20_000)
    distinct = max(1, int(records * dice.choice((0.02, 0.3, 0.9))))
    return {
        "records": records,
        "bytes": records * record,
        "nullKeys": dice.choice((0, 0, records // 7)),
        "tombstones": dice.choice((0, records // 50)),
        "withHeaders": dice.choice((0, records // 2, records)),
        "keyBytes": _spread(18, dice),
        "valueBytes": _spread(record, dice),
        "distinctKeys": distinct,
        "hottestKeys": [
            {"key": f"customer-{dice.randrange(10**6)}", "records": records // (rank * 11)}
            for rank in range(1, 9)
        ],
    }


def _savings(
    total: dict[str, int], codecs: dict[str, dict[str, int]], dice: random.Random
) -> dict[str, Any]:
    plain = min(total["bytes"] * 3, 50_000_000)
    encodings = []
    for codec, levels in _LEVELS.items():
        for level in levels:
            for batch in _BATCH_SIZES:
                effort = 1 + math.log(level or 1)
                ratio = _RATIOS[codec] ** (1 + 0.05 * math.log(batch / 16_384) + 0.03 * effort)
                encodings.append(
                    {
                        "codec": codec,
                        "level": level,
                        "batchBytes": batch,
                        "bytes": int(plain * ratio * dice.uniform(0.97, 1.03)),
                        "encodeSeconds": round(plain / _ENCODE_RATES[codec] * effort**2, 5),
                        "decodeSeconds": round(plain / _DECODE_RATES[codec], 5),
                    }
                )
    codec = max(codecs, key=lambda name: codecs[name]["bytes"])
    return {
        "sample": {"records": 20_000, "bytes": plain},
        "now": {"codec": codec, "bytes": int(plain * _RATIOS[codec] * 1.1)},
        "encodings": encodings,
        "retention": [
            {"days": days, "bytes": int(total["bytes"] * max(0.0, 1 - days / 14))}
            for days in (1, 3, 7, 14, 30)
        ],
        "compaction": dice.choice(
            (None, {"records": 13_000, "ofRecords": 20_000, "bytes": int(plain * 0.4)}),
        ),
        "dryRuns": None,
    }


def _groups(topic: dict[str, Any], dice: random.Random) -> list[dict[str, Any]]:
    rows = []
    for number in range(topic["groups"]):
        members = dice.choice((True, True, False, None))
        lag = dice.choice((0, 3, 40, 900, 200_000))
        for row in topic["eachPartition"]:
            behind = min(row["records"], int(lag * dice.uniform(0.2, 1.8)))
            rows.append(
                {
                    "group": f"{topic['topic'].strip('_')}-reader-{number}",
                    "topic": topic["topic"],
                    "partition": row["partition"],
                    "offset": row["endOffset"] - behind,
                    "endOffset": row["endOffset"],
                    "lag": behind,
                    "committedAt": topic["lastTimestamp"] + dice.randrange(5_000),
                    "hasMembers": members,
                }
            )
    return rows


_TROUBLE = (
    ("damage", "corruption", "Record batch has an invalid CRC: 0x1b2c3d4e instead of 0x5f60718a",
     "stop the broker, then: kafkajit repair /var/kafka/data0 --dry-run"),
    ("warning", "openTransaction", "a transaction of producer 4711 has been open for 3 days",
     "kafka-transactions.sh abort … ends it"),
    ("warning", "index", "an entry of the .timeindex leads to no batch", "delete the file: the "
     "broker builds it again"),
    ("note", "tornTail", "the last 117 bytes are not a whole batch", None),
    ("note", "leftover", "a .deleted segment of 3 days ago takes 1,073,741,820 bytes", None),
)  # fmt: skip


def _complete(
    topics: list[dict[str, Any]], groups: list[dict[str, Any]], dice: random.Random, depth: str
) -> dict[str, Any]:
    def total(name: str) -> int:
        return sum(topic[name] for topic in topics)

    each = [(topic["topic"], row) for topic in topics for row in topic["eachPartition"]]
    trouble = [
        {
            "severity": severity,
            "kind": kind,
            "topic": name,
            "partition": row["partition"],
            "path": f"{row['folder']}/{name}-{row['partition']}/{row['startOffset']:020}.log",
            "position": dice.randrange(row["bytes"] + 1),
            "length": dice.randrange(1, 9_000),
            "problem": problem,
            "advice": advice,
        }
        for (severity, kind, problem, advice), (name, row) in zip(_TROUBLE, each, strict=False)
    ]
    sampled = [topic["sample"] for topic in topics if topic["sample"]]
    return {
        "version": 1,
        "madeBy": "kafkajit 0.1.0",
        "madeAt": NOW,
        "seconds": 1.9,
        "paths": ["/var/kafka"],
        "asked": [],
        "depth": depth,
        "takenFrom": {
            "headers": {
                "segments": total("segments"),
                "batches": total("batches"),
                "bytes": total("bytes"),
            },
            "sample": {
                "records": sum(sample["records"] for sample in sampled),
                "bytes": sum(sample["bytes"] for sample in sampled),
                "ofRecords": total("records"),
                "ofBytes": total("bytes"),
            }
            if sampled
            else None,
        },
        "totals": {
            "topics": len(topics),
            **{
                name: total(name)
                for name in ("partitions", "segments", "bytes", "otherBytes", "records", "batches")
            },
            "firstTimestamp": min((topic["firstTimestamp"] for topic in topics), default=None),
            "lastTimestamp": max((topic["lastTimestamp"] for topic in topics), default=None),
        },
        "folders": [
            {
                "path": f"/var/kafka/data{number}",
                "brokerId": number + 1,
                "clusterId": "MkU3OEVBNTcwNTJENDM2Qk",
                "topics": len({name for name, row in each if row["folder"][-1] == str(number)}),
                "partitions": sum(row["folder"][-1] == str(number) for _, row in each),
                "bytes": sum(row["bytes"] for _, row in each if row["folder"][-1] == str(number)),
            }
            for number in range(2)
        ],
        "topics": topics,
        "groups": groups,
        "trouble": trouble,
        "sql": dict(_SQL),
    }


def differences(one: object, other: object, at: str = "") -> Iterator[str]:
    """The figures in which two documents differ, each with its place: whole, they fill pages."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in one.keys() | other.keys():
            yield from differences(one.get(name, ...), other.get(name, ...), f"{at}/{name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{at}/{number}")
    elif one != other:
        yield f"{at}: {one!r} and {other!r}"
