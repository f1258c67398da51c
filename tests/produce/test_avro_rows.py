from __future__ import annotations

import bz2
import io
import json
import lzma
import zlib
from pathlib import Path
from typing import Any

import cramjam
import fastavro
import pytest
import zstandard
from corpus import NO_JIT
from exporting import records_in

import kafkajit
from kafkajit.produce.inputs import avro_rows

SYNC = b"S" * 16


def long(number: int) -> bytes:
    """Avro's long."""
    rest = (number << 1 ^ number >> 63) & (1 << 64) - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def text(content: bytes) -> bytes:
    return long(len(content)) + content


def header(schema: Any, codec: bytes | None = b"null") -> bytes:
    """The header of a file."""
    pairs = {b"avro.schema": schema if isinstance(schema, bytes) else json.dumps(schema).encode()}
    if codec is not None:
        pairs[b"avro.codec"] = codec
    inside = b"".join(text(key) + text(value) for key, value in pairs.items())
    return b"Obj\x01" + long(len(pairs)) + inside + long(0) + SYNC


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields]}


def block(count: int, content: bytes) -> bytes:
    return long(count) + text(content) + SYNC


VALUE = record(("value", "bytes"))
ROW = text(b"v")


def imported(folder: Path, content: bytes, name: str = "a.avro") -> list[bytes | None]:
    """The values of an import."""
    (folder / name).write_bytes(content)
    options = {"topic": "t", "partitions": 1, "max.message.bytes": 2 << 20}
    plan = kafkajit.import_files(folder / name, folder / "logs", **options)
    plan.apply()
    return [row["value"] for row in records_in(folder / "logs").get("t-0", [])]


def snappy(content: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(content)) + zlib.crc32(content).to_bytes(4, "big")


CODECS = {
    b"deflate": lambda content: zlib.compress(content, wbits=-15),
    b"snappy": snappy,
    b"zstandard": lambda content: zstandard.ZstdCompressor().compress(content),
    b"bzip2": bz2.compress,
    b"xz": lzma.compress,
}


@pytest.mark.whole
@pytest.mark.parametrize("codec", [None, b"null", *CODECS])
def test_every_codec_and_empty_blocks(codec: bytes | None, tmp_path: Path) -> None:
    pack = CODECS.get(codec or b"", bytes)
    blocks = block(2, pack(ROW * 2)) + block(0, b"") + block(0, pack(b"")) + block(1, pack(ROW))
    assert imported(tmp_path, header(VALUE, codec) + blocks) == [b"v"] * 3


def test_a_changed_byte_in_a_snappy_block_is_an_error(tmp_path: Path) -> None:
    content = header(VALUE, b"snappy") + block(1, snappy(text(b"Customer")))
    assert imported(tmp_path, content) == [b"Customer"]
    with pytest.raises(ValueError, match=r"b\.avro, block 1: .* its checksum is wrong"):
        imported(tmp_path, content.replace(b"Customer", b"Xustomer"), "b.avro")


GOOD = block(1, ROW)
# A file, the place in it, and the error.
WRONG_FILES = [
    (b"Obj\x01" + long(1 << 60), "the header", "the file is cut off or damaged"),
    (b"Obj\x01" + long(-(1 << 60)) + long(9), "the header", "the file is cut off or damaged"),
    (b"Obj\x01" + long(1) + long(1 << 60), "the header", "more than 16 MiB"),
    (b"Obj\x01" + long(1) + long(-1), "the header", "cannot be right"),
    (b"Obj\x01" + b"\xff" * 20, "the header", "a number has more than 10 bytes"),
    (b"Obj\x01" + long(0) + SYNC, None, "the header has no schema in JSON"),
    (b"PAR1", None, "this is not an Avro container file"),
    (b"Ob", "the header", "the file is cut off or damaged"),
    (header(b"[" * 9999), None, "the header has no schema in JSON"),
    (header("string"), None, "the file does not have records"),
    (header({"type": "record", "name": "R"}), None, "has no list of fields"),
    (header(record(("value", "nothing"))), None, "the schema is malformed"),
    (header(record(("value", "int"), ("value", "int"))), None, ""),
    (header(VALUE, b"lzo"), None, "the codec 'lzo' is not one of null, deflate"),
    (header(VALUE) + GOOD + long(-1) + text(ROW) + SYNC, "block 2", "the file's marker"),
    (header(VALUE) + GOOD + long(1) + long(-1), "block 2", "cannot be right"),
    (header(VALUE) + GOOD + long(1) + long(1 << 60), "block 2", "cannot be right"),
    (header(VALUE) + GOOD + block(1, ROW)[:-1], "block 2", "the file is cut off"),
    (header(VALUE) + GOOD + long(1), "block 2", "the file is cut off"),
    (header(VALUE) + GOOD + long(1) + text(ROW) + b"T" * 16, "block 2", "the file's marker"),
    (header(VALUE) + GOOD + block(2, ROW), "block 2", "the block is malformed"),
    (header(VALUE) + GOOD + block(1, ROW * 2), "block 2", "the block is malformed"),
    (header(VALUE) + GOOD + block(1 << 50, ROW), "block 2", "records have 2 bytes"),
    (header(VALUE) + GOOD + block(0, ROW), "block 2", "the block is malformed"),
    (header(record(("value", "null"))) + block(1 << 50, b""), "block 1", "records have 0 bytes"),
    (header(VALUE, b"deflate") + block(1, b"\xff"), "block 1", "cannot be decompressed"),
    (header(VALUE, b"snappy") + block(1, b"\xff\xff\xff\xff\x0f1234"), "block 1", "256 MiB"),
    (header(VALUE, b"snappy") + block(1, b"12"), "block 1", "cannot be decompressed"),
    (header(VALUE, b"zstandard") + block(1, b"1234"), "block 1", "cannot be decompressed"),
    (header(VALUE, b"bzip2") + block(1, b"1234"), "block 1", "cannot be decompressed"),
    (header(VALUE, b"xz") + block(1, b"1234"), "block 1", "cannot be decompressed"),
    (header(VALUE) + GOOD + header(VALUE), "block 2", ""),
]


@pytest.mark.whole
@pytest.mark.parametrize("number", range(len(WRONG_FILES)))
def test_an_error_names_the_file_and_the_block(number: int, tmp_path: Path) -> None:
    content, place, words = WRONG_FILES[number]
    with pytest.raises(ValueError, match=r"a\.avro") as caught:
        imported(tmp_path, content)
    assert words in str(caught.value)
    assert place is None or f"a.avro, {place}: " in str(caught.value)


@pytest.mark.skipif(NO_JIT, reason="large")
@pytest.mark.parametrize("codec", CODECS)
def test_a_block_has_a_limit(codec: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avro_rows, "MOST_DECOMPRESSED", 1 << 20)
    value = bytes((1 << 20) - 10)
    content = CODECS[codec](text(value))
    assert imported(tmp_path, header(VALUE, codec) + block(1, content)) == [value]
    content = CODECS[codec](text(value + bytes(100)))
    with pytest.raises(ValueError, match=r"b\.avro, block 1: the block has more than 1 MiB"):
        imported(tmp_path, header(VALUE, codec) + block(1, content), "b.avro")


@pytest.mark.skipif(NO_JIT, reason="large")
def test_more_cells_than_memory_has_room_for_are_an_error(tmp_path: Path) -> None:
    schema = record(("value", "int"), *((f"n{n}", ["null", "int"]) for n in range(99)))
    content = header(schema, b"deflate")
    with pytest.raises(ValueError, match=r"block 1: 400,000 records are too many for one block"):
        imported(tmp_path, content + block(400_000, CODECS[b"deflate"](bytes(40_000_000))))


def test_a_file_that_is_compressed_as_a_whole(tmp_path: Path) -> None:
    content = header(VALUE) + block(300, ROW * 300)
    whole = zstandard.ZstdCompressor().compress(content)
    assert imported(tmp_path, whole, "a.avro.zst") == [b"v"] * 300
    with pytest.raises(ValueError, match=r"b\.avro\.zst, block 1: .*the file is cut off"):
        imported(tmp_path, zstandard.ZstdCompressor().compress(content[:-1]), "b.avro.zst")


# The type of a value, the value, and the bytes of the record.
TYPES: list[tuple[Any, Any, bytes | None]] = [
    (["null", "string"], "é", "é".encode()),
    (["string", "null"], None, None),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", b"B"),
    ({"type": "fixed", "name": "F", "size": 2}, b"\x00\xff", b"\x00\xff"),
    ({"type": "long", "logicalType": "not-known"}, 5, b"5"),
    ({"type": "string", "logicalType": "uuid"}, "0" * 8 + "-0000" * 3 + "-" + "0" * 12, None),
    ("double", 7.0, b"7.0"),
    ("boolean", True, b"true"),
    ({"type": "array", "items": ["null", "int"]}, [1, None], b"[1,null]"),
    ({"type": "map", "values": "long"}, {"a": 2**62}, b'{"a":4611686018427387904}'),
    (
        {"type": "record", "name": "V", "fields": [{"name": "b", "type": "bytes"}]},
        {"b": b"\xff"},
        b'{"b":"/w=="}',
    ),
]


@pytest.mark.whole
@pytest.mark.parametrize("number", range(len(TYPES)))
def test_the_types_of_values(number: int, tmp_path: Path) -> None:
    kind, value, wanted = TYPES[number]
    sink = io.BytesIO()
    fastavro.writer(sink, record(("value", kind)), [{"value": value}], codec="deflate")
    if isinstance(kind, dict) and kind.get("logicalType") == "uuid":
        wanted = value.encode()
    assert imported(tmp_path, sink.getvalue()) == [wanted]


DURATION = {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "scale": 4}
SEVERAL = ["null", "int", "string"]
NAMED = {"type": "record", "name": "N", "fields": [{"name": "u", "type": SEVERAL}]}
# The columns of a file, and the reason why it is not imported.
REFUSED: list[tuple[list[tuple[str, Any]], str]] = [
    ([("value", {"type": "array", "items": SEVERAL})], "has a union of 2 types"),
    ([("value", ["null", {"type": "map", "values": SEVERAL}])], "has a union of 2 types"),
    ([("value", NAMED)], "has a union of 2 types"),
    ([("other", NAMED), ("value", ["null", "N"])], "has a union of 2 types"),
    ([("value", DURATION)], "is a duration"),
    ([("value", {"type": "array", "items": DURATION})], "has a duration"),
    ([("other", DURATION), ("value", ["null", "D"])], "has a duration"),
    ([("value", DECIMAL | {"precision": 77})], "is a decimal of more than 76 digits"),
    ([("value", ["null", DECIMAL | {"precision": 77}])], "has a decimal of more than 76 digits"),
    ([("value", DECIMAL | {"logicalType": "big-decimal"})], "is a big-decimal"),
]


@pytest.mark.parametrize(("columns", "words"), REFUSED)
def test_values_without_a_form_are_an_error_at_any_depth(
    columns: list[tuple[str, Any]], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=rf"a\.avro: column 'value' {words}"):
        imported(tmp_path, header(record(*columns)))


def test_such_values_in_other_columns_are_no_error(tmp_path: Path) -> None:
    sink = io.BytesIO()
    schema = record(("other", DURATION), ("more", SEVERAL), ("value", "string"))
    row = {"other": bytes(12), "more": 5, "value": "v"}
    fastavro.writer(sink, schema, [row])
    assert imported(tmp_path, sink.getvalue()) == [b"v"]


def test_a_uuid_of_16_bytes_is_these_bytes(tmp_path: Path) -> None:
    kind = {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}
    content = header(record(("value", kind))) + block(1, bytes(range(16)))
    assert imported(tmp_path, content) == [bytes(range(16))]


def test_a_union_of_several_types_is_an_error(tmp_path: Path) -> None:
    content = header(record(("value", ["null", "int", "string"]))) + block(1, long(1) + long(5))
    with pytest.raises(ValueError, match=r"a\.avro: column 'value' is a union of 2 types"):
        imported(tmp_path, content)
