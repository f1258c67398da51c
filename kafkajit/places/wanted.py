"""Folders that may hold the partitions that a query asks for, by their names.

A folder that cannot is not listed. The files of the others are judged by their own paths later, so
a folder that is listed in vain costs a request, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from kafkajit.format.log_path import parse_log_path
from kafkajit.format.tiered_names import is_topic_folder, object_name

# Judges a partition by the values of `topic` and `partition`, or by that of one of them.
Wanted = Callable[[dict[str, Any]], bool]

# An id of Kafka's: the end of the names of folders of topics in tiered storage.
_AN_ID = "A" * 22
_AN_OBJECT = f"{0:020}-{_AN_ID}.log"


def any_partition(_: dict[str, Any]) -> bool:
    """Wants all partitions, and nothing beside them: folders of other names are not reported.

    >>> any_partition({"topic": "orders"})
    True
    """
    return True


def of_topics(topics: Collection[str]) -> Wanted:
    """Whether a partition is one of these topics'.

    >>> of_topics(["orders"])({"topic": "orders"})
    True
    """
    return lambda place: place["topic"] in topics if "topic" in place else True


def may_hold(folder: str, wanted: Wanted | None) -> bool:
    """Whether a folder of this name may be that of a wanted partition, or have folders of some.

    >>> may_hold("orders-0", of_topics(["orders"])), may_hold("orders-old-0", of_topics(["orders"]))
    (True, False)
    """
    if wanted is None:
        return True
    place = parse_log_path(f"/{folder}/any")
    if wanted({"topic": place.topic, "partition": place.partition}):
        return True
    tiered = object_name(f"/{folder}/{_AN_OBJECT}")
    if tiered is not None and _may_end(
        tiered.topic, lambda topic: wanted({"topic": topic, "partition": tiered.partition})
    ):
        return True
    if folder.isdecimal():  # of a partition, in the folder of a topic
        return wanted({"partition": int(folder)})
    if not is_topic_folder(folder):
        return False
    return _may_end(folder[: -len(_AN_ID) - 1], lambda topic: wanted({"topic": topic}))


def _may_end(name: str, is_wanted: Callable[[str], bool]) -> bool:
    """Whether an end of the name is wanted: a prefix of keys may be in front of the topic."""
    return any(is_wanted(name[at:]) for at in range(len(name)))
