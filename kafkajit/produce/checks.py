"""Checks of a job before it begins: the columns of its rows, and the folder."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pt

from kafkajit.change.lock import check_is_no_part_of_a_broker
from kafkajit.errors import did_you_mean
from kafkajit.places.location import SEGMENT_NAME
from kafkajit.produce.commit import locked, partitions_in
from kafkajit.produce.options import STATIC, ProduceOptions
from kafkajit.produce.unmarked import OPEN
from kafkajit.schema import RECORD_COLUMNS
from kafkajit.state.meta_properties import META_PROPERTIES

_Kind = Callable[[pa.DataType], bool]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(_is_text(kind) or pt.is_binary(kind) or pt.is_large_binary(kind))


def _is_instant(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind) and kind.tz is not None)


def _are_headers(kind: pa.DataType) -> bool:
    if pt.is_map(kind):
        return _is_text(kind.key_type) and _is_bytes(kind.item_type)
    if not (pt.is_list(kind) and pt.is_struct(kind.value_type)):
        return False
    parts = kind.value_type
    return bool(
        [part.name for part in parts] == ["key", "value"]
        and _is_text(parts[0].type)
        and _is_bytes(parts[1].type)
    )


# The columns of Spark's Kafka sink with their types, and timestamp, when a record was created.
_SINK: dict[str, tuple[str, _Kind]] = {
    "key": ("STRING or BINARY", _is_bytes),
    "value": ("STRING or BINARY", _is_bytes),
    "headers": ("ARRAY<STRUCT<key: STRING, value: BINARY>>", _are_headers),
    "topic": ("STRING", _is_text),
    "partition": ("INT", pt.is_integer),
    "timestamp": ("TIMESTAMP", _is_instant),
}


def check_columns(schema: pa.Schema, options: ProduceOptions) -> None:
    """Raise if rows of this schema cannot be written."""
    for name in schema.names:
        if name not in RECORD_COLUMNS:
            hint = did_you_mean(name, RECORD_COLUMNS, cutoff=0.5)
            hint = f", {hint}" if hint else "."
            raise ValueError(
                f"a record has no column {name!r}{hint} There are: {', '.join(RECORD_COLUMNS)}"
            )
        if schema.names.count(name) > 1:
            raise ValueError(
                f"there are several columns {name!r}, and a record has one: drop the others"
            )
    for name, (wanted, is_right) in _SINK.items():
        if name in schema.names and not is_right(schema.field(name).type):
            kind = schema.field(name).type
            raise ValueError(f"column {name} must be {wanted}, not {kind}")
    if "value" not in schema.names:
        raise ValueError("required column 'value' not found")
    if options.topic is None and "topic" not in schema.names:
        raise ValueError("topic is missing: set the option topic, or add a column topic")
    if options.partitions is None and "partition" not in schema.names:
        raise ValueError(
            "partition is missing: set the option partitions to the topic's number of them, or add "
            "a column partition"
        )
    if options.keep_offsets and "offset" not in schema.names:
        raise ValueError("keepOffsets needs a column offset")
    if options.transactions not in (None, OPEN) and not options.keep_offsets:
        raise ValueError(
            "option transactions: rows that get new offsets are not part of a transaction, only "
            "those that keep theirs (keepOffsets)"
        )


def check_folder(options: ProduceOptions, *, overwrite: bool) -> None:
    """Raise if the folder is not one for logs, or cannot be written to now."""
    path = options.path
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{path} is not a folder")
    if any(SEGMENT_NAME.fullmatch(file.name) for file in path.glob("*.log")):
        raise ValueError(
            f"{path} is a partition's folder: name the folder around it, {path.parent}; the "
            "columns topic and partition place a row in it"
        )
    check_is_no_part_of_a_broker(path)
    if not (path / META_PROPERTIES).exists():
        return
    if overwrite and options.partition_overwrite_mode == STATIC:
        raise ValueError(
            f"{path} is a broker's, and mode overwrite would remove all of its "
            f"{len(partitions_in(path))} partitions: set the option partitionOverwriteMode to "
            "dynamic to replace only those that have rows"
        )
    with locked(options, patience=0):
        pass
