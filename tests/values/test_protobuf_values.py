"""decode_values: Protobuf messages as columns, as Protobuf's own reader has them."""

from __future__ import annotations

import itertools
import random
import uuid
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from corpus import NO_JIT
from google.protobuf.message import DecodeError
from protobuf_messages import PROTO, as_python, everything, in_order, python_module

import kafkajit
from kafkajit import InvalidSchemaError, RecordDeserializationError
from kafkajit.values.layout import Types
from kafkajit.values.schema import Schema

DEPTH = 8


def decoded(values: list[bytes], schema: Any = PROTO, **options: Any) -> list[Any]:
    framing = "auto" if "schemas" in options else "bare"
    options = {"framing": framing, "recursion": DEPTH, **options}
    if schema is PROTO:
        options.setdefault("message", "Everything")
    array = kafkajit.decode_values(values, schema, **options)
    array.validate(full=True)
    rows: list[Any] = array.to_pylist()
    return rows


def decoded_one(fields: str, value: bytes, syntax: str = "proto3", **options: Any) -> Any:
    return decoded([value], f'syntax = "{syntax}"; message M {{ {fields} }}', **options)[0]


def test_any_message_is_read_as_protobufs_own_reader_does() -> None:
    r = random.Random(3)
    messages = [everything(r) for _ in range(300)]
    rows = decoded([message.SerializeToString() for message in messages])
    for row, message in zip(rows, messages, strict=True):
        assert in_order(row) == as_python(message)


def test_fields_that_are_written_again_are_merged() -> None:
    """Two messages in a row are one: lists go on, a oneof has the last field that was set."""
    r = random.Random(4)
    values = [everything(r).SerializeToString() for _ in range(300)]
    twice = [first + second for first, second in itertools.pairwise(values)]
    for row, value in zip(decoded(twice), twice, strict=True):
        assert in_order(row) == as_python(python_module().Everything.FromString(value))


def test_what_is_set_of_a_oneof_replaces_what_was_set_with_all_its_lists() -> None:
    node = b"\x0a\x01a\x12\x02\x05\x06\x22\x04\x0a\x01k\x12"
    first = python_module().Everything(
        one_node={"name": "a", "numbers": [5, 6], "tags": {"k": "v"}}, ints=[1]
    )
    second = python_module().Everything(one_int=7, ints=[2])
    value = first.SerializeToString() + second.SerializeToString()
    assert node[:3] in value
    rows = decoded([value, first.SerializeToString(), value])
    assert [row["one_int"] for row in rows] == [7, None, 7]
    assert [row["one_node"] is None for row in rows] == [True, False, True]
    assert rows[1]["one_node"]["numbers"] == [5, 6]
    assert [row["ints"] for row in rows] == [[1, 2], [1], [1, 2]]
    only = decoded([value, value], columns=["one_node"])
    assert only == [{"one_node": None}] * 2


def test_a_field_without_presence_has_the_zero_of_its_type_and_another_is_null() -> None:
    fields = "int32 a = 1; optional int32 b = 2; string c = 3; M d = 4; repeated int32 e = 5;"
    assert decoded_one(fields, b"", recursion=1) == {
        "a": 0, "b": None, "c": "", "d": None, "e": [],
    }  # fmt: skip
    fields = "optional int32 a = 1; required string b = 2;"
    assert decoded_one(fields, b"", syntax="proto2") == {"a": None, "b": None}


def test_lists_of_numbers_are_read_packed_and_unpacked() -> None:
    fields = "repeated int32 a = 1; repeated fixed64 b = 2; repeated bool c = 3;"
    packed = b"\x0a\x03\x01\xac\x02" + b"\x12\x08\x05" + bytes(7) + b"\x1a\x02\x00\x01"
    single = b"\x08\x01\x08\xac\x02\x11\x05" + bytes(7) + b"\x18\x00\x18\x01"
    expected = {"a": [1, 300], "b": [5], "c": [False, True]}
    assert decoded_one(fields, packed) == decoded_one(fields, single) == expected
    twice = {name: 2 * items for name, items in expected.items()}
    assert decoded_one(fields, packed + single) == twice


def test_numbers_of_enums_have_names_and_others_stay_numbers() -> None:
    fields = "enum E { A = 0; B = 2; } E e = 1; repeated E es = 2;"
    assert decoded_one(fields, b"\x08\x02\x12\x02\x00\x07") == {"e": "B", "es": ["A", "7"]}


def test_fields_that_the_schema_does_not_have_are_skipped() -> None:
    group = b"\x6b\x08\x01\x73\x74\x6c"  # one of number 13 with one of number 14 in it
    unknown = b"\x50\x01" + b"\x51" + bytes(8) + b"\x52\x01x" + b"\x55" + bytes(4) + group
    fields = "int32 a = 1; int32 b = 2000;"
    value = unknown + b"\x08\x05" + unknown + b"\x80\x7d\x06" + unknown
    assert decoded_one(fields, value) == {"a": 5, "b": 6}
    # A field of another wire type than its own is not known either.
    assert decoded_one(fields, b"\x0a\x01x\x08\x05") == {"a": 5, "b": 0}


def test_only_the_fields_that_are_wanted_are_read() -> None:
    r = random.Random(5)
    values = [everything(r).SerializeToString() for _ in range(100)]
    columns = ["int64", "list.numbers", "counts", "one_text", "node.next.name"]
    some, whole = decoded(values, columns=columns), decoded(values)
    for row, full in zip(some, whole, strict=True):
        assert row.keys() == {"int64", "list", "counts", "one_text", "node"}
        assert [row[name] for name in ("int64", "counts", "one_text")] == [
            full[name] for name in ("int64", "counts", "one_text")
        ]
        assert row["list"] == [{"numbers": one["numbers"]} for one in full["list"]]
    with pytest.raises(InvalidSchemaError, match=r"no field 'colour'; did you mean 'color'\?"):
        decoded(values, columns=["colour"])


def test_times_have_microseconds_and_the_years_one_to_9999() -> None:
    module = python_module()
    ends = [(-62_135_596_800, 0), (253_402_300_799, 999_999_999), (0, 1_999)]
    values = [
        module.Everything(time={"seconds": seconds, "nanos": nanos}).SerializeToString()
        for seconds, nanos in ends
    ]
    assert [row["time"] for row in decoded(values)] == [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    ]
    short = module.Everything(duration={"seconds": -1, "nanos": -1_500}).SerializeToString()
    assert decoded([short])[0]["duration"] == timedelta(seconds=-1, microseconds=-1)
    late = module.Everything(time={"seconds": 253_402_300_800}).SerializeToString()
    with pytest.raises(RecordDeserializationError, match=r"out of the range .*field time, byte"):
        decoded([late])


# Framings and schemas.


def framed(indexes: bytes, value: bytes, id_: int = 7) -> bytes:
    return b"\0" + id_.to_bytes(4, "big") + indexes + value


def test_indexes_in_front_name_the_message() -> None:
    other = python_module().Other(x=5).SerializeToString()
    inside = python_module().Other.Inside(y=6).SerializeToString()
    schemas = {7: PROTO}
    for indexes in (b"\0", b"\x02\x00"):  # the first one has a short form
        assert decoded([framed(indexes, other)], None, schemas=schemas) == [{"x": 5}]
    assert decoded([framed(b"\x04\x00\x00", inside)], None, schemas=schemas) == [{"y": 6}]
    values = [framed(b"\x02\x02", b"\x08\x07"), framed(b"\0", other)]
    table = kafkajit.decode_values(values, schemas=schemas, mode="PERMISSIVE").to_pylist()
    assert table[0]["value"]["int32"] == 7
    assert table[1]["error"] == (
        "the message is acme.test.Other, not acme.test.Everything, byte 6, schema id 7"
    )
    rows = kafkajit.decode_values(
        values, schemas=schemas, message="Other", mode="DROPMALFORMED"
    ).to_pylist()
    assert rows == [{"x": 5}]
    for indexes in (b"\x02\x09", b"\x02\x01", b"\x01\x09", b"\x06\x00\x00\x00"):
        with pytest.raises(RecordDeserializationError, match="no message with these indexes"):
            decoded([framed(b"\0", b""), framed(indexes, b"")], None, schemas=schemas)


@pytest.mark.parametrize("indexes", [b"\xff" * 4_000_000, b"\xfe\xff\x7f" + b"\2" * 4_000_000])
def test_indexes_without_end_are_refused_at_once(indexes: bytes) -> None:
    schemas = {7: 'syntax = "proto3"; message M {int64 x = 1;}'}
    with pytest.raises(RecordDeserializationError):  # and not after hours
        decoded([framed(indexes, b"")], None, schemas=schemas)


def test_old_clients_wrote_indexes_without_a_sign() -> None:
    value = framed(b"\x01\x01", b"\x08\x07")
    (row,) = decoded([value], None, schemas={7: PROTO}, message=None)
    assert row["int32"] == 7
    assert decoded([framed(b"\0", b""), value], None, schemas={7: PROTO}, mode="PERMISSIVE")[1][
        "error"
    ].startswith("the message is acme.test.Everything, not acme.test.Other")


def test_apicurios_serializer_names_the_message() -> None:
    named = b"\x07\x0a\x05Other"
    assert decoded([framed(named, b"\x08\x05")], None, schemas={7: PROTO}) == [{"x": 5}]
    eight = b"\0" + (7).to_bytes(8, "big") + named + b"\x08\x05"
    assert decoded([eight], None, schemas={7: PROTO}) == [{"x": 5}]


def test_glues_serializer_numbers_messages_by_their_names() -> None:
    """Entries of maps and messages inside others have numbers, too."""
    proto = """
        syntax = "proto3"; package p;
        message B { message C {} message A { message D { int32 d = 1; } } map<bool, int32> m = 1; }
        message A { int32 a = 1; }
    """
    names = ["p.A", "p.B", "p.B.A", "p.B.A.D", "p.B.C", "p.B.MEntry"]
    header = b"\x03\x00" + bytes(16)
    packed = b"\x03\x05" + bytes(16)
    assert decoded([header + b"\x00\x08\x07"], proto, framing="glue", message="p.A") == [{"a": 7}]
    for framing in ("glue", "auto"):
        value = header + b"\x03\x08\x07"
        assert decoded([value], proto, framing=framing, message="D") == [{"d": 7}]
    value = packed + zlib.compress(b"\x03\x08\x07")
    assert decoded([value], proto, framing="glue", message="D") == [{"d": 7}]
    for number, name in enumerate(names):
        values = [header + bytes([number])]
        (row,) = decoded(values, proto, framing="glue", message="p.B.C", mode="PERMISSIVE")
        is_asked = name == "p.B.C"
        assert row["value"] == ({} if is_asked else None)
        assert is_asked or row["error"].startswith(f"the message is {name}, not p.B.C, byte 19")
    for number in (b"\x06", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"):
        with pytest.raises(RecordDeserializationError, match="no message with these indexes"):
            decoded([header + number], proto, framing="glue", message="p.A")
    with pytest.raises(RecordDeserializationError, match="ends in the middle of a field, byte 18"):
        decoded([header], proto, framing="glue", message="p.A")


def test_the_first_value_of_glue_decides_the_message() -> None:
    proto = 'syntax = "proto3"; message B { int32 b = 1; } message A { int32 a = 1; }'
    guid = uuid.UUID(int=7)
    schemas = [Schema(proto, "PROTOBUF", guid=guid)]
    for number, row in ((0, {"a": 5}), (1, {"b": 5}), (9, None)):
        value = b"\x03\x00" + guid.bytes + bytes([number]) + b"\x08\x05"
        (found,) = decoded([value], None, schemas=schemas, mode="PERMISSIVE")
        assert found["value"] == row


def test_values_of_older_schemas_are_read_into_the_newest(tmp_path: Path) -> None:
    """Fields are matched by their numbers, so the names are those of the newest."""
    old = 'syntax = "proto3"; message Order { int32 id = 1; string name = 2; }'
    new = 'syntax = "proto3"; message First {} message Order { int64 id = 1; string title = 2; }'
    values = [framed(b"\0", b"\x08\x05\x12\x01a", 1), framed(b"\x02\x02", b"\x08\x06", 2)]
    rows = decoded(values, new, schemas={1: old, 2: new}, message="Order")
    assert rows == [{"id": 5, "title": "a"}, {"id": 6, "title": ""}]
    (tmp_path / "order.proto").write_text(new)
    path = tmp_path / "order.proto"
    assert decoded([b"\x08\x06"], path, message="Order") == [{"id": 6, "title": ""}]
    odd = 'syntax = "proto3"; message Order { string id = 1; }'
    with pytest.raises(
        RecordDeserializationError,
        match=r"schema cannot be used, schema id 3: the field 1 of Order was written as string, "
        "but is to be read as int64",
    ):
        decoded([framed(b"\0", b"", 3)], new, schemas={3: odd}, message="Order")


def test_a_message_is_named_by_any_part_of_its_name() -> None:
    for name in ("Inside", "Other.Inside", "acme.test.Other.Inside"):
        assert decoded([b"\x08\x05"], message=name) == [{"y": 5}]
    with pytest.raises(InvalidSchemaError, match=r"has no messages 'Nobody'; there are: acme.test"):
        decoded([b""], message="Nobody")


# Malformed values.

FIELDS = (
    "int32 a = 1; string s = 2; M m = 3; repeated fixed32 f = 4; map<int32, M> n = 5; sint32 z = 6;"
)
MALFORMED = [
    (b"\x08", "ends in the middle of a field, field a, byte 1"),
    (b"\x08\x80", "ends in the middle"),
    (b"\x08" + b"\xff" * 10, "a varint has more than 64 bits, field a"),
    (b"\x08\xff\xff\xff\xff\x7f", "does not fit 32 bits, field a"),
    (b"\x30\xff\xff\xff\xff\x7f", "does not fit 32 bits, field z"),
    (b"\x12\x05ab", "a size reaches past the end of the value, field s, byte 2"),
    (b"\x12\x02\xc3\x28", "not valid UTF-8, field s, byte 2"),
    (b"\x1a\x04\x12\x02\xff\xff", "not valid UTF-8, field m.s"),
    (b"\x1a\x02\x08", "a size reaches past the end"),
    (b"\x1a\x01\x08\x05", "ends in the middle of a field, field m.a, byte 4"),
    (b"\x22\x05\x00\x00\x00\x00\x00", r"ends in the middle of a field, field f\[\]"),
    (b"\x00\x01", "number is 0"),
    (b"\x0e", "wire type is unknown"),
    (b"\x0c", "group does not end"),
    (b"\x0b\x08\x01", "group does not end"),
    (b"\x0b\x14", "group does not end"),
    (b"\x0b" * 101 + b"\x0c" * 101, "nested deeper"),
    (b"\x2a\x04\x12\x02\x08", "a size reaches past the end"),
    (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "number is 0, its wire type"),
    (b"\x1a\x0a\x1a\x08\x1a\x06\x1a\x04\x1a\x02\x08\x01", "nested deeper than the columns"),
]


@pytest.mark.parametrize(("value", "words"), MALFORMED)
def test_a_malformed_value_is_reported_with_the_field_and_the_byte(
    value: bytes, words: str
) -> None:
    with pytest.raises(RecordDeserializationError, match=words):
        decoded_one(FIELDS, value, recursion=4)
    rows = decoded(
        [b"\x08\x05", value, b"\x08\x06"],
        f'syntax = "proto3"; message M {{ {FIELDS} }}',
        recursion=4,
        mode="PERMISSIVE",
    )
    assert [row["error"] is None for row in rows] == [True, False, True]
    assert [row["value"] and row["value"]["a"] for row in rows] == [5, None, 6]


def test_a_message_without_fields_refuses_the_number_0_too() -> None:
    assert decoded_one("", b"\x08\x01") == {}
    with pytest.raises(RecordDeserializationError, match="number is 0"):
        decoded_one("", b"\x00\x01")


def test_spoilt_values_are_refused_or_read_as_protobufs_own_reader_does() -> None:
    """Our reader refuses some more: numbers and times that do not fit, and overlong varints."""
    r = random.Random(6)
    values = [everything(r).SerializeToString() for _ in range(200)]
    spoilt = [_spoilt(r, r.choice(values)) for _ in range(300 if NO_JIT else 3_000)]
    rows = decoded(spoilt, mode="PERMISSIVE")
    more = ("32 bits", "64 bits", "out of the range")
    same = 0
    for row, value in zip(rows, spoilt, strict=True):
        try:
            python_module().Everything.FromString(value)
        except DecodeError:
            assert row["error"] is not None
            continue
        assert row["error"] is None or any(words in row["error"] for words in more)
        same += row["error"] is None
    assert same > (10 if NO_JIT else 100)


def _spoilt(r: random.Random, value: bytes) -> bytes:
    content = bytearray(value or b"\x08\x01")
    at = r.randrange(len(content))
    match r.randrange(4):
        case 0:
            content[at] = r.randrange(256)
        case 1:
            del content[at:]
        case 2:
            del content[at]
        case _:
            content.insert(at, r.choice([0, 1, 0x80, 0xFF, 0x7F, 0x0B, 0x0C]))
    return bytes(content)


def test_values_are_read_alike_however_many_there_are() -> None:
    """More elements than a block has room for, in one value and in many."""
    fields = "repeated int32 a = 1; repeated string s = 2; repeated M m = 3;"
    count = 7_000 if NO_JIT else 70_000
    big = b"\x0a\x80\x80\x08" + b"\x07" * 131_072
    many = b"\x12\x01x" * count
    deep = b"\x1a\x02\x12\x00" * count
    schema = f'syntax = "proto3"; message M {{ {fields} }}'
    rows = decoded([b"\x0a\x01\x05", big + many + deep, b"\x0a\x01\x06"], schema, recursion=2)
    assert rows[0]["a"] == [5]
    assert rows[2]["a"] == [6]
    assert rows[1]["a"] == [7] * 131_072
    assert rows[1]["s"] == ["x"] * count
    assert rows[1]["m"] == [{"a": [], "s": [""], "m": []}] * count


def test_spark_has_no_unsigned_numbers() -> None:
    from kafkajit.values.decoder import ValueDecoder
    from kafkajit.values.framing import BARE

    schema = 'syntax = "proto3"; message M { uint32 a = 1; uint64 b = 2; fixed32 c = 3; }'
    decoder = ValueDecoder(schema, None, BARE, None, stops=True, types=Types.SPARK)
    value = b"\x08\xff\xff\xff\xff\x0f" + b"\x10" + b"\xff" * 9 + b"\x01" + b"\x1d" + b"\xff" * 4
    rows = decoder.decode(pa.array([value])).values.to_pylist()
    assert rows == [{"a": 2**32 - 1, "b": 2**64 - 1, "c": 2**32 - 1}]
