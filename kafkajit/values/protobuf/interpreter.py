"""The kernel that reads Protobuf: values and their programs → cells.

It reads field after field: the row that is expected next most often has the field's tag, else the
row is looked up by the field's number. Fields that no row has are skipped. A size or a varint is
compared with the end of its message before anything is done with it; numbers of a fixed size are
compared afterwards, so at most block.ROOM bytes are read behind a value's end, and never acted on.

Over 400 lines because of that kernel: an interpreter whose state is in local variables, which a
split would pass back and forth for every field.
"""

from __future__ import annotations

import numpy as np

from kafkajit.format.utf8 import is_text
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import (
    read_little_endian,
    read_word,
    trailing_zeros,
    write_half_word,
    write_word,
)
from kafkajit.values.block import AT, DONE, FAILED, FULL, OF, WIDTH, roll_back
from kafkajit.values.protobuf.operations import (
    BASE,
    BOOL,
    BYTES,
    CHECKED_TEXT,
    CLEARED,
    CODE,
    COUNT,
    DURATION,
    FIXED32,
    FIXED32_TO_LONG,
    FIXED64,
    GROUP,
    GROUP_END,
    INDEX,
    INDEXES,
    INT32,
    INT64,
    JSON_MESSAGE,
    MESSAGE,
    NARROW,
    NEXT,
    NUMBERED,
    ONEOF,
    ONEOF_CELL,
    QUICK,
    REPEATED,
    REPEATED_MESSAGE,
    SHIFT,
    SINT32,
    SINT64,
    SIZED,
    SKIP_FIXED32,
    SKIP_FIXED64,
    SKIP_SIZED,
    SKIP_TEXT,
    SKIP_VARINT,
    SPACE,
    TAG,
    TEXT,
    TIMESTAMP,
    TOO_NESTED,
    UINT32,
    UINT32_TO_LONG,
    VALID,
    VALID_CELL,
    VARINT,
    WIDE,
    A,
    B,
)
from kafkajit.values.status import (
    BAD_INDEX,
    BAD_TEXT,
    BAD_TIME,
    BAD_WIRE_TYPE,
    INT_RANGE,
    MISMATCH,
    NULL,
    OK,
    SIZE_PAST_END,
    TOO_DEEP,
    TRUNCATED,
    VARINT_TOO_LONG,
)
from kafkajit.values.varints import (
    HIGH_BITS,
    is_int,
    longer_varint,
    read_varint,
    word_varint,
    zigzag,
)

_INDEX = (1 << 62) - 1  # an index that LLVM knows not to count from the end
# A frame of the stack: the end of the message around, the row of its start, the row expected next.
FRAME = 3
MAX_DEPTH = 100  # messages in messages, as in Protobuf's own readers
_GROUPS = (MAX_DEPTH + 1) * FRAME  # where the stack has the numbers of groups that are skipped
_MAX_TAG = (1 << 32) - 1
_SEVEN_BYTES = (1 << 56) - 1
_SECONDS = (-62_135_596_800, 253_402_300_799)  # of timestamps: the years 1 to 9999
_LONGEST = 315_576_000_000  # seconds of a duration: 10,000 years


@kernel
def read_values(program, cells, items, values, first, stop, stops, faults):
    """Read values from `first` on into a new block: (DONE, FULL or FAILED, the next value).

    FULL: the block has no room for the next value. FAILED: with `stops`, at a value that cannot be
    read. `faults` then has its status, the row of the program and the position.
    """
    code, texts, symbols, _ = program
    bytes_, ints, longs, _, _ = cells
    _, capacity, taken, saved, slots, stack, _ = items
    content, starts, ends, entries = values
    statuses, places, positions = faults
    spaces = taken.size
    for value in range(first, stop):
        slots[0] = value - first
        taken[0] = value - first + 1
        if taken[0] > capacity[0]:
            return np.int64(FULL), np.int64(value)
        for space in range(1, spaces):
            saved[space] = taken[space]
        p, end = np.int64(starts[value]), np.int64(ends[value])
        limit = end  # of the message that is being read
        top = np.int64(0)
        row = np.int64(entries[value])
        status = np.int64(OK)
        start = np.int64(0)
        if row < 0:
            status = -row
            row = np.int64(0)
        elif code[(row << SHIFT) + CODE] == INDEXES:
            status, p, row = _message_of(code, texts, symbols, row, content, p, end)
        elif code[(row << SHIFT) + CODE] == NUMBERED:
            status, p, row = _numbered_message(code, row, content, p, end)
        if status == OK:
            start = code[(row << SHIFT) + A]
            bytes_[code[(row << SHIFT) + VALID] + slots[0]] = 1
        expected = code[(start << SHIFT) + A]
        is_full = False
        while status == OK:
            # Most fields, as long as nothing is wrong: the rest of the loop reads all others, and
            # this one again if something is.
            while p < limit:
                at = expected << SHIFT & _INDEX
                word = read_word(content, p)
                tag = word & 0xFF
                # Fields that are not written are passed over: most others come in their order.
                if code[at + TAG] < tag:
                    expected = code[at + NEXT]
                    at = expected << SHIFT & _INDEX
                    if code[at + TAG] < tag:
                        expected = code[at + NEXT]
                        at = expected << SHIFT & _INDEX
                if code[at + TAG] != tag or code[at + QUICK] == 0:
                    break
                op = code[at + CODE]
                item = slots[code[at + SPACE] & _INDEX]
                slot = code[at + BASE] + item & _INDEX
                behind = p + 1
                raw = np.int64(0)
                if tag & 1 == 0:  # a varint or a size
                    raw = word >> 8 & 0x7F
                    behind = p + 2
                    if word & 0x8000:
                        last = ~word & HIGH_BITS & ~0xFF
                        if last == 0:
                            break
                        raw = word_varint(word >> 8 & _SEVEN_BYTES, last >> 8 & _SEVEN_BYTES)
                        behind = p + (trailing_zeros(last) >> 3) + 1
                if op == INT64:
                    write_word(bytes_, slot << 3, np.uint64(raw))
                elif op in (TEXT, BYTES):
                    if raw > limit - behind:
                        break
                    write_word(bytes_, slot << 3, np.uint64(behind | raw << 32))
                    behind += raw
                elif op == INT32:
                    if raw > 0xFFFFFFFF:
                        break
                    write_half_word(bytes_, slot << 2, raw)
                elif op == FIXED64:
                    write_word(bytes_, slot << 3, np.uint64(read_word(content, behind)))
                    behind += 8
                elif op == BOOL:
                    bytes_[slot] = raw != 0
                elif op == FIXED32:
                    write_half_word(bytes_, slot << 2, word >> 8 & 0xFFFFFFFF)
                    behind += 4
                elif op == SKIP_SIZED:
                    if raw > limit - behind:
                        break
                    behind += raw
                elif op == SKIP_FIXED64:
                    behind += 8
                elif op == SKIP_FIXED32:
                    behind += 4
                elif op == CHECKED_TEXT:
                    break
                if behind > limit:
                    break
                if code[at + VALID_CELL] >= 0:
                    bytes_[code[at + VALID] + item & _INDEX] = 1
                p = behind
                expected = code[at + NEXT]
            if p >= limit:
                if p > limit:
                    status = np.int64(TRUNCATED)
                    break
                if top == 0:
                    break
                limit, start, expected = stack[top], stack[top + 1], stack[top + 2]
                top -= FRAME
                continue
            row = expected
            at = row << SHIFT & _INDEX
            tag = np.int64(content[p])
            behind = p + 1
            if tag >= 0x80:
                tag, behind = read_varint(content, p, limit)
                if behind < 0:
                    p = -behind
                    row = start
                    status = np.int64(TRUNCATED if p >= limit else VARINT_TOO_LONG)
                    break
            if code[at + TAG] != tag:
                row = _row_of(code, symbols, start, tag)
                at = row << SHIFT & _INDEX
                if row < 0 or (
                    code[at + TAG] != tag
                    and (code[at + CODE] != REPEATED or code[at + (1 << SHIFT) + TAG] != tag)
                ):
                    status, p = _skip(content, behind, limit, tag, stack)
                    row = max(row, start)
                    continue
            p = behind
            op = code[at + CODE]
            space = code[at + SPACE]
            if code[at + ONEOF_CELL] >= 0:
                _choose(code, symbols, row, cells, items)
            if code[at + VALID_CELL] >= 0:
                bytes_[code[at + VALID] + slots[space] & _INDEX] = 1
            expected = code[at + NEXT]
            if op == REPEATED:
                expected = row
                is_single = code[at + (1 << SHIFT) + TAG] == tag
                counter = code[at + BASE] + slots[space] & _INDEX
                inner_space = code[at + A]
                row += 1
                at = row << SHIFT & _INDEX
                op = code[at + CODE]
                if not is_single:
                    size, p = read_varint(content, p, limit)
                    if p < 0 or size < 0 or size > limit - p:
                        p = abs(p)
                        status = np.int64(SIZE_PAST_END)
                        break
                    count = _packed_count(op, content, p, p + size)
                    if count < 0:
                        status = np.int64(TRUNCATED)
                        break
                    if taken[inner_space] + count > capacity[inner_space]:
                        taken[inner_space] = capacity[inner_space]  # the block has to grow
                        is_full = True
                        break
                    place = code[at + BASE] + taken[inner_space]
                    taken[inner_space] += count
                    ints[counter] += count
                    status, p = _read_packed(op, content, p, p + size, cells, place)
                    continue
                if taken[inner_space] == capacity[inner_space]:
                    is_full = True
                    break
                slots[inner_space] = taken[inner_space]
                taken[inner_space] += 1
                ints[counter] += 1
                space = inner_space
            slot = code[at + BASE] + slots[space] & _INDEX
            raw = np.int64(0)
            if code[at + TAG] & 7 in (VARINT, SIZED):
                word = read_word(content, p)
                if word & 0x80 == 0:
                    raw = word & 0x7F
                    p += 1
                else:
                    last = ~word & HIGH_BITS
                    if last != 0:
                        raw = word_varint(word, last)
                        p += (trailing_zeros(last) >> 3) + 1
                    else:
                        raw, p = longer_varint(content, p)
                        if p < 0:
                            p = -p
                            status = np.int64(VARINT_TOO_LONG)
                if p > limit:
                    status = np.int64(TRUNCATED)
                if code[at + TAG] & 7 == SIZED and status == OK and (raw < 0 or raw > limit - p):
                    status = np.int64(SIZE_PAST_END)
                if status != OK:
                    break
            if op == INT64:
                write_word(bytes_, slot << 3, np.uint64(raw))
            elif op in (TEXT, BYTES):
                write_word(bytes_, slot << 3, np.uint64(p | raw << 32))
                p += raw
            elif op == INT32:
                if is_int(raw) or 0 <= raw <= 0xFFFFFFFF:
                    write_half_word(bytes_, slot << 2, raw)
                else:
                    status = np.int64(INT_RANGE)
            elif op == FIXED64:
                write_word(bytes_, slot << 3, np.uint64(read_word(content, p)))
                p += 8
            elif op == BOOL:
                bytes_[slot] = raw != 0
            elif op == FIXED32:
                write_half_word(bytes_, slot << 2, read_little_endian(content, p, np.int64(4)))
                p += 4
            elif op in (MESSAGE, JSON_MESSAGE, REPEATED_MESSAGE):
                if top >= MAX_DEPTH * FRAME:
                    status = np.int64(TOO_DEEP)
                    break
                if op == REPEATED_MESSAGE:
                    expected = row
                    inner_space = code[at + B]
                    if taken[inner_space] == capacity[inner_space]:
                        is_full = True
                        break
                    slots[inner_space] = taken[inner_space]
                    taken[inner_space] += 1
                    ints[slot] += 1
                elif op == JSON_MESSAGE:
                    longs[slot] = p | raw << 32
                top += FRAME
                stack[top], stack[top + 1], stack[top + 2] = limit, start, expected
                limit = p + raw
                start = code[at + A]
                expected = code[(start << SHIFT) + A]
            elif op == SKIP_SIZED:
                p += raw
            elif op == SKIP_VARINT:
                pass
            elif op == SKIP_FIXED64:
                p += 8
            elif op == SKIP_FIXED32:
                p += 4
            elif op in (TIMESTAMP, DURATION):
                status, number = _moment(content, p, p + raw, op == TIMESTAMP, stack)
                longs[slot] = number
                if status == OK:
                    p += raw
            elif op == TOO_NESTED:
                status = np.int64(TOO_DEEP)
            elif op in (SKIP_TEXT, CHECKED_TEXT):
                if not is_text(content, p, p + raw):
                    status = np.int64(BAD_TEXT)
                    break
                if op == CHECKED_TEXT:
                    longs[slot] = p | raw << 32
                p += raw
            else:
                status = _other_scalar(op, raw, content, p, cells, slot)
                if op == FIXED32_TO_LONG:
                    p += 4
        if is_full:
            roll_back(cells, items)
            return np.int64(FULL), np.int64(value)
        if status != OK:
            roll_back(cells, items)
            taken[0] = value - first + 1
            statuses[value] = status
            if status != NULL:
                places[value] = row
                positions[value] = min(p, end) - starts[value]
                if stops:
                    return np.int64(FAILED), np.int64(value)
    return np.int64(DONE), np.int64(stop)


@kernel
def _message_of(code, texts, symbols, row, content, p, end):
    """The message that indexes in front of a value name: (status, position behind, its row).

    They are signed varints, behind their number. Old clients for Python wrote unsigned ones, of
    which an odd number seems to be negative. Apicurio's serializer writes a message with the name:
    0A, the size, the name.
    """
    at = row << SHIFT
    if p + 3 <= end and content[p] >= 3 and content[p] == content[p + 2] + 2:
        size = np.int64(content[p + 2])
        if content[p + 1] == 0x0A and p + 3 + size <= end:
            for i in range(code[at + COUNT]):
                if _is_same(texts, symbols[code[at + B] + i], content, p + 3, size):
                    row = code[at + A] + i
                    status = np.int64(OK if code[(row << SHIFT) + A] >= 0 else MISMATCH)
                    return status, p + 3 + size, row
    raw, p = read_varint(content, p, end)
    if p < 0:
        return np.int64(TRUNCATED), -p, row
    levels = zigzag(raw)
    is_signed = levels >= 0
    if not is_signed:
        levels = raw
    index = np.int64(0)
    if levels < 0 or levels > MAX_DEPTH:
        return np.int64(BAD_INDEX), p, row
    for _ in range(max(levels, np.int64(1))):
        if levels > 0:
            raw, p = read_varint(content, p, end)
            if p < 0:
                return np.int64(TRUNCATED), -p, row
            index = zigzag(raw) if is_signed else raw
        at = row << SHIFT
        if index < 0 or index >= code[at + COUNT]:
            return np.int64(BAD_INDEX), p, row
        # Those inside a message are named by its row, the first ones by that of INDEXES.
        row = (code[at + B] if code[at + CODE] == INDEX else code[at + A]) + index
    status = np.int64(OK if code[(row << SHIFT) + A] >= 0 else MISMATCH)
    return status, p, row


@kernel
def _numbered_message(code, row, content, p, end):
    """The message that a number in front of a value names: (status, position behind, its row)."""
    number, p = read_varint(content, p, end)
    if p < 0:
        return np.int64(TRUNCATED), -p, row
    if number < 0 or number >= code[(row << SHIFT) + COUNT]:
        return np.int64(BAD_INDEX), p, row
    row = code[(row << SHIFT) + A] + number
    return np.int64(OK if code[(row << SHIFT) + A] >= 0 else MISMATCH), p, row


@kernel
def _is_same(texts, text, content, p, size):
    if text >> 32 & 0x7FFFFFFF != size:
        return False
    same = np.int64(0)
    for i in range(size):
        same += texts[(text & 0xFFFFFFFF) + i] == content[p + i]
    return same == size


@kernel
def _row_of(code, symbols, start, tag):
    """The row of a field by its number; -1: the program has no such row."""
    number = tag >> 3
    at = start << SHIFT
    if 0 <= number < code[at + COUNT]:
        return np.int64(symbols[code[at + B] + number])
    place = code[at + CLEARED]
    low, high = np.int64(0), np.int64(symbols[place])
    while low < high:
        middle = (low + high) // 2
        found = symbols[place + 1 + 2 * middle]
        if found == number:
            return np.int64(symbols[place + 2 + 2 * middle])
        if found < number:
            low = middle + 1
        else:
            high = middle
    return np.int64(-1)


@kernel
def _skip(content, p, limit, tag, stack):
    """Skip a field behind its tag: (status, position). A group is skipped to its end."""
    depth = 0
    while True:
        wire = tag & 7
        if tag < 8 or tag > _MAX_TAG:
            return np.int64(BAD_WIRE_TYPE), p
        if wire == VARINT:
            _, p = read_varint(content, p, limit)
        elif wire == WIDE:
            p += 8
        elif wire == NARROW:
            p += 4
        elif wire == SIZED:
            size, p = read_varint(content, p, limit)
            if p >= 0:
                if size < 0 or size > limit - p:
                    return np.int64(SIZE_PAST_END), p
                p += size
        elif wire == GROUP:
            if depth == MAX_DEPTH:
                return np.int64(TOO_DEEP), p
            stack[_GROUPS + depth] = tag >> 3
            depth += 1
        elif wire == GROUP_END and depth > 0 and stack[_GROUPS + depth - 1] == tag >> 3:
            depth -= 1
        else:
            return np.int64(BAD_WIRE_TYPE), p
        if p < 0:
            p = -p
            return np.int64(TRUNCATED if p >= limit else VARINT_TOO_LONG), p
        if p > limit:
            return np.int64(TRUNCATED), p
        if depth == 0:
            return np.int64(OK), p
        if p == limit:
            return np.int64(BAD_WIRE_TYPE), p
        tag, p = read_varint(content, p, limit)
        if p < 0:
            return np.int64(TRUNCATED), -p


@kernel
def _choose(code, symbols, row, cells, items):
    """Set a field of a oneof: if another one is set, its cells are cleared."""
    at = row << SHIFT
    place = code[at + ONEOF] + items.slots[code[at + SPACE]]
    before = np.int64(cells.ints[place]) - 1
    if before >= 0 and before != row:
        _clear(code, symbols, before, cells, items)
    cells.ints[place] = row + 1


@kernel
def _clear(code, symbols, row, cells, items):
    """Clear the cells of a field. What it has in other spaces are their last items."""
    table, _, taken, _, slots, _, counts = items
    at = row << SHIFT
    counts[:] = 0
    for i in range(code[at + COUNT]):
        cell, counted = symbols[code[at + CLEARED] + 2 * i], symbols[code[at + CLEARED] + 2 * i + 1]
        space, width = table[cell, OF], table[cell, WIDTH]
        first, behind = taken[space] - counts[space], taken[space]
        if space == code[at + SPACE]:
            first, behind = slots[space], slots[space] + 1
        for item in range(first, behind):
            if counted >= 0:
                counts[counted] += cells.ints[table[cell, AT] // width + item]
            for byte in range(width):
                cells.bytes[table[cell, AT] + item * width + byte] = 0
    for space in range(taken.size):
        taken[space] -= counts[space]


@kernel
def _other_scalar(op, raw, content, p, cells, slot):
    """Write a number of one of the rarer types: its status."""
    if op == SINT64:
        cells.longs[slot] = zigzag(raw)
    elif op == SINT32:
        write_half_word(cells.bytes, slot << 2, zigzag(raw))
        return np.int64(OK if is_int(zigzag(raw)) else INT_RANGE)
    elif op in (UINT32, UINT32_TO_LONG):
        if not is_int(raw) and not 0 <= raw <= 0xFFFFFFFF:
            return np.int64(INT_RANGE)
        if op == UINT32:
            write_half_word(cells.bytes, slot << 2, raw)
        else:
            cells.longs[slot] = raw & 0xFFFFFFFF
    elif op == FIXED32_TO_LONG:
        cells.longs[slot] = read_little_endian(content, p, np.int64(4)) & 0xFFFFFFFF
    return np.int64(OK)


@kernel
def _packed_count(op, content, p, end):
    """The elements of a packed field, or -1 if the last one is cut short."""
    if op in (FIXED64, FIXED32, FIXED32_TO_LONG):
        width = 8 if op == FIXED64 else 4
        return (end - p) // width if (end - p) % width == 0 else np.int64(-1)
    count = np.int64(0)
    for i in range(p, end):
        count += content[i] < 0x80
    return count if p == end or content[end - 1] < 0x80 else np.int64(-1)


@kernel
def _read_packed(op, content, p, end, cells, slot):
    """Read the elements of a packed field into cells side by side: (status, position)."""
    while p < end:
        if op == FIXED64:
            cells.longs[slot] = read_word(content, p)
            p += 8
        elif op == FIXED32:
            write_half_word(cells.bytes, slot << 2, read_little_endian(content, p, np.int64(4)))
            p += 4
        elif op == FIXED32_TO_LONG:
            cells.longs[slot] = read_little_endian(content, p, np.int64(4)) & 0xFFFFFFFF
            p += 4
        else:
            raw, behind = read_varint(content, p, end)
            if behind < 0:
                return np.int64(VARINT_TOO_LONG), p
            status = np.int64(OK)
            if op == INT64:
                cells.longs[slot] = raw
            elif op == BOOL:
                cells.bytes[slot] = raw != 0
            elif op == INT32:
                if is_int(raw) or 0 <= raw <= 0xFFFFFFFF:
                    write_half_word(cells.bytes, slot << 2, raw)
                else:
                    status = np.int64(INT_RANGE)
            else:
                status = _other_scalar(op, raw, content, p, cells, slot)
            if status != OK:
                return status, p
            p = behind
        slot += 1
    return np.int64(OK), p


@kernel
def _moment(content, p, end, is_timestamp, stack):
    """The microseconds of a Timestamp or a Duration: (status, number)."""
    seconds = np.int64(0)
    nanos = np.int64(0)
    while p < end:
        tag, p = read_varint(content, p, end)
        if p < 0:
            return np.int64(TRUNCATED if -p >= end else VARINT_TOO_LONG), np.int64(0)
        if tag == 1 << 3 or tag == 2 << 3:
            raw, p = read_varint(content, p, end)
            if p < 0:
                return np.int64(TRUNCATED if -p >= end else VARINT_TOO_LONG), np.int64(0)
            if tag == 1 << 3:
                seconds = raw
            else:
                nanos = raw
        else:
            status, p = _skip(content, p, end, tag, stack)
            if status != OK:
                return status, np.int64(0)
    if is_timestamp:
        is_known = _SECONDS[0] <= seconds <= _SECONDS[1] and 0 <= nanos < 1_000_000_000
    else:
        is_known = -_LONGEST <= seconds <= _LONGEST and -1_000_000_000 < nanos < 1_000_000_000
        is_known = is_known and (seconds == 0 or nanos == 0 or (seconds < 0) == (nanos < 0))
    if not is_known:
        return np.int64(BAD_TIME), np.int64(0)
    # A duration's digits below a microsecond are cut towards zero.
    micros = nanos // 1000 if nanos >= 0 else -(-nanos // 1000)
    return np.int64(OK), seconds * 1_000_000 + micros
