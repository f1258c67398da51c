"""A quick look at a folder: sizes from the listing, the rest from each partition's ends.

Of a partition it reads the name of the first segment and the last batches of the last one, which
the index leads to: as much for a partition of a terabyte as for one of a kilobyte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any, NamedTuple

from kafkajit.errors import KafkaJitError
from kafkajit.format.compression import codec_name
from kafkajit.format.limits import MAX_INT64
from kafkajit.log.segment import OpenSegment, Segment
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.report.folder import Folder, look_at
from kafkajit.walk.damage import PERMISSIVE, Gap
from kafkajit.walk.walk import Walk

# Up to this size all headers of a segment are read: the index would take longer to open.
_SMALL = 256 << 10
# Partitions of a bucket whose ends are read at once.
_READERS = 32


class _End(NamedTuple):
    """A segment's last batches."""

    offset: int | None  # of the last record
    timestamp: int | None
    codecs: frozenset[str]
    formats: frozenset[str]
    problem: str | None = None


_NOTHING = _End(None, None, frozenset(), frozenset())


def info(
    paths: Sequence[str], *, topics: Sequence[str] = (), keys: PrivateKeys = NO_KEYS
) -> dict[str, Any]:
    """Figures of what lies at the paths: brokers' folders, topics, and their partitions.

    >>> import kafkajit.testing as kt
    >>> [topic["endOffsets"] for topic in info([str(kt.SAMPLE)])["topics"]]
    [27, 37]
    """
    folder = look_at(paths, topics=topics, keys=keys)
    is_local = all(log.log.is_local for partition in folder.partitions for log in partition)
    if is_local:
        ends = [_partition(partition) for partition in folder.partitions]
    else:
        with ThreadPoolExecutor(_READERS) as pool:
            ends = list(pool.map(_partition, folder.partitions))
    topics_found = list(_topics(folder, ends))
    return {
        "paths": list(paths),
        "totals": {
            "topics": len(topics_found),
            "partitions": len(ends),
            "segments": sum(end["segments"] for end in ends),
            "bytes": sum(end["bytes"] for end in ends),
            "otherBytes": sum(folder.other_bytes.values()),
            "leftovers": len(folder.leftovers),
            "leftoverBytes": sum(one.bytes for one in folder.leftovers),
        },
        "folders": [
            {
                "path": root.path,
                "brokerId": root.broker_id,
                "clusterId": root.cluster_id,
                "partitions": root.partitions,
                "bytes": root.bytes,
            }
            for root in folder.roots
        ],
        "topics": topics_found,
    }


def _topics(folder: Folder, ends: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    def name(end: dict[str, Any]) -> str:
        return end["topic"] or ""

    for _, found in groupby(sorted(ends, key=name), key=name):
        partitions = sorted(found, key=lambda end: end["partition"] or 0)
        timestamps = [end["lastTimestamp"] for end in partitions if end["lastTimestamp"]]
        topic = partitions[0]["topic"]
        yield {
            "topic": topic,
            "topicId": folder.topic_ids.get(topic),
            "partitions": len(partitions),
            "segments": sum(end["segments"] for end in partitions),
            "bytes": sum(end["bytes"] for end in partitions),
            "endOffsets": sum(end["endOffset"] for end in partitions),
            "offsets": sum(end["endOffset"] - end["startOffset"] for end in partitions),
            "lastTimestamp": max(timestamps, default=None),
            "codecs": sorted({codec for end in partitions for codec in end["codecs"]}),
            "formats": sorted({format_ for end in partitions for format_ in end["formats"]}),
            "eachPartition": [
                {key: value for key, value in end.items() if key != "topic"} for end in partitions
            ],
        }


def _partition(segments: list[Segment]) -> dict[str, Any]:
    first = segments[0]
    end = _NOTHING
    for segment in reversed(segments):
        end = _end_of(segment)
        if end.offset is not None or end.problem is not None:
            break
    start = max(first.base_offset, first.cut.first)
    behind = start if end.offset is None else end.offset + 1
    return {
        "topic": first.path.topic,
        "partition": first.path.partition,
        "folder": first.log.folder,
        "segments": len(segments),
        "bytes": sum(segment.log.size for segment in segments),
        "startOffset": start,
        "endOffset": max(behind, segments[-1].base_offset),
        "lastTimestamp": end.timestamp,
        "codecs": sorted(end.codecs),
        "formats": sorted(end.formats),
        "problem": end.problem,
    }


def _end_of(segment: Segment) -> _End:
    """The facts that a segment's last batches show."""
    if not segment.log.size:
        return _NOTHING
    problem: str | None = None
    found = _NOTHING
    try:
        if segment.log.size <= _SMALL:
            source, start = segment.log.open(), 0
        else:
            source, start = OpenSegment(segment).tail(MAX_INT64)
        for part in Walk(source, mode=PERMISSIVE, start=start).headers():
            if isinstance(part, Gap):
                problem = problem or f"{part.reason} at position {part.position}"
                continue
            if not len(part):
                continue
            latest = int(part.field("maxTimestamp").max())
            found = _End(
                int(part.last_offset.max()),
                max(latest, found.timestamp or latest) if latest >= 0 else found.timestamp,
                found.codecs | {codec_name(codec) for codec in set(part.codec.tolist())},
                found.formats | {f"v{magic}" for magic in set(part.field("magic").tolist())},
            )
            source.forget(int(part.end[-1]))
    except (OSError, KafkaJitError) as error:
        problem = str(error)
    return found._replace(problem=problem)
