"""Trouble in a folder, certain or possible: damage, indexes, transactions, leftovers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import parse_log_path
from kafkajit.log.missing_offsets import Missing
from kafkajit.log.missing_segments import MissingSegments
from kafkajit.log.overlaps import all_unserved
from kafkajit.log.segment import Segment
from kafkajit.report.folder import Leftover
from kafkajit.report.headers import TopicFigures
from kafkajit.report.partition import PartitionFigures
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.sidecar_table import SidecarSplit, read_sidecar_files
from kafkajit.scan.table import schema_of
from kafkajit.state.checkpoints import START_OFFSETS
from kafkajit.walk.damage import Gap

logger = logging.getLogger("kafkajit")

DAMAGE, WARNING, NOTE = "damage", "warning", "note"
_SEVERITIES = (DAMAGE, WARNING, NOTE)
_INDEX_OPTIONS = ScanOptions(("",), kind="indexes")
_INDEX_SCHEMA = schema_of(_INDEX_OPTIONS)


class Trouble(NamedTuple):
    """Something that is wrong, or may be."""

    severity: str
    kind: str
    topic: str | None
    partition: int | None
    path: str
    problem: str
    advice: str | None = None
    position: int | None = None
    length: int | None = None
    first_missing_offset: int | None = None
    last_missing_offset: int | None = None

    def document(self) -> dict[str, Any]:
        """The entry in the document."""
        return {
            "severity": self.severity,
            "kind": self.kind,
            "topic": self.topic,
            "partition": self.partition,
            "path": self.path,
            "position": self.position,
            "length": self.length,
            "firstMissingOffset": self.first_missing_offset,
            "lastMissingOffset": self.last_missing_offset,
            "problem": self.problem,
            "advice": self.advice,
        }


def in_order(troubles: Iterable[Trouble]) -> list[Trouble]:
    """Damage first, then by topic and partition."""
    return sorted(
        troubles,
        key=lambda one: (
            _SEVERITIES.index(one.severity),
            one.topic or "",
            one.partition or 0,
            one.path,
            one.position or 0,
        ),
    )


def of_gap(gap: Gap, topic: str | None, partition: int | None) -> Trouble:
    """Damaged bytes of a log."""
    return Trouble(
        DAMAGE,
        "corruption",
        topic,
        partition,
        gap.path or "",
        gap.reason,
        "kafkajit repair shows what a broker would do about it, and what can be saved",
        gap.position,
        gap.length,
    )


def of_unread(error: Exception) -> Trouble:
    """A folder or a file that is left out, because it cannot be listed."""
    path = str(getattr(error, "filename", None) or "")
    problem = error.strerror if path and isinstance(error, OSError) else None
    return Trouble(DAMAGE, "unreadable", None, None, path, problem or str(error))


def of_records(damage: Iterable[tuple[str, Gap]], known: Iterable[Trouble]) -> Iterator[Trouble]:
    """The damage that only reading a topic's records finds: wrong checksums, or their shape."""
    stretches: dict[str, list[tuple[int, int]]] = {}
    for one in known:
        if one.position is not None and one.length is not None:
            stretches.setdefault(one.path, []).append((one.position, one.position + one.length))
    for topic, gap in damage:
        path = gap.path or ""
        start, end = gap.position, gap.position + gap.length
        partition = parse_log_path(path).partition
        for first, last in [*sorted(stretches.get(path, ())), (end, end)]:
            if start < min(first, end):
                rest = gap._replace(position=start, length=min(first, end) - start)
                yield of_gap(rest, topic, partition)
            start = max(start, last)


def of_overlaps(partitions: Iterable[Sequence[Segment]]) -> Iterator[Trouble]:
    """The stretches of segments that consumers do not get, because segments before them overlap."""
    for partition in partitions:
        path = partition[0].path
        try:
            for gap in all_unserved(partition):
                yield Trouble(
                    DAMAGE,
                    "overlap",
                    path.topic,
                    path.partition,
                    gap.path or "",
                    gap.reason,
                    "the figures are without them; kafkajit repair keeps what consumers get",
                    gap.position,
                    gap.length,
                )
        except (OSError, EOFError, KafkaJitError) as error:
            logger.warning(
                "%s: overlapping segments are not named: %s", partition[0].log.folder, error
            )


def of_topic(topic: TopicFigures, missing: MissingSegments) -> Iterator[Trouble]:
    """The trouble that the headers of a topic's batches show."""
    for one in topic.partitions:
        yield from _of_partition(topic.topic, one)
        if one.read:
            for lacking in missing.of(one.read, one.extents, has_holes=one.has_holes):
                yield of_missing(lacking, topic.topic, one.partition, one.folder)


def _of_partition(topic: str | None, partition: PartitionFigures) -> Iterator[Trouble]:
    where = (topic, partition.partition, partition.folder)
    if partition.overlaps:
        yield Trouble(
            DAMAGE,
            "overlap",
            *where,
            f"batches whose offsets do not fit those around them: {partition.overlaps:,}",
            "kafkajit repair shows what a broker would do about it",
        )


def of_missing(missing: Missing, topic: str | None, partition: int | None, path: str) -> Trouble:
    """Offsets that no segment of a partition has."""
    return Trouble(
        DAMAGE if missing.is_trouble else NOTE,
        "missing",
        topic,
        partition,
        path,
        missing.text,
        _advice(missing) if missing.is_trouble else None,
        first_missing_offset=missing.first,
        last_missing_offset=missing.last,
    )


def _advice(missing: Missing) -> str:
    if missing.is_before_start:
        return f"correct the line in {START_OFFSETS}, or copy the segments from a replica"
    return "copy the segments from a replica or a backup; no repair brings them back"


def of_leftover(leftover: Leftover) -> Trouble:
    """Files that take space and belong to no log."""
    return Trouble(
        NOTE,
        "leftover",
        leftover.topic,
        leftover.partition,
        leftover.path,
        leftover.problem,
        leftover.advice,
        length=leftover.bytes,
    )


def indexes_of(segments: Iterable[Segment]) -> list[SidecarSplit]:
    """The indexes of offsets and of times beside these segments, with their logs."""
    return [
        SidecarSplit(index, segment.log)
        for segment in segments
        for index in (segment.index, segment.time_index)
        if index is not None
    ]


def spread(indexes: Sequence[SidecarSplit], most: int) -> list[SidecarSplit]:
    """At most this number of the indexes, spread evenly."""
    if len(indexes) <= most:
        return list(indexes)
    rows = (np.arange(most) * len(indexes) / most).astype(np.int64)
    return [indexes[row] for row in rows.tolist()]


def of_indexes(indexes: Sequence[SidecarSplit]) -> Iterator[Trouble]:
    """Indexes with entries that do not fit their logs."""
    for index in indexes:
        row = _looked_at(index)
        if row is not None and row["problems"]:
            # A running broker may have replaced both files between a look at the one and the other.
            row = _looked_at(index)
        if row is None or not row["problems"]:
            continue
        yield Trouble(
            WARNING,
            "index",
            row["topic"],
            row["partition"],
            row["path"],
            row["problem"] + (f", and {row['problems'] - 1:,} more" if row["problems"] > 1 else ""),
            "a broker rebuilds it if the file is deleted while it is stopped; kafkajit "
            "repair does, too",
        )


def _looked_at(index: SidecarSplit) -> dict[str, Any] | None:
    """The row of an index in the kind `indexes`; None if it or its log is gone."""
    try:
        batches = list(read_sidecar_files([index], _INDEX_SCHEMA, _INDEX_OPTIONS))
    except (FileNotFoundError, EOFError):
        return None
    rows: list[dict[str, Any]] = [row for batch in batches for row in batch.to_pylist()]
    return rows[0] if rows else None
