"""The data source `kafkaLog`: Spark's side of `kafkajit.scan`.

Spark calls it in several Python processes: `schema` and `reader` where it plans the query, and
what `reader` returns in each task.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
)

from kafkajit.errors import did_you_mean
from kafkajit.spark.arrow_types import arrow_schema
from kafkajit.spark.worker import reported

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

    from kafkajit.scan.options import ScanOptions
    from kafkajit.spark.readers import KafkaLogReader
    from kafkajit.spark.writer import KafkaLogWriter


# Where the schema of a table made by CREATE TABLE keeps the table's options.
_OPTIONS = "kafkaLog.options"
# Options in which the bridge passes what one scan is asked for (spark/java).
SOURCES = "kafkajit.sources"
CONDITIONS = "kafkajit.conditions"
PARALLELISM = "kafkajit.parallelism"
AGGREGATES = "kafkajit.aggregates"
LIMIT = "kafkajit.limit"
FILES = "kafkajit.files"
TOPIC = "kafkajit.topic"
LIST = "kafkajit.list"
_BRIDGE = (SOURCES, CONDITIONS, PARALLELISM, AGGREGATES, LIMIT, FILES, TOPIC, LIST)


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
        schema = from_arrow_schema(schema_of(self._typed()))
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
        from kafkajit.scan.stream.options import refuse_stream_options
        from kafkajit.spark.conditions import conditions_of
        from kafkajit.spark.readers import AggregateReader, FileReader, KafkaLogReader

        self._is_bridged()
        self._add_options_of(schema)
        refuse_stream_options(self._given())
        conditions = conditions_of(self.options.get(CONDITIONS, "[]"))
        if TOPIC in self.options:
            conditions.append(Predicate("topic", "=", self.options[TOPIC]))
        arrow = arrow_schema(schema)
        if FILES in self.options:
            files = files_of(self.options[FILES])
            self.options = {"path": "binaryFile", **self.options}
            return FileReader(self._parsed(), arrow, conditions, self._limit(), files)
        options = self._typed()
        if AGGREGATES in self.options:
            asked = Aggregates.parse(self.options[AGGREGATES])
            return AggregateReader(options, arrow, conditions, asked)
        _check_columns(schema, self.schema(), options.kind)
        return KafkaLogReader(options, arrow, conditions, self._limit())

    def _is_bridged(self) -> bool:
        """Whether the bridge asks; raises an error if it is another version's."""
        from kafkajit.spark.java_sources import sources_digest

        if CONDITIONS not in self.options:
            return False
        if self.options.get(SOURCES) != sources_digest():
            raise ValueError(
                "Spark's class path has the bridge of another version of kafkajit: write its jar "
                "anew with `kafkajit spark-jar`, or set spark.kafkajit.bridge.enabled to false"
            )
        return True

    def _add_options_of(self, schema: StructType) -> None:
        """Add the options that CREATE TABLE has put into a table's columns."""
        for kept in (field.metadata.get(_OPTIONS) for field in schema):
            if kept is not None:
                self.options = {**json.loads(kept), **self.options}

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

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        # Spark would replace an error raised here by one that names an internal variable of Spark.
        try:
            return self._stream_reader(schema)
        except (ValueError, TypeError, OSError) as error:
            return NoStream(error)

    def _stream_reader(self, schema: StructType) -> DataSourceStreamReader:
        from kafkajit.scan.stream.options import StreamOptions
        from kafkajit.scan.typed_table import with_types

        try:
            from kafkajit.spark.stream_reader import KafkaLogStreamReader
        except ImportError:
            raise ValueError(
                "kafkaLog reads streams with Spark 4.2 or later: use "
                "spark.read.format('kafkaLog').load(…) repeatedly, and set startingOffsets to the "
                "offsets at which the last read ended"
            ) from None
        is_bridged = self._is_bridged()
        self._add_options_of(schema)
        options = StreamOptions.parse(self._given())
        _check_columns(schema, self.schema(), options.scan.kind)
        options = replace(options, scan=with_types(options.scan))
        return KafkaLogStreamReader(options, arrow_schema(schema), is_bridged=is_bridged)

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
        from kafkajit.scan.partitions import find_partitions
        from kafkajit.state.sidecar_files import TABLES, name_in_sql

        if what == "kinds":
            return [name_in_sql(kind) for kind in TABLES if "topic" in TABLES[kind]]
        topics = {segments[0].path.topic for segments in find_partitions(self._parsed())}
        return sorted(topic for topic in topics if topic is not None)

    def _typed(self) -> ScanOptions:
        """The options with the types of keys and values, for which it looks at the logs."""
        from kafkajit.scan.typed_table import with_types

        return with_types(self._parsed(), self.options.get(TOPIC))

    def _parsed(self) -> ScanOptions:
        """The options of a table, which may also be read as a stream."""
        from kafkajit.scan.options import ScanOptions
        from kafkajit.scan.stream.options import without_stream_options

        options = ScanOptions.parse(without_stream_options(self._given()))
        if PARALLELISM in self.options:
            options = replace(options, parallelism=int(self.options[PARALLELISM]))
        return options

    def _given(self) -> dict[str, str]:
        """The options without those of the bridge."""
        return {name: text for name, text in self.options.items() if name not in _BRIDGE}


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


class NoStream(DataSourceStreamReader):
    """Raises an error at the first question that Spark asks."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    @reported
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        raise self._error

    @reported
    def latestOffset(self, start: Any, limit: Any) -> dict[str, Any]:  # noqa: N802, ARG002
        raise self._error

    @reported
    def partitions(self, start: Any, end: Any) -> list[InputPartition]:  # noqa: ARG002
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise NotImplementedError  # Spark calls this only with an offset
