"""Consumer groups: their newest commits, how far they are behind, whether they have members.

All of it is read from __consumer_offsets, if that lies at the paths. Offsets that are committed in
a transaction count once it has been committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa

from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.scan.options import READ_COMMITTED, ScanOptions
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.table import plan_tasks, read_task
from kafkajit.schema import record_schema
from kafkajit.topics.structs import decode_payloads
from kafkajit.walk.damage import DROPMALFORMED

OFFSETS_TOPIC = "__consumer_offsets"
# How often the logs are read again from the start if a segment goes meanwhile.
_TURNS = 10
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


def read_commits(paths: Iterable[str], keys: PrivateKeys = NO_KEYS) -> list[Commit]:
    """The newest commits in the logs of __consumer_offsets at these paths."""
    paths = tuple(paths)
    for _ in range(_TURNS):
        # A running broker compacts these logs: a segment that was listed may be gone.
        with suppress(FileNotFoundError, EOFError):
            return _read_commits(paths, keys)
    return _read_commits(paths, keys)


def _read_commits(paths: tuple[str, ...], keys: PrivateKeys) -> list[Commit]:
    options = ScanOptions(
        paths,
        isolation_level=READ_COMMITTED,
        mode=DROPMALFORMED,
        private_keys=keys,
    )
    asked = [Predicate("eq", "topic", OFFSETS_TOPIC)]
    newest: dict[bytes, bytes] = {}
    schema = record_schema(["key", "value"])
    for task in plan_tasks(options, asked):
        for rows in read_task(task, schema, options):
            for key, value in zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True):
                if key is None:
                    continue
                if value is None:
                    newest.pop(key, None)
                else:
                    newest[key] = value
    return sorted(_commits(newest))


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
