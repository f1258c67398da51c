"""Values that are JSON → columns: with a type, with a schema, and with neither."""

from __future__ import annotations

import base64
import datetime
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from corpus import NO_JIT
from hypothesis import given
from hypothesis import strategies as st
from json_columns import TEXT, as_python, bits, decode_json, gives_up, types, values_of

from kafkajit import InvalidSchemaError, RecordDeserializationError
from kafkajit.values.json.careful import read_value
from kafkajit.values.json.inference import infer_column
from kafkajit.values.json.reading import bodies_of
from kafkajit.values.json.types import MOMENT, column_of


@st.composite
def typed_values(draw: Any) -> tuple[pa.DataType, list[Any]]:
    type_ = draw(types())
    return type_, draw(st.lists(values_of(type_), max_size=8))


DUMPS = st.fixed_dictionaries(
    {"ensure_ascii": st.booleans(), "indent": st.sampled_from([None, 0, 2]),
     "sort_keys": st.booleans()}
)  # fmt: skip


@given(typed_values(), DUMPS)
def test_what_python_writes_is_read_back(typed: tuple[pa.DataType, list[Any]], style: Any) -> None:
    type_, values = typed
    written = [json.dumps(value, **style).encode() for value in values]
    decoded = decode_json(written, type_)
    decoded.validate(full=True)
    assert decoded.type == type_
    assert [bits(as_python(value, type_)) for value in decoded.to_pylist()] == bits(values)


@given(typed_values(), DUMPS)
def test_the_careful_reader_agrees_with_the_kernel(
    typed: tuple[pa.DataType, list[Any]], style: Any
) -> None:
    type_, values = typed
    written = [json.dumps(value, **style).encode() for value in values]
    careful = pa.array([read_value(body, column_of(type_)) for body in written], type_)
    assert careful.equals(decode_json(written, type_))


@given(st.floats(allow_nan=False, allow_infinity=False, width=64), st.sampled_from("rge"))
def test_a_float_is_the_nearest_one(number: float, form: str) -> None:
    text = repr(number) if form == "r" else f"{number:.17{form}}"
    (found,) = decode_json([text.encode()], pa.float64()).to_pylist()
    assert bits(found) == bits(float(text))


def test_floats_that_are_hard_to_round() -> None:
    texts = [
        "9007199254740993", "9007199254740992.5", "1e23", "8.41e21", "5e-324",
        "2.2250738585072011e-308", "1.7976931348623157e308", "-0", "-0.0", "0e400",
        "0.0000000000000000001",
        "123456789012345678901234567890", "0.1e1", "1E+2", "4503599627370497.5",
        "9223372036854775807",
        "1448997445238699", "7.1202363472230444e-307", "6.02214076e23", "1e-400",
    ]  # fmt: skip
    found = decode_json([text.encode() for text in texts], pa.float64()).to_pylist()
    assert bits(found) == bits([float(text) for text in texts])


def test_the_kernel_reads_floats_of_17_digits_itself() -> None:
    random = np.random.default_rng(1)
    numbers = random.standard_normal(20_000) * 10.0 ** random.integers(-200, 200, 20_000)
    texts = [repr(float(number)).encode() for number in numbers]
    column = column_of(pa.float64())
    assert len(gives_up(texts, column)) < 20
    assert np.array_equal(np.asarray(decode_json(texts, pa.float64())), numbers)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.0", 1), ("-0", 0), ("-0.0", 0), ("1e3", 1000), ("12.50e1", 125),
        ("0e99999999999999", 0),
        ("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63)),
        ("92233720368547758.07e2", 2**63 - 1), ("1" + "0" * 30 + "e-30", 1), (" 7\n", 7),
    ],
)  # fmt: skip
@pytest.mark.whole
def test_an_integer_may_be_written_as_a_number_that_is_one(text: str, expected: int) -> None:
    assert decode_json([text.encode()], pa.int64()).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("type_", "body", "words"),
    [
        (pa.int64(), "9223372036854775808", "an integer, found 9223372036854775808, which"),
        (pa.int64(), "-9223372036854775809", "which does not fit"),
        (pa.int64(), "18446744073709551617", "which does not fit"),
        (pa.int64(), "1e19", "which does not fit"),
        (pa.int64(), "1e99999999999999999999", "which does not fit"),
        (pa.int64(), "1.5", "expected an integer, found 1.5, byte 0"),
        (pa.int64(), "1e-99999999999999999999", "expected an integer, found 1e-99999"),
        (pa.int8(), "128", "expected an integer of 8 bits, found 128"),
        (pa.float64(), "1e999", "the number 1e999 does not fit double"),
        (pa.float64(), "-1" + "0" * 400, "does not fit double"),
        (pa.float32(), "3.5e38", "does not fit float"),
        (pa.float64(), '"1"', "expected a number, found a string"),
        (pa.bool_(), "1", "expected a boolean, found 1"),
        (pa.string(), "1", "expected a string, found 1"),
        (pa.string(), "true", "expected a string, found true"),
        (pa.string(), r'"\ud800"', "half a surrogate pair"),
        (pa.string(), r'"\udc00\ud800"', "half a surrogate pair"),
        (pa.map_(pa.string(), pa.int64()), r'{"\ud800": 1}', "half a surrogate pair, byte 1"),
        (pa.map_(pa.string(), pa.int64()), '{"k": "x"}', "found a string, field k, byte 6"),
        (pa.struct({"a": pa.struct({"b": pa.list_(pa.int64())})}), '{"a":{"b":[1,{}]}}',
         "expected an integer, found an object, field a.b[], byte 13"),
        (pa.struct({"a": pa.int64()}), "[]", "expected an object, found an array"),
        (pa.list_(pa.int64()), "{}", "expected an array, found an object"),
        (pa.null(), "1", "expected null, found 1"),
        (pa.date32(), '"2023-02-29"', "expected a date such as 2024-12-31, found \"2023-02-29\""),
        (MOMENT, '"2024-01-01T00:00:00"', "expected a time such as 2024-12-31T23:59:59Z"),
        (MOMENT, '"2024-01-01T24:00:00Z"', "expected a time"),
        (pa.binary(), '"a"', "expected a string in base64"),
        (pa.decimal128(4, 2), "100", "the number 100 does not fit decimal"),
        (pa.decimal128(4, 2), "0.001", "does not fit"),
        (pa.decimal128(4, 2), '"JxA="', "expected a decimal"),
        (pa.int64(), "", "the value is empty, byte 0"),
        (pa.int64(), " ", "the value is empty, byte 1"),
        (pa.int64(), "NaN", "expected a value, found NaN"),
        (pa.float64(), "-Infinity", "expected a value, found -"),
        (pa.float64(), "01", "expected the end of the value, found 1, byte 1"),
        (pa.float64(), "1.", "expected the end of the value, found ."),
        (pa.int64(), "1 2", "expected the end of the value, found 2, byte 2"),
        (pa.struct({}), "{}}", "expected the end of the value, found }"),
        (pa.struct({"a": pa.int64()}), '{"a":1,}', "expected a key, found }, byte 7"),
        (pa.struct({"a": pa.int64()}), "{\x0b:1}", r"expected a key, found \x0b:1}, byte 1"),
        (pa.struct({"a": pa.int64()}), '{"a" 1}', "expected a colon, found 1"),
        (pa.struct({"a": pa.int64()}), '{"a":1', "expected a comma or }, found the end"),
        (pa.list_(pa.int64()), "[1,]", "expected a value, found ]"),
        (pa.list_(pa.int64()), "[1}", "expected a comma or ], found }"),
        (pa.string(), '"a', "a string has no end, byte 2"),
        (pa.string(), r'"\x"', "an escape that JSON does not have, byte 1"),
        (pa.string(), r'"\u12g4"', "an escape that JSON does not have"),
        (pa.string(), '"a\tb"', "a control character, byte 2"),
    ],
)  # fmt: skip
@pytest.mark.whole
def test_a_malformed_value_is_named(type_: pa.DataType, body: str, words: str) -> None:
    found = decode_json([body.encode()], type_, mode="PERMISSIVE").to_pylist()
    assert found[0]["value"] is None
    assert words in found[0]["error"]
    with pytest.raises(RecordDeserializationError):
        decode_json([b"null", body.encode()], type_)


@pytest.mark.parametrize("raw", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8", b"\xc0\xaf"])
def test_text_is_utf8_also_if_no_column_wants_it(raw: bytes) -> None:
    body = b'{"a": "' + raw + b'"}'
    for type_ in (pa.struct({"a": pa.string()}), pa.struct({"b": pa.string()})):
        found = decode_json([body], type_, mode="PERMISSIVE").to_pylist()
        assert found[0]["error"] == "the text is not valid UTF-8, byte 7"


def test_dates_and_times_are_read() -> None:
    texts = [
        "1970-01-01T00:00:00Z", "2024-02-29T23:59:59.999999Z", "0001-01-01T00:00:00+00:00",
        "2024-05-06T07:08:09.1234567+02:00", "1969-12-31T23:59:59.5-11:30", "9999-12-31T23:59:59Z",
        "2024-05-06t07:08:09z", "2024-05-06 07:08Z", "2000-03-01T00:00:00-0130",
    ]  # fmt: skip
    expected = [
        datetime.datetime.fromisoformat(text.upper().replace(" ", "T")).astimezone(datetime.UTC)
        if len(text) != 33 else datetime.datetime(2024, 5, 6, 5, 8, 9, 123456, datetime.UTC)
        for text in texts
    ]  # fmt: skip
    quoted = [json.dumps(text).encode() for text in texts]
    assert gives_up(quoted, column_of(MOMENT)) == [6, 7, 8]
    assert decode_json(quoted, MOMENT).to_pylist() == expected
    days = [b'"1970-01-01"', b'"2000-02-29"', b'"1900-03-01"', rb'"2024\u002d12-31"', b"null"]
    assert decode_json(days, pa.date32()).to_pylist() == [
        datetime.date(1970, 1, 1), datetime.date(2000, 2, 29), datetime.date(1900, 3, 1),
        datetime.date(2024, 12, 31), None,
    ]  # fmt: skip


@given(st.datetimes(), st.integers(-1439, 1439))
def test_any_time_is_that_of_python(moment: datetime.datetime, minutes: int) -> None:
    offset = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    text = f'"{moment.isoformat()}{offset}"'.encode()
    found = decode_json([text], MOMENT).cast(pa.int64()).to_pylist()[0]
    epoch = datetime.datetime(1970, 1, 1)
    micro = datetime.timedelta(microseconds=1)
    assert found == (moment - epoch) // micro - minutes * 60_000_000
    assert found == read_value(text, column_of(MOMENT))


@given(st.lists(st.binary(max_size=20)))
def test_base64_becomes_bytes(values: list[bytes]) -> None:
    written = [json.dumps(base64.b64encode(value).decode()).encode() for value in values]
    assert decode_json(written, pa.binary()).to_pylist() == values
    assert gives_up(written, column_of(pa.binary())) == []


@given(st.lists(st.decimals(-(10**24), 10**24, allow_nan=False, places=3)))
def test_decimals_are_numbers_or_base64(values: list[Decimal]) -> None:
    type_ = pa.decimal128(38, 3)
    assert decode_json([str(value).encode() for value in values], type_).to_pylist() == values
    unscaled = [int(str(value).replace(".", "")) for value in values]
    raw = [number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True) for number in unscaled]
    written = [json.dumps(base64.b64encode(value).decode()).encode() for value in raw]
    assert decode_json(written, type_).to_pylist() == values


def test_null_rows_framings_and_chunks() -> None:
    values = pa.chunked_array(
        [
            pa.array([b'{"a":1}', None, b'\0\0\0\0\7{"a":2}'], pa.binary()),
            pa.array([b"null", b'\0\0\0\0\0\0\0\0\7 {"a":3}'], pa.binary()),
            pa.array([], pa.binary()),
        ]
    )
    found = decode_json(values, pa.struct({"a": pa.int64()}))
    assert found.to_pylist() == [{"a": 1}, None, {"a": 2}, None, {"a": 3}]
    assert found.num_chunks == 3
    assert decode_json(values).to_pylist() == found.to_pylist()
    sliced = pa.array(['"x"', None, '"yy"', '"z"'], pa.large_string())[1:3]
    assert decode_json(sliced, pa.string()).to_pylist() == [None, "yy"]


def test_an_error_counts_the_bytes_of_the_framing() -> None:
    with pytest.raises(RecordDeserializationError, match="found a string, byte 5") as caught:
        decode_json([None, b'\0\0\0\0\7"x"'], pa.int64())
    assert caught.value.row == 1  # type: ignore[attr-defined]


def test_malformed_values_are_left_out_on_request() -> None:
    values = [b"1", b"x", None, b"2.5", b"3"]
    assert decode_json(values, pa.int64(), mode="DROPMALFORMED").to_pylist() == [1, None, 3]


def test_columns_choose_among_fields_of_a_schema_of_a_type_and_of_the_values() -> None:
    values = [b'{"a": 1, "c": {"id": 2, "x": ["y"]}}']
    schema = {
        "properties": {"a": {"type": "integer"}, "c": {"properties": {"id": {"type": "integer"}}}}
    }
    for given_ in (
        schema,
        json.dumps(schema),
        pa.struct({"c": pa.struct({"id": pa.int64()})}),
        None,
    ):
        found = decode_json(values, given_, columns=["c.id"])
        assert found.to_pylist() == [{"c": {"id": 2}}]
    with pytest.raises(InvalidSchemaError, match="no field 'd'"):
        decode_json(values, columns=["d"])


def test_many_elements_and_escapes_have_room() -> None:
    count = 400 if NO_JIT else 2000
    lists = [list(range(n % 300)) for n in range(count)]
    texts = [f'"{n}\n' * (n % 50) for n in range(count)]
    values = [json.dumps({"l": a, "t": b}).encode() for a, b in zip(lists, texts, strict=True)]
    found = decode_json(values, pa.struct({"l": pa.list_(pa.int32()), "t": pa.string()}))
    assert found.field("l").to_pylist() == lists
    assert found.field("t").to_pylist() == texts


# Without a schema


def inferred(*values: Any) -> pa.DataType:
    written = pa.array([json.dumps(value).encode() for value in values], pa.binary())
    return infer_column(bodies_of(written)).type


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ((1, None, -5), pa.int64()),
        ((1, 2.5), pa.float64()),
        ((1.0,), pa.float64()),
        ((1, "a"), pa.string()),
        (("2024-01-01T00:00:00Z",), pa.string()),
        ((2**63,), pa.string()),
        ((1.5, 2**63), pa.string()),
        ((None,), pa.null()),
        ((True, False), pa.bool_()),
        ((True, 1), pa.string()),
        (({"b": 1}, {"a": None}, {"b": 2.5, "a": []}),
         pa.struct({"b": pa.float64(), "a": pa.list_(pa.field("element", pa.null()))})),
        (([1], [[2]]), pa.list_(pa.field("element", pa.string()))),
        (({"a": {}},), pa.struct({"a": pa.string()})),
        (({"a": {}}, {"a": {"x": 1}}), pa.struct({"a": pa.struct({"x": pa.int64()})})),
        (({}, []), pa.string()),
        ((dict.fromkeys(map(str, range(1001)), 1),), pa.map_(pa.string(), pa.string())),
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", [0, 100])
@pytest.mark.whole
def test_values_decide_the_type(values: Any, type_: pa.DataType, before: int) -> None:
    assert inferred(*[None] * before, *values) == type_


ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats(-1e300, 1e300) | TEXT,
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inside, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(ANY, max_size=12))
def test_the_order_of_values_does_not_matter_to_the_kinds(values: list[Any]) -> None:
    plain = inferred(*values)
    for rows in (inferred(*values[::-1]), inferred(*[None] * 64, *values)):
        assert _sorted(rows) == _sorted(plain)


def _sorted(type_: pa.DataType) -> Any:
    if pa.types.is_struct(type_):
        return {field.name: _sorted(field.type) for field in type_}
    return [_sorted(type_.value_type)] if pa.types.is_list(type_) else type_


@given(st.lists(ANY, max_size=12))
def test_values_without_a_schema_lose_nothing(values: list[Any]) -> None:
    written = [json.dumps(value).encode() for value in values]
    decoded = decode_json(written)
    decoded.validate(full=True)
    for row, value in zip(decoded.to_pylist(), values, strict=True):
        assert _holds(row, value, decoded.type), (row, value)


def _holds(found: Any, value: Any, type_: pa.DataType) -> bool:
    """Whether a column has a value, possibly as JSON text."""
    if value is None or found is None:
        return found is value
    if pa.types.is_string(type_):
        return found == value or json.loads(found) == value
    if pa.types.is_struct(type_):
        fields = {field.name: field.type for field in type_}
        assert value.keys() <= found.keys()
        return all(_holds(found[name], value.get(name), fields[name]) for name in found)
    if pa.types.is_list(type_):
        pairs = zip(found, value, strict=True)
        return all(_holds(inner, item, type_.value_type) for inner, item in pairs)
    return bool(found == value or math.isclose(found, value))


def test_malformed_values_decide_nothing() -> None:
    values = [b'{"a": 1}', b'{"a": 1, "b"', b'{"a": "x"', b'{"c": 1}']
    found = decode_json(values, mode="PERMISSIVE")
    assert found.type.field("value").type == pa.struct({"a": pa.int64(), "c": pa.int64()})
