"""KafScale's segments: Kafka's record batches between a head and a footer.

| object | namespace/topic/partition/segment-00000000000000000042.kfs |
|---|---|
| head | KAFS, version, flags, base offset, count of records, time of its creation, reserved |
| batches | as producers sent them, with the offsets that KafScale gave them |
| footer | CRC-32C of the batches, last offset, END! |

Numbers are big-endian (pkg/storage/segment.go of KafScale/platform).
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

SUFFIX = ".kfs"
MAGIC = b"KAFS"
VERSION = 1
END_MAGIC = b"END!"
HEAD = struct.Struct(">4sHHqiqI")
FOOTER = struct.Struct(">Iq4s")
SEGMENT_NAME = re.compile(r"segment-(?P<base_offset>\d{20})\.kfs")
# Its own index beside it, in a format of its own.
INDEX_NAME = re.compile(r"segment-\d{20}\.index")


class KafscaleName(NamedTuple):
    """The parts of a segment's path."""

    topic: str | None
    partition: int | None
    base_offset: int


def kafscale_name(path: str) -> KafscaleName | None:
    """The parts of a segment's path; None if its name is not that of one of KafScale's.

    >>> kafscale_name("/bucket/default/orders/0/segment-00000000000000000042.kfs")
    KafscaleName(topic='orders', partition=0, base_offset=42)
    >>> kafscale_name("/var/kafka/orders-0/00000000000000000042.log")
    """
    if not path.endswith(SUFFIX):  # most paths do not
        return None
    folders, _, file = path.rpartition("/")
    named = SEGMENT_NAME.fullmatch(file)
    if named is None:
        return None
    base_offset = int(named["base_offset"])
    above, _, folder = folders.rpartition("/")
    topic = above.rpartition("/")[2]
    # int() refuses thousands of digits, and takes those of other scripts.
    is_number = re.fullmatch("[0-9]{1,10}", folder) is not None and int(folder) < 2**31
    if not topic or not is_number:
        return KafscaleName(None, None, base_offset)
    return KafscaleName(topic, int(folder), base_offset)
