"""Consumer groups: their newest commits, how far they are behind, whether they have members.

All of it is read from __consumer_offsets, if that lies at the paths. Offsets that are committed in
a transaction count once it has been committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.table import Task, plan_tasks, read_task
from kafkajit.schema import record_schema
from kafkajit.topics.structs import decode_payloads
from kafkajit.walk.damage import DROPMALFORMED

OFFSETS_TOPIC = "__consumer_offsets"
# The types of keys.
_COMMITS = ("0", "1")
_CLASSIC_GROUP, _CONSUMER_GROUP, _MEMBER = "2", "3", "5"

_COMMIT_MARKER = "COMMIT"
_SCHEMA = record_schema(
    ["partition", "offset", "key", "value", "producerId", "isTransactional", "controlType"]
)

# The offset of a key's newest record, and its value: None if that is a tombstone.
_Newest = tuple[int, bytes | None]


class Newest:
    """The newest values of keys, in stretches of logs that follow each other.

    A value that was written in a transaction counts once a marker has committed that. So the others
    do not wait for a transaction that is open.
    """

    def __init__(self) -> None:
        self.decided: dict[bytes, _Newest] = {}
        # By partition and producer: what was written since its last marker, and before its first
        # one, which may end a transaction of the stretch before; whether that one commits.
        self._open: dict[tuple[int, int], dict[bytes, _Newest]] = {}
        self._ended: dict[tuple[int, int], tuple[dict[bytes, _Newest], bool]] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """Add records that follow."""
        columns = (rows[name].to_pylist() for name in _SCHEMA.names)
        for partition, offset, key, value, producer, in_transaction, marker in zip(
            *columns, strict=True
        ):
            if marker is not None:
                self._end((partition, producer), commits=marker == _COMMIT_MARKER)
            elif key is not None and in_transaction:
                self._open.setdefault((partition, producer), {})[key] = offset, value
            elif key is not None:
                self.decided[key] = offset, value

    def follow(self, stretch: Newest) -> None:
        """Add the stretch that follows."""
        for writer, (found, commits) in stretch._ended.items():
            self._open.setdefault(writer, {}).update(found)
            self._end(writer, commits=commits)
        self._take(stretch.decided)
        for writer, found in stretch._open.items():
            self._open.setdefault(writer, {}).update(found)

    def _end(self, writer: tuple[int, int], *, commits: bool) -> None:
        found = self._open.pop(writer, {})
        if writer not in self._ended:
            self._ended[writer] = found, commits
        if commits:
            self._take(found)

    def _take(self, found: Mapping[bytes, _Newest]) -> None:
        for key, newest in found.items():
            if key not in self.decided or self.decided[key][0] < newest[0]:
                self.decided[key] = newest


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


def plan_commits(
    paths: Iterable[str], keys: PrivateKeys = NO_KEYS
) -> tuple[list[Task], ScanOptions]:
    """The tasks that read the logs of __consumer_offsets at these paths."""
    options = ScanOptions(tuple(paths), mode=DROPMALFORMED, private_keys=keys)
    asked = [Predicate("topic", "=", OFFSETS_TOPIC)]
    return [task for task in plan_tasks(options, asked) if task], options


def read_newest(task: Task, options: ScanOptions) -> Newest:
    """The newest values of the keys in a task's records."""
    newest = Newest()
    for rows in read_task(task, _SCHEMA, options):
        newest.add(rows)
    return newest


def commits_of(newest: Newest) -> list[Commit]:
    """The newest commits, of the newest values."""
    decided = newest.decided.items()
    return sorted(_commits({key: value for key, (_, value) in decided if value is not None}))


def _commits(newest: Mapping[bytes, bytes]) -> Iterator[Commit]:
    decoded = decode_payloads(
        "offsets",
        pa.array(newest, pa.binary()),
        pa.array(newest.values(), pa.binary()),
        lenient=True,
    )
    commits: list[tuple[dict[str, Any], dict[str, Any]]] = []
    members: dict[str, bool] = {}
    for row in decoded.to_pylist():
        if row is None or row["value"] is None:
            continue
        key, value = json.loads(row["key"]), json.loads(row["value"])["data"]
        if key["type"] in _COMMITS:
            commits.append((key["data"], value))
        elif key["type"] == _CLASSIC_GROUP:
            members[key["data"]["group"]] = bool(value["members"])
        elif key["type"] == _MEMBER:
            members[key["data"]["groupId"]] = True
        elif key["type"] == _CONSUMER_GROUP:
            members.setdefault(key["data"]["groupId"], False)
    for key, value in commits:
        yield Commit(
            key["group"],
            key["topic"],
            key["partition"],
            value["offset"],
            value["commitTimestamp"],
            members.get(key["group"]),
        )
