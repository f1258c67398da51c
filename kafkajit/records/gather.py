"""Kernels that copy fields from scattered positions of a chunk into Arrow's layout.

A binary column takes two steps, so that its memory is exactly as large as its data: `plan_binary`
adds up the sizes into offsets, `copy_binary` moves the bytes.
"""

from __future__ import annotations

import numpy as np

from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import copy_bytes, read_word

SHORT_VIEW = 12  # the most bytes that one of Arrow's binary views holds itself
_HIGH_BITS = np.int64(-0x7F7F7F7F7F7F7F80)  # of each byte of a word


@kernel
def plan_binary(sizes, offsets):
    """Fill `offsets`, and return (bytes in all, number of nulls)."""
    total = np.int64(0)
    nulls = np.int64(0)
    for i in range(sizes.size):
        offsets[i] = total
        size = np.int64(sizes[i])
        nulls += size < 0
        total += max(size, np.int64(0))
    offsets[sizes.size] = total
    return total, nulls


@kernel
def copy_binary(content, starts, offsets, data):
    """Copy each field to its offset; `data` has kernel.WIDE bytes of room behind the last."""
    for i in range(starts.size):
        offset = np.int64(offsets[i])
        copy_bytes(data, offset, content, np.int64(starts[i]), np.int64(offsets[i + 1]) - offset)


@kernel
def write_validity(sizes, bitmap):
    """Set a bit for each size that is not negative, lowest bit first; `bitmap` begins as zeros."""
    for i in range(sizes.size):
        if sizes[i] >= 0:
            bitmap[i >> 3] |= np.uint8(1) << np.uint8(i & 7)


@kernel
def write_views(content, starts, sizes, views):
    """Write Arrow's binary views, and return how many are null."""
    nulls = np.int64(0)
    for i in range(starts.size):
        nulls += sizes[i] < 0
        put_view(content, np.int64(starts[i]), np.int64(sizes[i]), views, i)
    return nulls


@inlined
def put_view(content, position, size, views, row):
    """Write one of Arrow's binary views, two words; a negative size is null.

    A view is the size and the first 4 bytes, then 8 more bytes of short data, or buffer 0 and the
    position of long data.
    """
    if size > SHORT_VIEW:
        views[row, 0] = size | read_word(content, position) << 32
        views[row, 1] = position << 32
    elif position + SHORT_VIEW <= content.size:
        first = min(max(size, np.int64(0)), np.int64(4))
        rest = max(size - 4, np.int64(0))
        mask = np.int64(-1) if rest == 8 else (np.int64(1) << 8 * rest) - 1
        word = read_word(content, position) & (np.int64(1) << 8 * first) - 1
        views[row, 0] = max(size, np.int64(0)) | word << 32
        views[row, 1] = read_word(content, position + 4) & mask
    else:
        views[row, 0] = max(size, np.int64(0))
        views[row, 1] = 0
        for j in range(size):
            views[row, j + 4 >> 3] |= np.int64(content[position + j]) << 8 * (j + 4 & 7)


@kernel
def is_ascii(data, size):
    """Whether the first `size` bytes are ASCII."""
    words = size // 8
    seen = np.int64(0)
    for i in range(words):
        seen |= read_word(data, 8 * i)
    rest = np.uint8(0)
    for i in range(8 * words, size):
        rest |= data[i]
    return seen & _HIGH_BITS == 0 and rest < 0x80
