"""Why a value cannot be decoded: the statuses that kernels return, and their words; results."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

(
    OK,
    NULL,  # no value: not an error
    TRUNCATED,
    VARINT_TOO_LONG,
    INT_RANGE,
    NEGATIVE_SIZE,
    SIZE_PAST_END,
    BAD_BOOLEAN,
    BAD_BRANCH,
    BAD_SYMBOL,
    UNKNOWN_SYMBOL,
    TOO_MANY_ITEMS,
    BLOCK_SIZE,
    TOO_DEEP,
    BAD_TEXT,
    BAD_DECIMAL,
    TRAILING,
    MISMATCH,  # what was written is not what the reader's schema has
    NOT_FRAMED,
    UNKNOWN_SCHEMA,
    UNUSABLE_SCHEMA,
    BAD_WIRE_TYPE,
    BAD_TIME,
    BAD_INDEX,
    BAD_JSON,
    TOO_LARGE,
) = range(26)

WORDS = {
    TRUNCATED: "the value ends in the middle of a field",
    VARINT_TOO_LONG: "a varint has more than 64 bits",
    INT_RANGE: "the number does not fit 32 bits",
    NEGATIVE_SIZE: "a size is negative",
    SIZE_PAST_END: "a size reaches past the end of the value",
    BAD_BOOLEAN: "a boolean is neither 0 nor 1",
    BAD_BRANCH: "the union has no such branch",
    BAD_SYMBOL: "the enum has no such symbol",
    UNKNOWN_SYMBOL: "the reader's enum has neither this symbol nor a default",
    TOO_MANY_ITEMS: "a block claims more items than the value has bytes",
    BLOCK_SIZE: "a block's size is wrong",
    TOO_DEEP: "the value is nested deeper than the columns",
    BAD_TEXT: "the text is not valid UTF-8",
    BAD_DECIMAL: "the decimal does not fit its precision",
    TRAILING: "bytes are left after the last field",
    NOT_FRAMED: "the value does not begin with a schema id",
    UNKNOWN_SCHEMA: "the schema is not known",
    UNUSABLE_SCHEMA: "the schema cannot be used",
    BAD_WIRE_TYPE: "a field's number is 0, its wire type is unknown, or a group does not end",
    BAD_TIME: "seconds or nanoseconds are out of the range of timestamps and durations",
    TOO_LARGE: "the value has more elements than there is room for",
    BAD_INDEX: "the schema has no message with these indexes",
}


class Faults(NamedTuple):
    """The status of each value, the row of the program that failed, and the position."""

    statuses: npt.NDArray[np.uint8]
    places: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int32]

    @classmethod
    def none_of(cls, size: int) -> Faults:
        """No faults, of that many values."""
        nowhere = np.full((2, size), -1, dtype=np.int32)
        return cls(np.zeros(size, dtype=np.uint8), nowhere[0], nowhere[1])


class Decoded(NamedTuple):
    """Decoded values, NULL if they are malformed; the malformed ones, and why they are."""

    values: pa.Array
    bad: npt.NDArray[np.int64]
    words: Callable[[int], str]
