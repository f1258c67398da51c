"""The names of a segment's objects in tiered storage.

| layout | objects |
|---|---|
| Kafka's LocalTieredStorage | topic-partition-topicId/base-uuid.log, .index, .snapshot and others |
| Aiven's plugin | topic-topicId/partition/base-uuid.log, .indexes, .rsm-manifest |
| Pinterest's plugin | cluster/topic-partition/base.log and its indexes, offset.wm, _metadata |

Ids are Kafka's: 16 bytes in 22 letters of base64, which may contain dashes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ID = r"[A-Za-z0-9_-]{22}"
# Behind the base offset in the name of a file, if it is tiered.
MAYBE_ID = rf"(?:-{_ID})?"
_TOPIC = r"[a-zA-Z0-9._-]+"
_OBJECT = re.compile(rf"(?P<base_offset>\d{{20}})-(?P<segment_id>{_ID})(?P<suffix>\.[a-z_-]+)")
TIERED_STEM = re.compile(rf"(\d{{20}})-{_ID}")
# Of LocalTieredStorage, and of Aiven's plugin, which has a folder for each partition in its own.
_PARTITION = re.compile(rf"(?P<topic>{_TOPIC})-(?P<partition>[0-9]{{1,10}})-(?P<topic_id>{_ID})")
_NUMBER = re.compile("[0-9]{1,10}")  # what int() takes, and no digits of other scripts
_TOPIC_FOLDER = re.compile(rf"(?P<topic>{_TOPIC})-(?P<topic_id>{_ID})")

LOCAL_TIERED_STORAGE = "kafka-tiered-storage"  # its folder, in that of its option `dir`
LOG = ".log"
MANIFEST = ".rsm-manifest"
INDEXES = ".indexes"
# Beside the segments of Pinterest's plugin, whose names are those of a broker's.
PINTEREST_MARKS = ("offset.wm", "_metadata")
# LocalTieredStorage copies it last.
SNAPSHOT = ".snapshot"


class ObjectName(NamedTuple):
    """The parts of an object's path."""

    topic: str
    topic_id: str
    partition: int
    base_offset: int
    segment_id: str
    suffix: str


def object_name(path: str) -> ObjectName | None:
    """The parts of an object's path; None if it is not that of a tiered segment.

    >>> object_name("/tier/orders-0-MWJ6FHTfRYy67jzwZdeqSQ/"
    ...             "00000000000000001234-tqimKeZwStOEOwRzT3L5oQ.log")[:4]
    ('orders', 'MWJ6FHTfRYy67jzwZdeqSQ', 0, 1234)
    >>> object_name("/var/kafka/orders-0/00000000000000001234.log")
    """
    folders, _, file = path.rpartition("/")
    named = _OBJECT.fullmatch(file)
    if named is None:
        return None
    above, _, folder = folders.rpartition("/")
    found = _PARTITION.fullmatch(folder)
    if found is not None:
        partition = int(found["partition"])
    else:
        found = _TOPIC_FOLDER.fullmatch(above.rpartition("/")[2])
        if found is None or not _NUMBER.fullmatch(folder):
            return None
        partition = int(folder)
    if partition >= 2**31:
        return None
    return ObjectName(
        found["topic"],
        found["topic_id"],
        partition,
        int(named["base_offset"]),
        named["segment_id"],
        named["suffix"],
    )


def is_topic_folder(name: str) -> bool:
    """Whether a folder may hold tiered segments, or folders of partitions with such."""
    return _TOPIC_FOLDER.fullmatch(name) is not None
