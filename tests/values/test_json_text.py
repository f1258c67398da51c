"""Columns → JSON, compared with what Python's json reads of it and with Python's own text."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
from typing import Any

import pyarrow as pa
import pytest
from avro_schemas import AT_ONCE, COUNT, DEEP, VALUES, Author, encoded, named_types

import kafkajit
from kafkajit.values.json_text import json_text
from kafkajit.values.layout import Types
from kafkajit.values.variant import variants


def as_json(value: Any) -> Any:
    """What JSON has for a value of Python's, numbers apart."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else f"{'-' * (value < 0)}Infinity"
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {key: as_json(item) for key, item in value}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    return value


def same(found: Any, array: pa.Array) -> bool:
    """Whether JSON has the rows of an array; a map without entries is an object."""
    return bool(_same(found, [as_json(row) for row in array.to_pylist()]))


def _same(found: Any, expected: Any) -> bool:
    if expected == [] and found == {}:
        return True
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(_same, found, expected))
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            _same(found[key], item) for key, item in expected.items()
        )
    return type(found) is type(expected) and found == expected


def read(array: pa.Array) -> list[Any]:
    texts = json_text(array)
    texts.validate(full=True)
    assert [text is None for text in texts.to_pylist()] == array.is_null().to_pylist()
    return [None if text is None else json.loads(text) for text in texts.to_pylist()]


@pytest.mark.parametrize("first", range(0, COUNT, AT_ONCE))
def test_json_has_what_columns_have(first: int) -> None:
    """Columns of random schemas, whole and sliced."""
    for seed in range(first, first + AT_ONCE, 5):
        author = Author(seed)
        schema = author.record()
        named = named_types(schema)
        content = encoded(schema, *(author.value(schema, named) for _ in range(VALUES)))
        found = kafkajit.decode_values(content, schema, framing="bare", recursion=DEEP)
        # Arrow has 32 bits for a float, whose shortest digits are not those of the double.
        array = pa.concat_arrays([found, pa.nulls(1, found.type)])
        for part in (array, array[3:9], array[len(array) - 1 :], array[:0]):
            rows = read(part)
            if '"float"' not in json.dumps(schema):
                assert same(rows, part), seed


def test_numbers_keep_their_digits() -> None:
    floats = pa.array([1.0, -0.0, 0.1, 1e300, 5e-324, math.nan, math.inf, -math.inf])
    texts = ["1.0", "-0.0", "0.1", "1e+300", "5e-324", '"NaN"', '"Infinity"', '"-Infinity"']
    assert json_text(floats).to_pylist() == texts
    assert json_text(pa.array([0.1], pa.float32())).to_pylist() == ["0.1"]
    numbers = [2**63 - 1, -(2**63), 0]
    assert json_text(pa.array(numbers)).to_pylist() == [*map(str, numbers)]
    for precision, scale in ((9, 2), (38, 38), (38, 0), (76, 10)):
        type_ = (pa.decimal128 if precision <= 38 else pa.decimal256)(precision, scale)
        most = decimal.Decimal(f"{'9' * precision}e-{scale}")
        least = decimal.Decimal(f"-1e-{scale}")
        texts = json_text(pa.array([most, least, decimal.Decimal(0)], type_)).to_pylist()
        assert texts == [format(number, f".{scale}f") for number in (most, least, 0 * most)]


def test_times_are_iso_8601_with_the_digits_of_their_unit() -> None:
    for unit, text in (
        ("s", "1969-12-31T23:59:59"),
        ("ms", "1969-12-31T23:59:59.999"),
        ("us", "1969-12-31T23:59:59.999999"),
        ("ns", "1969-12-31T23:59:59.999999999"),
    ):
        array = pa.array([-1], pa.timestamp(unit))
        assert json_text(array).to_pylist() == [f'"{text}"']
        assert json_text(array.cast(pa.timestamp(unit, "UTC"))).to_pylist() == [f'"{text}Z"']
    ends = pa.array([-(2**63), 2**63 - 1], pa.timestamp("ms"))
    # As Java's Instant writes them.
    first, last = "-292275055-05-16T16:47:04.192", "+292278994-08-17T07:12:55.807"
    assert json_text(ends).to_pylist() == [f'"{first}"', f'"{last}"']
    days = [datetime.date(1, 1, 1), datetime.date(1900, 3, 1), datetime.date(2000, 2, 29)]
    days += [datetime.date(9999, 12, 31), datetime.date(1999, 12, 31), datetime.date(2024, 1, 1)]
    assert json_text(pa.array(days)).to_pylist() == [f'"{day.isoformat()}"' for day in days]
    times = pa.array([0, 86_399_999, -1, 86_400_000], pa.time32("ms"))
    assert json_text(times).to_pylist() == ['"00:00:00.000"', '"23:59:59.999"', "-1", "86400000"]


def test_text_is_escaped_and_stays_on_one_line() -> None:
    texts = ["".join(map(chr, range(32))), '"\\/', "é\u2028😀", "x" * 100_000, ""]
    array = pa.array([{'a\n"': text} for text in texts])
    written = json_text(array).to_pylist()
    assert [json.loads(text)['a\n"'] for text in written] == texts
    assert not any(sign < " " for text in written for sign in text)
    assert "é" in written[2]


def test_a_type_may_be_nested_deep() -> None:
    array = pa.array([5])
    for _ in range(150):
        array = pa.ListArray.from_arrays([0, 1], array)
    assert json_text(array).to_pylist() == ["[" * 150 + "5" + "]" * 150]


def test_many_rows_are_written_in_parts() -> None:
    rows = [{"id": i, "lines": [str(i)] * (i % 3)} for i in range(40_000)]
    assert read(pa.array(rows)) == rows


def test_a_type_without_json_is_refused() -> None:
    with pytest.raises(TypeError, match="columns of the type month_day_nano"):
        json_text(pa.nulls(1, pa.month_day_nano_interval()).fill_null((1, 2, 3)))


def test_durations_and_numbers_without_a_sign_are_as_in_protobufs_json() -> None:
    durations = pa.array([1_500_000, -2, 0, None], pa.duration("us"))
    assert json_text(durations).to_pylist() == ['"1.500000s"', '"-0.000002s"', '"0s"', None]
    assert json_text(pa.array([90], pa.duration("s"))).to_pylist() == ['"90s"']
    assert json_text(pa.array([2**64 - 1], pa.uint64())).to_pylist() == [str(2**64 - 1)]


def variant_rows(array: pa.Array) -> list[Any]:
    pyspark = pytest.importorskip("pyspark.sql.types")
    found = variants(array)
    found.validate(full=True)
    return [
        None if row is None else pyspark.VariantVal(row["value"], row["metadata"]).toPython()
        for row in found.to_pylist()
    ]


@pytest.mark.parametrize("first", range(0, COUNT, AT_ONCE))
def test_a_variant_has_what_columns_have(first: int) -> None:
    from kafkajit.values.own_schemas import OwnSchemasDecoder

    for seed in range(first, first + AT_ONCE, 10):
        author = Author(seed)
        schema = author.record()
        named = named_types(schema)
        content = encoded(schema, *(author.value(schema, named) for _ in range(VALUES)))
        content = [b"\0\0\0\0\1" + value for value in content]
        columns = OwnSchemasDecoder(None, {1: schema}, lambda array: array, types=Types.SPARK)
        array = columns.decode(pa.array(content)).values
        array = pa.concat_arrays([array, pa.nulls(1, array.type)])
        for part in (array, array[3:9], array[:0]):
            rows = [as_json(row) for row in variant_rows(part)]
            assert same(rows, part), seed


def test_a_variant_keeps_types_and_the_last_of_two_equal_keys() -> None:
    day, moment = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)
    money = decimal.Decimal("-12.30")
    type_ = pa.map_(pa.string(), pa.map_(pa.string(), pa.int32()))
    inner = [("z", 1), ("a", 2), ("z", 3)]
    columns = {
        "day": pa.array([day] * 2),
        "moment": pa.array([moment] * 2, pa.timestamp("us", "UTC")),
        "money": pa.array([money] * 2, pa.decimal128(9, 2)),
        "much": pa.array([money] * 2, pa.decimal128(38, 10)),
        "long": pa.array(["x" * 64, "y" * 63]),
        "map": pa.array([[("b", inner), ("a", None), ("b", inner)], []], type_),
    }
    first, second = variant_rows(pa.StructArray.from_arrays([*columns.values()], [*columns]))
    assert first["map"] == {"a": None, "b": {"a": 2, "z": 3}}
    assert second["map"] == {}
    assert (first["day"], first["moment"], first["money"]) == (day, moment, money)
    assert first["much"] == money
    assert (first["long"], second["long"]) == ("x" * 64, "y" * 63)
