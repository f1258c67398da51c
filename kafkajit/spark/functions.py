"""The SQL functions as functions of columns, for DataFrames.

They need no registration: `df.select(kafka_records("content"))` works in any session, Spark
Connect included. `kafkajit.spark.register(spark)` makes the same available to SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkajit.spark import encode_functions, side_functions, topic_functions
from kafkajit.spark.call import call, call_columns
from kafkajit.spark.encode_functions import *  # noqa: F403
from kafkajit.spark.side_functions import *  # noqa: F403
from kafkajit.spark.topic_functions import *  # noqa: F403

if TYPE_CHECKING:
    from pyspark.sql import Column

    from kafkajit.spark.call import ColumnOrName

__all__ = [
    "kafka_corruption",
    "kafka_log_path",
    "kafka_partition",
    "kafka_record_batches",
    "kafka_records",
    "kafka_valid_bytes",
    "try_kafka_record_batches",
    "try_kafka_records",
    "try_kafka_valid_bytes",
    *encode_functions.__all__,
    *side_functions.__all__,
    *topic_functions.__all__,
]


def kafka_records(
    content: ColumnOrName, columns: str | None = None, mode: str | None = None
) -> Column:
    """Returns the records of a log segment as an array of structs.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of a segment, as `binaryFile` loads them.
    columns : str, optional
        names of columns to decode, separated by commas; the others are NULL. All by default.
    mode : str, optional
        FAILFAST (the default) raises at the first bad batch, DROPMALFORMED leaves bad batches out.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct. NULL for NULL.

    See Also:
    --------
    :func:`kafkajit.spark.functions.try_kafka_records`

    Examples:
    --------
    >>> import kafkajit.testing as kt
    >>> from kafkajit.spark.functions import kafka_records
    >>> log = kt.batch([kt.Record(key=b"k", value=b"v"), kt.Record(value=b"w")], base_offset=7)
    >>> df = spark.createDataFrame([(bytearray(log),)], "content BINARY")
    >>> df.selectExpr("inline(kafka_records(content))").select("offset", "key", "value").show()
    +------+----+-----+
    |offset| key|value|
    +------+----+-----+
    |     7|[6B]| [76]|
    |     8|NULL| [77]|
    +------+----+-----+
    """
    return call("kafka_records", content, columns, mode)


def try_kafka_records(
    content: ColumnOrName, columns: str | None = None, mode: str | None = None
) -> Column:
    """Returns the records of a log segment as an array of structs, NULL where it is damaged.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of a segment, as `binaryFile` loads them.
    columns : str, optional
        names of columns to decode, separated by commas; the others are NULL. All by default.
    mode : str, optional
        as for :func:`kafka_records`.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct.

    Examples:
    --------
    >>> import kafkajit.testing as kt
    >>> from kafkajit.spark.functions import try_kafka_records
    >>> damaged = kt.broken("wrong crc")
    >>> df = spark.createDataFrame([(bytearray(damaged),)], "content BINARY")
    >>> df.select(try_kafka_records("content").isNull().alias("damaged")).show()
    +-------+
    |damaged|
    +-------+
    |   true|
    +-------+
    """
    return call("try_kafka_records", content, columns, mode)


def kafka_record_batches(content: ColumnOrName) -> Column:
    """Returns the headers of a log segment's record batches as an array of structs.

    Nothing is decompressed. Checksums are computed: `isValid` says whether they hold.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of a segment, as `binaryFile` loads them.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct. NULL for NULL.

    Examples:
    --------
    >>> import kafkajit.testing as kt
    >>> from kafkajit.spark.functions import kafka_record_batches
    >>> log = kt.batch([kt.Record(value=b"v")], base_offset=7, codec="zstd")
    >>> df = spark.createDataFrame([(bytearray(log),)], "content BINARY")
    >>> batches = df.select(kafka_record_batches("content").alias("batches"))
    >>> batches.selectExpr("inline(batches)").select("baseOffset", "compressionType").show()
    +----------+---------------+
    |baseOffset|compressionType|
    +----------+---------------+
    |         7|           zstd|
    +----------+---------------+
    """
    return call("kafka_record_batches", content)


def try_kafka_record_batches(content: ColumnOrName) -> Column:
    """Returns the headers of a log segment's record batches, NULL where they cannot be told apart.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of a segment, as `binaryFile` loads them.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct.

    Examples:
    --------
    >>> from kafkajit.spark.functions import try_kafka_record_batches
    >>> df = spark.createDataFrame([(bytearray([255] * 40),)], "content BINARY")
    >>> df.select(try_kafka_record_batches("content").isNull().alias("isNull")).show()
    +------+
    |isNull|
    +------+
    |  true|
    +------+
    """
    return call("try_kafka_record_batches", content)


def kafka_corruption(content: ColumnOrName) -> Column:
    """Returns what is damaged in a log segment as an array of structs, empty where nothing is.

    Each says where a stretch without a sound batch is, why, and which offsets are missing there.
    Every batch is decoded to know.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of a segment, as `binaryFile` loads them.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct. NULL for NULL.

    Examples:
    --------
    >>> import kafkajit.testing as kt
    >>> from kafkajit.spark.functions import kafka_corruption
    >>> good = [kt.batch([kt.Record(value=b"v")], base_offset=offset) for offset in (7, 9)]
    >>> log = good[0] + kt.broken("wrong crc", base_offset=8) + good[1]
    >>> df = spark.createDataFrame([(bytearray(log),)], "content BINARY")
    >>> damage = df.select(kafka_corruption("content").alias("damage")).selectExpr("inline(damage)")
    >>> damage.select("position", "length", "firstMissingOffset", "lastMissingOffset").show()
    +--------+------+------------------+-----------------+
    |position|length|firstMissingOffset|lastMissingOffset|
    +--------+------+------------------+-----------------+
    |      69|   127|                 8|                8|
    +--------+------+------------------+-----------------+
    """
    return call("kafka_corruption", content)


def kafka_valid_bytes(content: ColumnOrName) -> Column:
    """Returns the number of bytes up to the end of a log segment's last whole batch.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of a segment, as `binaryFile` loads them.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        bigint. NULL for NULL.

    Examples:
    --------
    >>> import kafkajit.testing as kt
    >>> from kafkajit.spark.functions import kafka_valid_bytes
    >>> log = kt.batch([kt.Record(value=b"v")]) + b"torn"
    >>> df = spark.createDataFrame([(bytearray(log),)], "content BINARY")
    >>> df.select(kafka_valid_bytes("content").alias("validBytes")).show()
    +----------+
    |validBytes|
    +----------+
    |        69|
    +----------+
    """
    return call("kafka_valid_bytes", content)


def try_kafka_valid_bytes(content: ColumnOrName) -> Column:
    """Returns the number of bytes up to a segment's last whole batch, NULL where it is damaged.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of a segment, as `binaryFile` loads them.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        bigint.

    Examples:
    --------
    >>> from kafkajit.spark.functions import try_kafka_valid_bytes
    >>> df = spark.createDataFrame([(bytearray([255] * 40),)], "content BINARY")
    >>> df.select(try_kafka_valid_bytes("content").alias("validBytes")).show()
    +----------+
    |validBytes|
    +----------+
    |      NULL|
    +----------+
    """
    return call("try_kafka_valid_bytes", content)


def kafka_log_path(path: ColumnOrName) -> Column:
    """Returns what a segment's path says: topic, partition, base offset and suffix.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    path : :class:`~pyspark.sql.Column` or column name
        a path or URI; what it does not say is NULL.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        struct. NULL for NULL.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_log_path
    >>> df = spark.createDataFrame([("s3://b/orders-3/00000000000000000042.log",)], ["path"])
    >>> df.select(kafka_log_path("path").alias("log")).select("log.*").show()
    +------+---------+----------+------+
    | topic|partition|baseOffset|suffix|
    +------+---------+----------+------+
    |orders|        3|        42|  .log|
    +------+---------+----------+------+
    """
    return call("kafka_log_path", path)


def kafka_partition(key: ColumnOrName, partitions: ColumnOrName | int) -> Column:
    """Returns the partition that Kafka's producers put records with this key in.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    key : :class:`~pyspark.sql.Column` or column name
        a record's key, binary or text.
    partitions : :class:`~pyspark.sql.Column`, column name or int
        how many the topic has.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        int. NULL for NULL: records without a key are spread.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_partition
    >>> df = spark.createDataFrame([("user-1",), ("user-3",), (None,)], "key STRING")
    >>> df.select("key", kafka_partition("key", 12).alias("partition")).show()
    +------+---------+
    |   key|partition|
    +------+---------+
    |user-1|        8|
    |user-3|       11|
    |  NULL|     NULL|
    +------+---------+
    """
    return call_columns("kafka_partition", key, partitions)
