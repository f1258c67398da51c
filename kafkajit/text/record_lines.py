"""Kernels that write the lines of records.

Answers to the loop over records in DumpLogSegments.dumpLog. JSON loses nothing: bytes that are not
UTF-8 are written as base64, and headers with their values.

`tables`, `messages`, `json` and `texts` are None if there is nothing of that kind to write: numba
then leaves their code out of the kernel. A None inside of a tuple would not be left out.
"""

from __future__ import annotations

import numpy as np

from kafkajit.format.decimal import write_decimal
from kafkajit.format.layout import (
    BATCH_LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MESSAGE_CRC_OFFSET,
)
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.message_checksum import crc32
from kafkajit.format.utf8 import MAX_GROWTH, sequence_size, write_string
from kafkajit.format.varint import read_varint
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import copy_bytes, read_int32, read_int64
from kafkajit.text import fragments
from kafkajit.text.fragments import put
from kafkajit.text.line_codes import (
    BAD_CONTROL_KEY,
    BAD_MARKER,
    BAD_MESSAGE,
    BY_PYTHON,
    BYTES,
    COORDINATOR,
    FLAG_CONTENTS,
    FLAG_FORM,
    FLAG_KEY_DECODER,
    FLAG_METADATA,
    FLAG_TOPIC,
    FLAG_VALUE_DECODER,
    INTEGER,
    LONG,
    METADATA,
    NO_KEY,
    NO_NUMBER,
    NO_TOPIC,
    PAYLOADS,
    PREPARED,
    RAFT_RECORD,
)
from kafkajit.topics.json_text import MAX_JSON_GROWTH, write_base64, write_json_string
from kafkajit.topics.payloads import write_key, write_metadata, write_value
from kafkajit.topics.primitives import read_int16
from kafkajit.topics.status import DONE, FULL, NEW_DOUBLE

# Room for a batch's line, or for a record's line without its key and value.
LINE_ROOM = 1024
# The most that bytes grow as text: in JSON a control character becomes six.
_GROWTH = max(MAX_GROWTH, MAX_JSON_GROWTH)

_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


@kernel
def put_number(out, w, name, value):
    """Write a field's name and its value."""
    return write_decimal(out, put(out, w, name), value)


@kernel
def put_timestamp_type(line, form, out, w):
    """Write a timestamp type, which is from -1 to 1."""
    name = fragments.TIMESTAMP_TYPE_NAMES + (line["timestampType"] + 3) % 3
    return put(out, put(out, w, form + fragments.TIMESTAMP_TYPE), form + name)


@kernel
def write_record(content, line, record, flags, tables, messages, json, texts, row, out, w):
    """Write a record's line: (status, the position after it).

    With FULL and NEW_DOUBLE, ignore what was written.
    """
    key_size, value_size = np.int64(record["keySize"]), np.int64(record["valueSize"])
    contents = flags[FLAG_CONTENTS] != 0 and line["isControl"] == 0
    is_whole = True
    if messages is not None:
        key, value = np.int64(record["key"]), np.int64(record["value"])
        is_whole = key >= 0 and value >= 0
        if not is_whole and flags[FLAG_METADATA] != 0:
            return BAD_MESSAGE, w
        # A null's size as it is stored: any negative number.
        if key >= 0:
            key_size = np.int64(read_int32(content, key - 4))
        if value >= 0:
            value_size = np.int64(read_int32(content, value - 4))
            end = _end_of_message(content, np.int64(record["headers"]))
            is_whole = is_whole and value + max(value_size, np.int64(0)) <= end
    room = LINE_ROOM
    topic, form = flags[FLAG_TOPIC], flags[FLAG_FORM]
    if contents and topic == NO_TOPIC and is_whole:
        room += (max(key_size, np.int64(0)) + max(value_size, np.int64(0))) * _GROWTH
        if texts is not None:
            room += texts[1][row + 1] - texts[1][row] + texts[3][row + 1] - texts[3][row]
    if w + room > out.size:
        return FULL, w

    w = put(out, w, form + fragments.RECORD)
    key_prefix = form + fragments.FIRST_KEY
    if flags[FLAG_METADATA] != 0:
        key_prefix = form + fragments.KEY
        w = put_number(out, w, form + fragments.RECORD_OFFSET, record["offset"])
        w = put_timestamp_type(line, form, out, w)
        w = put_number(out, w, form + fragments.TIMESTAMP, record["timestamp"])
        w = put_number(out, w, form + fragments.KEY_SIZE, key_size)
        w = put_number(out, w, form + fragments.VALUE_SIZE, value_size)
        if messages is not None:
            w = _write_message_checksum(content, np.int64(record["headers"]), form, out, w)
        else:
            w = put_number(out, w, form + fragments.SEQUENCE, _sequence(line, record))
            status, w = _write_headers(content, record, form, json, out, w, room - LINE_ROOM)
            if status != DONE:
                return status, w
        if line["isControl"] != 0:
            status, w = _write_control(content, record, form, out, w)
            if status != DONE:
                return status, w
    if contents:
        if not is_whole:
            # Kafka's decoders of internal topics catch the exception, and print its message.
            if tables is None or (topic == COORDINATOR and record["key"] < 0):
                return BAD_MESSAGE, w
            return (NO_KEY if topic == COORDINATOR and key_size < 0 else PAYLOADS), w
        if tables is None:
            status, w = _write_contents(
                content, record, key_size, value_size, key_prefix, flags, json, texts, row, out, w
            )
        else:
            status, w = _write_payloads(
                content,
                record,
                key_size,
                value_size,
                key_prefix,
                topic,
                form,
                tables,
                out,
                w,
            )
        if status != DONE:
            return status, w
    return DONE, put(out, w, form + fragments.END_OF_LINE)


@kernel
def _write_contents(
    content, record, key_size, value_size, key_prefix, flags, json, texts, row, out, w
):
    """Write key and value with their decoders.

    `texts` has the prepared texts of all rows: those of keys, where they begin, those of values.
    """
    key_decoder, value_decoder = flags[FLAG_KEY_DECODER], flags[FLAG_VALUE_DECODER]
    # Kafka decodes both before it prints either.
    if _too_short(key_size, key_decoder) or _too_short(value_size, value_decoder):
        return NO_NUMBER, w
    form = flags[FLAG_FORM]
    if key_size >= 0:
        w = put(out, w, key_prefix)
        if texts is not None and key_decoder == PREPARED:
            w = _write_prepared(texts[0], texts[1], row, out, w)
        else:
            key = np.int64(record["key"])
            w = _write_decoded(content, key, key_size, key_decoder, json, out, w)
    else:
        w = put(out, w, form + fragments.NO_KEY)
    if value_size >= 0:
        w = put(out, w, form + fragments.PAYLOAD)
        if texts is not None and value_decoder == PREPARED:
            w = _write_prepared(texts[2], texts[3], row, out, w)
        else:
            value = np.int64(record["value"])
            w = _write_decoded(content, value, value_size, value_decoder, json, out, w)
    else:
        w = put(out, w, form + fragments.NO_PAYLOAD)
    return DONE, w


@kernel
def _write_payloads(content, record, key_size, value_size, key_prefix, topic, form, tables, out, w):
    """Write an internal topic's key and value; w again if Python has to write the reason."""
    key, value = np.int64(record["key"]), np.int64(record["value"])
    if topic == BY_PYTHON:
        return PAYLOADS, w
    if topic == METADATA:
        if value_size < 0:
            return PAYLOADS, w
        after = put(out, w, form + fragments.PAYLOAD)
        # Not the literal True, for which numba would compile a kernel of its own.
        any_version = topic == METADATA
        status, after = write_metadata(tables, content, value, value_size, any_version, out, after)
        if status != DONE:
            return _payload_status(status), w
        return (FULL, w) if after + LINE_ROOM > out.size else (DONE, after)
    if key_size < 0:
        return NO_KEY, w
    after = put(out, w, key_prefix)
    status, after = write_key(tables, content, key, key_size, out, after)
    if status != DONE:
        return _payload_status(status), w
    if after + LINE_ROOM > out.size:
        return FULL, w
    after = put(out, after, form + fragments.PAYLOAD)
    if value_size < 0:
        return DONE, put(out, after, form + fragments.DELETE)
    type_id = read_int16(content, key)
    status, after = write_value(tables, content, type_id, value, value_size, out, after)
    if status != DONE:
        return _payload_status(status), w
    if after + LINE_ROOM > out.size:
        return FULL, w
    return DONE, after


@kernel
def _payload_status(status):
    return status if status in (FULL, NEW_DOUBLE) else PAYLOADS


@kernel
def _end_of_message(content, entry):
    return entry + LOG_OVERHEAD + np.int64(read_int32(content, entry + BATCH_LENGTH_OFFSET))


@kernel
def _write_message_checksum(content, entry, form, out, w):
    """Write whether a message's checksum is right, and the checksum; also inside a set."""
    end = _end_of_message(content, entry)
    stored = np.int64(read_int32(content, entry + MESSAGE_CRC_OFFSET)) & 0xFFFFFFFF
    computed = np.int64(crc32(content, entry + MAGIC_OFFSET, end))
    is_valid = 1 if stored == computed else 0
    w = put(out, put(out, w, form + fragments.MESSAGE_VALID), fragments.FALSE + is_valid)
    w = put_number(out, w, form + fragments.CRC, stored)
    return put(out, w, form + fragments.MESSAGE_END)


@kernel
def _sequence(line, record):
    """DefaultRecordBatch.incrementSequence, in Java's int."""
    base = line["baseSequence"]
    if base < 0:
        return np.int64(-1)
    delta = record["offset"] - line["baseOffset"]
    last_before_wrap = ((MAX_INT32 - delta) & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
    total = base + delta
    if base > last_before_wrap:
        total -= 2**31
    return ((total & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


@kernel
def _write_headers(content, record, form, json, out, w, reserved):
    """Write headers: only keys, as Java prints them, or with `json` all. Leave `reserved` bytes."""
    w = put(out, w, form + fragments.HEADERS)
    p = np.int64(record["headers"])
    for i in range(record["headersCount"]):
        key_size, key = read_varint(content, p, content.size)
        value_size, value = read_varint(content, key + key_size, content.size)
        p = value + max(value_size, np.int64(0))
        if w + (p - key) * _GROWTH + reserved + LINE_ROOM > out.size:
            return FULL, w
        if i > 0:
            w = put(out, w, fragments.COMMA)
        if json is None:
            w = write_string(content, key, key_size, out, w)
        else:
            w = put(out, w, form + fragments.HEADER)
            w = write_json_string(content, key, key_size, out, w)
            w = put(out, w, form + fragments.HEADER_VALUE)
            if value_size < 0:
                w = put(out, w, form + fragments.DELETE)
            else:
                w = _write_lossless(content, value, value_size, out, w)
            w = put(out, w, form + fragments.HEADER_END)
    return DONE, put(out, w, fragments.HEADERS_END)


@kernel
def _write_control(content, record, form, out, w):
    """Write what DumpLogSegments.printControlRecord prints of a marker."""
    key, key_size = np.int64(record["key"]), record["keySize"]
    value, value_size = np.int64(record["value"]), record["valueSize"]
    if key_size < 4 or content[key] >= 0x80:
        return BAD_CONTROL_KEY, w
    type_id = read_int32(content, key) & 0xFFFF
    if type_id <= 1:
        if value_size < 6 or content[value] >= 0x80:
            return BAD_MARKER, w
        w = put(out, put(out, w, form + fragments.MARKER), form + fragments.CONTROL_NAMES + type_id)
        epoch = read_int32(content, value + 2)
        return DONE, put_number(out, w, form + fragments.COORDINATOR_EPOCH, epoch)
    if type_id <= 6:
        return RAFT_RECORD, w
    w = put(out, put(out, w, form + fragments.CONTROL_TYPE), form + fragments.UNKNOWN)
    w = put_number(out, w, form + fragments.UNKNOWN_ID, (type_id ^ 0x8000) - 0x8000)
    return DONE, put(out, w, form + fragments.UNKNOWN_END)


@kernel
def _too_short(size, decoder):
    return size >= 0 and ((decoder == LONG and size < 8) or (decoder == INTEGER and size < 4))


@kernel
def _write_decoded(content, position, size, decoder, json, out, w):
    if decoder == LONG:
        return write_decimal(out, w, read_int64(content, position))
    if decoder == INTEGER:
        return write_decimal(out, w, read_int32(content, position))
    if decoder == BYTES:
        if json is not None:
            return _write_base64(content, position, size, out, w)
        for i in range(position, position + size):
            out[w] = _HEX[content[i] >> 4]
            out[w + 1] = _HEX[content[i] & 0xF]
            w += 2
        return w
    if json is not None:
        return _write_lossless(content, position, size, out, w)
    return write_string(content, position, size, out, w)


@kernel
def _write_prepared(text, offsets, row, out, w):
    start, size = offsets[row], offsets[row + 1] - offsets[row]
    copy_bytes(out, w, text, start, size)
    return w + size


@kernel
def _write_lossless(content, position, size, out, w):
    """Write bytes as a JSON string, or as base64 if they are not UTF-8."""
    p, end = position, position + size
    while p < end:
        step = np.int64(1)
        if content[p] >= 0x80:
            step = np.int64(sequence_size(content, p, end))
            if step <= 0:
                return _write_base64(content, position, size, out, w)
        p += step
    return write_json_string(content, position, size, out, w)


@kernel
def _write_base64(content, position, size, out, w):
    w = put(out, w, fragments.JSON + fragments.BASE64)
    w = write_base64(content, position, size, out, w)
    return put(out, w, fragments.JSON + fragments.BASE64_END)
