"""Ranges of a segment out of the transformed chunks of an object."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import zstandard

from kafkajit.errors import RemoteStorageError
from kafkajit.places.manifest import Manifest
from kafkajit.places.private_keys import Decryption, PrivateKeys

ReadObject = Callable[[int, int], bytes]  # a count of bytes, from a position on


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
        self._last: tuple[int, bytes] = (-1, b"")
        self._unpacker = zstandard.ZstdDecompressor()

    @cached_property
    def _decryption(self) -> Decryption | None:
        key = self._manifest.data_key
        return None if key is None else Decryption(self._keys.unwrap(key, self._path), key.aad)

    def read_at(self, count: int, position: int) -> bytes:
        """A count of bytes of the segment from a position on, or fewer at its end."""
        size = self._map.chunk_size
        end = min(position + count, self._map.size)
        if end <= position:
            return b""
        first, behind = position // size, (end - 1) // size + 1
        parts = []
        if self._last[0] == first:
            parts.append(self._last[1])
            first += 1
        if first < behind:
            parts += self._chunks(first, behind)
        start = position - position // size * size
        if len(parts) == 1:
            return parts[0][start : start + end - position]
        parts[-1] = parts[-1][: end - (behind - 1) * size]
        parts[0] = parts[0][start:]
        return b"".join(parts)

    def _chunks(self, first: int, behind: int) -> list[bytes]:
        start = self._places.start(first, self._map.chunks)
        end = self._places.start(behind, self._map.chunks)
        packed = memoryview(self._read_object(end - start, start))
        if len(packed) != end - start:
            raise RemoteStorageError(
                f"the object ends at {start + len(packed)}, and its manifest goes on to {end}",
                path=self._path,
            )
        found = []
        for chunk in range(first, behind):
            begin = self._places.start(chunk, self._map.chunks) - start
            stop = self._places.start(chunk + 1, self._map.chunks) - start
            found.append(self._chunk(packed[begin:stop], chunk))
        self._last = (behind - 1, found[-1])
        return found

    def _chunk(self, packed: memoryview, number: int) -> bytes:
        expected = min(self._map.chunk_size, self._map.size - number * self._map.chunk_size)
        try:
            content: bytes | memoryview = packed
            if self._decryption is not None:
                content = self._decryption.decrypt(packed)
            if self._manifest.is_compressed:
                content = self._decompressed(content, expected)
        except (ValueError, zstandard.ZstdError) as error:
            if isinstance(error, RemoteStorageError):
                raise
            raise RemoteStorageError(
                f"chunk {number} of {self._map.chunks} cannot be read: {error}", path=self._path
            ) from None
        if len(content) != expected:
            raise RemoteStorageError(
                f"chunk {number} of {self._map.chunks} has {len(content)} bytes, and its manifest "
                f"has {expected}",
                path=self._path,
            )
        return bytes(content)

    def _decompressed(self, packed: bytes | memoryview, expected: int) -> bytes:
        size = zstandard.frame_content_size(packed)
        if size != expected:  # before memory is taken for it
            raise ValueError(f"it has {size} bytes instead of {expected}")
        content: bytes = self._unpacker.decompress(packed, max_output_size=expected)
        return content


def decrypted_index(manifest: Manifest, keys: PrivateKeys, part: memoryview, path: str) -> bytes:
    """An index out of the .indexes object, which is encrypted as a chunk and never compressed."""
    if manifest.data_key is None or not part:
        return bytes(part)
    try:
        return Decryption(keys.unwrap(manifest.data_key, path), manifest.data_key.aad).decrypt(part)
    except RemoteStorageError:
        raise
    except ValueError as error:
        raise RemoteStorageError(f"an index cannot be read: {error}", path=path) from None
