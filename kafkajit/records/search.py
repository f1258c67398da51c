"""Finds the stretches of a log's bytes that contain given bytes: batches, or fields of records.

The search looks for two bytes of the needle, the rarest of it in most logs, in blocks of 64 bytes,
and compares the rest at these places. It runs over many stretches at once, and a match that
reaches over the end of one is not in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import BLOCK, equal_bytes, trailing_zeros
from kafkajit.storage.source import Bytes, Int64s, Mask

# From the most common byte to the rarest, as in logs of JSON and text. All others are rarer.
_COMMON = b'" \0e:,taoinrsd0l1cu2mp-3.5h4_6789gfbyv{}wkTxS\nzACEDIjqNOR'
_RANK = np.zeros(256, dtype=np.int64)
_RANK[np.frombuffer(_COMMON, dtype=np.uint8)] = np.arange(len(_COMMON), 0, -1)
_CASE = 0x20  # the bit in which the cases of an ASCII letter differ


class Needle(NamedTuple):
    """Bytes to search for; not empty."""

    bytes_: Bytes  # under the masks
    masks: Bytes  # of the bits that count
    first: int  # the index of the rarest byte
    second: int  # that of the next one; the same if there is only one

    @classmethod
    def of(cls, content: bytes, *, ignores_case: bool = False) -> Needle:
        """The needle of some bytes; `ignores_case` is about ASCII letters.

        >>> found = Needle.of(b"id", ignores_case=True)
        >>> found.bytes_.tobytes(), found.masks.tolist()
        (b'ID', [223, 223])
        """
        if not content:
            raise ValueError("a needle has at least one byte")
        plain = np.frombuffer(content, dtype=np.uint8)
        is_letter = np.frombuffer(content.swapcase(), dtype=np.uint8) != plain
        masks = np.full(plain.size, 0xFF, dtype=np.uint8)
        if ignores_case:
            masks[is_letter] ^= _CASE
        ranks = _RANK[plain]
        if ignores_case:
            ranks = np.maximum(ranks, _RANK[plain ^ (is_letter * np.uint8(_CASE))])
        order = np.argsort(ranks, kind="stable").tolist()
        return cls(plain & masks, masks, order[0], order[min(1, len(order) - 1)])


def holders(content: Bytes, starts: Int64s, ends: Int64s, needle: Needle) -> Mask:
    """Find the stretches of `content` with the needle; they ascend and do not overlap.

    >>> content = np.frombuffer(b"one two", dtype=np.uint8)
    >>> holders(content, np.array([0, 4]), np.array([3, 7]), Needle.of(b"tw")).tolist()
    [False, True]
    >>> holders(content, np.array([0, 3]), np.array([3, 7]), Needle.of(b"e t")).tolist()
    [False, False]
    """
    found = np.zeros(starts.size, dtype=np.bool_)
    if starts.size:
        _mark(content, starts, ends, *needle, found)
    return found


def all_holders(
    content: Bytes, starts: Int64s, ends: Int64s, needles: list[Needle]
) -> npt.NDArray[np.bool_]:
    """Find the stretches with any of the needles."""
    found = np.zeros(starts.size, dtype=np.bool_)
    for needle in needles:
        found |= holders(content, starts, ends, needle)
    return found


@kernel
def _mark(content, starts, ends, needle, masks, first, second, found):
    """Set `found` for each stretch that contains the needle."""
    size = np.int64(needle.size)
    row = 0
    end = ends[ends.size - 1]
    position = _find(content, starts[0], end, needle, masks, first, second)
    while position >= 0:
        while ends[row] < position + size:
            row += 1
        if starts[row] <= position:
            found[row] = True
            position = ends[row]
        else:  # it begins in front of this stretch, as does all that is found before its start
            position = starts[row]
        position = _find(content, position, end, needle, masks, first, second)


@kernel
def _find(content, position, end, needle, masks, first, second):
    """The position of the needle's next occurrence before `end`, or -1."""
    size = np.int64(needle.size)
    last = end - size
    byte, mask = needle[first], masks[first]
    other_byte, other_mask = needle[second], masks[second]
    while position + BLOCK <= last + 1:
        bits = equal_bytes(content, position + first, mask, byte)
        if bits != 0:
            bits &= equal_bytes(content, position + second, other_mask, other_byte)
            while bits != 0:
                start = position + trailing_zeros(bits)
                if _is_at(content, start, needle, masks):
                    return start
                bits &= bits - 1
        position += BLOCK
    while position <= last:
        if content[position + first] & mask == byte and _is_at(content, position, needle, masks):
            return position
        position += 1
    return np.int64(-1)


@kernel
def _is_at(content, position, needle, masks):
    at = 0
    while at < needle.size and content[position + at] & masks[at] == needle[at]:
        at += 1
    return at == needle.size
