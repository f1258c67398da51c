"""Ranges of a segment out of the transformed chunks of an object."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from kafkajit.errors import RemoteStorageError
from kafkajit.format.codecs import ZSTD
from kafkajit.format.zstd import ZstdDecompressor, ZstdError, get_frame_info
from kafkajit.places.manifest import ENCRYPTION_BYTES, Manifest
from kafkajit.places.private_keys import Decryption, PrivateKeys

ReadObject = Callable[[int, int], bytes | memoryview]  # a count of bytes, from a position on

_PIECE = 1 << 20  # bytes that are skipped at once
_ZSTD_PIECE = 1 << 17  # zstd joins a longer piece out of parts
_UNREADABLE = (ValueError, ZstdError)
_EARLY_END = "it ends early"


class ChunkReader:
    """Reads ranges of a segment. Each chunk is decrypted, and decompressed, once if they follow."""

    def __init__(
        self, manifest: Manifest, keys: PrivateKeys, read_object: ReadObject, path: str
    ) -> None:
        self._manifest = manifest
        self._map = manifest.chunks
        self._places = manifest.chunks.places()
        self._keys = keys
        self._read_object = read_object
        self._path = path
        self._opened: _OpenChunk | None = None  # a chunk that was read in part
        self._again = (0, memoryview(b""))  # a place, and the bytes there, behind a lost chunk

    @cached_property
    def _decryption(self) -> Decryption | None:
        key = self._manifest.data_key
        return None if key is None else Decryption(self._keys.unwrap(key, self._path), key.aad)

    def read_into(self, memory: memoryview, position: int) -> int:
        """Read a range of the segment from a position on; return how many bytes it has.

        It ends with a chunk, unless the memory ends in the first one.
        """
        end = min(position + len(memory), self._map.size)
        if end <= position:
            return 0
        size = self._map.chunk_size
        first = position // size
        if position % size or end < min((first + 1) * size, self._map.size):
            end = min(end, (first + 1) * size)
            self._read_part(first, position - first * size, memory[: end - position])
            return end - position
        behind = self._map.chunks if end == self._map.size else end // size
        self._read_chunks(first, behind, memory)
        return min(behind * size, self._map.size) - position

    def _read_chunks(self, first: int, behind: int, memory: memoryview) -> None:
        """Read whole chunks, up to the first sound one that follows lost ones."""
        start = self._places.start(first)
        packed = self._packed(first, behind)
        lost: list[int] = []
        reason: Exception | None = None
        for chunk in range(first, behind):
            begin, stop = self._places.start(chunk), self._places.start(chunk + 1)
            at = (chunk - first) * self._map.chunk_size
            part = memory[at : at + self._size(chunk)]
            try:
                self._read(packed[begin - start : stop - start], part)
            except RemoteStorageError:  # about the key of all chunks
                raise
            except _UNREADABLE as error:
                lost.append(chunk)
                reason = reason or error
            else:
                if lost:
                    break
        if reason is not None:
            self._again = start, packed
            raise self._failure(lost[0], lost[-1], reason)

    def _read_part(self, chunk: int, start: int, memory: memoryview) -> None:
        """Read a part of a chunk: most often, the rest is asked for next.

        The whole chunk may have gigabytes, which a few bytes have become.
        """
        opened = self._opened
        try:
            if opened is None or opened.chunk != chunk or opened.position > start:
                opened = self._opened = self._open(chunk)
            opened.skip(start - opened.position)
            opened.read_into(memory)
        except RemoteStorageError:  # about the key, or the object
            raise
        except _UNREADABLE as error:
            self._opened = None
            raise self._failure(chunk, chunk, error) from None

    def _open(self, chunk: int) -> _OpenChunk:
        packed = self._packed(chunk, chunk + 1)
        size = self._size(chunk)
        if self._decryption is not None:
            packed = self._decrypted(packed, None if self._manifest.is_compressed else size)
        if not self._manifest.is_compressed:
            return _OpenChunk(chunk, pa.BufferReader(packed))
        _check_size(packed, size)
        return _OpenChunk(chunk, _Frame(packed))

    def _size(self, chunk: int) -> int:
        return min(self._map.chunk_size, self._map.size - chunk * self._map.chunk_size)

    def _packed(self, first: int, behind: int) -> memoryview:
        """The bytes of chunks in the object."""
        start, end = self._places.start(first), self._places.start(behind)
        at, packed = self._again
        if at <= start and end <= at + len(packed):
            return packed[start - at : end - at]
        self._again = (0, memoryview(b""))
        packed = memoryview(self._read_object(end - start, start))
        if len(packed) != end - start:
            raise RemoteStorageError(
                f"the object ends at {start + len(packed)}, but its manifest continues to {end}",
                path=self._path,
            )
        return packed

    def _read(self, packed: memoryview, memory: memoryview) -> None:
        """Decrypt and decompress a chunk into memory of its size, which it must fill."""
        if self._decryption is not None and not self._manifest.is_compressed:
            self._decryption.decrypt_into(packed, memory)
            return
        frame = packed if self._decryption is None else self._decrypted(packed)
        _check_size(frame, len(memory))
        _decompress(frame, memory)

    def _decrypted(self, packed: memoryview, size: int | None = None) -> memoryview:
        """The content of an encrypted chunk, of a size if that is known."""
        assert self._decryption is not None
        size = max(0, len(packed) - ENCRYPTION_BYTES) if size is None else size
        content = memoryview(bytearray(size))
        self._decryption.decrypt_into(packed, content)
        return content

    def _failure(self, first: int, last: int, reason: Exception) -> RemoteStorageError:
        """The error of chunks that cannot be read; the reason is the first one's."""
        name = f"chunk {first}" if first == last else f"chunks {first} to {last}"
        failure = RemoteStorageError(
            f"{name} of {self._map.chunks} cannot be read: {reason}", path=self._path
        )
        size = self._map.chunk_size
        failure.lost = first * size, min((last + 1) * size, self._map.size)
        return failure


def _check_size(frame: memoryview, expected: int) -> None:
    size = get_frame_info(frame).decompressed_size
    if size != expected:
        declared = "an unknown number of" if size is None else size
        raise ValueError(f"it has {declared} bytes instead of {expected}")


def _decompress(frame: memoryview, memory: memoryview) -> None:
    """Decompress a frame into memory of its size."""
    # These load numba, which a look at a folder does without.
    from kafkajit.format.compression import DecodeError, OutputFull, decompress_into
    from kafkajit.format.decompressors import decompress_frame

    if decompress_frame(frame, memory):
        return
    try:
        written = decompress_into(ZSTD, frame, np.frombuffer(memory, dtype=np.uint8))
    except OutputFull:
        raise ValueError(f"it has more than {len(memory)} bytes") from None
    except DecodeError as error:
        raise ValueError(str(error)) from None
    if written != len(memory):
        raise ValueError(_EARLY_END)


class _Frame:
    """A zstd frame as a stream, in memory of a piece."""

    def __init__(self, frame: memoryview) -> None:
        self._decompressor = ZstdDecompressor()
        self._rest = frame

    def readinto(self, memory: memoryview) -> int:
        written = 0
        while written < len(memory) and not self._decompressor.eof:
            most = min(_ZSTD_PIECE, len(memory) - written)
            piece = self._decompressor.decompress(self._rest, most)
            self._rest = memoryview(b"")  # the decompressor keeps what it has not read
            if not piece and self._decompressor.needs_input:
                break
            memory[written : written + len(piece)] = piece
            written += len(piece)
        return written


class _OpenChunk:
    """A chunk that is read from its beginning on, piece by piece."""

    def __init__(self, chunk: int, stream: Any) -> None:
        self.chunk = chunk
        self.position = 0
        self._stream = stream

    def skip(self, count: int) -> None:
        unused = memoryview(bytearray(min(count, _PIECE)))
        while count > 0:
            piece = unused[:count]
            self.read_into(piece)
            count -= len(piece)

    def read_into(self, memory: memoryview) -> None:
        if self._stream.readinto(memory) != len(memory):
            raise ValueError(_EARLY_END)
        self.position += len(memory)


def decrypted_index(manifest: Manifest, keys: PrivateKeys, part: memoryview, path: str) -> bytes:
    """An index out of the .indexes object, which is encrypted as a chunk and never compressed."""
    key = manifest.data_key
    if key is None or not part:
        return bytes(part)
    content = bytearray(manifest.index_size(len(part)))
    decryption = Decryption(keys.unwrap(key, path), key.aad)
    try:
        decryption.decrypt_into(part, memoryview(content))
    except ValueError as error:
        raise RemoteStorageError(f"an index cannot be read: {error}", path=path) from None
    return bytes(content)
