"""The open files of a round: rows of one partition, divided by date if the export is.

Rows wait until there are enough for a row group, so memory holds one row group of waiting rows and
the one that is being written, whatever the number of dates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.scan.export.formats import ROW_GROUP_BYTES, FileWriter, file_writer
from kafkajit.scan.export.journal import damage_only
from kafkajit.scan.export.output import PartitionOutput
from kafkajit.scan.export.partition_log import PartitionLog

# Hive's name for the folder of NULL.
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_MOST_DATES = 64  # open files
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400_000
_FIRST_DAY = (datetime.min.replace(tzinfo=UTC) - _EPOCH).days
_LAST_DAY = (datetime.max.replace(tzinfo=UTC) - _EPOCH).days
_NO_DATE = _LAST_DAY + 1


class ClosedFile(NamedTuple):
    """A file that is whole."""

    written: str  # its name now
    name: str  # its name once the round is committed
    records: int
    size: int


class OpenFile:
    """A file of the round, with the rows that wait to be written."""

    def __init__(self, log: PartitionLog, schema: pa.Schema, date: str | None) -> None:
        self._records = 0
        self.waiting_bytes = 0
        self.written = self._name = ""  # once a row is written
        self._log = log
        self._schema = schema
        self._date = date
        self._waiting: list[pa.RecordBatch] = []
        self._sink: pa.NativeFile | None = None
        self._writer: FileWriter | None = None
        self._first: int | None = None
        self._last: int | None = None

    def take(self, rows: pa.RecordBatch) -> None:
        self._waiting.append(rows)
        self.waiting_bytes += rows.nbytes
        offsets = rows["offset"].drop_null()
        if len(offsets):
            self._first = offsets[0].as_py() if self._first is None else self._first
            self._last = offsets[-1].as_py()
        self._records += len(offsets)

    def flush(self, output: PartitionOutput, next_offset: int) -> None:
        """Write the waiting rows, a row group."""
        if not self._waiting:
            return
        options = self._log.options
        if self._writer is None:
            self._name = self._named(next_offset, output.journal.rounds)
            self.written, self._sink = output.create(self._name)
            self._writer = file_writer(self._sink, self._schema, options, self._metadata())
        table = pa.Table.from_batches([rows.select(self._schema.names) for rows in self._waiting])
        self._waiting, self.waiting_bytes = [], 0
        self._writer.write(table)

    @property
    def size(self) -> int:
        """The bytes that have been written."""
        return 0 if self._sink is None else int(self._sink.tell())

    def close(self, output: PartitionOutput) -> ClosedFile:
        """Write the file's end."""
        assert self._sink is not None
        assert self._writer is not None
        metadata = self._metadata()
        if self._first is not None and self._last is not None:
            span = (self._first, self._last + 1)
            metadata |= offsets_metadata({(self._log.topic, self._log.partition): span})
        self._writer.close(metadata)
        size = self.size
        output.complete(self.written, self._sink)
        return ClosedFile(self.written, self._name, self._records, size)

    def abandon(self, output: PartitionOutput) -> None:
        if self._sink is not None:
            output.abandon(self.written, self._sink)

    def _metadata(self) -> dict[str, str]:
        return {
            "kafkajit.version": version(),
            "kafkajit.topic": self._log.topic,
            "kafkajit.partition": str(self._log.partition),
        }

    def _named(self, next_offset: int, rounds: int) -> str:
        log, options = self._log, self._log.options
        values = {"topic": log.topic, "partition": log.partition, "date": self._date}
        folders = [
            f"{name}={NULL_PARTITION if values[name] is None else values[name]}/"
            for name in options.partition_by
        ]
        if self._first is None:  # damage without a record around it, under PERMISSIVE
            return log.names.final("".join(folders), damage_only(next_offset, rounds))
        return log.names.final("".join(folders), f"{self._first:020}")


class RoundFiles:
    """The files of one round."""

    def __init__(self, log: PartitionLog, output: PartitionOutput, next_offset: int) -> None:
        by = log.options.partition_by
        self._log = log
        self._output = output
        self._next = next_offset
        self._schema = pa.schema([field for field in log.schema if field.name not in by])
        self._row_group = min(ROW_GROUP_BYTES, log.options.file_size)
        self._files: dict[str | None, OpenFile] = {}

    def __len__(self) -> int:
        return len(self._files)

    def write(self, rows: pa.RecordBatch) -> None:
        """Take rows in the order of offsets."""
        for date, part in self._by_date(rows):
            file = self._files.get(date)
            if file is None:
                file = self._files[date] = OpenFile(self._log, self._schema, date)
            file.take(part)
        while sum(file.waiting_bytes for file in self._files.values()) >= self._row_group:
            fullest = max(self._files.values(), key=lambda file: file.waiting_bytes)
            fullest.flush(self._output, self._next)

    @property
    def is_full(self) -> bool:
        """Whether the round should end: a file is large enough, or many are open."""
        limit = self._log.options.file_size
        return len(self._files) > _MOST_DATES or any(
            file.size >= limit for file in self._files.values()
        )

    def close(self) -> list[ClosedFile]:
        """Write the remaining rows and the files' ends."""
        closed = []
        for file in self._files.values():
            file.flush(self._output, self._next)
            closed.append(file.close(self._output))
        return closed

    def abandon(self) -> None:
        """Remove the files."""
        for file in self._files.values():
            file.abandon(self._output)

    def _by_date(self, rows: pa.RecordBatch) -> Iterator[tuple[str | None, pa.RecordBatch]]:
        """The rows of each date, in the order of offsets.

        Those without a timestamp and those beyond the year 9999 are in one file.
        """
        if "date" not in self._log.options.partition_by:
            yield None, rows
            return
        times = rows["timestamp"].cast(pa.int64())
        days = pc.fill_null(times, _NO_DATE * _DAY).to_numpy() // _DAY
        days[(days < _FIRST_DAY) | (days > _LAST_DAY)] = _NO_DATE
        if days.size and (days == days[0]).all():
            yield date_text(int(days[0])), rows
            return
        for day in np.unique(days).tolist():
            yield date_text(day), rows.filter(pa.array(days == day))


def date_text(day: int) -> str | None:
    """A day since 1970 as ISO 8601; None for one beyond the years 1 to 9999.

    >>> date_text(20454)
    '2026-01-01'
    """
    try:
        return (_EPOCH + timedelta(days=day)).strftime("%Y-%m-%d").rjust(10, "0")
    except OverflowError:
        return None


def offsets_metadata(spans: Mapping[tuple[str, int], tuple[int, int]]) -> dict[str, str]:
    """The first offset of each partition and the offset behind its last, in JSON."""
    by_topic: dict[str, dict[int, tuple[int, int]]] = {}
    for (topic, partition), span in spans.items():
        by_topic.setdefault(topic, {})[partition] = span
    return {"kafkajit.offsets": json.dumps(by_topic)}


def version() -> str:
    """Kafkajit's version."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as known

    try:
        return known("kafkajit")
    except PackageNotFoundError:  # run from a checkout
        return "unknown"
