"""The readers of `kafkaLog`, as Spark calls them: the tasks of a scan, and the rows of a task.

Spark pickles the reader between the process that plans and the tasks, so a task gets its splits and
nothing else of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kafkajit.spark.worker import AckOnUnpickle, in_worker, reported

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkajit.scan.aggregates import Aggregates
    from kafkajit.scan.options import ScanOptions
    from kafkajit.scan.plan import Split
    from kafkajit.scan.predicates import Predicate
    from kafkajit.scan.table import Task
    from kafkajit.storage.stored_file import StoredFile


@dataclass
class TaskPartition(InputPartition):
    """The splits that one task reads."""

    task: Task
    note: str  # for the bridge, which finds it in the pickled task


def _totals(tasks: Sequence[Task]) -> str:
    """The totals of a plan, as java/LogScan.java reads them."""
    pieces = [piece for task in tasks for piece in task]
    files = len({piece.file.path for piece in pieces})
    size = sum(piece.size for piece in pieces)
    noun = "file" if files == 1 else "files"
    return f"kafkajit reads {size}: {files} {noun}, {size:,} bytes;"


def _partition_of(task: Task) -> str:
    """The partition that a task reads as a whole, as java/LogScan.java reads it."""
    if not task:
        return ""
    from kafkajit.format.log_path import parse_log_path

    path = parse_log_path(task[0].file.path)
    if path.topic is None:
        raise ValueError(
            f"option oneTaskPerPartition: {task[0].file.path} does not lie in the folder of a "
            "partition, such as orders-0"
        )
    return f"kafkajit keeps together {path.partition} {quote(path.topic)};"


@dataclass
class RowsPartition(InputPartition):
    """Rows that planning the query has found."""

    rows: pa.RecordBatch


class KafkaLogReader(DataSourceReader):
    """Reads a whole table: everything that its options select.

    A query's conditions come only through the bridge, which makes a reader for each scan. Without
    the bridge, Spark 4.1 to 4.3 keep a reader's first plan with the relation, and every scan of
    that relation reads by this plan, whatever its own conditions are: the other half of a UNION,
    the inner plan of a LATERAL join, the next query of the same view. A plan pruned for one scan
    would silently lose rows of the others, so the reader does not accept filters from Spark.
    """

    def __init__(
        self,
        options: ScanOptions,
        schema: pa.Schema,
        conditions: Sequence[Predicate] = (),
        limit: int | None = None,
    ) -> None:
        self._options = options
        self._schema = schema
        self._predicates = conditions
        self._limit = limit
        self._ack = AckOnUnpickle()

    @reported
    def partitions(self) -> list[InputPartition]:
        from kafkajit.scan.table import PLANNED, planned_rows

        if self._options.kind in PLANNED:
            return [RowsPartition(planned_rows(self._options, self._predicates, self._schema))]
        tasks = self._plan() or [[]]
        is_whole = self._options.one_task_per_partition
        notes = [_partition_of(task) if is_whole else "" for task in tasks]
        notes[0] = _totals(tasks) + notes[0]
        return [TaskPartition(task, note) for task, note in zip(tasks, notes, strict=True)]

    def _plan(self) -> Sequence[Task]:
        from kafkajit.scan.table import plan_tasks

        return plan_tasks(self._options, self._predicates)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from kafkajit.scan.table import with_whole_structs

        with in_worker():
            if isinstance(partition, RowsPartition):
                yield partition.rows
                return
            assert isinstance(partition, TaskPartition)
            whole = with_whole_structs(self._schema, self._known(), self._options)
            read = 0
            for rows in self._rows(partition.task, whole):
                if self._limit is not None:
                    rows = rows.slice(0, self._limit - read)
                read += rows.num_rows
                yield rows if whole == self._schema else rows.cast(self._schema)
                if read == self._limit:
                    return

    def _known(self) -> pa.Schema:
        from kafkajit.scan.table import schema_of

        return schema_of(self._options)

    def _rows(self, task: Task, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        from kafkajit.scan.table import read_task

        return read_task(task, schema, self._options)

    def __getstate__(self) -> dict[str, Any]:
        # Tasks have their splits, and need nothing else of the plan.
        return {**self.__dict__, "_predicates": ()}


class AggregateReader(KafkaLogReader):
    """Returns partial aggregates of the table's rows, which Spark combines."""

    def __init__(
        self,
        options: ScanOptions,
        schema: pa.Schema,
        conditions: Sequence[Predicate],
        asked: Aggregates,
    ) -> None:
        super().__init__(options, schema, conditions)
        self._asked = asked

    def _plan(self) -> Sequence[Task]:
        from kafkajit.scan.aggregates import plan_aggregates

        return plan_aggregates(self._options, self._predicates, self._asked)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from kafkajit.scan.aggregates import read_aggregates

        with in_worker():
            assert isinstance(partition, TaskPartition)
            yield from read_aggregates(partition.task, self._asked, self._schema, self._options)


class FileReader(KafkaLogReader):
    """Reads the records of given files, for `explode(kafka_records(content))` over binaryFile."""

    def __init__(
        self,
        options: ScanOptions,
        schema: pa.Schema,
        conditions: Sequence[Predicate],
        limit: int | None,
        files: Sequence[StoredFile],
    ) -> None:
        super().__init__(options, schema, conditions, limit)
        self._files = files

    def _plan(self) -> Sequence[Task]:
        from kafkajit.scan.given_files import plan_given_files

        return plan_given_files(self._files, self._schema, self._options, self._predicates)

    def _known(self) -> pa.Schema:
        from kafkajit.schema import CONTENT_RECORDS

        return CONTENT_RECORDS

    def _rows(self, task: Task, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        from kafkajit.scan.given_files import read_given_files

        return read_given_files(cast("list[Split]", task), schema, self._options)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_files": ()}
