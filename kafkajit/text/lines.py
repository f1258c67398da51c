"""Kernels that write the lines of batches and records into an array of bytes.

Answers to DumpLogSegments.printBatchLevel and the loop over records in its dumpLog. `form` is 0 for
Kafka's words, and words.JSON for an object in each line. JSON loses nothing: what is no UTF-8 is
there in base64, and of headers the values too.

Of `records`, `rows` and what goes with them, `messages` and `json` each is None where there is no
such thing to write: numba leaves out of the kernel what it is for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.format.decimal import write_decimal
from kafkajit.format.layout import (
    BATCH_LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_V2,
    MESSAGE_CRC_OFFSET,
)
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.message_checksum import crc32
from kafkajit.format.utf8 import MAX_GROWTH, sequence_size, write_string
from kafkajit.format.varint import read_varint
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import read_int32, read_int64
from kafkajit.records.batches import Batches
from kafkajit.storage.source import Bytes
from kafkajit.text import fragments as words
from kafkajit.text.fragments import put
from kafkajit.topics.json_text import MAX_JSON_GROWTH, write_base64, write_json_string
from kafkajit.topics.message import DONE as READ
from kafkajit.topics.message import FULL as NO_ROOM
from kafkajit.topics.message import NEW_DOUBLE as UNKNOWN_DOUBLE
from kafkajit.topics.message import read_int16
from kafkajit.topics.payloads import write_key, write_metadata, write_value

# Room for all of a batch's line, or of a record's but for its keys and values.
LINE_ROOM = 1024
# What bytes become, at most: in JSON a control character is six.
_GROWTH = max(MAX_GROWTH, MAX_JSON_GROWTH)

# Why `write_lines` returns.
DONE = 0
FULL = 1
NO_NUMBER = 2  # a key or value too short for its decoder
BAD_CONTROL_KEY = 3
BAD_MARKER = 4
UNKNOWN_CODEC = 5
NO_KEY = 6
RAFT_RECORD = 7  # Python has to write the rest of its line
PAYLOADS = 8  # so it has, of an internal topic's record
NEW_DOUBLE = 9  # Python knows its text
BAD_MESSAGE = 10  # key and value of a message do not fit into it

# How keys and values are printed: Kafka's decoder classes.
STRING, LONG, INTEGER, BYTES = range(4)

# How the payloads of an internal topic are.
NO_TOPIC, COORDINATOR, METADATA, BY_PYTHON = range(4)

# Places in `flags`.
(
    FLAG_CONTENTS,
    FLAG_METADATA,
    FLAG_KEY_DECODER,
    FLAG_VALUE_DECODER,
    FLAG_TOPIC,
    FLAG_FORM,
) = range(6)
FLAGS = 6

_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)

# A batch's line as numbers.
_LINE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "baseOffset",
            "lastOffset",
            "recordsCount",
            "baseSequence",
            "lastSequence",
            "producerId",
            "producerEpoch",
            "partitionLeaderEpoch",
            "isTransactional",
            "isControl",
            "hasHorizon",
            "baseTimestamp",
            "position",
            "timestampType",
            "maxTimestamp",
            "size",
            "magic",
            "codec",
            "crc",
            "isValid",
        )
    ]
)


def batch_lines(batches: Batches, content: Bytes) -> npt.NDArray[np.void]:
    """What is printed of batches, as numbers."""
    lines = np.zeros(len(batches), dtype=_LINE)
    for name in (
        "baseOffset",
        "recordsCount",
        "baseSequence",
        "producerId",
        "producerEpoch",
        "partitionLeaderEpoch",
        "baseTimestamp",
        "maxTimestamp",
        "magic",
        "crc",
    ):
        lines[name] = batches.field(name)
    lines["lastOffset"] = batches.last_offset
    lines["lastSequence"] = batches.last_sequence
    lines["isTransactional"] = batches.is_transactional
    lines["isControl"] = batches.is_control
    lines["hasHorizon"] = batches.has_delete_horizon
    lines["position"] = batches.position
    lines["timestampType"] = batches.timestamp_type
    lines["size"] = batches.size_in_bytes
    lines["codec"] = batches.codec
    lines["isValid"] = batches.is_valid(content)
    return lines


@kernel
def write_lines(
    content,
    lines,
    counts,
    records,
    flags,
    rows,
    texts,
    types,
    doubles,
    scratch,
    messages,
    json,
    out,
    batch,
    record,
    row,
):
    """Write on from a batch (record -1 is its own line) until all is written or `out` is full.

    (status, batch, record, row, bytes written); a line that fails is written up to where it does.
    """
    w = np.int64(0)
    while batch < lines.size:
        if record < 0:
            if w + LINE_ROOM > out.size:
                return FULL, batch, record, row, w
            status, w = _write_batch(lines[batch], flags[FLAG_FORM], out, w)
            if status != DONE:
                return status, batch, record, row, w
            record = np.int64(0)
        if records is not None:
            while record < counts[batch]:
                status, after = _write_record(
                    content,
                    lines[batch],
                    records[row],
                    flags,
                    rows,
                    texts,
                    types,
                    doubles,
                    scratch,
                    messages,
                    json,
                    out,
                    w,
                )
                if status in (FULL, NEW_DOUBLE):
                    return status, batch, record, row, w
                w = after
                if status != DONE:
                    return status, batch, record, row, w
                record += 1
                row += 1
        batch += 1
        record = np.int64(-1)
    return DONE, batch, record, row, w


@kernel
def _put_number(out, w, text, value):
    """A field's name and its value."""
    return write_decimal(out, put(out, w, text), value)


@kernel
def _write_batch(line, form, out, w):
    """One line, at most LINE_ROOM bytes: (status, where it ends)."""
    w = put(out, w, form + words.BATCH)
    if line["magic"] < MAGIC_V2:
        w = _put_number(out, w, form + words.MESSAGE_OFFSET, line["lastOffset"])
        return _write_rest_of_batch(line, form, out, w)
    w = _put_number(out, w, form + words.BASE_OFFSET, line["baseOffset"])
    w = _put_number(out, w, form + words.LAST_OFFSET, line["lastOffset"])
    w = _put_number(out, w, form + words.COUNT, line["recordsCount"])
    w = _put_number(out, w, form + words.BASE_SEQUENCE, line["baseSequence"])
    w = _put_number(out, w, form + words.LAST_SEQUENCE, line["lastSequence"])
    w = _put_number(out, w, form + words.PRODUCER_ID, line["producerId"])
    w = _put_number(out, w, form + words.PRODUCER_EPOCH, line["producerEpoch"])
    w = _put_number(out, w, form + words.LEADER_EPOCH, line["partitionLeaderEpoch"])
    w = put(out, put(out, w, form + words.TRANSACTIONAL), words.FALSE + line["isTransactional"])
    w = put(out, put(out, w, form + words.CONTROL), words.FALSE + line["isControl"])
    w = put(out, w, form + words.HORIZON)
    if line["hasHorizon"] != 0:
        w = _put_number(out, w, form + words.HORIZON_OPEN, line["baseTimestamp"])
        w = put(out, w, form + words.HORIZON_CLOSE)
    else:
        w = put(out, w, form + words.NO_HORIZON)
    return _write_rest_of_batch(line, form, out, w)


@kernel
def _write_rest_of_batch(line, form, out, w):
    """What is printed of all formats."""
    if line["codec"] > 4:
        return UNKNOWN_CODEC, w
    w = _put_number(out, w, form + words.POSITION, line["position"])
    w = _put_timestamp_type(line, form, out, w)
    w = _put_number(out, w, form + words.LARGEST, line["maxTimestamp"])
    w = _put_number(out, w, form + words.SIZE, line["size"])
    w = _put_number(out, w, form + words.MAGIC, line["magic"])
    w = put(out, put(out, w, form + words.CODEC), form + words.CODEC_NAMES + line["codec"])
    w = _put_number(out, w, form + words.CRC, line["crc"])
    w = put(out, put(out, w, form + words.VALID), words.FALSE + line["isValid"])
    return DONE, put(out, w, form + words.END_OF_LINE)


@kernel
def _write_record(
    content,
    line,
    record,
    flags,
    rows,
    texts,
    types,
    doubles,
    scratch,
    messages,
    json,
    out,
    w,
):
    """One line: (status, where it ends). Nothing counts of FULL and NEW_DOUBLE."""
    key_size, value_size = np.int64(record["keySize"]), np.int64(record["valueSize"])
    contents = flags[FLAG_CONTENTS] != 0 and line["isControl"] == 0
    is_whole = True
    if messages is not None:
        key, value = np.int64(record["key"]), np.int64(record["value"])
        is_whole = key >= 0 and value >= 0
        if not is_whole and flags[FLAG_METADATA] != 0:
            return BAD_MESSAGE, w
        # A null's size as it stands there: any negative one.
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
    if w + room > out.size:
        return FULL, w

    w = put(out, w, form + words.RECORD)
    key_prefix = form + words.FIRST_KEY
    if flags[FLAG_METADATA] != 0:
        key_prefix = form + words.KEY
        w = _put_number(out, w, form + words.RECORD_OFFSET, record["offset"])
        w = _put_timestamp_type(line, form, out, w)
        w = _put_number(out, w, form + words.TIMESTAMP, record["timestamp"])
        w = _put_number(out, w, form + words.KEY_SIZE, key_size)
        w = _put_number(out, w, form + words.VALUE_SIZE, value_size)
        if messages is not None:
            w = _write_message_checksum(content, np.int64(record["headers"]), form, out, w)
        else:
            w = _put_number(out, w, form + words.SEQUENCE, _sequence(line, record))
            status, w = _write_headers(content, record, form, json, out, w, room - LINE_ROOM)
            if status != DONE:
                return status, w
        if line["isControl"] != 0:
            status, w = _write_control(content, record, form, out, w)
            if status != DONE:
                return status, w
    if contents:
        if not is_whole:
            # Of an internal topic's records Kafka catches what it throws at that, and prints it.
            if rows is None or (topic == COORDINATOR and record["key"] < 0):
                return BAD_MESSAGE, w
            return (NO_KEY if topic == COORDINATOR and key_size < 0 else PAYLOADS), w
        if rows is None:
            status, w = _write_contents(
                content, record, key_size, value_size, key_prefix, flags, json, out, w
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
                rows,
                texts,
                types,
                doubles,
                scratch,
                out,
                w,
            )
        if status != DONE:
            return status, w
    return DONE, put(out, w, form + words.END_OF_LINE)


@kernel
def _write_contents(content, record, key_size, value_size, key_prefix, flags, json, out, w):
    """Key and value by their decoders."""
    key_decoder, value_decoder = flags[FLAG_KEY_DECODER], flags[FLAG_VALUE_DECODER]
    # Kafka decodes both before it prints either.
    if _too_short(key_size, key_decoder) or _too_short(value_size, value_decoder):
        return NO_NUMBER, w
    form = flags[FLAG_FORM]
    if key_size >= 0:
        w = put(out, w, key_prefix)
        w = _write_decoded(content, np.int64(record["key"]), key_size, key_decoder, json, out, w)
    else:
        w = put(out, w, form + words.NO_KEY)
    if value_size >= 0:
        w = put(out, w, form + words.PAYLOAD)
        value = np.int64(record["value"])
        w = _write_decoded(content, value, value_size, value_decoder, json, out, w)
    else:
        w = put(out, w, form + words.NO_PAYLOAD)
    return DONE, w


@kernel
def _write_payloads(
    content,
    record,
    key_size,
    value_size,
    key_prefix,
    topic,
    form,
    rows,
    texts,
    types,
    doubles,
    scratch,
    out,
    w,
):
    """What an internal topic's key and value are; w again where Python has to say why not."""
    key, value = np.int64(record["key"]), np.int64(record["value"])
    if topic == BY_PYTHON:
        return PAYLOADS, w
    if topic == METADATA:
        if value_size < 0:
            return PAYLOADS, w
        after = put(out, w, form + words.PAYLOAD)
        # Whether any version is read is said by a number that is not a constant: of those numba
        # would make a kernel of its own.
        any_version = topic == METADATA
        status, after = write_metadata(
            rows,
            texts,
            doubles,
            types,
            content,
            value,
            value_size,
            any_version,
            out,
            after,
            scratch,
        )
        if status != READ:
            return _payload_status(status), w
        return (FULL, w) if after + LINE_ROOM > out.size else (DONE, after)
    if key_size < 0:
        return NO_KEY, w
    after = put(out, w, key_prefix)
    status, after = write_key(
        rows, texts, doubles, types, content, key, key_size, out, after, scratch
    )
    if status != READ:
        return _payload_status(status), w
    if after + LINE_ROOM > out.size:
        return FULL, w
    after = put(out, after, form + words.PAYLOAD)
    if value_size < 0:
        return DONE, put(out, after, form + words.DELETE)
    type_id = read_int16(content, key)
    status, after = write_value(
        rows, texts, doubles, types, content, type_id, value, value_size, out, after, scratch
    )
    if status != READ:
        return _payload_status(status), w
    if after + LINE_ROOM > out.size:
        return FULL, w
    return DONE, after


@kernel
def _payload_status(status):
    if status == NO_ROOM:
        return FULL
    return NEW_DOUBLE if status == UNKNOWN_DOUBLE else PAYLOADS


@kernel
def _put_timestamp_type(line, form, out, w):
    """A type from -1 to 1."""
    name = words.TIMESTAMP_TYPE_NAMES + (line["timestampType"] + 3) % 3
    return put(out, put(out, w, form + words.TIMESTAMP_TYPE), form + name)


@kernel
def _end_of_message(content, entry):
    return entry + LOG_OVERHEAD + np.int64(read_int32(content, entry + BATCH_LENGTH_OFFSET))


@kernel
def _write_message_checksum(content, entry, form, out, w):
    """Whether the checksum of a message holds, inside a set too, and what it is."""
    end = _end_of_message(content, entry)
    stored = np.int64(read_int32(content, entry + MESSAGE_CRC_OFFSET)) & 0xFFFFFFFF
    computed = np.int64(crc32(content, entry + MAGIC_OFFSET, end))
    is_valid = 1 if stored == computed else 0
    w = put(out, put(out, w, form + words.MESSAGE_VALID), words.FALSE + is_valid)
    w = _put_number(out, w, form + words.CRC, stored)
    return put(out, w, form + words.MESSAGE_END)


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
    """Headers; their keys only, as Java prints them, or whole. `reserved` bytes are spoken for."""
    w = put(out, w, form + words.HEADERS)
    p = np.int64(record["headers"])
    for i in range(record["headersCount"]):
        key_size, key = read_varint(content, p, content.size)
        value_size, value = read_varint(content, key + key_size, content.size)
        p = value + max(value_size, np.int64(0))
        if w + (p - key) * _GROWTH + reserved + LINE_ROOM > out.size:
            return FULL, w
        if i > 0:
            w = put(out, w, words.COMMA)
        if json is None:
            w = write_string(content, key, key_size, out, w)
        else:
            w = put(out, w, form + words.HEADER)
            w = write_json_string(content, key, key_size, out, w)
            w = put(out, w, form + words.HEADER_VALUE)
            if value_size < 0:
                w = put(out, w, form + words.DELETE)
            else:
                w = _write_lossless(content, value, value_size, out, w)
            w = put(out, w, form + words.HEADER_END)
    return DONE, put(out, w, words.HEADERS_END)


@kernel
def _write_control(content, record, form, out, w):
    """What DumpLogSegments.printControlRecord says of a marker."""
    key, key_size = np.int64(record["key"]), record["keySize"]
    value, value_size = np.int64(record["value"]), record["valueSize"]
    if key_size < 4 or content[key] >= 0x80:
        return BAD_CONTROL_KEY, w
    type_id = read_int32(content, key) & 0xFFFF
    if type_id <= 1:
        if value_size < 6 or content[value] >= 0x80:
            return BAD_MARKER, w
        w = put(out, put(out, w, form + words.MARKER), form + words.CONTROL_NAMES + type_id)
        epoch = read_int32(content, value + 2)
        return DONE, _put_number(out, w, form + words.COORDINATOR_EPOCH, epoch)
    if type_id <= 6:
        return RAFT_RECORD, w
    w = put(out, put(out, w, form + words.CONTROL_TYPE), form + words.UNKNOWN)
    w = _put_number(out, w, form + words.UNKNOWN_ID, (type_id ^ 0x8000) - 0x8000)
    return DONE, put(out, w, form + words.UNKNOWN_END)


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
def _write_lossless(content, position, size, out, w):
    """Bytes as a string of JSON, or what that would not give back in base64."""
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
    w = put(out, w, words.JSON + words.BASE64)
    w = write_base64(content, position, size, out, w)
    return put(out, w, words.JSON + words.BASE64_END)
