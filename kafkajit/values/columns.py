"""The columns that the blocks of a kernel end up in.

They grow: numbers are copied from a block, texts are gathered from the values.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.arrow.arrays import allocate, bits
from kafkajit.errors import RecordDeserializationError
from kafkajit.format.utf8 import sequence_size
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import WIDE, copy_bytes, copy_wide, read_word
from kafkajit.storage.source import Bytes
from kafkajit.values.block import ALIGNMENT, AT, Block
from kafkajit.values.layout import DURATION, LONG, TEXT, Layout, Node

_MOST = 2**31  # bytes of text, or elements, of a column: its offsets are int32
_INDEX = (1 << 62) - 1  # an index that LLVM knows not to count from the end
_HIGH_BITS = np.int64(-0x7F7F7F7F7F7F7F80)  # 0x80 in each byte
_MOST_AHEAD = 64 << 20  # bytes of a column that are allocated on a guess


class Columns:
    """The columns of all blocks."""

    def __init__(self, layout: Layout, root: Node, values: int) -> None:
        self._root = root
        self._values = values
        self._done = 0
        self._sizes = [0] * layout.spaces
        self._memory: dict[int, npt.NDArray[np.uint8]] = {}
        self._used: dict[int, int] = {}
        self._texts: dict[int, npt.NDArray[np.uint8]] = {}
        self._text_sizes: dict[int, int] = {}
        self._leaves = [node for node in _all_nodes(root) if node.cell >= 0 or node.valid >= 0]
        self._cells = layout.cells

    def _room(
        self,
        memory: dict[int, npt.NDArray[np.uint8]],
        cell: int,
        used: int,
        more: int,
    ) -> npt.NDArray[np.uint8]:
        """Memory of a column with room for more bytes."""
        have = memory.get(cell)
        if have is None or used + more + WIDE > have.size:
            # As much as all values will need if the others are like those so far.
            share = (used + more) * self._values // max(self._done, 1)
            # The first ones may be much larger than the others.
            share = min(share + share // 16, max(4 * (used + more), _MOST_AHEAD))
            size = max(share, used + more) + WIDE
            size = -(-size // ALIGNMENT) * ALIGNMENT
            grown: npt.NDArray[np.uint8] = allocate(size, np.uint8)
            if have is not None:
                grown[:used] = have[:used]
            memory[cell] = have = grown
        return have

    def append(self, block: Block, content: Bytes, texts: Bytes, values: int) -> bool:
        """Append what a block holds; whether all text is valid UTF-8. If not, nothing is kept."""
        taken = block.items.taken.tolist()
        for size, count in zip(self._sizes, taken, strict=True):
            if size + count >= _MOST:
                raise too_large("a column has more than 2 Gi elements")
        self._done += values
        kept = {}
        for node in self._leaves:
            count = taken[node.space]
            for cell in (node.valid, node.cell):
                if cell < 0:
                    continue
                at = int(block.items.table[cell, AT])
                if self._is_text(node, cell):
                    size = self._gather(node, cell, block, at, count, content, texts)
                    if size < 0:
                        self._done -= values
                        return False
                    kept[cell] = size
                else:
                    width = self._cells[cell].width
                    used, more = self._used.get(cell, 0), width * count
                    memory = self._room(self._memory, cell, used, more)
                    memory[used : used + more] = block.cells.bytes[at : at + more]
        for node in self._leaves:
            for cell in (node.valid, node.cell):
                if cell in kept:
                    self._text_sizes[cell] = kept[cell]
                if cell >= 0:
                    width = 4 if cell in kept else self._cells[cell].width
                    self._used[cell] = self._used.get(cell, 0) + width * taken[node.space]
        for space, count in enumerate(taken):
            self._sizes[space] += count
        return True

    @staticmethod
    def _is_text(node: Node, cell: int) -> bool:
        return cell == node.cell and node.form in ("bytes", "uuid", "duration")

    def _gather(
        self, node: Node, cell: int, block: Block, at: int, count: int, content: Bytes, texts: Bytes
    ) -> int:
        """Copy the texts of a column: the bytes of them all, or -1 if one is not UTF-8."""
        used = self._used.get(cell, 0)
        offsets = self._room(self._memory, cell, used + 4, 4 * count).view(np.int32)
        if used == 0:
            offsets[0] = 0
        base = at // LONG
        size = self._text_sizes.get(cell, 0)
        more = int(_total(block.cells.longs, base, count))
        # A UUID of 16 bytes becomes a text of 36.
        shown = (size + more) // 16 * 36 if node.form == "uuid" else size + more
        if shown >= _MOST:
            raise too_large("a column has more than 2 GiB of text")
        out = self._room(self._texts, cell, size, more)
        is_good = _gather(
            content,
            texts,
            block.cells.longs,
            base,
            count,
            offsets,
            used // 4,
            out,
            size,
            pa.types.is_string(node.stored or node.type) and node.form == "bytes",
        )
        return size + more if is_good else -1

    def array(self) -> pa.Array:
        """All columns as one array."""
        return self._array(self._root)

    def _array(self, node: Node) -> pa.Array:
        array = self._stored(node, node.stored or node.type)
        return array if node.finish is None else node.finish(array)

    def _stored(self, node: Node, type_: pa.DataType) -> pa.Array:
        size = self._sizes[node.space]
        if node.form == "null":
            return pa.nulls(size)
        validity = self._validity(node, size)
        if node.form == "struct":
            children = [self._array(child) for child in node.children]
            return pa.Array.from_buffers(type_, size, [validity], children=children)
        if node.form == "list":
            counts = self._bytes(node.cell, 4 * size).view(np.int32)
            offsets = np.zeros(size + 1, dtype=np.int32)
            np.cumsum(counts, out=offsets[1:])
            children = [self._array(child) for child in node.children]
            if pa.types.is_map(node.type):
                # Arrow wants keys that are not null.
                entries = pa.struct([node.type.key_field, node.type.item_field])
                inside = self._sizes[node.children[0].space]
                children = [pa.Array.from_buffers(entries, inside, [None], children=children)]
            return pa.Array.from_buffers(
                node.type, size, [validity, pa.py_buffer(offsets)], children=children
            )
        if node.form == "bool":
            flags = bits(self._bytes(node.cell, size))
            return pa.Array.from_buffers(type_, size, [validity, flags])
        if node.form in ("millis", "nanos"):
            numbers = self._bytes(node.cell, size * LONG).view(np.int64)
            return _microseconds(node, numbers, validity)
        if node.form == "long decimal":
            assert node.schema.logical is not None
            wide = pa.decimal256(node.schema.logical.precision, node.schema.logical.scale)
            data = pa.py_buffer(self._bytes(node.cell, size * wide.byte_width))
            return pa.Array.from_buffers(wide, size, [validity, data]).cast(TEXT)
        if node.form == "number":
            data = pa.py_buffer(self._bytes(node.cell, size * self._cells[node.cell].width))
            return pa.Array.from_buffers(type_, size, [validity, data])
        offsets = np.zeros(1, dtype=np.int32)
        if size:
            offsets = self._bytes(node.cell, 4 * (size + 1)).view(np.int32)
        text = self._texts.get(node.cell, np.zeros(0, dtype=np.uint8))
        text = text[: self._text_sizes.get(node.cell, 0)]
        if node.form == "uuid":
            return _uuids(text, offsets, validity)
        if node.form == "duration":
            return _durations(text, offsets, validity)
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(text)]
        return pa.Array.from_buffers(type_, size, buffers)

    def _bytes(self, cell: int, size: int) -> npt.NDArray[np.uint8]:
        return self._memory.get(cell, np.zeros(0, dtype=np.uint8))[:size]

    def _validity(self, node: Node, size: int) -> pa.Buffer | None:
        if node.valid < 0:
            return None
        is_valid = self._bytes(node.valid, size)
        return None if is_valid.all() else bits(is_valid)


def too_large(words: str) -> RecordDeserializationError:
    """The error about more than one array can hold."""
    return RecordDeserializationError(words, advice="decode fewer values at once")


def _all_nodes(node: Node) -> list[Node]:
    return [node, *(inner for child in node.children for inner in _all_nodes(child))]


@kernel
def _total(longs, base, count):
    """The bytes of texts."""
    total = np.int64(0)
    for i in range(base, base + count):
        total += longs[i] >> 32 & 0x7FFFFFFF
    return total


@kernel
def _gather(content, texts, longs, base, count, offsets, first, out, w, checks):
    """Copy texts behind each other; whether they are UTF-8."""
    start = w
    for i in range(count):
        cell = longs[base + i & _INDEX]
        p = cell & 0xFFFFFFFF
        size = cell >> 32 & 0x7FFFFFFF
        if cell >= 0 and p + size + WIDE <= content.size:
            # Once at least: whether a text is empty is hard to guess.
            copy_wide(out, w, content, p)
            done = np.int64(WIDE)
            while done < size:
                copy_wide(out, w + done, content, p + done)
                done += WIDE
        elif cell >= 0:
            copy_bytes(out, w, content, p, size)
        else:
            copy_bytes(out, w, texts, p, size)
        w += size
        offsets[first + i + 1 & _INDEX] = w
    return not checks or _is_utf8(out, start, w, offsets, first, count)


@kernel
def _is_utf8(out, p, end, offsets, first, count):
    """Whether texts behind each other are UTF-8: all of them together, each from a character on."""
    while p < end:
        if end - p >= LONG and read_word(out, p) & _HIGH_BITS == 0:
            p += LONG
            continue
        size = sequence_size(out, p, end)
        if size < 0:
            return False
        p += size
    for i in range(first, first + count):
        start = np.int64(offsets[i])
        if start < end and out[start] & 0xC0 == 0x80:
            return False
    return True


_HEX = np.frombuffer(b"".join(b"%02x" % byte for byte in range(256)), dtype=np.uint8).reshape(-1, 2)
_DASHES = (8, 13, 18, 23)


def _uuids(
    raw: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32], validity: pa.Buffer | None
) -> pa.Array:
    """Sixteen bytes each, as RFC 4122 writes them; those that are NULL have none."""
    text = np.full((raw.size // 16, 36), ord("-"), dtype=np.uint8)
    digits = [at for at in range(36) if at not in _DASHES]
    text[:, digits] = _HEX[raw].reshape(-1, 32)
    wider = np.zeros(len(offsets), dtype=np.int32)
    np.cumsum(36 * (np.diff(offsets) > 0), out=wider[1:])
    buffers = [validity, pa.py_buffer(wider), pa.py_buffer(text.reshape(-1))]
    return pa.Array.from_buffers(TEXT, len(offsets) - 1, buffers)


def _microseconds(
    node: Node, numbers: npt.NDArray[np.int64], validity: pa.Buffer | None
) -> pa.Array:
    """Timestamps in Spark's unit; NULL if they are out of its range."""
    if node.form == "nanos":
        data = pa.py_buffer(numbers // 1000)
        return pa.Array.from_buffers(node.type, len(numbers), [validity, data])
    scaled = numbers * np.int64(1000)
    is_far = scaled // 1000 != numbers
    array = pa.Array.from_buffers(node.type, len(numbers), [validity, pa.py_buffer(scaled)])
    return pc.if_else(pa.array(~is_far), array, None) if is_far.any() else array


def _durations(
    raw: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32], validity: pa.Buffer | None
) -> pa.Array:
    """Three little-endian numbers each; those that are NULL have none."""
    size = len(offsets) - 1
    parts = np.zeros((3, size), dtype=np.int64)
    parts[:, np.diff(offsets) > 0] = raw.view("<u4").reshape(-1, 3).T
    children = [pa.array(part) for part in parts]
    return pa.Array.from_buffers(DURATION, size, [validity], children=children)
