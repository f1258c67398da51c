"""The statuses that the kernels of this room return; those of `text` continue after them."""

from __future__ import annotations

# Of every message:
DONE = 0
FULL = 1  # the output needs more room; start again
MALFORMED = 2  # the scratch memory holds the reason and the position
NEW_DOUBLE = 3  # the table lacks the double whose bits are in the scratch memory

# For the payloads of internal topics:
NO_TYPE = 4  # a key of fewer than two bytes
UNKNOWN_TYPE = 5
NO_VERSION = 6  # a value of fewer than two bytes
UNKNOWN_VERSION = 7
BAD_FRAME = 8  # one of the three numbers before a metadata record
GARBAGE = 9  # bytes after a metadata record

# Of columns of payloads:
NO_KEY = 10  # a value whose key is NULL

FIRST_OF_TEXT = 20
