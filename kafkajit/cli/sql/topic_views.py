"""Views of internal topics: the decoded records, with a column for each field.

Each record is a row, as it was written. For each key only the latest record counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafkajit.schema import (
    CONSUMER_OFFSET_COLUMNS,
    TRANSACTION_COLUMNS,
    TableColumn,
    in_microseconds,
    table_schema,
)
from kafkajit.topics import TRANSACTION_STATES

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

# The next marker of a record's producer, which ends its transaction. In descending order it is the
# last one so far, so the window takes one pass.
_MARKER = (
    "last_value(controlType) IGNORE NULLS OVER (PARTITION BY partition, producerId "
    "ORDER BY offset DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS marker"
)
# With read_committed only records of committed transactions are read, without their markers.
_COMMITTED = "'COMMIT' AS marker"
_KEPT = ("value", "partition", "offset", "timestamp", "isTransactional", "marker")


class TopicView(NamedTuple):
    """A view of an internal topic."""

    topic: str
    function: str  # the SQL function that decodes its records
    columns: Mapping[str, TableColumn]
    key: str  # the fields needed of keys, and below of values, as in a STRUCT
    value: str
    types: tuple[str, ...]  # the types of keys that have rows here
    expressions: Mapping[str, str]  # the columns, in terms of key.data (k) and value.data (v)


_OF_RECORD = {
    "isDeleted": "value IS NULL",
    "isTransactional": "isTransactional",
    "isCommitted": "NOT isTransactional OR marker <=> 'COMMIT'",
    "recordPartition": "partition",
    "recordOffset": "offset",
    "recordTimestamp": "timestamp",
}

TOPIC_VIEWS = {
    "consumer_offsets": TopicView(
        topic="__consumer_offsets",
        function="kafka_decode_offsets",
        columns=CONSUMER_OFFSET_COLUMNS,
        key="group: STRING, topic: STRING, partition: INT",
        value="offset: BIGINT, leaderEpoch: INT, metadata: STRING, commitTimestamp: BIGINT, "
        "expireTimestamp: BIGINT",
        types=("0", "1"),
        expressions={
            "groupId": "k.group",
            "topic": "k.topic",
            "partition": "k.partition",
            "committedOffset": "v.offset",
            "leaderEpoch": "nullif(v.leaderEpoch, -1)",
            "metadata": "v.metadata",
            "commitTimestamp": "timestamp_millis(v.commitTimestamp)",
            "expireTimestamp": "timestamp_millis(nullif(v.expireTimestamp, -1))",
        },
    ),
    "transactions": TopicView(
        topic="__transaction_state",
        function="kafka_decode_transaction_state",
        columns=TRANSACTION_COLUMNS,
        key="transactionalId: STRING",
        value="producerId: BIGINT, producerEpoch: SMALLINT, transactionTimeoutMs: INT, "
        "transactionStatus: INT, transactionLastUpdateTimestampMs: BIGINT, "
        "transactionStartTimestampMs: BIGINT, "
        "transactionPartitions: ARRAY<STRUCT<topic: STRING, partitionIds: ARRAY<INT>>>",
        types=("0",),
        expressions={
            "transactionalId": "k.transactionalId",
            "producerId": "v.producerId",
            "producerEpoch": "v.producerEpoch",
            "state": f"get(array{TRANSACTION_STATES}, v.transactionStatus)",
            "timeoutMs": "v.transactionTimeoutMs",
            "lastUpdate": "timestamp_millis(v.transactionLastUpdateTimestampMs)",
            "start": "timestamp_millis(nullif(v.transactionStartTimestampMs, -1))",
            "partitions": "transform(v.transactionPartitions, "
            "p -> named_struct('topic', p.topic, 'partitions', p.partitionIds))",
        },
    ),
}


def taken_apart(
    view: TopicView, records: DataFrame, *, lenient: bool, is_committed: bool
) -> DataFrame:
    """The rows of a view, decoded from the records of its topic.

    Args:
        view: the view.
        records: of its topic.
        lenient: whether malformed records have NULL.
        is_committed: whether the records are those that isolation level read_committed has.
    """
    from pyspark.sql.functions import col, from_json

    from kafkajit.spark import functions

    name = f"try_{view.function}" if lenient else view.function
    decode: Callable[..., SparkColumn] = getattr(functions, name)
    json = {
        side: from_json(col(f"decoded.{side}"), f"type STRING, data STRUCT<{fields}>")
        for side, fields in (("key", view.key), ("value", view.value))
    }
    decoded = (
        records.selectExpr("*", _COMMITTED if is_committed else _MARKER)
        .where("controlType IS NULL")
        .select(decode("key", "value").alias("decoded"), *_KEPT)
    )
    parsed = decoded.select("*", json["key"].alias("j"), json["value"].data.alias("v"))
    types = ", ".join(f"'{type_}'" for type_ in view.types)
    parsed = parsed.where(f"j.type IN ({types})").select("*", col("j.data").alias("k"))
    expressions = {**_OF_RECORD, **view.expressions}
    return parsed.selectExpr(*(f"{expressions[name]} AS {name}" for name in view.columns))


def no_rows(columns: Mapping[str, TableColumn], spark: SparkSession) -> DataFrame:
    """An empty view with these columns, for a folder without a log of its topic."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = in_microseconds(table_schema(columns))
    return spark.createDataFrame([], from_arrow_schema(schema))
