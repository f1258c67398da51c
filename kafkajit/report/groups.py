"""Consumer groups: their newest commits, how far they are behind, whether they have members.

All of it is read from __consumer_offsets, if that lies at the paths. Offsets that are committed in
a transaction count once it has been committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kafkajit.report.newest import Newest, decoded

OFFSETS_TOPIC = "__consumer_offsets"
# The types of keys.
_COMMITS = ("0", "1")
_CLASSIC_GROUP, _CONSUMER_GROUP, _MEMBER = "2", "3", "5"


class Commit(NamedTuple):
    """The newest offset that a group has committed of a partition."""

    group: str
    topic: str
    partition: int
    offset: int
    timestamp: int
    has_members: bool | None

    def document(self, end_offset: int | None) -> dict[str, Any]:
        """The entry in the document."""
        lag = None if end_offset is None else end_offset - self.offset
        return {
            "group": self.group,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "endOffset": end_offset,
            "lag": lag,
            "committedAt": self.timestamp,
            "hasMembers": self.has_members,
        }


def commits_of(newest: Newest) -> list[Commit]:
    """The newest commits, of the newest values."""
    return sorted(_commits(newest.present()))


def documents(
    commits: Iterable[Commit], ends: Mapping[tuple[str | None, int | None], int]
) -> list[dict[str, Any]]:
    """The entries in the document; `ends` has the end offsets of partitions."""
    return [commit.document(ends.get((commit.topic, commit.partition))) for commit in commits]


def _commits(newest: Mapping[bytes, bytes]) -> Iterator[Commit]:
    commits: list[tuple[dict[str, Any], dict[str, Any]]] = []
    members: dict[str, bool] = {}
    for kind, key, value in decoded("offsets", newest):
        if key is None or value is None:
            continue
        if kind in _COMMITS:
            commits.append((key, value))
        elif kind == _CLASSIC_GROUP:
            members[key["group"]] = bool(value["members"])
        elif kind == _MEMBER:
            members[key["groupId"]] = True
        elif kind == _CONSUMER_GROUP:
            members.setdefault(key["groupId"], False)
    for key, value in commits:
        yield Commit(
            key["group"],
            key["topic"],
            key["partition"],
            value["offset"],
            value["commitTimestamp"],
            members.get(key["group"]),
        )
