"""Memory for cells: a block that a kernel fills.

A block is small enough for the processor's cache, and used again and again. `columns.py` appends
what it holds to columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import WIDE
from kafkajit.storage.source import Int64s, Mask
from kafkajit.values.layout import Layout

ROOM = 16  # bytes behind the last value, which a kernel may read
# How a kernel ends.
DONE, FULL, FAILED = range(3)
# The columns of a block's table of cells.
AT, WIDTH, OF = range(3)

ALIGNMENT = 64
_MOST_BYTES = 128 << 20  # of a block, which one value may fill
_MAX_NESTING = 1100  # frames on the stack


class Cells(NamedTuple):
    """The memory of a block's cells, and the same memory as numbers."""

    bytes: npt.NDArray[np.uint8]
    ints: npt.NDArray[np.int32]
    longs: npt.NDArray[np.int64]
    floats: npt.NDArray[np.float32]
    doubles: npt.NDArray[np.float64]


class Items(NamedTuple):
    """The cells' table, and for each space: its room, what is taken, and where the kernel is."""

    table: Int64s
    capacity: Int64s
    taken: Int64s
    saved: Int64s
    slots: Int64s
    stack: Int64s
    counts: Int64s  # for a kernel's own use


class Block:
    """Cells for some values. Those of the spaces inside grow if they are full."""

    def __init__(self, layout: Layout, values: int) -> None:
        self._layout = layout
        self._capacity = np.full(layout.spaces, 4 * values, dtype=np.int64)
        self._capacity[0] = values
        self._allocate()
        self._most = max(_MOST_BYTES, 4 * self.cells.bytes.size)

    def _allocate(self) -> None:
        table = np.zeros((len(self._layout.cells), 3), dtype=np.int64)
        size = 0
        for number, (width, space) in enumerate(self._layout.cells):
            table[number] = size, width, space
            size += -(-width * int(self._capacity[space]) // ALIGNMENT) * ALIGNMENT
        memory = np.zeros(size // 8 + WIDE, dtype=np.int64)
        self.cells = Cells(
            memory.view(np.uint8),
            memory.view(np.int32),
            memory,
            memory.view(np.float32),
            memory.view(np.float64),
        )
        spaces = self._layout.spaces
        taken, saved, slots, counts = np.zeros((4, spaces), dtype=np.int64)
        stack = np.zeros(3 * _MAX_NESTING, dtype=np.int64)
        self.items = Items(table, self._capacity, taken, saved, slots, stack, counts)

    @property
    def bases(self) -> Int64s:
        """The place of each cell, in cells of its width."""
        return self.items.table[:, AT] // self.items.table[:, WIDTH]

    def may_grow(self) -> bool:
        """Whether one value may have more room: a few kilobytes may become gigabytes of cells."""
        is_full = self._is_full()[self.items.table[:, OF]]
        more = self.items.table[is_full, WIDTH] * self._capacity[self.items.table[is_full, OF]]
        return self.cells.bytes.size + int(more.sum()) <= self._most

    def grow(self) -> None:
        """Twice the room in the spaces that were full; the block is empty then."""
        self._capacity[self._is_full()] *= 2
        self._allocate()

    def _is_full(self) -> Mask:
        is_full: Mask = self.items.saved >= self._capacity
        is_full[0] = False
        return is_full

    def clear(self) -> None:
        """Empty the block; all of its cells are zero again."""
        for at, width, space in self.items.table.tolist():
            self.cells.bytes[at : at + width * int(self.items.taken[space])] = 0
        self.items.taken[:] = 0


@kernel
def roll_back(cells, items):
    """Forget the value that is being read: its cells are zero again. `saved` has what it took."""
    table, _, taken, saved, slots, _, _ = items
    saved[0] = slots[0]
    for cell in range(table.shape[0]):
        space, width = table[cell, OF], table[cell, WIDTH]
        at = table[cell, AT]
        for i in range(at + saved[space] * width, at + taken[space] * width):
            cells.bytes[i] = 0
    for space in range(taken.size):
        taken[space], saved[space] = saved[space], taken[space]
