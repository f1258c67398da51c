"""`kafkajit.import_files`: Parquet, Arrow, CSV, JSON lines or Avro files → logs of partitions.

files ─▶ rows ─▶ records ─▶ series, in the order of offsets ─▶ TaskOutput ─▶ commit
inputs/input_files, readers, input_columns    series
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.errors import InvalidOffsetError
from kafkajit.produce.checks import check_columns, check_folder
from kafkajit.produce.commit import check_new, commit
from kafkajit.produce.imported import ImportedPartition, LeftOut
from kafkajit.produce.inputs.input_columns import OF_BATCHES, InputColumns
from kafkajit.produce.inputs.input_files import FORMATS, InputFile, input_files, repeated
from kafkajit.produce.inputs.readers import names_in, rows_in
from kafkajit.produce.inputs.rows import in_file
from kafkajit.produce.inputs.series import Series, series_of
from kafkajit.produce.job_folder import JobFolder
from kafkajit.produce.open_transactions import OF_TRANSACTIONS, OpenTransactions, joined
from kafkajit.produce.options import ProduceOptions
from kafkajit.produce.router import Router, TopicPartition
from kafkajit.produce.task_output import StagedSegment, TaskOutput, check_growing
from kafkajit.system.acting import reading_for

# Options of the writer that the arguments and the files decide.
_DECIDED = ("path", "keepoffsets", "partitionoverwritemode")
_DATE = re.compile(r"/date=[^/]*")  # a folder of a partition
_FOLLOWED = ("offset", *OF_TRANSACTIONS)


@dataclass(repr=False)
class ImportPlan:
    """The records of files, and the folder of logs that they are for."""

    files: list[InputFile]
    options: ProduceOptions
    columns: InputColumns
    has_offsets: bool = False  # whether the files have offsets, which then decide the order
    left_out: LeftOut = field(default_factory=LeftOut)  # complete once all files are read
    # Called with the path of a file, and the number of its records that were read.
    progress: Callable[[str, int], None] | None = None

    @cached_property
    def partitions(self) -> list[ImportedPartition]:
        """The partitions and their numbers of records; reads all files."""
        counts = _Counts(self.options, self.has_offsets)
        for number, series in enumerate(self._series()):
            counts.begin(number)
            for records in series.records():
                with series.named():
                    counts.add(records)
            counts.end(series.path)
        counts.check()
        check_new(self.options.path, [part.partition for part in counts.found])
        return counts.found

    def apply(self) -> list[ImportedPartition]:
        """Write the logs, all of them or none; a partition that exists is an error."""
        with reading_for(self.options.path):
            return self._applied()

    def _applied(self) -> list[ImportedPartition]:
        options = self.options
        check_folder(options, overwrite=False)
        counts = _Counts(options, self.has_offsets)
        job = JobFolder(options.path)
        staged: list[tuple[int, StagedSegment]] = []
        now = int(time.time() * 1000)
        try:
            for number, series in enumerate(self._series()):
                counts.begin(number)
                folder = job.path / str(number)
                with TaskOutput(folder, options, timestamp=now, task=number) as output:
                    for records in series.records():
                        with series.named():
                            counts.add(records)
                            output.write(records)
                    with series.named():
                        segments = output.close()
                staged += [(number, segment) for segment in segments]
                counts.end(series.path)
            commit(counts.in_order(staged), job.path / "together", options, only_new=True)
        except BaseException:
            job.abort()
            raise
        job.remove()
        return counts.found

    def __repr__(self) -> str:
        files = f"{len(self.files):,} file{'' if len(self.files) == 1 else 's'}"
        return f"<ImportPlan {files} for {self.options.path}; print() reads them>"

    def __str__(self) -> str:
        notes = [note for partition in self.partitions for note in partition.notes]
        return "\n".join([*map(str, self.partitions), *notes, *self.left_out.lines()])

    def _series(self) -> list[Series]:
        self.left_out.forget_rows()
        return series_of(self.files, self._records, by_offset=self.has_offsets)

    def _records(self, file: InputFile) -> Iterator[pa.RecordBatch]:
        count = 0
        for rows in rows_in(file, self.columns.wanted):
            count += rows.count
            if self.progress is not None:
                self.progress(file.path, count)
            self.left_out.columns.update(self.columns.not_imported(rows.names))
            with in_file(file.path, rows):
                self.columns.check(rows)
                found = self.columns.records(rows, _in_path(file, self.columns))
            self.left_out.columns.update(found.lost)
            self.left_out.add_rows(file.path, found.damaged, found.control)
            if found.batch.num_rows:
                try:
                    check_columns(found.batch.schema, self.options)
                except ValueError as error:
                    raise ValueError(f"{file.path}: {error}") from None
                yield found.batch
        if file.has_changed:
            raise ValueError(
                f"{file.path} has changed since it was listed: import it again once it is complete"
            )


class _Counts:
    """Counts the records for each partition, and knows the order of series in each."""

    def __init__(self, options: ProduceOptions, has_offsets: bool) -> None:
        self._options = options
        self._has_offsets = has_offsets
        self._router = Router(options)
        self._found: dict[TopicPartition, ImportedPartition] = {}
        self._number = 0
        # The first offset and the last one of each partition in the series that is read.
        self._spans: dict[TopicPartition, tuple[int, int]] = {}
        self._all_spans: dict[TopicPartition, list[_Span]] = {}
        self._open: dict[TopicPartition, OpenTransactions] = {}  # in the series that is read

    def begin(self, number: int) -> None:
        """Begin with the records of a series."""
        self._number = number
        self._router = Router(self._options, number)
        self._spans, self._open = {}, {}

    def add(self, records: pa.RecordBatch) -> None:
        numbers = pa.array(self._router.route(records))
        followed = records.select([name for name in _FOLLOWED if name in records.schema.names])
        for pair in pc.value_counts(numbers):
            partition = self._router.partitions[pair["values"].as_py()]
            part = self._found.setdefault(partition, ImportedPartition(partition))
            part.records += pair["counts"].as_py()
            if self._has_offsets:
                self._follow(partition, followed.filter(pc.equal(numbers, pair["values"])))

    def _follow(self, partition: TopicPartition, records: pa.RecordBatch) -> None:
        offsets = records["offset"].to_numpy()
        first, last = self._spans.get(partition, (int(offsets[0]), -1))
        check_growing(partition, offsets, last + 1)
        self._spans[partition] = first, int(offsets[-1])
        self._open.setdefault(partition, OpenTransactions()).add(records)

    def end(self, path: str) -> None:
        """End with a series, of which `path` is the first file."""
        for partition, (first, last) in self._spans.items():
            span = _Span(first, last, self._number, path, self._open[partition])
            self._all_spans.setdefault(partition, []).append(span)

    def check(self) -> None:
        """Raise if the offsets of two series overlap."""
        for partition, spans in self._all_spans.items():
            spans.sort(key=attrgetter("first", "last", "number"))
            for one, next_ in pairwise(spans):
                if next_.first <= one.last:
                    raise InvalidOffsetError(
                        f"offsets {one.first} to {one.last} of {partition} are in {one.path}, and "
                        f"{next_.first} to {next_.last} in {next_.path}: import one of the files, "
                        "or put their rows into one file in the order of offsets"
                    )

    def in_order(self, staged: list[tuple[int, StagedSegment]]) -> list[StagedSegment]:
        """The segments of series in the order in which their records are in each partition."""
        self.check()
        places = {
            (partition, span.number): place
            for partition, spans in self._all_spans.items()
            for place, span in enumerate(spans)
        }
        key = lambda pair: places.get((pair[1].partition, pair[0]), pair[0])  # noqa: E731
        return [segment for _, segment in sorted(staged, key=key)]

    @property
    def found(self) -> list[ImportedPartition]:
        """The partitions in order."""
        for partition, part in self._found.items():
            part.first_offset, part.last_offset = 0, part.records - 1
            if self._options.keep_offsets:
                spans = self._all_spans[partition]
                part.first_offset = min(span.first for span in spans)
                part.last_offset = max(span.last for span in spans)
                part.open_transactions = joined(span.open for span in spans).first_offsets
        return sorted(self._found.values(), key=lambda part: part.partition)


class _Span(NamedTuple):
    """A partition's records in a series: their first offset and last one, and the first file."""

    first: int
    last: int
    number: int
    path: str
    open: OpenTransactions


def import_files(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002  as users know it
    key_column: str = "key",
    value_column: str = "value",
    timestamp_column: str = "timestamp",
    new_offsets: bool = False,
    ignore_columns: Iterable[str] = (),
    **options: Any,
) -> ImportPlan:
    r"""Plan the logs of partitions that a broker loads, out of Parquet, Arrow, CSV, JSONL or Avro.

    No file is written before you call the plan's `apply`. A partition that exists in the folder is
    an error. Files that `export` wrote become the same records again. The plan's `left_out` names
    the columns, rows and files that are not imported.

    Args:
        files: files, folders with all their files, globs or URIs.
        folder: the log.dirs folder to write to.
        format: parquet, arrow, csv, jsonl or avro; by default that of each file's suffix.
        key_column: the column of keys. In Parquet, Arrow and Avro numbers become text, structs and
            lists become JSON; in JSON lines a string is its text, and any other value the JSON as
            it stands in the line.
        value_column: the column of values, in the same way.
        timestamp_column: the column of timestamps: times, ISO 8601 or milliseconds. Digits behind
            the millisecond are cut off. Records without one get the time of the import.
        new_offsets: number records from 0. If there is a column offset, its order is kept.
        ignore_columns: globs of columns that are not to be imported, and not to be named either.
        options: options of kafkaLog's writer, such as topic, partitions, compression_type,
            batch_size, topic_id or force, and configs of topics, such as segment_bytes.

    >>> import kafkajit, tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("id,payload\n7,hello\n")
    >>> columns = {"key_column": "id", "value_column": "payload"}
    >>> plan = import_files(folder / "a.csv", folder, topic="orders", partitions=1, **columns)
    >>> print(*plan.apply())
    orders-0: 1 record, offset 0
    """
    for name in options:
        if name.lower().replace("_", "").replace(".", "") in _DECIDED:
            raise ValueError(f"import_files has no option {name!r}")
    if format not in (None, *FORMATS):
        raise ValueError(f"unknown format {format!r}; there are: {', '.join(FORMATS)}")
    given = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    if not given:
        raise ValueError("there are no files to import: name some")
    found = [input_files(os.fspath(place), format) for place in given]
    inputs = [file for some in found for file in some.files]
    for paths in repeated(inputs):
        raise ValueError(f"{' and '.join(paths)} are one file: its records would come twice")
    parsed = ProduceOptions.parse(
        {"path": os.fspath(folder), "transactions": "open"}  # which the plan names
        | {
            name.replace("_", ""): _text(value)
            for name, value in options.items()
            if value is not None
        }
    )
    globs = (ignore_columns,) if isinstance(ignore_columns, str) else tuple(ignore_columns)
    columns = InputColumns(parsed, key_column, value_column, timestamp_column, globs)
    present = {file.path: names for file in inputs if (names := _present(file, columns))}
    has_offsets = _all_or_none("offset", present)
    keeps = has_offsets and not new_offsets
    if keeps:
        for name in OF_BATCHES:
            _all_or_none(name, present)
    parsed = replace(parsed, keep_offsets=keeps)
    columns = replace(columns, options=parsed, present=frozenset().union(*present.values()))
    for some in found:
        for name in columns.read_of(some.twice):
            if name in ("topic", "partition"):
                raise ValueError(
                    f"{some.twice[name]}: rename a folder, or ignore the column {name}"
                )
    left_out = LeftOut(files=[path for some in found for path in some.skipped])
    for file in inputs:
        left_out.columns.update(columns.read_of(file.ignored))
        if "date" in file.folders and "timestamp" not in present.get(file.path, ("timestamp",)):
            left_out.columns.update(columns.read_of(["date"]))
    if not has_offsets and columns.read_of(["date"]):
        _check_dates(inputs)
    return ImportPlan(inputs, parsed, columns, has_offsets, left_out)


def _check_dates(files: Iterable[InputFile]) -> None:
    """Raise if folders by date divide an exported partition: its order is that of offsets."""
    first: dict[tuple[str, str], InputFile] = {}
    for file in files:
        if file.series is not None and "date" in file.folders:
            one = first.setdefault(
                (_DATE.sub("", file.path.rpartition("/")[0]), file.series[0]), file
            )
            if one.folders["date"] != file.folders["date"]:
                raise ValueError(
                    f"{one.path} and {file.path} are parts of one partition, and only the column "
                    "offset tells their order: export it, too, or ignore the column date to import "
                    "the records in the order of dates"
                )


def _present(file: InputFile, columns: InputColumns) -> set[str]:
    """The columns of records that a file has; none if it has no rows."""
    names = names_in(file)
    return set() if names is None else {*columns.columns_in(names), *_in_path(file, columns)}


def _in_path(file: InputFile, columns: InputColumns) -> dict[str, str]:
    """The columns in a file's path, without those that are ignored."""
    return {name: file.columns[name] for name in columns.read_of(file.columns)}


def _all_or_none(name: str, present: Mapping[str, set[str]]) -> bool:
    """Whether all files have a column. If only some have it, that is an error."""
    having = [path for path, names in present.items() if name in names]
    if having and len(having) < len(present):
        other = next(path for path, names in present.items() if name not in names)
        raise ValueError(
            f"{having[0]} has a column {name}, and {other} has none: import them one by one, or "
            f"ignore the column {name}"
        )
    return bool(having)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
