"""Kernels that find the fields of CSV, as RFC 4180 has it: commas, quotes that are doubled inside.

A record ends with a newline, perhaps with a carriage return before it. An empty field is NULL, and
`""` is an empty text. Everything else that programs write is an error.
"""

from __future__ import annotations

import numpy as np

from kafkajit.format.utf8 import sequence_size
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import copy_bytes, read_word, trailing_zeros

# How a call ends: all records are read, as far as they are whole; the table of rows is full; the
# last record is not whole; or a record is malformed.
(
    DONE, FULL, SHORT, WRONG_COUNT, QUOTE_INSIDE, BEHIND_QUOTE, LONE_RETURN, NOT_UTF8, UNCLOSED,
) = range(9)  # fmt: skip
# The forms of fields.
PLAIN, DOUBLED = range(2)
ANY_COUNT = -1  # of fields: those of the line of names
_INDEX = (1 << 62) - 1  # an index that LLVM knows not to count from the end
_QUOTE, _COMMA, _NEWLINE, _RETURN = (ord(sign) for sign in '",\n\r')
_ONES = np.int64(0x0101010101010101)
_HIGH_BITS = np.int64(-0x7F7F7F7F7F7F7F80)  # 0x80 in each byte
_QUOTES, _COMMAS, _NEWLINES, _RETURNS = (
    np.int64(sign * 0x0101010101010101) for sign in (_QUOTE, _COMMA, _NEWLINE, _RETURN)
)


@kernel
def read_fields(content, start, end, is_last, expected, columns, cells, row, line):
    """Read records: (how it ends, the next row, line and record's start, a number).

    The number is that of a malformed record's fields, or of the line with the fault.

    Args:
        content: the text, with room behind it.
        start: where the first record begins.
        end: where the text ends.
        is_last: whether no text follows.
        expected: the number of fields of a record, or ANY_COUNT.
        columns: the column of each field, -1 if it is not wanted.
        cells: where each cell begins, its size (-1: NULL), its form, by columns; the line of each
            row.
        row: the first record's row.
        line: its line.
    """
    starts, sizes, forms, lines = cells
    most = lines.size
    row, line, p = np.int64(row), np.int64(line), np.int64(start)
    while p < end and row < most:
        begin = p
        field = np.int64(0)
        here = line  # the line of p
        is_blank = False
        is_open = True
        while is_open:
            status, first, size, form, p, breaks = _read_field(content, p, end, is_last)
            if status != DONE:
                return status, row, line, begin, here + breaks
            here += breaks
            column = columns[field] if field < columns.size else np.int64(-1)
            if column >= 0:
                cell = column * most + row
                starts[cell], sizes[cell], forms[cell] = first, size, form
            field += 1
            if p < end and content[p & _INDEX] == _COMMA:
                p += 1
                continue
            is_open = False
            is_blank = field == 1 and size < 0
            if p < end:
                p += 1 + (content[p & _INDEX] == _RETURN)
        here += 1
        if is_blank and expected > 1:
            line = here  # a blank line is not a record
            continue
        if expected != ANY_COUNT and field != expected:
            return np.int64(WRONG_COUNT), row, line, begin, field
        lines[row] = line
        row += 1
        line = here
        if expected == ANY_COUNT:
            return np.int64(FULL), row, line, p, field
    return np.int64(FULL if row == most else DONE), row, line, p, np.int64(0)


@kernel
def _read_field(content, p, end, is_last):
    """(DONE or why not, where its text begins, its size, its form, what follows it, newlines).

    Behind a field is a comma, the end of a line, or the end of the text.
    """
    short = np.int64(DONE if is_last else SHORT)
    breaks = np.int64(0)
    if p < end and content[p & _INDEX] == _QUOTE:
        start = p + 1
        form = np.int64(PLAIN)
        p = start
        while True:
            p = _next_in_quotes(content, p, end)
            if p >= end:
                status = np.int64(UNCLOSED if is_last else SHORT)
                return status, start, np.int64(0), form, p, np.int64(0)
            byte = content[p & _INDEX]
            if byte == _NEWLINE:
                breaks += 1
                p += 1
            elif byte == _QUOTE:
                if p + 1 >= end and not is_last:
                    return short, start, np.int64(0), form, p, breaks
                if p + 1 >= end or content[p + 1] != _QUOTE:
                    break
                form = np.int64(DOUBLED)
                p += 2
            else:
                size = sequence_size(content, p, end)
                if size < 0:
                    # It may be cut by the end of the block.
                    is_cut = end - p < 4 and not is_last
                    status = np.int64(SHORT if is_cut else NOT_UTF8)
                    return status, start, np.int64(0), form, p, breaks
                p += size
        size = p - start
        p += 1
        if p >= end:
            return short, start, size, form, p, breaks
        byte = content[p & _INDEX]
        if byte != _COMMA and byte != _NEWLINE and byte != _RETURN:
            return np.int64(BEHIND_QUOTE), start, size, form, p, breaks
        return _at_end_of_field(content, start, size, form, p, end, is_last, breaks)
    start = p
    while True:
        p = _next_in_field(content, p, end)
        if p >= end:
            size = end - start
            return short, start, size if size > 0 else np.int64(-1), np.int64(PLAIN), p, breaks
        byte = content[p & _INDEX]
        if byte == _QUOTE:
            return np.int64(QUOTE_INSIDE), start, np.int64(0), np.int64(PLAIN), p, breaks
        if byte < 0x80:
            break
        size = sequence_size(content, p, end)
        if size < 0:
            is_cut = end - p < 4 and not is_last
            status = np.int64(SHORT if is_cut else NOT_UTF8)
            return status, start, np.int64(0), np.int64(PLAIN), p, breaks
        p += size
    size = p - start
    size = size if size > 0 else np.int64(-1)
    return _at_end_of_field(content, start, size, np.int64(PLAIN), p, end, is_last, breaks)


@kernel
def _at_end_of_field(content, start, size, form, p, end, is_last, breaks):
    """The return value of _read_field at a comma, a newline, or a carriage return."""
    status = np.int64(DONE)
    if content[p & _INDEX] == _RETURN:
        if p + 1 < end:
            if content[p + 1] != _NEWLINE:
                status = np.int64(LONE_RETURN)
        elif not is_last:
            status = np.int64(SHORT)
    return status, start, size, form, p, breaks


@kernel
def _next_in_quotes(content, p, end):
    """The next quote, newline, or byte that is not ASCII."""
    while p < end:
        word = read_word(content, p)
        quotes, newlines = word ^ _QUOTES, word ^ _NEWLINES
        found = ((quotes - _ONES & ~quotes) | (newlines - _ONES & ~newlines) | word) & _HIGH_BITS
        if found != 0:
            return p + (trailing_zeros(found) >> 3)
        p += 8
    return p


@kernel
def _next_in_field(content, p, end):
    """The next comma, quote, newline, carriage return, or byte that is not ASCII."""
    while p < end:
        word = read_word(content, p)
        quotes, newlines = word ^ _QUOTES, word ^ _NEWLINES
        commas, returns = word ^ _COMMAS, word ^ _RETURNS
        found = (
            (quotes - _ONES & ~quotes)
            | (newlines - _ONES & ~newlines)
            | (commas - _ONES & ~commas)
            | (returns - _ONES & ~returns)
            | word
        ) & _HIGH_BITS
        if found != 0:
            return p + (trailing_zeros(found) >> 3)
        p += 8
    return p


@kernel
def write_fields(content, starts, sizes, forms, offsets, out):
    """Copy the texts of a column, with single quotes for doubled ones: the bytes of all."""
    w = np.int64(0)
    for row in range(sizes.size):
        offsets[row] = w
        p, size = starts[row], sizes[row]
        if size <= 0:
            continue
        if forms[row] == PLAIN:
            copy_bytes(out, w, content, p, size)
            w += size
            continue
        end = p + size
        while p < end:
            byte = content[p]
            out[w] = byte
            w += 1
            p += 1 + (byte == _QUOTE)
    offsets[sizes.size] = w
    return w
