"""Compressors for the records of a batch: each codec as Kafka and as other clients write it."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable

import lz4.frame
import pyarrow as pa

from kafkajit.format.zstd import ZstdCompressor

_SNAPPY = pa.Codec("snappy")


def _snappy(payload: bytes) -> bytes:
    compressed: bytes = _SNAPPY.compress(payload, asbytes=True)
    return compressed


def _xerial(payload: bytes, order: str = ">", block: int = 32 * 1024) -> bytes:
    """snappy-java's frame: magic, version, oldest compatible version, sized raw blocks."""
    framed = bytearray(b"\x82SNAPPY\x00" + struct.pack(order + "ii", 1, 1))
    for start in range(0, len(payload), block):
        raw = _snappy(payload[start : start + block])
        framed += struct.pack(order + "i", len(raw)) + raw
    return bytes(framed)


def _lz4(payload: bytes) -> bytes:
    """An LZ4 frame as Kafka writes it: independent blocks of 64 KiB, no sizes or checksum."""
    framed: bytes = lz4.frame.compress(
        payload,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        store_size=False,
    )
    return framed


def _zstd(payload: bytes) -> bytes:
    """A zstd frame as a streaming producer writes it: without the size."""
    stream = ZstdCompressor(3)
    return stream.compress(payload) + stream.flush()


def _zstd_sized(payload: bytes) -> bytes:
    return ZstdCompressor(3).compress(payload, ZstdCompressor.FLUSH_FRAME)


def _halves(compress: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    def both(payload: bytes) -> bytes:
        middle = len(payload) // 2
        return compress(payload[:middle]) + compress(payload[middle:])

    return both


def _gzip(payload: bytes) -> bytes:
    return gzip.compress(payload, compresslevel=6, mtime=0)


# name: (codec id, compressor); clients other than Java's write the variants
COMPRESSORS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "none": (0, bytes),
    "gzip": (1, _gzip),
    "gzip-members": (1, _halves(_gzip)),
    "snappy": (2, _xerial),
    "snappy-little-endian": (2, lambda payload: _xerial(payload, "<")),
    "snappy-small-blocks": (2, lambda payload: _xerial(payload, block=100)),
    "snappy-raw": (2, _snappy),
    "lz4": (3, _lz4),
    "lz4-linked": (3, lz4.frame.compress),
    "lz4-frames": (3, _halves(_lz4)),
    "zstd": (4, _zstd),
    "zstd-sized": (4, _zstd_sized),
    "zstd-frames": (4, _halves(_zstd)),
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
