"""Arrow columns → JSON, one line for each row.

| Arrow | JSON |
|---|---|
| numbers, decimals | a number with all its digits; NaN and infinities as strings |
| string; binary | a string; a string in base64 |
| date, time, timestamp | ISO 8601 with the digits of the unit, and Z if it is UTC |
| struct, map; list | an object; an array |

A kernel writes the text. Only numbers with a fraction are written by Arrow before.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.format.decimal import write_decimal
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import copy_bytes, read_little_endian, read_word
from kafkajit.topics.json_text import (
    MAX_JSON_GROWTH,
    write_base64,
    write_bool,
    write_json_string,
    write_null,
)
from kafkajit.values.steps import (
    AFTER,
    BOOL,
    BYTES,
    CLOSE,
    CODE,
    DATA,
    DATE,
    DECIMAL,
    FIELD,
    FLOAT,
    FRAME,
    INT,
    KEY,
    LIST,
    LOCAL_TIMESTAMP,
    MAP,
    NEXT,
    NEXT_ENTRY,
    NULL,
    NUMBER,
    OFFSETS,
    SHIFT,
    STRING,
    STRUCT,
    TIME,
    TIMESTAMP,
    Builder,
    as_longs,
    durations,
    fraction_digits,
    is_null,
)

_ROOM = 96  # for a step without the bytes of its array
_ROW = 64  # bytes of text to expect of each row
_ROWS = 16_384  # rows that are written at once: their columns stay in the cache
_SECONDS = 86_400
_COMMA, _QUOTE, _COLON, _DASH, _DOT, _ZERO = (ord(sign) for sign in ',":-.0')
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = (ord(sign) for sign in "{}[]")
_INFINITY = np.frombuffer(b'"-Infinity"' + bytes(32), dtype=np.uint8)
_NAN = np.frombuffer(b'"NaN"' + bytes(32), dtype=np.uint8)


class Lines(NamedTuple):
    """The text of rows, one behind the other, and where each begins and the last ends."""

    text: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]


def json_text(array: pa.Array) -> pa.Array:
    """The JSON of each row as text; NULL if the row is NULL.

    >>> json_text(pa.array([{"id": 1, "sku": "a"}, None])).to_pylist()
    ['{"id":1,"sku":"a"}', None]
    """
    lines = json_lines(array)
    mask = array.is_valid().buffers()[1] if array.null_count else None
    buffers = [mask, pa.py_buffer(lines.offsets), pa.py_buffer(lines.text)]
    return pa.Array.from_buffers(pa.large_string(), len(array), buffers)


def json_lines(array: pa.Array) -> Lines:
    """The JSON of each row; null if the row is NULL."""
    out = np.empty(_ROW * len(array) + _ROOM, dtype=np.uint8)
    offsets = np.zeros(len(array) + 1, dtype=np.int64)
    row, size = 0, 0
    for first in range(0, len(array), _ROWS):
        part = array.slice(first, _ROWS)
        builder = Builder(_leaf)
        builder.add(part)
        names = _names(builder)
        steps = builder.steps()
        while True:
            places = offsets[first : first + len(part) + 1]
            row, size = _write_rows(*steps, names, np.int64(row), out, np.int64(size), places)
            if row == len(part):
                row = 0
                break
            wider = np.empty(2 * out.size, dtype=np.uint8)
            wider[:size] = out[:size]
            out = wider
    return Lines(out[:size], offsets)


def _names(builder: Builder) -> npt.NDArray[np.int64]:
    """Put the fields' names as JSON behind the buffers: where each begins and the last ends."""
    names = [json.dumps(name, ensure_ascii=False).encode() + b":" for name in builder.names]
    ends = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum([len(name) for name in names], out=ends[1:])
    return ends + builder.place(np.frombuffer(b"".join(names), dtype=np.uint8))


def _leaf(builder: Builder, array: pa.Array, base: int) -> None:
    types, type_ = pa.types, array.type
    if types.is_null(type_):
        builder.step(NULL, array, base)
    elif types.is_boolean(type_):
        builder.step(BOOL, array, base, data=builder.bits(array, 1))
    elif types.is_uint64(type_):
        _text(builder, DECIMAL, array.cast(pa.string()), base, 0)
    elif types.is_integer(type_) or types.is_date32(type_):
        array = as_longs(array)
        code = DATE if types.is_date32(type_) else INT
        builder.step(code, array, base, data=builder.longs(array))
    elif types.is_floating(type_):
        _text(builder, FLOAT, array.cast(pa.string()), base)
    elif types.is_duration(type_):
        _text(builder, STRING, durations(array), base)
    elif types.is_decimal(type_):
        # Without a scale, all digits are written, and no exponent.
        whole = (pa.decimal128 if type_.bit_width == 128 else pa.decimal256)(type_.precision, 0)
        digits = pa.Array.from_buffers(whole, len(array), array.buffers(), offset=array.offset)
        _text(builder, DECIMAL, digits.cast(pa.string()), base, type_.scale)
    elif types.is_time(type_) or types.is_timestamp(type_):
        is_utc = types.is_timestamp(type_) and type_.tz is not None
        code = TIME if types.is_time(type_) else TIMESTAMP if is_utc else LOCAL_TIMESTAMP
        digits = fraction_digits(type_)
        array = as_longs(array)
        builder.step(code, array, base, data=builder.longs(array), number=digits)
    elif types.is_string(type_) or types.is_large_string(type_):
        _text(builder, STRING, array.cast(pa.string()), base)
    elif types.is_binary(type_) or types.is_large_binary(type_):
        _text(builder, BYTES, array.cast(pa.binary()), base)
    else:
        raise TypeError(f"columns of the type {type_} cannot be written as JSON")


def _text(builder: Builder, code: int, array: pa.Array, base: int, number: int = 0) -> None:
    builder.step(code, array, base, number=number, **builder.texts(array))


@kernel
def _write_rows(steps, content, stack, names, row, out, w, offsets):
    """Write rows until `out` is full: (the next row, the bytes written)."""
    while row < offsets.size - 1:
        after = _write_row(content, steps, stack, names, row, out, w)
        if after < 0:
            break
        w = after
        row += 1
        offsets[row] = w
    return row, w


@kernel
def _write_row(content, steps, stack, names, row, out, w):
    """Write a row: the position after it, or -1 if `out` has no room."""
    i, at, depth = np.int64(row), np.int64(0), np.int64(0)
    while at < steps.shape[0]:
        step = steps[at]
        code = step[CODE]
        if w + _ROOM > out.size:
            return np.int64(-1)
        k = i + step[SHIFT]
        if code == FIELD:
            name = names[step[NUMBER]]
            size = names[step[NUMBER] + 1] - name
            if w + size + _ROOM > out.size:
                return np.int64(-1)
            if step[DATA] > 0:
                out[w] = _COMMA
                w += 1
            copy_bytes(out, w, content, name, size)
            w += size
            at += 1
            continue
        if code < FIELD and (code == NULL or is_null(content, step, k)):
            w = write_null(out, w)
            at = step[AFTER]
            continue
        if code == STRUCT:
            out[w] = _OPEN
            w += 1
            at += 1
        elif code == CLOSE:
            out[w] = _CLOSE
            w += 1
            at += 1
        elif code in (LIST, MAP):
            out[w] = _OPEN if code == MAP else _OPEN_LIST
            w += 1
            first = read_little_endian(content, step[OFFSETS] + 4 * k, np.int64(4))
            end = read_little_endian(content, step[OFFSETS] + 4 * k + 4, np.int64(4))
            if first == end:
                out[w] = _CLOSE if code == MAP else _CLOSE_LIST
                w += 1
                at = step[AFTER]
            else:
                stack[depth * FRAME], stack[depth * FRAME + 1] = i, end
                depth += 1
                i = first
                at += 1
        elif code in (NEXT, NEXT_ENTRY):
            i += 1
            if i < stack[depth * FRAME - FRAME + 1]:
                out[w] = _COMMA
                at = step[NUMBER]
            else:
                depth -= 1
                i = stack[depth * FRAME]
                out[w] = _CLOSE if code == NEXT_ENTRY else _CLOSE_LIST
                at += 1
            w += 1
        elif step[OFFSETS] >= 0:
            start = read_little_endian(content, step[OFFSETS] + 4 * k, np.int64(4))
            size = read_little_endian(content, step[OFFSETS] + 4 * k + 4, np.int64(4)) - start
            if w + MAX_JSON_GROWTH * size + step[NUMBER] + _ROOM > out.size:
                return np.int64(-1)
            w = _write_text(content, code, step[DATA] + start, size, step[NUMBER], out, w)
            at += 1
        else:
            w = _write_number(content, code, step[DATA], k, step[NUMBER], out, w)
            at += 1
    return w


@kernel
def _write_text(content, code, p, size, number, out, w):
    """Write a string, bytes, or a number of which Arrow has written the digits."""
    if code == FLOAT:
        return _write_float(content, p, size, out, w)
    if code == DECIMAL:
        return _write_fixed(content, p, size, number, out, w)
    if code == BYTES:
        return write_base64(content, p, size, out, w)
    w = write_json_string(content, p, size, out, w)
    if code == KEY:
        out[w] = _COLON
        w += 1
    return w


@kernel
def _write_number(content, code, data, k, number, out, w):
    if code == BOOL:
        return write_bool(out, w, content[data + (k >> 3)] >> (k & 7) & 1 != 0)
    value = np.int64(read_word(content, data + 8 * k))
    if code == INT:
        return write_decimal(out, w, value)
    scale = np.int64(1)
    for _ in range(number):
        scale *= 10
    if code == TIME and (value < 0 or value >= _SECONDS * scale):
        return write_decimal(out, w, value)  # this is not a time of day
    out[w] = _QUOTE
    w += 1
    if code == DATE:
        w = _write_date(value, out, w)
    else:
        if code != TIME:
            days = value // (_SECONDS * scale)
            value -= days * _SECONDS * scale
            w = _write_date(days, out, w)
            out[w] = ord("T")
            w += 1
        w = _write_time(value, scale, number, out, w)
        if code == TIMESTAMP:
            out[w] = ord("Z")
            w += 1
    out[w] = _QUOTE
    return w + 1


@kernel
def _write_padded(value, digits, out, w):
    for i in range(digits):
        out[w + digits - 1 - i] = _ZERO + value % 10
        value //= 10
    return w + digits


@kernel
def _write_date(days, out, w):
    """Write a day since 1970 in the proleptic Gregorian calendar, as ISO 8601 does.

    Years begin in March here, so that a leap day is the last one of a year.
    """
    days += 719_468  # from 0000-03-01 to 1970-01-01
    era = days // 146_097
    day = days - era * 146_097
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    year += era * 400
    if month >= 10:
        year += 1
        month -= 12
    if year < 0 or year > 9999:
        out[w] = _DASH if year < 0 else ord("+")
        w += 1
        year = abs(year)
    is_long = year > 9999
    w = write_decimal(out, w, year) if is_long else _write_padded(year, np.int64(4), out, w)
    out[w] = _DASH
    w = _write_padded(month + 3, np.int64(2), out, w + 1)
    out[w] = _DASH
    return _write_padded(day + 1, np.int64(2), out, w + 1)


@kernel
def _write_time(value, scale, digits, out, w):
    """Write a time of day; `value` counts parts of a second."""
    seconds = value // scale
    w = _write_padded(seconds // 3600, np.int64(2), out, w)
    out[w] = _COLON
    w = _write_padded(seconds // 60 % 60, np.int64(2), out, w + 1)
    out[w] = _COLON
    w = _write_padded(seconds % 60, np.int64(2), out, w + 1)
    if digits > 0:
        out[w] = _DOT
        w = _write_padded(value - seconds * scale, digits, out, w + 1)
    return w


@kernel
def _write_float(content, p, size, out, w):
    """Write Arrow's text of a number as JSON; a whole one gets a fraction."""
    is_negative = content[p] == _DASH
    first = content[p + is_negative]
    if first == ord("n"):
        copy_bytes(out, w, _NAN, np.int64(0), np.int64(5))
        return w + 5
    if first == ord("i"):
        out[w] = _QUOTE
        skipped = np.int64(1 if is_negative else 2)
        copy_bytes(out, w + 1, _INFINITY, skipped, 11 - skipped)
        return w + 12 - skipped
    is_whole = True
    for i in range(size):
        sign = content[p + i]
        is_whole = is_whole and sign != _DOT and sign != ord("e")
        out[w + i] = sign
    w += size
    if is_whole:
        out[w] = _DOT
        out[w + 1] = _ZERO
        w += 2
    return w


@kernel
def _write_fixed(content, p, size, scale, out, w):
    """Write the digits of a decimal with its point."""
    if content[p] == _DASH:
        out[w] = _DASH
        w, p, size = w + 1, p + 1, size - 1
    whole = size - scale
    if whole <= 0:
        out[w] = _ZERO
        w += 1
    for i in range(min(whole, np.int64(0)), size):
        if i == whole or (whole <= 0 and i == min(whole, np.int64(0))):
            out[w] = _DOT
            w += 1
        out[w] = content[p + i] if i >= 0 else _ZERO
        w += 1
    return w
