"""Values made to harm: the reader reads no byte behind them, ends soon, and takes little memory."""

from __future__ import annotations

import json
import time
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from avro_schemas import encoded
from corpus import NO_JIT, run_python

import kafkajit
from kafkajit import InvalidSchemaError, RecordDeserializationError
from kafkajit.values import decoder, framing
from kafkajit.values.avro.schema import fingerprint, parse_schema

LONGS = {"type": "array", "items": "long"}


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    inside = [{"name": field, "type": type_} for field, type_ in fields]
    return {"type": "record", "name": name, "fields": inside}


def errors(values: Any, schema: Any, **options: Any) -> list[str | None]:
    found = kafkajit.decode_values(values, schema, mode="PERMISSIVE", **options)
    found.validate(full=True)
    return found.field("error").to_pylist()  # type: ignore[no-any-return]


def test_many_ids_cost_no_more_than_few() -> None:
    """Each of another schema, which is not known or is skipped."""
    count = 500 if NO_JIT else 50_000
    values = [b"\0" + id_.to_bytes(4, "big") + b"\2" for id_ in range(count)]
    kafkajit.decode_values(values[:100], "long", framing="confluent")
    started = time.process_time()
    assert len(kafkajit.decode_values(values, "long", framing="confluent")) == count
    found = errors(values, "long", schemas={3: "long"}, framing="confluent")
    assert time.process_time() - started < 5
    assert found[3] is None
    assert found[-1] == f"the schema is not known, schema id {count - 1}"


def test_a_compressed_value_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "DEFAULT_MAX_DECOMPRESSED_BYTES", 1000)
    whole = zlib.compress(b"\2")
    packed = [zlib.compress(bytes(10_000)), whole[:-3], whole + b"more", whole]
    values = [b"\3\5" + bytes(16) + body for body in packed]
    broken = "the value's zlib data is broken"
    assert errors(values, "long", framing="glue") == [broken, broken, broken, None]
    monkeypatch.setattr(framing, "MOST_BYTES", 100)
    with pytest.raises(RecordDeserializationError, match="decode fewer values at once"):
        kafkajit.decode_values(values[-1:] * 60, "long", framing="glue")


def test_an_array_may_be_larger_than_a_cell_can_name(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"text {number}" * (number % 7) for number in range(300)]
    values = [None if n % 5 == 0 else value for n, value in enumerate(encoded("string", *texts))]
    expected = [None if n % 5 == 0 else text for n, text in enumerate(texts)]
    monkeypatch.setattr(decoder, "MOST_BYTES", 200)
    assert kafkajit.decode_values(values, "string", framing="bare").to_pylist() == expected
    monkeypatch.setattr(decoder, "MOST_BYTES", 40)
    with pytest.raises(RecordDeserializationError, match="a value has more than 2 GiB"):
        kafkajit.decode_values(values, "string", framing="bare")


def test_the_framing_is_found_with_the_columns_that_are_named() -> None:
    wide = record(*((f"f{number}", "long") for number in range(10_001)))
    found = kafkajit.decode_values([b"\2" * 10_001], wide, columns=["f3"])
    assert found.to_pylist() == [{"f3": 1}]


def test_text_that_is_not_utf8_may_be_in_an_array_of_strings() -> None:
    raw = pa.py_buffer(b"\0\0\0\0\1\xff")
    places = pa.py_buffer(np.array([0, 6], dtype=np.int32))
    values = pa.Array.from_buffers(pa.string(), 1, [None, places, raw])
    assert errors(values, "int") == ["bytes are left after the last field, byte 1"]


@pytest.mark.parametrize("recursion", [0, -1, 1.5, None, "x"])
def test_the_recursion_is_a_number(recursion: Any) -> None:
    with pytest.raises(ValueError, match="recursion must be a number from 1 on"):
        kafkajit.decode_values([], "int", recursion=recursion)


def test_columns_are_names() -> None:
    with pytest.raises(TypeError, match="columns must be the names of fields"):
        kafkajit.decode_values([], "int", columns=[5])  # type: ignore[list-item]


def test_only_confluents_serializer_leaves_out_the_size_of_bytes() -> None:
    mark = b"\xc3\1" + fingerprint(parse_schema("bytes")).to_bytes(8, "little")
    found = kafkajit.decode_values([mark + b"\x04ab"], schemas={1: "bytes"})
    assert found.to_pylist() == [b"ab"]


# What the kernel reads.


def test_a_varint_that_is_too_long_is_not_a_count() -> None:
    (error,) = errors([b"\x80" * 9 + b"\2"], LONGS, framing="bare")
    assert error == "a varint has more than 64 bits, byte 10"


BEHIND = """
import pyarrow as pa
import kafkajit
from fuzz import Guarded

guarded = Guarded(1 << 16)
fields = [{"name": f"f{n}", "type": {"type": "array", "items": "long"}} for n in range(1000)]
schema = {"type": "record", "name": "R", "fields": fields}
content = b"x" * 20
view = guarded.holding(content + bytes(32))
offsets = pa.array([0, 0, 20, 52], pa.int32()).buffers()[1]
data = pa.foreign_buffer(guarded.end - 52, 52, base=view)
values = pa.Array.from_buffers(pa.binary(), 3, [None, offsets, data])
for columns in ([], None):
    options = {"framing": "bare", "mode": "PERMISSIVE", "columns": columns}
    found = kafkajit.decode_values(values, schema, **options)
    print(found[0]["error"], found[2]["error"], sep="; ")
"""


def test_no_list_is_read_behind_the_end() -> None:
    said = "the value ends in the middle of a field, field f0, byte 0; "
    said += "the value ends in the middle of a field, field f32, byte 32\n"
    assert run_python(BEHIND) == said * 2


def test_a_value_has_few_elements_of_no_bytes() -> None:
    nested = {"type": "array", "items": {"type": "array", "items": "null"}}
    wrapped = record(("a", nested))
    inside = b"\x80\x80\x04\0"  # 32,768 of them
    values = [b"\4" + inside * 2 + b"\0", b"\6" + inside * 3 + b"\0"]
    for columns in (None, []):
        fine, error = errors(values, wrapped, framing="bare", columns=columns)
        assert fine is None
        assert error is not None
        assert "more items" in error


# Memory.


def test_a_few_large_values_do_not_decide_the_memory() -> None:
    count = 100 if NO_JIT else 60_000
    large, none = encoded(LONGS, list(range(count)), [])
    before = pa.total_allocated_bytes()
    found = kafkajit.decode_values([large] * 2 + [none] * 2 * count, LONGS, framing="bare")
    assert pa.total_allocated_bytes() - before < 200 << 20
    assert found[1].as_py() == list(range(count))


def test_only_columns_that_are_full_grow() -> None:
    count = 1000 if NO_JIT else 4 << 20
    wide = record(*((f"f{number}", "long") for number in range(300)), name="Wide")
    schema = record(("wide", {"type": "array", "items": wide}), ("flags", LONGS))
    (head,) = encoded("long", count)
    code = "import resource, sys, kafkajit; "
    code += "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)); "
    code += "head, schema = bytes.fromhex(sys.argv[1]), sys.argv[2]; "
    code += "found = kafkajit.decode_values([bytes(1) + head + bytes(int(sys.argv[3]) + 1)], "
    code += "schema, framing='bare'); print(len(found.field('flags').flatten()))"
    assert run_python(code, head.hex(), json.dumps(schema), str(count)) == f"{count}\n"


def test_more_elements_than_offsets_can_count_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkajit.values.columns._MOST", 100)
    values = encoded(LONGS, [1, 2, 3])
    assert len(kafkajit.decode_values(values * 30, LONGS, framing="bare")) == 30
    with pytest.raises(RecordDeserializationError, match="2 Gi elements: decode fewer values"):
        kafkajit.decode_values(values * 40, LONGS, framing="bare")
    with pytest.raises(RecordDeserializationError, match="2 GiB of text: decode fewer values"):
        kafkajit.decode_values(encoded("string", "x" * 200), "string", framing="bare")
    id_ = {"type": "fixed", "name": "Id", "size": 16, "logicalType": "uuid"}
    with pytest.raises(RecordDeserializationError, match="2 GiB of text"):
        kafkajit.decode_values([bytes(16)] * 3, id_, framing="bare")


# Schemas.


@pytest.mark.parametrize(
    "reader",
    [
        {"type": "enum", "name": "E", "symbols": ["A"]},
        {"type": "fixed", "name": "F", "size": 4},
    ],
)
def test_bytes_without_a_size_are_checked(reader: Any) -> None:
    values = [b"\0\0\0\0\1\xff", b"\0\0\0\0\1ok"]
    found = kafkajit.decode_values(values, "string", schemas={1: "bytes"}, mode="PERMISSIVE")
    said = "the text is not valid UTF-8, byte 5, schema id 1"
    assert found.to_pylist() == [{"value": None, "error": said}, {"value": "ok", "error": None}]
    for error in errors(values, reader, schemas={1: "bytes"}):
        assert error is not None
        assert error.startswith("bytes cannot be read as")


def test_a_branch_may_be_named_tag() -> None:
    tag = record(("x", "long"), name="tag")
    schema = record(("u", ["long", tag]), ("flags", {"type": "array", "items": "boolean"}))
    values = [b"\2\4\0", b"\0\6\0"]
    assert kafkajit.decode_values(values, schema, framing="bare").to_pylist() == [
        {"u": {"tag": "tag_", "long": None, "tag_": {"x": 2}}, "flags": []},
        {"u": {"tag": "long", "long": 3, "tag_": None}, "flags": []},
    ]
    spaced = [{**tag, "namespace": "com.acme"}, "long"]
    assert kafkajit.decode_values([b"\0\4"], spaced, framing="bare").to_pylist() == [
        {"tag": "com.acme.tag", "com.acme.tag": {"x": 2}, "long": None}
    ]


def test_a_branch_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(InvalidSchemaError, match="union of long, string has no branch 'nope'"):
        kafkajit.decode_values([], record(("u", ["long", "string"])), columns=["u.nope"])


def test_a_small_schema_cannot_be_a_tree_of_billions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkajit.values.avro.program.MAX_STEPS", 10_000)
    schema: Any = record(name="A40")
    for number in range(39, 0, -1):
        schema = record(("x", schema), ("y", f"A{number + 1}"), name=f"A{number}")
    (error,) = errors([b""], record(("a", schema)), framing="bare", columns=[])
    assert error is not None
    assert "the schema unfolds to more than 10,000 types" in error
    itself = record(*((f"f{number}", "R") for number in range(60)))
    for wide in (schema, itself):
        with pytest.raises(InvalidSchemaError, match="more than 10,000 columns"):
            kafkajit.decode_values([b""], wide, framing="bare")


def test_large_enums_and_unions_are_compiled_soon() -> None:
    symbols = [f"S{number}" for number in range(20_000)]
    enum = {"type": "enum", "name": "E", "symbols": symbols}
    turned = enum | {"symbols": symbols[::-1]}
    union = [record(name=f"B{number}") for number in range(700)]
    started = time.process_time()
    found = kafkajit.decode_values([b"\0\0\0\0\1\2"], turned, schemas={1: enum})
    assert found.to_pylist() == ["S1"]
    assert kafkajit.decode_values([b"\2"], union, framing="bare")[0]["tag"].as_py() == "B1"
    assert time.process_time() - started < 5
