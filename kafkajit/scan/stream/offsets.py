"""The offsets of a stream, as they stand in a checkpoint.

    {"orders": {"0": 42}, "@read": {"orders": {"0": [ID, BATCH, EPOCHS, START]}}}

The first members are those of Spark's Kafka source: the next offset of each partition. What each
position stands on follows under a name that no topic has. An older checkpoint lacks it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafkajit.log.footing import Footing, ReadBatch
from kafkajit.places.named import Place

# Offsets by topic and partition, as in JSON.
StreamOffsets = dict[str, dict[str, Any]]

READ = "@read"


def to_json(
    offsets: Mapping[Place, int], footings: Mapping[Place, Footing] | None = None
) -> StreamOffsets:
    """Offsets with sorted keys, because Spark compares their texts.

    >>> to_json({Place("b", 10): 5, Place("b", 2): 0, Place("a", 0): 7})
    {'a': {'0': 7}, 'b': {'2': 0, '10': 5}}
    >>> to_json({Place("a", 0): 7}, {Place("a", 0): Footing(epochs=((3, 5),), log_start=2)})
    {'a': {'0': 7}, '@read': {'a': {'0': [None, None, [[3, 5]], 2]}}}
    """
    found = _by_topic(offsets)
    known = {place: _to_list(it) for place, it in (footings or {}).items() if it != Footing()}
    return found | ({READ: _by_topic(known)} if known else {})


def _by_topic(values: Mapping[Place, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for topic, partition in sorted(values):
        found.setdefault(topic, {})[str(partition)] = values[Place(topic, partition)]
    return found


def _to_list(footing: Footing) -> list[Any]:
    last = None if footing.last is None else list(footing.last)
    return [footing.topic_id, last, [list(epoch) for epoch in footing.epochs], footing.log_start]


def planned_first(first: int, stood_on: Footing | None, stands_on: Footing | None) -> int:
    """The offset at which a log began when a micro-batch that begins with it was planned.

    Spark keeps the end of a planned micro-batch, and asks anew where a new query begins. The log
    may have lost records since.

    >>> planned_first(10, Footing(log_start=10), Footing(log_start=0))
    0

    Args:
        first: the offset at which it begins now.
        stood_on: what that stands on, as of now.
        stands_on: what the end of the micro-batch stands on, as of then.
    """
    began = None if stands_on is None else stands_on.log_start
    now = None if stood_on is None else stood_on.log_start
    if began is None or (now is not None and now <= began):
        return first
    return min(first, began)


def from_json(offsets: StreamOffsets) -> dict[Place, int]:
    """The offsets of each partition.

    >>> from_json({"a": {"0": 7}})
    {Place(topic='a', partition=0): 7}
    """
    return {
        Place(topic, int(partition)): offset
        for topic, partitions in offsets.items()
        if topic != READ
        for partition, offset in partitions.items()
    }


def footings_in(offsets: StreamOffsets) -> dict[Place, Footing]:
    """The grounds of the positions, as far as they are known.

    >>> footings_in({"a": {"0": 7}, "@read": {"a": {"0": ["ID", None, [], 0]}}})
    {Place(topic='a', partition=0): Footing(topic_id='ID', last=None, epochs=(), log_start=0)}
    >>> footings_in({"a": {"0": 7}, "@read": {"a": {"0": ["ID"]}}})
    Traceback (most recent call last):
    ValueError: the checkpoint's offsets have ['ID'] for a-0, which kafkajit did not write
    """
    return {
        Place(topic, int(partition)): _footing(given, f"{topic}-{partition}")
        for topic, partitions in offsets.get(READ, {}).items()
        for partition, given in partitions.items()
    }


def _footing(given: Any, name: str) -> Footing:
    try:
        id_, last, epochs, log_start = given
        return Footing(
            id_,
            None if last is None else ReadBatch(*map(int, last)),
            tuple((int(epoch), int(first)) for epoch, first in epochs),
            None if log_start is None else int(log_start),
        )
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"the checkpoint's offsets have {given!r} for {name}, which kafkajit did not write"
        ) from None


class Parsed(NamedTuple):
    """Offsets and what they stand on."""

    ends: Mapping[Place, int]
    footings: Mapping[Place, Footing]


class OffsetsParser:
    """Parses the offsets of a stream: Spark passes the same ones several times in a row."""

    def __init__(self) -> None:
        # A micro-batch's start and end.
        self._known: deque[tuple[StreamOffsets, Parsed]] = deque(maxlen=2)

    def parsed(self, offsets: StreamOffsets) -> Parsed:
        """The offsets that stand in JSON."""
        for text, known in self._known:
            if text == offsets:
                return known
        found = Parsed(from_json(offsets), footings_in(offsets))
        self._known.append((offsets, found))
        return found

    def written(
        self, ends: Mapping[Place, int], footings: Mapping[Place, Footing]
    ) -> StreamOffsets:
        """The offsets as JSON."""
        text = to_json(ends, footings)
        if not any(text == other for other, _ in self._known):
            stood_on = {place: it for place, it in footings.items() if it != Footing()}
            in_order = {place: ends[place] for place in sorted(ends)}
            self._known.append((text, Parsed(in_order, stood_on)))
        return text
