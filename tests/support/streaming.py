"""A stream read without Spark, and logs that grow as a broker makes them grow."""

from __future__ import annotations

import json
import os
import pickle
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from partitions import log_name

from kafkajit.scan.plan import Split
from kafkajit.scan.stream.log_stream import LogStream
from kafkajit.scan.stream.offsets import READ, StreamOffsets
from kafkajit.scan.stream.options import Limits, StreamOptions
from kafkajit.scan.stream.tasks import read_stream_task
from kafkajit.scan.table import schema_of
from kafkajit.scan.typed_table import with_types


def stream_options(*locations: str | Path, **options: object) -> StreamOptions:
    paths = {"paths": json.dumps([str(location) for location in locations])}
    return StreamOptions.parse(paths | {name: str(value) for name, value in options.items()})


UNLIMITED = Limits()


class Query:
    """A query as Spark runs it: offsets are stored before a micro-batch, and pass through JSON."""

    def __init__(self, *locations: str | Path, **options: object) -> None:
        parsed = stream_options(*locations, **options)
        self.options = replace(parsed, scan=with_types(parsed.scan))
        self.planned: list[StreamOffsets] = []  # the checkpoint's offsets
        self.committed = 0
        self.stream = LogStream(self.options)

    @property
    def ends(self) -> list[StreamOffsets]:
        """The planned offsets, without what they stand on."""
        return [{name: end[name] for name in end if name != READ} for end in self.planned]

    def restart(self) -> Query:
        """Go on from the checkpoint in a new process."""
        self.stream = LogStream(self.options)
        return self

    def plan(self, limits: Limits | None = UNLIMITED) -> bool:
        """Store the end of the next micro-batch; False if there is nothing to read."""
        assert len(self.planned) == self.committed
        start = self._start()
        merged = limits
        if limits is not None:
            given = zip(limits, self.options.limits, strict=True)
            merged = Limits(*(b if a is None else a for a, b in given))
        end = json.loads(json.dumps(self.stream.latest_offsets(start, merged)))
        if self.planned and end == start:
            return False
        self.planned.append(end)
        return True

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """The rows of the planned micro-batch, which is not yet committed."""
        return self.read_tasks(self.tasks(), columns)

    def tasks(self) -> list[list[Split]]:
        """The tasks of the planned micro-batch."""
        end = self.planned[-1]
        start = self.planned[-2] if len(self.planned) > 1 else self.stream.initial_offsets()
        return self.stream.tasks(start, end)

    def read_tasks(self, tasks: list[list[Split]], columns: list[str] | None = None) -> pa.Table:
        """The rows of tasks, which may have been planned earlier."""
        schema = self._schema(columns)
        batches = []
        for task in tasks:
            batches += read_stream_task(pickle.loads(pickle.dumps(task)), schema, self.options)
        return pa.Table.from_batches(batches, schema=schema)

    def commit(self) -> None:
        self.committed = len(self.planned)
        self.stream.commit(self.planned[-1])

    def trigger(self, columns: list[str] | None = None, **limits: int) -> pa.Table:
        """The rows of the next micro-batch."""
        if not self.plan(Limits(**limits)):
            return self._schema(columns).empty_table()
        table = self.read(columns)
        self.commit()
        return table

    def offsets(self, **limits: int) -> list[int]:
        """The offsets of the next micro-batch's records."""
        return self.trigger(["offset"], **limits)["offset"].to_pylist()

    def places(self, **limits: int) -> list[tuple[str, int, int]]:
        """Topic, partition and offset of the next micro-batch's records."""
        table = self.trigger(["topic", "partition", "offset"], **limits)
        return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def _schema(self, columns: list[str] | None) -> pa.Schema:
        schema = schema_of(self.options.scan)
        return schema if columns is None else pa.schema([schema.field(name) for name in columns])

    def _start(self) -> StreamOffsets:
        start = self.planned[-1] if self.planned else self.stream.initial_offsets()
        found: Any = json.loads(json.dumps(start))
        return found


def append(folder: Path, content: bytes, base_offset: int = 0) -> None:
    """Write bytes to the end of a segment, as a broker does."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / log_name(base_offset)).open("ab") as log:
        log.write(content)


def finished(folder: Path, segments: Mapping[int, Iterable[bytes]]) -> Path:
    """A folder with these segments, by base offsets, that looks as if it had rested for an hour."""
    for base, batches in segments.items():
        append(folder, b"".join(batches), base)
    finish(folder)
    return folder


def finish(folder: Path) -> None:
    """Let a folder look as if nothing in it had changed for an hour."""
    for path in (*folder.iterdir(), folder):
        os.utime(path, (time.time() - 3600,) * 2)


def started(*locations: str | Path, **options: object) -> Query:
    """A query that has stored where it begins."""
    query = Query(*locations, **options)
    assert query.trigger().num_rows == 0
    return query
