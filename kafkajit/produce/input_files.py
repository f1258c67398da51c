"""Parquet, Arrow, CSV, JSON lines and Avro files → Arrow record batches, in bounded memory."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector, FileSystem, FileType

from kafkajit.format.compression import unsnappy
from kafkajit.format.zstd import ZstdDecompressor
from kafkajit.places.location import GLOB, Location, filesystem_at, shown
from kafkajit.values.decode import decode_values

FORMATS = ("parquet", "arrow", "csv", "jsonl", "avro")
_ROWS = 1 << 16
_BLOCK = 8 << 20  # of text
_SUFFIX = re.compile(
    r".+\.(?P<format>parquet|arrow|feather|ipc|csv|jsonl|ndjson|json|avro)(?P<packed>\.gz|\.zst)?"
)
_ALIASES = {"feather": "arrow", "ipc": "arrow", "ndjson": "jsonl", "json": "jsonl"}
_CODECS = {".gz": "gzip", ".zst": "zstd"}
_FOLDER = re.compile(r"(topic|partition|date)=(.*)")
# What export adds to the name of a partition.
_FIRST_OFFSET = re.compile(r"(?P<partition>.+)-(?P<first>\d{20})(?:-damage)?\.[a-z.]+")
_NULL = "__HIVE_DEFAULT_PARTITION__"


class InputFile(NamedTuple):
    """A file, its format, and the columns that its path has."""

    filesystem: FileSystem
    path: str
    format: str
    codec: str | None
    folders: dict[str, str]

    @property
    def series(self) -> tuple[str, int] | None:
        """The partition and the first offset in the name of an exported file."""
        match = _FIRST_OFFSET.fullmatch(self.path.rpartition("/")[2])
        return (match["partition"], int(match["first"])) if match else None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of the file."""
        try:
            yield from _READERS[self.format](self)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            reason = str(error).partition("\n")[0]
            raise ValueError(f"{self.path} cannot be read as {self.format}: {reason}") from None


def input_files(location: str, format_: str | None = None) -> list[InputFile]:
    """The files at a location: a file, a folder with everything in it, or a glob.

    Names that begin with _ or a dot are left out of folders, as Spark does.
    """
    filesystem, path = filesystem_at(location)
    (info,) = filesystem.get_file_info([path])
    if info.type == FileType.NotFound:
        if GLOB.search(path) is None:
            raise FileNotFoundError(f"there is nothing at {shown(location)}")
        infos = Location(location).matches()
    else:
        infos = [info]
    found = []
    for info in infos:
        if info.type == FileType.File:
            found.append(_input(filesystem, info.path, format_))
            continue
        inside = filesystem.get_file_info(FileSelector(info.path, recursive=True))
        for one in sorted(inside, key=lambda file: file.path):
            parts = one.path[len(info.path) :].strip("/").split("/")
            if one.type == FileType.File and not any(part[0] in "._" for part in parts):
                found.append(_input(filesystem, one.path, format_))
    if not found:
        raise FileNotFoundError(f"there are no files in {shown(location)}")
    return found


def _input(filesystem: FileSystem, path: str, format_: str | None) -> InputFile:
    match = _SUFFIX.fullmatch(path.rpartition("/")[2])
    if match is None and format_ is None:
        raise ValueError(
            f"the format of {path} is not known by its name: pass --from {'|'.join(FORMATS)}"
        )
    known = match["format"] if match else ""
    codec = _CODECS.get(match["packed"] or "") if match else None
    parts = [_FOLDER.fullmatch(part) for part in path.split("/")]
    folders = {part[1]: part[2] for part in parts if part is not None}
    folders = {name: value for name, value in folders.items() if value != _NULL}
    return InputFile(filesystem, path, format_ or _ALIASES.get(known, known), codec, folders)


def _parquet(file: InputFile) -> Iterator[pa.RecordBatch]:
    with file.filesystem.open_input_file(file.path) as opened:
        yield from pq.ParquetFile(opened, pre_buffer=False).iter_batches(_ROWS)


def _arrow(file: InputFile) -> Iterator[pa.RecordBatch]:
    with file.filesystem.open_input_file(file.path) as opened:
        is_file = opened.read(6) == b"ARROW1"
        opened.seek(0)
        if is_file:
            reader = pa.ipc.open_file(opened)
            yield from map(reader.get_batch, range(reader.num_record_batches))
        else:
            yield from pa.ipc.open_stream(opened)


def _stream(file: InputFile) -> pa.NativeFile:
    return file.filesystem.open_input_stream(file.path, compression=file.codec)


def _csv(file: InputFile) -> Iterator[pa.RecordBatch]:
    with _stream(file) as opened:
        names = _csv_names(file)
        yield from pa.csv.open_csv(
            opened,
            read_options=pa.csv.ReadOptions(block_size=_BLOCK),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            # All columns are text at first. "" is text and not NULL.
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )


def _csv_names(file: InputFile) -> list[str]:
    with _stream(file) as opened:
        first = opened.read(1 << 20).partition(b"\n")[0]
    return pa.csv.read_csv(pa.BufferReader(first + b"\n")).column_names  # type: ignore[no-any-return]


_JSON_HEADER = pa.struct([("key", pa.string()), ("value", pa.string())])
_JSON_HEADER64 = pa.struct([("key", pa.string()), ("valueBase64", pa.string())])


def _jsonl(file: InputFile) -> Iterator[pa.RecordBatch]:
    fields: dict[str, pa.DataType] = {}
    with _stream(file) as opened:
        rest = b""
        while block := opened.read(_BLOCK):
            whole, newline, behind = (rest + block).rpartition(b"\n")
            rest = behind
            if newline:
                yield from _json_rows(whole + newline, fields)
        if rest.strip():
            yield from _json_rows(rest, fields)


def _json_rows(content: bytes, fields: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    if not fields:
        first = json.loads(content.lstrip().partition(b"\n")[0])
        if not isinstance(first, dict):
            raise ValueError("a line is not a JSON object")
        fields |= _json_fields(content, first)
    options = pa.json.ParseOptions(
        explicit_schema=pa.schema(list(fields.items())), unexpected_field_behavior="infer"
    )
    read = pa.json.ReadOptions(block_size=max(len(content), 1 << 10), use_threads=False)
    table = pa.json.read_json(pa.BufferReader(content), read, options)
    yield from table.to_batches(_ROWS)


def _json_fields(content: bytes, first: dict[str, Any]) -> dict[str, pa.DataType]:
    """The types of columns that must not be inferred: text may look like a time, say."""
    fields: dict[str, pa.DataType] = {}
    for name, value in first.items():
        if isinstance(value, str) or (value is None and name in _MAY_BE_TEXT):
            fields[name] = pa.string()
    if "headers" in first:
        kind = _JSON_HEADER64 if b'"valueBase64":' in content else _JSON_HEADER
        fields["headers"] = pa.list_(kind)
    return fields


_MAY_BE_TEXT = ("topic", "key", "value", "keyBase64", "valueBase64", "timestamp", "controlType")


def _avro(file: InputFile) -> Iterator[pa.RecordBatch]:
    """Decode each block as one value, an array of its records."""
    with file.filesystem.open_input_stream(file.path) as opened:
        if opened.read(4) != b"Obj\x01":
            raise ValueError(f"{file.path} is not an Avro container file")
        metadata = dict(_pairs(opened))
        sync = opened.read(16)
        unpack = _UNPACK.get(metadata.get("avro.codec", b"null").decode())
        if unpack is None:
            raise ValueError(f"{file.path} has the codec {metadata['avro.codec'].decode()}")
        schema = {"type": "array", "items": json.loads(metadata["avro.schema"])}
        while (count := _long(opened)) is not None:
            size = _long(opened)
            content = opened.read(size)
            if size is None or len(content) < size or opened.read(16) != sync:
                raise ValueError(
                    f"{file.path} is cut off or damaged: a block does not end with its marker"
                )
            block = _varint(count) + unpack(content) + b"\0"
            rows = decode_values(pa.array([block], pa.binary()), schema, framing="bare")
            yield pa.RecordBatch.from_struct_array(rows.flatten())


def _pairs(file: pa.NativeFile) -> Iterator[tuple[str, bytes]]:
    while count := _long(file):
        if count < 0:
            _long(file)
        for _ in range(abs(count)):
            key = file.read(_long(file)).decode()
            yield key, file.read(_long(file))


def _long(file: pa.NativeFile) -> int | None:
    """Avro's long at the file's position; None at its end."""
    number, shift = 0, 0
    while byte := file.read(1):
        number |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return int(number >> 1 ^ -(number & 1))
        shift += 7
    return None


def _varint(number: int) -> bytes:
    rest = number << 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "null": lambda content: content,
    "deflate": lambda content: zlib.decompress(content, -15),
    "snappy": lambda content: unsnappy(content[:-4]),
    "zstandard": lambda content: ZstdDecompressor().decompress(content),
}
_READERS: dict[str, Callable[[InputFile], Iterator[pa.RecordBatch]]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "csv": _csv,
    "jsonl": _jsonl,
    "avro": _avro,
}
