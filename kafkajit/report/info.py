"""A quick look at a folder: sizes from the listing, the rest from each partition's ends.

It reads the last batches of a partition's last segment, which the index leads to. On this machine
it reads those of the other segments, too, since a segment may be missing between two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, pairwise
from typing import Any

from kafkajit.errors import Failed
from kafkajit.log.live_segments import as_now, listed_again, served_now
from kafkajit.log.missing_offsets import Extent
from kafkajit.log.missing_segments import MissingSegments
from kafkajit.log.segment import Segment
from kafkajit.log.segment_end import End, end_of
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.report.folder import Folder, look_at

# Partitions of a bucket whose ends are read at once.
_READERS = 32
# How often the folder of a partition is listed again whose segments go meanwhile.
_TURNS = 10


def info(
    paths: Sequence[str],
    *,
    topics: Sequence[str] | str = (),
    keys: PrivateKeys = NO_KEYS,
    failed: Failed = None,
) -> dict[str, Any]:
    """Figures of what lies at the paths: brokers' folders, topics, and their partitions.

    `failed` is called with the error of a folder or file that cannot be read.

    >>> import kafkajit.testing as kt
    >>> [topic["endOffsets"] for topic in info([str(kt.SAMPLE)])["topics"]]
    [27, 37]
    """
    folder = look_at(paths, topics=topics, keys=keys, failed=failed)
    starts = list(map(folder.start_offset, folder.partitions))
    is_local = all(log.log.is_local for partition in folder.partitions for log in partition)
    if is_local:
        missing = MissingSegments(folder.files.values(), failed)
        ends = [
            _partition(partition, start) | _between(missing, partition)
            for partition, start in zip(folder.partitions, starts, strict=True)
        ]
    else:
        with ThreadPoolExecutor(_READERS) as pool:
            ends = list(pool.map(_partition, folder.partitions, starts))
        for end in ends:
            end |= {"missing": [], "overlaps": []}  # it would take a request for each segment
    topics_found = list(_topics(folder, ends))
    return {
        "paths": list(paths),
        "totals": {
            "topics": len(topics_found),
            "partitions": len(ends),
            "segments": sum(end["segments"] for end in ends),
            "bytes": sum(end["bytes"] for end in ends),
            "otherBytes": sum(folder.other_bytes.values()),
            "otherBytesOnDisk": sum(folder.other_bytes_on_disk.values()),
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
        "waiting": [one.document() for one in folder.waiting],
    }


def _between(missing: MissingSegments, segments: list[Segment]) -> dict[str, Any]:
    """The offsets that a partition on this machine lacks, and those that it has twice."""
    try:
        extents = [*map(_extent, segments)]
        found = missing.of(segments, extents, has_holes=None)
        twice = [*_overlaps(segments)] if _may_overlap(extents) else []
    except (FileNotFoundError, EOFError):
        found, twice = [], []  # a running broker has changed the folder
    return {"missing": [one.document() for one in found], "overlaps": twice}


def _may_overlap(extents: Sequence[Extent]) -> bool:
    return any(one.behind > other.first for one, other in pairwise(extents)) or any(
        one.behind < one.base_offset for one in extents
    )


def _overlaps(segments: list[Segment]) -> Iterator[dict[str, Any]]:
    """The parts of segments that no consumer gets, since segments before them have the offsets."""
    from kafkajit.log.overlaps import all_unserved  # it loads kernels

    (visible,) = served_now([segments])
    for gap in all_unserved(visible):
        yield {
            "path": gap.path,
            "position": gap.position,
            "bytes": gap.length,
            "problem": gap.reason,
        }


def _extent(segment: Segment) -> Extent:
    base_offset, end = segment.base_offset, end_of(as_now(segment))
    behind = base_offset if end.offset is None else end.offset + 1
    return Extent(base_offset, base_offset, behind, end.problem is not None)


def _topics(folder: Folder, ends: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    def name(end: dict[str, Any]) -> str:
        return end["topic"] or ""

    for _, found in groupby(sorted(ends, key=name), key=name):
        partitions = sorted(found, key=lambda end: end["partition"] or 0)
        times = [end["lastTimestamp"] for end in partitions]
        topic = partitions[0]["topic"]
        yield {
            "topic": topic,
            "topicId": folder.topic_ids.get(topic),
            "partitions": len(partitions),
            "segments": sum(end["segments"] for end in partitions),
            "bytes": sum(end["bytes"] for end in partitions),
            "endOffsets": sum(end["endOffset"] for end in partitions),
            "offsets": sum(end["endOffset"] - end["startOffset"] for end in partitions),
            "lastTimestamp": max((time for time in times if time is not None), default=None),
            "codecs": sorted({codec for end in partitions for codec in end["codecs"]}),
            "formats": sorted({format_ for end in partitions for format_ in end["formats"]}),
            "eachPartition": [
                {key: value for key, value in end.items() if key != "topic"} for end in partitions
            ],
        }


def _partition(segments: list[Segment], log_start_offset: int) -> dict[str, Any]:
    end = End()
    for turn in range(_TURNS):
        try:
            for segment in reversed(segments):
                end = end_of(as_now(segment), disproves=True)
                if end.offset is not None or end.problem is not None:
                    break
            break
        except (FileNotFoundError, EOFError) as error:
            # A running broker has rolled, deleted or compacted segments since they were listed.
            end = End(problem=str(error))
            found = listed_again(segments[-1], 0) if turn + 1 < _TURNS else []
            if not found:
                break
            segments = found
        except OSError as error:
            end = End(problem=str(error))
            break
    first = segments[0]
    start = max(first.base_offset, first.cut.first)
    behind = start if end.offset is None else end.offset + 1
    behind = max(behind, segments[-1].base_offset)
    start = max(start, min(log_start_offset, behind))
    return {
        "topic": first.path.topic,
        "partition": first.path.partition,
        "folder": first.log.folder,
        "segments": len(segments),
        "bytes": sum(segment.log.size for segment in segments),
        "startOffset": start,
        "endOffset": behind,
        "lastTimestamp": end.timestamp,
        "codecs": sorted(end.codecs),
        "formats": sorted(end.formats),
        "problem": end.problem,
    }
