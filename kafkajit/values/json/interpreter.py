"""The kernel that reads JSON: values and a program → cells.

It reads what a program expects, and checks the syntax of the rest. It gives up at any oddity,
without a reason: a malformed value, a field that comes twice, an integer written as 1.0. The
careful reader decides about these.

Over 400 lines because of that kernel: its state is in local variables, which a split would pass
back and forth for every field.
"""

from __future__ import annotations

import numpy as np

from kafkajit.kernel import inlined, kernel
from kafkajit.values.block import DONE, FULL, roll_back
from kafkajit.values.json.numbers import MOST_DIGITS, UNDECIDED, double_bits, scan_number
from kafkajit.values.json.program import (
    BASE,
    CODE,
    COUNT,
    FIELD_SHIFT,
    FIRST,
    HIGH,
    INSIDE,
    KEY,
    LOW,
    MASK,
    NAME,
    QUICK,
    ROW,
    SHIFT,
    SIZE,
    SPACE,
    TABLE,
    VALID,
)
from kafkajit.values.json.program import WIDTH as BYTES_EACH
from kafkajit.values.json.strings import (
    BAD_DAY,
    ESCAPED,
    end_of_string,
    hash_of,
    is_same,
    read_day,
    read_moment,
    unescape,
    write_base64,
)
from kafkajit.values.json.types import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    INTEGER,
    JSON,
    LIST,
    MAP,
    MAX_DEPTH,
    NULL,
    NUMBER,
    SKIP,
    STRING,
    STRUCT,
    TIMESTAMP,
)

ROOM = 16  # bytes behind the last value, which the kernel may read
FULL_TEXTS = 3  # how the kernel ends if there is no room for strings that have escapes
_INDEX = (1 << 62) - 1  # an index that LLVM knows not to count from the end
_TEXT = np.int64(-(2**63))  # marks a cell whose text is among those without their escapes
# A frame of the stack: the row of the column; a list's elements so far, or the field of a struct
# that came last; the first element, or where JSON text begins; whether it is an object.
_ROW, _COUNT, _START, _OBJECT = range(4)
FRAME = 4
STACK = FRAME * (MAX_DEPTH + 2)
_FEW_KEYS = 8  # of a map, compared with each other
MARKS = 1 << 13  # a hash table of the keys of a larger map
_OK, _TROUBLE, _FULL_ITEMS, _FULL_TEXT = range(4)


@kernel
def read_values(program, powers, cells, items, scratch, values, first, stop, is_strict, troubles):
    """Read values from `first` on into a new block: (DONE, FULL or FULL_TEXTS, the next value).

    `troubles` marks the values that are left to the careful reader. With `is_strict`, these include
    those with fields that no column wants.
    """
    code, fields, names, table, follows, seed = program
    fives, tens = powers
    bytes_, ints, longs, floats, doubles = cells
    _, capacity, taken, saved, slots, _, _ = items
    stack, texts, marks = scratch
    content, starts, ends = values
    spaces = taken.size
    field_count = fields.size >> FIELD_SHIFT
    t = np.int64(0)  # of the texts
    for value in range(first, stop):
        slots[0] = value - first
        taken[0] = value - first + 1
        if taken[0] > capacity[0]:
            return np.int64(FULL), np.int64(value)
        for space in range(1, spaces):
            saved[space] = taken[space]
        p, end = np.int64(starts[value]), np.int64(ends[value])
        if end < p:  # NULL
            continue
        before = t
        top = np.int64(0)
        row = np.int64(1)
        state = np.int64(_OK)
        while True:
            # A value at p, of the column of a row.
            while p < end and _is_space(content[p & _INDEX]):
                p += 1
            if p >= end:
                state = np.int64(_TROUBLE)
                break
            letter = np.int64(content[p & _INDEX])
            at = row << SHIFT & _INDEX
            kind = code[at + CODE]
            slot = slots[code[at + SPACE] & _INDEX]
            cell = code[at + BASE] + slot & _INDEX
            valid = code[at + VALID] + slot & _INDEX
            start = p
            is_key = False
            if letter == 0x22:
                q, form = end_of_string(content, p + 1, end)
                if q < 0:
                    state = np.int64(_TROUBLE)
                    break
                p += 1
                size = q - p
                if kind == STRING:
                    if form == ESCAPED:
                        if t + size + ROOM > texts.size:
                            state = np.int64(_FULL_TEXT)
                            break
                        w = unescape(content, p, q, texts, t)
                        if w < 0:
                            state = np.int64(_TROUBLE)
                            break
                        longs[cell] = _TEXT + (t | (w - t) << 32)
                        t = w
                    else:
                        longs[cell] = p | size << 32
                    bytes_[valid] = 1
                elif kind == SKIP:
                    pass
                elif kind == JSON:
                    longs[cell] = start | (q + 1 - start) << 32
                    bytes_[valid] = 1
                elif form == ESCAPED:
                    state = np.int64(_TROUBLE)
                    break
                elif kind == TIMESTAMP:
                    moment = read_moment(content, p, q)
                    if moment == BAD_DAY:
                        state = np.int64(_TROUBLE)
                        break
                    longs[cell] = moment
                    bytes_[valid] = 1
                elif kind == DATE:
                    day = read_day(content, p, q)
                    if day == BAD_DAY or size != 10:
                        state = np.int64(_TROUBLE)
                        break
                    ints[cell] = day
                    bytes_[valid] = 1
                elif kind in (BYTES, DECIMAL):
                    if t + size + ROOM > texts.size:
                        state = np.int64(_FULL_TEXT)
                        break
                    w = write_base64(content, p, q, texts, t)
                    if w < 0:
                        state = np.int64(_TROUBLE)
                        break
                    if kind == BYTES:
                        longs[cell] = _TEXT + (t | (w - t) << 32)
                        t = w
                    elif not _put_unscaled(texts, t, w, longs, cell, code[at + HIGH]):
                        state = np.int64(_TROUBLE)
                        break
                    bytes_[valid] = 1
                else:
                    state = np.int64(_TROUBLE)
                    break
                p = q + 1
            elif letter == 0x2D or 0x30 <= letter <= 0x39:
                p, digits, count, exponent, is_whole = scan_number(content, p, end)
                if p < 0:
                    state = np.int64(_TROUBLE)
                    break
                is_negative = letter == 0x2D
                if kind == INTEGER:
                    number = np.int64(digits)
                    if is_negative:
                        number = -number
                    # A number of 19 digits may have wrapped around.
                    is_wrong = count > MOST_DIGITS or digits > np.uint64(2**63 - 1)
                    if not is_whole or is_wrong or not code[at + LOW] <= number <= code[at + HIGH]:
                        state = np.int64(_TROUBLE)
                        break
                    _put_integer(cells, cell, code[at + BYTES_EACH], number)
                    bytes_[valid] = 1
                elif kind == NUMBER:
                    # An integer that is not exact as a double must not become one unseen.
                    is_large = is_strict and is_whole and digits > np.uint64(2**63 - 1)
                    if count > MOST_DIGITS or is_large:
                        state = np.int64(_TROUBLE)
                        break
                    if digits <= np.uint64(1 << 53) and -22 <= exponent <= 22:
                        double = np.float64(digits)
                        if exponent < 0:
                            double /= tens[-exponent & _INDEX]
                        else:
                            double *= tens[exponent & _INDEX]
                        if is_negative:
                            double = -double
                        if code[at + BYTES_EACH] == 8:
                            doubles[cell] = double
                    else:
                        bits = double_bits(digits, exponent, is_negative, fives)
                        if bits == UNDECIDED or code[at + BYTES_EACH] != 8:
                            state = np.int64(_TROUBLE)
                            break
                        longs[cell] = np.int64(bits)
                        double = np.float64(0)
                    if code[at + BYTES_EACH] == 4:
                        single = np.float32(double)
                        if np.isinf(single):
                            state = np.int64(_TROUBLE)
                            break
                        floats[cell] = single
                    bytes_[valid] = 1
                elif kind == SKIP:
                    pass
                elif kind == JSON:
                    longs[cell] = start | (p - start) << 32
                    bytes_[valid] = 1
                elif kind == DECIMAL:
                    number, is_good = _scaled(digits, count, exponent + code[at + LOW])
                    if not is_good or number >= code[at + HIGH]:
                        state = np.int64(_TROUBLE)
                        break
                    number = -number if is_negative else number
                    longs[2 * cell], longs[2 * cell + 1] = number, number >> 63
                    bytes_[valid] = 1
                else:
                    state = np.int64(_TROUBLE)
                    break
            elif letter == 0x7B or letter == 0x5B:
                is_object = letter == 0x7B
                if top >= FRAME * MAX_DEPTH:
                    state = np.int64(_TROUBLE)
                    break
                if kind in (STRUCT, MAP, LIST):
                    # A field that comes twice replaces all of the first one.
                    if is_object != (kind != LIST) or bytes_[valid] != 0:
                        state = np.int64(_TROUBLE)
                        break
                    bytes_[valid] = 1
                elif kind != SKIP and kind != JSON:
                    state = np.int64(_TROUBLE)
                    break
                top += FRAME
                stack[top + _ROW & _INDEX] = row
                stack[top + _COUNT & _INDEX] = field_count + row if kind == STRUCT else 0
                stack[top + _START] = start
                stack[top + _OBJECT & _INDEX] = is_object
                if kind in (LIST, MAP):
                    stack[top + _START] = taken[code[at + INSIDE] & _INDEX]
                p += 1
                while p < end and _is_space(content[p & _INDEX]):
                    p += 1
                if p >= end:
                    state = np.int64(_TROUBLE)
                    break
                if content[p & _INDEX] != (0x7D if is_object else 0x5D):
                    if is_object:
                        is_key = True
                    else:
                        row = np.int64(0)
                        if kind == LIST:
                            row = code[at + FIRST]
                            space = code[at + INSIDE] & _INDEX
                            if taken[space] == capacity[space]:
                                state = np.int64(_FULL_ITEMS)
                                break
                            slots[space] = taken[space]
                            taken[space] += 1
                            stack[top + _COUNT & _INDEX] = 1
                        continue
                # An empty one ends below.
            else:
                size = literal_size(content, p, end)
                if size == 0:
                    state = np.int64(_TROUBLE)
                    break
                p += size
                if letter == 0x6E:
                    # A field that comes twice, with null the second time.
                    if kind > NULL and bytes_[valid] != 0:
                        state = np.int64(_TROUBLE)
                        break
                elif kind == BOOLEAN:
                    bytes_[cell] = letter == 0x74
                    bytes_[valid] = 1
                elif kind == JSON:
                    longs[cell] = start | size << 32
                    bytes_[valid] = 1
                elif kind != SKIP:
                    state = np.int64(_TROUBLE)
                    break
            is_end = False
            while not is_key:
                # Behind a value, or at the end of an array or an object that is empty.
                if top == 0:
                    is_end = True
                    break
                while p < end and _is_space(content[p & _INDEX]):
                    p += 1
                if p >= end:
                    state = np.int64(_TROUBLE)
                    break
                letter = np.int64(content[p & _INDEX])
                is_object = stack[top + _OBJECT & _INDEX] != 0
                row = stack[top + _ROW & _INDEX]
                at = row << SHIFT & _INDEX
                kind = code[at + CODE]
                p += 1
                if letter == 0x2C:
                    if is_object:
                        is_key = True
                        while p < end and _is_space(content[p & _INDEX]):
                            p += 1
                        break
                    row = np.int64(0)
                    if kind == LIST:
                        row = code[at + FIRST]
                        space = code[at + INSIDE] & _INDEX
                        if taken[space] == capacity[space]:
                            state = np.int64(_FULL_ITEMS)
                            break
                        slots[space] = taken[space]
                        taken[space] += 1
                        stack[top + _COUNT & _INDEX] += 1
                    break
                if letter != (0x7D if is_object else 0x5D):
                    state = np.int64(_TROUBLE)
                    break
                if kind in (LIST, MAP):
                    slot = slots[code[at + SPACE] & _INDEX]
                    ints[code[at + BASE] + slot & _INDEX] = stack[top + _COUNT & _INDEX]
                    if kind == MAP and stack[top + _COUNT & _INDEX] > 1:
                        base = code[at + KEY] + stack[top + _START] & _INDEX
                        if _has_twins(
                            content, texts, longs, base, stack[top + _COUNT & _INDEX], marks, seed
                        ):
                            state = np.int64(_TROUBLE)
                            break
                elif kind == JSON:
                    slot = slots[code[at + SPACE] & _INDEX]
                    start = stack[top + _START]
                    longs[code[at + BASE] + slot & _INDEX] = start | (p - start) << 32
                    bytes_[code[at + VALID] + slot & _INDEX] = 1
                top -= FRAME
            if is_end or state != _OK:
                break
            if not is_key:
                continue
            # A key at p, in the object on top.
            if p >= end or content[p & _INDEX] != 0x22:
                state = np.int64(_TROUBLE)
                break
            p += 1
            row = stack[top + _ROW & _INDEX]
            at = row << SHIFT & _INDEX
            kind = code[at + CODE]
            if kind == STRUCT and code[at + COUNT] > 0:
                # Most often the fields come in the order of the value before.
                last = stack[top + _COUNT & _INDEX] & _INDEX
                field = follows[last]
                place = field << FIELD_SHIFT & _INDEX
                size = fields[place + QUICK]
                if size <= end - p and is_same(content, p, size, names, fields[place + NAME]):
                    p += size
                    row = fields[place + ROW]
                    stack[top + _COUNT & _INDEX] = field
                    # It is this struct's own, as all that have followed one of its fields.
                    if p < end:
                        continue
                    state = np.int64(_TROUBLE)
                    break
            q, form = end_of_string(content, p, end)
            if q < 0:
                state = np.int64(_TROUBLE)
                break
            size = q - p
            key = p | size << 32
            if form == ESCAPED and kind != SKIP and kind != JSON:
                if t + size + ROOM > texts.size:
                    state = np.int64(_FULL_TEXT)
                    break
                w = unescape(content, p, q, texts, t)
                if w < 0:
                    state = np.int64(_TROUBLE)
                    break
                size = w - t
                key = _TEXT + (t | size << 32)
                if kind == MAP:
                    t = w
            if kind == MAP:
                space = code[at + INSIDE] & _INDEX
                if taken[space] == capacity[space]:
                    state = np.int64(_FULL_ITEMS)
                    break
                slots[space] = taken[space]
                longs[code[at + KEY] + taken[space] & _INDEX] = key
                taken[space] += 1
                stack[top + _COUNT & _INDEX] += 1
                row = code[at + FIRST]
            elif kind == STRUCT:
                if form == ESCAPED:
                    field = _find(texts, t, size, at, code, fields, names, table, seed)
                else:
                    field = _find(content, p, size, at, code, fields, names, table, seed)
                row = np.int64(0)
                if field >= 0:
                    row = fields[(field << FIELD_SHIFT & _INDEX) + ROW]
                    follows[stack[top + _COUNT & _INDEX] & _INDEX] = field
                    stack[top + _COUNT & _INDEX] = field
                elif is_strict:
                    state = np.int64(_TROUBLE)
                    break
            else:
                row = np.int64(0)
            p = q + 1
            while p < end and _is_space(content[p & _INDEX]):
                p += 1
            if p >= end or content[p & _INDEX] != 0x3A:
                state = np.int64(_TROUBLE)
                break
            p += 1
        if state == _OK:
            while p < end and _is_space(content[p & _INDEX]):
                p += 1
            if p != end:
                state = np.int64(_TROUBLE)
        if state != _OK:
            roll_back(cells, items)
            t = before
            if state == _FULL_ITEMS:
                return np.int64(FULL), np.int64(value)
            if state == _FULL_TEXT:
                return np.int64(FULL_TEXTS), np.int64(value)
            taken[0] = value - first + 1
            troubles[value] = 1
    return np.int64(DONE), np.int64(stop)


@inlined
def _is_space(byte):
    return byte <= 0x20 and (byte == 0x20 or byte == 0x0A or byte == 0x0D or byte == 0x09)


@kernel
def literal_size(content, p, end):
    """The bytes of null, true or false, 0 if it is another word."""
    if end - p < 4:
        return np.int64(0)
    a, b, c, d = content[p & _INDEX], content[p + 1], content[p + 2], content[p + 3]
    if a == 0x6E and b == 0x75 and c == 0x6C and d == 0x6C:
        return np.int64(4)
    if a == 0x74 and b == 0x72 and c == 0x75 and d == 0x65:
        return np.int64(4)
    if a == 0x66 and b == 0x61 and c == 0x6C and d == 0x73 and end - p > 4:
        return np.int64(5 if content[p + 4] == 0x65 else 0)
    return np.int64(0)


@inlined
def _put_integer(cells, cell, width, number):
    if width == 8:
        cells.longs[cell] = number
    elif width == 4:
        cells.ints[cell] = number
    else:
        for i in range(width):
            cells.bytes[cell * width + i] = number >> 8 * i & 0xFF


@kernel
def _put_unscaled(texts, start, stop, longs, cell, limit):
    """Write a big-endian number of up to 8 bytes as a decimal; whether it fits."""
    size = stop - start
    if size < 1 or size > 8:
        return False
    number = np.int64(texts[start])
    number = (number ^ 0x80) - 0x80
    for i in range(1, size):
        number = number << 8 | np.int64(texts[start + i])
    # A decimal of 18 digits has this limit, or one that is larger.
    if not -limit < number < limit:
        return False
    longs[2 * cell], longs[2 * cell + 1] = number, number >> 63
    return True


@kernel
def _scaled(digits, count, power):
    """(digits * 10**power, whether it is exact and has at most 18 digits)."""
    if digits == 0:
        return np.int64(0), True
    if power < 0 or count + power > 18:
        return np.int64(0), False
    number = np.int64(digits)
    for _ in range(power):
        number *= 10
    return number, True


@kernel
def _find(content, p, size, at, code, fields, names, table, seed):
    """The field of a struct with a name, -1 if it has no such field."""
    place = hash_of(content, p, size, seed) & code[at + MASK]
    while True:
        field = table[code[at + TABLE] + place & _INDEX]
        if field < 0:
            return np.int64(-1)
        entry = field << FIELD_SHIFT & _INDEX
        if fields[entry + SIZE] == size and is_same(content, p, size, names, fields[entry + NAME]):
            return field
        place = place + 1 & code[at + MASK]


@kernel
def _is_same_key(content, texts, a, b):
    size = a >> 32 & 0x7FFFFFFF
    if size != b >> 32 & 0x7FFFFFFF:
        return False
    first, second = a & 0xFFFFFFFF, b & 0xFFFFFFFF
    for i in range(size):
        x = content[first + i] if a >= 0 else texts[first + i]
        y = content[second + i] if b >= 0 else texts[second + i]
        if x != y:
            return False
    return True


@kernel
def _has_twins(content, texts, longs, base, count, marks, seed):
    """Whether two keys of a map are the same. It is taken for granted if there are too many."""
    if count <= _FEW_KEYS:
        for i in range(1, count):
            for k in range(i):
                if _is_same_key(content, texts, longs[base + i], longs[base + k]):
                    return True
        return False
    if 2 * count > marks.size:
        return True
    size = np.int64(16)
    while size < 2 * count:
        size *= 2
    marks[:size] = -1
    for i in range(count):
        key = longs[base + i]
        place = key & 0xFFFFFFFF
        length = key >> 32 & 0x7FFFFFFF
        if key >= 0:
            hash_ = hash_of(content, place, length, seed) & (size - 1)
        else:
            hash_ = hash_of(texts, place, length, seed) & (size - 1)
        while marks[hash_] >= 0:
            if _is_same_key(content, texts, key, longs[base + marks[hash_]]):
                return True
            hash_ = hash_ + 1 & (size - 1)
        marks[hash_] = i
    return False
