"""Kafka's own messages (its generated protocol classes): bytes and a program → JSON.

Answers to the read methods of those classes, which decide what is malformed and in which order it
is found, and to their JsonConverters. One kernel reads every message by rows that `programs.py`
made of their schemas.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from kafkajit.errors import InvalidRecordError
from kafkajit.format.decimal import write_decimal
from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import WIDE, copy_wide, read_int32, read_int64
from kafkajit.topics.json_text import (
    MAX_JSON_GROWTH,
    learn_double,
    new_doubles,
    write_base64,
    write_double,
    write_json_string,
    write_uuid,
)
from kafkajit.topics.programs import (
    ARRAY,
    ARRAY_END,
    BOOL,
    BYTES,
    CODE,
    CONSTANT,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    LOOK_AHEAD,
    NAME,
    NUMBER_SIZES,
    STRING,
    STRUCT,
    STRUCT_END,
    TAGGED,
    TAGGED_END,
    TAGS,
    TEXT,
    TEXT_SIZE,
    TOO_NEW,
    UINT16,
    UUID,
    A,
    B,
    C,
    Programs,
    written_program,
)

# What the kernel returns.
DONE = 0
FULL = 1  # more room, and once more from the start
MALFORMED = 2  # what and where is in the scratch memory
NEW_DOUBLE = 3  # the table lacks the double whose bits are in the scratch memory

# The scratch memory: what is wrong, or the double.
REASON, POSITION, FIELD, NUMBER, LIMIT = range(5)
_SLOTS = 5

# Reasons, with what Java's exceptions say of them.
UNDERFLOW = 0
VARINT = 1
NULL = 2
STRING_SIZE = 3
BYTES_SIZE = 4
COUNT = 5
NEGATIVE_SIZE = 6
WRONG_TAG = 7
NEWER = 8
DEPTH = 9
_JAVA_TEXTS = {
    UNDERFLOW: "null",  # a BufferUnderflowException has no message
    VARINT: "Varint is too long, the most significant bit in the 5th byte is set, "
    "converted value: {number:x}",
    NULL: "non-nullable field {field} was serialized as null",
    STRING_SIZE: "string field {field} had invalid length {number}",
    BYTES_SIZE: "Error reading byte array of {number} byte(s): only {limit} byte(s) available",
    COUNT: "Tried to allocate a collection of size {number}, but there are only {limit} "
    "bytes remaining.",
    NEGATIVE_SIZE: "{number}",
    WRONG_TAG: "Tag {number} is not valid for version {version}",
    NEWER: "Can't read version {version} of {field}",
    DEPTH: "too deep",
}
# The same for people, where Java's says little.
_TEXTS = _JAVA_TEXTS | {
    UNDERFLOW: "the payload ends too early",
    NEGATIVE_SIZE: "a tagged field has a negative size: {number}",
    NEWER: "field {field} is of a newer version: {version}",
}

# Kinds of frames on the stack, and what else is in one.
_OF_STRUCT, _OF_ARRAY, _OF_TAGS, _OF_TAGGED, _OF_HELD = range(5)
_KIND, _START, _WRITTEN, _STATE, _REST = range(5)
_FRAME = 5
# Of a struct that is read twice.
_ONCE, _FIRST, _SECOND = range(3)

# Room for what a row writes beside strings and bytes: its text, a number, brackets.
_ROOM = 192


def new_scratch(programs: Programs) -> npt.NDArray[np.int64]:
    """Memory for the kernel: what it reports, slots of tags, and its stack."""
    # A frame each for structs and arrays; tags and held messages need some more.
    size = _SLOTS + programs.slots + _FRAME * (2 * programs.depth + 8)
    return np.zeros(size, dtype=np.int64)


def java_complaint(programs: Programs, scratch: npt.NDArray[np.int64], version: int) -> str:
    """What the message of Java's exception says of a malformed message."""
    return _complaint(_JAVA_TEXTS, programs, scratch, version)


def complaint(programs: Programs, scratch: npt.NDArray[np.int64], version: int) -> str:
    """What is wrong with a malformed message."""
    return _complaint(_TEXTS, programs, scratch, version)


def _complaint(
    texts: dict[int, str], programs: Programs, scratch: npt.NDArray[np.int64], version: int
) -> str:
    return texts[int(scratch[REASON])].format(
        field=programs.names[int(scratch[FIELD])],
        number=int(scratch[NUMBER]),
        limit=int(scratch[LIMIT]),
        version=version,
    )


def raft_json(type_id: int, value: bytes) -> str:
    """One of Raft's control records, always read as version 0, as kafka-dump-log prints it.

    >>> raft_json(5, bytes([0, 0, 0, 1, 0]))
    '{"version":0,"kRaftVersion":1}'
    """
    written = struct.unpack_from(">h", value)[0] if len(value) >= 2 else 0
    programs = written_program("control_record", type_id, written)
    scratch = new_scratch(programs)
    content = np.frombuffer(value, dtype=np.uint8)
    out = np.empty(1024, dtype=np.uint8)
    (row,) = programs.messages.values()
    while True:
        status, end = write_message(
            programs.rows,
            programs.texts,
            new_doubles(),
            content,
            0,
            content.size,
            version_row(programs.rows, row, 0),
            out,
            0,
            scratch,
        )
        if status != FULL:
            break
        out = np.empty(4 * out.size, dtype=np.uint8)
    if status == MALFORMED:
        reason = complaint(programs, scratch, 0)
        raise InvalidRecordError(f"Message is cut or malformed ({reason})")
    return out[:end].tobytes().decode()


def learn(doubles: npt.NDArray[np.uint8], scratch: npt.NDArray[np.int64]) -> None:
    """Put the double into the table that the kernel could not find there."""
    learn_double(doubles, int(scratch[NUMBER]))


@kernel
def version_row(rows, message, version):
    """The row where a version's program begins; one for all versions that are too new."""
    lowest, highest = np.int64(rows[message, A]), np.int64(rows[message, B])
    return np.int64(rows[message + 1 + min(max(version, lowest), highest + 1) - lowest, A])


@kernel
def write_message(rows, texts, doubles, content, p, end, row, out, w, scratch):
    """Write the JSON of the message in content[p:end] by the program that begins at `row`.

    (status, where `out` goes on), which is w again unless all went well. Bytes behind the message
    are no error here; scratch[POSITION] says where it ended.
    """
    start = w
    limit = out.size - WIDE
    stack = np.int64(scratch.size)  # frames grow downwards
    bottom = _SLOTS
    aloud = True
    selected = False
    unknown = np.int64(0)  # tags that the schema does not know
    row = np.int64(row)
    while True:
        code = rows[row, CODE]
        reason = np.int64(-1)
        number, most = np.int64(0), np.int64(0)
        if aloud:
            if w + _ROOM > limit:
                return FULL, start
            size = np.int64(rows[row, TEXT_SIZE])
            if size > 0:
                at = np.int64(rows[row, TEXT])
                copy_wide(out, w, texts, at)
                if size > WIDE:
                    copy_wide(out, w + WIDE, texts, at + WIDE)
                w += size
        if code <= INT64:
            wide = np.int64(NUMBER_SIZES[code])
            if p + wide > end:
                reason = np.int64(UNDERFLOW)
            else:
                if aloud:
                    if code == INT32:
                        number = read_int32(content, p)
                    elif code == INT64:
                        number = read_int64(content, p)
                    elif code == INT8:
                        number = (np.int64(content[p]) ^ 0x80) - 0x80
                    else:
                        number = read_int16(content, p)
                        if code == UINT16:
                            number &= 0xFFFF
                    w = write_decimal(out, w, number)
                    number = np.int64(0)
                p += wide
                row += 1
        elif code in (STRING, BYTES):
            size, p, reason, number = _read_size(content, p, end, rows[row, A], code)
            if reason < 0 and size < 0:
                if rows[row, B] == 0:
                    reason = np.int64(NULL)
                elif aloud:
                    w = _write_null(out, w)
            elif reason < 0 and code == STRING and size > 0x7FFF:
                reason, number = np.int64(STRING_SIZE), size
            elif reason < 0 and size > end - p:
                reason, number, most = np.int64(BYTES_SIZE), size, end - p
            elif reason < 0 and code == STRING:
                if aloud:
                    if w + size * MAX_JSON_GROWTH + _ROOM > limit:
                        return FULL, start
                    w = write_json_string(content, p, size, out, w)
                if rows[row, C] != 0:
                    selected = _is_consumer(content, p, size)
                p += size
            elif reason < 0 and aloud and selected and rows[row, C] >= 0 and size >= 2:
                # A message of its own, if it can be read; its version stands in front.
                if stack - _FRAME < bottom:
                    reason = np.int64(DEPTH)
                else:
                    stack -= _FRAME
                    scratch[stack + _KIND] = _OF_HELD
                    scratch[stack + _START] = p
                    scratch[stack + _WRITTEN] = w
                    scratch[stack + _STATE] = row
                    scratch[stack + _REST] = end
                    end = p + size
                    row = version_row(rows, np.int64(rows[row, C]), read_int16(content, p))
                    p += 2
                    continue
            elif reason < 0:
                if aloud:
                    if w + size // 3 * 4 + _ROOM > limit:
                        return FULL, start
                    w = write_base64(content, p, size, out, w)
                p += size
            if reason < 0:
                row += 1
        elif code == STRUCT:
            is_null = False
            if rows[row, B] == 1:
                if p >= end:
                    reason = np.int64(UNDERFLOW)
                else:
                    is_null = content[p] >= 0x80
                    p += 1
            elif rows[row, B] == 2:
                number, p, reason = read_unsigned_varint(content, p, end)
                is_null = reason < 0 and number <= 0
            if reason < 0 and stack - _FRAME < bottom:
                reason = np.int64(DEPTH)
            elif reason < 0 and is_null:
                if aloud:
                    w = _write_null(out, w)
                row = np.int64(rows[row, C])
            elif reason < 0:
                stack -= _FRAME
                scratch[stack + _KIND] = _OF_STRUCT
                scratch[stack + _START] = p
                scratch[stack + _WRITTEN] = w
                scratch[stack + _STATE] = _ONCE
                scratch[stack + _REST] = row + 1
                if aloud and rows[row, A] == LOOK_AHEAD:
                    scratch[stack + _STATE] = _FIRST
                    aloud = False
                row += 1
        elif code == STRUCT_END:
            if aloud:
                first = scratch[stack + _WRITTEN]
                if w == first:
                    w += 1
                out[first] = 0x7B  # in place of a comma
                out[w] = 0x7D
                w += 1
            stack += _FRAME
            row += 1
        elif code == ARRAY:
            number, p, reason, most = _read_size(content, p, end, rows[row, A], code)
            if reason >= 0:
                number = most
            elif number < 0:
                if rows[row, B] == 0:
                    reason = np.int64(NULL)
                else:
                    if aloud:
                        w = _write_null(out, w)
                    row = np.int64(rows[row, C])
            elif number > end - p:
                reason, most = np.int64(COUNT), end - p
            elif stack - _FRAME < bottom:
                reason = np.int64(DEPTH)
            elif number == 0:
                if aloud:
                    out[w] = 0x5B
                    out[w + 1] = 0x5D
                    w += 2
                row = np.int64(rows[row, C])
            else:
                stack -= _FRAME
                scratch[stack + _KIND] = _OF_ARRAY
                scratch[stack + _WRITTEN] = w
                scratch[stack + _REST] = number
                row += 1
        elif code == ARRAY_END:
            scratch[stack + _REST] -= 1
            if scratch[stack + _REST] > 0:
                row = np.int64(rows[row, A])
            else:
                if aloud:
                    out[scratch[stack + _WRITTEN]] = 0x5B  # in place of a comma
                    out[w] = 0x5D
                    w += 1
                stack += _FRAME
                row += 1
        elif code == UUID:
            if p + 16 > end:
                reason = np.int64(UNDERFLOW)
            else:
                if aloud:
                    w = write_uuid(content, p, out, w)
                p += 16
                row += 1
        elif code == BOOL:
            if p >= end:
                reason = np.int64(UNDERFLOW)
            else:
                if aloud:
                    w = _write_bool(out, w, content[p] != 0)
                p += 1
                row += 1
        elif code == TAGS:
            if scratch[stack + _STATE] == _SECOND:
                p = scratch[stack + _REST]
                row = np.int64(rows[row, C])
            else:
                number, p, reason = read_unsigned_varint(content, p, end)
                known = np.int64(rows[row, A])
                for i in range(known):
                    scratch[_SLOTS + rows[row + 1 + i, C]] = -1
                if reason < 0 and stack - _FRAME < bottom:
                    reason = np.int64(DEPTH)
                elif reason < 0:
                    stack -= _FRAME
                    scratch[stack + _KIND] = _OF_TAGS
                    scratch[stack + _START] = row
                    scratch[stack + _STATE] = 1 if aloud else 0
                    scratch[stack + _REST] = number
                    aloud = False
                    row, p, stack, aloud, more, reason, number, most = _next_tag(
                        rows, content, p, end, scratch, stack
                    )
                    unknown += more
        elif code == TAGGED:
            at = scratch[_SLOTS + rows[row, A]]
            if not aloud or at < 0:
                row = np.int64(rows[row, NAME])
            elif stack - _FRAME < bottom:
                reason = np.int64(DEPTH)
            else:
                stack -= _FRAME
                scratch[stack + _KIND] = _OF_TAGGED
                scratch[stack + _START] = p
                scratch[stack + _WRITTEN] = w
                scratch[stack + _STATE] = row
                scratch[stack + _REST] = unknown
                p = at
                row += 1
        elif code == TAGGED_END:
            if scratch[stack + _KIND] == _OF_TAGS:
                row, p, stack, aloud, more, reason, number, most = _next_tag(
                    rows, content, p, end, scratch, stack
                )
                unknown += more
            else:
                p = scratch[stack + _START]
                before = scratch[stack + _WRITTEN]
                head = scratch[stack + _STATE]
                at, size = np.int64(rows[head, B]), np.int64(rows[head, C])
                # Java compares values, and a struct's unknown tags among them.
                if scratch[stack + _REST] == unknown and _is_same(out, before, w, texts, at, size):
                    w = before
                stack += _FRAME
                row += 1
        elif code == FLOAT64:
            if p + 8 > end:
                reason = np.int64(UNDERFLOW)
            else:
                if aloud:
                    after = write_double(doubles, read_int64(content, p), out, w)
                    if after < 0:
                        scratch[NUMBER] = read_int64(content, p)
                        return NEW_DOUBLE, start
                    w = after
                p += 8
                row += 1
        elif code == CONSTANT:
            row += 1
        elif code == TOO_NEW:
            reason = np.int64(NEWER)
        else:  # END
            if stack == scratch.size:
                scratch[POSITION] = p
                return DONE, w
            # Of a message in a field: what follows it there is nobody's.
            row = scratch[stack + _STATE] + 1
            p = end
            end = scratch[stack + _REST]
            stack += _FRAME

        if reason >= 0:
            while stack < scratch.size and scratch[stack + _KIND] != _OF_HELD:
                stack += _FRAME
            if stack == scratch.size:
                scratch[REASON] = reason
                scratch[POSITION] = p
                scratch[FIELD] = rows[row, NAME]
                scratch[NUMBER] = number
                scratch[LIMIT] = most
                return MALFORMED, start
            # What is in the field is no message: its bytes are shown.
            p = scratch[stack + _START]
            w = scratch[stack + _WRITTEN]
            size = end - p
            end = scratch[stack + _REST]
            row = scratch[stack + _STATE] + 1
            stack += _FRAME
            aloud = True
            if w + size // 3 * 4 + _ROOM > limit:
                return FULL, start
            w = write_base64(content, p, size, out, w)
            p += size


@kernel
def _next_tag(rows, content, p, end, scratch, stack):
    """Step to the next tag that the schema knows, or behind the tags.

    (row, p, stack, aloud, unknown tags on the way, reason, number, most).
    """
    tags = scratch[stack + _START]
    known = np.int64(rows[tags, A])
    unknown, none = np.int64(0), np.int64(0)
    while scratch[stack + _REST] > 0:
        scratch[stack + _REST] -= 1
        tag, p, reason = read_unsigned_varint(content, p, end)
        if reason >= 0:
            return tags, p, stack, False, unknown, reason, tag, none
        size, p, reason = read_unsigned_varint(content, p, end)
        if reason >= 0:
            return tags, p, stack, False, unknown, reason, size, none
        found = np.int64(-1)
        for i in range(known):
            if rows[tags + 1 + i, A] == tag:
                found = tags + 1 + i
        if found >= 0:
            if rows[found, B] < 0:
                return found, p, stack, False, unknown, np.int64(WRONG_TAG), tag, none
            # Java reads the field, whatever size it is said to have.
            scratch[_SLOTS + rows[found, C]] = p
            return np.int64(rows[found, B]) + 1, p, stack, False, unknown, np.int64(-1), none, none
        if size < 0:
            return tags, p, stack, False, unknown, np.int64(NEGATIVE_SIZE), size, none
        if size > end - p:
            return tags, p, stack, False, unknown, np.int64(BYTES_SIZE), size, end - p
        p += size
        unknown += 1
    aloud = scratch[stack + _STATE] == 1
    stack += _FRAME
    row = np.int64(rows[tags, C])
    if scratch[stack + _STATE] == _FIRST:
        # Now that it is known where each tag stands: once more from its start, aloud.
        row = scratch[stack + _REST]
        scratch[stack + _STATE] = _SECOND
        scratch[stack + _REST] = p
        p = scratch[stack + _START]
        aloud = True
    return row, p, stack, aloud, unknown, np.int64(-1), none, none


@inlined
def _read_size(content, p, end, is_compact, code):
    """(size, p, reason, number) of a string, bytes or an array; -1 is null."""
    if is_compact != 0:
        size, p, reason = read_unsigned_varint(content, p, end)
        if reason >= 0:
            return np.int64(0), p, reason, size
        return _int32(size - 1), p, reason, np.int64(0)
    width = 2 if code == STRING else 4
    if p + width > end:
        return np.int64(0), p, np.int64(UNDERFLOW), np.int64(0)
    size = read_int16(content, p) if width == 2 else read_int32(content, p)
    return size, p + width, np.int64(-1), np.int64(0)


@kernel
def read_unsigned_varint(content, p, end):
    """(value as Java's int, position behind it, reason of a malformed one or -1)."""
    if p < end and content[p] < 0x80:
        return np.int64(content[p]), p + 1, np.int64(-1)
    value = np.int64(0)
    for i in range(5):
        if p >= end:
            return value, p, np.int64(UNDERFLOW)
        byte = np.int64(content[p])
        p += 1
        if i == 4 and byte >= 0x80:
            # Java takes the byte with its sign.
            return (value | (byte - 0x100) << 28) & 0xFFFFFFFF, p, np.int64(VARINT)
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            break
    return _int32(value), p, np.int64(-1)


@inlined
def _int32(value):
    """The low 32 bits, with their sign."""
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


@inlined
def read_int16(content, p):
    """A big-endian int16, as an int64, unchecked."""
    number = np.int64(content[p]) << 8 | np.int64(content[p + 1])
    return (number ^ 0x8000) - 0x8000


@inlined
def _write_null(out, w):
    out[w] = 0x6E
    out[w + 1] = 0x75
    out[w + 2] = 0x6C
    out[w + 3] = 0x6C
    return w + 4


_BOOLS = np.frombuffer(b"falsetrue", dtype=np.uint8)


@kernel
def _write_bool(out, w, value):
    first, size = (5, 4) if value else (0, 5)
    for i in range(size):
        out[w + i] = _BOOLS[first + i]
    return w + size


_CONSUMER = np.frombuffer(b"consumer", dtype=np.uint8)


@kernel
def _is_consumer(content, p, size):
    """Whether a string is the name of the protocol that consumers speak."""
    return size == _CONSUMER.size and _is_same(content, p, p + size, _CONSUMER, 0, size)


@kernel
def _is_same(out, first, last, texts, at, size):
    if last - first != size:
        return False
    i = 0
    while i < size and out[first + i] == texts[at + i]:
        i += 1
    return i == size
