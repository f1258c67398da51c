"""The bytes in front of a value: a magic byte and the name of its schema.

| framing | bytes |
|---|---|
| confluent | 00, id as int32: Confluent's registry, Apicurio's from version 3, Karapace, Redpanda |
| apicurio8 | 00, id as int64: Apicurio's registry up to version 2 |
| glue | 03, compression (00 none, 05 zlib), UUID of the schema's version: AWS Glue |
| single-object | C3 01, fingerprint of the schema as uint64, the lowest byte first: Avro's own |
| bare | nothing |
| headers | what `header_framing` puts there, or one of the others |

AUTO tells them apart value by value, except bare ones: no registry has given the id 0, so an id
whose first four bytes are zeros is one of eight bytes.
"""

from __future__ import annotations

import secrets
import uuid
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import RecordDeserializationError
from kafkajit.format.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import read_int32, read_int64, read_word
from kafkajit.storage.source import Bytes, Int64s

BARE, CONFLUENT, APICURIO8, GLUE, SINGLE_OBJECT, UNFRAMED, AUTO, GUID, HEADERS = range(9)
FRAMINGS = {
    "bare": BARE,
    "confluent": CONFLUENT,
    "apicurio8": APICURIO8,
    "glue": GLUE,
    "single-object": SINGLE_OBJECT,
    "auto": AUTO,
}
# Headers of records, too: a UUID stands only there.
RECORD_FRAMINGS = {**FRAMINGS, "headers": HEADERS}
HEADER_SIZES = np.array([0, 5, 9, 18, 10, 0, 0, 17, 0], dtype=np.int64)
_ZLIB = 5
_WORD = 8
_CONFLUENT_BYTES = (1 << 40) - 1
_MIX = np.uint64(0x9E3779B97F4A7C15)


MOST_BYTES = 2**31 - 1  # of the content, among which a cell can name a place


class SchemaKey(NamedTuple):
    """The name of a schema in front of a value; `number` is an id or a fingerprint."""

    framing: int
    number: int
    high: int = 0  # of a UUID, whose lower half is the number

    @property
    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=(self.high % 2**64) << 64 | self.number % 2**64)

    def __str__(self) -> str:
        if self.framing in (GLUE, GUID):
            return f"schema {self.uuid}"
        if self.framing == SINGLE_OBJECT:
            return f"schema with the fingerprint {self.number % 2**64:016x}"
        return f"schema id {self.number}"


class Frames(NamedTuple):
    """The number of each value's key, and where its body begins and ends."""

    content: Bytes
    keys: list[SchemaKey]
    numbers: npt.NDArray[np.int32]
    starts: Int64s
    ends: Int64s

    def body(self, row: int) -> bytes:
        """The bytes of one value behind its key."""
        return self.content[int(self.starts[row]) : int(self.ends[row])].tobytes()


def places(values: pa.Array) -> tuple[Bytes, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The bytes of an array, and where each value begins and ends."""
    dtype: Any = np.int32 if values.type in (pa.binary(), pa.string()) else np.int64
    _, offsets_buffer, data = values.buffers()
    offsets = np.zeros(1, dtype=np.int64)
    if offsets_buffer is not None and len(values):
        offsets = np.frombuffer(offsets_buffer, dtype=dtype)
        offsets = offsets[values.offset : values.offset + len(values) + 1].astype(np.int64)
    content = np.zeros(0, dtype=np.uint8)
    if data is not None and data.size:
        content = np.frombuffer(data, dtype=np.uint8)
    content = content[offsets[0] : offsets[-1]]
    offsets -= offsets[0]
    content.setflags(write=False)
    return content, offsets[:-1], offsets[1:]


def first_values(arrays: Sequence[pa.Array], most: int) -> list[bytes]:
    """The first values that are not NULL."""
    found: list[bytes] = []
    for array in arrays:
        for value in array:
            if value.is_valid:
                found.append(value.as_buffer().to_pybytes())
            if len(found) == most:
                return found
    return found


def split_frames(content: Bytes, starts: Int64s, ends: Int64s, framing: int) -> Frames:
    """Find the keys in front of values. A value that is NULL has an end before its start."""
    numbers = np.empty(starts.size, dtype=np.int32)
    bodies = np.empty(starts.size, dtype=np.int64)
    found = np.zeros((64, 3), dtype=np.int64)
    row, count = 0, 0
    seed = np.uint64(secrets.randbits(64))  # nobody can choose ids that collide
    while row < starts.size:
        table = np.full(4 * len(found), -1, dtype=np.int32)
        _index_keys(found, count, table, seed)
        row, count = _number_keys(
            content, starts, ends, framing, numbers, bodies, found, table, seed, row, count
        )
        if row < starts.size:
            found = np.concatenate([found, np.zeros_like(found)])
    keys = [SchemaKey(*key) for key in found[:count].tolist()]
    frames = Frames(content, keys, numbers, bodies, ends)
    return _inflated(frames, starts) if framing in (GLUE, AUTO, HEADERS) else frames


@kernel
def _kind(content, p, size):
    """The framing that a value seems to have."""
    if size < HEADER_SIZES[CONFLUENT]:
        return np.int64(UNFRAMED)
    if content[p] == 0:
        is_zero = read_int32(content, p + 1) == 0
        return np.int64(APICURIO8 if is_zero and size >= HEADER_SIZES[APICURIO8] else CONFLUENT)
    if content[p] == 3:
        return np.int64(GLUE)
    return np.int64(SINGLE_OBJECT if content[p] == 0xC3 else UNFRAMED)


@kernel
def _number_keys(content, starts, ends, framing, numbers, bodies, found, table, seed, row, count):
    """Number the keys in the order in which they come: (the next row, how many there are).

    It returns early if `found` has no room for one more.
    """
    last = np.int64(-1)
    head = np.int64(-1)  # Confluent's bytes in front of the value before, which most others have
    for i in range(row, starts.size):
        p, size = np.int64(starts[i]), np.int64(ends[i] - starts[i])
        if size >= _WORD and read_word(content, p) & _CONFLUENT_BYTES == head:
            bodies[i] = p + HEADER_SIZES[CONFLUENT]
            numbers[i] = last
            continue
        kind, number, high = np.int64(framing), np.int64(0), np.int64(0)
        if framing == HEADERS and size >= HEADER_SIZES[GUID] and content[p] == 1:
            kind = np.int64(GUID)
        elif framing in (AUTO, HEADERS):
            kind = _kind(content, p, size)
        if size < HEADER_SIZES[kind]:
            kind = np.int64(UNFRAMED)
        elif kind in (CONFLUENT, APICURIO8):
            if content[p] != 0:
                kind = np.int64(UNFRAMED)
            elif kind == CONFLUENT:
                number = read_int32(content, p + 1)
            else:
                number = read_int64(content, p + 1)
        elif kind == GLUE:
            if content[p] != 3 or (content[p + 1] != 0 and content[p + 1] != _ZLIB):
                kind = np.int64(UNFRAMED)
            else:
                high, number = read_int64(content, p + 2), read_int64(content, p + 10)
        elif kind == GUID:
            high, number = read_int64(content, p + 1), read_int64(content, p + 9)
        elif kind == SINGLE_OBJECT:
            if content[p] != 0xC3 or content[p + 1] != 1:
                kind = np.int64(UNFRAMED)
            else:
                number = read_word(content, p + 2)
        bodies[i] = p + HEADER_SIZES[kind]
        if last < 0 or found[last, 0] != kind or found[last, 1] != number or found[last, 2] != high:
            place = _place(found, table, seed, kind, number, high)
            last = np.int64(table[place])
            if last < 0:
                if count == found.shape[0]:
                    return i, count
                found[count, 0], found[count, 1], found[count, 2] = kind, number, high
                table[place] = last = np.int64(count)
                count += 1
        numbers[i] = last
        head = np.int64(-1)
        if kind == CONFLUENT and number != 0 and size >= _WORD:  # 0: by its size, it is not
            head = read_word(content, p) & _CONFLUENT_BYTES
    return starts.size, count


@kernel
def _place(found, table, seed, kind, number, high):
    """The place of a key in a hash table with room; it is empty if the key is new."""
    hash_ = seed ^ np.uint64(kind)
    for part in (number, high):
        hash_ = (hash_ ^ np.uint64(part)) * _MIX
        hash_ ^= hash_ >> np.uint64(29)
    place = np.int64((hash_ * _MIX) >> np.uint64(33)) & (table.size - 1)
    while True:
        key = np.int64(table[place])
        if key < 0 or (found[key, 0] == kind and found[key, 1] == number and found[key, 2] == high):
            return place
        place = (place + 1) & (table.size - 1)


@kernel
def _index_keys(found, count, table, seed):
    """Put the keys that there are into an empty table."""
    for key in range(count):
        table[_place(found, table, seed, found[key, 0], found[key, 1], found[key, 2])] = key


def _inflated(frames: Frames, starts: Int64s) -> Frames:
    """Decompress the bodies that Glue's serializer has compressed."""
    content, keys, numbers, bodies, ends = frames
    if GLUE not in {key.framing for key in keys}:
        return frames
    is_glue = np.array([key.framing == GLUE for key in keys])[numbers]
    rows = np.flatnonzero(is_glue)
    rows = rows[content[starts[rows] + 1] == _ZLIB]
    if not rows.size:
        return frames
    pieces = [content]
    size = content.size
    bodies, ends, numbers = bodies.copy(), ends.copy(), numbers.copy()
    for row in rows.tolist():
        try:
            body = _inflate(content[bodies[row] : ends[row]].tobytes())
        except zlib.error:
            keys = keys if UNINFLATED in keys else [*keys, UNINFLATED]
            numbers[row] = keys.index(UNINFLATED)
            continue
        if size + len(body) > MOST_BYTES:
            raise RecordDeserializationError(
                "the values have more than 2 GiB", advice="decode fewer values at once"
            )
        pieces.append(np.frombuffer(body, dtype=np.uint8))
        bodies[row], ends[row] = size, size + len(body)
        size += len(body)
    return Frames(np.concatenate(pieces), keys, numbers, bodies, ends)


def _inflate(packed: bytes) -> bytes:
    inflater = zlib.decompressobj()
    body = inflater.decompress(packed, DEFAULT_MAX_DECOMPRESSED_BYTES)
    if not inflater.eof or inflater.unused_data:
        raise zlib.error("the data is truncated, too long, or above the limit")
    return body


UNINFLATED = SchemaKey(UNFRAMED, _ZLIB)
