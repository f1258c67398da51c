"""The codecs of Kafka, by number and by name; `compression` decompresses what they made."""

from __future__ import annotations

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
COMPRESSION_TYPES = {0: "none", GZIP: "gzip", SNAPPY: "snappy", LZ4: "lz4", ZSTD: "zstd"}
COMPRESSION_IDS = {name: codec for codec, name in COMPRESSION_TYPES.items()}
DEFAULT_MAX_DECOMPRESSED_BYTES = 256 << 20


def codec_name(codec: int) -> str:
    """A codec's name, or its number if Kafka has no such codec.

    >>> codec_name(4), codec_name(7)
    ('zstd', 'unknown(7)')
    """
    return COMPRESSION_TYPES.get(codec, f"unknown({codec})")
