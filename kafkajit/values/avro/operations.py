"""The operations of Avro's programs: what `program.py` compiles and `interpreter.py` runs."""

from __future__ import annotations

# Columns of a row. BASE is the place of the cell, in cells; a block of memory fills it in.
CODE, SPACE, BASE, A, B, C, CELL = range(7)
SHIFT = 3
COLUMNS = 1 << SHIFT

# Operations, with the contents of their columns.
(
    LONG,
    INT,
    STRING,
    NULLABLE,  # A: the branch that is null; B: the row if it is; sets its cell if it is not
    SKIP_INT,
    SKIP_LONG,
    SKIP_NULLABLE,  # as NULLABLE
    SKIP_BYTES,
    DOUBLE,
    BOOL,
    SET,  # A: the byte to be set; 1 if there is a value
    SKIP_FIXED,  # A: bytes
    SKIP_BOOL,
    END,
    INT_TO_LONG,
    INT_TO_FLOAT,
    INT_TO_DOUBLE,
    LONG_TO_FLOAT,
    LONG_TO_DOUBLE,
    CHECKED_STRING,  # STRING, whose text is checked for UTF-8 at once
    BYTES,
    DECIMAL,  # A: the row of its limit in `limits`; B: bytes of the cell
    ENUM,  # A: the place of its first symbol in `symbols`; B: how many there are
    UNION,  # A: how many branches; as many JUMP rows follow
    SKIP_ENUM,  # A: how many symbols there are
    LIST,  # A: the space of its elements; B: the row after it; C: the bytes of the least element
    SKIP_LIST,  # B, C: as LIST; A: whether all elements have as many bytes
    FLOAT,
    FLOAT_TO_DOUBLE,
    FIXED,  # A: bytes
    FIXED_DECIMAL,  # A, B: as DECIMAL; C: bytes that were written
    REST,  # all that is left
    REST_TEXT,  # as REST; checked for UTF-8
    LIST_END,  # A: the row of its LIST
    SKIP_LIST_END,
    JUMP,  # A: the next row
    CALL,  # A: the row of a type that contains itself
    RETURN,
    SET_INT,  # A: the number
    SET_LONG,  # A: the number or the text; of a decimal one of B words, the word C
    NEW_ELEMENT,  # A: the space; an element of a list by default
    FAIL,  # A: the status
) = range(42)
# The kernel's quick loop has the first ones; of these, and of the others, the first have a varint.
LAST_QUICK_VARINT, LAST_QUICK = SKIP_BYTES, END
LAST_VARINT = SKIP_LIST

NO_SYMBOL = -1  # in `symbols`: the reader does not know it
