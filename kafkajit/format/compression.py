"""Decompresses the records of a batch, with every codec of Kafka's, within a limit.

Every decoder writes into a given buffer and never asks for more memory. If a batch claims, or turns
out, to be larger, the decoder raises `OutputFull`, and `Scratch` grows the buffer up to the
caller's limit. Buffers are recycled: memory touched for the first time costs more than decoding
into memory already there.

Most batches never come here: format/decompressors.py decompresses those that Kafka's own clients
wrote. The formats in a log, and the decoder that reads each of them here:

    gzip    one or more members (RFC 1952)                 isal, 1.9 times zlib
    snappy  xerial frames (snappy-java) or one raw block   pyarrow, a block at a time
    lz4     one or more LZ4 frames                         lz4.block, else lz4.frame in pieces
    zstd    one or more frames, size seldom declared       Python's own, in pieces
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Literal

import lz4.block
import lz4.frame
import numpy as np
import numpy.typing as npt
from isal import isal_zlib

from kafkajit.format.codecs import GZIP, LZ4, SNAPPY, ZSTD
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.zstd import ZstdDecompressor, ZstdError, get_frame_info, get_frame_size
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import read_little_endian

_SCRATCH_BYTES = 8 << 20
XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER_SIZE = 16  # magic, version, oldest compatible version
# Each gzip member and each lz4 frame copies what follows it: with many, time would be quadratic.
_MAX_PARTS = 256
_GZIP_MAGIC = b"\x1f\x8b"
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
# Kafka's clients write independent blocks of up to 64 KiB, no sizes, only the header's checksum.
LZ4_KAFKA_HEADER = _LZ4_MAGIC + b"\x60\x40\x82"
LZ4_BLOCK_SIZE = 1 << 16
LZ4_STORED = 1 << 31
_LZ4_BLOCK_HEAD = struct.Struct("<I")
# Frames are read in pieces, because their decoders copy what they write. zstd's joins a longer
# piece out of parts: with one for 4 MiB it takes twice as long.
_PIECE = 1 << 17


class OutputFull(Exception):
    """The output needs more room: `needed` bytes, or 0 if that is not known."""

    def __init__(self, needed: int = 0) -> None:
        super().__init__(needed)
        self.needed = needed


class DecodeError(Exception):
    """The codec refuses the bytes; the message is the decoder's."""


def decompress_into(codec: int, compressed: memoryview, out: npt.NDArray[np.uint8]) -> int:
    r"""Decompress into `out`, and return how many bytes were written.

    >>> out = np.empty(64, dtype=np.uint8)
    >>> size = decompress_into(2, memoryview(b"\x07\x18records"), out)
    >>> out[:size].tobytes()
    b'records'
    """
    name, decode = _DECODERS[codec]
    try:
        return decode(compressed, out)
    except (
        isal_zlib.error,  # type: ignore[misc]
        lz4.block.LZ4BlockError,
        ZstdError,
        RuntimeError,  # lz4.frame's own
        EOFError,
    ) as error:
        raise DecodeError(f"{name}: {error}") from error


def _gunzip(compressed: memoryview, out: npt.NDArray[np.uint8]) -> int:
    written = 0
    rest = bytes(compressed)
    for _ in range(_MAX_PARTS):
        member = isal_zlib.decompressobj(31)
        plain = member.decompress(rest, max_length=out.size - written + 1)
        written = _append(plain, out, written)
        if not member.eof:
            raise DecodeError("gzip: the stream ends early")
        rest = member.unused_data
        if not rest.startswith(_GZIP_MAGIC):  # what follows a member is ignored, as in Java
            return written
    raise DecodeError(f"gzip: more than {_MAX_PARTS} members")


def _unsnappy(compressed: memoryview, out: npt.NDArray[np.uint8]) -> int:
    if bytes(compressed[:8]) != XERIAL_MAGIC:
        return _unsnappy_block(compressed, out, 0)
    written = 0
    position = XERIAL_HEADER_SIZE
    order = _xerial_byte_order(compressed)
    while position < len(compressed):
        if bytes(compressed[position : position + 8]) == XERIAL_MAGIC:  # streams one by one
            position += XERIAL_HEADER_SIZE
            continue
        size = int.from_bytes(compressed[position : position + 4], order)
        position += 4
        if size > len(compressed) - position:
            raise DecodeError("snappy: a block goes past the end of the records")
        written += _unsnappy_block(compressed[position : position + size], out, written)
        position += size
    return written


def _xerial_byte_order(compressed: memoryview) -> Literal["big", "little"]:
    """The frame's byte order: some clients wrote its numbers in their machine's order."""
    first = compressed[XERIAL_HEADER_SIZE : XERIAL_HEADER_SIZE + 4]
    room = len(compressed) - XERIAL_HEADER_SIZE - 4
    if int.from_bytes(first, "big") <= room or int.from_bytes(first, "little") > room:
        return "big"
    return "little"


def _unsnappy_block(block: memoryview, out: npt.NDArray[np.uint8], written: int) -> int:
    needed = unsnappied_size(block)
    if needed > out.size - written:
        raise OutputFull(written + needed)
    return _append(unsnappy(block), out, written) - written


def unsnappy(block: memoryview | bytes) -> bytes:
    r"""Decompress a raw snappy block.

    >>> unsnappy(b"\x07\x18records")
    b'records'
    """
    from pyarrow import Codec  # few logs need it: the kernel decodes what Kafka's clients write

    try:
        plain: bytes = Codec("snappy").decompress(block, unsnappied_size(block), asbytes=True)
    except OSError:
        raise DecodeError("snappy: the block is malformed") from None
    return plain


def unsnappied_size(block: memoryview | bytes) -> int:
    """The size that a raw block declares, a varint of up to 32 bits."""
    size = 0
    for i, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << 7 * i
        if byte < 0x80 and size < 1 << 32:
            return size
    raise DecodeError("snappy: the block does not begin with its size")


def _unlz4(compressed: memoryview, out: npt.NDArray[np.uint8]) -> int:
    if compressed[: len(LZ4_KAFKA_HEADER)] == LZ4_KAFKA_HEADER:
        written = _unlz4_blocks(compressed, out)
        if written is not None:
            return written
        compressed = _with_plain_end_mark(compressed)
    written = 0
    for _ in range(_MAX_PARTS):
        frame = lz4.frame.LZ4FrameDecompressor()
        written, size = _read_frame(frame, "lz4", compressed, out, written)
        compressed = compressed[size:]
        if compressed[: len(_LZ4_MAGIC)] != _LZ4_MAGIC:  # the rest is ignored, as in Java
            return written
    raise DecodeError(f"lz4: more than {_MAX_PARTS} frames")


def _read_frame(
    frame: Any, name: str, compressed: memoryview, out: npt.NDArray[np.uint8], written: int
) -> tuple[int, int]:
    """(bytes written, the frame's size), read by a decoder of lz4 or zstd."""
    position, plain = 0, b""
    while not frame.eof:
        piece = compressed[position : position + _PIECE] if frame.needs_input else b""
        if frame.needs_input and not piece and not plain:
            raise DecodeError(f"{name}: the frame ends early")
        position += len(piece)
        plain = frame.decompress(piece, max_length=min(out.size - written + 1, _PIECE))
        written = _append(plain, out, written)
    return written, position - len(frame.unused_data or b"")


def _unlz4_blocks(compressed: memoryview, out: npt.NDArray[np.uint8]) -> int | None:
    """Decode a frame as Kafka's own clients write it, block by block, into the buffer.

    Returns None if the frame is different, or the room is short: the general decoder then reports
    the right error.
    """
    position, written = len(LZ4_KAFKA_HEADER), 0
    end, room, target = len(compressed), out.size - LZ4_BLOCK_SIZE, out.data
    # Most batches have one block, so the work around the blocks counts.
    while position + 4 <= end:
        (size,) = _LZ4_BLOCK_HEAD.unpack_from(compressed, position)
        position += 4
        if size & (LZ4_STORED - 1) == 0:  # the end mark, which Java takes with either kind
            is_last = position == end or compressed[position : position + 4] != _LZ4_MAGIC
            return written if is_last else None
        is_stored = size >= LZ4_STORED
        size &= LZ4_STORED - 1
        if size > end - position or written > room or size > LZ4_BLOCK_SIZE:
            return None
        block = compressed[position : position + size]
        position += size
        if is_stored:
            target[written : written + size] = block
            written += size
        else:
            plain = lz4.block.decompress(block, uncompressed_size=LZ4_BLOCK_SIZE)
            target[written : written + len(plain)] = plain
            written += len(plain)
    return None


def _with_plain_end_mark(frame: memoryview) -> memoryview:
    """Replace Java's end mark, an empty stored block, behind which liblz4 reads on."""
    position = len(LZ4_KAFKA_HEADER)
    while position + 4 <= len(frame):
        (size,) = _LZ4_BLOCK_HEAD.unpack_from(frame, position)
        if size == LZ4_STORED:
            ended = bytearray(frame)
            ended[position : position + 4] = bytes(4)
            return memoryview(ended)
        if size == 0:
            break
        position += 4 + (size & (LZ4_STORED - 1))
    return frame


def with_right_lz4_checksum(compressed: memoryview) -> memoryview:
    """Put the checksum of a v0 frame's descriptor right.

    Kafka's first LZ4 writer, which v0 is bound to, included the frame's magic in that checksum.
    """
    if compressed[:4] != _LZ4_MAGIC or len(compressed) < 7:
        return compressed
    end = 6 + (8 if compressed[4] & 0x08 else 0)  # flags, block descriptor, perhaps a size
    frame = bytearray(compressed)
    if end < len(frame):
        frame[end] = _xxh32(bytes(frame[4:end])) >> 8 & 0xFF
    return memoryview(frame)


def _xxh32(data: bytes) -> int:
    """Compute XXH32, with the seed 0, of fewer than 16 bytes."""
    mask = 0xFFFFFFFF
    prime1, prime2, prime3, prime4, prime5 = (
        0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1,
    )  # fmt: skip
    total = prime5 + len(data)
    words = len(data) // 4 * 4
    for at in range(0, words, 4):
        total = total + int.from_bytes(data[at : at + 4], "little") * prime3 & mask
        total = (total << 17 | total >> 15) * prime4 & mask
    for byte in data[words:]:
        total = total + byte * prime5 & mask
        total = (total << 11 | total >> 21) * prime1 & mask
    total = (total ^ total >> 15) * prime2 & mask
    total = (total ^ total >> 13) * prime3 & mask
    return total ^ total >> 16


def _unzstd(compressed: memoryview, out: npt.NDArray[np.uint8]) -> int:
    declared = get_frame_info(compressed).decompressed_size
    if declared is not None and declared > out.size:
        raise OutputFull(declared)
    written = 0
    while compressed:
        # Not all the frames at once: the decoder copies what follows one.
        try:
            size = get_frame_size(compressed)
        except ZstdError:  # the decoder finds out whether it is damaged or cut
            size = len(compressed)
        written, _ = _read_frame(ZstdDecompressor(), "zstd", compressed[:size], out, written)
        compressed = compressed[size:]
    return written


@kernel
def zstd_extent(content, position, end):
    """The end of the frames, by their own lengths, and the largest window that they need.

    That end is behind `end` if they are cut (RFC 8878, 3.1).
    """
    p, window = np.int64(position), np.int64(0)
    while p + 5 <= end:
        if content[p + 1] == 0x2A:  # a skippable frame: magic, size
            if p + 8 > end:
                break
            p += 8 + read_little_endian(content, p + 4, np.int64(4))
            continue
        descriptor = np.int64(content[p + 4])
        is_single_segment = descriptor >> 5 & 1
        size_bytes = np.int64(1) << (descriptor >> 6)
        if size_bytes == 1:
            size_bytes = is_single_segment
        dictionary_bytes = (np.int64(1) << (descriptor & 3)) >> 1
        p += 5
        if p + 1 + dictionary_bytes + size_bytes > end:
            return np.int64(end + 1), window
        if is_single_segment == 1:
            asked = read_little_endian(content, p + dictionary_bytes, size_bytes)
        else:
            least = np.int64(1) << (10 + (np.int64(content[p]) >> 3))
            asked = least + (least >> 3) * (np.int64(content[p]) & 7)
        window = max(window, asked if asked >= 0 else np.int64(MAX_INT64))
        p += 1 - is_single_segment + dictionary_bytes + size_bytes
        is_last = False
        while not is_last:
            if p + 3 > end:
                return np.int64(end + 1), window
            header = read_little_endian(content, p, np.int64(3))
            is_last = header & 1 != 0
            p += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)  # type 1 repeats one byte
        p += 4 * (descriptor >> 2 & 1)  # the checksum
    return p, window


# The last byte of the header that Kafka's first LZ4 writer wrote: its checksum includes the magic.
FIRST_LZ4_CHECKSUM = _xxh32(LZ4_KAFKA_HEADER[:6]) >> 8 & 0xFF


def _append(plain: bytes, out: npt.NDArray[np.uint8], written: int) -> int:
    if len(plain) > out.size - written:
        raise OutputFull(written + len(plain))
    out[written : written + len(plain)] = np.frombuffer(plain, dtype=np.uint8)
    return written + len(plain)


_Decoder = Callable[[memoryview, npt.NDArray[np.uint8]], int]
_DECODERS: dict[int, tuple[str, _Decoder]] = {
    GZIP: ("gzip", _gunzip),
    SNAPPY: ("snappy", _unsnappy),
    LZ4: ("lz4", _unlz4),
    ZSTD: ("zstd", _unzstd),
}


class Scratch:
    """The buffer that receives the decompressed batches of a chunk, one after the other."""

    def __init__(self, max_decompressed_bytes: int) -> None:
        self.limit = max_decompressed_bytes
        self.written = 0
        self.buffer = np.empty(min(_SCRATCH_BYTES, max_decompressed_bytes), dtype=np.uint8)

    def reset(self, *, recycle: bool) -> None:
        """Start the next chunk; without `recycle` the previous one keeps its buffer."""
        self.written = 0
        if not recycle:
            self.buffer = np.empty(self.buffer.size, dtype=np.uint8)

    @property
    def content(self) -> npt.NDArray[np.uint8]:
        """The whole buffer, read-only: kernels may look a little behind what was written."""
        view = self.buffer[:]
        view.flags.writeable = False
        return view

    def append(self, plain: npt.NDArray[np.uint8]) -> None:
        """Append records that are not compressed."""
        self._grow(self.written + plain.size)
        self.buffer[self.written : self.written + plain.size] = plain
        self.written += plain.size

    def decompress(self, codec: int, compressed: memoryview) -> None:
        """Append one batch's records; raise OutputFull if they exceed the limit."""
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
