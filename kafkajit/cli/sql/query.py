"""Runs statements in a session with the views that they mention, and returns their results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from kafkajit.cli.sql.formats import Format, format_named
from kafkajit.cli.sql.row_stream import stream_rows
from kafkajit.cli.sql.statements import created, lists_views, mentioned, names_in
from kafkajit.cli.sql.table import ShownRows
from kafkajit.cli.sql.views import VIEWS, Logs
from kafkajit.spark.catalogue import FUNCTIONS, TABLE_FUNCTION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

# Seconds between two checks whether a statement still waits for Spark.
_BETWEEN_LOOKS = 0.05

# Results that are known to be this small are collected instead of sent by tasks.
_SMALL = 10_000


class Engine:
    """A Spark session that starts in the background, and makes views when statements need them."""

    def __init__(self, logs: Logs | None, start: Callable[[], SparkSession]) -> None:
        self._logs = logs
        self._make = start
        self._registered: set[str] = set()
        self._topics: set[str] = set()  # those that have a view
        self._has_bridge = False
        self._session: SparkSession | None = None
        self._has_started = threading.Event()
        self.failure: BaseException | None = None

    def start(self, on_failure: Callable[[], None] = lambda: None) -> None:
        """Start Spark in the background; `on_failure` is called if Spark does not start."""

        def run() -> None:
            try:
                session = self._make()
                from kafkajit.spark import bridge

                if find_spec("pyspark_kafkajit") is None:  # a checkout that is not installed
                    from kafkajit.spark.datasource import KafkaLogDataSource

                    session.dataSource.register(KafkaLogDataSource)
                self._has_bridge = bridge.install(session)
                # Rows are collected as Instants: a Timestamp of Java's ends before Kafka's do.
                session.conf.set("spark.sql.datetime.java8API.enabled", "true")
                self._session = session
            except BaseException as error:
                self.failure = error
            self._has_started.set()
            if self.failure is not None:
                on_failure()

        threading.Thread(target=run, daemon=True).start()

    @property
    def spark(self) -> SparkSession:
        """The session. Waits until it has started, and raises the error if it could not."""
        self.wait(None)
        assert self._session is not None
        return self._session

    def is_ready(self, stopped: threading.Event) -> bool:
        """Wait for the session, until `stopped` is set; return whether the session has started."""
        while not stopped.is_set():
            if self._has_started.wait(_BETWEEN_LOOKS):
                return True
        return False

    @property
    def started(self) -> SparkSession | None:
        """The session, if it has started already."""
        return self._session

    def wait(self, seconds: float | None) -> None:
        """Wait for the session for some seconds; raise the error if it could not be started."""
        self._has_started.wait(seconds)
        if self.failure is not None:
            raise self.failure

    def cancel(self) -> None:
        """Cancel all running jobs."""
        if self._session is not None:
            self._session.sparkContext.cancelAllJobs()

    def run(self, statement: str) -> Result:
        """Have Spark analyze a statement, and execute it if it is a command."""
        # The active session decides whether rows have Instants, not the one that runs the query.
        spark: Any = self.spark
        spark._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)
        if self._has_bridge:
            from kafkajit.spark import bridge

            bridge.install(spark)  # in this thread, which is not the one that started Spark
        self._register(statement)
        self._make_views(statement)
        return Result(spark.sql(statement))

    def _register(self, statement: str) -> None:
        """Register the functions that a statement mentions: registering all takes 0.4 s."""
        names = names_in(statement)
        wanted = self.functions() if "functions" in names else names & set(self.functions())
        for name in set(wanted) - self._registered:
            if name == TABLE_FUNCTION:
                from kafkajit.spark.table_functions import kafka_log

                self.spark.udtf.register(name, kafka_log())
            else:
                from kafkajit.spark.columns import arrow_function

                self.spark.udf.register(name, arrow_function(name))
            self._registered.add(name)

    def _make_views(self, statement: str) -> None:
        """Make the views that a statement mentions; anew, because Spark keeps lists of files."""
        if self._logs is not None:
            for view in mentioned(statement, VIEWS):
                self._logs.load(self.spark, view).createOrReplaceTempView(view)
            self._make_topics(statement, self._logs)

    def _make_topics(self, statement: str, logs: Logs) -> None:
        """Make views of topics; a table or view of the user's own goes before a topic."""
        own = created(statement)
        for topic in mentioned(statement, logs.topics(anew=lists_views(statement))):
            name = f"`{topic}`"
            if topic.lower() == own:
                if topic in self._topics:
                    self._topics.remove(topic)
                    self.spark.catalog.dropTempView(topic)
            elif topic in self._topics or not self.spark.catalog.tableExists(name):
                logs.load_topic(self.spark, topic).createOrReplaceTempView(name)
                self._topics.add(topic)

    def views(self) -> list[str]:
        """The names of the views, or nothing without logs."""
        return [*VIEWS, *self._logs.topics()] if self._logs else []

    def functions(self) -> list[str]:
        """The names of kafkajit's functions."""
        return [*FUNCTIONS, TABLE_FUNCTION]


class Result:
    """The rows of a statement, which are read only when they are asked for."""

    def __init__(self, df: DataFrame) -> None:
        from kafkajit.spark.arrow_types import arrow_schema

        self.names: list[str] = df.columns
        self._types: list[DataType] = [field.dataType for field in df.schema]
        self._df = self._for_arrow(df)
        arrow = arrow_schema(self._df.schema)
        self.schema = pa.schema(
            [field.with_name(name) for field, name in zip(arrow, self.names, strict=True)]
        )

    def _for_arrow(self, df: DataFrame) -> DataFrame:
        """The same rows in a form that Arrow can hold: with unique names, and odd types as text."""
        odd = [not _has_arrow_type(kind) for kind in self._types]
        unique = len({name.lower() for name in self.names}) == len(self.names)
        if unique and not any(odd):
            return df
        places = [f"c{at}" for at in range(len(self.names))]
        texts = [
            f"CAST({place} AS STRING) AS {place}" if is_odd else place
            for place, is_odd in zip(places, odd, strict=True)
        ]
        return df.toDF(*places).selectExpr(*texts)

    def few(self, count: int, cut_at: int | None = None) -> tuple[ShownRows, bool]:
        """The first rows, and whether there are more.

        Args:
            count: how many rows to return at most.
            cut_at: how many letters, bytes or items of each text, binary or array are needed.
        """
        df = self._df if cut_at is None else self._cut(cut_at)
        table = self._collected(df.limit(count + 1))
        rows = ShownRows(table.slice(0, count), [_short_name(kind) for kind in self._types], cut_at)
        return rows, table.num_rows > count

    def write(
        self,
        format_: str,
        out: IO[bytes],
        on_rows: Callable[[int], None],
        *,
        has_header: bool = True,
    ) -> None:
        """Write all rows as csv, json, arrow or parquet; `on_rows` gets the rows of each piece."""
        written = format_named(format_, self.schema, has_header=has_header)
        written.write(out, self._pieces(written, on_rows))

    def _pieces(self, written: Format, on_rows: Callable[[int], None]) -> Iterator[bytes]:
        if not self._is_small():
            yield from stream_rows(self._df, written.encode, on_rows)
            return
        for batch in self._collected(self._df).to_batches():
            on_rows(batch.num_rows)
            yield written.encode(batch)

    @property
    def is_command(self) -> bool:
        """Whether the statement was a command, such as SHOW or EXPLAIN, which has run already."""
        return str(self._plan.getClass().getSimpleName()) == "CommandResult"

    @property
    def _plan(self) -> Any:
        return self._df._jdf.queryExecution().commandExecuted()

    def _is_small(self) -> bool:
        """Whether Spark knows that the result is small: of a LIMIT, an aggregate or a command."""
        most = self._plan.maxRows()
        return self.is_command or bool(most.isDefined() and most.get() <= _SMALL)

    def _collected(self, df: DataFrame) -> pa.Table:
        """Collect the rows of a small DataFrame.

        Spark's toArrow runs every task of a query with a LIMIT: 5 s for 41 rows of 4 M. collect
        tries one task first (0.2 s); its rows become a local relation that toArrow converts.
        """
        from pyspark.sql import DataFrame

        spark = df.sparkSession
        jdf: Any = df._jdf
        local = spark._jsparkSession.createDataFrame(jdf.collectAsList(), jdf.schema())
        table = DataFrame(local, spark).toArrow()
        return table.rename_columns(self.names)

    def _cut(self, size: int) -> DataFrame:
        """The same rows with long values cut, such as the contents of segments."""
        from pyspark.sql import functions as f
        from pyspark.sql.types import ArrayType, BinaryType, StringType

        columns = []
        for name, kind in zip(self._df.columns, self._types, strict=True):
            column = f.col(f"`{name.replace('`', '``')}`")
            if isinstance(kind, (BinaryType, StringType)):
                column = f.substring(column, 1, size)
            elif isinstance(kind, ArrayType):
                column = f.slice(column, 1, size)
            columns.append(column.alias(name))
        return self._df.select(*columns)


def _has_arrow_type(kind: DataType) -> bool:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import VariantType

    from kafkajit.spark.arrow_types import arrow_type

    try:
        arrow_type(kind)
    except PySparkException:
        return False
    return not isinstance(
        kind, VariantType
    )  # Arrow would have two binaries that mean nothing to a person


def _short_name(kind: DataType) -> str:
    """A type's name, without the fields of a nested type."""
    name = kind.simpleString()
    return name.partition("<")[0]
