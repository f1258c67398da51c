"""Avro's object container files → rows.

A block is decoded as one value, an array of its records. Counts and sizes are checked against the
bytes that are left, and a block that is decompressed has a limit.
"""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from kafkajit.errors import InvalidSchemaError
from kafkajit.format.compression import DecodeError, OutputFull, unsnappied_size, unsnappy
from kafkajit.format.zstd import ZstdDecompressor, ZstdError
from kafkajit.produce.inputs.opened import opened_stream
from kafkajit.produce.inputs.row_sizes import pieces
from kafkajit.produce.inputs.rows import MOST_ROWS, BadInputError, Rows, check_names, row_from
from kafkajit.storage.remote_store import Storage
from kafkajit.values.decoder import ValueDecoder
from kafkajit.values.framing import BARE
from kafkajit.values.schema import AVRO

MOST_DECOMPRESSED = 256 << 20  # bytes of a block
_MOST_HEADER = 16 << 20  # bytes of the schema and other metadata
_MAGIC = b"Obj\x01"
_SYNC = 16
_MOST_VARINT = 10  # bytes
_PIECE = 1 << 20
_UUID = ("fixed", "uuid")  # type and logical type
_MOST_DIGITS = 76  # of a decimal, as Arrow has it
_MOST_CELLS = 1 << 25  # of a block, each of which may take 16 bytes


def avro_rows(filesystem: Storage, path: str, wanted: Collection[str]) -> Iterator[Rows]:
    """The rows of a file; `wanted` are the names of the fields that are read."""
    (info,) = filesystem.get_file_info([path])
    with opened_stream(filesystem, path) as opened:
        # A file that is compressed as a whole has more bytes than its size.
        is_plain = not path.endswith((".gz", ".zst"))
        file = _File(opened, info.size if is_plain else None)
        if file.read(len(_MAGIC), "the header") != _MAGIC:
            raise BadInputError("this is not an Avro container file")
        metadata = _metadata(file)
        sync = file.read(_SYNC, "the header")
        record = _record(metadata)
        codec = metadata.get("avro.codec", b"null").decode(errors="replace")
        if codec not in _CODECS:
            raise BadInputError(f"the codec {codec!r:.40} is not one of {', '.join(_CODECS)}")
        names = [str(field["name"]) for field in record["fields"]]
        check_names(names)
        used = [name for name in names if name in wanted]
        _check_types(record, used)
        try:
            decoder = ValueDecoder(
                {"type": "array", "items": record}, None, BARE, None, stops=True, type_=AVRO
            )
        except InvalidSchemaError as error:
            raise BadInputError(f"the schema is malformed: {error}") from None
        leaves = _leaves(decoder.type)
        block, first = 0, 0
        while not file.is_at_end():
            block += 1
            place = f"block {block}"
            count, size = file.long(place), file.long(place)
            content = file.read(size, place) if count >= 0 else b""
            if count < 0 or file.read(_SYNC, place) != sync:
                raise BadInputError("the block does not end with the file's marker", place=place)
            if count or content:
                batch = _decoded(content, count, codec, decoder, leaves, place)
                yield from _rows(batch.select(used), names, first, place)
            first += count


def _rows(batch: pa.RecordBatch, names: list[str], first: int, place: str) -> Iterator[Rows]:
    for start in range(0, batch.num_rows, MOST_ROWS):
        for offset, piece in pieces(batch.slice(start, MOST_ROWS), first + start):
            columns = dict(zip(piece.schema.names, piece.columns, strict=True))
            row = partial(row_from, first + start + offset + 1, f" in {place}")
            yield Rows(columns, piece.num_rows, names, row)


def _decoded(
    content: bytes, count: int, codec: str, decoder: ValueDecoder, leaves: int, place: str
) -> pa.RecordBatch:
    """The records of a block."""
    try:
        plain = _CODECS[codec](content)
    except OutputFull:
        raise BadInputError(
            f"the block has more than {MOST_DECOMPRESSED >> 20} MiB", place=place
        ) from None
    except (DecodeError, ZstdError, zlib.error, lzma.LZMAError, OSError, EOFError) as error:
        raise BadInputError(f"the block cannot be decompressed: {error}", place=place) from None
    # A record of no bytes has nothing to import, and there could be any number of them.
    if count > len(plain):
        raise BadInputError(f"{count:,} records have {len(plain):,} bytes", place=place)
    if count * leaves > _MOST_CELLS:
        raise BadInputError(f"{count:,} records are too many for one block", place=place)
    value = _varint(count) + plain + b"\0" if count else plain + b"\0"  # as one array
    decoded = decoder.decode(pa.array([value], pa.binary()))
    if decoded.bad.size:
        raise BadInputError(f"the block is malformed: {decoded.words(0)}", place=place)
    return pa.RecordBatch.from_struct_array(decoded.values.flatten())


def _record(metadata: dict[str, bytes]) -> dict[str, Any]:
    """The schema of the records."""
    try:
        record = json.loads(metadata["avro.schema"])
    except (KeyError, ValueError, RecursionError):
        raise BadInputError("the header has no schema in JSON") from None
    if not (isinstance(record, dict) and record.get("type") == "record"):
        raise BadInputError("the file does not have records")
    fields = record.get("fields")
    if not isinstance(fields, list) or not all(
        isinstance(field, dict) and "name" in field for field in fields
    ):
        raise BadInputError("the schema's record has no list of fields")
    if not record.get("name"):  # Polars writes no name
        record["name"] = "Record"
    return record


def _check_types(record: dict[str, Any], used: list[str]) -> None:
    """Refuse columns with values that have no form in a record, at any depth.

    A value of several types is decoded as a struct of all of these, and a duration as one of
    numbers. A UUID of 16 bytes is decoded as text, so its type becomes one of bytes.
    """
    named: dict[str, list[Any]] = {}
    for field in record["fields"]:
        top, is_used = field.get("type"), field["name"] in used
        for kind in _types_in(top, named, is_used):
            reason = _why_refused(kind)
            if reason is not None and is_used:
                verb = "is" if kind is top else "has"
                raise BadInputError(f"column {field['name']!r} {verb} {reason}")
            if isinstance(kind, dict) and (kind.get("type"), kind.get("logicalType")) == _UUID:
                del kind["logicalType"]


def _types_in(top: Any, named: dict[str, list[Any]], follow: bool) -> Iterator[Any]:
    """A type and all types in it, those that it names too if they are followed.

    `named` has the types that have been defined before, by the last parts of their names.
    """
    left, seen = [top], set()
    while left:
        kind = left.pop()
        key = kind if isinstance(kind, str) else id(kind)
        if key in seen:  # a record may have itself inside
            continue
        seen.add(key)
        if isinstance(kind, str):
            left += named.get(kind.rpartition(".")[2], []) if follow else []
            continue
        yield kind
        if isinstance(kind, list):
            left += kind
        elif isinstance(kind, dict):
            if "name" in kind:
                named.setdefault(str(kind["name"]).rpartition(".")[2], []).append(kind)
            fields = kind.get("fields")
            left += [kind.get("values"), kind.get("items"), kind.get("type")]
            left += [one.get("type") for one in fields or () if isinstance(one, dict)]


def _why_refused(kind: Any) -> str | None:
    if isinstance(kind, list):
        several = [one for one in kind if one != "null"]
        words = f"a union of {len(several)} types: import it as one"
        return words if len(several) > 1 else None
    if not isinstance(kind, dict):
        return None
    logical, type_, digits = (kind.get(name) for name in ("logicalType", "type", "precision"))
    if (logical, type_) == ("duration", "fixed"):
        return "a duration: import it as text or numbers"
    if (logical, type_) == ("big-decimal", "bytes"):
        return "a big-decimal: import it as text"
    if logical == "decimal" and type(digits) is int and digits > _MOST_DIGITS:
        return f"a decimal of more than {_MOST_DIGITS} digits: import it as text"
    return None


def _leaves(kind: pa.DataType) -> int:
    """The columns of a type that have memory of their own."""
    if pt.is_nested(kind):
        return 1 + sum(_leaves(kind.field(number).type) for number in range(kind.num_fields))
    return 1


class _File:
    """Reads a file's bytes, never more than it has."""

    def __init__(self, opened: pa.NativeFile, size: int | None) -> None:
        self._opened = opened
        self._left = size
        self._ahead = b""

    def is_at_end(self) -> bool:
        self._ahead = self._ahead or self._opened.read(1)
        return not self._ahead

    def read(self, size: int, place: str) -> bytes:
        """Exactly this number of bytes."""
        if size < 0 or size > MOST_DECOMPRESSED or (self._left is not None and size > self._left):
            raise BadInputError(
                f"a size of {size:,} bytes cannot be right: the file is cut off or damaged",
                place=place,
            )
        parts = [self._ahead[:size]]
        self._ahead = self._ahead[size:]
        left = size - len(parts[0])
        while left:
            piece = self._opened.read(min(left, _PIECE))
            if not piece:
                raise BadInputError(f"{left:,} bytes are missing: the file is cut off", place=place)
            parts.append(piece)
            left -= len(piece)
        if self._left is not None:
            self._left -= size
        return b"".join(parts)

    def long(self, place: str) -> int:
        """Avro's long."""
        number = 0
        for at in range(_MOST_VARINT):
            (byte,) = self.read(1, place)
            number |= (byte & 0x7F) << 7 * at
            if byte < 0x80:
                return number >> 1 ^ -(number & 1)
        raise BadInputError("a number has more than 10 bytes", place=place)


def _metadata(file: _File) -> dict[str, bytes]:
    """The map in the header."""
    place = "the header"
    found: dict[str, bytes] = {}
    size = 0
    while count := file.long(place):
        if count < 0:
            file.long(place)  # the bytes of the entries
        for _ in range(abs(count)):
            key, value = (_text(file, place, size) for _ in range(2))
            size += len(key) + len(value) + 2
            found[key.decode(errors="replace")] = value
    return found


def _text(file: _File, place: str, before: int) -> bytes:
    size = file.long(place)
    if before + size > _MOST_HEADER:
        raise BadInputError(f"it has more than {_MOST_HEADER >> 20} MiB", place=place)
    return file.read(size, place)


def _varint(number: int) -> bytes:
    rest = number << 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def _limited(decompressor: Any, content: bytes, most_behind: int = 0) -> bytes:
    """Decompress all of the input, up to the limit."""
    plain: bytes = decompressor.decompress(content, MOST_DECOMPRESSED + 1)
    if len(plain) > MOST_DECOMPRESSED:
        raise OutputFull
    if not decompressor.eof:
        raise DecodeError("the stream ends early")
    if len(decompressor.unused_data) > most_behind:
        raise DecodeError("bytes follow the end of the stream")
    return plain


def _unsnappy(content: bytes) -> bytes:
    block, stored = content[:-4], content[-4:]
    if unsnappied_size(block) > MOST_DECOMPRESSED:
        raise OutputFull
    plain = unsnappy(block)
    if zlib.crc32(plain) != int.from_bytes(stored, "big"):
        raise DecodeError("its checksum is wrong")
    return plain


_CODECS: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda content: content,
    # fastavro leaves most of zlib's checksum behind the stream.
    "deflate": lambda content: _limited(zlib.decompressobj(-15), content, 4),
    "snappy": _unsnappy,
    "zstandard": lambda content: _limited(ZstdDecompressor(), content),
    "bzip2": lambda content: _limited(bz2.BZ2Decompressor(), content),
    "xz": lambda content: _limited(lzma.LZMADecompressor(), content),
}
