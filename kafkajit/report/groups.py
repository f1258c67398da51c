"""Consumer groups: their newest commits, how far they are behind, whether they have members.

All of it is read from __consumer_offsets, if that lies at the paths. Offsets that are committed in
a transaction count once it has been committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kafkajit.report.newest import Newest

OFFSETS_TOPIC = "__consumer_offsets"
# The types of keys: of commits, of classic groups, and of the other groups and their members:
# consumer, share and streams groups.
_COMMITS = ("0", "1")
_CLASSIC_GROUP = "2"
_GROUPS, _MEMBERS = ("3", "11", "17"), ("5", "10", "19")
_READ = {*_COMMITS, _CLASSIC_GROUP, *_GROUPS, *_MEMBERS}
CONSUMERS, SHARE = "consumers", "share"


class Commit(NamedTuple):
    """The newest offset that a group has committed of a partition; of a share group, its start."""

    group: str
    topic: str
    partition: int
    offset: int | None
    timestamp: int | None
    has_members: bool | None
    kind: str = CONSUMERS
    served: tuple[tuple[int, int], ...] = ()  # offsets behind it that a share group has done with

    def lag(self, end_offset: int) -> int | None:
        """The records from the offset to the end of the log that the group has not done with."""
        if self.offset is None:
            return None
        done, behind = 0, self.offset
        for first, last in sorted(self.served):
            done += max(0, last + 1 - max(first, behind))
            behind = max(behind, last + 1)
        return end_offset - self.offset - done

    def document(self, end_offset: int | None) -> dict[str, Any]:
        """The entry in the document."""
        return {
            "group": self.group,
            "kind": self.kind,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "endOffset": end_offset,
            "lag": None if end_offset is None else self.lag(end_offset),
            "committedAt": self.timestamp,
            "hasMembers": self.has_members,
        }


class Groups:
    """The groups in __consumer_offsets: their newest commits, and whether they have members."""

    def __init__(self, newest: Newest) -> None:
        self.undecoded = 0  # values in a version that is not known
        self.members: dict[str, bool] = {}
        found: list[tuple[dict[str, Any], dict[str, Any]]] = []
        for kind, key, value in newest.decoded("offsets"):
            if key is None or value is None:
                self.undecoded += kind is None or kind in _READ
            elif kind in _COMMITS:
                found.append((key, value))
            elif kind == _CLASSIC_GROUP:
                self.members[key["group"]] = bool(value["members"])
            elif kind in _MEMBERS:
                self.members[key["groupId"]] = True
            elif kind in _GROUPS:
                self.members.setdefault(key["groupId"], False)
        self.commits = sorted(self._commits(found))

    def _commits(self, found: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> Iterator[Commit]:
        for key, value in found:
            yield Commit(
                key["group"],
                key["topic"],
                key["partition"],
                value["offset"],
                value["commitTimestamp"],
                self.members.get(key["group"]),
            )


def documents(
    commits: Iterable[Commit], ends: Mapping[tuple[str | None, int | None], int]
) -> list[dict[str, Any]]:
    """The entries in the document; `ends` has the end offsets of partitions."""
    return [commit.document(ends.get((commit.topic, commit.partition))) for commit in commits]
