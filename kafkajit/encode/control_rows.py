"""Arrow → rows: keys and values for control records, if a table has only their type."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from kafkajit.encode.batch_plan import ByteStrings
from kafkajit.encode.rows import byte_strings_of, numbers_of
from kafkajit.errors import InvalidRecordError
from kafkajit.format.limits import MAX_INT32
from kafkajit.records.control_records import (
    ABORT,
    COMMIT,
    CONTROL_TYPES,
    END_TRANSACTION,
    UNKNOWN,
    end_transaction_marker,
)


def control_types(records: pa.RecordBatch, control_type: str | None) -> pa.Array | None:
    """The control type of each record, null for data; None if all records are data."""
    if control_type is not None:
        return pa.array([control_type] * records.num_rows, pa.string())
    if "controlType" not in records.schema.names:
        return None
    types = records.column("controlType")
    if types.null_count == len(types):
        return None
    if pt.is_dictionary(types.type):
        types = types.dictionary_decode()
    if not (pt.is_string(types.type) or pt.is_large_string(types.type)):
        raise TypeError(f"controlType is a column of {types.type}; it must be string")
    known = pa.array([*CONTROL_TYPES.values(), UNKNOWN], types.type)
    unknown = pc.and_(types.is_valid(), pc.invert(pc.is_in(types, known))).to_numpy(False)
    if unknown.any():
        row = int(np.argmax(unknown))
        raise InvalidRecordError(
            f"controlType is {types[row].as_py()!r}; there are: {', '.join(known.to_pylist())}",
            row=row,
        )
    return types.cast(pa.string())


def with_markers(
    records: pa.RecordBatch, types: pa.Array, coordinator_epoch: int | None
) -> pa.RecordBatch:
    """The records, with a key and value for each COMMIT and ABORT that has no key."""
    names = records.schema.names
    lacks = types.is_valid()
    if "key" in names:
        lacks = pc.and_(lacks, records.column("key").is_null())
    rows = np.flatnonzero(lacks.to_numpy(False))
    if rows.size == 0:
        return records
    epochs = _epochs(records, coordinator_epoch)
    columns = {name: _values(records, name) for name in ("key", "value")}
    for row in rows.tolist():
        control_type = types[row].as_py()
        if control_type not in END_TRANSACTION or columns["value"][row] is not None:
            raise InvalidRecordError(
                f"a {control_type} needs the key and value that it has in a log; only a "
                f"{' or an '.join(END_TRANSACTION)} may have neither",
                row=row,
            )
        marker = end_transaction_marker(control_type, int(epochs[row]))
        columns["key"][row], columns["value"][row] = marker
    kept = [name for name in names if name not in columns]
    return pa.RecordBatch.from_arrays(
        [*(pa.array(values, pa.large_binary()) for values in columns.values())]
        + [records.column(name) for name in kept],
        names=[*columns, *kept],
    )


def check_markers(types: pa.Array, key: ByteStrings, value: ByteStrings) -> None:
    """Raise if a control record cannot be read, or its key is of another type than its column."""
    rows = np.flatnonzero(types.is_valid().to_numpy(False))
    known = pa.array(CONTROL_TYPES.values(), pa.string())
    of_row = types.take(pa.array(rows))
    named = np.array([*CONTROL_TYPES, -1])[pc.index_in(of_row, known).fill_null(-1).to_numpy()]
    has_key = key.sizes[rows] >= 4
    at = key.starts[rows[has_key]]
    found = key.data[at + 2].astype(np.int64) << 8 | key.data[at + 3]
    bad = ~has_key
    bad[has_key] = (key.data[at] >= 0x80) | ((named[has_key] >= 0) & (named[has_key] != found))
    bad |= np.isin(named, (ABORT, COMMIT)) & (value.sizes[rows] < 6)
    if bad.any():
        row = int(rows[np.argmax(bad)])
        raise InvalidRecordError(
            f"controlType is {types[row].as_py()}, and key and value are not those of one: leave "
            f"both null if it is {' or '.join(END_TRANSACTION)}",
            row=row,
        )


def _epochs(records: pa.RecordBatch, coordinator_epoch: int | None) -> npt.NDArray[np.int64]:
    if coordinator_epoch is not None:
        return np.full(records.num_rows, coordinator_epoch)
    if "coordinatorEpoch" not in records.schema.names:
        return np.zeros(records.num_rows, dtype=np.int64)
    epochs = numbers_of(records.column("coordinatorEpoch"), "coordinatorEpoch", null=0)
    bad = (epochs < -MAX_INT32 - 1) | (epochs > MAX_INT32)
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidRecordError(f"coordinatorEpoch does not fit an int32: {epochs[row]}", row=row)
    return epochs


def _values(records: pa.RecordBatch, name: str) -> list[bytes | None]:
    if name not in records.schema.names:
        return [None] * records.num_rows
    field = byte_strings_of(records.column(name), name)
    return [
        None if size < 0 else field.data[start : start + size].tobytes()
        for start, size in zip(field.starts.tolist(), field.sizes.tolist(), strict=True)
    ]
