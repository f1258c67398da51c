"""`kafkajit.export`: the records of logs → files.

partitions ─▶ rows in the order of offsets ─▶ rounds ─▶ files, then the journal
partition_rows                                round_files   output
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow.fs import FileType

from kafkajit.change.files import say_where
from kafkajit.errors import KafkaJitError
from kafkajit.format.amounts import number_of, offsets_text
from kafkajit.format.notebook import html_lines, in_notebook
from kafkajit.format.progress import Progress, ignored
from kafkajit.log.footing import ReadBatch
from kafkajit.places.location import filesystem_at, shown
from kafkajit.scan.export.formats import ROW_GROUP_BYTES, file_writer
from kafkajit.scan.export.journal import ExportedFile
from kafkajit.scan.export.options import (
    DEFAULT_FILE_SIZE,
    TEXT,
    ExportOptions,
    codec_of,
    format_of,
)
from kafkajit.scan.export.output import OutputFolder, PartitionOutput
from kafkajit.scan.export.output_folders import never_close, output_folder
from kafkajit.scan.export.partition_log import PartitionLog, partitions_to_export
from kafkajit.scan.export.partition_rows import rows_of
from kafkajit.scan.export.passed import Passed
from kafkajit.scan.export.round_files import RoundFiles, offsets_metadata, version
from kafkajit.storage.remote_store import RemoteStore
from kafkajit.system.acting import reading_for
from kafkajit.system.new_file import NewFile


@dataclass
class ExportedPartition:
    """The part of a partition that a run has exported."""

    topic: str
    partition: int
    records: int = 0
    files: list[str] = field(default_factory=list)
    bytes: int = 0
    first_offset: int | None = None  # of the records that are new
    last_offset: int | None = None
    passed: Passed = field(default_factory=Passed)

    def see(self, rows: pa.RecordBatch) -> None:
        """Note the offsets of rows."""
        offsets = rows["offset"].drop_null()
        if len(offsets):
            first = offsets[0].as_py()
            self.first_offset = first if self.first_offset is None else self.first_offset
            self.last_offset = offsets[-1].as_py()

    def __str__(self) -> str:
        name = f"{self.topic}-{self.partition}"
        if not self.records:
            at = self.passed.next_offset
            return f"{name}: no new records{'' if at is None else f' from offset {at} on'}"
        line = (
            f"{name}: {number_of(self.records, 'record')}, "
            f"{offsets_text(self.first_offset or 0, self.last_offset or 0)}"
        )
        if not self.files:
            return line
        ending = "" if len(self.files) == 1 else "s"
        return f"{line}, {len(self.files)} file{ending}, {self.bytes:,} bytes"


Report = Callable[[ExportedPartition], None]


@dataclass(repr=False)
class ExportResult:
    """The partitions that a run has gone through, in order."""

    partitions: list[ExportedPartition]

    def __repr__(self) -> str:
        return (
            f"<ExportResult of {self.records:,} records, partitions: {len(self.partitions):,}, "
            f"files: {len(self.files):,}>"
        )

    def _repr_html_(self) -> str:
        return html_lines(repr(self), str(self))

    @property
    def records(self) -> int:
        return sum(partition.records for partition in self.partitions)

    @property
    def files(self) -> list[str]:
        return [file for partition in self.partitions for file in partition.files]

    @property
    def gaps(self) -> list[dict[str, Any]]:
        """The damage between records: path, position, length and reason of each."""
        return [gap for partition in self.partitions for gap in partition.passed.gaps]

    @property
    def lost(self) -> list[str]:
        """Lines about offsets that retention removed before they were exported."""
        return [text for partition in self.partitions for text in partition.passed.lost]

    @property
    def malformed(self) -> int:
        """The number of records whose key or value does not fit its schema."""
        return sum(partition.passed.malformed for partition in self.partitions)

    def __str__(self) -> str:
        return "\n".join(map(str, self.partitions))


def export(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    to: str | None = None,
    columns: Iterable[str] | str | None = None,
    partition_by: Iterable[str] | str = (),
    file_size: int | str = DEFAULT_FILE_SIZE,
    codec: str | None = None,
    level: int | None = None,
    encoding: str = TEXT,
    topics: Iterable[str] | str = (),
    partitions: Iterable[str] | str = (),
    **options: Any,
) -> ExportResult:
    """Export records to files; a run into the same folder adds only new records.

    Each file appears whole or not at all, has records of one partition, and is named by it and by
    its first offset. If a run is interrupted, the next one goes on where it stopped.

    Args:
        paths: log.dirs folders, partitions' folders, globs, or URIs such as s3://bucket/orders-0.
        out: a folder, local or a URI, or a single file such as orders.parquet.
        to: parquet, arrow, csv, jsonl or avro; by default the suffix of a single file.
        columns: names of `kafkajit.schema.RECORD_COLUMNS`, "all", or with typed values fields such
            as "value.customer.id". By default those of Spark's Kafka source.
        partition_by: topic, partition and date (of the timestamp, in UTC): folders as Hive's, such
            as topic=orders/partition=0. Their columns are not in the files then.
        file_size: bytes of a file, such as "256m"; it ends with the row group that reaches them.
        codec: the compression; by default zstd in Parquet, snappy in Avro, and otherwise none.
        level: the codec's level.
        encoding: of bytes in csv and jsonl: text, which must be UTF-8, or base64, in columns
            keyBase64 and valueBase64.
        topics: the topics to export; by default all but the brokers' own.
        partitions: the partitions to export, such as orders-0.
        options: options of kafkaLog, such as starting_timestamp, ending_offsets, isolation_level,
            mode, value_schema or schemas.

    >>> import kafkajit, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = kafkajit.export("sample:", folder, to="parquet", topics=["orders"])
    ...     print(result.records, *result.files)
    25 orders-0-00000000000000000000.parquet
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    place = os.fspath(out)
    format_, is_file = format_of(place, to)
    if is_file and partition_by:
        raise ValueError(f"{place} is a single file: pass a folder to divide records among files")
    checked = ExportOptions.of(
        [os.fspath(path) for path in given],
        format_=format_,
        columns=columns,
        partition_by=partition_by,
        file_size=file_size,
        codec=codec_of(place, format_, codec) if is_file else codec,
        level=level,
        encoding=encoding,
        topics=topics,
        partitions=partitions,
        scan=options,
    )
    with in_notebook() as progress:
        if is_file:
            return export_to_file(place, checked, progress=progress)
        return export_to_folder(place, checked, progress=progress)


def export_to_folder(
    out: str, options: ExportOptions, report: Report | None = None, progress: Progress = ignored
) -> ExportResult:
    """Export to files of each partition; `report` is called with each partition.

    If the options have a function for failures, it is called with the error of a partition that
    cannot be read, and the others are exported.
    """
    logs = partitions_to_export(options)
    exported = []
    with closing(output_folder(out)) as folder:
        for log, reading in _reported(logs, progress):
            try:
                exported.append(_export_partition(log, folder, reading))
            except UnreadableError as unreadable:
                if options.scan.failed is None:
                    raise unreadable.error from None
                options.scan.failed(unreadable.error)
                continue
            if report is not None:
                report(exported[-1])
    return ExportResult(exported)


def _reported(
    logs: list[PartitionLog], progress: Progress
) -> Iterator[tuple[PartitionLog, Callable[[int], None]]]:
    """Each log, and a function to call with the number of its bytes that were read."""
    total, before = sum(log.size for log in logs), 0
    for log in logs:
        progress(log.name, before, total)

        def reading(done: int, name: str = log.name, before: int = before) -> None:
            progress(name, before + done, total)

        yield log, reading
        before += log.size


def _export_partition(
    log: PartitionLog, folder: OutputFolder, reading: Callable[[int], None]
) -> ExportedPartition:
    output = PartitionOutput(folder, log.names, log.identity)
    known = output.journal
    passed = Passed(
        known.next_offset,
        read=known.footing,
        missing=list(known.missing),
        left_out=list(known.left_out),
        behind=list(known.gaps),
    )
    done = ExportedPartition(log.topic, log.partition, passed=passed)
    rows = _read(log, passed, reading)
    is_last = False
    while not is_last:
        files = RoundFiles(log, output, passed.next_offset or 0)
        try:
            is_last = _fill(files, rows, done)
            last = _last_batch(passed)
            closed = files.close()
            new = tuple(ExportedFile(file.written, file.name, file.size) for file in closed)
            before, now = output.journal, passed.journal(last)
            if new or replace(before, files=(), rounds=0) != now:
                output.commit(replace(now, files=new))
        except BaseException as error:
            say_where(error, Path(folder.path))
            files.abandon()
            raise
        for file in closed:
            done.records += file.records
            done.bytes += file.size
            done.files.append(file.name)
    return done


class UnreadableError(Exception):
    """Carries the error of reading a partition past those of writing its files."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _read(
    log: PartitionLog, passed: Passed, reading: Callable[[int], None]
) -> Iterator[pa.RecordBatch]:
    try:
        yield from rows_of(log, passed, reading)
    except (KafkaJitError, OSError, EOFError) as error:
        raise UnreadableError(error) from error


def _last_batch(passed: Passed) -> ReadBatch | None:
    try:
        return passed.last_batch()
    except KafkaJitError as error:
        raise UnreadableError(error) from error


def _fill(files: RoundFiles, rows: Iterator[pa.RecordBatch], done: ExportedPartition) -> bool:
    """Write rows until the round should end; whether there are no more of them."""
    for batch in rows:
        files.write(batch)
        done.see(batch)
        if files.is_full:
            return False
    return True


def export_to_file(
    out: str,
    options: ExportOptions,
    sink: pa.NativeFile | None = None,
    progress: Progress = ignored,
) -> ExportResult:
    """Export all partitions to one file, which appears whole or not at all; or to a stream."""
    logs = partitions_to_export(options)
    schema = logs[0].schema
    for log in logs:
        if not log.schema.equals(schema):
            raise ValueError(
                f"{log.topic} and {logs[0].topic} have different typed columns, but {out} is "
                "one file: pass a folder, or name one topic"
            )
    if sink is not None:
        return _export_rows(logs, sink, progress, is_stream=True)
    return _to_new_file(out, lambda file: _export_rows(logs, file, progress, is_stream=False))


def _to_new_file(out: str, write: Callable[[pa.NativeFile], ExportResult]) -> ExportResult:
    """Write a file that appears when it is complete; one of the same name is an error."""
    storage, path = filesystem_at(out)
    exists = FileExistsError(f"{shown(out)} exists: remove it, or name another file")
    if not isinstance(storage, RemoteStore):
        if os.path.lexists(path):
            raise exists
        try:
            with (
                reading_for(Path(path).parent),
                NewFile(path, replaces=False) as file,
                pa.PythonFile(file, "w") as sink,
            ):
                return write(sink)
        except FileExistsError:
            raise exists from None

    def check_free() -> None:
        (there,) = storage.get_file_info([path])
        if there.type != FileType.NotFound:
            raise exists

    check_free()
    sink = storage.open_output_stream(path)
    try:
        result = write(sink)
        check_free()  # another one may have come meanwhile
    except BaseException as error:
        say_where(error, Path(path))
        never_close(sink)
        raise
    sink.close()
    return result


def _export_rows(
    logs: list[PartitionLog], sink: pa.NativeFile, progress: Progress, *, is_stream: bool
) -> ExportResult:
    schema = logs[0].schema
    metadata = {"kafkajit.version": version()}
    writer = file_writer(sink, schema, logs[0].options, metadata, is_stream=is_stream)
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    exported = []
    waiting: list[pa.RecordBatch] = []
    size = 0
    for log, reading in _reported(logs, progress):
        done = ExportedPartition(log.topic, log.partition)
        exported.append(done)
        for rows in rows_of(log, done.passed, reading):
            done.see(rows)
            done.records += rows.num_rows - rows["offset"].null_count
            waiting.append(rows.select(schema.names))
            size += rows.nbytes
            if size >= ROW_GROUP_BYTES:
                writer.write(pa.Table.from_batches(waiting))
                waiting, size = [], 0
        done.passed.ground.check()
        if done.first_offset is not None and done.last_offset is not None:
            spans[log.topic, log.partition] = done.first_offset, done.last_offset + 1
    if waiting:
        writer.write(pa.Table.from_batches(waiting))
    writer.close(metadata | offsets_metadata(spans))
    return ExportResult(exported)
