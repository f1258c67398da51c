"""Compares the figures of a report's document with the rows of its SQL.

PYTHONPATH=.:tests:tests/support python tests/support/report_sql.py --folders 100
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from report_twin import write_folder

from kafkajit.cli.sql.views import Logs
from kafkajit.report.take import ALL, ReportOptions, take

Rows = list[dict[str, Any]]
Figures = dict[Any, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VIEWS = ("records", "batches", "files", "corruption", "indexes", "checkpoints")


def document_of(root: str) -> dict[str, Any]:
    """The document of a report that reads everything."""
    return take(ReportOptions((root,), depth=ALL))


def rows_of(session: SparkSession, root: str, document: dict[str, Any]) -> dict[str, Rows]:
    """The rows of each query. The time of a row is in milliseconds."""
    views = [*_VIEWS, "transaction_index"]
    if document["groups"] is not None:
        views.append("consumer_offsets")
    for view in views:
        Logs([root], {"mode": "DROPMALFORMED"}).load(session, view).createOrReplaceTempView(view)
    return {
        name: [_without_times(row.asDict()) for row in session.sql(text).collect()]
        for name, text in document["sql"].items()
        if name != "groups" or document["groups"] is not None
    }


def _without_times(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _in_milliseconds(value) for name, value in row.items()}


def _in_milliseconds(value: Any) -> Any:
    if not isinstance(value, datetime):
        return bytes(value) if isinstance(value, bytearray) else value
    return (value.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)


def differences(document: dict[str, Any], rows: dict[str, Rows]) -> list[str]:
    """Each figure that differs."""
    return [
        f"{name}: {key}: {here.get(key)}, by SQL {there.get(key)}"
        for name, (here, there) in _pairs(document, rows)
        for key in here.keys() | there.keys()
        if here.get(key) != there.get(key)
    ]


def _by(rows: Rows, keys: tuple[str, ...], names: tuple[str, ...]) -> Figures:
    return {tuple(row[key] for key in keys): tuple(row[name] for name in names) for row in rows}


def _pairs(
    document: dict[str, Any], rows: dict[str, Rows]
) -> Iterator[tuple[str, tuple[Figures, Figures]]]:
    """The figures of the document and of SQL, for each query."""
    topics = document["topics"]
    decoded = {row["topic"] for row in rows["topics"] if row["setsNotCounted"]}
    headed = [topic for topic in topics if topic["batches"]]
    counted = [topic for topic in topics if topic["topic"] not in decoded]

    def same(name: str, here: Rows, names: tuple[str, ...]) -> tuple[str, tuple[Figures, Figures]]:
        kept = {topic["topic"] for topic in here}
        own = [row for row in rows[name] if row["topic"] in kept]
        return name, (_by(here, ("topic",), names), _by(own, ("topic",), names))

    keys = ("path",)
    names = ("topics", "partitions", "bytes")
    folders = [one for one in document["folders"] if one["partitions"]]
    by_sql = [row | {"path": row["folder"].removeprefix("file:")} for row in rows["folders"]]
    yield "folders", (_by(folders, keys, names), _by(by_sql, keys, names))
    yield same("topics", topics, ("partitions", "bytes", "batches", "lastTimestamp"))
    yield same("topics", counted, ("records", "firstTimestamp"))
    skews = {
        (topic["topic"],): max(sizes) * len(sizes) / sum(sizes)
        for topic in topics
        if sum(sizes := [one["bytes"] for one in topic["eachPartition"]])
    }
    by_sql = [row for row in rows["skew"] if row["skew"] is not None]
    yield (
        "skew",
        (
            {key: round(skew, 6) for key, skew in skews.items()},
            {(row["topic"],): round(row["skew"], 6) for row in by_sql},
        ),
    )
    for names, chosen in (
        (("bytes", "startOffset", "endOffset", "lastTimestamp"), topics),
        (("records", "firstTimestamp"), counted),
    ):
        kept = {topic["topic"] for topic in chosen}
        each = [
            one | {"topic": topic["topic"]} for topic in chosen for one in topic["eachPartition"]
        ]
        own = [row for row in rows["partitions"] if row["topic"] in kept]
        keys = ("topic", "partition")
        yield "partitions", (_by(each, keys, names), _by(own, keys, names))
    yield "life", _lives(topics, rows["life"], decoded)
    yield "codecs", _codecs(topics, rows["codecs"])
    for name, field, column in (
        ("formats", "formats", "magic"),
        ("timestampTypes", "timestampTypes", "timestampType"),
    ):
        kinds = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
        here = {
            (topic["topic"], kind): count
            for topic in topics
            for kind, count in topic[field].items()
        }
        there = {
            (row["topic"], f"v{row[column]}" if column == "magic" else kinds[row[column]]): row[
                "batches"
            ]
            for row in rows[name]
        }
        yield name, (here, there)
    yield "sizes", _sizes(topics, rows["sizes"], decoded)
    names = ("producers", "transactionalBatches", "controlBatches", "leaderEpochs")
    yield same("producers", headed, (*names, "abortedTransactions"))
    overlap = {one["topic"] for one in document["trouble"] if one["kind"] == "overlap"}
    # The order of batches that overlap is that of the log, and in SQL that of their offsets.
    ordered = [topic for topic in headed if topic["topic"] not in overlap]
    plain = [topic for topic in ordered if topic["topic"] not in decoded]
    yield same("producers", plain, ("missingOffsets",))
    timed = [topic for topic in ordered if topic["life"]]
    yield same("timestamps", timed, ("batchesBack", "batchesAhead"))
    yield "retention", _retention(topics, rows["retention"])
    read = [topic for topic in topics if topic["sample"]]
    names = ("records", "nullKeys", "distinctKeys", "tombstones", "withHeaders")
    sampled = [topic["sample"] | {"topic": topic["topic"]} for topic in read]
    yield "keys", (_by(sampled, ("topic",), names), _by(rows["keys"], ("topic",), names))
    yield "hottestKeys", _hottest(read, rows["hottestKeys"])
    compacted = [
        topic["savings"]["compaction"] | {"topic": topic["topic"]}
        for topic in topics
        if topic["savings"]["compaction"]
    ]
    names = ("records", "ofRecords")
    yield (
        "compaction",
        (
            _by(compacted, ("topic",), names),
            _by(rows["compaction"], ("topic",), names),
        ),
    )
    written = {
        (topic["topic"],): topic["lastModified"] or 0
        if topic["lastTimestamp"] is None
        else topic["lastTimestamp"]
        for topic in topics
    }
    yield "idle", (written, {(row["topic"],): row["lastWrite"] for row in rows["idle"]})
    if document["groups"] is not None:
        own = [one for one in document["groups"] if one["kind"] == "consumers"]
        names = ("offset", "endOffset", "lag", "committedAt")
        here = _by(own, ("group", "topic", "partition"), names)
        yield "groups", (here, _by(rows["groups"], ("groupId", "topic", "partition"), names))
    told = {one["path"]: 1 for one in document["trouble"] if one["kind"] == "index"}
    yield (
        "indexes",
        (
            told,
            {row["path"].removeprefix("file:"): 1 for row in rows["indexes"]},
        ),
    )
    damaged = {
        (one["path"], one["position"]): one["length"]
        for one in document["trouble"]
        if one["kind"] in ("corruption", "overlap")
    }
    yield (
        "trouble",
        (
            damaged,
            {
                (row["path"].removeprefix("file:"), row["position"]): row["length"]
                for row in rows["trouble"]
                if row["position"] is not None
            },
        ),
    )


def _lives(topics: Rows, rows: Rows, decoded: set[str]) -> tuple[Figures, Figures]:
    here: Figures = {}
    for topic in topics:
        life = topic["life"]
        if life is None:
            continue
        outside = [life[side] for side in ("before", "after") if life[side]]
        size = sum(life["bytes"]) + sum(one["bytes"] for one in outside)
        records = sum(life["records"]) + sum(one["records"] for one in outside)
        here[topic["topic"]] = size, None if topic["topic"] in decoded else records
    there: Figures = {}
    for row in rows:
        size, records = there.get(row["topic"], (0, 0))
        records = None if row["topic"] in decoded else records + (row["records"] or 0)
        there[row["topic"]] = size + row["bytes"], records
    return here, there


def _codecs(topics: Rows, rows: Rows) -> tuple[Figures, Figures]:
    here, there = {}, {}
    uncounted = {(row["topic"], row["compressionType"]) for row in rows if row["setsNotCounted"]}
    for topic in topics:
        for codec, one in topic["codecs"].items():
            key = topic["topic"], codec
            records = None if key in uncounted else one["records"]
            here[key] = one["batches"], one["bytes"], records
    for row in rows:
        key = row["topic"], row["compressionType"]
        there[key] = row["batches"], row["bytes"], None if key in uncounted else row["records"]
    return here, there


def _sizes(topics: Rows, rows: Rows, decoded: set[str]) -> tuple[Figures, Figures]:
    fields = {
        "records of a batch": lambda topic: topic["recordsPerBatch"],
        "bytes of a batch": lambda topic: topic["bytesPerBatch"],
        "bytes of a key": lambda topic: topic["sample"] and topic["sample"]["keyBytes"],
        "bytes of a value": lambda topic: topic["sample"] and topic["sample"]["valueBytes"],
    }
    found = {
        (topic["topic"], name): spread
        for topic in topics
        for name, spread_of in fields.items()
        if (spread := spread_of(topic))
        and not (name.startswith("rec") and topic["topic"] in decoded)
    }
    here, there = {}, {}
    by_sql = {(row["topic"], row["size"]): row for row in rows}
    for key, spread in found.items():
        here[key] = spread["max"], spread["mean"]
        row = by_sql.get(key)
        if row is None:
            continue
        there[key] = row["max"], round(row["mean"] or 0, 3)
        for percentile in ("p50", "p90", "p99"):  # the document rounds them to 0.4 %
            near = (
                abs(spread[percentile] - (row[percentile] or 0)) <= 0.004 * spread[percentile] + 1
            )
            here[(*key, percentile)] = True
            there[(*key, percentile)] = near
    return here, there


def _retention(topics: Rows, rows: Rows) -> tuple[Figures, Figures]:
    here = {
        (topic["topic"], one["days"]): one["bytes"]
        for topic in topics
        for one in topic["savings"]["retention"]
        if one["bytes"]
    }
    return here, {(row["topic"], row["days"]): row["bytes"] for row in rows if row["bytes"]}


def _hottest(topics: Rows, rows: Rows) -> tuple[Figures, Figures]:
    here = {
        topic["topic"]: [one["records"] for one in topic["sample"]["hottestKeys"]]
        for topic in topics
        if topic["sample"]["hottestKeys"]
    }
    there: Figures = {}
    for row in rows:
        there.setdefault(row["topic"], []).append(row["records"])
    return here, {topic: counts[: len(here.get(topic, counts))] for topic, counts in there.items()}


def main() -> None:
    """Compare random folders."""
    from kafkajit.spark.local.session import local_session

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folders", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    session = local_session()
    for seed in range(options.seed, options.seed + options.folders):
        with tempfile.TemporaryDirectory() as folder:
            write_folder(Path(folder), seed)
            document = document_of(folder)
            for difference in differences(document, rows_of(session, folder, document)):
                sys.stdout.write(f"seed {seed}: {difference}\n")


if __name__ == "__main__":
    main()
