"""Compresses records, in the frames that Kafka's clients write.

    gzip    one member; isal by default, which packs as well as zlib in a fifth of the time
    snappy  snappy-java's frame (xerial), blocks of 32 KiB
    lz4     an LZ4 frame of independent blocks of 64 KiB, no sizes, no checksums but the header's
    zstd    one frame that declares its size

Levels are those of Kafka's compression.gzip.level, compression.lz4.level, compression.zstd.level.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Protocol

import lz4.block
import numpy as np
import numpy.typing as npt
from isal import isal_zlib

from kafkajit.format.codecs import COMPRESSION_IDS, COMPRESSION_TYPES, GZIP, LZ4, SNAPPY, ZSTD
from kafkajit.format.compression import (
    FIRST_LZ4_CHECKSUM,
    LZ4_BLOCK_SIZE,
    LZ4_KAFKA_HEADER,
    LZ4_STORED,
    XERIAL_MAGIC,
)
from kafkajit.format.zstd import ZstdCompressor

# The default level of a codec, the least and the greatest, as in Kafka.
LEVELS = {GZIP: (-1, 1, 9), LZ4: (9, 1, 17), ZSTD: (3, -131072, 22)}

_ISAL_LEVEL = 2
_GZIP_WINDOW = 31  # 15 bits, and gzip's header
_XERIAL_HEADER = XERIAL_MAGIC + bytes([0, 0, 0, 1, 0, 0, 0, 1])  # version, oldest compatible one
_XERIAL_BLOCK = 32 << 10
_LZ4_HC_MOST = 12  # Kafka accepts up to 17; its library treats more than 12 as 12
_LZ4_END = bytes(4)

# Plain bytes → compressed ones.
_Encoder = Callable[[memoryview], bytes]


class TextCompressor(Protocol):
    """Compresses a stream of bytes."""

    def compress(self, content: bytes | memoryview, /) -> bytes: ...

    def flush(self) -> bytes:
        """Return the rest of the compressed bytes; the stream has ended."""


def text_compressor(codec: str, level: int | None = None) -> TextCompressor:
    r"""A compressor of a whole file, which other programs decompress: gzip or zstd.

    >>> import gzip
    >>> packer = text_compressor("gzip")
    >>> gzip.decompress(packer.compress(b"a,b\n") + packer.flush())
    b'a,b\n'
    """
    check_level(COMPRESSION_IDS[codec], level)
    if codec == "gzip":
        if level is not None:
            return zlib.compressobj(level, wbits=_GZIP_WINDOW)
        return isal_zlib.compressobj(_ISAL_LEVEL, wbits=_GZIP_WINDOW)
    return ZstdCompressor(level=level)


class Compressor:
    r"""Compresses with one codec at one level; with `first_lz4`, as Kafka's LZ4 writer for v0 did.

    >>> out = np.empty(64, dtype=np.uint8)
    >>> end = Compressor(ZSTD).write(np.frombuffer(b"records", np.uint8), out, 0)
    >>> out[end - 10 : end].tobytes()
    b'9\x00\x00records'
    """

    def __init__(self, codec: int, level: int | None = None, *, first_lz4: bool = False) -> None:
        check_level(codec, level)
        self._encode = _encoder(codec, level)
        self._is_first_lz4 = first_lz4 and codec == LZ4

    def write(self, plain: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8], position: int) -> int:
        """Compress the bytes into `out` at `position`, and return where they end."""
        compressed = self._encode(plain.data)
        end = position + len(compressed)
        out[position:end] = np.frombuffer(compressed, dtype=np.uint8)
        if self._is_first_lz4:
            at = position + len(LZ4_KAFKA_HEADER) - 1
            out[at] = FIRST_LZ4_CHECKSUM
        return end


def compressed_bound(plain_bytes: int, parts: int) -> int:
    """The most bytes that this many take when compressed, in this many parts.

    >>> compressed_bound(6400, 1)
    6578
    """
    # gzip adds most: 5 bytes for every 16 KiB, 18 around them. An lz4 block is stored instead.
    return plain_bytes + plain_bytes // 128 + 128 * parts


def check_level(codec: int, level: int | None) -> None:
    """Raise a ValueError if Kafka does not accept that level.

    >>> check_level(LZ4, 18)
    Traceback (most recent call last):
    ValueError: lz4 has levels from 1 to 17, not 18
    """
    if level is None:
        return
    name = COMPRESSION_TYPES[codec]
    if codec not in LEVELS:
        raise ValueError(f"{name} has no levels")
    default, least, most = LEVELS[codec]
    if level != default and not least <= level <= most:
        raise ValueError(f"{name} has levels from {least} to {most}, not {level}")


def _encoder(codec: int, level: int | None) -> _Encoder:
    default = LEVELS[codec][0] if codec in LEVELS else 0
    chosen = default if level is None else level
    if codec == GZIP:
        if chosen == default:
            return lambda plain: isal_zlib.compress(plain, _ISAL_LEVEL, _GZIP_WINDOW)
        return lambda plain: zlib.compress(plain, chosen, _GZIP_WINDOW)
    if codec == SNAPPY:
        from pyarrow import Codec  # its C++ takes a tenth less time than Rust's compressor

        return partial(_snappy, partial(Codec("snappy").compress, asbytes=True))
    if codec == LZ4:
        if chosen == default:  # Kafka's default names HC's level 9 and means the fast compressor
            return partial(_lz4, lz4.block.compress)
        high = {"mode": "high_compression", "compression": min(chosen, _LZ4_HC_MOST)}
        return partial(_lz4, partial(lz4.block.compress, **high))
    return partial(ZstdCompressor(chosen).compress, mode=ZstdCompressor.FLUSH_FRAME)


def _snappy(compress: _Encoder, plain: memoryview) -> bytes:
    framed = [_XERIAL_HEADER]
    for start in range(0, len(plain), _XERIAL_BLOCK):
        block = compress(plain[start : start + _XERIAL_BLOCK])
        framed += [len(block).to_bytes(4, "big"), block]
    return b"".join(framed)


def _lz4(compress: Callable[..., bytes], plain: memoryview) -> bytes:
    framed: list[bytes | memoryview] = [LZ4_KAFKA_HEADER]
    for start in range(0, len(plain), LZ4_BLOCK_SIZE):
        block: bytes | memoryview = plain[start : start + LZ4_BLOCK_SIZE]
        compressed = compress(block, store_size=False)
        size = len(compressed)
        if size < len(block):
            block = compressed
        else:
            size = len(block) | LZ4_STORED
        framed += [size.to_bytes(4, "little"), block]
    framed.append(_LZ4_END)
    return b"".join(framed)
