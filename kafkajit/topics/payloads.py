"""Keys and values of internal topics → JSON as kafka-dump-log prints it, record by record.

Answers to the parsers of DumpLogSegments and the serdes that they call. Each kernel writes one
payload, or nothing if it fails: (status, position in `out` after it).
"""

from __future__ import annotations

import numpy as np

from kafkajit.format.decimal import write_decimal
from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import WIDE, copy_bytes, copy_wide
from kafkajit.topics.kinds import KEY, NAME_AT, NAME_SIZE, UNKNOWN, VALUE
from kafkajit.topics.message import POSITION, version_row, write_message
from kafkajit.topics.primitives import read_int16, read_unsigned_varint, to_int16
from kafkajit.topics.programs import A, B
from kafkajit.topics.status import (
    BAD_FRAME,
    DONE,
    FULL,
    GARBAGE,
    NO_TYPE,
    NO_VERSION,
    UNKNOWN_TYPE,
    UNKNOWN_VERSION,
)

# Room for the texts around a message.
_ROOM = 192
_MAX_INT16 = 2**15 - 1

# The texts around messages, and those that replace an unknown message.
TYPE, VERSION, NUMBER, DATA, NUMBER_DATA, ONLY_UNKNOWN, QUOTED_UNKNOWN, UNKNOWN_DATA = range(8)
_UNKNOWN = '"data":"unknown","bytes":'
_TEXTS = [
    text.encode()
    for text in (
        '{"type":"',
        '{"version":"',
        '","version":',
        '","data":',
        ',"data":',
        "{" + _UNKNOWN,
        '",' + _UNKNOWN,
        "," + _UNKNOWN,
    )
]
assert max(map(len, _TEXTS)) <= WIDE
_PADDED = np.frombuffer(b"".join(text.ljust(WIDE, b"\0") for text in _TEXTS), dtype=np.uint8)
_LENGTHS = np.array([len(text) for text in _TEXTS], dtype=np.int64)


@kernel
def write_key(tables, content, p, size, out, w):
    """Write a coordinator's key: its type and the message."""
    types = tables.types
    if size < 2:
        return NO_TYPE, w
    type_id = read_int16(content, p)
    if type_id < 0 or type_id >= types.shape[0] or types[type_id, VALUE] == UNKNOWN:
        return UNKNOWN_TYPE, w
    row = version_row(tables.rows, np.int64(types[type_id, KEY]), np.int64(0))
    return _write_numbered(tables, content, p + 2, p + size, row, TYPE, type_id, out, w)


@kernel
def write_value(tables, content, type_id, p, size, out, w):
    """Write a coordinator's value; the type must be known."""
    rows = tables.rows
    if size < 2:
        return NO_VERSION, w
    version = read_int16(content, p)
    message = np.int64(tables.types[type_id, VALUE])
    if version < rows[message, A] or version > rows[message, B]:
        return UNKNOWN_VERSION, w
    row = version_row(rows, message, version)
    return _write_numbered(tables, content, p + 2, p + size, row, VERSION, version, out, w)


@kernel
def _write_numbered(tables, content, p, end, row, text, number, out, w):
    """Write a number, which is a type or a version, and the message after it."""
    if w + _ROOM > out.size:
        return FULL, w
    after = write_decimal(out, put_text(out, w, text), number)
    after = put_text(out, after, DATA)
    status, after = write_message(tables, content, p, end, row, out, after)
    if status != DONE:
        return status, w
    out[after] = 0x7D
    return DONE, after + 1


@kernel
def write_metadata(tables, content, p, size, any_version, out, w):
    """Write a metadata record; with `any_version`, newer versions are read as the newest known.

    That is what Kafka's tool does.
    """
    rows, types = tables.rows, tables.types
    end = p + size
    frame, p, bad_frame = read_unsigned_varint(content, p, end)
    type_id, p, bad_type = read_unsigned_varint(content, p, end)
    version, p, bad_version = read_unsigned_varint(content, p, end)
    if max(bad_frame, bad_type, bad_version) >= 0 or max(frame, type_id, version) > _MAX_INT16:
        return BAD_FRAME, w
    # Cut the numbers to 16 bits, as Java does with negative ones.
    type_id, version = to_int16(type_id), to_int16(version)
    if to_int16(frame) != 1:
        return BAD_FRAME, w
    if type_id < 0 or type_id >= types.shape[0] or types[type_id, VALUE] == UNKNOWN:
        return UNKNOWN_TYPE, w
    message = np.int64(types[type_id, VALUE])
    if not any_version and (version < rows[message, A] or version > rows[message, B]):
        return UNKNOWN_VERSION, w
    if w + _ROOM > out.size:
        return FULL, w
    after = put_text(out, w, TYPE)
    name, name_size = np.int64(types[type_id, NAME_AT]), np.int64(types[type_id, NAME_SIZE])
    copy_bytes(out, after, tables.texts, name, name_size)
    after = write_decimal(out, put_text(out, after + name_size, NUMBER), version)
    after = put_text(out, after, NUMBER_DATA)
    row = version_row(rows, message, version)
    status, after = write_message(tables, content, p, end, row, out, after)
    if status != DONE:
        return status, w
    if tables.scratch[POSITION] < end:
        return GARBAGE, w
    out[after] = 0x7D
    return DONE, after + 1


@inlined
def put_text(out, w, text):
    """Write one of the texts, unchecked; the position after it."""
    copy_wide(out, w, _PADDED, np.int64(text * WIDE))
    return w + _LENGTHS[text]
