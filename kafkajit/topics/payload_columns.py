"""Kernels: columns of keys and values of an internal topic → columns of JSON.

A payload of an unknown type or version is kept as base64; `structs.py` describes that JSON.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.format.decimal import write_decimal
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import WIDE
from kafkajit.storage.source import Bytes, Int64s, Mask
from kafkajit.topics.json_text import write_base64
from kafkajit.topics.kinds import NAME_AT, NAME_SIZE, UNKNOWN, VALUE
from kafkajit.topics.payloads import (
    NUMBER,
    ONLY_UNKNOWN,
    QUOTED_UNKNOWN,
    TYPE,
    UNKNOWN_DATA,
    VERSION,
    put_text,
    write_key,
    write_metadata,
    write_value,
)
from kafkajit.topics.primitives import read_int16, read_unsigned_varint, to_int16
from kafkajit.topics.status import (
    DONE,
    FULL,
    NEW_DOUBLE,
    NO_KEY,
    UNKNOWN_TYPE,
    UNKNOWN_VERSION,
)

# Added to the status if it is the value that failed.
OF_VALUE = 100

_ROOM = 192


class BinaryColumn(NamedTuple):
    """A binary column as kernels take it."""

    data: Bytes
    offsets: Int64s
    is_valid: Mask


class TextColumn(NamedTuple):
    """A column of text as kernels write it; `ends` begins with a 0."""

    data: Bytes
    ends: npt.NDArray[np.int32]
    is_valid: Mask


@kernel
def write_rows(tables, has_keys, key, value, lenient, key_text, value_text, is_good, row, k, v):
    """Write rows from `row` on: (status, row, ends of both columns of text).

    It returns when all rows are written, or before a row that needs Python's help.
    """
    keys, key_offsets, key_is_valid = key
    values, value_offsets, value_is_valid = value
    key_out, key_ends, key_is_there = key_text
    value_out, value_ends, value_is_there = value_text
    while row < value_is_valid.size:
        has_key = has_keys and key_is_valid[row]
        has_value = value_is_valid[row]
        status = np.int64(DONE)
        next_k, next_v = k, v
        type_id = np.int64(0)
        if has_key:
            p = key_offsets[row]
            size = key_offsets[row + 1] - p
            status, next_k = write_key(tables, keys, p, size, key_out, k)
            if status == UNKNOWN_TYPE:
                status, next_k = _write_unknown_key(keys, p, size, key_out, k)
            if status == DONE:
                type_id = read_int16(keys, p)
        elif has_keys and has_value:
            status = np.int64(NO_KEY)
        if status == DONE and has_value:
            p = value_offsets[row]
            size = value_offsets[row + 1] - p
            if not has_keys:
                status, next_v = write_metadata(tables, values, p, size, False, value_out, v)
                if status in (UNKNOWN_TYPE, UNKNOWN_VERSION):
                    status, next_v = _write_unknown_metadata(tables, values, p, size, value_out, v)
            elif _is_known(tables.types, type_id):
                status, next_v = write_value(tables, values, type_id, p, size, value_out, v)
                if status == UNKNOWN_VERSION:
                    status, next_v = _write_unknown_value(values, p, size, value_out, v)
            else:
                status, next_v = _write_unknown_value(values, p, size, value_out, v)
            if status != DONE:
                status += OF_VALUE
        if status != DONE:
            again = status % OF_VALUE in (FULL, NEW_DOUBLE)
            if again or not lenient:
                return status, row, k, v
            is_good[row] = False
            has_key, has_value, next_k, next_v = False, False, k, v
        k, v = next_k, next_v
        key_is_there[row] = has_key
        value_is_there[row] = has_value
        row += 1
        key_ends[row] = k
        value_ends[row] = v
    return np.int64(DONE), row, k, v


@kernel
def _is_known(types, type_id):
    return 0 <= type_id < types.shape[0] and types[type_id, VALUE] != UNKNOWN


@kernel
def _write_unknown_key(content, p, size, out, w):
    if w + size // 3 * 4 + _ROOM > out.size:
        return FULL, w
    w = write_decimal(out, put_text(out, w, TYPE), read_int16(content, p))
    return DONE, _write_bytes(content, p, size, out, put_text(out, w, QUOTED_UNKNOWN))


@kernel
def _write_unknown_value(content, p, size, out, w):
    if w + size // 3 * 4 + _ROOM > out.size:
        return FULL, w
    if size < 2:
        w = put_text(out, w, ONLY_UNKNOWN)
    else:
        w = write_decimal(out, put_text(out, w, VERSION), read_int16(content, p))
        w = put_text(out, w, QUOTED_UNKNOWN)
    return DONE, _write_bytes(content, p, size, out, w)


@kernel
def _write_unknown_metadata(tables, content, p, size, out, w):
    """Write a record of an unknown type or version; write_metadata has checked its frame."""
    texts, types = tables.texts, tables.types
    if w + size // 3 * 4 + _ROOM > out.size:
        return FULL, w
    _, at, _ = read_unsigned_varint(content, p, p + size)
    type_id, at, _ = read_unsigned_varint(content, at, p + size)
    version, _, _ = read_unsigned_varint(content, at, p + size)
    type_id, version = to_int16(type_id), to_int16(version)
    w = put_text(out, w, TYPE)
    if _is_known(types, type_id):
        name = np.int64(types[type_id, NAME_AT])
        for i in range(types[type_id, NAME_SIZE]):
            out[w] = texts[name + i]
            w += 1
    else:
        w = write_decimal(out, w, type_id)
    w = write_decimal(out, put_text(out, w, NUMBER), version)
    return DONE, _write_bytes(content, p, size, out, put_text(out, w, UNKNOWN_DATA))


@kernel
def _write_bytes(content, p, size, out, w):
    w = write_base64(content, p, size, out, w)
    out[w] = 0x7D
    return w + 1


assert WIDE < _ROOM
