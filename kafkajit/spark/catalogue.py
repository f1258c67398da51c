"""The SQL functions: one row each. A new function is a row here and a file in sql/functions.

Nothing of Spark is imported here, which would take a second, and no kernels.

A function has a twin whose name begins with try_ exactly if damaged bytes make it raise; the twin
returns NULL instead. Functions that report damage as data (kafka_corruption, kafka_verify_index) or
that read no files (kafka_log_path) have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial, wraps
from importlib import import_module
from inspect import Parameter, signature
from typing import Any, NamedTuple

import pyarrow as pa

from kafkajit.schema import (
    BATCHES_TYPE,
    CORRUPTIONS_TYPE,
    DECODED_TYPE,
    INDEX_PROBLEM_COLUMNS,
    LOG_PATH_TYPE,
    RECORDS_TYPE,
    TIME_INDEX_PROBLEM_COLUMNS,
    VARIANT_TYPE,
    TableColumn,
    in_microseconds,
    table_schema,
)
from kafkajit.spark.worker import reported
from kafkajit.state.sidecar_files import SIDECAR_FILES

TABLE_FUNCTION = "kafka_log"


class SqlFunction(NamedTuple):
    """The type that a function returns, and its evaluator.

    The evaluator is a function of Arrow arrays, MODULE.NAME in kafkajit.spark. Its positional
    parameters are named as in SQL. It is also given `settings`, and `lenient=True` for the twin.
    """

    returns: pa.DataType
    evaluator: str
    settings: Mapping[str, Any] = {}
    has_try: bool = True


def _struct(columns: Mapping[str, TableColumn]) -> pa.DataType:
    return pa.struct(list(in_microseconds(table_schema(columns))))


def _array(columns: Mapping[str, TableColumn]) -> pa.DataType:
    return pa.list_(_struct(columns))


def _index(kind: str) -> SqlFunction:
    type_ = _array(SIDECAR_FILES[kind].columns)
    return SqlFunction(type_, "index_arrays.entries", {"kind": kind})


def _file(kind: str) -> SqlFunction:
    type_ = _array(SIDECAR_FILES[kind].columns)
    return SqlFunction(type_, "file_arrays.rows", {"kind": kind})


def _file_of_one_row(kind: str) -> SqlFunction:
    type_ = _struct(SIDECAR_FILES[kind].columns)
    return SqlFunction(type_, "file_arrays.row", {"kind": kind})


def _topic(topic: str) -> SqlFunction:
    return SqlFunction(DECODED_TYPE, "topic_arrays.decode", {"topic": topic})


_OFFSET_ENTRY = _struct(SIDECAR_FILES["offsetIndex"].columns)
_TIME_ENTRY = _struct(SIDECAR_FILES["timeIndex"].columns)
_INDEX_PROBLEMS = _array(INDEX_PROBLEM_COLUMNS)
_TIME_INDEX_PROBLEMS = _array(TIME_INDEX_PROBLEM_COLUMNS)

_ROWS: dict[str, SqlFunction] = {
    "kafka_records": SqlFunction(RECORDS_TYPE, "record_arrays.records"),
    "kafka_record_batches": SqlFunction(BATCHES_TYPE, "record_arrays.batches"),
    "kafka_valid_bytes": SqlFunction(pa.int64(), "record_arrays.valid_bytes"),
    "kafka_corruption": SqlFunction(CORRUPTIONS_TYPE, "record_arrays.corruption", has_try=False),
    "kafka_encode_batch": SqlFunction(pa.binary(), "encode_arrays.encode_batch"),
    "kafka_log_path": SqlFunction(LOG_PATH_TYPE, "record_arrays.log_path", has_try=False),
    "kafka_partition": SqlFunction(pa.int32(), "record_arrays.partition", has_try=False),
    "kafka_offset_index": _index("offsetIndex"),
    "kafka_time_index": _index("timeIndex"),
    "kafka_transaction_index": _file("transactionIndex"),
    "kafka_offset_lookup": SqlFunction(_OFFSET_ENTRY, "index_arrays.offset_lookup"),
    "kafka_time_lookup": SqlFunction(_TIME_ENTRY, "index_arrays.time_lookup"),
    "kafka_verify_index": SqlFunction(_INDEX_PROBLEMS, "index_arrays.verify_index", has_try=False),
    "kafka_verify_time_index": SqlFunction(
        _TIME_INDEX_PROBLEMS, "index_arrays.verify_time_index", has_try=False
    ),
    "kafka_producer_snapshot": _file("producers"),
    "kafka_leader_epochs": _file("leaderEpochs"),
    "kafka_checkpoint": _file("checkpoints"),
    "kafka_partition_metadata": _file_of_one_row("partitionMetadata"),
    "kafka_meta_properties": _file("metaProperties"),
    "kafka_quorum_state": _file_of_one_row("quorumState"),
    "kafka_schema_id": SqlFunction(pa.int32(), "value_arrays.schema_id", has_try=False),
    "kafka_decode_value": SqlFunction(VARIANT_TYPE, "value_arrays.decode_value"),
    "kafka_decode_offsets": _topic("offsets"),
    "kafka_decode_transaction_state": _topic("transaction_state"),
    "kafka_decode_cluster_metadata": _topic("cluster_metadata"),
    "kafka_decode_share_group_state": _topic("share_group_state"),
    "kafka_decode_remote_log_metadata": _topic("remote_log_metadata"),
}

# Every function, each twin behind its plain function.
FUNCTIONS: dict[str, SqlFunction] = {
    prefix + name: function
    for name, function in _ROWS.items()
    for prefix in (("", "try_") if function.has_try else ("",))
}


def plain(name: str) -> str:
    """The name of a function without try_."""
    return name.removeprefix("try_")


@cache
def evaluator(name: str) -> Callable[..., pa.Array]:
    """The function of Arrow arrays that evaluates an SQL function. Its module loads kernels."""
    function = FUNCTIONS[name]
    module, _, attribute = function.evaluator.partition(".")
    evaluate = getattr(import_module(f"kafkajit.spark.{module}"), attribute)
    settings = dict(function.settings)
    if function.has_try:
        settings["lenient"] = name != plain(name)
    evaluate = partial(evaluate, **settings)

    @wraps(evaluate)
    def evaluated(*arguments: pa.Array, **named: pa.Array) -> pa.Array:
        _check_arguments(name, len(arguments), named)
        return evaluate(*arguments, **named)

    return reported(evaluated)


def _check_arguments(name: str, count: int, named: Mapping[str, object]) -> None:
    """Raise a TypeError unless a call has the function's arguments: Spark does not know these."""
    parameters = _parameters(name)
    known = [parameter.name for parameter in parameters]
    if count > len(known):
        problem = f"has at most {len(known)} arguments, not {count}"
    elif unknown := sorted(set(named).difference(known)):
        problem = f"has no argument {unknown[0]}"
    elif twice := sorted(set(named).intersection(known[:count])):
        problem = f"was given the argument {twice[0]} twice"
    else:
        required = [p.name for p in parameters[count:] if p.default is Parameter.empty]
        missing = [argument for argument in required if argument not in named]
        if not missing:
            return
        problem = f"was not given {', '.join(missing)}"
    raise TypeError(f"{name} {problem}: call {usage(name)}")


@cache
def _parameters(name: str) -> list[Parameter]:
    """The arguments of a function, without its settings."""
    found = signature(evaluator(name)).parameters.values()
    return [parameter for parameter in found if parameter.kind is not Parameter.KEYWORD_ONLY]


def usage(name: str) -> str:
    """A call of a function with all its arguments.

    >>> usage("kafka_records")
    'kafka_records(content [, columns [, mode]])'
    """
    required = [p.name for p in _parameters(name) if p.default is Parameter.empty]
    optional = [p.name for p in _parameters(name)[len(required) :]]
    more = "".join(f" [, {argument}" for argument in optional) + "]" * len(optional)
    return f"{name}({', '.join(required)}{more})"
