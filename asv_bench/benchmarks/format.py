"""kafkajit.format: one primitive of the format at a time."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

import numba
import numpy as np

from kafkajit.format.batch_checksum import batch_checksums
from kafkajit.format.codecs import COMPRESSION_TYPES
from kafkajit.format.compression import decompress_into
from kafkajit.format.compressor import Compressor
from kafkajit.format.layout import RECORD_BATCH_OVERHEAD
from kafkajit.format.message_checksum import message_checksums
from kafkajit.format.varint import read_varint, read_varlong
from kafkajit.records.batches import frame
from kafkajit.sizes import size_of_varint, size_of_varlong
from kafkajit.storage.source import Bytes, Source
from kafkajit.testing import Record, varint

from . import segments
from .throughput import gigabytes_per_second


# Cursors of readers, with numba's own decorator, because these loops need no cache.
def reading_with(read):
    @numba.njit(nogil=True, error_model="numpy")
    def read_all(content, count):
        position = 0
        for _ in range(count):
            _, position = read(content, position, content.size)
        return position

    return read_all


read_varints, read_varlongs = reading_with(read_varint), reading_with(read_varlong)


@numba.njit(nogil=True, error_model="numpy")
def read_record_varints(content, records):
    position = 0
    for _ in range(records):
        _, position = read_varint(content, position, content.size)  # length
        _, position = read_varlong(content, position, content.size)  # timestampDelta
        for _ in range(4):  # offsetDelta, keyLength, valueLength, headersCount
            _, position = read_varint(content, position, content.size)
    return position


def noise() -> Bytes:
    return Source(np.random.default_rng(segments.SEED).bytes(segments.SMALL)).content


class Varint:
    """A million numbers that need up to `bits` bits: their sizes, and reading them."""

    params = [7, 14, 31]
    param_names = ["bits"]

    def setup(self, bits: int) -> None:
        numbers = np.random.default_rng(segments.SEED)
        self.values = numbers.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), 10**6)
        self.values32 = self.values.astype(np.int32)
        some = self.values[:10_000].tolist()
        self.encoded = Source(b"".join(varint(number) for number in some) * 100).content
        self.time_size_of_varint(bits)
        self.time_size_of_varlong(bits)
        self.time_read_varint(bits)
        self.time_read_varlong(bits)

    def time_size_of_varint(self, bits: int) -> None:
        size_of_varint(self.values32)

    def time_size_of_varlong(self, bits: int) -> None:
        size_of_varlong(self.values)

    def time_read_varint(self, bits: int) -> None:
        assert read_varints(self.encoded, 10**6) == self.encoded.size

    def time_read_varlong(self, bits: int) -> None:
        assert read_varlongs(self.encoded, 10**6) == self.encoded.size


class RecordVarints:
    """The six varints of each record, one behind the other, and nothing else of it."""

    def setup(self) -> None:
        key, value = bytes(segments.KEY_SIZE), bytes(100)
        of_a_batch = b"".join(
            varint(number)
            for place in range(500)
            for size in [len(Record(key, value).encode(place, 0))]
            for number in (size, place // 2, place, len(key), len(value), 0)
        )
        self.records = 500 * 200
        self.content = Source(of_a_batch * 200).content
        self.time_read_varint()

    def time_read_varint(self) -> None:
        assert read_record_varints(self.content, self.records) == self.content.size


class Checksum:
    """The CRC-32C of 16 MiB of batches, by the size of a batch."""

    params = [300, 16_000, 1 << 20]
    param_names = ["batch_bytes"]

    def setup(self, batch_bytes: int) -> None:
        self.content = noise()
        self.ends = np.arange(batch_bytes, self.content.size + 1, batch_bytes)
        self.positions = self.ends - batch_bytes
        self.time_batch_checksums(batch_bytes)

    def time_batch_checksums(self, batch_bytes: int) -> None:
        batch_checksums(self.content, self.positions, self.ends)

    def track_batch_checksums(self, batch_bytes: int) -> float:
        return gigabytes_per_second(
            self.content.size, lambda: self.time_batch_checksums(batch_bytes)
        )

    track_batch_checksums.unit = "GB/s"


class MessageChecksum:
    """The CRC-32 of 16 MiB of messages of v0 or v1, by the size of a message."""

    params = [100, 1000]
    param_names = ["message_bytes"]

    def setup(self, message_bytes: int) -> None:
        self.content = noise()
        self.ends = np.arange(message_bytes, self.content.size + 1, message_bytes)
        self.positions = self.ends - message_bytes
        self.time_message_checksums(message_bytes)

    def time_message_checksums(self, message_bytes: int) -> None:
        message_checksums(self.content, self.positions, self.ends)


class Compression:
    """Every batch of a segment decompressed into one recycled buffer, in the general way."""

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
        self.time_decompress_into(codec)

    def time_decompress_into(self, codec: str) -> None:
        for payload in self.payloads:
            decompress_into(self.codec, payload, self.out)


class Compressing:
    """A segment's bytes compressed 64 KiB at a time, as Kafka's clients frame them."""

    params = [name for name in COMPRESSION_TYPES.values() if name != "none"]
    param_names = ["codec"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, codec: str) -> None:
        codecs = {name: number for number, name in COMPRESSION_TYPES.items()}
        content = Source(segments.small().path().read_bytes()).content
        self.payloads = np.split(content, range(64 << 10, content.size, 64 << 10))
        self.compressor = Compressor(codecs[codec])
        self.out = np.zeros(1 << 20, dtype=np.uint8)
        self.time_write(codec)

    def time_write(self, codec: str) -> None:
        for payload in self.payloads:
            self.compressor.write(payload, self.out, 0)
