"""The table functions: rows out of segments of any size, in bounded record batches.

A function like kafka_records puts a segment's content and all of its records into one row, and a
row ends at 2 GiB. A table function has no such row: it is given paths, or contents, and gives
record batches, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.functions import arrow_udtf
from pyspark.sql.pandas.types import from_arrow_schema

from kafkajit.schema import (
    RECORD_COLUMNS,
    check_columns,
    in_microseconds,
    record_schema,
    with_corruption,
)
from kafkajit.spark.worker import acknowledge, guest

if TYPE_CHECKING:
    from kafkajit.storage.source import Source

_NEEDS = (
    "kafka_log needs a table with a column path or content, as in "
    "kafka_log(TABLE(SELECT path FROM ...))"
)

# A table function's columns are the same whatever it is asked: rows about damage are among them.
ROWS = with_corruption(in_microseconds(record_schema(RECORD_COLUMNS)))


class KafkaLog:
    """Records of segments, in bounded record batches.

    The argument is a table with a column `path`, or `content`, or both, or a single path or
    content; `columns` and `mode` are as for kafka_records, PERMISSIVE included.

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

    def eval(
        self,
        segments: pa.RecordBatch | pa.Array,
        columns: pa.Array | None = None,
        mode: pa.Array | None = None,
    ) -> Iterator[pa.RecordBatch]:
        # Where it is registered nobody needs the kernels.
        from kafkajit.reader import SegmentReader

        with guest():
            chosen = _mode(None if mode is None else mode[0].as_py())
            asked = _asked(None if columns is None else columns[0].as_py(), chosen)
            for source in _sources(segments):
                for rows in SegmentReader(source, mode=chosen).records(asked):
                    yield _with_all_columns(rows)


def _asked(names: str | None, mode: str) -> pa.Schema:
    """What to read: the column corruption brings rows for gaps, which only PERMISSIVE has."""
    from kafkajit.walk.walk import PERMISSIVE

    known = [name for name in ROWS.names if name != "corruption"]
    asked = known
    if names is not None:
        asked = check_columns([name.strip() for name in names.split(",")], known)
    gaps = ["corruption"] if mode == PERMISSIVE else []
    return pa.schema([ROWS.field(name) for name in [*asked, *gaps]])


def _mode(name: str | None) -> str:
    from kafkajit.walk.walk import FAILFAST, MODES

    mode = FAILFAST if name is None else name.upper()
    if mode not in MODES:
        raise ValueError(f"unknown mode {name!r}; there are: {', '.join(MODES)}")
    return mode


def _sources(segments: pa.RecordBatch | pa.Array) -> Iterator[Source]:
    from kafkajit.spark.arrays import buffers
    from kafkajit.storage.locations import stored_file
    from kafkajit.storage.source import Source

    if isinstance(segments, pa.RecordBatch):
        given = {name: segments.column(name) for name in segments.schema.names}
    elif pa.types.is_string(segments.type) or pa.types.is_large_string(segments.type):
        given = {"path": segments}
    else:
        given = {"content": segments}
    if not given.keys() & {"path", "content"}:
        raise ValueError(f"{_NEEDS}; this one has {', '.join(given)}")
    paths = given["path"].to_pylist() if "path" in given else [None] * len(segments)
    if "content" in given:
        for path, content in zip(paths, buffers(given["content"]), strict=True):
            if content is not None:
                yield Source(content, path=path)
    else:
        for path in paths:
            if path is not None:
                yield stored_file(path).open()


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


kafka_log: Any = arrow_udtf(KafkaLog, returnType=from_arrow_schema(ROWS))
