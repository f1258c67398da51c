"""Folders of logs as a dataset that Arrow's engines scan: columns and rows are chosen, then read.

`Dataset` answers to pyarrow.dataset.Dataset, because DuckDB, Polars and DataFusion push columns and
conditions down to one of these. Its methods without a meaning for logs are refused.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from kafkajit.format.moment import of_datetime, option_text
from kafkajit.format.notebook import html_table
from kafkajit.format.text_options import Option, suggestion
from kafkajit.places.location import shown
from kafkajit.places.private_keys import PrivateKeys
from kafkajit.scan.aggregates import Aggregate, Aggregates, plan_aggregates, read_aggregates
from kafkajit.scan.ahead import read_ahead
from kafkajit.scan.condition import Condition, Filters
from kafkajit.scan.options import OPTIONS, ScanOptions
from kafkajit.scan.table import PLANNED, Task, plan_tasks, planned_rows, read_task, schema_of
from kafkajit.scan.typed_table import with_types
from kafkajit.schema import check_columns
from kafkajit.walk.threads import thread_count

_ROWS = Aggregates([], [Aggregate("count", None)])
_COUNT = pa.schema([("count", pa.int64())])
# More tasks than threads, so that no thread works alone for long in the end.
_SHARES = 4
_ALL_IN_ONE = 1 << 40


def dataset(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    columns: Sequence[str] | None = None,
    filters: Filters | None = None,
    threads: int | None = None,
    **options: Any,
) -> Dataset:
    """Open folders of logs as a lazy table, which reads rows only as you ask for them.

    .. versionadded:: 1.0.0

    Args:
        paths: a segment, a partition's folder, a log.dirs folder, a glob, or several of these;
            local or as URIs.
        columns: the columns to read; by default all of the table.
        filters: the rows to read, as in ``pyarrow.parquet.read_table``: a list of
            ``(column, test, value)`` that must all hold, a list of such lists of which one must
            hold, or an expression of ``pyarrow.compute``.
        threads: the number of threads; by default one for each processor.
        **options: the options of the data source in snake case: ``kind="batches"``,
            ``mode="PERMISSIVE"``, ``isolation_level="read_committed"``, ``starting_timestamp=…``;
            and ``private_keys``, the files of private keys by their ids.

    Raises:
        ValueError: an option, a column or a filter is unknown, or has a wrong value.

    Examples:
        >>> import kafkajit
        >>> log = kafkajit.dataset("sample:", columns=["topic", "partition", "offset"])
        >>> log.count_rows()
        51
        >>> log.filter([("topic", "==", "payments"), ("offset", ">", 25)]).to_table().to_pylist()
        [{'topic': 'payments', 'partition': 0, 'offset': 26}]
    """
    opened = Dataset(with_types(_parsed(paths, options)), threads=thread_count(threads))
    if columns is not None:
        opened = opened.select(columns)
    return opened if filters is None else opened.filter(filters)


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*_args: object, **_options: object) -> Any:
        raise NotImplementedError(
            f"a dataset of logs has no {name}: call to_table() and use the table's"
        )

    return refuse


class Dataset(ds.InMemoryDataset):  # type: ignore[misc]  # pyarrow has no types
    """A lazy table over folders of logs. `kafkajit.dataset` makes one.

    It reads nothing before you ask for rows. Each time you do, it lists the folders anew.
    """

    def __init__(
        self,
        options: ScanOptions,
        *,
        columns: Sequence[str] | None = None,
        condition: Condition | None = None,
        threads: int = 1,
        tasks: Sequence[Task] | None = None,
    ) -> None:
        self._options = options
        self._known = schema_of(options)
        self._columns = self._known.names if columns is None else list(columns)
        self._condition = condition
        self._threads = threads
        self._tasks = tasks  # those of a fragment; None: as planned when rows are asked for
        # pyarrow's own half of the object, which has no rows, and which nothing here reads.
        super().__init__([], schema=self._known)

    @property
    def schema(self) -> pa.Schema:
        """The columns that are read."""
        return pa.schema([self._known.field(name) for name in self._columns])

    @property
    def projected_schema(self) -> pa.Schema:
        """The same; a scanner of pyarrow has it by this name."""
        return self.schema

    def select(self, columns: Sequence[str]) -> Dataset:
        """The same rows with these columns only.

        >>> import kafkajit
        >>> kafkajit.dataset("sample:").select(["offset", "key"]).schema.names
        ['offset', 'key']
        """
        return self._with(columns=check_columns(columns, self._known.names))

    def filter(self, expression: Filters) -> Dataset:
        """The rows that meet these filters, which may be on any column of the table.

        >>> import kafkajit
        >>> kafkajit.dataset("sample:").filter([("key", "==", b"Ada")]).count_rows()
        10
        """
        condition = Condition.of(expression, self._known)
        return self._with(
            condition=condition if self._condition is None else self._condition & condition
        )

    def to_batches(
        self, columns: Sequence[str] | None = None, **asked: Any
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows in order, batch by batch.

        Threads read tasks ahead, each up to two batches, so memory does not grow with the log.
        """
        return self.scanner(columns=columns, **asked)._batches()

    def to_reader(self) -> pa.RecordBatchReader:
        """Read the rows as a stream, which pandas, Arrow's writers and Flight accept.

        >>> import kafkajit
        >>> frame = kafkajit.dataset("sample:orders-0").to_reader().read_pandas()
        >>> len(frame)
        27
        """
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_table(self, columns: Sequence[str] | None = None, **asked: Any) -> pa.Table:
        """Read all rows into memory."""
        return self.scanner(columns=columns, **asked).to_reader().read_all()

    def count_rows(self, filter: Filters | None = None, **_hints: object) -> int:  # noqa: A002
        """Count the rows; if there are no filters, by the headers of batches if these suffice."""
        asked = self.scanner(filter=filter)
        if asked._condition is not None or asked._options.kind in PLANNED:
            return sum(batch.num_rows for batch in asked._with(columns=[])._batches())
        tasks = asked._tasks
        if tasks is None:
            tasks = plan_aggregates(asked._scan_options(), (), _ROWS)
        options = asked._options
        counts = read_ahead(
            tasks,
            lambda task: iter(read_aggregates(task, _ROWS, _COUNT, options)),
            asked._threads,
        )
        return sum(count["count"][0].as_py() for count in counts)

    def head(
        self, num_rows: int = 10, columns: Sequence[str] | None = None, **asked: Any
    ) -> pa.Table:
        """Read the first rows, and only as much of the logs as they need.

        >>> import kafkajit
        >>> kafkajit.dataset("sample:orders-0").head(2, columns=["offset"]).to_pylist()
        [{'offset': 0}, {'offset': 1}]
        """
        # One thread, and no segment is walked in order to split it.
        whole = replace(self._options, max_partition_bytes=_ALL_IN_ONE)
        scanner = self._with(options=whole, threads=1).scanner(columns=columns, **asked)
        found: list[pa.RecordBatch] = []
        left = max(num_rows, 0)
        batches = scanner._batches()
        while left and (batch := next(batches, None)) is not None:
            found.append(batch.slice(0, left))
            left -= found[-1].num_rows
        return pa.Table.from_batches(found, schema=scanner.schema)

    def scanner(
        self,
        _schema: object | None = None,
        *,
        columns: Sequence[str] | None = None,
        filter: Filters | None = None,  # noqa: A002
        **_hints: object,
    ) -> Dataset:
        """The dataset with these columns and filters, as engines ask for it.

        It may have no column, for an engine that counts. Hints such as `batch_size` change nothing.
        """
        asked = self if filter is None else self.filter(filter)
        if columns is None:
            return asked
        if isinstance(columns, Mapping):
            raise ValueError("columns: pass names of columns; expressions are not computed")
        return asked.select(columns) if len(columns) else asked._with(columns=[])

    def get_fragments(self, filter: Filters | None = None) -> Iterator[Dataset]:  # noqa: A002
        """The tasks of the scan, each a dataset of its own that can be pickled.

        Each process of Dask, Ray or PyTorch reads some of them.

        >>> import kafkajit
        >>> parts = kafkajit.dataset("sample:", max_partition_bytes=1).get_fragments()
        >>> sum(part.count_rows() for part in parts)
        51
        """
        asked = self.scanner(filter=filter)
        if asked._options.kind in PLANNED:
            yield asked  # planning finds the rows
            return
        for task in asked._planned():
            yield asked._with(tasks=[task], threads=1)

    def _with(self, **changed: Any) -> Dataset:
        own = {
            "options": self._options,
            "columns": self._columns,
            "condition": self._condition,
            "threads": self._threads,
            "tasks": self._tasks,
        }
        return Dataset(**{**own, **changed})

    def _scan_options(self) -> ScanOptions:
        return replace(self._options, parallelism=_SHARES * self._threads)

    def _planned(self) -> Sequence[Task]:
        if self._tasks is not None:
            return self._tasks
        predicates = () if self._condition is None else self._condition.predicates()
        return plan_tasks(self._scan_options(), predicates)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        condition, names = self._condition, self._columns
        needed = dict.fromkeys([*names, *(condition.columns if condition else ())])
        if "corruption" in self._known.names:
            needed["corruption"] = None  # with it, damage is a row, whatever columns are asked for
        if not needed:
            cheapest = {"offset", "baseOffset", "path"}.intersection(self._known.names)
            needed = dict.fromkeys(sorted(cheapest)[-1:] or self._known.names[:1])
        schema = pa.schema([self._known.field(name) for name in needed])

        def asked(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in rows:
                kept = batch if condition is None else condition.rows_of(batch)
                if kept.num_rows:
                    yield kept if schema.names == names else kept.select(names)

        if self._options.kind in PLANNED:
            predicates = () if condition is None else condition.predicates()
            yield from asked([planned_rows(self._options, predicates, schema)])
            return
        options = self._options
        yield from read_ahead(
            self._planned(), lambda task: asked(read_task(task, schema, options)), self._threads
        )

    def __repr__(self) -> str:
        paths = [shown(path) for path in self._options.paths]
        given = [repr(paths[0] if len(paths) == 1 else paths)]
        given += [
            f"{field.name}={value!r}"
            for field in fields(ScanOptions)
            if field.name in _ATTRIBUTES
            and (value := getattr(self._options, field.name)) not in (None, {}, field.default)
        ]
        if self._columns != self._known.names:
            given.append(f"columns={self._columns}")
        if self._condition is not None:
            given.append(f"filters={self._condition.expression}")
        return f"<kafkajit.dataset({', '.join(given)})>"

    def _repr_html_(self) -> str:
        rows = [(field.name, field.type) for field in self.schema]
        return html_table(repr(self), ["column", "type"], rows)

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self._options, self._columns, self._condition, self._threads, self._tasks)
        return _rebuilt, given

    join = _refused("join")
    join_asof = _refused("join_asof")
    replace_schema = _refused("replace_schema")
    sort_by = _refused("sort_by")
    take = _refused("take")
    partition_expression = property(_refused("partition_expression"))


def _rebuilt(
    options: ScanOptions,
    columns: list[str],
    condition: Condition | None,
    threads: int,
    tasks: Sequence[Task] | None,
) -> Dataset:
    return Dataset(options, columns=columns, condition=condition, threads=threads, tasks=tasks)


# The options of the data source by their names in Python. Paths are an argument of their own.
_ATTRIBUTES: dict[str, tuple[str, Option]] = {
    option.attribute: (name, option)
    for name, option in OPTIONS.items()
    if name not in ("path", "paths")
}


def _parsed(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], given: Mapping[str, Any]
) -> ScanOptions:
    """The options as the data source parses them; an error has their names in Python."""
    each = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    locations = [os.fspath(path) for path in each]
    if not locations or not all(isinstance(path, str) and path for path in locations):
        raise ValueError(
            "paths: pass a segment file, a partition's folder, a log.dirs folder, a glob, or a "
            f"list of these, not {paths!r}"
        )
    texts = {"paths": json.dumps(locations)}
    keys = given.get("private_keys")
    for attribute, value in given.items():
        if value is None or attribute == "private_keys":
            continue
        if attribute not in _ATTRIBUTES:
            known = [*_ATTRIBUTES, "private_keys"]
            raise ValueError(f"unknown option {attribute!r}{suggestion(attribute, known)}")
        name, option = _ATTRIBUTES[attribute]
        texts[name] = _text(value)
        try:
            option.parse(texts[name])
        except ValueError as error:
            raise ValueError(f"option {attribute}: {error}") from None
    return replace(ScanOptions.parse(texts), private_keys=PrivateKeys.of(keys))


def _text(value: Any) -> str:
    """A value in Python as the data source's options have it."""
    if isinstance(value, datetime.datetime):
        return option_text(of_datetime(value))
    if isinstance(value, (Mapping, bool)):
        return json.dumps(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
