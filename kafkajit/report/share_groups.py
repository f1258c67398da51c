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
SCHEMA = record_schema(["key", "value", "timestamp"])
_SNAPSHOT, _UPDATE = "0", "1"
# The states of records that are delivered to nobody any more: acknowledged, archived.
_DONE = (2, 4)

# A group, the id of a topic, a partition.
_Place = tuple[str, str, int]


@dataclass
class _State:
    start: int = -1  # before the first delivery
    timestamp: int = -1
    served: list[tuple[int, int]] = field(default_factory=list)


class ShareGroups:
    """The states of share groups, by the records that were added."""

    def __init__(self) -> None:
        self.undecoded = 0  # values in a version that is not known
        self._states: dict[_Place, _State] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """Add records that follow."""
        is_there = rows["value"].is_valid().to_pylist()
        timestamps = rows["timestamp"].cast(pa.int64()).to_pylist()
        every = decoded("share_group_state", rows)
        for (kind, key, value), has_value, timestamp in zip(
            every, is_there, timestamps, strict=True
        ):
            if key is None or (has_value and value is None):
                self.undecoded += 1
            elif value is None:
                self._states.pop(_place(key), None)
            else:
                self._follow(_place(key), kind == _SNAPSHOT, value, timestamp)

    def _follow(
        self, place: _Place, is_snapshot: bool, value: dict[str, Any], timestamp: int
    ) -> None:
        if is_snapshot:
            self._states[place] = _State()
        state = self._states.setdefault(place, _State())
        state.timestamp = timestamp
        if value["startOffset"] >= 0:
            state.start = value["startOffset"]
        state.served = [served for served in state.served if served[1] >= state.start]
        state.served += [
            (batch["firstOffset"], batch["lastOffset"])
            for batch in value["stateBatches"]
            if batch["deliveryState"] in _DONE
        ]

    def commits(self, topics: Mapping[str, str], members: Mapping[str, bool]) -> Iterator[Commit]:
        """Their offsets; `topics` has the names of topics by id, or the id stands for the name."""
        for (group, topic_id, partition), state in self._states.items():
            yield Commit(
                group,
                topics.get(topic_id, topic_id),
                partition,
                None if state.start < 0 else state.start,
                state.timestamp,
                members.get(group),
                SHARE,
                tuple(state.served),
            )


def _place(key: dict[str, Any]) -> _Place:
    return key["groupId"], key["topicId"], key["partition"]
