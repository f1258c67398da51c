"""Arrow columns → Spark's VARIANT: a value of any type, row by row, in Parquet's binary encoding.

A value has a second part, the dictionary of the names in it. Without maps all rows have the same
one; the keys of a row's maps stand behind the names of fields. Types stay: a timestamp is a
TIMESTAMP, a decimal a DECIMAL. `parse_json` would find a string and a number of its own choice.

https://github.com/apache/parquet-format/blob/master/VariantEncoding.md
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import (
    WIDE,
    copy_bytes,
    read_little_endian,
    read_word,
    write_half_word,
    write_word,
)
from kafkajit.schema import VARIANT_TYPE
from kafkajit.values.steps import (
    AFTER,
    BOOL,
    BYTES,
    CLOSE,
    CODE,
    DATA,
    DECIMAL,
    FIELD,
    FRAME,
    INT,
    KEY,
    LIST,
    MAP,
    NEXT,
    NEXT_ENTRY,
    NULL,
    NUMBER,
    OFFSETS,
    SHIFT,
    STRING,
    STRUCT,
    Builder,
    as_longs,
    durations,
    is_null,
    java_order,
)

_ROWS = 16_384
_ROOM = 96
_MOST_BYTES = 2**31 - 1

# The two lowest bits of a value's first byte, and the types of primitive values.
_PRIMITIVE, _SHORT, _OBJECT, _ARRAY = range(4)
_TRUE, _FALSE, _INT4, _INT8, _DOUBLE = 1, 2, 5, 6, 7
_DECIMALS = {4: 8, 8: 9, 16: 10}
_DATE, _TIMESTAMP, _TIMESTAMP_NTZ, _FLOAT, _BINARY, _STRING = range(11, 17)
_MOST_SHORT = 63
# Sizes are four bytes each; bits of a first byte.
_OFFSETS_4, _IDS_4, _LARGE_OBJECT, _LARGE_ARRAY = 3 << 2, 3 << 4, 1 << 6, 1 << 4
_VERSION, _METADATA_4 = 1, 3 << 6


def variants(array: pa.Array) -> pa.Array:
    r"""Each row as a VARIANT; NULL if the row is NULL.

    >>> variants(pa.array([True, None])).to_pylist()
    [{'value': b'\x04', 'metadata': b'\xc1\x00\x00\x00\x00\x00\x00\x00\x00'}, None]
    """
    parts = [_variants(array.slice(first, _ROWS)) for first in range(0, len(array), _ROWS)]
    if sum(part.nbytes for part in parts) > _MOST_BYTES:
        raise ValueError(
            f"{len(array):,} values do not fit in an Arrow array ({_MOST_BYTES:,} bytes); put "
            "fewer into a batch: SET spark.sql.execution.arrow.maxRecordsPerBatch=1000"
        )
    return pa.concat_arrays(parts) if parts else pa.array([], VARIANT_TYPE)


def _variants(array: pa.Array) -> pa.Array:
    rows = len(array)
    builder = Builder(_leaf, is_sorted=True)
    builder.add(array)
    steps = builder.steps()
    names = sorted(set(builder.names), key=java_order)
    numbers = {name: number for number, name in enumerate(names)}
    ids = np.array([numbers[name] for name in builder.names], dtype=np.int64)
    offsets = np.zeros(rows + 1, dtype=np.int32)
    keys = np.zeros((builder.entries, 2), dtype=np.int64)
    key_ends = np.zeros(rows + 1, dtype=np.int64)
    out = np.empty(64 * rows + 2 * steps.content.size + _ROOM, dtype=np.uint8)
    row, size = 0, 0
    while True:
        row, size = _write_rows(
            *steps, ids, len(names), np.int64(row), out, np.int64(size), offsets, keys, key_ends
        )
        if row == rows:
            break
        wider = np.empty(2 * out.size, dtype=np.uint8)
        wider[:size] = out[:size]
        out = wider
    metadata = _metadata(names, rows, steps.content, keys, key_ends)
    values = pa.Array.from_buffers(
        pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(out[:size])]
    )
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays([values, metadata], fields=list(VARIANT_TYPE), mask=mask)


def _metadata(
    names: list[str],
    rows: int,
    content: npt.NDArray[np.uint8],
    keys: npt.NDArray[np.int64],
    key_ends: npt.NDArray[np.int64],
) -> pa.Array:
    """The dictionary of each row: the names of fields, and the keys of its maps."""
    texts = [name.encode() for name in names]
    fixed = np.frombuffer(b"".join(texts), dtype=np.uint8)
    ends = np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in texts], out=ends[1:])
    sizes = np.zeros(len(keys) + 1, dtype=np.int64)
    np.cumsum(keys[:, 1], out=sizes[1:])
    offsets = np.zeros(rows + 1, dtype=np.int64)
    plain = 1 + 4 * (len(names) + 2) + len(fixed)
    np.cumsum(plain + 4 * np.diff(key_ends) + np.diff(sizes[key_ends]), out=offsets[1:])
    if offsets[-1] > _MOST_BYTES:
        raise ValueError(f"the names in {rows:,} values have more than {_MOST_BYTES:,} bytes")
    out = np.empty(int(offsets[-1]) + WIDE, dtype=np.uint8)
    _write_metadata(fixed, ends, content, keys, key_ends, out, offsets)
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def _leaf(builder: Builder, array: pa.Array, base: int) -> None:
    types, type_ = pa.types, array.type
    if types.is_null(type_):
        builder.step(NULL, array, base)
    elif types.is_boolean(type_):
        builder.step(BOOL, array, base, data=builder.bits(array, 1))
    elif types.is_duration(type_):  # VARIANT has no intervals
        text = durations(array)
        builder.step(STRING, text, base, **builder.texts(text))
    elif types.is_decimal128(type_):
        width = 4 if type_.precision <= 9 else 8 if type_.precision <= 18 else 16
        number = _DECIMALS[width] | width << 8 | type_.scale << 16
        builder.step(DECIMAL, array, base, data=builder.longs(array, 16), number=number)
    elif type_ in (pa.string(), pa.binary()):
        code = STRING if type_ == pa.string() else BYTES
        builder.step(code, array, base, **builder.texts(array))
    else:
        id_ = _primitive(type_)
        array = as_longs(array)
        width = type_.bit_width // 8
        builder.step(INT, array, base, data=builder.longs(array), number=id_ | width << 8)


def _primitive(type_: pa.DataType) -> int:
    ids = {
        pa.int32(): _INT4,
        pa.int64(): _INT8,
        pa.float32(): _FLOAT,
        pa.float64(): _DOUBLE,
        pa.date32(): _DATE,
        pa.timestamp("us", tz="UTC"): _TIMESTAMP,
        pa.timestamp("us"): _TIMESTAMP_NTZ,
    }
    if type_ not in ids:
        raise TypeError(f"columns of the type {type_} cannot be written as VARIANT")
    return ids[type_]


@kernel
def _write_rows(steps, content, stack, ids, names, row, out, w, offsets, keys, key_ends):
    """Write rows until `out` is full: (the next row, the bytes written)."""
    while row < offsets.size - 1:
        after = _write_row(steps, content, stack, ids, names, row, out, w, keys, key_ends)
        if after < 0:
            break
        w = after
        row += 1
        offsets[row] = w
    return row, w


@kernel
def _write_row(steps, content, stack, ids, names, row, out, w, keys, key_ends):
    """Write a row and note its maps' keys: the position after it, or -1 if `out` has no room."""
    i, at, depth = np.int64(row), np.int64(0), np.int64(0)
    key_ends[row + 1] = key_ends[row]
    while at < steps.shape[0]:
        step = steps[at]
        code = step[CODE]
        if w + _ROOM > out.size:
            return np.int64(-1)
        k = i + step[SHIFT]
        top = (depth - 1) * FRAME
        if code == FIELD:
            _write_offset(out, stack[top], step[DATA], w - stack[top + 1])
            at += 1
        elif code < FIELD and (code == NULL or is_null(content, step, k)):
            out[w] = 0
            w += 1
            at = step[AFTER]
        elif code == STRUCT:
            count = step[NUMBER]
            if w + 8 * count + _ROOM > out.size:
                return np.int64(-1)
            w = _write_object(count, out, w)
            for j in range(count):
                _write_offset(out, w, j, ids[step[DATA] + j])
            top = depth * FRAME
            stack[top] = w + 4 * count
            w += 8 * count + 4
            stack[top + 1] = w
            depth += 1
            at += 1
        elif code == CLOSE:
            count = (stack[top + 1] - stack[top]) // 4 - 1
            _write_offset(out, stack[top], count, w - stack[top + 1])
            depth -= 1
            at += 1
        elif code in (LIST, MAP):
            first = read_little_endian(content, step[OFFSETS] + 4 * k, np.int64(4))
            end = read_little_endian(content, step[OFFSETS] + 4 * k + 4, np.int64(4))
            count = end - first
            if w + 8 * count + _ROOM > out.size:
                return np.int64(-1)
            if code == MAP:
                w = _write_object(count, out, w)
                _note_keys(content, steps[at + 1], first, end, keys, key_ends[row + 1])
                for j in range(count):
                    _write_offset(out, w, j, names + key_ends[row + 1] - key_ends[row] + j)
                key_ends[row + 1] += count
                w += 4 * count
            else:
                out[w] = _LARGE_ARRAY | _OFFSETS_4 | _ARRAY
                write_half_word(out, w + 1, count)
                w += 5
            if first == end:
                _write_offset(out, w, np.int64(0), np.int64(0))
                w += 4
                at = step[AFTER]
            else:
                top = depth * FRAME
                stack[top], stack[top + 1], stack[top + 2], stack[top + 3] = i, end, first, w
                _write_offset(out, w, np.int64(0), np.int64(0))
                w += 4 * count + 4
                depth += 1
                i = first
                at += 1
        elif code in (NEXT, NEXT_ENTRY):
            i += 1
            end, first, table = stack[top + 1], stack[top + 2], stack[top + 3]
            _write_offset(out, table, i - first, w - (table + 4 * (end - first) + 4))
            if i < end:
                at = step[NUMBER]
            else:
                depth -= 1
                i = stack[top]
                at += 1
        elif code == KEY:
            at += 1
        elif step[OFFSETS] >= 0:
            start = read_little_endian(content, step[OFFSETS] + 4 * k, np.int64(4))
            size = read_little_endian(content, step[OFFSETS] + 4 * k + 4, np.int64(4)) - start
            if w + size + _ROOM > out.size:
                return np.int64(-1)
            if code == STRING and size <= _MOST_SHORT:
                out[w] = size << 2 | _SHORT
                w += 1
            else:
                out[w] = (_STRING if code == STRING else _BINARY) << 2
                write_half_word(out, w + 1, size)
                w += 5
            copy_bytes(out, w, content, step[DATA] + start, size)
            w += size
            at += 1
        else:
            w = _write_number(content, code, step[DATA], k, step[NUMBER], out, w)
            at += 1
    return w


@kernel
def _write_offset(out, table, number, offset):
    write_half_word(out, np.int64(table + 4 * number), np.int64(offset))


@kernel
def _write_object(count, out, w):
    """Write an object's first byte and how many fields it has."""
    out[w] = _LARGE_OBJECT | _IDS_4 | _OFFSETS_4 | _OBJECT
    write_half_word(out, w + 1, count)
    return w + 5


@kernel
def _note_keys(content, step, first, end, keys, noted):
    """Note the places and sizes of a map's keys."""
    for i in range(first, end):
        k = i + step[SHIFT]
        start = read_little_endian(content, step[OFFSETS] + 4 * k, np.int64(4))
        stop = read_little_endian(content, step[OFFSETS] + 4 * k + 4, np.int64(4))
        keys[noted, 0], keys[noted, 1] = step[DATA] + start, stop - start
        noted += 1


@kernel
def _write_number(content, code, data, k, number, out, w):
    if code == BOOL:
        is_true = content[data + (k >> 3)] >> (k & 7) & 1 != 0
        out[w] = (_TRUE if is_true else _FALSE) << 2
        return w + 1
    out[w] = (number & 0xFF) << 2
    width = number >> 8 & 0xFF
    w += 1
    size = np.int64(8)
    if code == DECIMAL:
        out[w] = number >> 16
        w += 1
        size = np.int64(16)
        write_word(out, w + 8, np.uint64(read_word(content, data + size * k + 8)))
    write_word(out, w, np.uint64(read_word(content, data + size * k)))
    return w + width


@kernel
def _write_metadata(fixed, ends, content, keys, key_ends, out, offsets):
    names = ends.size - 1
    for row in range(offsets.size - 1):
        w = np.int64(offsets[row])
        first, end = key_ends[row], key_ends[row + 1]
        count = names + end - first
        out[w] = _METADATA_4 | _VERSION
        write_half_word(out, w + 1, count)
        table = w + 5
        w = table + 4 * (count + 1)
        for i in range(names + 1):
            _write_offset(out, table, i, ends[i])
        copy_bytes(out, w, fixed, np.int64(0), ends[names])
        size = np.int64(ends[names])
        for i in range(first, end):
            copy_bytes(out, w + size, content, keys[i, 0], keys[i, 1])
            size += keys[i, 1]
            _write_offset(out, table, names + 1 + i - first, size)
