"""Arrow arrays → text, compared with Python's own formatting."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.values.arrow_text import text_of

MICROSECONDS = pa.timestamp("us", tz="UTC")
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def plain(values: list[Any], kind: pa.DataType | None = None) -> list[str | None]:
    text = text_of(pa.array(values, kind))
    assert text.type == pa.large_string()
    return text.to_pylist()  # type: ignore[no-any-return]


def as_json(values: list[Any], kind: pa.DataType | None = None) -> list[str | None]:
    return text_of(pa.array(values, kind), as_json=True).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"key", "key"),
        (b"", ""),
        ("naïve 日本".encode(), "naïve 日本"),
        (b"two\nlines\t", "two\nlines\t"),
        (b"\x00\x01", "X'0001'"),
        (b"\xff\xfe", "X'FFFE'"),
        (b"esc \x1b[31m", "X'657363201B5B33316D'"),
        (b"\x7f", "X'7F'"),
        (b"X'00'", "X'5827303027'"),  # text that would be taken for hex is hex itself
        (b"X''", "X'582727'"),
        (b"X'", "X'5827'"),
        (b"X'zz'", "X'zz'"),
        (None, None),
    ],
)
def test_bytes_are_text_if_that_is_unambiguous_and_hex_otherwise(
    value: bytes | None, text: str | None
) -> None:
    assert plain([value], pa.binary()) == [text]
    assert plain([b"plain", value, b"\xff"], pa.binary()) == ["plain", text, "X'FF'"]


@given(st.lists(st.none() | st.binary(max_size=20)))
def test_bytes_can_be_had_back_from_their_text(values: list[bytes | None]) -> None:
    back = [
        None
        if text is None
        else bytes.fromhex(text[2:-1])
        if text.startswith("X'") and text.endswith("'") and not text[2:-1].strip("0123456789ABCDEF")
        else text.encode()
        for text in plain(values, pa.binary())
    ]
    assert back == values


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123_000, "2023-11-14T22:13:20.123Z"),
        (1_700_000_000_123_456, "2023-11-14T22:13:20.123456Z"),
        (-1_000, "1969-12-31T23:59:59.999Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00.000Z"),
        (253_402_300_799_999_000, "9999-12-31T23:59:59.999Z"),
        # Java's Instant.toString() prints these so.
        (253_402_300_800_000_000, "+10000-01-01T00:00:00.000Z"),
        (-62_135_596_800_001_000, "0000-12-31T23:59:59.999Z"),
        (-62_167_219_200_000_001, "-0001-12-31T23:59:59.999999Z"),
        (2**63 - 1, "+294247-01-10T04:00:54.775807Z"),
        (-(2**63), "-290308-12-21T19:59:05.224192Z"),
    ],
)
def test_timestamps_are_iso_8601_in_utc(micros: int, text: str) -> None:
    assert plain([micros], MICROSECONDS) == [text]
    assert as_json([micros, None], MICROSECONDS) == [f'"{text}"', None]


@given(st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)))
def test_timestamps_are_those_of_python(moment: dt.datetime) -> None:
    moment = moment.replace(tzinfo=dt.UTC)
    (text,) = plain([moment], MICROSECONDS)
    assert text is not None
    assert dt.datetime.fromisoformat(text) == moment


def test_dates_are_iso_8601_however_far_away() -> None:
    days = [0, -1, 2_932_896, 2_932_897, -719_163, -719_529, (1 << 31) - 1, -(1 << 31)]
    texts = ["1970-01-01", "1969-12-31", "9999-12-31", "+10000-01-01", "0000-12-31", "-0001-12-31"]
    texts += ["+5881580-07-11", "-5877641-06-23"]
    array = pa.array([*days, None], pa.int32()).cast(pa.date32())
    assert text_of(array).to_pylist() == [*texts, None]
    assert text_of(array[:1]).to_pylist() == texts[:1]


def test_a_timestamp_without_a_zone_is_printed_without_one() -> None:
    assert plain([0], pa.timestamp("us")) == ["1970-01-01T00:00:00.000"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_all_timestamps_of_all_units_have_all_of_their_digits(unit: str) -> None:
    extremes = [0, 1, -1, 1_001, 999_999_999, -1_000_001, (1 << 63) - 1, -(1 << 63)]
    texts = plain(extremes, pa.timestamp(unit))
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    for number, text in zip(extremes, texts, strict=True):
        date, _, time = text.partition("T")
        year, month, day = re.fullmatch(r"([+-]?\d+)-(\d\d)-(\d\d)", date).groups()
        cycles, within = divmod(int(year), 400)  # of the calendar
        days = dt.date(within + 400, int(month), int(day)).toordinal()
        days += cycles * 146_097 - dt.date(400 + 1970 % 400, 1, 1).toordinal()
        days -= 1970 // 400 * 146_097
        hours, minutes, seconds = time.split(":")
        whole, _, digits = seconds.partition(".")
        total = days * 86_400 + int(hours) * 3_600 + int(minutes) * 60 + int(whole)
        nanos = int(digits.ljust(9, "0"))
        assert (total * 10**9 + nanos) * per_second == number * 10**9, text


def test_a_timestamp_of_another_zone_is_printed_in_utc() -> None:
    assert plain([0], pa.timestamp("us", tz="Asia/Tokyo")) == ["1970-01-01T00:00:00.000Z"]


def test_numbers_and_truth_are_bare() -> None:
    assert plain([1, -2, None], pa.int16()) == ["1", "-2", None]
    assert plain([True, None]) == ["true", None]
    assert plain([Decimal("1.50")]) == ["1.50"]
    assert plain([0.1, 1e300]) == ["0.1", "1e+300"]
    assert as_json([1, None]) == ["1", None]
    assert as_json([True]) == ["true"]
    assert plain([None]) == [None]


def test_nan_and_infinity_are_strings_in_json() -> None:
    values = [float("nan"), float("inf"), float("-inf"), 1.5]
    assert as_json(values) == ['"NaN"', '"Infinity"', '"-Infinity"', "1.5"]


def test_what_is_nested_is_readable() -> None:
    headers = [[{"key": "a", "value": b"b"}, {"key": "c", "value": None}], [], None]
    assert plain(headers, HEADERS) == ["[{key: a, value: b}, {key: c, value: NULL}]", "[]", None]
    assert plain([[("a", 1)], None], pa.map_(pa.string(), pa.int32())) == ["{a: 1}", None]
    assert plain([{}, None], pa.struct([])) == ["{}", None]


def test_what_is_nested_is_json_in_json() -> None:
    headers = [[{"key": 'a"', "value": b"\xff"}, {"key": "c", "value": None}], [], None]
    assert as_json(headers, HEADERS) == [
        '[{"key":"a\\"","value":{"base64":"/w=="}},{"key":"c","value":null}]', "[]", None,
    ]  # fmt: skip
    assert as_json([[(1, None)]], pa.map_(pa.int32(), pa.int32())) == ['{"1":null}']
    lists = pa.map_(pa.list_(pa.int32()), pa.int32())
    assert as_json([[([1, 2], 3)]], lists) == ['{"[1,2]":3}']
    structs = pa.map_(pa.struct([("x", pa.string())]), pa.int32())
    assert as_json([[({"x": "a"}, 3)]], structs) == ['{"{\\"x\\":\\"a\\"}":3}']
    assert as_json([{}], pa.struct([])) == ["{}"]


@given(
    st.lists(
        st.none()
        | st.lists(
            st.none() | st.fixed_dictionaries({"a": st.none() | st.text(), "b": st.integers(0, 9)})
        )
    )
)
def test_json_is_what_it_was(rows: list[Any]) -> None:
    kind = pa.list_(pa.struct([("a", pa.string()), ("b", pa.int64())]))
    texts = as_json(rows, kind)
    assert [None if text is None else json.loads(text) for text in texts] == rows


def test_a_slice_is_printed_from_its_own_offset() -> None:
    for values, kind in (
        ([[{"key": "x", "value": b"y"}], None, [{"key": "a", "value": b"b"}]], HEADERS),
        ([[("x", 1)], None, [("a", 2)]], pa.map_(pa.string(), pa.int32())),
        ([{"a": 1}, None, {"a": 2}], None),
        ([b"\xff", None, b"b"], pa.binary()),
    ):
        array = pa.array(values, kind)
        assert text_of(array.slice(1)).to_pylist() == text_of(array).to_pylist()[1:]
        assert text_of(array.slice(3)).to_pylist() == []


def test_intervals_are_at_least_there() -> None:
    (text,) = plain([(1, 2, 3)], pa.month_day_nano_interval())
    assert text is not None
    assert "months=1" in text
