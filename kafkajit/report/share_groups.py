"""Share groups, from __share_group_state: where they start, and which records they have done with.

As in the coordinator that reads these logs, a snapshot replaces what was known of a group's
partition, and an update adds to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kafkajit.report.groups import SHARE, Commit
from kafkajit.report.newest import decoded
from kafkajit.schema import record_schema

SHARE_TOPIC = "__share_group_state"
SCHEMA = record_schema(["offset", "key", "value", "timestamp"])
_SNAPSHOT, _UPDATE = "0", "1"
# The states of records that are delivered to nobody any more: acknowledged, archived.
_DONE = (2, 4)

# A group, the id of a topic, a partition.
_Place = tuple[str, str, int]


@dataclass
class _State:
    offset: int  # of the record that was added last
    timestamp: int
    is_gone: bool = False
    start: int = -1  # before the first delivery
    served: list[tuple[int, int]] = field(default_factory=list)

    def follow(self, offset: int, timestamp: int, value: dict[str, Any]) -> None:
        """Add the value of a record."""
        self.offset, self.timestamp = offset, timestamp
        if value["startOffset"] >= 0 and value["startOffset"] != self.start:
            self.start = value["startOffset"]
            self.served = [served for served in self.served if served[1] >= self.start]
        self.served += [
            (batch["firstOffset"], batch["lastOffset"])
            for batch in value["stateBatches"]
            if batch["deliveryState"] in _DONE
        ]


class ShareGroups:
    """The states of share groups, by the records of one log that were added."""

    def __init__(self) -> None:
        self.undecoded = 0  # values in a version that is not known
        self._states: dict[_Place, _State] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """Add records that follow."""
        is_there = rows["value"].is_valid().to_pylist()
        offsets = rows["offset"].to_pylist()
        timestamps = rows["timestamp"].cast(pa.int64()).to_pylist()
        every = decoded("share_group_state", rows)
        for (kind, key, value), has_value, offset, timestamp in zip(
            every, is_there, offsets, timestamps, strict=True
        ):
            if key is None or (has_value and value is None):
                self.undecoded += 1
                continue
            place = _place(key)
            state = self._states.get(place)
            if state is None or state.is_gone or kind == _SNAPSHOT or value is None:
                state = self._states[place] = _State(offset, timestamp, is_gone=value is None)
            if value is not None:
                state.follow(offset, timestamp, value)

    def add_copy(self, other: ShareGroups) -> None:
        """Take the newer states of another log, which may be a copy of the same one."""
        self.undecoded += other.undecoded
        for place, state in other._states.items():
            known = self._states.get(place)
            if known is None or known.offset < state.offset:
                self._states[place] = state

    def commits(self, topics: Mapping[str, str], members: Mapping[str, bool]) -> Iterator[Commit]:
        """Their offsets; `topics` has the names of topics by id, or the id stands for the name."""
        for (group, topic_id, partition), state in self._states.items():
            if state.is_gone:
                continue
            yield Commit(
                group,
                topics.get(topic_id, topic_id),
                partition,
                None if state.start < 0 else state.start,
                state.timestamp if state.timestamp >= 0 else None,
                members.get(group),
                SHARE,
                tuple(state.served),
            )


def _place(key: dict[str, Any]) -> _Place:
    return key["groupId"], key["topicId"], key["partition"]
