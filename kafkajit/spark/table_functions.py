"""The table function kafka_log: records of segments of any size, in bounded record batches.

kafka_records puts a segment's content and all of its records into one row, and the size of a row is
limited. A table function takes paths or contents and returns one record batch after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.functions import arrow_udtf
from pyspark.sql.pandas.types import from_arrow_schema

from kafkajit.schema import (
    RECORD_COLUMNS,
    check_columns,
    in_microseconds,
    record_schema,
    with_corruption,
)
from kafkajit.spark.worker import acknowledge, in_worker

if TYPE_CHECKING:
    from kafkajit.storage.source import Source

_CALL = "kafka_log(TABLE(SELECT path FROM ...))"

# A table function returns the same columns whatever its arguments, so `corruption` is included.
ROWS = with_corruption(in_microseconds(record_schema(RECORD_COLUMNS)))


class KafkaLog:
    """Records of segments, in bounded record batches.

    The argument is a table with a column `path` or `content` or both, or a single path or content.
    `columns` and `mode` are as for kafka_records; the mode may also be PERMISSIVE.

    >>> import kafkajit.testing as kt
    >>> from kafkajit.spark import register
    >>> register(spark)
    >>> log = f"{kt.SAMPLE}/orders-0/00000000000000000000.log"
    >>> spark.createDataFrame([(log,)], ["path"]).createOrReplaceTempView("segments")
    >>> spark.sql('''
    ...     SELECT topic, min(offset), count(*) FROM kafka_log(TABLE(SELECT path FROM segments))
    ...     GROUP BY topic
    ... ''').show()
    +------+-----------+--------+
    | topic|min(offset)|count(1)|
    +------+-----------+--------+
    |orders|          0|      27|
    +------+-----------+--------+
    """

    def __init__(self) -> None:
        acknowledge()  # what Spark sent with the task; the segments come next

    def eval(self, *arguments: Any, **named: Any) -> Iterator[pa.RecordBatch]:
        # Spark reports wrong arguments with a traceback, so they are checked here.
        with in_worker():
            try:
                bound = signature(_rows).bind(*arguments, **named)
            except TypeError as error:
                raise TypeError(
                    f"kafka_log(segments [, columns [, mode]]) was called wrongly: {error}"
                ) from None
            yield from _rows(*bound.args, **bound.kwargs)


def _rows(
    segments: pa.RecordBatch | pa.Array,
    columns: pa.Array | None = None,
    mode: pa.Array | None = None,
) -> Iterator[pa.RecordBatch]:
    # Imported here, since a driver that registers the function needs no kernels.
    from kafkajit.reader import SegmentReader

    chosen = _mode(_constant(mode, "mode"))
    asked = _asked(_constant(columns, "columns"), chosen)
    for source in _sources(segments):
        for rows in SegmentReader(source, mode=chosen).records(asked):
            yield _with_all_columns(rows)


def _constant(array: pa.Array | None, name: str) -> str | None:
    """An argument that is the same for all rows."""
    from kafkajit.spark.arrays import texts

    return None if array is None else texts(array, name, len(array))[0]


def _asked(names: str | None, mode: str) -> pa.Schema:
    """The columns to read. With the column `corruption`, gaps become rows too."""
    from kafkajit.walk.damage import PERMISSIVE

    known = [name for name in ROWS.names if name != "corruption"]
    asked = known
    if names is not None:
        asked = check_columns([name.strip() for name in names.split(",")], known)
    gaps = ["corruption"] if mode == PERMISSIVE else []
    return pa.schema([ROWS.field(name) for name in [*asked, *gaps]])


def _mode(name: str | None) -> str:
    from kafkajit.walk.damage import FAILFAST, MODES

    mode = FAILFAST if name is None else name.upper()
    if mode not in MODES:
        raise ValueError(f"unknown mode {name!r}; there are: {', '.join(MODES)}")
    return mode


def _sources(segments: pa.RecordBatch | pa.Array) -> Iterator[Source]:
    from kafkajit.places.locations import stored_file
    from kafkajit.spark.arrays import buffers, texts
    from kafkajit.storage.source import Source

    given = _given(segments)
    paths = texts(given.get("path"), "path", len(segments))
    if "content" in given:
        for path, content in zip(paths, buffers(given["content"]), strict=True):
            if content is not None:
                yield Source(content, path=path)
    else:
        for path in paths:
            if path is not None:
                yield stored_file(path).open()


def _given(segments: pa.RecordBatch | pa.Array) -> dict[str, pa.Array]:
    """The paths and contents, from columns of these names (in any case) or from one value."""
    from kafkajit.places.uri import has_secrets
    from kafkajit.spark.arrays import BINARY, TEXT

    if not isinstance(segments, pa.RecordBatch):
        if any(is_text(segments.type) for is_text in TEXT):
            if any(map(has_secrets, pc.drop_null(segments).to_pylist())):
                raise ValueError(
                    "kafka_log takes no path with a secret, which Spark shows in its plans: put "
                    "the secret in the environment, or read the path with "
                    'spark.read.format("kafkaLog")'
                )
            return {"path": segments}
        if pa.types.is_null(segments.type) or any(is_right(segments.type) for is_right in BINARY):
            return {"content": segments}
        raise TypeError(
            "the argument of kafka_log must be a table, a path (STRING) or a segment's bytes "
            f"(BINARY), not {segments.type}; for example {_CALL}"
        )
    given: dict[str, pa.Array] = {}
    for name, column in zip(segments.schema.names, segments.columns, strict=True):
        if name.lower() in ("path", "content"):
            if name.lower() in given:
                raise ValueError(f"the table of kafka_log has two columns {name.lower()}")
            given[name.lower()] = column
    if not given:
        raise ValueError(
            "the table of kafka_log needs a column path or content, for example "
            f"{_CALL}; it has {', '.join(segments.schema.names)}"
        )
    return given


def _with_all_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            rows.column(field.name)
            if field.name in rows.schema.names
            else pa.nulls(rows.num_rows, field.type)
            for field in ROWS
        ],
        schema=ROWS,
    )


def kafka_log() -> Any:
    """The table function as Spark registers it: one of classic Spark or of Spark Connect.

    Which of the two it is, pyspark decides by the session that has been started.
    """
    return arrow_udtf(KafkaLog, returnType=from_arrow_schema(ROWS))
