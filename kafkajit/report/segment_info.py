"""The facts about one segment: the headers of all its batches, and its indexes."""

from __future__ import annotations

from typing import Any

from kafkajit.format.limits import MAX_INT64
from kafkajit.log.segment import Segment
from kafkajit.report.headers import TopicFigures
from kafkajit.report.trouble import indexes_of, of_gap, of_indexes


def segment_info(segment: Segment) -> dict[str, Any]:
    """The facts about one segment: the headers of all its batches, and its indexes."""
    topic = TopicFigures(segment.path.topic, MAX_INT64)
    gaps = list(topic.read([segment]))
    figures = topic.document()
    (partition,), (read,) = figures.pop("eachPartition"), topic.partitions
    for name in ("life", "partitions", "segments"):
        del figures[name]
    return {
        "path": segment.log.path,
        **figures,
        "partition": partition["partition"],
        "startOffset": read.first_offset if read.batches else read.start_offset,
        "endOffset": partition["endOffset"],
        "indexes": [
            {"path": file.path, "bytes": file.size}
            for file in (segment.index, segment.time_index, segment.transaction_index)
            if file is not None
        ],
        "trouble": [
            *(of_gap(gap, figures["topic"], partition["partition"]).document() for gap in gaps),
            *(trouble.document() for trouble in of_indexes(indexes_of([segment]))),
        ],
    }
