"""The kernel that reads Avro: values and their programs → cells.

It reads value after value, as a row of its program says. A size, a count or a varint is compared
with the end of the value before anything is done with it; numbers of a fixed size are compared
afterwards, so at most block.ROOM bytes are read behind a value's end, and never acted on.

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
from kafkajit.values.avro.operations import (
    BASE,
    BOOL,
    BYTES,
    CALL,
    CHECKED_STRING,
    CODE,
    DECIMAL,
    DOUBLE,
    END,
    ENUM,
    FIXED,
    FIXED_DECIMAL,
    FLOAT,
    FLOAT_TO_DOUBLE,
    INT,
    INT_TO_DOUBLE,
    INT_TO_FLOAT,
    INT_TO_LONG,
    JUMP,
    LAST_QUICK,
    LAST_QUICK_VARINT,
    LAST_VARINT,
    LIST,
    LIST_END,
    LONG,
    LONG_TO_DOUBLE,
    LONG_TO_FLOAT,
    NEW_ELEMENT,
    NULLABLE,
    REST,
    REST_TEXT,
    RETURN,
    SET,
    SET_INT,
    SET_LONG,
    SHIFT,
    SKIP_BOOL,
    SKIP_BYTES,
    SKIP_ENUM,
    SKIP_FIXED,
    SKIP_INT,
    SKIP_LIST,
    SKIP_LIST_END,
    SKIP_LONG,
    SKIP_NULLABLE,
    SPACE,
    STRING,
    UNION,
    A,
    B,
    C,
)
from kafkajit.values.block import DONE, FAILED, FULL, roll_back
from kafkajit.values.status import (
    BAD_BOOLEAN,
    BAD_BRANCH,
    BAD_DECIMAL,
    BAD_SYMBOL,
    BAD_TEXT,
    BLOCK_SIZE,
    INT_RANGE,
    NEGATIVE_SIZE,
    NULL,
    OK,
    SIZE_PAST_END,
    TOO_DEEP,
    TOO_MANY_ITEMS,
    TRAILING,
    TRUNCATED,
    UNKNOWN_SYMBOL,
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
MAX_EMPTY_ITEMS = 1 << 16  # elements of no bytes in one value
# A frame of the stack. A list has the elements left in its block, where its elements begin, and
# where the block has to end or -1; a call has the row to return to.
_LEFT, _FIRST, _STOP = range(3)
FRAME = 3
_EMPTY = 0


@kernel
def read_values(program, cells, items, values, first, stop, stops, faults):
    """Read values from `first` on into a new block: (DONE, FULL or FAILED, the next value).

    FULL: the block has no room for the next value. FAILED: with `stops`, at a value that cannot be
    read. `faults` then has its status, the row of the program and the position.
    """
    code, _, symbols, limits = program
    bytes_, ints, longs, floats, doubles = cells
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
        top = np.int64(0)  # of the stack, whose lowest frame counts the elements of no bytes
        stack[_EMPTY] = 0
        row = np.int64(entries[value])
        status = np.int64(OK)
        if row < 0:
            status = -row
            row = np.int64(0)
        is_full = False
        is_read = False
        while status == OK:
            # What most values consist of, as long as nothing is wrong: the loop below this one
            # repeats the first row that is not as it should be.
            while True:
                at = row << SHIFT & _INDEX
                op = code[at + CODE]
                if op > LAST_QUICK:
                    break
                slot = code[at + BASE] + slots[code[at + SPACE] & _INDEX] & _INDEX
                behind, follower = p, row + 1
                raw = np.int64(0)
                if op <= LAST_QUICK_VARINT:
                    word = read_word(content, p)
                    raw = word & 0x7F
                    behind = p + 1
                    if word & 0x80:
                        last = ~word & HIGH_BITS
                        if last == 0:
                            break
                        behind = p + (trailing_zeros(last) >> 3) + 1
                        raw = word_varint(word, last)
                if op == LONG:
                    write_word(bytes_, slot << 3, np.uint64(zigzag(raw)))
                elif op == STRING:
                    size = raw >> 1
                    if raw & 1 or size > end - behind:
                        break
                    write_word(bytes_, slot << 3, np.uint64(behind | size << 32))
                    behind += size
                elif op == INT:
                    number = zigzag(raw)
                    if not is_int(number):
                        break
                    write_half_word(bytes_, slot << 2, number)
                elif op == NULLABLE:
                    if raw == code[at + A] << 1:
                        follower = code[at + B]
                    elif raw == 2 - (code[at + A] << 1):
                        bytes_[slot] = 1
                    else:
                        break
                elif op == DOUBLE:
                    write_word(bytes_, slot << 3, np.uint64(read_word(content, p)))
                    behind += 8
                elif op == BOOL:
                    byte = read_word(content, p) & 0xFF
                    if byte > 1:
                        break
                    bytes_[slot] = byte
                    behind += 1
                elif op == SET:
                    bytes_[slot] = code[at + A]
                elif op == SKIP_BYTES:
                    size = raw >> 1
                    if raw & 1 or size > end - behind:
                        break
                    behind += size
                elif op == SKIP_FIXED:
                    behind += code[at + A]
                elif op == SKIP_NULLABLE:
                    if raw == code[at + A] << 1:
                        follower = code[at + B]
                    elif raw != 2 - (code[at + A] << 1):
                        break
                elif op == SKIP_BOOL:
                    if read_word(content, p) & 0xFF > 1:
                        break
                    behind += 1
                elif op == END:
                    is_read = p == end
                    break
                elif op == SKIP_INT and not is_int(zigzag(raw)):
                    break
                if behind > end:
                    break
                p, row = behind, follower
            if is_read:
                break
            at = row << SHIFT & _INDEX
            op = code[at + CODE]
            follower = row + 1
            raw = np.int64(0)
            if op <= LAST_QUICK_VARINT or LAST_QUICK < op <= LAST_VARINT:
                raw = np.int64(content[p])
                p += 1
                if raw >= 0x80:
                    byte = np.int64(content[p])
                    raw = raw & 0x7F | (byte & 0x7F) << 7
                    p += 1
                    if byte >= 0x80:
                        raw, p = longer_varint(content, p - 2)
                        if p < 0:
                            p = -p
                            status = np.int64(VARINT_TOO_LONG)
            slot = code[at + BASE] + slots[code[at + SPACE] & _INDEX] & _INDEX
            operand_a, operand_b = code[at + A], code[at + B]
            if op == LONG:
                longs[slot] = zigzag(raw)
            elif op in (STRING, CHECKED_STRING):
                size = zigzag(raw)
                if size < 0:
                    status = np.int64(NEGATIVE_SIZE)
                elif size > end - p:
                    status = np.int64(SIZE_PAST_END)
                elif op == CHECKED_STRING and not is_text(content, p, p + size):
                    status = np.int64(BAD_TEXT)
                else:
                    longs[slot] = p | size << 32
                    p += size
            elif op == INT:
                number = zigzag(raw)
                if is_int(number):
                    ints[slot] = number
                else:
                    status = np.int64(INT_RANGE)
            elif op == NULLABLE:
                branch = zigzag(raw)
                if branch == operand_a:
                    follower = operand_b
                elif branch == 1 - operand_a:
                    bytes_[slot] = 1
                else:
                    status = np.int64(BAD_BRANCH)
            elif op == DOUBLE:
                longs[slot] = read_word(content, p)
                p += 8
            elif op == BOOL:
                bytes_[slot] = content[p]
                if content[p] > 1 and p < end:
                    status = np.int64(BAD_BOOLEAN)
                p += 1
            elif op == SKIP_LONG:
                pass
            elif op == SKIP_INT:
                if not is_int(zigzag(raw)):
                    status = np.int64(INT_RANGE)
            elif op == SKIP_BYTES:
                size = zigzag(raw)
                if size < 0:
                    status = np.int64(NEGATIVE_SIZE)
                elif size > end - p:
                    status = np.int64(SIZE_PAST_END)
                else:
                    p += size
            elif op == SKIP_FIXED:
                if operand_a > end - p:
                    status = np.int64(TRUNCATED)
                else:
                    p += operand_a
            elif op == SKIP_NULLABLE:
                branch = zigzag(raw)
                if branch == operand_a:
                    follower = operand_b
                elif branch != 1 - operand_a:
                    status = np.int64(BAD_BRANCH)
            elif op == SET:
                bytes_[slot] = operand_a
            elif op in (LIST, SKIP_LIST):
                if p > end:
                    status = np.int64(TRUNCATED)
                if status != OK:
                    break
                if top + 2 * FRAME > stack.size:
                    status = np.int64(TOO_DEEP)
                    break
                top += FRAME
                if op == LIST:
                    stack[top + _FIRST] = taken[operand_a]
                # The first block begins; LIST_END goes on with the others.
                status, p, row, top, is_full = _begin_block(
                    code, row, raw, content, p, end, ints, items, stack, top, op == LIST
                )
                if is_full:
                    break
                continue
            elif op in (LIST_END, SKIP_LIST_END):
                list_row = operand_a
                stack[top + _LEFT] -= 1
                if stack[top + _LEFT] > 0:
                    if op == LIST_END:
                        space = code[(list_row << SHIFT) + A]
                        if taken[space] == capacity[space]:
                            is_full = True
                            break
                        slots[space] = taken[space]
                        taken[space] += 1
                    row = list_row + 1
                    continue
                if stack[top + _STOP] >= 0 and stack[top + _STOP] != p:
                    status = np.int64(BLOCK_SIZE)
                    break
                raw, p = read_varint(content, p, end)
                if p < 0:
                    p = -p
                    status = np.int64(TRUNCATED if p >= end else VARINT_TOO_LONG)
                    break
                status, p, row, top, is_full = _begin_block(
                    code, list_row, raw, content, p, end, ints, items, stack, top, op == LIST_END
                )
                if is_full:
                    break
                continue
            elif op == END:
                if p != end:
                    status = np.int64(TRAILING)
                break
            elif op == UNION:
                branch = zigzag(raw)
                if branch < 0 or branch >= operand_a:
                    status = np.int64(BAD_BRANCH)
                else:
                    follower = row + 1 + branch
            elif op == JUMP:
                follower = operand_a
            elif op == BYTES:
                size = zigzag(raw)
                if size < 0:
                    status = np.int64(NEGATIVE_SIZE)
                elif size > end - p:
                    status = np.int64(SIZE_PAST_END)
                else:
                    longs[slot] = p | size << 32
                    p += size
            elif op in (ENUM, SKIP_ENUM):
                symbol = zigzag(raw)
                count = operand_b if op == ENUM else operand_a
                if symbol < 0 or symbol >= count:
                    status = np.int64(BAD_SYMBOL)
                elif op == ENUM:
                    text = symbols[operand_a + symbol]
                    if text == -1:
                        status = np.int64(UNKNOWN_SYMBOL)
                    else:
                        longs[slot] = text
            elif op == FIXED:
                size = operand_a
                if size > end - p:
                    status = np.int64(TRUNCATED)
                else:
                    longs[slot] = p | size << 32
                    p += size
            elif op in (DECIMAL, FIXED_DECIMAL):
                size = zigzag(raw) if op == DECIMAL else code[at + C]
                if size < 0:
                    status = np.int64(NEGATIVE_SIZE)
                elif size > end - p:
                    status = np.int64(SIZE_PAST_END if op == DECIMAL else TRUNCATED)
                elif _read_decimal(
                    content,
                    p,
                    size,
                    cells.bytes,
                    slot * operand_b,
                    operand_b,
                    limits,
                    operand_a,
                ):
                    p += size
                else:
                    status = np.int64(BAD_DECIMAL)
            elif op == FLOAT:
                write_half_word(bytes_, slot << 2, read_little_endian(content, p, np.int64(4)))
                p += 4
            elif op == INT_TO_LONG:
                longs[slot] = zigzag(raw)
                if not is_int(longs[slot]):
                    status = np.int64(INT_RANGE)
            elif op in (INT_TO_FLOAT, LONG_TO_FLOAT):
                number = zigzag(raw)
                if op == INT_TO_FLOAT and not is_int(number):
                    status = np.int64(INT_RANGE)
                floats[slot] = np.float32(number)
            elif op in (INT_TO_DOUBLE, LONG_TO_DOUBLE):
                number = zigzag(raw)
                if op == INT_TO_DOUBLE and not is_int(number):
                    status = np.int64(INT_RANGE)
                doubles[slot] = np.float64(number)
            elif op == FLOAT_TO_DOUBLE:
                write_half_word(bytes_, slot << 3, read_little_endian(content, p, np.int64(4)))
                doubles[slot] = np.float64(floats[2 * slot])
                p += 4
            elif op == SKIP_BOOL:
                if content[p] > 1 and p < end:
                    status = np.int64(BAD_BOOLEAN)
                p += 1
            elif op == CALL:
                if top + 2 * FRAME > stack.size:
                    status = np.int64(TOO_DEEP)
                    break
                top += FRAME
                stack[top] = row + 1
                row = operand_a
                continue
            elif op == RETURN:
                row = stack[top]
                top -= FRAME
                continue
            elif op == SET_LONG:
                longs[slot * operand_b + code[at + C]] = operand_a
            elif op == SET_INT:
                ints[slot] = operand_a
            elif op == NEW_ELEMENT:
                if taken[operand_a] == capacity[operand_a]:
                    is_full = True
                    break
                slots[operand_a] = taken[operand_a]
                taken[operand_a] += 1
            elif op == REST:
                longs[slot] = p | (end - p) << 32
                p = end
            elif op == REST_TEXT:
                if is_text(content, p, end):
                    longs[slot] = p | (end - p) << 32
                    p = end
                else:
                    status = np.int64(BAD_TEXT)
            else:  # FAIL
                status = operand_a
            if p > end:
                status = np.int64(TRUNCATED)
            if status == OK:
                row = follower
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
def _begin_block(code, row, raw, content, p, end, ints, items, stack, top, is_read):
    """Begin a block of a list, whose count is `raw`: (status, position, row, top, is full)."""
    _, capacity, taken, _, slots, _, _ = items
    at = row << SHIFT
    count = zigzag(raw)
    stack[top + _STOP] = -1
    if count < 0:
        count = -count
        raw, p = read_varint(content, p, end)
        if p < 0:
            p = -p
            return np.int64(TRUNCATED if p >= end else VARINT_TOO_LONG), p, row, top, False
        size = zigzag(raw)
        if size < 0 or count < 0:
            return np.int64(NEGATIVE_SIZE), p, row, top, False
        if size > end - p:
            return np.int64(SIZE_PAST_END), p, row, top, False
        stack[top + _STOP] = p + size
    space = code[at + A]
    if count == 0:
        if is_read:
            cell = code[at + BASE] + slots[code[at + SPACE]]
            ints[cell] = taken[space] - stack[top + _FIRST]
        return np.int64(OK), p, code[at + B], top - FRAME, False
    least = code[at + C]
    if least > 0:
        if count > (end - p) // least:
            return np.int64(TOO_MANY_ITEMS), p, row, top, False
    else:
        # A value has a limited number of elements that may have no bytes.
        if count > MAX_EMPTY_ITEMS - stack[_EMPTY]:
            return np.int64(TOO_MANY_ITEMS), p, row, top, False
        stack[_EMPTY] += count
    stack[top + _LEFT] = count
    if is_read:
        if taken[space] == capacity[space]:
            return np.int64(OK), p, row, top, True
        slots[space] = taken[space]
        taken[space] += 1
    return np.int64(OK), p, row + 1, top, False


@kernel
def _read_decimal(content, p, size, out, at, width, limits, limit):
    """Write a big-endian number of two's complement, the lowest byte first; whether it fits."""
    if size == 0:
        return False
    sign = np.uint8(0xFF if content[p] >= 0x80 else 0)
    for i in range(width):
        out[at + i] = content[p + size - 1 - i] if i < size else sign
    for i in range(width, size):
        if content[p + size - 1 - i] != sign:
            return False
    if (out[at + width - 1] >= 0x80) != (sign != 0):
        return False
    # The magnitude against the limit, from the highest byte on.
    is_less = False
    is_more = False
    carry = np.int64(0)
    if sign:
        # Compare -number - 1 with the limit, and -limit itself does not fit.
        carry = np.int64(1)
    for k in range(width):
        i = width - 1 - k
        byte = np.int64(out[at + i] ^ sign)
        bound = np.int64(limits[limit, i // 8] >> np.uint64(8 * (i % 8)) & np.uint64(0xFF))
        if not is_less and not is_more:
            is_less = byte < bound
            is_more = byte > bound
    if not is_less:
        return False
    if carry:
        # |number| = (inverted bytes) + 1, which reaches the limit if the inverted are limit - 1.
        return not _is_limit_less_one(out, at, width, sign, limits, limit)
    return True


@kernel
def _is_limit_less_one(out, at, width, sign, limits, limit):
    borrow = np.int64(1)
    for i in range(width):
        bound = np.int64(limits[limit, i // 8] >> np.uint64(8 * (i % 8)) & np.uint64(0xFF)) - borrow
        borrow = np.int64(bound < 0)
        if np.int64(out[at + i] ^ sign) != bound & 0xFF:
            return False
    return True
