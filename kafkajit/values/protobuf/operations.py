"""The operations of Protobuf's programs: what `program.py` compiles and `interpreter.py` runs."""

from __future__ import annotations

# Columns of a row. BASE, VALID and ONEOF are places of cells, which a block of memory fills in;
# CELL, VALID_CELL and ONEOF_CELL are their numbers, or -1.
(
    TAG,  # of the field, with the wire type that it is expected to have
    CODE,
    SPACE,
    BASE,
    CELL,
    VALID,
    VALID_CELL,
    ONEOF,
    ONEOF_CELL,
    NEXT,  # the row of the field that is expected behind this one
    A,
    B,
    CLEARED,  # the place in `symbols` of the cells to clear if another field of the oneof is set
    COUNT,  # how many there are
    QUICK,  # 1: the kernel's quick loop reads it
) = range(15)
SHIFT = 4
COLUMNS = 1 << SHIFT

# Operations, with the contents of their columns. Those of elements and of single fields come first.
(
    INT64,
    INT32,
    TEXT,
    CHECKED_TEXT,  # TEXT, which is checked for UTF-8 at once
    BYTES,
    BOOL,
    FIXED64,
    FIXED32,
    SKIP_VARINT,
    SKIP_SIZED,
    SKIP_FIXED64,
    SKIP_FIXED32,
    SINT64,
    SINT32,
    UINT32,
    UINT32_TO_LONG,
    FIXED32_TO_LONG,
    TIMESTAMP,
    DURATION,
    SKIP_TEXT,  # SKIP_SIZED, which is checked for UTF-8
    MESSAGE,  # A: the row of its MESSAGE_START
    JSON_MESSAGE,  # the same; its cell has the place of the whole
    REPEATED,  # A: the space of its elements; the next row reads one
    REPEATED_MESSAGE,  # A: the row of its MESSAGE_START; B: the space of its elements
    TOO_NESTED,
    # Rows that no field has.
    MESSAGE_START,  # A: the row of its first field; B: the place in `symbols` of the rows by
    # number; COUNT: how many numbers there are; CLEARED: the place of pairs of larger numbers and
    # rows
    START,  # A: the row of a MESSAGE_START
    INDEXES,  # A: the row of its first INDEX; COUNT: how many there are; B: the place in `symbols`
    # of their names
    INDEX,  # A: the row of a MESSAGE_START, -1: it is another message; B, COUNT: of those inside
    NUMBERED,  # A: the row of its first INDEX; COUNT: how many there are
) = range(30)
# The kernel's quick loop has the first ones.
LAST_QUICK = SKIP_FIXED32

# Wire types.
VARINT, WIDE, SIZED, GROUP, GROUP_END, NARROW = range(6)
