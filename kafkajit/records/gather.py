"""Kernels that copy fields from scattered positions of a chunk into Arrow's layout.

A binary column takes two steps, so that its memory is exactly as large as its data: `plan_binary`
adds up the sizes into offsets, `copy_binary` moves the bytes.
"""

from __future__ import annotations

import numpy as np

from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import copy_bytes, read_word

_HIGH_BITS = np.int64(-0x7F7F7F7F7F7F7F80)  # of each byte of a word


@kernel
def spread(values, counts, column):
    """Repeat each batch's value for each of its records."""
    row = 0
    for batch in range(counts.size):
        value = values[batch]
        for _ in range(counts[batch]):
            column[row] = value
            row += 1


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
    """Write Arrow's binary views, two words each, and return how many are null.

    A view is the size and the first 4 bytes, then 8 more bytes of short data, or buffer 0 and the
    position of long data.
    """
    nulls = np.int64(0)
    for i in range(starts.size):
        start = np.int64(starts[i])
        nulls += sizes[i] < 0
        size = max(np.int64(sizes[i]), np.int64(0))
        first = np.uint64(size)
        for j in range(min(size, np.int64(4))):
            first |= np.uint64(content[start + j]) << np.uint64(32 + 8 * j)
        second = np.uint64(start) << np.uint64(32)
        if size <= 12:
            second = np.uint64(0)
            for j in range(4, size):
                second |= np.uint64(content[start + j]) << np.uint64(8 * (j - 4))
        views[i, 0] = first
        views[i, 1] = second
    return nulls


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
