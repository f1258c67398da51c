"""Decodes blocks of raw snappy in a kernel.

    size        varint      how many bytes the plain text has
    elements    each begins with a tag, whose lowest two bits are its kind:
        0       literal     bytes; their number is in the tag, or in 1 to 4 bytes behind it
        1, 2, 3 copy        bytes already written: how many is in the tag, how far back in 1, 2 or
                            4 bytes behind it

Text is short literals and short copies, in an order that no processor predicts well. So the kernel
decodes a literal, which may be empty, and a copy at a time, without a branch. It decodes rarer
elements, and those near the end, one by one and byte by byte.
"""

from __future__ import annotations

import numpy as np

from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import HALF, choose, copy_half, read_little_endian, read_word
from kafkajit.storage.source import Int64s

BAD_BLOCK = -1

_LITERAL, _FAR_COPY = 0, 3
_LONGEST = 64  # copy
# The most bytes that a literal and a copy of the fast kind read and write behind their beginning.
_MOST_READ = 1 + HALF + 1 + 8
_MOST_WRITTEN = HALF + _LONGEST


def _tags() -> Int64s:
    """For each tag, the length, and the upper bits of the distance back."""
    tags = np.zeros((256, 2), dtype=np.int64)
    for tag in range(256):
        if tag & 3 == 1:
            tags[tag] = 4 + (tag >> 2 & 7), tag >> 5 << 8
        else:
            tags[tag] = 1 + (tag >> 2), 0
    return tags


_TAGS = _tags()
_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFFFF], dtype=np.int64)  # for the bytes behind a tag


@kernel
def decompress_block(source, position, end, out, written, room):
    """Decode the block between position and end behind `written`; the position behind it in `out`.

    Returns BAD_BLOCK if the bytes are not such a block, or it has more than `room` bytes. What it
    has written by then does not count.
    """
    size, p = _size(source, position, end)
    if p < 0 or size > room:
        return np.int64(BAD_BLOCK)
    w = written
    stop = written + size
    last_start = min(end, source.size) - _MOST_READ
    last_written = stop - _MOST_WRITTEN
    while w < stop and p < end:
        while p >= 0 and w >= 0 and p <= last_start and w <= last_written:
            tag = np.int64(source[p])
            is_literal = tag & 3 == _LITERAL
            length = (tag >> 2) + 1
            if is_literal and length > HALF:
                break
            copy_half(out, w, source, p + 1)
            behind = choose(is_literal, w + length, w)
            q = choose(is_literal, p + 1 + length, p)

            tag = np.int64(source[q])
            kind = tag & 3
            length = _TAGS[tag, 0]
            back = _TAGS[tag, 1] + (read_word(source, q + 1) & _MASKS[kind])
            if kind in (_LITERAL, _FAR_COPY) or back < HALF or back > behind - written:
                break
            copy_half(out, behind, out, behind - back)
            if length > HALF:
                for done in range(HALF, _LONGEST, HALF):
                    copy_half(out, behind + done, out, behind + done - back)
            w = behind + length
            p = q + 1 + kind
        if w == stop or p >= end:
            break
        w, p = _element(source, p, end, out, w, written, stop)
        if p < 0:
            return np.int64(BAD_BLOCK)
    return w if w == stop and p == end else np.int64(BAD_BLOCK)


@kernel
def _size(source, position, end):
    size = np.int64(0)
    for i in range(5):
        if position >= end:
            break
        byte = np.int64(source[position])
        position += 1
        size |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return size, position
    return size, np.int64(BAD_BLOCK)


@kernel
def _element(source, p, end, out, w, first, stop):
    """Decode one element: (position in `out`, position in `source` or BAD_BLOCK if malformed)."""
    tag = np.int64(source[p])
    kind = tag & 3
    length = _TAGS[tag, 0]
    extra = np.int64(4) if kind == _FAR_COPY else kind
    if kind == _LITERAL:
        extra = max(np.int64(0), length - 60)
    p += 1
    if extra > end - p:
        return w, np.int64(BAD_BLOCK)
    number = read_little_endian(source, p, extra)
    p += extra
    if kind == _LITERAL:
        if extra > 0:
            length = number + 1
        if length > end - p or length > stop - w:
            return w, np.int64(BAD_BLOCK)
        for i in range(length):
            out[w + i] = source[p + i]
        return w + length, p + length
    back = _TAGS[tag, 1] + number
    if back == 0 or back > w - first or length > stop - w:
        return w, np.int64(BAD_BLOCK)
    for i in range(length):
        out[w + i] = out[w - back + i]
    return w + length, p
