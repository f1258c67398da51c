"""Kernels that find the members of JSON lines: their spans, in the text as it stands.

They check the syntax of each line, and stop at the first that has something odd: the careful reader
of `kafkajit.values.json` then has the reason.
"""

from __future__ import annotations

import numpy as np

from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import copy_bytes, read_word, trailing_zeros
from kafkajit.values.json.interpreter import literal_size
from kafkajit.values.json.numbers import scan_number
from kafkajit.values.json.strings import ESCAPED, end_of_string, hash_of, is_same, unescape

# How a call ends: all lines are read, as far as they are whole; the table of rows is full; a name
# is new; a name comes twice; a line is malformed.
DONE, FULL, NEW_NAME, TWICE, MALFORMED = range(5)
# A string with escapes, among the letters that decide the kind of a value.
WITH_ESCAPES = ord("\\")
_INDEX = (1 << 62) - 1  # an index that LLVM knows not to count from the end
_QUOTE, _COMMA, _COLON, _NEWLINE = (ord(sign) for sign in '",:\n')
_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST = (ord(sign) for sign in "{}[]")
_LETTER_N = ord("n")
_ONES = np.int64(0x0101010101010101)
_HIGH_BITS = np.int64(-0x7F7F7F7F7F7F7F80)  # 0x80 in each byte
_NEWLINES = np.int64(0x0A0A0A0A0A0A0A0A)
_WANTED = -2  # the column of a name that is wanted, and has not come yet


@kernel
def read_members(content, end, is_last, names, used, cells, stack, row, line, state):
    """Read lines: (how it ends, the next row, the next line).

    Args:
        content: the text, with room behind it.
        end: where the text ends.
        is_last: whether the last line may lack a newline.
        names: their places in `texts`, sizes and columns; a hash table; the name that came last
            time after each name; the texts; the seed.
        used: how many columns have been used.
        cells: where each cell begins, its size, its letter, by columns; the line of each row.
        stack: the brackets in which a value is.
        row: the first line's row.
        line: its number.
        state: where the first line begins; the span of a name that is new or comes twice, without
            quotes; the end of its line. The next call goes on with that name.
    """
    _, _, letters, lines = cells
    most = lines.size
    row, line, p = np.int64(row), np.int64(line), np.int64(state[0])
    while p < end and row < most:
        at = state[1] - 1
        if at >= 0:
            q = state[3]
            state[1] = 0
        else:
            q = _end_of_line(content, p, end)
            if q == end and not is_last:
                break
            at = _behind_space(content, p, q)
            if at < q:
                for column in range(used):
                    letters[column * most + row] = 0
        if at < q:
            status, start, stop = _read_line(content, at, q, names, row, most, cells, stack)
            if status != DONE:
                state[0], state[1], state[2], state[3] = p, start, stop, q
                return status, row, line
            lines[row] = line
            row += 1
        line += 1
        p = min(q + 1, np.int64(end))
    state[0] = p
    return np.int64(FULL if row == most else DONE), row, line


@kernel
def _end_of_line(content, p, end):
    """The position of the next newline, or the end."""
    while p < end:
        word = read_word(content, p) ^ _NEWLINES
        found = (word - _ONES) & ~word & _HIGH_BITS
        if found != 0:
            return min(p + (trailing_zeros(found) >> 3), np.int64(end))
        p += 8
    return np.int64(end)


@inlined
def _is_space(byte):
    return byte <= 0x20 and (byte == 0x20 or byte == 0x09 or byte == 0x0D or byte == 0x0A)


@kernel
def _behind_space(content, p, end):
    while p < end and _is_space(content[p & _INDEX]):
        p += 1
    return p


@kernel
def _read_line(content, p, end, names, row, most, cells, stack):
    """(DONE, or why not; the span of a name) of a line, from its first letter or a name on."""
    _, _, columns, _, follows, _, _ = names
    starts, sizes, letters, _ = cells
    nothing = np.int64(0)
    bad = np.int64(MALFORMED), nothing, nothing
    is_empty = False
    if content[p & _INDEX] != _QUOTE:
        if content[p & _INDEX] != _OPEN:
            return bad
        p = _behind_space(content, p + 1, end)
        is_empty = p < end and content[p & _INDEX] == _CLOSE
    last = np.int64(columns.size)
    while not is_empty:
        if p >= end or content[p & _INDEX] != _QUOTE:
            return bad
        q, _ = end_of_string(content, p + 1, end)
        if q < 0:
            return bad
        start, size = p + 1, q - p - 1
        name = follows[last]
        if not _is_name(content, start, size, names, name):
            name = _find(content, start, size, names)
            if name < 0:
                return np.int64(NEW_NAME), start, q
            follows[last] = name
        last = name
        p = _behind_space(content, q + 1, end)
        if p >= end or content[p & _INDEX] != _COLON:
            return bad
        p = _behind_space(content, p + 1, end)
        column = columns[name]
        if column == _WANTED:
            return np.int64(NEW_NAME), start, start + size
        q, letter = _end_of_value(content, p, end, stack)
        if q < 0:
            return bad
        if column >= 0:
            cell = column * most + row
            if letters[cell] != 0:
                return np.int64(TWICE), start, start + size
            is_string = letter in (_QUOTE, WITH_ESCAPES)
            starts[cell] = p + is_string
            sizes[cell] = q - p - 2 * is_string
            letters[cell] = letter
        p = _behind_space(content, q, end)
        if p >= end:
            return bad
        if content[p & _INDEX] == _CLOSE:
            break
        if content[p & _INDEX] != _COMMA:
            return bad
        p = _behind_space(content, p + 1, end)
    p = _behind_space(content, p + 1, end)
    return np.int64(DONE if p == end else MALFORMED), nothing, nothing


@inlined
def _is_name(content, start, size, names, name):
    places, lengths, _, _, _, texts, _ = names
    return lengths[name] == size and is_same(content, start, size, texts, places[name])


@kernel
def _find(content, start, size, names):
    """The number of a name, -1 if it is new."""
    _, _, _, table, _, _, seed = names
    place = hash_of(content, start, size, seed) & (table.size - 1)
    while table[place] >= 0:
        if _is_name(content, start, size, names, table[place]):
            return table[place]
        place = (place + 1) & (table.size - 1)
    return np.int64(-1)


@kernel
def _end_of_scalar(content, p, end):
    """(where a value that is neither array nor object ends, its letter); -1 if it is malformed."""
    bad = np.int64(-1), np.int64(0)
    if p >= end:
        return bad
    letter = np.int64(content[p & _INDEX])
    if letter == _QUOTE:
        q, form = end_of_string(content, p + 1, end)
        kind = np.int64(WITH_ESCAPES if form == ESCAPED else letter)
        return (np.int64(-1) if q < 0 else q + 1), kind
    if letter == 0x2D or 0x30 <= letter <= 0x39:
        q, _, _, _, _ = scan_number(content, p, end)
        return (np.int64(-1) if q < 0 else np.int64(q)), letter
    size = literal_size(content, p, end)
    return (np.int64(-1) if size == 0 else p + size), letter


@kernel
def _end_of_value(content, p, end, stack):
    """(where a value ends, the letter that decides its kind); -1 if it is malformed."""
    bad = np.int64(-1), np.int64(0)
    if p >= end:
        return bad
    kind = np.int64(content[p & _INDEX])
    if kind != _OPEN and kind != _OPEN_LIST:
        return _end_of_scalar(content, p, end)
    top = np.int64(0)
    while True:
        # A value at p.
        if p >= end:
            return bad
        letter = content[p & _INDEX]
        is_inside = letter in (_OPEN, _OPEN_LIST)
        if is_inside:
            if top == stack.size:
                return bad
            closing = np.uint8(_CLOSE if letter == _OPEN else _CLOSE_LIST)
            stack[top] = closing
            top += 1
            p = _behind_space(content, p + 1, end)
            if p >= end:
                return bad
            if content[p & _INDEX] != closing:
                if closing == _CLOSE:
                    p = _behind_key(content, p, end)
                    if p < 0:
                        return bad
                continue
        else:
            p, _ = _end_of_scalar(content, p, end)
            if p < 0:
                return bad
        # Behind a value, or at the end of an array or an object that is empty.
        while True:
            if top == 0:
                return p, kind
            p = _behind_space(content, p, end)
            if p >= end:
                return bad
            letter = content[p & _INDEX]
            p += 1
            if letter == _COMMA:
                p = _behind_space(content, p, end)
                if stack[top - 1] == _CLOSE:
                    p = _behind_key(content, p, end)
                    if p < 0:
                        return bad
                break
            if letter != stack[top - 1]:
                return bad
            top -= 1


@kernel
def _behind_key(content, p, end):
    """The position of the value whose key begins at p, -1 if it is malformed."""
    if p >= end or content[p & _INDEX] != _QUOTE:
        return np.int64(-1)
    q, _ = end_of_string(content, p + 1, end)
    if q < 0:
        return np.int64(-1)
    p = _behind_space(content, q + 1, end)
    if p >= end or content[p & _INDEX] != _COLON:
        return np.int64(-1)
    return _behind_space(content, p + 1, end)


@kernel
def write_texts(content, starts, sizes, letters, offsets, out):
    """Copy the texts of a column, strings without their escapes: (rows, bytes).

    It stops at the first string with half a surrogate pair. NULL and missing members take no bytes.
    """
    w = np.int64(0)
    for row in range(letters.size):
        offsets[row] = w
        letter = letters[row]
        if letter == 0 or letter == _LETTER_N:
            continue
        if letter == WITH_ESCAPES:
            w = unescape(content, starts[row], starts[row] + sizes[row], out, w)
            if w < 0:
                return np.int64(row), np.int64(0)
        else:
            copy_bytes(out, w, content, starts[row], sizes[row])
            w += sizes[row]
    offsets[letters.size] = w
    return np.int64(letters.size), w
