"""The manifest of a segment that Aiven's plugin has tiered, a JSON object beside it.

Answers to SegmentManifestV1. The plugin cuts a segment into chunks and transforms each on its own,
so that any range can be read: `ChunkMap` has the place of each chunk in the object.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.errors import RemoteStorageError
from kafkajit.format.limits import MAX_INT32, MAX_INT64, MIN_INT64
from kafkajit.format.zstd import ZstdDecompressor, ZstdError, get_frame_info

_VERSION = "1"
_FOREIGN = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
_MOST_CHUNKS = 10 << 20  # bytes of an unpacked chunk index, as the plugin allows
_MOST_BYTES = 16 << 20  # of a manifest: that index, if it cannot be compressed, in base64
# Lists, objects and members of a manifest: each may take 30 times its bytes in memory.
_MOST_MEMBERS = 100_000
_FRAME_BYTES = 9  # of the smallest zstd frame
ENCRYPTION_BYTES = 28  # in front of an encrypted chunk and behind it
_INDEXES = ("offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction")


class ChunkMap(NamedTuple):
    """The sizes of chunks: in a segment all but the last have one, in its object each its own."""

    chunk_size: int
    size: int  # of the segment
    # In the object, int32 each. If there are two, all chunks but the last have the first.
    sizes: bytes

    @property
    def chunks(self) -> int:
        return max(1, -(-self.size // self.chunk_size))

    def places(self) -> ChunkPlaces:
        """The places of the chunks in the object."""
        sizes = np.frombuffer(self.sizes, dtype=np.int32).astype(np.int64)
        if sizes.size < self.chunks:
            step, last = sizes.tolist()
            return ChunkPlaces(self.chunks, None, step, (self.chunks - 1) * step + last)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
        return ChunkPlaces(self.chunks, starts, 0, int(starts[-1]))


class ChunkPlaces(NamedTuple):
    """The places of chunks in an object: by their size, or one by one."""

    chunks: int
    starts: npt.NDArray[np.int64] | None
    step: int
    end: int  # of the object

    def start(self, chunk: int) -> int:
        """The place of a chunk; behind the last it is the object's end."""
        if chunk >= self.chunks:
            return self.end
        return chunk * self.step if self.starts is None else int(self.starts[chunk])


class DataKey(NamedTuple):
    """The key of a segment's chunks, encrypted with a private key's public half."""

    key_id: str
    wrapped: bytes
    aad: bytes


class Manifest(NamedTuple):
    """The contents of a manifest."""

    topic: str | None
    topic_id: str | None
    partition: int | None
    start_offset: int | None
    end_offset: int | None
    max_timestamp: int | None
    epochs: tuple[tuple[int, int], ...]  # leader epochs, each with its first offset here
    chunks: ChunkMap
    is_compressed: bool
    data_key: DataKey | None
    indexes: tuple[tuple[str, int, int], ...]  # (name, position, size) in the .indexes object

    @property
    def is_plain(self) -> bool:
        """Whether the object is the segment itself."""
        return not self.is_compressed and self.data_key is None

    def index_size(self, size: int) -> int:
        """The size of an index, from the bytes that it takes in its object."""
        return max(0, size - ENCRYPTION_BYTES) if self.data_key is not None else size


def check_manifest_size(size: int, path: str) -> None:
    """Raise an error for a manifest that is too large to be read."""
    if size > _MOST_BYTES:
        raise RemoteStorageError(
            f"the manifest has {size:,} bytes, and only {_MOST_BYTES:,} are allowed", path=path
        )


def parse_manifest(content: bytes, path: str) -> Manifest:
    """Parse a manifest. Anything else raises a RemoteStorageError."""
    check_manifest_size(len(content), path)
    if sum(map(content.count, (b"[", b"{", b","))) > _MOST_MEMBERS:
        raise RemoteStorageError(f"the manifest has more than {_MOST_MEMBERS:,} members", path=path)
    try:
        return _manifest(json.loads(content))
    except RemoteStorageError as error:
        raise RemoteStorageError(str(error), path=path) from None
    except _FOREIGN as error:
        raise RemoteStorageError(f"the manifest is malformed: {error!r}", path=path) from None


def _manifest(given: Any) -> Manifest:
    if given["version"] != _VERSION:
        version = f"{given['version']!r:.20}"
        raise RemoteStorageError(f"the manifest has the unknown version {version}")
    is_compressed = given["compression"]
    if not isinstance(is_compressed, bool):
        raise TypeError("compression is not a boolean")
    encryption = given.get("encryption")
    least = is_compressed * _FRAME_BYTES + (encryption is not None) * ENCRYPTION_BYTES
    metadata = given.get("remoteLogSegmentMetadata") or {}
    id_ = (metadata.get("remoteLogSegmentId") or {}).get("topicIdPartition") or {}
    place = id_.get("topicPartition") or {}
    epochs = metadata.get("segmentLeaderEpochs") or {}
    return Manifest(
        _text(place.get("topic")),
        _text(id_.get("topicId")),
        _number(place.get("partition")),
        _number(metadata.get("startOffset")),
        _number(metadata.get("endOffset")),
        _number(metadata.get("maxTimestampMs")),
        tuple(
            sorted((_epoch(epoch), _size(first, 0, MAX_INT64)) for epoch, first in epochs.items())
        ),
        _chunk_map(given["chunkIndex"], least),
        is_compressed,
        None if encryption is None else _data_key(encryption),
        tuple(_index_places(given.get("segmentIndexes") or {})),
    )


def _text(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not text")
    return value


def _number(value: Any) -> int | None:
    if value is None:
        return None
    if type(value) is not int:
        raise TypeError(f"{value!r:.40} is not an integer")
    if not MIN_INT64 <= value <= MAX_INT64:
        raise ValueError(f"{value!r:.40} does not fit 64 bits")
    return value


def _epoch(text: str) -> int:
    epoch = int(text)
    if not -MAX_INT32 <= epoch <= MAX_INT32:
        raise ValueError(f"the leader epoch {text:.40} does not fit 32 bits")
    return epoch


def _size(value: Any, least: int = 0, most: int = MAX_INT32) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"a size must be from {least} to {most}, not {value!r:.40}")
    return value


def _chunk_map(given: Any, least: int) -> ChunkMap:
    """The map of chunks, each of which has at least `least` bytes in the object."""
    chunk_size = _size(given["originalChunkSize"], 1)
    size = _size(given["originalFileSize"])
    empty = ChunkMap(chunk_size, size, b"")
    if given["type"] == "fixed":
        last = _size(given["finalTransformedChunkSize"])
        first = _size(given["transformedChunkSize"])
        sizes = np.array([first, last] if empty.chunks > 1 else [last], dtype=np.int32)
    elif given["type"] == "variable":
        sizes = chunk_sizes(_unpacked(given["transformedChunks"]))
        if sizes.size != empty.chunks:
            raise ValueError(f"{sizes.size} chunks instead of {empty.chunks}")
    else:
        raise ValueError(f"the chunk index has the unknown type {given['type']!r:.20}")
    if sizes.min(initial=MAX_INT32) < least:
        raise ValueError(f"a chunk has {sizes.min()} bytes")
    return empty._replace(sizes=sizes.tobytes())


def _unpacked(text: str) -> bytes:
    packed = base64.b64decode(text, validate=True)
    try:
        size = get_frame_info(packed).decompressed_size
        if size is None or size > _MOST_CHUNKS:
            declared = "an unknown number of" if size is None else size
            raise ValueError(
                f"the chunk index has {declared} bytes, and only {_MOST_CHUNKS:,} are allowed"
            )
        frame = ZstdDecompressor()
        unpacked = frame.decompress(packed, _MOST_CHUNKS)
        if not frame.eof:
            raise ValueError("the chunk index ends early")
    except ZstdError as error:
        raise ValueError(f"the chunk index is not zstd: {error}") from None
    return unpacked


def chunk_sizes(packed: bytes) -> npt.NDArray[np.int32]:
    """The sizes of chunks: a base and differences of one to four bytes, and the last as it is.

    >>> chunk_sizes(bytes.fromhex("00000003 00000064 01 00 05 0000000a".replace(" ", "")))
    array([100, 105,  10], dtype=int32)
    """
    count = int.from_bytes(packed[:4], "big", signed=True)
    if count <= 1:
        if count < 0 or len(packed) != 4 + 4 * count:
            raise ValueError("the chunk index has the wrong size")
        return np.frombuffer(packed, dtype=">i4", offset=4).astype(np.int32)
    base = int.from_bytes(packed[4:8], "big", signed=True)
    width = packed[8] if len(packed) > 8 else 0
    if not 1 <= width <= 4 or len(packed) != 9 + width * (count - 1) + 4:
        raise ValueError("the chunk index has the wrong size")
    raw = np.frombuffer(packed, dtype=np.uint8, count=width * (count - 1), offset=9)
    wide = np.zeros((count - 1, 8), dtype=np.uint8)
    wide[:, 8 - width :] = raw.reshape(-1, width)
    sizes = base + wide.view(">i8").reshape(-1).astype(np.int64)
    last = int.from_bytes(packed[-4:], "big", signed=True)
    sizes = np.append(sizes, last)
    if sizes.max() > MAX_INT32:
        raise ValueError("a chunk's size does not fit 32 bits")
    return sizes.astype(np.int32)


def _data_key(given: Any) -> DataKey:
    key_id, colon, text = given["dataKey"].partition(":")
    if not colon:
        raise ValueError("the data key does not name its private key")
    try:
        wrapped, aad = (base64.b64decode(part, validate=True) for part in (text, given["aad"]))
    except binascii.Error as error:
        raise ValueError(f"the data key is not base64: {error}") from None
    return DataKey(key_id, wrapped, aad)


def _index_places(given: Any) -> list[tuple[str, int, int]]:
    return [
        (name, _size(place["position"]), _size(place["size"]))
        for name, place in given.items()
        if place is not None and name in _INDEXES
    ]
