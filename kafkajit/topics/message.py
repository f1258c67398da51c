"""Kafka's own messages (its generated protocol classes): bytes and a program → JSON.

Answers to the read methods of those classes, which decide what is malformed and which error comes
first, and to their JsonConverters. One kernel interprets the rows that `programs.py` compiles from
the schemas of messages.

Over 400 lines because of that kernel: an interpreter whose state is in local
variables, which a split would pass back and forth for every field.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.format.decimal import write_decimal
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import WIDE, copy_wide, read_int32, read_int64
from kafkajit.topics.json_text import (
    MAX_JSON_GROWTH,
    learn_double,
    new_doubles,
    write_base64,
    write_bool,
    write_double,
    write_json_string,
    write_null,
    write_uuid,
)
from kafkajit.topics.primitives import (
    BYTES_SIZE,
    COUNT,
    DEPTH,
    NEGATIVE_SIZE,
    NEWER,
    NULL,
    STRING_SIZE,
    UNDERFLOW,
    WRONG_TAG,
    read_int16,
    read_size,
    read_unsigned_varint,
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
)
from kafkajit.topics.status import DONE, FULL, MALFORMED, NEW_DOUBLE

# The first slots of the scratch memory: what is wrong, or the double's bits in NUMBER.
REASON, POSITION, FIELD, NUMBER, LIMIT = range(5)
_SLOTS = 5

# The kinds of frames on the stack, and the slots of a frame.
_OF_STRUCT, _OF_ARRAY, _OF_TAGS, _OF_TAGGED, _OF_HELD = range(5)
_KIND, _START, _WRITTEN, _STATE, _REST = range(5)
_FRAME = 5
# The passes over a struct: most have one; one with LOOK_AHEAD is read twice.
_ONCE, _FIRST, _SECOND = range(3)

# Room for what a row writes, except strings and bytes: its text, a number, brackets.
_ROOM = 192

_NO_TYPES = np.empty((0, 4), dtype=np.int32)
_NO_TYPES.setflags(write=False)  # as those of topics: one signature of the kernels


class MessageTables(NamedTuple):
    """The tables with which kernels interpret messages.

    `types` holds the record types of an internal topic (`kinds.py`); it is empty if the messages
    are not an internal topic's.
    """

    rows: npt.NDArray[np.int32]
    texts: npt.NDArray[np.uint8]
    types: npt.NDArray[np.int32]
    doubles: npt.NDArray[np.uint8]
    scratch: npt.NDArray[np.int64]


def new_tables(programs: Programs, types: npt.NDArray[np.int32] = _NO_TYPES) -> MessageTables:
    """The programs' tables, with new scratch memory and a new table of doubles."""
    return MessageTables(
        programs.rows, programs.texts, types, new_doubles(), _new_scratch(programs)
    )


def _new_scratch(programs: Programs) -> npt.NDArray[np.int64]:
    """Memory for the kernel: what it reports, slots for tags, and its stack."""
    # A frame for each nested struct and array; tags and embedded messages need a few more.
    size = _SLOTS + programs.slots + _FRAME * (2 * programs.depth + 8)
    return np.zeros(size, dtype=np.int64)


def learn(tables: MessageTables) -> None:
    """After NEW_DOUBLE: put the double that the kernel reported into the table."""
    learn_double(tables.doubles, int(tables.scratch[NUMBER]))


@kernel
def version_row(rows, message, version):
    """The first row of a version's program; all versions that are too new share one."""
    lowest, highest = np.int64(rows[message, A]), np.int64(rows[message, B])
    return np.int64(rows[message + 1 + min(max(version, lowest), highest + 1) - lowest, A])


@kernel
def write_message(tables, content, p, end, row, out, w):
    """Write the JSON of the message in content[p:end] by the program that begins at `row`.

    (status, position in `out` after the JSON), which is w unless the status is DONE. Bytes after
    the message are not an error here; scratch[POSITION] is where the message ended.
    """
    rows, texts, scratch = tables.rows, tables.texts, tables.scratch
    start = w
    limit = out.size - WIDE
    stack = np.int64(scratch.size)  # frames grow downwards
    bottom = _SLOTS
    aloud = True
    selected = False
    unknown = np.int64(0)  # count of tags that are not in the schema
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
            size, p, reason, number = read_size(content, p, end, rows[row, A], code)
            if reason < 0 and size < 0:
                if rows[row, B] == 0:
                    reason = np.int64(NULL)
                elif aloud:
                    w = write_null(out, w)
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
                # The bytes are a message, if it can be read; its version comes first.
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
                    w = write_null(out, w)
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
            number, p, reason, most = read_size(content, p, end, rows[row, A], code)
            if reason >= 0:
                number = most
            elif number < 0:
                if rows[row, B] == 0:
                    reason = np.int64(NULL)
                else:
                    if aloud:
                        w = write_null(out, w)
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
                    w = write_bool(out, w, content[p] != 0)
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
                # Leave out a default. Java compares values, including a struct's unknown tags.
                if scratch[stack + _REST] == unknown and _is_same(out, before, w, texts, at, size):
                    w = before
                stack += _FRAME
                row += 1
        elif code == FLOAT64:
            if p + 8 > end:
                reason = np.int64(UNDERFLOW)
            else:
                if aloud:
                    after = write_double(tables.doubles, read_int64(content, p), out, w)
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
            # The end of a message in a field: ignore what follows it in the field.
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
            # The field does not hold a message: write its bytes as base64.
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
    """Step to the next tag in the schema, or past the tags.

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
            # Java reads the field and ignores its size.
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
        # The position of each tag is known now: read the struct again, and write it.
        row = scratch[stack + _REST]
        scratch[stack + _STATE] = _SECOND
        scratch[stack + _REST] = p
        p = scratch[stack + _START]
        aloud = True
    return row, p, stack, aloud, unknown, np.int64(-1), none, none


_CONSUMER = np.frombuffer(b"consumer", dtype=np.uint8)


@kernel
def _is_consumer(content, p, size):
    """Whether a string is the protocol type of consumers."""
    return size == _CONSUMER.size and _is_same(content, p, p + size, _CONSUMER, 0, size)


@kernel
def _is_same(out, first, last, texts, at, size):
    if last - first != size:
        return False
    i = 0
    while i < size and out[first + i] == texts[at + i]:
        i += 1
    return i == size
