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
from kafkajit.scan.options import READ_COMMITTED, ScanOptions
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.table import Task, plan_tasks, read_task
from kafkajit.schema import record_schema
from kafkajit.topics.structs import decode_payloads
from kafkajit.walk.damage import DROPMALFORMED

OFFSETS_TOPIC = "__consumer_offsets"
# The types of keys.
_COMMITS = ("0", "1")
_CLASSIC_GROUP, _CONSUMER_GROUP, _MEMBER = "2", "3", "5"

# Keys of records with their newest values.
Newest = dict[bytes, bytes | None]


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
        lag = None if end_offset is None else max(0, end_offset - self.offset)
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
    options = ScanOptions(
        tuple(paths),
        isolation_level=READ_COMMITTED,
        mode=DROPMALFORMED,
        private_keys=keys,
    )
    asked = [Predicate("topic", "=", OFFSETS_TOPIC)]
    return [task for task in plan_tasks(options, asked) if task], options


def read_newest(task: Task, options: ScanOptions) -> Newest:
    """The newest value of each key in a task's records, None if that is a tombstone."""
    newest: Newest = {}
    for rows in read_task(task, record_schema(["key", "value"]), options):
        for key, value in zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True):
            if key is not None:
                newest[key] = value
    return newest


def commits_of(newest: Newest) -> list[Commit]:
    """The newest commits, of the newest values."""
    return sorted(_commits({key: value for key, value in newest.items() if value is not None}))


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
