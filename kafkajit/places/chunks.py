"""Ranges of a segment out of the transformed chunks of an object."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import zstandard

from kafkajit.errors import RemoteStorageError
from kafkajit.places.manifest import ENCRYPTION_BYTES, Manifest
from kafkajit.places.private_keys import Decryption, PrivateKeys

ReadObject = Callable[[int, int], bytes | memoryview]  # a count of bytes, from a position on


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
        self._last: tuple[int, memoryview] = (-1, memoryview(b""))  # a chunk that was read in part
        self._unpacker = zstandard.ZstdDecompressor()

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
            part = self._whole(first)[position - first * size : end - first * size]
            memory[: len(part)] = part
            return len(part)
        behind = self._map.chunks if end == self._map.size else end // size
        start = self._places.start(first)
        packed = self._packed(first, behind)
        for chunk in range(first, behind):
            begin, stop = self._places.start(chunk), self._places.start(chunk + 1)
            at = (chunk - first) * size
            self._read(chunk, packed[begin - start : stop - start], memory[at : at + size])
        return min(behind * size, self._map.size) - position

    def _whole(self, chunk: int) -> memoryview:
        """A chunk of which only a part is asked for: most often, the rest is asked for next."""
        if self._last[0] != chunk:
            content = memoryview(bytearray(self._size(chunk)))
            self._read(chunk, self._packed(chunk, chunk + 1), content)
            self._last = chunk, content
        return self._last[1]

    def _size(self, chunk: int) -> int:
        return min(self._map.chunk_size, self._map.size - chunk * self._map.chunk_size)

    def _packed(self, first: int, behind: int) -> memoryview:
        """The bytes of chunks in the object."""
        start, end = self._places.start(first), self._places.start(behind)
        packed = memoryview(self._read_object(end - start, start))
        if len(packed) != end - start:
            raise RemoteStorageError(
                f"the object ends at {start + len(packed)}, and its manifest goes on to {end}",
                path=self._path,
            )
        return packed

    def _read(self, chunk: int, packed: memoryview, memory: memoryview) -> None:
        """Decrypt and decompress a chunk into memory, of which it must fill its size."""
        memory = memory[: self._size(chunk)]
        decryption = self._decryption
        try:
            if decryption is not None and self._manifest.is_compressed:
                frame = memoryview(bytearray(max(0, len(packed) - ENCRYPTION_BYTES)))
                decryption.decrypt_into(packed, frame)
                self._decompress(frame, memory)
            elif decryption is not None:
                decryption.decrypt_into(packed, memory)
            else:
                self._decompress(packed, memory)
        except (ValueError, zstandard.ZstdError) as error:
            failure = RemoteStorageError(
                f"chunk {chunk} of {self._map.chunks} cannot be read: {error}", path=self._path
            )
            start = chunk * self._map.chunk_size
            failure.lost = start, start + len(memory)
            raise failure from None

    def _decompress(self, frame: memoryview, memory: memoryview) -> None:
        size = zstandard.frame_content_size(frame)
        if size != len(memory):
            raise ValueError(f"it has {size} bytes instead of {len(memory)}")
        if self._unpacker.stream_reader(frame).readinto(memory) != size:
            raise ValueError("it ends early")


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
