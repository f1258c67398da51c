"""kafkajit.format: what bytes mean, one primitive at a time."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

import numpy as np

from kafkajit.format.batch_checksum import batch_checksums
from kafkajit.format.compression import COMPRESSION_TYPES, decompress_into
from kafkajit.format.layout import RECORD_BATCH_OVERHEAD
from kafkajit.format.varint import size_of_varint, size_of_varlong
from kafkajit.records.batches import frame
from kafkajit.source import Source

from . import segments


class Varint:
    """Sizes of a million numbers that need up to `bits` bits."""

    params = [7, 14, 31]
    param_names = ["bits"]

    def setup(self, bits: int) -> None:
        numbers = np.random.default_rng(segments.SEED)
        self.values = numbers.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), 10**6)
        self.values32 = self.values.astype(np.int32)
        self.time_size_of_varint(bits)
        self.time_size_of_varlong(bits)

    def time_size_of_varint(self, bits: int) -> None:
        size_of_varint(self.values32)

    def time_size_of_varlong(self, bits: int) -> None:
        size_of_varlong(self.values)


class Checksum:
    """The CRC-32C of every batch of a segment."""

    setup_cache = staticmethod(segments.setup_cache)

    def setup(self) -> None:
        self.content = Source(segments.small().path().read_bytes()).content
        self.batches = frame(self.content).batches

    def time_batch_checksums(self) -> None:
        batch_checksums(self.content, self.batches.position, self.batches.end)


class Compression:
    """Every batch of a segment decompressed into one recycled buffer: the bare codec."""

    params = [name for name in COMPRESSION_TYPES.values() if name != "none"]
    param_names = ["codec"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, codec: str) -> None:
        content = Source(segments.small(codec=codec).path().read_bytes()).content
        batches = frame(content).batches
        self.codec = int(batches.codec[0])
        self.out = np.zeros(1 << 20, dtype=np.uint8)
        self.payloads = [
            content.data[start + RECORD_BATCH_OVERHEAD : end]
            for start, end in zip(batches.position, batches.end, strict=True)
        ]

    def time_decompress_into(self, codec: str) -> None:
        for payload in self.payloads:
            decompress_into(self.codec, payload, self.out)
