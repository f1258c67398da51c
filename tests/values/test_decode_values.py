"""decode_values: Avro → Arrow, of any schema, in any framing; and what is malformed."""

from __future__ import annotations

import datetime
import decimal
import json
import struct
import uuid
import zlib
from typing import Any

import pyarrow as pa
import pytest
from avro_schemas import (
    AT_ONCE,
    COUNT,
    DEEP,
    VALUES,
    Author,
    as_fastavro_has_it,
    broken,
    named_types,
)
from corpus import NO_JIT
from typed_logs import ORDER, ORDERS, confluent, encoded, fastavros

import kafkajit
from kafkajit import InvalidSchemaError, RecordDeserializationError
from kafkajit.values.avro.schema import fingerprint, parse_schema


@pytest.mark.parametrize("first", range(0, COUNT, AT_ONCE))
def test_values_are_those_that_fastavro_reads(first: int) -> None:
    """Of random schemas; every other one is read into another schema."""
    for seed in range(first, first + AT_ONCE):
        compare_with_fastavro(seed)


def compare_with_fastavro(seed: int) -> None:
    author = Author(seed)
    schema = author.record()
    named = named_types(schema)
    content = encoded(schema, *(author.value(schema, named) for _ in range(VALUES)))
    reader = author.reader_of(schema) if seed % 2 else schema
    found = kafkajit.decode_values(
        confluent(1, content), reader, schemas={1: schema}, mode="PERMISSIVE", recursion=DEEP
    )
    found.validate(full=True)
    type_ = parse_schema(reader)
    for value, row in zip(content, found.to_pylist(), strict=True):
        try:
            expected = fastavros(schema, value, reader if seed % 2 else None)
        except Exception:
            assert row["error"], f"fastavro cannot read it (seed {seed})"
            continue
        assert row["error"] is None, seed
        assert as_fastavro_has_it(row["value"], type_) == expected, seed


@pytest.mark.parametrize("first", range(0, COUNT, AT_ONCE))
def test_whatever_the_bytes_they_are_read_or_refused(first: int) -> None:
    """What can be read is what fastavro reads; columns that are left out are skipped alike."""
    for seed in range(first, first + AT_ONCE, 5):
        compare_broken_values(seed)


def compare_broken_values(seed: int) -> None:
    author = Author(seed)
    r = author.random
    schema = author.record()
    named = named_types(schema)
    content = encoded(schema, *(author.value(schema, named) for _ in range(VALUES)))
    mutated = [broken(value, r) for value in content for _ in range(4)]
    found = kafkajit.decode_values(
        mutated, schema, framing="bare", mode="PERMISSIVE", recursion=DEEP
    )
    found.validate(full=True)
    type_ = parse_schema(schema)
    for value, row in zip(mutated, found.to_pylist(), strict=True):
        assert (row["error"] is None) == (row["value"] is not None), seed
        if row["error"] is None:
            expected = fastavros(schema, value)
            assert repr(as_fastavro_has_it(row["value"], type_)) == repr(expected), seed
    skipped = kafkajit.decode_values(
        mutated, schema, framing="bare", mode="PERMISSIVE", columns=[], recursion=DEEP
    )
    for all_, none in zip(found.to_pylist(), skipped.to_pylist(), strict=True):
        if all_["error"] is None:
            assert none == {"value": {}, "error": None}, seed
        elif "UTF-8" not in all_["error"] and "deeper" not in all_["error"]:
            assert none["error"], (seed, all_["error"])


def test_logical_types_have_columns_of_their_own() -> None:
    utc = datetime.UTC
    day = datetime.datetime(2025, 11, 5, 12, 30, 15, 123456)
    cases: list[tuple[Any, Any, Any]] = [
        ({"type": "int", "logicalType": "date"}, day.date(), day.date()),
        ({"type": "int", "logicalType": "time-millis"}, datetime.time(1, 2, 3, 4000), None),
        ({"type": "long", "logicalType": "time-micros"}, datetime.time(1, 2, 3, 4), None),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            day.replace(microsecond=123000, tzinfo=utc),
            None,
        ),
        ({"type": "long", "logicalType": "timestamp-micros"}, day.replace(tzinfo=utc), None),
        (
            {"type": "long", "logicalType": "local-timestamp-millis"},
            day.replace(microsecond=123000),
            None,
        ),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, day, None),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            decimal.Decimal("-1234567.89"),
            None,
        ),
        (
            {"type": "fixed", "name": "D", "size": 20, "logicalType": "decimal", "precision": 45},
            decimal.Decimal(-(10**44)),
            None,
        ),
        (
            {"type": "string", "logicalType": "uuid"},
            uuid.UUID(int=7),
            "00000000-0000-0000-0000-000000000007",
        ),
    ]
    fields = [{"name": f"f{n}", "type": type_} for n, (type_, _, _) in enumerate(cases)]
    nullable = [
        {"name": f"n{n}", "type": ["null", type_ if "name" not in type_ else "D"]}
        for n, (type_, _, _) in enumerate(cases)
    ]
    schema = {"type": "record", "name": "R", "fields": fields + nullable}
    value = {f"f{n}": given for n, (_, given, _) in enumerate(cases)}
    nulls = {f"n{n}": None for n in range(len(cases))}
    found = kafkajit.decode_values(encoded(schema, value | nulls), schema, framing="bare")
    expected = {
        f"f{n}": given if shown is None else shown for n, (_, given, shown) in enumerate(cases)
    }
    assert found.to_pylist() == [expected | nulls]


def test_nanoseconds_durations_and_uuids_of_bytes_are_columns() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
            {"name": "id", "type": ["null", sixteen("uuid", 16)]},
            {"name": "lasts", "type": ["null", sixteen("duration", 12)]},
        ],
    }
    id_ = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
    there = b"\x02\x02" + id_.bytes + b"\x02" + struct.pack("<3I", 1, 2, 2**32 - 1)
    found = kafkajit.decode_values([there, b"\x00\x00\x00", there], schema, framing="bare")
    assert found.type.field("at").type == pa.timestamp("ns", tz="UTC")
    row = {"id": str(id_), "lasts": {"months": 1, "days": 2, "milliseconds": 2**32 - 1}}
    rows = [{name: row[name] for name in ("id", "lasts")} for row in found.to_pylist()]
    assert rows == [row, {"id": None, "lasts": None}, row]


def sixteen(logical: str, size: int) -> dict[str, Any]:
    return {"type": "fixed", "name": logical.title(), "size": size, "logicalType": logical}


@pytest.mark.parametrize("digits", [1, 9, 18, 19, 38, 39, 76])
def test_a_decimal_has_no_more_digits_than_its_precision(digits: int) -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": digits}
    most = 10**digits - 1
    numbers = [0, 1, -1, most, -most, most + 1, -most - 1, most + 2, -most - 2, 10 * most]
    content = []
    for number in numbers:
        raw = number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
        content += [raw, (b"\xff" if number < 0 else b"\0") * 3 + raw]  # longer than necessary
    values = [bytes([2 * len(raw)]) + raw for raw in content] + [b"\0"]
    found = kafkajit.decode_values(values, schema, framing="bare", mode="PERMISSIVE").to_pylist()
    for number, row in zip([n for n in numbers for _ in range(2)], found, strict=False):
        if abs(number) <= most:
            assert row == {"value": decimal.Decimal(number), "error": None}
        else:
            assert row["error"].startswith("the decimal does not fit its precision")
    assert found[-1]["value"] is None


@pytest.mark.parametrize(
    ("writer", "reader", "is_read"),
    [
        ("timestamp-millis", "timestamp-micros", False),
        ("time-millis", "timestamp-millis", False),
        ("timestamp-millis", "local-timestamp-millis", True),
        ("timestamp-millis", None, True),
        (None, "timestamp-millis", True),
    ],
)
def test_a_number_of_another_meaning_is_refused(
    writer: str | None, reader: str | None, is_read: bool
) -> None:
    def of(logical: str | None) -> Any:
        kind = "int" if logical == "time-millis" else "long"
        return {"type": kind} | ({} if logical is None else {"logicalType": logical})

    (content,) = confluent(1, [b"\2"])
    found = kafkajit.decode_values(
        [content], of(reader), schemas={1: of(writer)}, mode="PERMISSIVE"
    ).to_pylist()
    assert (found[0]["error"] is None) == is_read


def test_a_union_is_a_struct_with_a_tag() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "u", "type": ["null", "long", "string", "R"]}],
    }
    values = [{"u": None}, {"u": 5}, {"u": "five"}, {"u": {"u": 6}}]
    found = kafkajit.decode_values(encoded(schema, *values), schema, framing="bare", recursion=2)
    nothing = {"long": None, "string": None, "R": None}
    assert [row["u"] for row in found.to_pylist()] == [
        None,
        nothing | {"tag": "long", "long": 5},
        nothing | {"tag": "string", "string": "five"},
        nothing
        | {
            "tag": "R",
            "R": {"u": {"tag": "long", "long": 6, "string": None, "R": None}},
        },
    ]


def record(name: str, *fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)} | more


def read_as(writer: Any, reader: Any, value: bytes) -> Any:
    """A value of one schema, read into another."""
    (row,) = kafkajit.decode_values(
        confluent(1, [value]), json.dumps(reader), schemas={1: writer}, mode="PERMISSIVE"
    ).to_pylist()
    return row["error"] or row["value"]


INT = {"name": "a", "type": "int"}


def test_a_union_has_a_record_of_another_name_if_its_fields_fit() -> None:
    """As Avro's own reader: a branch of the same name first, if it can hold the record."""
    more = record("More", INT, {"name": "b", "type": "int"})
    text = record("Text", {"name": "a", "type": "string"})
    first, second = record("First", INT), record("Second", INT)
    assert read_as(record("R", INT), ["null", more, text, first, second], b"\2") == {
        "tag": "First",
        "First": {"a": 1},
        **dict.fromkeys(["More", "Text", "Second"]),
    }
    assert read_as(record("Second", INT), [first, second], b"\2")["tag"] == "Second"
    assert read_as(record("z.Second", INT), [first, second], b"\2")["tag"] == "Second"
    assert read_as(record("z.More", INT), [first, more], b"\2")["tag"] == "First"
    assert "no branch" in read_as(record("R", INT), ["null", more, text], b"\2")


def test_records_that_contain_themselves_fit_a_union() -> None:
    again = {"name": "next", "type": ["null", "R"]}
    within = {"name": "within", "type": ["int", record("Inner", again)]}
    writer = record("R", {"name": "within", "type": record("Inner", again)})
    reader = ["string", record("S", within, aliases=["T"])]
    reader[1]["fields"][0]["type"][1]["fields"][0] = {"name": "next", "type": ["null", "S"]}
    found = read_as(writer, reader, b"\2\0")
    assert found["S"]["within"]["Inner"]["next"]["within"]["Inner"]["next"] is None


def test_an_alias_renames_the_writers_field() -> None:
    """Also if a field of the reader has that name, whatever their order."""
    new = {"name": "new", "type": "int", "aliases": ["a"], "default": 5}
    old = INT | {"default": 7}
    for fields in ([new, old], [old, new]):
        assert read_as(record("R", INT), record("R", *fields), b"\2") == {"new": 1, "a": 7}
    both = record("R", INT, {"name": "new", "type": "int"})
    assert read_as(both, record("R", new), b"\2\4") == {"new": 2}
    # As in Avro's own reader, of a record that has the same name or an alias.
    assert read_as(record("Old", INT), record("R", new), b"\2") == {"new": 5}
    assert read_as(record("Old", INT), record("R", new, aliases=["Old"]), b"\2") == {"new": 1}


@pytest.mark.parametrize(
    ("type_", "default", "read"),
    [
        ("float", 1e39, float("inf")),
        ("float", -(10**400), float("-inf")),
        ("double", 10**400, float("inf")),
        ("double", 2**63 + 1025, float(2**63 + 2048)),
        ("string", "\ud800", None),
        ({"type": "map", "values": "int"}, {"\ud800": 1}, None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, "\x63", decimal.Decimal(99)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, "\x64", None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, "\1" * 99, None),
    ],
)
def test_a_default_is_read_or_refused(type_: Any, default: Any, read: Any) -> None:
    reader = record("R", {"name": "f", "type": type_, "default": default})
    found = read_as(record("R"), reader, b"")
    if read is None:
        assert "is not a default of 'f'" in found
    else:
        assert found == {"f": read}


def test_a_value_nested_deeper_than_the_columns_is_malformed() -> None:
    node = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "next", "type": ["null", "Node"]}],
    }
    values = [b"\2" * depth + b"\0" for depth in range(7)]
    found = kafkajit.decode_values(values, node, framing="bare", mode="PERMISSIVE")
    errors = [row["error"] for row in found.to_pylist()]
    assert errors[:4] == [None] * 4
    assert all("its own type more often than recursion allows" in error for error in errors[4:])
    deeper = kafkajit.decode_values(values, node, framing="bare", recursion=7)
    assert deeper.null_count == 0
    # If nothing of it is wanted, any depth is skipped, up to a limit.
    assert len(kafkajit.decode_values([b"\2" * 500 + b"\0"], node, framing="bare", columns=[])) == 1
    with pytest.raises(RecordDeserializationError, match="nested deeper"):
        kafkajit.decode_values([b"\2" * 5000 + b"\0"], node, framing="bare", columns=[])


def single_object(values: list[bytes]) -> list[bytes]:
    mark = b"\xc3\x01" + fingerprint(parse_schema(ORDER)).to_bytes(8, "little")
    return [mark + value for value in values]


FRAMED = {
    "confluent": lambda values: confluent(7, values),
    "apicurio8": lambda values: [b"\0" + (7).to_bytes(8, "big") + value for value in values],
    "single-object": single_object,
    "bare": lambda values: values,
}


@pytest.mark.parametrize("framing", FRAMED)
@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("has_schemas", [False, True])
def test_a_framing_is_named_or_found(framing: Any, is_named: bool, has_schemas: bool) -> None:
    if framing == "bare" and has_schemas and not is_named:
        return  # then there is an id in front, and a value without one is an error
    values = FRAMED[framing](encoded(ORDER, *ORDERS))
    found = kafkajit.decode_values(
        [None, *values],
        None if has_schemas and framing != "bare" else ORDER,
        schemas={7: ORDER} if has_schemas else None,
        framing=framing if is_named else "auto",
    )
    assert found.to_pylist() == [None, *ORDERS]


def test_values_of_glue_may_be_compressed() -> None:
    mark = uuid.uuid4().bytes
    plain, packed = encoded(ORDER, *ORDERS[:2])
    values = [
        b"\x03\x00" + mark + plain,
        b"\x03\x05" + mark + zlib.compress(packed),
        b"\x03\x05" + mark + b"not zlib",
        b"\x03\x07" + mark + plain,
    ]
    found = kafkajit.decode_values(values, ORDER, framing="glue", mode="PERMISSIVE").to_pylist()
    assert [row["value"] for row in found] == [*ORDERS[:2], None, None]
    assert found[2]["error"] == "the value's zlib data is broken"
    assert found[3]["error"] == "the value does not begin with a schema id"


def test_values_of_many_schemas_share_columns() -> None:
    """By default those of the newest schema."""
    newer = json.loads(json.dumps(ORDER))
    newer["fields"].append({"name": "paid", "type": "boolean", "default": True})
    old = confluent(1, encoded(ORDER, *ORDERS))
    new = confluent(2, encoded(newer, *(order | {"paid": False} for order in ORDERS)))
    mixed = [value for pair in zip(old, new, strict=True) for value in pair]
    found = kafkajit.decode_values(mixed, newer, schemas={1: ORDER, 2: newer})
    expected = [order | {"paid": paid} for order in ORDERS for paid in (True, False)]
    assert found.to_pylist() == expected
    assert kafkajit.decode_values(mixed, ORDER, schemas={1: ORDER, 2: newer}).to_pylist() == [
        order for order in ORDERS for _ in range(2)
    ]


def test_only_fields_that_are_named_become_columns() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "order", "type": ["null", ORDER]},
            {"name": "all", "type": {"type": "array", "items": "com.acme.Order"}},
            {"name": "by", "type": {"type": "map", "values": "com.acme.Order"}},
        ],
    }
    value = {"order": ORDERS[0], "all": ORDERS, "by": {"k": ORDERS[1]}}
    names = ["all.sku", "order.note", "order.id", "by.lines"]
    (row,) = kafkajit.decode_values(
        encoded(schema, value), schema, framing="bare", columns=names
    ).to_pylist()
    assert row == {
        "order": {"id": 1, "note": None},
        "all": [{"sku": "a"}, {"sku": "bé"}, {"sku": ""}],
        "by": [("k", {"lines": []})],
    }
    with pytest.raises(InvalidSchemaError, match="the field 'x' of a value of the type string"):
        kafkajit.decode_values(encoded(schema, value), schema, columns=["all.sku.x"])
    with pytest.raises(InvalidSchemaError, match=r"has no field 'skU'; did you mean 'sku'\?"):
        kafkajit.decode_values(encoded(schema, value), schema, columns=["all.skU"])


def test_blocks_of_a_list_may_have_sizes() -> None:
    schema = {"type": "array", "items": "long"}
    plain = b"\x04\x02\x04\x02\x06\x00"  # two, then one
    sized = b"\x03\x04\x02\x04\x01\x02\x06\x00"
    assert (
        kafkajit.decode_values([plain, sized], schema, framing="bare").to_pylist()
        == [[1, 2, 3]] * 2
    )
    for wrong in (b"\x03\x02\x02\x04\x00", b"\x03\x06\x02\x04\x00", b"\x03\x03\x02\x04\x00"):
        with pytest.raises(RecordDeserializationError, match="size"):
            kafkajit.decode_values([wrong], schema, framing="bare")


MALFORMED = {
    "the value ends in the middle of a field, field id, byte 0": b"",
    "a varint has more than 64 bits, field id": b"\xff" * 12,
    "a size is negative, field sku, byte 2": b"\2\1",
    "a size reaches past the end of the value, field sku, byte 2": b"\2\x08abc",
    "the union has no such branch, field note, byte 4": b"\2\2a\4",
    "a block claims more items than the value has bytes, field lines": b"\2\2a\0\xfe\xff\xff\x0f",
    "bytes are left after the last field, byte 5": b"\2\2a\0\0\0",
    "the text is not valid UTF-8, field sku, byte 2": b"\2\2\xff\0\0",
    "the number does not fit 32 bits, field lines[]": b"\2\2a\0\2\xfe\xff\xff\xff\x7f\0",
}


@pytest.mark.parametrize("words", MALFORMED)
def test_an_error_names_the_row_the_field_and_the_byte(words: str) -> None:
    (good,) = encoded(ORDER, ORDERS[1])
    values = [good, None, MALFORMED[words], good]
    with pytest.raises(RecordDeserializationError) as raised:
        kafkajit.decode_values(values, ORDER, framing="bare")
    assert str(raised.value).startswith(f"row 2: {words}")
    found = kafkajit.decode_values(values, ORDER, framing="bare", mode="PERMISSIVE").to_pylist()
    assert [row["value"] for row in found] == [ORDERS[1], None, None, ORDERS[1]]
    assert found[2]["error"].startswith(words)
    kept = kafkajit.decode_values(values, ORDER, framing="bare", mode="DROPMALFORMED")
    assert kept.to_pylist() == [ORDERS[1], None, ORDERS[1]]


def test_a_schema_that_is_not_known_is_a_state_of_its_own() -> None:
    values = confluent(7, encoded(ORDER, ORDERS[0])) + confluent(8, [b"x"]) + confluent(9, [b"x"])
    schemas = {7: ORDER, 9: '{"type": "record"}'}
    found = kafkajit.decode_values(values, ORDER, schemas=schemas, mode="PERMISSIVE").to_pylist()
    assert found[1]["error"] == "the schema is not known, schema id 8"
    assert found[2]["error"].startswith("the schema cannot be used, schema id 9: an Avro record")


def test_few_bytes_never_take_much_memory() -> None:
    """Elements of no bytes are limited; others have bytes of their own."""
    nulls = {"type": "array", "items": "null"}
    claim = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    for schema in (
        nulls,
        {"type": "array", "items": {"type": "record", "name": "E", "fields": []}},
    ):
        for columns in (None, []):
            wrapped = {"type": "record", "name": "R", "fields": [{"name": "a", "type": schema}]}
            with pytest.raises(RecordDeserializationError, match="more items"):
                kafkajit.decode_values([claim + b"\0"], wrapped, framing="bare", columns=columns)
    assert kafkajit.decode_values([b"\x0a\0"], nulls, framing="bare").to_pylist() == [[None] * 5]


def test_long_lists_and_texts_grow_the_columns() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "n", "type": {"type": "array", "items": ["null", "long"]}},
            {"name": "s", "type": "string"},
        ],
    }
    scale = 1 if NO_JIT else 10
    rows = [{"n": [None, *range(k % 300)], "s": "x" * (k % 700)} for k in range(200 * scale)]
    rows[-1] = {"n": list(range(20_000 * scale)), "s": "é" * 10_000 * scale}
    found = kafkajit.decode_values(encoded(schema, *rows), schema, framing="bare")
    found.validate(full=True)
    assert found.to_pylist() == rows


def test_arrow_arrays_of_every_kind_are_taken() -> None:
    values = encoded(ORDER, *ORDERS)
    for type_ in (pa.binary(), pa.large_binary()):
        array = pa.array([b"junk", *values, None, b"junk"], type_).slice(1, 4)
        found = kafkajit.decode_values(array, ORDER, framing="bare")
        assert found.to_pylist() == [*ORDERS, None]
    chunked = pa.chunked_array([pa.array(values[:1]), pa.array([], pa.binary()), values[1:]])
    found = kafkajit.decode_values(chunked, ORDER, framing="bare")
    assert isinstance(found, pa.ChunkedArray)
    assert found.to_pylist() == ORDERS
    assert kafkajit.decode_values([], ORDER).to_pylist() == []
    with pytest.raises(TypeError, match="values must be binary, not int64"):
        kafkajit.decode_values(pa.array([1]), ORDER)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "LENIENT"}, "unknown mode 'LENIENT'; there are: FAILFAST"),
        ({"framing": "avro"}, "framing must be one of bare, confluent"),
    ],
)
def test_a_wrong_option_names_those_that_exist(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        kafkajit.decode_values([], ORDER, **options)
    with pytest.raises(ValueError, match="name a schema to read into"):
        kafkajit.decode_values([])
