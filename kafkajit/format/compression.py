"""Kafka's codecs: the compressed records of a batch → plain records, within a limit.

Every decoder writes into a buffer it is given and never asks for more memory than that: a batch
that claims, or turns out, to be larger makes it raise `OutputFull`, and `Scratch` grows the buffer
up to the caller's limit. Buffers are recycled, because memory touched for the first time costs more
than decoding into memory already there.

What the formats look like in a log, and which decoder reads them (the fastest of those measured on
64 KiB batches):
    gzip    one or more members (RFC 1952)                 isal, 1.9 times zlib
    snappy  xerial frames (snappy-java) or one raw block   cramjam, straight into the buffer
    lz4     one or more LZ4 frames                         lz4.frame
    zstd    one or more frames, size seldom declared       zstandard, straight into the buffer
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import cramjam
import lz4.frame
import numpy as np
import numpy.typing as npt
import zstandard
from isal import isal_zlib

COMPRESSION_TYPES = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
DEFAULT_MAX_DECOMPRESSED_BYTES = 256 << 20

_SCRATCH_BYTES = 8 << 20
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_SIZE = 16  # magic, version, oldest compatible version
_GZIP_MAGIC = b"\x1f\x8b"
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_CONTENT_SIZE_FLAG = 0x08
_ZSTD_SKIPPABLE_MAGIC = b"\x2a\x4d\x18"  # behind a byte of 0x50 to 0x5F


class OutputFull(Exception):
    """The output needs more room: `needed` bytes, or unknown (0)."""

    def __init__(self, needed: int = 0) -> None:
        super().__init__(needed)
        self.needed = needed


class DecodeError(Exception):
    """The codec refuses the bytes; the text is the decoder's."""


def decompress_into(codec: int, compressed: memoryview, out: npt.NDArray[np.uint8]) -> int:
    """Decompress into `out`; how many bytes were written.

    >>> out = np.empty(64, dtype=np.uint8)
    >>> size = decompress_into(4, memoryview(zstandard.compress(b"records")), out)
    >>> out[:size].tobytes()
    b'records'
    """
    name, decode = _DECODERS[codec]
    try:
        return decode(compressed, out)
    except (
        cramjam.DecompressionError,
        isal_zlib.error,  # type: ignore[misc]
        zstandard.ZstdError,
        RuntimeError,  # lz4.frame's own
        EOFError,
    ) as error:
        raise DecodeError(f"{name}: {error}") from error


def _gunzip(compressed: memoryview, out: npt.NDArray[np.uint8]) -> int:
    written = 0
    rest = bytes(compressed)
    while True:
        member = isal_zlib.decompressobj(31)
        plain = member.decompress(rest, max_length=out.size - written + 1)
        written = _append(plain, out, written)
        if not member.eof:
            raise DecodeError("gzip: the stream ends early")
        rest = member.unused_data
        if not rest.startswith(_GZIP_MAGIC):  # what follows a member is ignored, as in Java
            return written


def _unsnappy(compressed: memoryview, out: npt.NDArray[np.uint8]) -> int:
    if bytes(compressed[:8]) != _XERIAL_MAGIC:
        return _unsnappy_block(compressed, out, 0)
    written = 0
    position = _XERIAL_HEADER_SIZE
    order = _xerial_byte_order(compressed)
    while position < len(compressed):
        if bytes(compressed[position : position + 8]) == _XERIAL_MAGIC:  # streams one by one
            position += _XERIAL_HEADER_SIZE
            continue
        size = int.from_bytes(compressed[position : position + 4], order)
        position += 4
        if size > len(compressed) - position:
            raise DecodeError("snappy: a block goes past the end of the records")
        written += _unsnappy_block(compressed[position : position + size], out, written)
        position += size
    return written


def _xerial_byte_order(compressed: memoryview) -> Literal["big", "little"]:
    """Some clients wrote the frame's numbers in their machine's order instead of Java's."""
    first = compressed[_XERIAL_HEADER_SIZE : _XERIAL_HEADER_SIZE + 4]
    room = len(compressed) - _XERIAL_HEADER_SIZE - 4
    if int.from_bytes(first, "big") <= room or int.from_bytes(first, "little") > room:
        return "big"
    return "little"


def _unsnappy_block(block: memoryview, out: npt.NDArray[np.uint8], written: int) -> int:
    needed = cramjam.snappy.decompress_raw_len(block)
    if needed > out.size - written:
        raise OutputFull(written + needed)
    return int(cramjam.snappy.decompress_raw_into(block, out[written : written + needed].data))


def _unlz4(compressed: memoryview, out: npt.NDArray[np.uint8]) -> int:
    written = 0
    while True:
        frame = lz4.frame.LZ4FrameDecompressor()
        plain = frame.decompress(compressed, max_length=out.size - written + 1)
        written = _append(plain, out, written)
        if not frame.eof:
            raise DecodeError("lz4: the frame ends early")
        rest = frame.unused_data or b""
        if not rest.startswith(_LZ4_MAGIC):  # what follows a frame is ignored, as in Java
            return written
        compressed = memoryview(rest)


def _unzstd(compressed: memoryview, out: npt.NDArray[np.uint8]) -> int:
    declared = zstandard.frame_content_size(compressed)
    if declared > out.size:
        raise OutputFull(declared)
    if out.size == 0:  # the decoder takes an output without room for a fault of the stream
        raise OutputFull
    reader = _ZSTD.stream_reader(compressed, read_across_frames=True)
    written = int(reader.readinto(out))
    if written == out.size and reader.read(1):
        raise OutputFull
    if _zstd_ends_early(compressed):  # of which the decoder says nothing
        raise DecodeError("zstd: the frame ends early")
    return written


def _zstd_ends_early(compressed: memoryview) -> bool:
    """Whether a frame lacks a part of its last block, or its checksum (RFC 8878, 3.1.1)."""
    position = 0
    while position < len(compressed):
        frame = compressed[position:]
        if bytes(frame[1:4]) == _ZSTD_SKIPPABLE_MAGIC:
            position += 8 + int.from_bytes(frame[4:8], "little")
            continue
        position += zstandard.frame_header_size(frame)
        is_last = False
        while not is_last:
            if position + 3 > len(compressed):
                return True
            header = int.from_bytes(compressed[position : position + 3], "little")
            is_last = bool(header & 1)
            is_repeated_byte = header >> 1 & 3 == 1
            position += 3 + (1 if is_repeated_byte else header >> 3)
        position += 4 * zstandard.get_frame_parameters(frame).has_checksum
    return position > len(compressed)


_ZSTD = zstandard.ZstdDecompressor()


def _append(plain: bytes, out: npt.NDArray[np.uint8], written: int) -> int:
    if len(plain) > out.size - written:
        raise OutputFull(written + len(plain))
    out[written : written + len(plain)] = np.frombuffer(plain, dtype=np.uint8)
    return written + len(plain)


_Decoder = Callable[[memoryview, npt.NDArray[np.uint8]], int]
_DECODERS: dict[int, tuple[str, _Decoder]] = {
    1: ("gzip", _gunzip),
    2: ("snappy", _unsnappy),
    3: ("lz4", _unlz4),
    4: ("zstd", _unzstd),
}


class Scratch:
    """The buffer that a chunk of batches is decompressed into, one behind the other."""

    def __init__(self, max_decompressed_bytes: int) -> None:
        self.limit = max_decompressed_bytes
        self.written = 0
        self.buffer = np.empty(min(_SCRATCH_BYTES, max_decompressed_bytes), dtype=np.uint8)

    def reset(self, *, recycle: bool) -> None:
        """Start the next chunk; without `recycle` the last one keeps its buffer."""
        self.written = 0
        if not recycle:
            self.buffer = np.empty(self.buffer.size, dtype=np.uint8)

    @property
    def content(self) -> npt.NDArray[np.uint8]:
        """All of the buffer, read-only: kernels may look a little behind what was written."""
        view = self.buffer[:]
        view.flags.writeable = False
        return view

    def append(self, plain: npt.NDArray[np.uint8]) -> None:
        """Take over records that were not compressed."""
        self._grow(self.written + plain.size)
        self.buffer[self.written : self.written + plain.size] = plain
        self.written += plain.size

    def decompress(self, codec: int, compressed: memoryview) -> None:
        """Append one batch's records; OutputFull when they pass the limit."""
        while True:
            room = self.buffer[self.written : self.written + self.limit]
            try:
                self.written += decompress_into(codec, compressed, room)
                return
            except OutputFull as full:
                if room.size == self.limit or full.needed > self.limit:
                    raise
                wanted = full.needed or max(2 * room.size, _SCRATCH_BYTES)
                self._grow(self.written + min(wanted, self.limit))

    def _grow(self, size: int) -> None:
        if size > self.buffer.size:
            larger = np.empty(max(size, self.buffer.size * 2), dtype=np.uint8)
            larger[: self.written] = self.buffer[: self.written]
            self.buffer = larger
