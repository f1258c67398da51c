"""The SQL functions as functions of columns, for DataFrames.

They need no registration: `df.select(kafka_records("content"))` works in any session, Spark
Connect included. `kafkajit.spark.register(spark)` adds the same functions to SQL.

Each function below lists the arguments of the SQL function that it calls. Docstrings come from the
files of sql/functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING

from pyspark.sql.functions import create_map, lit

from kafkajit.spark.columns import Arguments, sql_function, try_twin

if TYPE_CHECKING:
    from pyspark.sql import Column

    from kafkajit.spark.columns import ColumnOrName


@sql_function
def kafka_records(
    content: ColumnOrName, columns: str | None = None, mode: str | None = None
) -> Arguments:
    return content, _text(columns), _text(mode)


@sql_function
def kafka_record_batches(content: ColumnOrName) -> Arguments:
    return (content,)


@sql_function
def kafka_valid_bytes(content: ColumnOrName) -> Arguments:
    return (content,)


@sql_function
def kafka_corruption(content: ColumnOrName) -> Arguments:
    return (content,)


@sql_function
def kafka_encode_batch(
    records: ColumnOrName, options: Column | Mapping[str, object] | None = None
) -> Arguments:
    return records, _map(options) if isinstance(options, Mapping) else options


@sql_function
def kafka_log_path(path: ColumnOrName) -> Arguments:
    return (path,)


@sql_function
def kafka_partition(key: ColumnOrName, partitions: ColumnOrName | int) -> Arguments:
    return key, partitions


@sql_function
def kafka_offset_index(content: ColumnOrName, base_offset: ColumnOrName | int) -> Arguments:
    return content, base_offset


@sql_function
def kafka_time_index(content: ColumnOrName, base_offset: ColumnOrName | int) -> Arguments:
    return content, base_offset


@sql_function
def kafka_transaction_index(content: ColumnOrName) -> Arguments:
    return (content,)


@sql_function
def kafka_offset_lookup(
    content: ColumnOrName, base_offset: ColumnOrName | int, target_offset: ColumnOrName | int
) -> Arguments:
    return content, base_offset, target_offset


@sql_function
def kafka_time_lookup(
    content: ColumnOrName, base_offset: ColumnOrName | int, timestamp: ColumnOrName | int
) -> Arguments:
    return content, base_offset, timestamp


@sql_function
def kafka_verify_index(
    log: ColumnOrName, index: ColumnOrName, base_offset: ColumnOrName | int
) -> Arguments:
    return log, index, base_offset


@sql_function
def kafka_verify_time_index(
    log: ColumnOrName, time_index: ColumnOrName, base_offset: ColumnOrName | int
) -> Arguments:
    return log, time_index, base_offset


@sql_function
def kafka_producer_snapshot(content: ColumnOrName) -> Arguments:
    return (content,)


@sql_function
def kafka_leader_epochs(content: ColumnOrName) -> Arguments:
    return (content,)


@sql_function
def kafka_checkpoint(content: ColumnOrName) -> Arguments:
    return (content,)


@sql_function
def kafka_partition_metadata(content: ColumnOrName) -> Arguments:
    return (content,)


@sql_function
def kafka_meta_properties(content: ColumnOrName) -> Arguments:
    return (content,)


@sql_function
def kafka_quorum_state(content: ColumnOrName) -> Arguments:
    return (content,)


@sql_function
def kafka_schema_id(value: ColumnOrName) -> Arguments:
    return (value,)


@sql_function
def kafka_decode_value(value: ColumnOrName, schema: Column | str) -> Arguments:
    return value, _text(schema) if isinstance(schema, str) else schema


@sql_function
def kafka_decode_offsets(key: ColumnOrName, value: ColumnOrName) -> Arguments:
    return key, value


@sql_function
def kafka_decode_transaction_state(key: ColumnOrName, value: ColumnOrName) -> Arguments:
    return key, value


@sql_function
def kafka_decode_cluster_metadata(key: ColumnOrName, value: ColumnOrName) -> Arguments:
    return key, value


@sql_function
def kafka_decode_share_group_state(key: ColumnOrName, value: ColumnOrName) -> Arguments:
    return key, value


@sql_function
def kafka_decode_remote_log_metadata(key: ColumnOrName, value: ColumnOrName) -> Arguments:
    return key, value


try_kafka_records = try_twin(kafka_records)
try_kafka_record_batches = try_twin(kafka_record_batches)
try_kafka_valid_bytes = try_twin(kafka_valid_bytes)
try_kafka_encode_batch = try_twin(kafka_encode_batch)
try_kafka_offset_index = try_twin(kafka_offset_index)
try_kafka_time_index = try_twin(kafka_time_index)
try_kafka_transaction_index = try_twin(kafka_transaction_index)
try_kafka_offset_lookup = try_twin(kafka_offset_lookup)
try_kafka_time_lookup = try_twin(kafka_time_lookup)
try_kafka_producer_snapshot = try_twin(kafka_producer_snapshot)
try_kafka_leader_epochs = try_twin(kafka_leader_epochs)
try_kafka_checkpoint = try_twin(kafka_checkpoint)
try_kafka_partition_metadata = try_twin(kafka_partition_metadata)
try_kafka_meta_properties = try_twin(kafka_meta_properties)
try_kafka_quorum_state = try_twin(kafka_quorum_state)
try_kafka_decode_value = try_twin(kafka_decode_value)
try_kafka_decode_offsets = try_twin(kafka_decode_offsets)
try_kafka_decode_transaction_state = try_twin(kafka_decode_transaction_state)
try_kafka_decode_cluster_metadata = try_twin(kafka_decode_cluster_metadata)
try_kafka_decode_share_group_state = try_twin(kafka_decode_share_group_state)
try_kafka_decode_remote_log_metadata = try_twin(kafka_decode_remote_log_metadata)

__all__ = [name for name in globals() if name.startswith(("kafka_", "try_kafka_"))]


def _text(value: str | None) -> Column | None:
    return None if value is None else lit(value)


def _map(options: Mapping[str, object]) -> Column:
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }
    return create_map(*map(lit, chain.from_iterable(texts.items())))
