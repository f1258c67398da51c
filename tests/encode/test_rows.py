from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import INT64, NULLABLE

from kafkajit import InvalidRecordError
from kafkajit import testing as kt
from kafkajit.encode.batch_plan import ByteStrings
from kafkajit.encode.rows import (
    byte_strings_of,
    headers_of,
    milliseconds_of,
    missing_column,
    numbers_of,
    rows_counted_from,
)

BYTES = [
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
    pa.dictionary(pa.int8(), pa.binary()),
    pa.dictionary(pa.uint32(), pa.large_binary()),
]
TEXTS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int16(), pa.string()),
    pa.dictionary(pa.int64(), pa.large_string()),
]


def values_of(field: ByteStrings) -> list[bytes | None]:
    """The byte strings as Python objects."""
    assert field.data.dtype == np.uint8
    assert not field.data.flags.writeable
    return [
        None if size < 0 else field.data[start : start + size].tobytes()
        for start, size in zip(field.starts.tolist(), field.sizes.tolist(), strict=True)
    ]


def array_of(values: list[Any], kind: pa.DataType) -> pa.Array:
    """As pa.array, which before pyarrow 25 makes no dictionaries of large strings."""
    if not pa.types.is_dictionary(kind):
        return pa.array(values, kind)
    found = pa.array(values, kind.value_type).dictionary_encode()
    return pa.DictionaryArray.from_arrays(found.indices.cast(kind.index_type), found.dictionary)


def slices(array: pa.Array) -> list[pa.Array]:
    """The array, and slices of it that do not begin or end where its buffers do."""
    most = len(array)
    return [array, array.slice(1), array.slice(0, most // 2), array.slice(most // 3, most // 2)]


# Columns of bytes


@pytest.mark.parametrize("kind", BYTES, ids=str)
@given(st.lists(NULLABLE, max_size=12))
def test_bytes_are_found_in_every_type_of_column_and_in_its_slices(
    kind: pa.DataType, values: list[bytes | None]
) -> None:
    for array in slices(array_of(values, kind)):
        assert values_of(byte_strings_of(array, "key")) == array.to_pylist()


@pytest.mark.parametrize("kind", TEXTS, ids=str)
@given(st.lists(st.none() | st.text(max_size=20), max_size=12))
def test_text_is_its_utf8(kind: pa.DataType, values: list[str | None]) -> None:
    for array in slices(array_of(values, kind)):
        expected = [None if text is None else text.encode() for text in array.to_pylist()]
        assert values_of(byte_strings_of(array, "key")) == expected


@pytest.mark.parametrize("width", [0, 3, 40])
def test_bytes_of_a_fixed_size_are_found(width: int) -> None:
    values = [bytes([number]) * width if number % 3 else None for number in range(10)]
    for array in slices(pa.array(values, pa.binary(width))):
        assert values_of(byte_strings_of(array, "key")) == array.to_pylist()


def test_a_column_of_nulls_has_no_bytes() -> None:
    assert values_of(byte_strings_of(pa.nulls(3), "key")) == [None] * 3
    assert values_of(byte_strings_of(pa.nulls(0), "key")) == []
    assert values_of(missing_column(2)) == [None] * 2
    assert values_of(missing_column(2, 0)) == [b""] * 2


def test_a_dictionary_that_has_a_null_or_nothing_at_all_is_read() -> None:
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1]), pa.array([b"a", None]))
    assert values_of(byte_strings_of(with_null, "key")) == [b"a", None, None, None]
    empty = pa.DictionaryArray.from_arrays(pa.nulls(2, pa.int8()), pa.array([], pa.binary()))
    assert values_of(byte_strings_of(empty, "key")) == [None, None]


def test_a_dictionarys_entries_are_not_copied_for_each_row() -> None:
    column = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(5000, dtype=np.int8)), pa.array([bytes(1 << 20)])
    )
    field = byte_strings_of(column, "value")  # 5 GiB if the values were copied
    assert field.data.size < 2 << 20
    assert field.sizes.sum() == 5000 << 20


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1]),
        pa.array([1.5]),
        pa.array([True]),
        pa.array([[b"a"]]),
        pa.array([1]).dictionary_encode(),
        pa.array([{"a": b"a"}]),
    ],
    ids=lambda column: str(column.type),
)
def test_a_column_that_holds_no_bytes_is_a_type_error_that_names_it(column: pa.Array) -> None:
    with pytest.raises(TypeError, match=r"^my key is a column of .*it must be binary or"):
        byte_strings_of(column, "my key")


# Headers

HEADERS = st.lists(
    st.none() | st.lists(st.tuples(st.text(max_size=5), NULLABLE), max_size=4), max_size=10
)
_STRUCT = pa.struct([("key", pa.string()), ("value", pa.binary())])
_TURNED = pa.struct([("value", pa.large_binary()), ("key", pa.binary())])
HEADER_TYPES = [
    pa.list_(_STRUCT),
    pa.large_list(_STRUCT),
    pa.list_(_TURNED),
    pa.map_(pa.string(), pa.binary()),
    pa.map_(pa.large_string(), pa.binary_view()),
]


def headers_column(rows: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        return pa.array(rows, kind)
    as_bytes = kind.value_type.field("key").type == pa.binary()
    return pa.array(
        [
            None
            if row is None
            else [{"key": k.encode() if as_bytes else k, "value": v} for k, v in row]
            for row in rows
        ],
        kind,
    )


def laid_out(headers: list[tuple[str, bytes | None]] | None) -> bytes:
    """The bytes after a record's value: the count, then keys and values with their sizes.

    Empty for a record without headers: the writer adds the count 0.
    """
    encoded = kt.Record(headers=headers or ()).encode(0, 0)
    # Skip length, attributes, two deltas, null key and null value.
    before = len(kt.Record().encode(0, 0)) - 2 + len(kt.varint(len(encoded) - 1))
    return encoded[before:] if headers else b""


@pytest.mark.parametrize("kind", HEADER_TYPES, ids=str)
@given(HEADERS)
def test_headers_are_laid_out_as_they_stand_in_a_record(kind: pa.DataType, rows: list[Any]) -> None:
    column = headers_column(rows, kind)
    pairs = zip(slices(column), slices(pa.array(range(len(rows)), pa.int64())), strict=True)
    for array, numbers in pairs:
        expected = [laid_out(rows[number]) for number in numbers.to_pylist()]
        assert values_of(headers_of(array)) == expected


def test_a_column_of_nulls_has_no_headers() -> None:
    assert values_of(headers_of(pa.nulls(2))) == [b"", b""]
    assert values_of(headers_of(pa.nulls(2, pa.list_(_STRUCT)))) == [b"", b""]


def test_headers_of_rows_that_are_null_do_not_count() -> None:
    entries = pa.array([{"key": "a", "value": b"1"}, None, {"key": "b", "value": b"2"}], _STRUCT)
    column = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), entries, mask=pa.array([False, True, False])
    )
    assert values_of(headers_of(column)) == [laid_out([("a", b"1")]), b"", laid_out([("b", b"2")])]


@pytest.mark.parametrize("bad", [None, {"key": None, "value": b"1"}], ids=["struct", "key"])
def test_a_header_without_a_key_is_an_error_that_names_the_row(bad: Any) -> None:
    column = pa.array([[{"key": "a", "value": None}], None, [bad]], pa.list_(_STRUCT))
    with pytest.raises(InvalidRecordError, match="row 2: Invalid null header key"):
        headers_of(column)
    with pytest.raises(InvalidRecordError, match="row 1: Invalid null header key"):
        headers_of(column.slice(1))
    assert values_of(headers_of(column.slice(0, 2))) == [laid_out([("a", None)]), b""]


def test_headers_of_a_window_are_found_without_looking_at_all_others() -> None:
    bad = pa.array([{"key": None, "value": None}] * 3, _STRUCT)
    column = pa.ListArray.from_arrays(pa.array([0, 3, 3], pa.int32()), bad).slice(1)
    assert values_of(headers_of(column)) == [b""]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.struct([("k", pa.string()), ("v", pa.binary())])),
        pa.list_(pa.struct([("key", pa.string())])),
        pa.list_(pa.string()),
        pa.string(),
        pa.list_(_STRUCT, 2),
    ],
    ids=str,
)
def test_a_column_that_holds_no_headers_is_a_type_error(kind: pa.DataType) -> None:
    with pytest.raises(TypeError, match=r"headers is a column of .*list of structs of key and val"):
        headers_of(pa.nulls(1, kind))


def test_a_headers_key_of_another_type_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="a header's key is a column of int64"):
        headers_of(pa.array([[(1, b"")]], pa.map_(pa.int64(), pa.binary())))
    with pytest.raises(TypeError, match="a header's value is a column of int64"):
        headers_of(pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())))


# Timestamps

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("unit", NANOSECONDS)
@given(st.lists(st.none() | INT64 | st.integers(-2000, 2000), max_size=8))
def test_a_timestamp_is_the_millisecond_that_it_is_in(
    unit: str, zone: str | None, values: list[int | None]
) -> None:
    times = NANOSECONDS[unit]
    values = [v for v in values if v is None or abs(v * times // 10**6) < 2**63]
    for array in slices(pa.array(values, pa.timestamp(unit, zone))):
        stamps = array.cast(pa.int64()).to_pylist()
        expected = [-7 if v is None else v * times // 10**6 for v in stamps]
        assert milliseconds_of(array, null=-7).tolist() == expected


@pytest.mark.parametrize("value", [2**63 // 1000 + 1, -(2**63) // 1000 - 1, -(2**63)])
def test_a_timestamp_past_kafkas_is_an_error(value: int) -> None:
    column = pa.array([0, None, value], pa.timestamp("s"))
    with pytest.raises(InvalidRecordError, match="row 2: maxTimestamp is out of range for"):
        milliseconds_of(column, "maxTimestamp")


def test_integers_are_milliseconds() -> None:
    assert milliseconds_of(pa.array([5, None, -1], pa.int32())).tolist() == [5, -1, -1]
    assert milliseconds_of(pa.array([5, None], pa.uint64()), null=9).tolist() == [5, 9]


def test_other_types_of_timestamps_are_a_type_error() -> None:
    for column in (pa.array(["2026-01-01"]), pa.array([1.0]), pa.array([1], pa.date32())):
        with pytest.raises(
            TypeError, match=r"timestamp is a column of .*timestamps, or integers of milliseconds$"
        ):
            milliseconds_of(column)


# Numbers


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
        *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        pa.dictionary(pa.int8(), pa.int64()),
    ],
    ids=str,
)
def test_integers_of_every_size_are_int64(kind: pa.DataType) -> None:
    for array in slices(pa.array([3, None, 100, 0], kind)):
        expected = [-1 if number is None else number for number in array.to_pylist()]
        numbers = numbers_of(array, "sequence", null=-1)
        assert numbers.tolist() == expected
        assert numbers.dtype == np.int64


def test_truth_values_are_numbers() -> None:
    assert numbers_of(pa.array([True, None, False]), "isTransactional", 0).tolist() == [1, 0, 0]


def test_a_null_without_a_number_for_it_is_an_error() -> None:
    with pytest.raises(InvalidRecordError, match="row 1: offset is null"):
        numbers_of(pa.array([3, None]), "offset")
    assert numbers_of(pa.nulls(2), "sequence", null=-1).tolist() == [-1, -1]


def test_an_integer_past_an_int64_is_an_error() -> None:
    column = pa.array([2**63 - 1, None, 2**63], pa.uint64())
    with pytest.raises(InvalidRecordError, match="row 2: offset is larger than an int64"):
        numbers_of(column, "offset", null=-1)
    assert numbers_of(column.slice(0, 2), "offset", null=-1).tolist() == [2**63 - 1, -1]


@pytest.mark.parametrize("column", [pa.array(["1"]), pa.array([1.0]), pa.array([b"1"])], ids=str)
def test_a_column_that_is_not_of_integers_is_a_type_error_that_names_it(column: pa.Array) -> None:
    with pytest.raises(TypeError, match=r"^producerId is a column of .*integers"):
        numbers_of(column, "producerId")


def test_errors_count_rows_from_the_given_first() -> None:
    with (
        pytest.raises(InvalidRecordError, match="row 1005: bad") as raised,
        rows_counted_from(1000),
    ):
        raise InvalidRecordError("bad", row=5)
    assert raised.value.row == 1005
    with pytest.raises(InvalidRecordError, match=r"^bad$"), rows_counted_from(1000):
        raise InvalidRecordError("bad")
