"""A quick look at a folder: sizes from the listing, the rest from each partition's ends.

Of a partition it reads the name of the first segment and the last batches of the last one, which
the index leads to: as much for a partition of a terabyte as for one of a kilobyte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any

from kafkajit.errors import Failed
from kafkajit.log.segment import Segment
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.report.ends import End, end_of
from kafkajit.report.folder import Folder, as_now, listed_again, look_at

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
        ends = list(map(_partition, folder.partitions, starts))
    else:
        with ThreadPoolExecutor(_READERS) as pool:
            ends = list(pool.map(_partition, folder.partitions, starts))
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
        "waiting": [one.document() for one in folder.waiting],
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


def _partition(segments: list[Segment], log_start_offset: int) -> dict[str, Any]:
    end = End()
    for turn in range(_TURNS):
        try:
            for segment in reversed(segments):
                end = end_of(as_now(segment))
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
    start = max(start, min(log_start_offset, behind))
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
