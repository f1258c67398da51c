"""Keys and values of internal topics → JSON as kafka-dump-log prints it, record by record.

Answers to the parsers of DumpLogSegments and the serdes that they call. Each kernel writes one
payload, or nothing: (status, where `out` goes on).
"""

from __future__ import annotations

import numpy as np

from kafkajit.format.decimal import write_decimal
from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import WIDE, copy_bytes, copy_wide
from kafkajit.topics.kinds import KEY, NAME_AT, NAME_SIZE, UNKNOWN, VALUE
from kafkajit.topics.message import (
    DONE,
    FULL,
    POSITION,
    read_int16,
    read_unsigned_varint,
    version_row,
    write_message,
)
from kafkajit.topics.programs import A, B

# Beside those of `format.message`:
NO_TYPE = 4  # a key without two bytes
UNKNOWN_TYPE = 5
NO_VERSION = 6  # a value without two bytes
UNKNOWN_VERSION = 7
BAD_FRAME = 8  # of a metadata record: one of the three numbers in front of it
GARBAGE = 9  # behind a metadata record

# Room for what is written around a message.
_ROOM = 192
_MAX_INT16 = 0x7FFF

# Texts around messages, and what stands in for a message that is not known.
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
def write_key(rows, texts, doubles, types, content, p, size, out, w, scratch):
    """Write a coordinator's key: its type and the message."""
    if size < 2:
        return NO_TYPE, w
    type_id = read_int16(content, p)
    if type_id < 0 or type_id >= types.shape[0] or types[type_id, VALUE] == UNKNOWN:
        return UNKNOWN_TYPE, w
    row = version_row(rows, np.int64(types[type_id, KEY]), np.int64(0))
    return _write_numbered(
        rows, texts, doubles, content, p + 2, p + size, row, TYPE, type_id, out, w, scratch
    )


@kernel
def write_value(rows, texts, doubles, types, content, type_id, p, size, out, w, scratch):
    """Write a coordinator's value, of a type that is known."""
    if size < 2:
        return NO_VERSION, w
    version = read_int16(content, p)
    message = np.int64(types[type_id, VALUE])
    if version < rows[message, A] or version > rows[message, B]:
        return UNKNOWN_VERSION, w
    row = version_row(rows, message, version)
    return _write_numbered(
        rows, texts, doubles, content, p + 2, p + size, row, VERSION, version, out, w, scratch
    )


@kernel
def _write_numbered(rows, texts, doubles, content, p, end, row, text, number, out, w, scratch):
    """Write a number, a type's or a version's, and the message behind it."""
    if w + _ROOM > out.size:
        return FULL, w
    after = write_decimal(out, put_text(out, w, text), number)
    after = put_text(out, after, DATA)
    status, after = write_message(rows, texts, doubles, content, p, end, row, out, after, scratch)
    if status != DONE:
        return status, w
    out[after] = 0x7D
    return DONE, after + 1


@kernel
def write_metadata(rows, texts, doubles, types, content, p, size, any_version, out, w, scratch):
    """Write a metadata record. Kafka's tool reads newer versions as the newest, `any_version`."""
    end = p + size
    frame, p, bad_frame = read_unsigned_varint(content, p, end)
    type_id, p, bad_type = read_unsigned_varint(content, p, end)
    version, p, bad_version = read_unsigned_varint(content, p, end)
    if max(bad_frame, bad_type, bad_version) >= 0 or max(frame, type_id, version) > _MAX_INT16:
        return BAD_FRAME, w
    # What does not fit is cut, as Java does with negative numbers.
    type_id, version = _int16(type_id), _int16(version)
    if _int16(frame) != 1:
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
    copy_bytes(out, after, texts, name, name_size)
    after = write_decimal(out, put_text(out, after + name_size, NUMBER), version)
    after = put_text(out, after, NUMBER_DATA)
    row = version_row(rows, message, version)
    status, after = write_message(rows, texts, doubles, content, p, end, row, out, after, scratch)
    if status != DONE:
        return status, w
    if scratch[POSITION] < end:
        return GARBAGE, w
    out[after] = 0x7D
    return DONE, after + 1


@inlined
def _int16(value):
    return ((value & 0xFFFF) ^ 0x8000) - 0x8000


@inlined
def put_text(out, w, text):
    """Write one of the texts, unchecked."""
    copy_wide(out, w, _PADDED, np.int64(text * WIDE))
    return w + _LENGTHS[text]
