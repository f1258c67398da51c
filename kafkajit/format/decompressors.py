"""Batch after batch decompressed in one kernel, as long as each is as Kafka's own clients write it.

A call of Python for each batch would cost more than a small batch's decoding, and would keep other
threads waiting. So the kernel calls the codecs' C functions itself, by their addresses, which are
found in the packages that bring them: LZ4_decompress_safe in lz4, ZSTD_decompressDCtx in
backports.zstd, libdeflate_gzip_decompress_ex in deflate. Snappy's decoder is format/snappy.py.

What is not plain — frames one behind the other, frames of other clients, too little room, damage —
the kernel leaves to format/compression.py, which says what is wrong. So it does where a function is
not to be found, and in the checked modes.

The functions take two things that Java and the general way refuse, and that no compressor writes:
in zstd a block larger than the frame's window, or than 128 KiB, where there is room; in gzip the
codes that deflate has no use for, lengths 286 and 287 and distances 30 and 31.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.format.compression import (
    GZIP,
    LZ4,
    LZ4_BLOCK_SIZE,
    LZ4_KAFKA_HEADER,
    LZ4_STORED,
    SNAPPY,
    XERIAL_HEADER_SIZE,
    XERIAL_MAGIC,
    ZSTD,
    zstd_extent,
)
from kafkajit.format.layout import MAGIC_V2
from kafkajit.format.snappy import BAD_BLOCK, decompress_block
from kafkajit.kernel import DISABLE_JIT, kernel
from kafkajit.kernel.intrinsics import (
    HAS_C,
    address_of,
    call_c,
    read_int32,
    read_int64,
    read_little_endian,
    read_word,
)
from kafkajit.storage.source import Bytes, Int64s

# Java's stream refuses what needs a larger window (ZSTD_WINDOWLOG_LIMIT_DEFAULT).
_MOST_ZSTD_WINDOW = 1 << 27
_XERIAL_MAGIC = int.from_bytes(XERIAL_MAGIC, "big", signed=True)
_LZ4_HEADER = int.from_bytes(LZ4_KAFKA_HEADER, "little")
_LZ4_HEADER_SIZE = len(LZ4_KAFKA_HEADER)
_LZ4_MAGIC = _LZ4_HEADER & 0xFFFFFFFF
_GZIP_FLAGS = 3  # where a member's header says which options it has
_UINT32 = 0xFFFFFFFF


def decompress_run(
    content: Bytes,
    starts: Int64s,
    ends: Int64s,
    codecs: npt.NDArray[np.int16],
    magics: npt.NDArray[np.int8],
    counts: npt.NDArray[np.int32],
    out: npt.NDArray[np.uint8],
    extents: Int64s,
    row: int,
    *,
    limit: int,
    enough: int,
) -> int:
    """Decompress plain batches from `row` on, one behind the other; the first that was not.

    `extents` has a row for where each begins and ends in `out`; the first is to begin where
    `extents[row, 0]` says. Stops as well when there are `enough` bytes.
    """
    codec = int(codecs[row])
    decoder = _DECODERS.of(codec)
    if decoder.function == 0 and (codec != SNAPPY or DISABLE_JIT):
        return row
    handle = 0 if decoder.handle is None else decoder.handle.address
    functions = (decoder.function if codec == one else None for one in (SNAPPY, LZ4, ZSTD, GZIP))
    stopped: int = _decompress_run(
        content, starts, ends, codecs, magics, counts, out, extents, row, limit, enough,
        *functions, handle, np.zeros(2, dtype=np.int64),
    )  # fmt: skip
    return stopped


class _Handle:
    """The memory that a C function works in."""

    def __init__(self, allocate: Any, free: Any) -> None:
        allocate.restype = ctypes.c_void_p
        free.argtypes = [ctypes.c_void_p]
        self.address = allocate() or 0
        self._free = free

    def __del__(self) -> None:
        if self.address:
            self._free(self.address)


class _Decoder(NamedTuple):
    """A C function's address, and what it works in, if it takes that; 0 where there is none."""

    function: int = 0
    handle: _Handle | None = None

    @classmethod
    def of(cls, function: Any, handle: _Handle | None = None) -> _Decoder:
        if handle is not None and not handle.address:  # no memory
            return cls()
        return cls(ctypes.cast(function, ctypes.c_void_p).value or 0, handle)


class _Decoders(threading.local):
    """Each thread's own: two at one handle would spoil each other's frames."""

    def __init__(self) -> None:
        self._found: dict[int, _Decoder] = {}

    def of(self, codec: int) -> _Decoder:
        if codec not in self._found:
            self._found[codec] = _find(codec)
        return self._found[codec]


def _find(codec: int) -> _Decoder:
    # Packages of other versions, or for other systems, may not show their functions.
    with contextlib.suppress(ImportError, OSError, AttributeError):
        if HAS_C and codec in _FINDERS:
            return _FINDERS[codec]()
    return _Decoder()


def _lz4() -> _Decoder:
    return _Decoder.of(_library("lz4.block._block").LZ4_decompress_safe)


def _zstd() -> _Decoder:
    library = _library("backports.zstd._zstd")
    handle = _Handle(library.ZSTD_createDCtx, library.ZSTD_freeDCtx)
    return _Decoder.of(library.ZSTD_decompressDCtx, handle)


def _gzip() -> _Decoder:
    library = _library("deflate._deflate")
    handle = _Handle(library.libdeflate_alloc_decompressor, library.libdeflate_free_decompressor)
    return _Decoder.of(library.libdeflate_gzip_decompress_ex, handle)


def _library(module: str) -> Any:
    return ctypes.CDLL(importlib.import_module(module).__file__)


_FINDERS: dict[int, Callable[[], _Decoder]] = {GZIP: _gzip, LZ4: _lz4, ZSTD: _zstd}
_DECODERS = _Decoders()


@kernel
def _decompress_run(
    content, starts, ends, codecs, magics, counts, out, extents, row, limit, enough,
    snappy, lz4, zstd, gzip, handle, sizes,
):  # fmt: skip
    """The first batch that was not decompressed.

    Of the functions' addresses all but the codec's are None: numba then makes a kernel that lacks
    the others, in a third of the time. Most logs have one codec.
    """
    codec = codecs[row]
    written = extents[row, 0]
    while row < starts.size and written <= enough:
        if codecs[row] != codec or (codec == ZSTD and magics[row] != MAGIC_V2):
            break
        extents[row, 0] = written
        if counts[row] != 0:  # Kafka does not look into a batch without records
            if starts[row] == ends[row]:
                break
            room = min(np.int64(limit), out.size - written)
            if snappy is not None:
                after = _unsnappy(content, starts[row], ends[row], out, written, room)
            elif lz4 is not None:
                after = _unlz4(content, starts[row], ends[row], out, written, room, lz4)
            elif zstd is not None:
                after = _unzstd(content, starts[row], ends[row], out, written, room, zstd, handle)
            elif gzip is not None:
                after = _gunzip(
                    content, starts[row], ends[row], out, written, room, gzip, handle, sizes
                )
            else:
                break
            if after < 0:
                break
            written = after
        extents[row, 1] = written
        row += 1
    return row


# Each takes one batch's records: the position behind them in `out`, or BAD_BLOCK.


@kernel
def _unsnappy(content, start, end, out, written, room):
    if end - start < 8 or read_int64(content, start) != _XERIAL_MAGIC:
        return decompress_block(content, start, end, out, written, room)
    stop = written + room
    position = start + XERIAL_HEADER_SIZE
    while position < end:
        if end - position < 4:
            return np.int64(BAD_BLOCK)
        size = read_int32(content, position)
        position += 4
        if size < 0 or size > end - position:
            return np.int64(BAD_BLOCK)
        written = decompress_block(content, position, position + size, out, written, stop - written)
        if written < 0:
            return written
        position += size
    return written


@kernel
def _unlz4(content, start, end, out, written, room, function):
    """A frame of independent blocks."""
    if end - start < 8 or read_word(content, start) & (1 << 56) - 1 != _LZ4_HEADER:
        return np.int64(BAD_BLOCK)
    stop = written + room
    zero = np.int64(0)
    position = start + _LZ4_HEADER_SIZE
    while end - position >= 4:
        size = read_little_endian(content, position, np.int64(4))
        position += 4
        # The end mark, stored or not. What follows it and is no frame is ignored, as in Java.
        if size & (LZ4_STORED - 1) == 0:
            if (
                end - position >= 4
                and read_little_endian(content, position, np.int64(4)) == _LZ4_MAGIC
            ):
                break
            return written
        is_stored = size >= LZ4_STORED
        size &= LZ4_STORED - 1
        if size > end - position or size > LZ4_BLOCK_SIZE:
            break
        if is_stored:
            if size > stop - written:
                break
            for i in range(size):
                out[written + i] = content[position + i]
            written += size
        else:
            source, target = address_of(content, position), address_of(out, written)
            most = min(stop - written, np.int64(LZ4_BLOCK_SIZE))
            result = call_c(function, source, target, size, most, zero, zero, zero)
            size_out = (result & _UINT32 ^ 0x80000000) - 0x80000000
            if size_out < 0:
                break
            written += size_out
        position += size
    return np.int64(BAD_BLOCK)


@kernel
def _unzstd(content, start, end, out, written, room, function, handle):
    stop, window = zstd_extent(content, start, end)
    if stop != end or window > _MOST_ZSTD_WINDOW or room == 0:
        return np.int64(BAD_BLOCK)
    zero = np.int64(0)
    source, target = address_of(content, start), address_of(out, written)
    size = call_c(function, handle, target, room, source, end - start, zero, zero)
    if size < 0 or size > room:  # errors are the largest numbers
        return np.int64(BAD_BLOCK)
    return written + size


@kernel
def _gunzip(content, start, end, out, written, room, function, handle, sizes):
    """One member, of a header without options: libdeflate skips their checksum, Java checks it."""
    if end - start <= _GZIP_FLAGS or content[start + _GZIP_FLAGS] != 0:
        return np.int64(BAD_BLOCK)
    source, target = address_of(content, start), address_of(out, written)
    read, put = address_of(sizes, 0), address_of(sizes, 1)
    result = call_c(function, handle, source, end - start, target, room, read, put)
    if result & _UINT32 != 0 or sizes[0] != end - start:
        return np.int64(BAD_BLOCK)
    return written + sizes[1]
