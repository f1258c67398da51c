"""What lies beside a log, as functions of columns: indexes, snapshots, checkpoints.

Each has a twin whose name begins with try_, which gives NULL where content is damaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkajit.spark.call import call_columns, try_twin

if TYPE_CHECKING:
    from pyspark.sql import Column

    from kafkajit.spark.call import ColumnOrName


def kafka_offset_index(content: ColumnOrName, base_offset: ColumnOrName | int) -> Column:
    """Returns the entries of an .index file as an array of structs.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of the file, as `binaryFile` loads them.
    base_offset : :class:`~pyspark.sql.Column`, column name or int
        the segment's base offset, which entries count from; :func:`kafka_log_path` gives it.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct. NULL for NULL.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_offset_index
    >>> index = bytes.fromhex("0000000900001000" "0000001500002000")
    >>> df = spark.createDataFrame([(bytearray(index),)], "content BINARY")
    >>> df.select(kafka_offset_index("content", 100).alias("e")).selectExpr("inline(e)").show()
    +------+--------+
    |offset|position|
    +------+--------+
    |   109|    4096|
    |   121|    8192|
    +------+--------+
    """
    return call_columns("kafka_offset_index", content, base_offset)


def kafka_time_index(content: ColumnOrName, base_offset: ColumnOrName | int) -> Column:
    """Returns the entries of a .timeindex file as an array of structs.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of the file, as `binaryFile` loads them.
    base_offset : :class:`~pyspark.sql.Column`, column name or int
        the segment's base offset, which entries count from; :func:`kafka_log_path` gives it.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct. NULL for NULL.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_time_index
    >>> index = bytes.fromhex("0000018bcfe5680000000009")
    >>> df = spark.createDataFrame([(bytearray(index),)], "content BINARY")
    >>> df.select(kafka_time_index("content", 100).alias("e")).selectExpr("e[0].offset").show()
    +-----------+
    |e[0].offset|
    +-----------+
    |        109|
    +-----------+
    """
    return call_columns("kafka_time_index", content, base_offset)


def kafka_transaction_index(content: ColumnOrName) -> Column:
    """Returns the aborted transactions of a .txnindex file as an array of structs.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of the file, as `binaryFile` loads them.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct. NULL for NULL.

    Examples:
    --------
    >>> import struct
    >>> from kafkajit.spark.functions import kafka_transaction_index
    >>> index = struct.pack(">hqqqq", 0, 4711, 23, 25, 26)
    >>> df = spark.createDataFrame([(bytearray(index),)], "content BINARY")
    >>> df.select(kafka_transaction_index("content").alias("e")).selectExpr("inline(e)").show()
    +----------+-----------+----------+----------------+
    |producerId|firstOffset|lastOffset|lastStableOffset|
    +----------+-----------+----------+----------------+
    |      4711|         23|        25|              26|
    +----------+-----------+----------+----------------+
    """
    return call_columns("kafka_transaction_index", content)


def kafka_offset_lookup(
    content: ColumnOrName, base_offset: ColumnOrName | int, target_offset: ColumnOrName | int
) -> Column:
    """Returns the entry of an .index file at or before an offset: where to look for it.

    An index that stands in many rows one behind the other, as after a join, is read once for them.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of the file, as `binaryFile` loads them.
    base_offset : :class:`~pyspark.sql.Column`, column name or int
        the segment's base offset, which entries count from; :func:`kafka_log_path` gives it.
    target_offset : :class:`~pyspark.sql.Column`, column name or int
        the offset to look for.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        struct of offset and position; (base offset, 0) before the first entry. NULL for NULL.

    Examples:
    --------
    >>> from pyspark.sql.functions import lit
    >>> from kafkajit.spark.functions import kafka_offset_lookup
    >>> index = lit(bytearray.fromhex("0000000900001000" "0000001500002000"))
    >>> df = spark.createDataFrame([(120,), (50,)], "target LONG")
    >>> df.select(kafka_offset_lookup(index, 100, "target").alias("found")).show()
    +-----------+
    |      found|
    +-----------+
    |{109, 4096}|
    |   {100, 0}|
    +-----------+
    """
    return call_columns("kafka_offset_lookup", content, base_offset, target_offset)


def kafka_time_lookup(
    content: ColumnOrName, base_offset: ColumnOrName | int, timestamp: ColumnOrName | int
) -> Column:
    """Returns the entry of a .timeindex file at or before a timestamp.

    No record up to the entry's offset is later than its timestamp.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of the file, as `binaryFile` loads them.
    base_offset : :class:`~pyspark.sql.Column`, column name or int
        the segment's base offset, which entries count from; :func:`kafka_log_path` gives it.
    timestamp : :class:`~pyspark.sql.Column`, column name or int
        a TIMESTAMP, or milliseconds since 1970 as Kafka counts them.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        struct of timestamp and offset; (-1 ms, base offset) before the first entry. NULL for NULL.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_time_lookup
    >>> index = bytes.fromhex("0000018bcfe5680000000009")
    >>> df = spark.createDataFrame([(bytearray(index),)], "content BINARY")
    >>> found = df.select(kafka_time_lookup("content", 100, 1_700_000_000_000).alias("found"))
    >>> found.select("found.offset").show()
    +------+
    |offset|
    +------+
    |   109|
    +------+
    """
    return call_columns("kafka_time_lookup", content, base_offset, timestamp)


def kafka_verify_index(
    log: ColumnOrName, index: ColumnOrName, base_offset: ColumnOrName | int
) -> Column:
    """Returns the entries of an .index file that do not fit its log.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    log : :class:`~pyspark.sql.Column` or column name
        the bytes of the segment.
    index : :class:`~pyspark.sql.Column` or column name
        the bytes of the .index file.
    base_offset : :class:`~pyspark.sql.Column`, column name or int
        the segment's base offset, which entries count from; :func:`kafka_log_path` gives it.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct, empty where all entries fit. NULL for NULL.

    Examples:
    --------
    >>> import kafkajit.testing as kt
    >>> from kafkajit.spark.functions import kafka_verify_index
    >>> log = kt.batch([kt.Record(value=b"v")] * 3, base_offset=7)
    >>> index = bytes.fromhex("0000000200000000" "0000000500000040")
    >>> df = spark.createDataFrame([(bytearray(log), bytearray(index))], "log BINARY, index BINARY")
    >>> problems = kafka_verify_index("log", "index", 7).problem
    >>> df.select(problems.alias("problems")).show(truncate=False)
    +---------------------------------+
    |problems                         |
    +---------------------------------+
    |[no batch begins at its position]|
    +---------------------------------+
    """
    return call_columns("kafka_verify_index", log, index, base_offset)


def kafka_verify_time_index(
    log: ColumnOrName, time_index: ColumnOrName, base_offset: ColumnOrName | int
) -> Column:
    """Returns the entries of a .timeindex file that do not fit its log.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    log : :class:`~pyspark.sql.Column` or column name
        the bytes of the segment.
    time_index : :class:`~pyspark.sql.Column` or column name
        the bytes of the .timeindex file.
    base_offset : :class:`~pyspark.sql.Column`, column name or int
        the segment's base offset, which entries count from; :func:`kafka_log_path` gives it.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct, empty where all entries fit. NULL for NULL.

    Examples:
    --------
    >>> import kafkajit.testing as kt
    >>> from kafkajit.spark.functions import kafka_verify_time_index
    >>> log = kt.batch([kt.Record(value=b"v")], base_offset=7)
    >>> times = bytes.fromhex("000000000000006500000000")
    >>> df = spark.createDataFrame([(bytearray(log), bytearray(times))], "log BINARY, times BINARY")
    >>> problems = kafka_verify_time_index("log", "times", 7).problem
    >>> df.select(problems.alias("problems")).show(truncate=False)
    +------------------------------------------+
    |problems                                  |
    +------------------------------------------+
    |[its batch's largest timestamp is another]|
    +------------------------------------------+
    """
    return call_columns("kafka_verify_time_index", log, time_index, base_offset)


def kafka_producer_snapshot(content: ColumnOrName) -> Column:
    """Returns the producers of a .snapshot file as an array of structs.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of the file, as `binaryFile` loads them.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct. NULL for NULL.

    Examples:
    --------
    >>> import kafkajit.testing as kt
    >>> from kafkajit.spark.functions import kafka_producer_snapshot
    >>> snapshot = kt.producer_snapshot([kt.Producer(9, last_offset=12)])
    >>> df = spark.createDataFrame([(bytearray(snapshot),)], "content BINARY")
    >>> producers = df.select(kafka_producer_snapshot("content").alias("p")).selectExpr("inline(p)")
    >>> producers.select("producerId", "producerEpoch", "lastOffset").show()
    +----------+-------------+----------+
    |producerId|producerEpoch|lastOffset|
    +----------+-------------+----------+
    |         9|            0|        12|
    +----------+-------------+----------+
    """
    return call_columns("kafka_producer_snapshot", content)


def kafka_leader_epochs(content: ColumnOrName) -> Column:
    r"""Returns the epochs of a leader-epoch-checkpoint file as an array of structs.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of the file, as `binaryFile` loads them.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct. NULL for NULL.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_leader_epochs
    >>> df = spark.createDataFrame([(bytearray(b"0\n2\n0 0\n2 5\n"),)], "content BINARY")
    >>> df.select(kafka_leader_epochs("content").alias("e")).selectExpr("inline(e)").show()
    +-----+-----------+
    |epoch|startOffset|
    +-----+-----------+
    |    0|          0|
    |    2|          5|
    +-----+-----------+
    """
    return call_columns("kafka_leader_epochs", content)


def kafka_checkpoint(content: ColumnOrName) -> Column:
    r"""Returns the offsets of a checkpoint of a log.dirs folder as an array of structs.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of the file, as `binaryFile` loads them.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct. NULL for NULL.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_checkpoint
    >>> df = spark.createDataFrame([(bytearray(b"0\n1\norders 3 42\n"),)], "content BINARY")
    >>> df.select(kafka_checkpoint("content").alias("c")).selectExpr("inline(c)").show()
    +------+---------+------+
    | topic|partition|offset|
    +------+---------+------+
    |orders|        3|    42|
    +------+---------+------+
    """
    return call_columns("kafka_checkpoint", content)


def kafka_partition_metadata(content: ColumnOrName) -> Column:
    r"""Returns what a partition.metadata file says, as a struct.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of the file, as `binaryFile` loads them.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        struct. NULL for NULL.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_partition_metadata
    >>> content = b"version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA"
    >>> df = spark.createDataFrame([(bytearray(content),)], "content BINARY")
    >>> df.select(kafka_partition_metadata("content").topicId.alias("topicId")).show()
    +--------------------+
    |             topicId|
    +--------------------+
    |pUM3BMsVQk2fe-klg...|
    +--------------------+
    """
    return call_columns("kafka_partition_metadata", content)


def kafka_meta_properties(content: ColumnOrName) -> Column:
    r"""Returns the properties of a meta.properties file as an array of structs.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of the file, as `binaryFile` loads them.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        array of struct of key and value. NULL for NULL.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_meta_properties
    >>> df = spark.createDataFrame([(bytearray(b"version=0\nbroker.id=7\n"),)], "content BINARY")
    >>> df.select(kafka_meta_properties("content").alias("p")).selectExpr("inline(p)").show()
    +---------+-----+
    |      key|value|
    +---------+-----+
    |  version|    0|
    |broker.id|    7|
    +---------+-----+
    """
    return call_columns("kafka_meta_properties", content)


def kafka_quorum_state(content: ColumnOrName) -> Column:
    """Returns what a quorum-state file says, as a struct.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    content : :class:`~pyspark.sql.Column` or column name
        the bytes of the file, as `binaryFile` loads them.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        struct. NULL for NULL.

    Examples:
    --------
    >>> import json
    >>> from kafkajit.spark.functions import kafka_quorum_state
    >>> state = {"leaderId": 1, "leaderEpoch": 3, "votedId": -1, "votedDirectoryId": "A" * 22}
    >>> content = json.dumps(state | {"data_version": 1}).encode()
    >>> df = spark.createDataFrame([(bytearray(content),)], "content BINARY")
    >>> states = df.select(kafka_quorum_state("content").alias("state"))
    >>> states.select("state.leaderId", "state.leaderEpoch").show()
    +--------+-----------+
    |leaderId|leaderEpoch|
    +--------+-----------+
    |       1|          3|
    +--------+-----------+
    """
    return call_columns("kafka_quorum_state", content)


try_kafka_offset_index = try_twin(kafka_offset_index)
try_kafka_time_index = try_twin(kafka_time_index)
try_kafka_transaction_index = try_twin(kafka_transaction_index)
try_kafka_offset_lookup = try_twin(kafka_offset_lookup)
try_kafka_time_lookup = try_twin(kafka_time_lookup)
try_kafka_producer_snapshot = try_twin(kafka_producer_snapshot)
try_kafka_leader_epochs = try_twin(kafka_leader_epochs)
try_kafka_checkpoint = try_twin(kafka_checkpoint)
try_kafka_partition_metadata = try_twin(kafka_partition_metadata)
try_kafka_meta_properties = try_twin(kafka_meta_properties, damaged=rb"\u")
try_kafka_quorum_state = try_twin(kafka_quorum_state)

__all__ = [
    "kafka_checkpoint",
    "kafka_leader_epochs",
    "kafka_meta_properties",
    "kafka_offset_index",
    "kafka_offset_lookup",
    "kafka_partition_metadata",
    "kafka_producer_snapshot",
    "kafka_quorum_state",
    "kafka_time_index",
    "kafka_time_lookup",
    "kafka_transaction_index",
    "kafka_verify_index",
    "kafka_verify_time_index",
    "try_kafka_checkpoint",
    "try_kafka_leader_epochs",
    "try_kafka_meta_properties",
    "try_kafka_offset_index",
    "try_kafka_offset_lookup",
    "try_kafka_partition_metadata",
    "try_kafka_producer_snapshot",
    "try_kafka_quorum_state",
    "try_kafka_time_index",
    "try_kafka_time_lookup",
    "try_kafka_transaction_index",
]
