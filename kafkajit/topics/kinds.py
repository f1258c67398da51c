"""The kinds of internal topics, and the payloads of their records.

A coordinator's records have their type in the key and their version in the value, an int16 each
(Kafka's CoordinatorRecordSerde). Metadata records have no key; the value begins with three unsigned
varints: the frame's version, the type and the version (AbstractApiMessageSerde).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kafkajit.topics import TOPICS
from kafkajit.topics.programs import Programs, programs
from kafkajit.topics.schemas import record_types

_WITHOUT_KEYS = ("cluster_metadata", "remote_log_metadata")

# Columns of `types`, which has a row for each number up to the largest type's.
KEY, VALUE, NAME_AT, NAME_SIZE = range(4)
UNKNOWN = -1  # in VALUE: no type has this number


@dataclass(frozen=True)
class TopicKind:
    """An internal topic as kernels need it."""

    name: str
    has_keys: bool
    programs: Programs
    types: npt.NDArray[np.int32]  # the MESSAGE rows of each type's key and value, and its name
    type_names: dict[int, str]


@functools.cache
def topic_kind(name: str) -> TopicKind:
    """The kind of internal topic with this name.

    >>> topic_kind("share_group_state").type_names
    {0: 'SHARE_SNAPSHOT', 1: 'SHARE_UPDATE'}
    """
    if name not in TOPICS:
        raise ValueError(f"unknown topic {name!r}; there are: {', '.join(TOPICS)}")
    compiled = programs(name)
    known = record_types(name)
    types = np.full((max(known) + 1, 4), UNKNOWN, dtype=np.int32)
    for number, type_ in known.items():
        key = compiled.messages[type_.key.name] if type_.key else UNKNOWN
        value = compiled.messages[type_.value.name]
        types[number] = (key, value, *compiled.text_at[type_.name])
    types.setflags(write=False)
    return TopicKind(
        name=name,
        has_keys=name not in _WITHOUT_KEYS,
        programs=compiled,
        types=types,
        type_names={number: type_.name for number, type_ in known.items()},
    )
