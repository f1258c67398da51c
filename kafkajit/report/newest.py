"""The newest values of the keys of an internal topic, in stretches of its logs.

What was written in a transaction counts once that has been committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.table import Task, plan_tasks, read_task
from kafkajit.schema import record_schema, with_corruption
from kafkajit.topics.structs import decode_payloads
from kafkajit.walk.damage import PERMISSIVE

_COMMIT_MARKER = "COMMIT"
_NAMES = ["partition", "offset", "key", "value", "producerId", "isTransactional", "controlType"]
_SCHEMA = with_corruption(record_schema(_NAMES))

# A decoded value takes thirty times its bytes. A coordinator loads none that is larger than its
# offsets.load.buffer.size of 5 MiB, unless that is changed.
MOST_BYTES = 16 << 20

# The offset of a key's newest record, and its value: None if that is a tombstone.
_Newest = tuple[int, bytes | None]


class Newest:
    """The newest values of keys, in stretches of logs that follow each other.

    A value that was written in a transaction counts once a marker has committed that. So the others
    do not wait for a transaction that is open.
    """

    def __init__(self) -> None:
        self.decided: dict[bytes, _Newest] = {}
        self.damaged = 0  # stretches that are not read
        # By partition and producer: what was written since its last marker, and before its first
        # one, which may end a transaction of the stretch before; whether that one commits.
        self._open: dict[tuple[int, int], dict[bytes, _Newest]] = {}
        self._ended: dict[tuple[int, int], tuple[dict[bytes, _Newest], bool]] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        """Add records that follow."""
        damage = rows["corruption"]
        if damage.null_count < rows.num_rows:  # a row by itself
            self.damaged += rows.num_rows - damage.null_count
            return
        columns = (rows[name].to_pylist() for name in _NAMES)
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
        self.damaged += stretch.damaged
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

    def decoded(self, kind: str) -> Iterator[Decoded]:
        """The keys that have not been removed since, with their newest values."""
        present = {key: value for key, (_, value) in self.decided.items() if value is not None}
        keys, values = pa.array(present, pa.binary()), pa.array(present.values(), pa.binary())
        return decoded(kind, {"key": keys, "value": values})


class Decoded(NamedTuple):
    """A record of an internal topic, as far as kafkajit knows the versions of its parts."""

    type: str | None
    key: dict[str, Any] | None
    value: dict[str, Any] | None


def decoded(kind: str, rows: Mapping[str, pa.Array]) -> Iterator[Decoded]:
    """The columns key and value of an internal topic, decoded; no value that is too large is."""
    values = rows["value"]
    small = pc.less_equal(pc.fill_null(pc.binary_length(values), 0), MOST_BYTES)
    if not pc.all(small, min_count=0).as_py():
        values = pc.if_else(small, values, pa.scalar(b"", values.type))
    for row in decode_payloads(kind, rows["key"], values, lenient=True).to_pylist():
        row = row or {"key": None, "value": None}
        key, value = json.loads(row["key"] or "{}"), json.loads(row["value"] or "{}")
        yield Decoded(key.get("type"), _known(key), _known(value))


def _known(document: dict[str, Any]) -> dict[str, Any] | None:
    data = document.get("data")
    return data if isinstance(data, dict) else None


def plan_newest(
    topic: str, paths: Iterable[str], keys: PrivateKeys = NO_KEYS
) -> tuple[list[Task], ScanOptions]:
    """The tasks that read the logs of an internal topic at these paths."""
    options = ScanOptions(tuple(paths), mode=PERMISSIVE, private_keys=keys)
    asked = [Predicate("topic", "=", topic)]
    return [task for task in plan_tasks(options, asked) if task], options


def read_newest(task: Task, options: ScanOptions) -> Newest:
    """The newest values of the keys in a task's records."""
    newest = Newest()
    for rows in read_task(task, _SCHEMA, options):
        newest.add(rows)
    return newest
