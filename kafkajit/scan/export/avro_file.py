"""Avro's object container files: rows → a header with the schema, and blocks of records.

The columns become records by the kernels of `encode_values`; here they are only cut into blocks and
compressed.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from kafkajit.scan.export.long_rows import slices
from kafkajit.values.encode import encode_values

MAGIC = b"Obj\x01"
# Bytes of a block before compression, as large as readers expect; a larger record has its own.
_BLOCK_BYTES = 256 << 10
# Rows that are encoded at a time: their pieces take ten times the room of their bytes.
_ROWS = 1 << 14
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# codec: its name in the header
_CODECS = {"none": "null", "deflate": "deflate", "snappy": "snappy", "zstd": "zstandard"}


class AvroFile:
    r"""Writes a container file.

    >>> sink = pa.BufferOutputStream()
    >>> AvroFile(sink, pa.schema([("offset", pa.int64())]), "none", None, {}).close({})
    >>> sink.getvalue().to_pybytes()[:4]
    b'Obj\x01'
    """

    def __init__(
        self,
        sink: pa.NativeFile,
        schema: pa.Schema,
        codec: str,
        level: int | None,
        metadata: Mapping[str, str],
    ) -> None:
        self._sink = sink
        self._schema = avro_schema(schema)
        self._compress = _compressor(codec, level)
        known = {
            "avro.schema": json.dumps(self._schema),
            "avro.codec": _CODECS[codec],
            **metadata,
        }
        # The same records make the same bytes, so the marker is not a random one.
        self._sync = hashlib.md5(repr(known).encode(), usedforsecurity=False).digest()
        pairs = [_long(len(known)), *(_bytes(key) + _bytes(known[key]) for key in known)]
        sink.write(MAGIC + b"".join(pairs) + _long(0) + self._sync)

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches(max_chunksize=_ROWS):
            for rows in slices(batch):
                self._write(rows)

    def _write(self, rows: pa.RecordBatch) -> None:
        # An array that begins inside another one would be encoded with the rows before it.
        columns = [pa.concat_arrays([one]) if one.offset else one for one in rows.columns]
        structs = pa.StructArray.from_arrays(columns, fields=list(rows.schema))
        encoded = encode_values(structs, self._schema)
        _, ends, data = encoded.buffers()
        offsets = np.frombuffer(ends, dtype=np.int32)[: len(encoded) + 1].astype(np.int64)
        for start, end in _blocks(offsets):
            content = self._compress(data.slice(offsets[start], offsets[end] - offsets[start]))
            self._sink.write(_long(end - start) + _long(len(content)))
            self._sink.write(content)
            self._sink.write(self._sync)

    def close(self, metadata: Mapping[str, str]) -> None:
        """End the file, which has no footer."""


def _blocks(offsets: np.ndarray[Any, Any]) -> Iterator[tuple[int, int]]:
    """The first row of each block, and the first behind it."""
    start, rows = 0, offsets.size - 1
    while start < rows:
        within = np.searchsorted(offsets, offsets[start] + _BLOCK_BYTES, side="right") - 1
        end = max(start + 1, int(within))
        yield start, end
        start = end


def _compressor(codec: str, level: int | None) -> Callable[[pa.Buffer], Any]:
    if codec == "none":
        return lambda content: memoryview(content)
    if codec == "deflate":
        return lambda content: _deflated(content, -1 if level is None else level)
    if codec == "snappy":
        snappy = pa.Codec(codec)
        return lambda content: (
            snappy.compress(content, asbytes=True) + zlib.crc32(content).to_bytes(4, "big")
        )
    known = pa.Codec(codec, compression_level=level)
    return lambda content: known.compress(content, asbytes=True)


def _deflated(content: pa.Buffer, level: int) -> bytes:
    raw = zlib.compressobj(level, wbits=-15)
    return raw.compress(content) + raw.flush()


def _long(number: int) -> bytes:
    """Avro's long, which is a varint in zigzag."""
    rest = number << 1 ^ number >> 63
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def _bytes(content: str) -> bytes:
    encoded = content.encode()
    return _long(len(encoded)) + encoded


def avro_schema(schema: pa.Schema) -> dict[str, Any]:
    """The Avro schema of these columns, all of which may be NULL.

    >>> avro_schema(pa.schema([("offset", pa.int64())]))["fields"]
    [{'name': 'offset', 'type': ['null', 'long'], 'default': None}]
    """
    return _record("Record", schema, set())


def _record(name: str, fields: Any, used: set[str]) -> dict[str, Any]:
    while name in used:  # a field b in a, and a field a_b
        name += "_"
    used.add(name)
    return {
        "type": "record",
        "name": name,
        "fields": [
            {
                "name": _checked(field.name),
                "type": _or_null(_type(field.type, f"{name}_{field.name}", used)),
                "default": None,
            }
            for field in fields
        ],
    }


def _or_null(type_: Any) -> Any:
    return type_ if type_ == "null" else ["null", type_]


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"Avro does not allow the name {name!r}: export to Parquet, or choose other columns"
        )
    return name


_UNITS = {"ms": "millis", "us": "micros", "ns": "nanos"}
_PLAIN: list[tuple[Callable[[pa.DataType], bool], Any]] = [
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int64, "long"),
    (pa.types.is_uint32, "long"),
    (pa.types.is_integer, "int"),
    (pa.types.is_float32, "float"),
    (pa.types.is_floating, "double"),
    (pa.types.is_date32, {"type": "int", "logicalType": "date"}),
    (pa.types.is_time32, {"type": "int", "logicalType": "time-millis"}),
    (pa.types.is_time64, {"type": "long", "logicalType": "time-micros"}),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_null, "null"),
]


def _type(type_: pa.DataType, name: str, used: set[str]) -> Any:
    """The Avro type of an Arrow type; records are named by their place."""
    if pa.types.is_struct(type_):
        return _record(name, type_, used)
    if pa.types.is_list(type_):
        return {"type": "array", "items": _or_null(_type(type_.value_type, name, used))}
    if pa.types.is_map(type_):
        return {"type": "map", "values": _or_null(_type(type_.item_type, name, used))}
    if pa.types.is_timestamp(type_) and type_.unit in _UNITS:
        local = "" if type_.tz else "local-"
        unit = _UNITS[type_.unit]
        return {"type": "long", "logicalType": f"{local}timestamp-{unit}"}
    if pa.types.is_decimal(type_):
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": type_.precision,
            "scale": type_.scale,
        }
    for is_it, kind in _PLAIN:
        if is_it(type_):
            return kind
    raise ValueError(f"Avro has no type for {type_}: export to Parquet, or choose other columns")
