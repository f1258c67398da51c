"""The data source `kafkaLog`: Spark's side of `kafkajit.scan`.

Spark calls it in several Python processes: `schema` and `partitions` where it plans the query,
`read` in each task. Spark pickles the reader between them, so a task gets its splits and nothing
else of the plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
)

from kafkajit.errors import did_you_mean
from kafkajit.spark.arrow_types import arrow_schema
from kafkajit.spark.worker import AckOnUnpickle, in_worker, reported

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

    from kafkajit.scan.aggregates import Aggregates
    from kafkajit.scan.options import ScanOptions
    from kafkajit.scan.plan import Split
    from kafkajit.scan.predicates import Predicate
    from kafkajit.scan.table import Task
    from kafkajit.spark.writer import KafkaLogWriter
    from kafkajit.storage.stored_file import StoredFile


# Where the schema of a table made by CREATE TABLE keeps the table's options.
_OPTIONS = "kafkaLog.options"
# Options in which the bridge passes what one scan is asked for (spark/java).
CONDITIONS = "kafkajit.conditions"
PARALLELISM = "kafkajit.parallelism"
AGGREGATES = "kafkajit.aggregates"
LIMIT = "kafkajit.limit"
FILES = "kafkajit.files"
TOPIC = "kafkajit.topic"
LIST = "kafkajit.list"
_BRIDGE = (CONDITIONS, PARALLELISM, AGGREGATES, LIMIT, FILES, TOPIC, LIST)


class KafkaLogDataSource(DataSource):
    """Tables of a log folder: records, batches, files, corruption, and the files beside logs.

    >>> import kafkajit.testing as kt
    >>> from kafkajit.spark import register
    >>> register(spark)
    >>> log = spark.read.format("kafkaLog").load(kt.SAMPLE)
    >>> log.groupBy("topic", "partition").count().orderBy("topic", "partition").show()
    +--------+---------+-----+
    |   topic|partition|count|
    +--------+---------+-----+
    |  orders|        0|   27|
    |payments|        0|   14|
    |payments|        1|   12|
    +--------+---------+-----+
    """

    @classmethod
    def name(cls) -> str:
        return "kafkaLog"

    def __init__(self, options: MutableMapping[str, str]) -> None:
        # Options are parsed later: Spark creates a data source even if its options are wrong, and
        # reports the errors that `schema` raises.
        super().__init__(options)

    @reported
    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        from kafkajit.scan.table import schema_of

        if LIST in self.options:
            return _names_as_schema(self._listed(self.options[LIST]))
        schema = from_arrow_schema(schema_of(self._parsed()))
        if "provider" in self.options:
            # CREATE TABLE. Spark does not pass this table's options to queries, only its schema,
            # so the schema carries them: each column does, because a scan asks for any of them.
            for field in schema:
                field.metadata[_OPTIONS] = json.dumps(dict(self.options))
        return schema

    @reported
    def reader(self, schema: StructType) -> KafkaLogReader:
        from kafkajit.scan.aggregates import Aggregates
        from kafkajit.scan.given_files import files_of
        from kafkajit.scan.predicates import Predicate
        from kafkajit.spark.conditions import conditions_of

        for kept in (field.metadata.get(_OPTIONS) for field in schema):
            if kept is not None:
                self.options = {**json.loads(kept), **self.options}
        conditions = conditions_of(self.options.get(CONDITIONS, "[]"))
        if TOPIC in self.options:
            conditions.append(Predicate("topic", "=", self.options[TOPIC]))
        arrow = arrow_schema(schema)
        if FILES in self.options:
            files = files_of(self.options[FILES])
            self.options = {"path": "binaryFile", **self.options}
            return FileReader(self._parsed(), arrow, conditions, self._limit(), files)
        options = self._parsed()
        if AGGREGATES in self.options:
            asked = Aggregates.parse(self.options[AGGREGATES])
            return AggregateReader(options, arrow, conditions, asked)
        _check_columns(schema, self.schema(), options.kind)
        return KafkaLogReader(options, arrow, conditions, self._limit())

    def _limit(self) -> int | None:
        """The number of rows after which each task may end."""
        return int(self.options[LIMIT]) if LIMIT in self.options else None

    @reported
    def writer(self, schema: StructType, overwrite: bool) -> KafkaLogWriter:
        from kafkajit.spark.writer import KafkaLogWriter

        arrow = arrow_schema(schema)
        # Options that `schema` has put into a table's columns are ignored here: they come with the
        # rows of that table, wherever you write them.
        return KafkaLogWriter.of(dict(self.options), arrow, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> NoStream:  # noqa: N802, ARG002
        # Spark would replace an error raised here by one that names an internal variable of Spark.
        return NoStream()

    @reported
    def streamWriter(  # noqa: N802
        self,
        schema: StructType,  # noqa: ARG002
        overwrite: bool,  # noqa: ARG002
    ) -> DataSourceStreamWriter:
        raise ValueError(
            "kafkaLog does not write streams: write each micro-batch as a job of its own, with "
            "df.writeStream.foreachBatch(lambda rows, _: rows.write.format('kafkaLog')…save(…))"
        )

    def _listed(self, what: str) -> list[str]:
        """The names of the topics, or of the kinds whose tables have a topic."""
        from kafkajit.scan.plan import find_partitions
        from kafkajit.state.sidecar_files import TABLES, name_in_sql

        if what == "kinds":
            return [name_in_sql(kind) for kind in TABLES if "topic" in TABLES[kind]]
        topics = {segments[0].path.topic for segments in find_partitions(self._parsed())}
        return sorted(topic for topic in topics if topic is not None)

    def _parsed(self) -> ScanOptions:
        from kafkajit.scan.options import ScanOptions

        given = {name: text for name, text in self.options.items() if name not in _BRIDGE}
        options = ScanOptions.parse(given)
        if PARALLELISM in self.options:
            options = replace(options, parallelism=int(self.options[PARALLELISM]))
        return options


def _names_as_schema(names: Iterable[str]) -> StructType:
    """A schema of these names: the bridge can ask a Python source for a schema and for rows."""
    from pyspark.sql.types import NullType, StructField, StructType

    return StructType([StructField(name, NullType()) for name in names])


def _check_columns(asked: StructType, known: StructType, kind: str) -> None:
    """Raise an error if a user's schema has unknown columns or wrong types.

    Keys and values may be STRING: Spark's JVM then copies them once less.
    """
    from pyspark.sql.types import StringType

    from kafkajit.schema import TEXT_COLUMNS

    types = {field.name: field.dataType for field in known}
    text = TEXT_COLUMNS if kind == "records" else ()
    for field in asked:
        if field.name not in types:
            hint = did_you_mean(field.name, types, cutoff=0.5)
            hint = f", {hint}" if hint else "."
            raise ValueError(
                f"kind {kind} has no column {field.name!r}{hint} There are: {', '.join(types)}"
            )
        if field.name in text and field.dataType == StringType():
            continue
        if not _is_part_of(field.dataType, types[field.name]):
            raise ValueError(
                f"column {field.name} of kind {kind} is {types[field.name].simpleString()}, "
                f"not {field.dataType.simpleString()}"
            )


def _is_part_of(asked: DataType, known: DataType) -> bool:
    """Whether a type is the known one, or has some fields of its structs."""
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(asked, ArrayType) and isinstance(known, ArrayType):
        return _is_part_of(asked.elementType, known.elementType)
    if isinstance(asked, StructType) and isinstance(known, StructType):
        types = {field.name: field.dataType for field in known}
        names = [name for name in known.names if name in asked.names]
        return asked.names == names and all(
            _is_part_of(field.dataType, types[field.name]) for field in asked
        )
    return asked == known


@dataclass
class TaskPartition(InputPartition):
    """The splits that one task reads."""

    task: Task
    totals: str = ""  # of the whole plan; the bridge finds them in the pickled first task


def _totals(tasks: Sequence[Task]) -> str:
    """The totals of a plan, as java/LogScan.java reads them."""
    pieces = [piece for task in tasks for piece in task]
    files = len({piece.file.path for piece in pieces})
    size = sum(piece.size for piece in pieces)
    noun = "file" if files == 1 else "files"
    return f"kafkajit reads {size}: {files} {noun}, {size:,} bytes;"


@dataclass
class RowsPartition(InputPartition):
    """Rows that planning the query has found."""

    rows: pa.RecordBatch


class NoStream(DataSourceStreamReader):
    """Refuses to read a stream at the first question that Spark asks."""

    @reported
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        raise ValueError(
            "kafkaLog does not read streams: read what is in the folder now with "
            "spark.read.format('kafkaLog').load(…), again and again if you like, with the option "
            "startingOffsets to go on where the last read ended"
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError  # Spark calls this only with an offset


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
        from kafkajit.scan.table import read_files

        if self._options.kind == "files":
            return [RowsPartition(read_files(self._options, self._predicates, self._schema))]
        tasks = self._plan()
        first, *others = tasks or [[]]
        return [TaskPartition(first, _totals(tasks)), *map(TaskPartition, others)]

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
            whole = with_whole_structs(self._schema, self._known())
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
