"""Records of internal topics, as functions of columns: keys and values as the JSON of dump-log.

Each has a twin whose name begins with try_, which gives NULL where a record cannot be decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkajit.spark.call import call_columns, try_twin

if TYPE_CHECKING:
    from pyspark.sql import Column

    from kafkajit.spark.call import ColumnOrName


def kafka_decode_offsets(key: ColumnOrName, value: ColumnOrName) -> Column:
    r"""Returns a record of __consumer_offsets as JSON.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    key : :class:`~pyspark.sql.Column` or column name
        the record's key.
    value : :class:`~pyspark.sql.Column` or column name
        the record's value.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        struct of key and value, both STRING. NULL where both are NULL.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_decode_offsets
    >>> key = b"\0\1" + b"\0\5group" + b"\0\6orders" + bytes(4)
    >>> value = b"\0\3" + bytes(7) + b"\x2a" + bytes(14)
    >>> df = spark.createDataFrame([(bytearray(key), bytearray(value))], "key BINARY, value BINARY")
    >>> df.select(kafka_decode_offsets("key", "value").value.alias("value")).show(truncate=False)
    +--------------------------------------------------------------------------------------+
    |value                                                                                 |
    +--------------------------------------------------------------------------------------+
    |{"version":"3","data":{"offset":42,"leaderEpoch":0,"metadata":"","commitTimestamp":0}}|
    +--------------------------------------------------------------------------------------+
    """
    return call_columns("kafka_decode_offsets", key, value)


def kafka_decode_transaction_state(key: ColumnOrName, value: ColumnOrName) -> Column:
    r"""Returns a record of __transaction_state as JSON.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    key : :class:`~pyspark.sql.Column` or column name
        the record's key.
    value : :class:`~pyspark.sql.Column` or column name
        the record's value.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        struct of key and value, both STRING. NULL where both are NULL.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_decode_transaction_state
    >>> key = b"\0\0" + b"\0\7billing"
    >>> df = spark.createDataFrame([(bytearray(key), None)], "key BINARY, value BINARY")
    >>> df.select(kafka_decode_transaction_state("key", "value").alias("r")).select("r.*").show(
    ...     truncate=False
    ... )
    +-------------------------------------------------+-----+
    |key                                              |value|
    +-------------------------------------------------+-----+
    |{"type":"0","data":{"transactionalId":"billing"}}|NULL |
    +-------------------------------------------------+-----+
    """
    return call_columns("kafka_decode_transaction_state", key, value)


def kafka_decode_cluster_metadata(key: ColumnOrName, value: ColumnOrName) -> Column:
    r"""Returns a record of __cluster_metadata as JSON.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    key : :class:`~pyspark.sql.Column` or column name
        the record's key, which is not looked at: what a record says is in its value.
    value : :class:`~pyspark.sql.Column` or column name
        the record's value.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        struct of key and value, both STRING. NULL where both are NULL.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_decode_cluster_metadata
    >>> value = b"\1\2\0\5logs" + bytes(15) + b"\1\0"
    >>> df = spark.createDataFrame([(None, bytearray(value))], "key BINARY, value BINARY")
    >>> decoded = kafka_decode_cluster_metadata("key", "value").value
    >>> df.select(decoded.alias("value")).show(truncate=False)
    +---------------------------------------------------------------------------------------------+
    |value                                                                                        |
    +---------------------------------------------------------------------------------------------+
    |{"type":"TOPIC_RECORD","version":0,"data":{"name":"logs","topicId":"AAAAAAAAAAAAAAAAAAAAAQ"}}|
    +---------------------------------------------------------------------------------------------+
    """
    return call_columns("kafka_decode_cluster_metadata", key, value)


def kafka_decode_share_group_state(key: ColumnOrName, value: ColumnOrName) -> Column:
    r"""Returns a record of __share_group_state as JSON.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    key : :class:`~pyspark.sql.Column` or column name
        the record's key.
    value : :class:`~pyspark.sql.Column` or column name
        the record's value.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        struct of key and value, both STRING. NULL where both are NULL.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_decode_share_group_state
    >>> key = b"\0\0" + b"\0\5group" + bytes(15) + b"\1" + bytes(4)
    >>> df = spark.createDataFrame([(bytearray(key), None)], "key BINARY, value BINARY")
    >>> decoded = kafka_decode_share_group_state("key", "value").key
    >>> df.select(decoded.alias("key")).show(truncate=False)
    +----------------------------------------------------------------------------------------+
    |key                                                                                     |
    +----------------------------------------------------------------------------------------+
    |{"type":"0","data":{"groupId":"group","topicId":"AAAAAAAAAAAAAAAAAAAAAQ","partition":0}}|
    +----------------------------------------------------------------------------------------+
    """
    return call_columns("kafka_decode_share_group_state", key, value)


def kafka_decode_remote_log_metadata(key: ColumnOrName, value: ColumnOrName) -> Column:
    r"""Returns a record of __remote_log_metadata as JSON.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    key : :class:`~pyspark.sql.Column` or column name
        the record's key, which is not looked at: what a record says is in its value.
    value : :class:`~pyspark.sql.Column` or column name
        the record's value.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        struct of key and value, both STRING. NULL where both are NULL.

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_decode_remote_log_metadata
    >>> df = spark.createDataFrame([(None, bytearray(b"\1\77\0"))], "key BINARY, value BINARY")
    >>> decoded = kafka_decode_remote_log_metadata("key", "value").value
    >>> df.select(decoded.alias("value")).show(truncate=False)
    +---------------------------------------------------------+
    |value                                                    |
    +---------------------------------------------------------+
    |{"type":"63","version":0,"data":"unknown","bytes":"AT8A"}|
    +---------------------------------------------------------+
    """
    return call_columns("kafka_decode_remote_log_metadata", key, value)


try_kafka_decode_offsets = try_twin(kafka_decode_offsets)
try_kafka_decode_transaction_state = try_twin(kafka_decode_transaction_state)
try_kafka_decode_cluster_metadata = try_twin(kafka_decode_cluster_metadata)
try_kafka_decode_share_group_state = try_twin(kafka_decode_share_group_state)
try_kafka_decode_remote_log_metadata = try_twin(kafka_decode_remote_log_metadata)

__all__ = [
    "kafka_decode_cluster_metadata",
    "kafka_decode_offsets",
    "kafka_decode_remote_log_metadata",
    "kafka_decode_share_group_state",
    "kafka_decode_transaction_state",
    "try_kafka_decode_cluster_metadata",
    "try_kafka_decode_offsets",
    "try_kafka_decode_remote_log_metadata",
    "try_kafka_decode_share_group_state",
    "try_kafka_decode_transaction_state",
]
