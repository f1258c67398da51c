"""`kafkajit.import_files`: Parquet, Arrow, CSV, JSON lines or Avro files → logs of partitions.

files ─▶ series of each partition, by offsets ─▶ records ─▶ TaskOutput ─▶ commit
input_files                                      input_columns
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.produce.checks import check_columns, check_folder
from kafkajit.produce.commit import check_new, commit
from kafkajit.produce.input_columns import InputColumns
from kafkajit.produce.input_files import InputFile, input_files
from kafkajit.produce.job_folder import JobFolder
from kafkajit.produce.options import ProduceOptions
from kafkajit.produce.router import Router, TopicPartition
from kafkajit.produce.task_output import StagedSegment, TaskOutput, check_growing

_READ_AHEAD = 1 << 62  # behind all offsets


@dataclass
class ImportedPartition:
    """The records for a partition."""

    partition: TopicPartition
    records: int = 0
    first_offset: int | None = None
    last_offset: int | None = None

    def document(self) -> dict[str, Any]:
        """The partition as a JSON object."""
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "records": self.records,
            "firstOffset": self.first_offset,
            "lastOffset": self.last_offset,
        }

    def __str__(self) -> str:
        return (
            f"{self.partition}: {self.records:,} record{'' if self.records == 1 else 's'}, offsets "
            f"{self.first_offset} to {self.last_offset}"
        )


@dataclass(repr=False)
class ImportPlan:
    """The records of files, and the folder of logs that they are for."""

    files: list[InputFile]
    options: ProduceOptions
    columns: InputColumns
    ignored: set[str] = field(default_factory=set)  # columns that are not imported, once read
    # Called with the path of a file, and the number of its records that were read.
    progress: Callable[[str, int], None] | None = None

    @cached_property
    def partitions(self) -> list[ImportedPartition]:
        """The partitions and their numbers of records; reads all files."""
        counts = _Counts(self.options)
        for number, series in enumerate(self._series()):
            counts.begin(number)
            for records in series:
                counts.add(records)
        check_new(self.options.path, (part.partition for part in counts.found))
        return sorted(counts.found, key=lambda part: part.partition)

    def apply(self) -> list[ImportedPartition]:
        """Write the logs, all of them or none; a partition that exists is an error."""
        options = self.options
        check_folder(options, overwrite=False)
        counts = _Counts(options)
        job = JobFolder(options.path)
        staged: list[StagedSegment] = []
        now = int(time.time() * 1000)
        try:
            for number, series in enumerate(self._series()):
                counts.begin(number)
                folder = job.path / str(number)
                with TaskOutput(folder, options, timestamp=now, task=number) as output:
                    for records in series:
                        counts.add(records)
                        output.write(records)
                    staged += output.close()
            commit(staged, job.path / "together", options, only_new=True)
        except BaseException:
            job.abort()
            raise
        job.remove()
        return sorted(counts.found, key=lambda part: part.partition)

    def __repr__(self) -> str:
        files = f"{len(self.files):,} file{'' if len(self.files) == 1 else 's'}"
        return f"<ImportPlan {files} for {self.options.path}; print() reads them>"

    def __str__(self) -> str:
        return "\n".join(map(str, self.partitions))

    def _series(self) -> Iterator[Iterator[pa.RecordBatch]]:
        """The records of files, one series after the other.

        With offsets that are kept, the files of an exported partition are one series, in the order
        of offsets; every other file is a series of its own. Without, the files are one series.
        """
        if not self.options.keep_offsets:
            yield (records for file in self.files for records in self._records(file))
            return
        partitions: dict[tuple[str | None, str], list[tuple[int, InputFile]]] = {}
        for file in self.files:
            if file.series is None:
                yield self._records(file)
                continue
            name, first = file.series
            partitions.setdefault((file.folders.get("topic"), name), []).append((first, file))
        for files in partitions.values():
            files.sort(key=lambda pair: (pair[0], pair[1].path))
            yield self._merged(files)

    def _records(self, file: InputFile) -> Iterator[pa.RecordBatch]:
        count = 0
        for rows in file.batches():
            count += rows.num_rows
            if self.progress is not None:
                self.progress(file.path, count)
            self.ignored.update(self.columns.ignored(rows))
            try:
                records = self.columns.records(rows, file.folders)
                check_columns(records.schema, self.options)
            except ValueError as error:
                raise ValueError(f"{file.path}: {error}") from None
            if records.num_rows:
                yield records

    def _merged(self, files: list[tuple[int, InputFile]]) -> Iterator[pa.RecordBatch]:
        """Records of a partition's files in the order of offsets: dates may have divided them."""
        heads: list[tuple[pa.RecordBatch, Iterator[pa.RecordBatch]]] = []
        waiting = list(reversed(files))
        while heads or waiting:
            last = min((_last(rows) for rows, _ in heads), default=-1)
            while waiting and (not heads or waiting[-1][0] <= last):
                reader = self._records(waiting.pop()[1])
                first = next(reader, None)
                if first is not None:
                    heads.append((first, reader))
                    last = min(last, _last(first)) if len(heads) > 1 else _last(first)
            if not heads:
                return
            parts, left = [], []
            for rows, reader in heads:
                count = pc.sum(pc.less_equal(rows["offset"], last)).as_py() or 0
                parts.append(rows.slice(0, count))
                rest = rows.slice(count) if count < rows.num_rows else next(reader, None)
                if rest is not None:
                    left.append((rest, reader))
            heads = left
            if len(parts) == 1:
                yield parts[0]
            else:
                yield pa.concat_batches(parts).sort_by("offset")


def _last(rows: pa.RecordBatch) -> int:
    return int(rows["offset"][-1].as_py())


class _Counts:
    """Counts the records for each partition."""

    def __init__(self, options: ProduceOptions) -> None:
        self._options = options
        self._router = Router(options)
        self._found: dict[TopicPartition, ImportedPartition] = {}
        self._next_offsets: dict[TopicPartition, int] = {}  # behind this task's records

    def begin(self, turn: int) -> None:
        """Begin with the records of a task."""
        self._router = Router(self._options, turn)
        self._next_offsets.clear()

    def add(self, records: pa.RecordBatch) -> None:
        numbers = pa.array(self._router.route(records))
        for pair in pc.value_counts(numbers):
            partition = self._router.partitions[pair["values"].as_py()]
            part = self._found.setdefault(partition, ImportedPartition(partition))
            part.records += pair["counts"].as_py()
            if not self._options.keep_offsets:
                part.first_offset, part.last_offset = 0, part.records - 1
                continue
            here = records["offset"].filter(pc.equal(numbers, pair["values"]))
            if here.null_count:
                raise ValueError("every record needs an offset, and some are null")
            offsets = here.to_numpy()
            check_growing(partition, offsets, self._next_offsets.get(partition, 0))
            part.last_offset = int(offsets[-1])
            self._next_offsets[partition] = part.last_offset + 1
            if part.first_offset is None:
                part.first_offset = int(offsets[0])

    @property
    def found(self) -> list[ImportedPartition]:
        return list(self._found.values())


def import_files(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002  as users know it
    key_column: str = "key",
    value_column: str = "value",
    timestamp_column: str = "timestamp",
    new_offsets: bool = False,
    **options: Any,
) -> ImportPlan:
    r"""Plan the logs of partitions that a broker loads, out of Parquet, Arrow, CSV, JSONL or Avro.

    No file is written before you call the plan's `apply`. A partition that exists in the folder is
    an error. Files that `export` wrote become the same records again.

    Args:
        files: files, folders with all their files, globs or URIs.
        folder: the log.dirs folder to write to.
        format: parquet, arrow, csv, jsonl or avro; by default that of each file's suffix.
        key_column: the column of keys. Numbers become text, structs and lists become JSON.
        value_column: the column of values, in the same way.
        timestamp_column: the column of timestamps: times, ISO 8601 or milliseconds. Records without
            one get the time of the import.
        new_offsets: number records from 0, even if there is a column offset.
        options: options of kafkaLog's writer, such as topic, partitions, compression_type,
            batch_size, topic_id or force, and configs of topics, such as segment_bytes.

    >>> import kafkajit, tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("id,payload\n7,hello\n")
    >>> columns = {"key_column": "id", "value_column": "payload"}
    >>> plan = import_files(folder / "a.csv", folder, topic="orders", partitions=1, **columns)
    >>> print(*plan.apply())
    orders-0: 1 record, offsets 0 to 0
    """
    given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    found = [file for place in given for file in input_files(os.fspath(place), format)]
    parsed = ProduceOptions.parse(
        {"path": os.fspath(folder)}
        | {
            name.replace("_", ""): _text(value)
            for name, value in options.items()
            if value is not None
        }
    )
    first = next((rows for file in found for rows in file.batches()), None)
    keeps = first is not None and "offset" in first.schema.names and not new_offsets
    parsed = replace(parsed, keep_offsets=keeps)
    columns = InputColumns(key_column, value_column, timestamp_column, keeps)
    return ImportPlan(found, parsed, columns)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
