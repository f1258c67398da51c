"""Takes the figures of a report, as one document: docs/report.md describes its fields.

list ─▶ headers of all batches, topic by topic ─▶ a sample of records ─▶ savings, dry runs
     └▶ files beside logs, indexes, groups ─▶ trouble
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from kafkajit.format.notebook import in_notebook
from kafkajit.format.progress import Progress
from kafkajit.log.live_segments import served_now
from kafkajit.log.missing_segments import MissingSegments
from kafkajit.log.segment import Segment
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.report import groups, open_transactions, trouble
from kafkajit.report.dry_runs import DryRuns, folder_of
from kafkajit.report.folder import Folder, look_at
from kafkajit.report.headers import TopicFigures
from kafkajit.report.internal_topics import InternalTopics
from kafkajit.report.sample import Part, RecordFigures, spread
from kafkajit.report.sql import statements
from kafkajit.report.tasks import (
    HERE,
    OPENING,
    CheckIndexes,
    DryRun,
    ReadRecords,
    Runner,
    cost_of_index,
    cost_of_part,
    cut,
    encode_tasks,
    header_tasks,
)
from kafkajit.report.topic_report import TopicReport
from kafkajit.report.trouble import Trouble

VERSION = 1
HEADERS, SAMPLE, ALL = "headers", "sample", "all"
DEPTHS = (HEADERS, SAMPLE, ALL)
# A sample has these bytes of logs in all, at most. Topics share them as they share the bytes of the
# folder, but each gets a little.
_SAMPLE_BYTES = 64 << 20
_LEAST_SAMPLE = 64 << 10
# A part of a sample has a MiB, or less in small segments: a topic of those has this number, if not
# more.
_LEAST_PARTS = 8
# A folder of no more bytes than a sample is read whole, unless it has more segments than these.
_WHOLE_SEGMENTS = 2000
# What is encoded anew, of all topics, and for how many topics: the largest.
_ENCODED_BYTES = 24 << 20
_ENCODED_TOPICS = 25
# Indexes that are compared with their logs, unless all are asked for.
_CHECKED_INDEXES = 1000
# Retention and compaction are planned if the sample is all records and there are no more partitions
# than these, or if all records are asked for.
_PLANNED_PARTITIONS = 1000


@dataclass(frozen=True)
class ReportOptions:
    """The paths of a report, and how thoroughly they are read."""

    paths: tuple[str, ...]
    topics: tuple[str, ...] = ()
    depth: str = SAMPLE
    keys: PrivateKeys = NO_KEYS
    now: int | None = None  # milliseconds; the clock's by default


def take(
    options: ReportOptions, progress: Progress | None = None, runner: Runner = HERE
) -> dict[str, Any]:
    """Take the figures and return the document; without `progress` a notebook shows it.

    >>> import kafkajit.testing as kt
    >>> take(ReportOptions((str(kt.SAMPLE),), depth="headers"))["totals"]["topics"]
    2
    """
    with in_notebook() as shown:
        return _take(options, progress or shown, runner)


def _take(options: ReportOptions, progress: Progress, runner: Runner) -> dict[str, Any]:
    begun = time.monotonic()
    now = options.now if options.now is not None else time.time_ns() // 1_000_000
    unread: list[Exception] = []
    folder = look_at(options.paths, topics=options.topics, keys=options.keys, failed=unread.append)
    folder.partitions = served_now(folder.partitions)
    troubles = [*trouble.of_overlaps(folder.partitions)]
    topics = _read_headers(folder, now, troubles, progress, runner)
    if options.depth != HEADERS:
        _read_records(topics, options.depth, progress, runner)
        damage = [(topic.name, gap) for topic in topics for gap in topic.damage]
        troubles.extend([*trouble.of_records(damage, troubles)])
        _save(topics, progress, runner)
        _dry_run(topics, options.depth, now, progress, runner)
    every = [segment for topic in topics for segment in topic.segments]
    indexes = trouble.indexes_of(segment for segment in every if segment.log.is_local)
    checked = indexes
    if options.depth != ALL:
        checked = trouble.spread(indexes, _CHECKED_INDEXES)
    share = runner.share(sum(map(cost_of_index, checked)))
    for piece in runner.run(map(CheckIndexes, cut(checked, share, cost_of_index))):
        troubles.extend(piece)
    missing = MissingSegments(folder.files.values(), unread.append)
    for topic in topics:
        troubles.extend(trouble.of_topic(topic.figures, missing))
    troubles.extend([*map(trouble.of_leftover, folder.problems()), *map(trouble.of_unread, unread)])
    segments = {topic.name: topic.newest_copies() for topic in topics}
    internal = InternalTopics(segments, options.paths, options.keys, runner, troubles)
    commits = internal.commits(folder.topics_by_id)
    figures = [topic.figures for topic in topics]
    coordinators = None
    if folder.is_of_one_cluster and any(map(_has_open_transactions, figures)):
        # This is read after all logs, so none of them has a transaction that is newer.
        coordinators = internal.coordinators()
    troubles.extend(open_transactions.of_topics(figures, coordinators, [*troubles], now))
    times = [
        (partition.first_timestamp, partition.last_timestamp)
        for topic in figures
        for partition in topic.partitions
        if partition.first_timestamp is not None and partition.last_timestamp is not None
    ]
    documents = [topic.document(folder, commits, now) for topic in topics]
    return {
        "version": VERSION,
        "madeBy": _made_by(),
        "madeAt": now,
        "seconds": round(time.monotonic() - begun, 3),
        "paths": list(options.paths),
        "asked": list(options.topics),
        "depth": options.depth,
        "takenFrom": {
            "headers": {
                "segments": len(every),
                "batches": sum(topic.batches for topic in figures),
                "bytes": sum(topic.bytes for topic in figures),
            },
            "sample": None if options.depth == HEADERS else _sampled(topics),
            "indexes": {"checked": len(checked), "of": len(indexes)},
            "dryRuns": _planned(topics),
        },
        "totals": {
            "topics": len(topics),
            "partitions": sum(len(topic.partitions) for topic in figures),
            "segments": len(every),
            "bytes": sum(topic.bytes for topic in figures),
            "bytesOnDisk": sum(document["bytesOnDisk"] for document in documents),
            "otherBytes": sum(folder.other_bytes.values()),
            "otherBytesOnDisk": sum(folder.other_bytes_on_disk.values()),
            "records": sum(topic.records for topic in figures),
            "batches": sum(topic.batches for topic in figures),
            "firstTimestamp": min((first for first, _ in times), default=None),
            "lastTimestamp": max((last for _, last in times), default=None),
        },
        "folders": [
            {
                "path": root.path,
                "brokerId": root.broker_id,
                "clusterId": root.cluster_id,
                "topics": len(root.topics),
                "partitions": root.partitions,
                "bytes": root.bytes,
            }
            for root in folder.roots
        ],
        "waiting": [one.document() for one in folder.waiting],
        "topics": documents,
        "groups": None if commits is None else groups.documents(commits, _ends(topics)),
        "trouble": [each.document() for each in trouble.in_order(troubles)],
        "sql": statements(),
    }


def _read_headers(
    folder: Folder, now: int, troubles: list[Trouble], progress: Progress, runner: Runner
) -> list[TopicReport]:
    topics: dict[str, TopicReport] = {}
    named: dict[str, list[list[Segment]]] = {}
    for partition in folder.partitions:
        named.setdefault(_topic_of(partition), []).append(partition)
    total = sum(segment.log.size for partition in folder.partitions for segment in partition)
    files = sum(map(len, folder.partitions))
    share = runner.share(total + files * OPENING)
    tasks = [task for name in sorted(named) for task in header_tasks(name, now, named[name], share)]
    done = 0
    pieces = zip(tasks, runner.run(tasks), strict=True)
    for name, of_topic in groupby(pieces, key=lambda piece: piece[0].topic):
        topic = topics[name] = TopicReport(name, TopicFigures(name, now))
        for task, (figures, gaps) in of_topic:
            topic.figures.add_all(figures)
            troubles.extend(gaps)
            done += sum(segment.log.size for run in task.runs for segment in run)
            progress("headers", done, total)
        topic.figures.add_up()
    for topic in topics.values():
        for one in topic.figures.partitions:
            topic.segments.extend(one.read)
            if one.read:
                one.log_start_offset = folder.start_offset(one.read)
    return list(topics.values())


def _has_open_transactions(topic: TopicFigures) -> bool:
    return any(partition.open_transactions for partition in topic.partitions)


def _ends(topics: Iterable[TopicReport]) -> dict[tuple[str | None, int | None], int]:
    """The end offsets of partitions: of several copies, the highest."""
    found: dict[tuple[str | None, int | None], int] = {}
    for topic in topics:
        for partition in topic.figures.partitions:
            place = topic.figures.topic, partition.partition
            found[place] = max(found.get(place, 0), partition.end_offset)
    return found


def _topic_of(partition: list[Segment]) -> str:
    """The topic, or the folder if that is not named after one."""
    first = partition[0]
    return first.path.topic or first.log.folder.rpartition("/")[2] or "/"


def _is_whole(topics: Sequence[TopicReport], depth: str) -> bool:
    """Whether all records are read."""
    size = sum(topic.figures.bytes for topic in topics)
    segments = sum(len(topic.segments) for topic in topics)
    return depth == ALL or (size <= _SAMPLE_BYTES and segments <= _WHOLE_SEGMENTS)


def _read_records(
    topics: Sequence[TopicReport], depth: str, progress: Progress, runner: Runner
) -> None:
    total = sum(topic.figures.bytes for topic in topics)
    most = _SAMPLE_BYTES
    is_whole = _is_whole(topics, depth)
    for topic in topics:
        every = enumerate(topic.figures.partitions)
        marked = [(owner, marks) for owner, one in every for marks in one.marks]
        size = topic.figures.bytes
        share = size if is_whole else max(_LEAST_SAMPLE, most * size // max(total, 1))
        parts = None if is_whole else max(_LEAST_PARTS, share >> 20)
        topic.sampled = spread(
            [marks for _, marks in marked], share, parts, [owner for owner, _ in marked]
        )
        for one in topic.figures.partitions:
            one.marks = []
    share_ = runner.share(sum(cost_of_part(part) for topic in topics for part in topic.sampled))
    tasks = (
        ReadRecords(topic.name, parts)
        for topic in topics
        for parts in cut(topic.sampled, share_, cost_of_part)
    )
    by_name = {topic.name: topic for topic in topics}
    done = 0
    for name, pieces in groupby(runner.run(tasks), key=itemgetter(0)):
        # The sketch of a topic's keys takes megabytes: one topic's at a time.
        figures = RecordFigures()
        for _, piece in pieces:
            figures.add_all(piece)
        topic = by_name[name]
        topic.sampled_records, topic.sampled_bytes = figures.records, figures.bytes
        topic.sample = figures.document()
        topic.compaction = figures.compaction(topic.figures.records)
        topic.damage = figures.others.gaps
        done += topic.figures.bytes
        progress("records", done, total)


def _save(topics: Sequence[TopicReport], progress: Progress, runner: Runner) -> None:
    """Measure what other encodings would save for the largest topics."""
    largest = sorted(topics, key=lambda topic: -topic.figures.bytes)[:_ENCODED_TOPICS]
    total = sum(topic.figures.bytes for topic in largest)
    tasks = []
    for topic in largest:
        share = max(_LEAST_SAMPLE, _ENCODED_BYTES * topic.figures.bytes // max(total, 1))
        parts = _first_bytes(topic.sampled, share)
        if parts:
            tasks += encode_tasks(topic.name, parts, is_cut=runner.share(0) is not None)
    by_name = {topic.name: topic for topic in largest}
    for number, (task, (records, size, encodings)) in enumerate(
        zip(tasks, runner.run(tasks), strict=True)
    ):
        if records:
            topic = by_name[task.topic]
            topic.encodings["sample"] = {"records": records, "bytes": size}
            topic.encodings["now"] = {"codec": topic.figures.main_codec, "bytes": size}
            topic.encodings["encodings"] += encodings
        progress("savings", number + 1, len(tasks))


def _dry_run(
    topics: Sequence[TopicReport], depth: str, now: int, progress: Progress, runner: Runner
) -> None:
    """Plan retention and compaction for all local partitions, unless that would take long."""
    total = sum(len(topic.figures.partitions) for topic in topics)
    if not _is_whole(topics, depth) or (depth != ALL and total > _PLANNED_PARTITIONS):
        return
    by_name = {topic.name: topic for topic in topics}
    tasks = []
    for topic in topics:
        topic.dry_runs = DryRuns(now)
        for partition in topic.figures.partitions:
            folder = folder_of(partition.read)
            if folder is not None:
                has_keys = topic.compaction is not None
                tasks.append(DryRun(topic.name, folder, partition.bytes, now, has_keys))
    for number, (task, plans) in enumerate(zip(tasks, runner.run(tasks), strict=True)):
        planned = by_name[task.topic].dry_runs
        assert planned is not None
        planned.add_all(plans)
        progress("plans", number + 1, len(tasks))


def _first_bytes(parts: Sequence[Part], most: int) -> list[Part]:
    """Every n-th part, so that all have about this number of bytes."""
    total = sum(part.size for part in parts)
    step = max(1, -(-total // most))
    return list(parts[::step])


def _sampled(topics: Sequence[TopicReport]) -> dict[str, int]:
    return {
        "records": sum(topic.sampled_records for topic in topics),
        "bytes": sum(topic.sampled_bytes for topic in topics),
        "ofRecords": sum(topic.figures.records for topic in topics),
        "ofBytes": sum(topic.figures.bytes for topic in topics),
    }


def _planned(topics: Sequence[TopicReport]) -> dict[str, int] | None:
    planned = [topic.dry_runs.partitions for topic in topics if topic.dry_runs is not None]
    if not planned:
        return None
    return {
        "partitions": sum(planned),
        "of": sum(len(topic.figures.partitions) for topic in topics),
    }


def _made_by() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"kafkajit {version('kafkajit')}"
    except PackageNotFoundError:  # run from a checkout
        return "kafkajit"
