"""Decompresses batch after batch in one kernel, as long as each is as Kafka's own clients write it.

A Python call for each batch would cost more than decoding a small batch, and would keep other
threads waiting. So the kernel calls the codecs' C functions by their addresses, which it gets from
the libraries that ship them: LZ4_decompress_safe in lz4, libdeflate_gzip_decompress_ex in deflate,
ZSTD_decompressDCtx in backports.zstd or, from Python 3.14 on, in Python's own `_zstd`. Snappy's
decoder is format/snappy.py.

The kernel leaves everything else to format/compression.py, which reports errors: consecutive
frames, frames of other clients, too little room, damage. It also leaves a codec to that module if
the C function is not found, and in the checked modes.

The C functions accept two things that Java and format/compression.py refuse, and that no compressor
writes. In zstd, that is a block larger than the frame's window, or than 128 KiB, if there is room;
in gzip, the codes that deflate does not use: lengths 286 and 287, and distances 30 and 31.
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

from kafkajit.format.batch_checksum import crc32c
from kafkajit.format.codecs import GZIP, LZ4, SNAPPY, ZSTD
from kafkajit.format.compression import (
    LZ4_BLOCK_SIZE,
    LZ4_KAFKA_HEADER,
    LZ4_STORED,
    XERIAL_HEADER_SIZE,
    XERIAL_MAGIC,
    zstd_extent,
)
from kafkajit.format.layout import ATTRIBUTES_OFFSET, MAGIC_V2, RECORD_BATCH_OVERHEAD
from kafkajit.format.snappy import BAD_BLOCK, decompress_block
from kafkajit.format.zstd import C_MODULE
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

# Java's stream refuses a larger window (ZSTD_WINDOWLOG_LIMIT_DEFAULT).
_MOST_ZSTD_WINDOW = 1 << 27
_XERIAL_MAGIC = int.from_bytes(XERIAL_MAGIC, "big", signed=True)
_LZ4_HEADER = int.from_bytes(LZ4_KAFKA_HEADER, "little")
_LZ4_HEADER_SIZE = len(LZ4_KAFKA_HEADER)
_LZ4_MAGIC = _LZ4_HEADER & 0xFFFFFFFF
_GZIP_FLAGS = 3  # the position of the options in a member's header
_UINT32 = 0xFFFFFFFF
# size_t ZSTD_decompressDCtx(context, target, room, source, size)
_DECOMPRESS_DCTX = ctypes.CFUNCTYPE(
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_size_t,
)


UNCHECKED = np.empty(0, dtype=np.uint32)


class CompressedBatches(NamedTuple):
    """The fields of compressed batches that the kernel uses, a row each."""

    starts: Int64s  # where the compressed records begin in the source
    ends: Int64s
    codecs: npt.NDArray[np.int16]
    magics: npt.NDArray[np.int8]
    counts: npt.NDArray[np.int32]  # of records, as the header has it
    crcs: npt.NDArray[np.uint32] = UNCHECKED  # to compare, if there are any


class _Workspace(NamedTuple):
    """Memory that a C function works in."""

    handle: int  # what it allocated for itself; 0 if it needs nothing
    sizes: Int64s  # of input read and output written


def decompress_run(
    content: Bytes,
    batches: CompressedBatches,
    out: Bytes,
    extents: Int64s,
    row: int,
    *,
    limit: int,
    enough: int,
) -> int:
    """Decompress plain batches from `row` on, one behind the other; the first row left undone.

    `extents` gets a row for each batch: where its records begin and end in `out`. The first begins
    at `extents[row, 0]`. Stops before a batch that is not plain, and when there are `enough` bytes.
    """
    codec = functions_of(int(batches.codecs[row]))
    if codec is None:
        return row
    stopped: int = decompress(content, batches, out, extents, row, limit, enough, *codec)
    return stopped


def functions_of(codec: int) -> tuple[Any, ...] | None:
    """The last arguments of `decompress` for a codec; None if it has no function."""
    decoder = _DECODERS.of(codec)
    if decoder.function == 0 and (codec != SNAPPY or DISABLE_JIT):
        return None
    handle = 0 if decoder.handle is None else decoder.handle.address
    functions = (decoder.function if codec == one else None for one in (SNAPPY, LZ4, ZSTD, GZIP))
    return *functions, _Workspace(handle, np.zeros(2, dtype=np.int64))


def decompress_frame(frame: memoryview, memory: memoryview) -> bool:
    """Decompress a zstd frame that exactly fills the memory; if it does not, what is there is lost.

    False means that format/compression.py has to find out what is wrong, if anything is.
    """
    decoder = _DECODERS.of(ZSTD)
    if decoder.function == 0 or decoder.handle is None or not frame or not memory:
        return False
    source, target = np.frombuffer(frame, np.uint8), np.frombuffer(memory, np.uint8)
    decompress = _DECOMPRESS_DCTX(decoder.function)
    written = decompress(
        decoder.handle.address, target.ctypes.data, target.size, source.ctypes.data, source.size
    )
    return bool(written == target.size)


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
    """A C function's address, and the memory that it works in; 0 if the function is not there."""

    function: int = 0
    handle: _Handle | None = None

    @classmethod
    def of(cls, function: Any, handle: _Handle | None = None) -> _Decoder:
        if handle is not None and not handle.address:  # no memory
            return cls()
        return cls(ctypes.cast(function, ctypes.c_void_p).value or 0, handle)


class _Decoders(threading.local):
    """Decoders of one thread: two threads at one handle would spoil each other's frames."""

    def __init__(self) -> None:
        self._found: dict[int, _Decoder] = {}

    def of(self, codec: int) -> _Decoder:
        if codec not in self._found:
            self._found[codec] = _find(codec)
        return self._found[codec]


def _find(codec: int) -> _Decoder:
    # Packages of other versions, or for other systems, may not export their functions.
    with contextlib.suppress(ImportError, OSError, AttributeError):
        if HAS_C and codec in _FINDERS:
            return _FINDERS[codec]()
    return _Decoder()


def _lz4() -> _Decoder:
    return _Decoder.of(_library("lz4.block._block").LZ4_decompress_safe)


def _zstd() -> _Decoder:
    library = _zstd_library()
    handle = _Handle(library.ZSTD_createDCtx, library.ZSTD_freeDCtx)
    return _Decoder.of(library.ZSTD_decompressDCtx, handle)


def _gzip() -> _Decoder:
    library = _library("deflate._deflate")
    handle = _Handle(library.libdeflate_alloc_decompressor, library.libdeflate_free_decompressor)
    return _Decoder.of(library.libdeflate_gzip_decompress_ex, handle)


def _zstd_library() -> Any:
    """The extension module, which is libzstd or is linked to it, or else the system's libzstd.

    Some Pythons have `_zstd` built in, and do not export libzstd's functions.
    """
    with contextlib.suppress(ImportError, OSError, AttributeError):
        library = _library(C_MODULE)
        if hasattr(library, "ZSTD_decompressDCtx"):
            return library
    return ctypes.CDLL("libzstd.so.1")


def _library(module: str) -> Any:
    return ctypes.CDLL(importlib.import_module(module).__file__)


_FINDERS: dict[int, Callable[[], _Decoder]] = {GZIP: _gzip, LZ4: _lz4, ZSTD: _zstd}
_DECODERS = _Decoders()


@kernel
def decompress(
    content, batches, out, extents, row, limit, enough, snappy, lz4, zstd, gzip, workspace
):
    """The first batch that was not decompressed, or does not have its checksum.

    Only the codec's own function has an address, the others are None. numba then compiles a kernel
    without the other codecs, in a third of the time; most logs have one codec. It leaves out a
    branch only for an argument that is None, so the four are not in a tuple.
    """
    starts, ends, codecs, magics, counts, crcs = batches
    handle, sizes = workspace
    codec = codecs[row]
    written = extents[row, 0]
    while row < starts.size and written <= enough:
        if codecs[row] != codec or (codec == ZSTD and magics[row] != MAGIC_V2):
            break
        if crcs.size > 0:
            start = starts[row] - (RECORD_BATCH_OVERHEAD - ATTRIBUTES_OFFSET)
            if crc32c(content, start, ends[row]) != crcs[row]:
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


# Each decompresses one batch's records and returns the position behind them in `out`, or
# BAD_BLOCK.


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
        # The end mark, stored or not. If no frame follows it, the rest is ignored, as in Java.
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
    """One member without header options: libdeflate skips their checksum, Java checks it."""
    if end - start <= _GZIP_FLAGS or content[start + _GZIP_FLAGS] != 0:
        return np.int64(BAD_BLOCK)
    source, target = address_of(content, start), address_of(out, written)
    read, put = address_of(sizes, 0), address_of(sizes, 1)
    result = call_c(function, handle, source, end - start, target, room, read, put)
    if result & _UINT32 != 0 or sizes[0] != end - start:
        return np.int64(BAD_BLOCK)
    return written + sizes[1]
