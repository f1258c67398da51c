"""What SQL gets from us, by name. Nothing of Spark is imported here: that takes a second."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from kafkajit.schema import (
    BATCHES_TYPE,
    CORRUPTIONS_TYPE,
    DECODED_TYPE,
    INDEX_PROBLEM_COLUMNS,
    LOG_PATH_TYPE,
    RECORDS_TYPE,
    TIME_INDEX_PROBLEM_COLUMNS,
    TableColumn,
    in_microseconds,
    table_schema,
)
from kafkajit.state.sidecar_files import SIDECAR_FILES

# function: the kind of file whose bytes it takes; the first two also take the base offset.
SIDE_FUNCTIONS = {
    "kafka_offset_index": "offsetIndex",
    "kafka_time_index": "timeIndex",
    "kafka_transaction_index": "transactionIndex",
    "kafka_producer_snapshot": "producers",
    "kafka_leader_epochs": "leaderEpochs",
    "kafka_checkpoint": "checkpoints",
    "kafka_partition_metadata": "partitionMetadata",
    "kafka_meta_properties": "metaProperties",
    "kafka_quorum_state": "quorumState",
}
# Files that say one thing: a struct instead of an array of them.
OF_ONE_ROW = ("kafka_partition_metadata", "kafka_quorum_state")

# function: the kind of index that it looks up
LOOKUP_FUNCTIONS = {"kafka_offset_lookup": "offsetIndex", "kafka_time_lookup": "timeIndex"}

# function: what it tells of each entry that does not fit
VERIFY_FUNCTIONS = {
    "kafka_verify_index": INDEX_PROBLEM_COLUMNS,
    "kafka_verify_time_index": TIME_INDEX_PROBLEM_COLUMNS,
}

# function: the internal topic whose records it takes
DECODE_FUNCTIONS = {
    f"kafka_decode_{topic}": topic
    for topic in (
        "offsets",
        "transaction_state",
        "cluster_metadata",
        "share_group_state",
        "remote_log_metadata",
    )
}


def rows_of(columns: Mapping[str, TableColumn]) -> pa.Schema:
    """The columns as a function gives them, in Spark's types."""
    return in_microseconds(table_schema(columns))


def _array(columns: Mapping[str, TableColumn]) -> pa.DataType:
    return pa.list_(_struct(columns))


def _struct(columns: Mapping[str, TableColumn]) -> pa.DataType:
    return pa.struct(list(rows_of(columns)))


def _with_try(functions: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """Each with its twin that gives NULL where content is damaged."""
    return {prefix + name: type_ for name, type_ in functions.items() for prefix in ("", "try_")}


# function: what it returns
FUNCTIONS: dict[str, pa.DataType] = {
    **_with_try({"kafka_records": RECORDS_TYPE, "kafka_record_batches": BATCHES_TYPE}),
    "kafka_corruption": CORRUPTIONS_TYPE,
    **_with_try({"kafka_valid_bytes": pa.int64()}),
    "kafka_log_path": LOG_PATH_TYPE,
    "kafka_partition": pa.int32(),
    **_with_try(
        {
            name: (_struct if name in OF_ONE_ROW else _array)(SIDECAR_FILES[kind].columns)
            for name, kind in SIDE_FUNCTIONS.items()
        }
    ),
    **_with_try(
        {name: _struct(SIDECAR_FILES[kind].columns) for name, kind in LOOKUP_FUNCTIONS.items()}
    ),
    **{name: _array(columns) for name, columns in VERIFY_FUNCTIONS.items()},
    **_with_try(dict.fromkeys(DECODE_FUNCTIONS, DECODED_TYPE)),
    **_with_try({"kafka_encode_batch": pa.binary()}),
}

TABLE_FUNCTION = "kafka_log"
