"""The function that writes batches, as a function of columns."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING

from pyspark.sql.functions import create_map, lit

from kafkajit.spark.call import call_columns

if TYPE_CHECKING:
    from pyspark.sql import Column

    from kafkajit.spark.call import ColumnOrName

__all__ = ["kafka_encode_batch", "try_kafka_encode_batch"]


def kafka_encode_batch(
    records: ColumnOrName, options: Column | Mapping[str, object] | None = None
) -> Column:
    """Returns records as a record batch, as it stands in a log.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    records : :class:`~pyspark.sql.Column` or column name
        array of struct, of the columns of a record that there are.
    options : dict or map column, optional
        compressionType, baseOffset, producerId and others, see the function's page.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        binary. NULL for NULL.

    See Also:
    --------
    :func:`kafkajit.spark.functions.kafka_records`

    Examples:
    --------
    >>> from kafkajit.spark.functions import kafka_encode_batch, kafka_records
    >>> df = spark.sql("SELECT array(named_struct('key', 'k', 'value', X'76')) AS records")
    >>> log = df.select(kafka_encode_batch("records", {"baseOffset": 7}).alias("content"))
    >>> records = log.select(kafka_records("content").alias("records"))
    >>> records.selectExpr("inline(records)").select("offset", "key", "value").show()
    +------+----+-----+
    |offset| key|value|
    +------+----+-----+
    |     7|[6B]| [76]|
    +------+----+-----+
    """
    return call_columns("kafka_encode_batch", records, *_as_map(options))


def try_kafka_encode_batch(
    records: ColumnOrName, options: Column | Mapping[str, object] | None = None
) -> Column:
    """Returns records as a record batch, NULL where they cannot be one.

    .. versionadded:: 0.1.0

    Parameters
    ----------
    records : :class:`~pyspark.sql.Column` or column name
        array of struct, of the columns of a record that there are.
    options : dict or map column, optional
        as for :func:`kafka_encode_batch`.

    Returns:
    -------
    :class:`~pyspark.sql.Column`
        binary.

    Examples:
    --------
    >>> from kafkajit.spark.functions import try_kafka_encode_batch
    >>> back = "array(named_struct('offset', 2), named_struct('offset', 1))"
    >>> df = spark.sql(f"SELECT {back} AS records")
    >>> df.select(try_kafka_encode_batch("records").isNull().alias("isNull")).show()
    +------+
    |isNull|
    +------+
    |  true|
    +------+
    """
    return call_columns("try_kafka_encode_batch", records, *_as_map(options))


def _as_map(options: Column | Mapping[str, object] | None) -> list[Column]:
    if options is None:
        return []
    if not isinstance(options, Mapping):
        return [options]
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }
    return [create_map(*map(lit, chain.from_iterable(texts.items())))]
