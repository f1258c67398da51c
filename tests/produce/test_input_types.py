from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exporting import records_in
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
from kafkajit.produce.inputs.numbers import integer_of, integers
from kafkajit.produce.inputs.plain_arrays import bytes_of
from kafkajit.produce.inputs.row_sizes import pieces, sizes_of
from kafkajit.produce.inputs.rows import BadInputError
from kafkajit.produce.inputs.times import millisecond_of, times

pytestmark = pytest.mark.whole
UTC = dt.UTC
WORDS = ["a", None, "é" * 20, ""]
BYTES = [b"\x00\xff", None, b"", b"x" * 20]
LISTS = [[1, 2], None, [], [3]]
PAIRS = [[("k", 1), ("k", 2)], None, []]


def binary(kind: pa.DataType) -> tuple[pa.Array, list[bytes | None]]:
    return pa.array(BYTES, kind), BYTES


def text(array: pa.Array) -> tuple[pa.Array, list[bytes | None]]:
    return array, [None if word is None else word.encode() for word in array.to_pylist()]


def one(array: pa.Array, *words: str | None) -> tuple[pa.Array, list[bytes | None]]:
    return array, [None if word is None else word.encode() for word in words]


# A column of values, and the bytes of the records.
COLUMNS: dict[str, tuple[pa.Array, list[bytes | None]]] = {
    "binary": binary(pa.binary()),
    "large_binary": binary(pa.large_binary()),
    "binary_view": binary(pa.binary_view()),
    "fixed_size_binary": (pa.array([b"\x00\xff", None], pa.binary(2)), [b"\x00\xff", None]),
    "string": text(pa.array(WORDS)),
    "large_string": text(pa.array(WORDS, pa.large_string())),
    "string_view": text(pa.array(WORDS, pa.string_view())),
    "dictionary": text(pa.array([*WORDS, *WORDS]).dictionary_encode()),
    "dictionary of bytes": (pa.array([b"\xff", None]).dictionary_encode(), [b"\xff", None]),
    "runs": one(pa.RunEndEncodedArray.from_arrays([2, 3], ["a", None]), "a", "a", None),
    "uuid": (pa.array([b"\xff" * 16, None], pa.uuid()), [b"\xff" * 16, None]),
    "json": one(pa.array(['{"a": 1.0}', None], pa.json_()), '{"a": 1.0}', None),
    "null": one(pa.nulls(2), None, None),
    "bool": one(pa.array([True, False, None]), "true", "false", None),
    "int8": one(pa.array([-128, None], pa.int8()), "-128", None),
    "int64": one(pa.array([-(2**63), 2**63 - 1]), str(-(2**63)), str(2**63 - 1)),
    "uint64": one(pa.array([2**64 - 1], pa.uint64()), str(2**64 - 1)),
    "half": one(pa.array(np.array([1.5, 65504], np.float16)), "1.5", "65504.0"),
    "float": one(pa.array([0.1, 7], pa.float32()), "0.1", "7.0"),
    "double": one(pa.array([0.1, 7.0, 1e22, -0.0]), "0.1", "7.0", "1e+22", "-0.0"),
    "no number": one(pa.array([float("nan"), float("-inf")]), "NaN", "-Infinity"),
    "decimal": one(pa.array([decimal.Decimal("-1.50"), None]), "-1.50", None),
    "decimal256": one(pa.array([decimal.Decimal(10) ** 60], pa.decimal256(61, 0)), "1" + "0" * 60),
    "negative scale": one(pa.array([decimal.Decimal("1E+3")], pa.decimal128(5, -2)), "1000"),
    "decimal64, negative scale": one(
        pa.array([decimal.Decimal("-99E+2")], pa.decimal64(4, -2)), "-9900"
    ),
    "decimal32, negative scale": one(
        pa.array([decimal.Decimal("-99E+2")], pa.decimal32(4, -2)), "-9900"
    ),
    "date32": one(pa.array([dt.date(1969, 12, 31)]), "1969-12-31"),
    "date64": one(pa.array([dt.date(2026, 1, 2)], pa.date64()), "2026-01-02"),
    "time32": one(pa.array([dt.time(1, 2, 3)], pa.time32("ms")), "01:02:03.000"),
    "time64": one(pa.array([1], pa.time64("ns")), "00:00:00.000000001"),
    "timestamp": one(pa.array([-1], pa.timestamp("us")), "1969-12-31T23:59:59.999999"),
    "instant": one(pa.array([-1], pa.timestamp("ns", "UTC")), "1969-12-31T23:59:59.999999999Z"),
    "zone": one(pa.array([0], pa.timestamp("s", "Asia/Tokyo")), "1970-01-01T00:00:00Z"),
    "list": one(pa.array(LISTS), "[1,2]", None, "[]", "[3]"),
    "large_list": one(pa.array(LISTS, pa.large_list(pa.int8())), "[1,2]", None, "[]", "[3]"),
    "list_view": one(pa.array(LISTS, pa.list_view(pa.int8())), "[1,2]", None, "[]", "[3]"),
    "large_list_view": one(
        pa.array(LISTS, pa.large_list_view(pa.int8())), "[1,2]", None, "[]", "[3]"
    ),
    "overlapping views": one(
        pa.ListViewArray.from_arrays(pa.array([2, 0, 1]), pa.array([1, 3, 0]), pa.array([7, 8, 9])),
        "[9]", "[7,8,9]", "[]",
    ),
    "fixed_size_list": one(pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), "[1,2]", None),
    "map": one(pa.array(PAIRS, pa.map_(pa.string(), pa.int8())), '{"k":1,"k":2}', None, "{}"),
    "map of numbers": one(pa.array([[(7, "a")]], pa.map_(pa.int32(), pa.string())), '{"7":"a"}'),
    "struct": one(pa.array([{"b": b"\xff", "t": 'a"'}, None]), '{"b":"/w==","t":"a\\""}', None),
    "no field": one(pa.array([{}], pa.struct([])), "{}"),
}  # fmt: skip

# Columns that have no plain value.
REFUSED: dict[str, tuple[pa.Array, str]] = {
    "duration": (pa.array([1], pa.duration("s")), "cast it to a number or to text"),
    "interval": (
        pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        "cast it to a number or to text",
    ),
    "union": (
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
        "cast it to a number or to text",
    ),
    "extension": (
        pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1], pa.int8())),
        "extension type arrow.bool8 has no plain value: cast it to int8",
    ),
    "variant": (
        pa.array([{"metadata": b"\1\0\0", "value": None, "typed_value": 42}]).cast(
            pa.struct(
                [("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.int32())]
            )
        ),
        "a column of VARIANT values has no plain value: cast it to text",
    ),
    "in a struct": (pa.array([{"d": dt.timedelta(1)}]), "cast it to a number or to text"),
    "names": (
        pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
        "several fields of one name",
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_value_is_its_bytes_or_exact_text(name: str) -> None:
    column, wanted = COLUMNS[name]
    assert bytes_of(column).to_pylist() == wanted
    # A slice of a larger column, which has values before and behind it.
    around = pa.concat_arrays([column, column, column]).slice(len(column), len(column))
    assert bytes_of(around).to_pylist() == wanted
    assert len(sizes_of(around)) == len(column)


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "no number"])
def test_a_value_in_a_struct_is_the_same_in_json(name: str) -> None:
    column, wanted = COLUMNS[name]
    twice = pa.StructArray.from_arrays([pa.concat_arrays([column, column])], ["x"])
    found = [json.loads(cell)["x"] for cell in bytes_of(twice.slice(len(column))).to_pylist()]
    kind = str(column.type)
    for cell, value in zip(found, wanted, strict=True):
        if value is None or "binary" in kind or "uuid" in kind:
            assert (cell is None) == (value is None)
        elif isinstance(cell, str):
            assert cell == value.decode()
        else:
            assert cell == json.loads(value)


def file_of(column: pa.Array, kind: str) -> bytes:
    """A file with the column `value`."""
    return written(pa.table({"value": column}), kind)


def written(table: pa.Table, kind: str) -> bytes:
    """A file of Parquet, or Arrow's file or stream."""
    sink = io.BytesIO()
    if kind == "parquet":
        pq.write_table(table, sink)
    else:
        new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
        with new(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def imported(folder: Path, content: bytes, suffix: str) -> list[dict[str, Any]]:
    """The records of an import."""
    (folder / f"rows{suffix}").write_bytes(content)
    plan = kafkajit.import_files(folder / f"rows{suffix}", folder / "l", topic="t", partitions=1)
    plan.apply()
    return records_in(folder / "l")["t-0"]


# Types that a writer of Parquet does not have, or writes as others.
_NOT_IN_PARQUET = {"runs", "list_view", "large_list_view", "overlapping views", "no field"}
_NOT_IN_PARQUET |= {"decimal64, negative scale", "decimal32, negative scale"}
_NOT_IN_PARQUET |= {"half", "null", "date64", "negative scale", "timestamp", "zone", "uuid", "json"}


@pytest.mark.parametrize("kind", ["parquet", "file", "stream"])
def test_every_type_is_imported_from_files(kind: str, tmp_path: Path) -> None:
    for name, (column, wanted) in COLUMNS.items():
        if kind == "parquet" and name in _NOT_IN_PARQUET:
            continue
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        suffix = ".parquet" if kind == "parquet" else ".arrow"
        rows = imported(folder, file_of(column, kind), suffix)
        assert [row["value"] for row in rows] == wanted, name


def test_intervals_of_parquet_are_an_error(tmp_path: Path) -> None:
    """Arrow reads them as 12 bytes, and writes none."""
    duckdb.sql(
        f"COPY (SELECT INTERVAL 1 DAY AS other, INTERVAL 1 DAY AS value) TO '{tmp_path}/a.parquet'"
    )
    with pytest.raises(ValueError, match=r"a\.parquet: column 'value' has intervals"):
        kafkajit.import_files(
            tmp_path / "a.parquet", tmp_path / "logs", topic="t", partitions=1
        ).apply()
    assert not (tmp_path / "logs").exists()
    duckdb.sql(f"COPY (SELECT INTERVAL 1 DAY AS \"my.value\") TO '{tmp_path}/c.parquet'")
    with pytest.raises(ValueError, match=r"c\.parquet: column 'my\.value' has intervals"):
        kafkajit.import_files(
            tmp_path / "c.parquet",
            tmp_path / "logs",
            topic="t",
            partitions=1,
            value_column="my.value",
        ).apply()
    duckdb.sql(f"COPY (SELECT INTERVAL 1 DAY AS other, 'v' AS value) TO '{tmp_path}/b.parquet'")
    kafkajit.import_files(
        tmp_path / "b.parquet", tmp_path / "logs", topic="t", partitions=1
    ).apply()
    ((row,),) = records_in(tmp_path / "logs").values()
    assert row["value"] == b"v"


@pytest.mark.parametrize(
    ("kind", "inexact"), [(np.float16, 2**11), (np.float32, 2**24), (np.float64, 2**53)]
)
def test_floats_are_times_only_if_they_cannot_have_been_rounded(kind: Any, inexact: int) -> None:
    exact = [inexact - 1, 1 - inexact]
    assert times(pa.array(np.array(exact, kind))).cast(pa.int64()).to_pylist() == exact
    with pytest.raises(BadInputError, match="may have been rounded"):
        times(pa.array(np.array([inexact], kind)))


@pytest.mark.parametrize("name", REFUSED)
def test_other_types_are_an_error_with_file_and_column(name: str, tmp_path: Path) -> None:
    column, words = REFUSED[name]
    with pytest.raises(ValueError, match=r"rows\.arrow: column 'value': ") as caught:
        imported(tmp_path, file_of(column, "file"), ".arrow")
    assert words in str(caught.value)


def test_spark_legacy_timestamps_beyond_the_year_2262_are_right(tmp_path: Path) -> None:
    far = dt.datetime(3000, 1, 1)
    table = pa.table({"value": ["v"], "timestamp": pa.array([far], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    (row,) = imported(tmp_path, (tmp_path / "a.parquet").read_bytes(), ".parquet")
    assert row["timestamp"] == far.replace(tzinfo=UTC).timestamp() * 1000


# Times, and their milliseconds since 1970; None is an error.
TIMES: list[tuple[Any, int | None]] = [
    (pa.array([1], pa.timestamp("s")), 1000),
    (pa.array([-1], pa.timestamp("us", "UTC")), -1),
    (pa.array([-1_000_001], pa.timestamp("ns")), -2),
    (pa.array([1_999_999], pa.timestamp("ns", "Asia/Tokyo")), 1),
    (pa.array([2**62], pa.timestamp("s")), None),
    (pa.array([-(2**62)], pa.timestamp("s")), None),
    (pa.array([2**63 - 1], pa.timestamp("ms")), 2**63 - 1),
    (pa.array([-1], pa.date32()), -86_400_000),
    (pa.array([-86_400_000], pa.date64()), -86_400_000),
    (pa.array([5], pa.int16()), 5),
    (pa.array([2**63], pa.uint64()), None),
    (pa.array([5.0]), 5),
    (pa.array([5.5]), None),
    (pa.array([float("nan")]), None),
    (pa.array([2.0**60]), None),
    (pa.array([decimal.Decimal("5.00")]), 5),
    (pa.array(["1970-01-01T00:00:00.0019999Z"]).dictionary_encode(), 1),
    (pa.array(["1970-01-01"], pa.string_view()), 0),
    (pa.array([True]), None),
    (pa.array([b"x"], pa.binary()), None),
]


@pytest.mark.parametrize("number", range(len(TIMES)))
def test_times_of_every_type_are_right_or_an_error(number: int, tmp_path: Path) -> None:
    column, wanted = TIMES[number]
    table = pa.table({"value": ["v"], "timestamp": column})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    if wanted is None:
        with pytest.raises(ValueError, match=r"rows\.arrow.*: column 'timestamp': "):
            imported(tmp_path, sink.getvalue(), ".arrow")
    else:
        (row,) = imported(tmp_path, sink.getvalue(), ".arrow")
        assert row["timestamp"] == wanted


# Text, and its millisecond; None is an error.
TEXTS = [
    ("1969-12-31T23:59:59.999999Z", -1),
    ("2026-01-01T23:59:59.999001", 1_767_311_999_999),
    ("2026-01-01 00:00", 1_767_225_600_000),
    ("2026-01-01T00:00:00,5+01:00", 1_767_222_000_500),
    ("2026-01-01T00:00:00-0130", 1_767_231_000_000),
    ("2024-02-29", 1_709_164_800_000),
    ("+10000-01-01T00:00:00.000Z", 253_402_300_800_000),
    ("-0001-12-31T00:00:00.000Z", -62_167_305_600_000),
    ("0000-01-01", -62_167_219_200_000),
    ("1767225600000", 1_767_225_600_000),
    ("-5", -5),
    ("2026", 2026),
    ("2026-02-29", None),
    ("2026-01-01T24:00:00Z", None),
    ("2026-01-01T00:00:60Z", None),
    ("2026-01-01T00:00:00+24:00", None),
    ("yesterday", None),
    ("", None),
    ("5.5", None),
    ("292278995-01-01", None),
]


@pytest.mark.parametrize(("text", "wanted"), TEXTS)
def test_times_as_text(text: str, wanted: int | None) -> None:
    assert millisecond_of(text) == wanted


@given(
    st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)),
    st.integers(0, 9),
    st.sampled_from(["", "Z", "+01:00", "-11:30"]),
    st.sampled_from("T "),
)
def test_text_is_the_millisecond_that_python_has(
    moment: dt.datetime, digits: int, zone: str, between: str
) -> None:
    text = (
        moment.isoformat(between, "seconds")
        + f".{moment.microsecond:06}000"[: digits + 1] * bool(digits)
        + zone
    )
    cut = moment.replace(microsecond=int(f"{moment.microsecond:06}000"[:digits].ljust(6, "0")[:6]))
    offset = dt.timedelta(hours={"+01:00": 1, "-11:30": -11.5}.get(zone, 0))
    wanted = (cut - offset - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1)
    assert times(pa.array([text])).cast(pa.int64()).to_pylist() == [wanted]
    assert millisecond_of(text) == wanted


@given(
    st.integers(-(2**65), 2**65),
    st.integers(0, 3),
    st.sampled_from(["", ".0", "e0", "E+0", ".00e0"]),
)
def test_an_integer_is_exact_or_none(number: int, zeros: int, end: str) -> None:
    wanted = number if -(2**63) <= number < 2**63 else None
    assert integer_of(f"{number}{end}".encode()) == wanted
    assert integer_of(f"{number}{'0' * zeros}e-{zeros}".encode()) == wanted
    assert integer_of(f"{number}.{'0' * zeros}1".encode()) is None


@pytest.mark.parametrize("text", ["1.70041E+12", "5e2", "-1.0e3", "1E18", "1.70041234E12", "1e012"])
def test_an_integer_without_all_of_its_digits_may_have_been_rounded(text: str) -> None:
    """Excel writes milliseconds so."""
    for read in (integers, times):
        with pytest.raises(BadInputError, match="may have been rounded: it has"):
            read(pa.array([text]))


@pytest.mark.parametrize("text", ["1.700412345678E+12", "5.00e2", "5e0", "0e9", "50e-1"])
def test_an_exponent_is_exact_with_all_digits(text: str) -> None:
    assert integers(pa.array([text])).to_pylist() == [int(float(text))]


@pytest.mark.parametrize("text", ["9" * 4400 + "e9", "1e" + "9" * 4400, "1e-3"])
def test_a_number_of_any_length_is_an_error_of_ours(text: str) -> None:
    with pytest.raises(BadInputError, match=r"is not an integer of 64 bits|may have been rounded"):
        integers(pa.array([text]))


@pytest.mark.parametrize(("name", "codec"), [("a.csv.gz", "gzip"), ("a.jsonl.zst", "zstd")])
def test_a_compressed_file_without_a_byte_was_cut_off(
    name: str, codec: str, tmp_path: Path
) -> None:
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match=f"the file is empty, and {codec} of nothing is not"):
        kafkajit.import_files(tmp_path / name, tmp_path / "logs", topic="t", partitions=1)


HEADERS = [[{"key": "a", "value": b"\xff"}, {"key": "a", "value": None}], None, []]
_PAIR = [("key", pa.string()), ("value", pa.binary())]
_WANTED = [[("a", b"\xff"), ("a", None)], [], []]
# Columns of headers.
HEADER_TYPES = {
    "list": pa.list_(pa.struct(_PAIR)),
    "large": pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())])),
    "views": pa.list_view(pa.struct([("key", pa.string_view()), ("value", pa.binary_view())])),
    "other order": pa.large_list_view(pa.struct(_PAIR[::-1])),
}


def header_columns() -> dict[str, pa.Array]:
    columns = {name: pa.array(HEADERS, kind) for name, kind in HEADER_TYPES.items()}
    pairs = [None if some is None else [tuple(pair.values()) for pair in some] for some in HEADERS]
    columns["map"] = pa.array(pairs, pa.map_(pa.string(), pa.binary()))
    columns["null"] = pa.nulls(3)
    coded = [[{"key": "a", "valueBase64": "/w=="}, {"key": "a", "valueBase64": None}], None, []]
    columns["base64"] = pa.array(coded)
    texts = [json.dumps(coded[0]), None, "[]"]
    columns["text"] = pa.array(texts)
    columns["views of text"] = pa.array(texts, pa.string_view())
    columns["dictionary"] = pa.array(texts).dictionary_encode()
    return columns


@pytest.mark.parametrize("name", header_columns())
def test_headers_of_every_type(name: str, tmp_path: Path) -> None:
    column = header_columns()[name]
    # The rows are a slice, with others around them.
    column = pa.concat_arrays([column, column]).slice(3)
    table = pa.table({"value": ["v"] * 3, "headers": column})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    rows = imported(tmp_path, sink.getvalue(), ".arrow")
    found = [[tuple(header.values()) for header in row["headers"] or []] for row in rows]
    assert found == ([[], [], []] if name == "null" else _WANTED)


# Headers that are refused, and the row, counted from 1.
WRONG_HEADERS: list[tuple[pa.Array, str]] = [
    (pa.array([[], [{"key": "a", "value": "x"}, {"key": None, "value": "x"}]]), "row 2: "),
    (pa.array([[{"key": "a", "value": "x"}], [None]]), "row 2: "),
    (pa.array([[{"key": "a", "value": "x", "z": 1}]]), "these have 'z', too"),
    (pa.array([[{"key": "a", "value": 1}]]), "the value of a header cannot be int64"),
    (pa.array([[{"key": 1, "value": "x"}]]), "the key of a header cannot be int64"),
    (pa.array([["a"]]), "must be a list of structs of key and value"),
    (pa.array([[{"key": "a"}]]), "must have a key and a value"),
    (pa.array(["[]", "{"]), "row 2: column 'headers': headers are not JSON"),
    (pa.array([[{"key": "a", "valueBase64": "x"}]]), "'x' is not base64"),
    (pa.array([7]), "must be a list of structs"),
]


@pytest.mark.parametrize("number", range(len(WRONG_HEADERS)))
def test_wrong_headers_are_an_error(number: int, tmp_path: Path) -> None:
    column, words = WRONG_HEADERS[number]
    table = pa.table({"value": ["v"] * len(column), "headers": column})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(ValueError, match=r"rows\.arrow.*column 'headers': ") as caught:
        imported(tmp_path, sink.getvalue(), ".arrow")
    assert words in str(caught.value)


@pytest.mark.parametrize("value", [True, "True", "TRUE", "1", 1, 1.0])
def test_a_boolean_has_many_spellings(value: Any, tmp_path: Path) -> None:
    columns = {"topic": ["t"], "partition": ["0"], "offset": [5.0], "value": ["v"]}
    columns |= {"producerId": [7], "producerEpoch": [0], "isTransactional": [value]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    kafkajit.import_files(tmp_path / "a.parquet", tmp_path / "logs").apply()
    (log,) = (tmp_path / "logs" / "t-0").glob("*.log")
    (row,) = kafkajit.read_records(log).to_pylist()
    assert (row["isTransactional"], row["offset"]) == (True, 5)


@pytest.mark.parametrize("value", ["yes", "", 2])
def test_another_spelling_is_an_error(value: Any, tmp_path: Path) -> None:
    columns = {"topic": ["t"], "partition": [0], "offset": [5], "value": ["v"]}
    pq.write_table(pa.table(columns | {"isTransactional": [value]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet, row 1: column 'isTransactional': .* true"):
        kafkajit.import_files(tmp_path / "a.parquet", tmp_path / "logs").apply()


BIG = b"x" * (1 << 20)
# Columns of a few bytes that stand for gigabytes.
BOMBS: dict[str, Callable[[], pa.Array]] = {
    "dictionary": lambda: pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(4000, np.int8)), pa.array([BIG])
    ),
    "runs": lambda: pa.RunEndEncodedArray.from_arrays(
        pa.array([4000], pa.int32()), pa.array([BIG])
    ),
    "views": lambda: pa.ListViewArray.from_arrays(
        pa.array([0] * 4000, pa.int32()), pa.array([100_000] * 4000, pa.int32()), pa.nulls(100_000)
    ),
    "in a struct": lambda: pa.StructArray.from_arrays(
        [pa.DictionaryArray.from_arrays(pa.array(np.zeros(4000, np.int8)), pa.array([BIG]))], ["x"]
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_batch_is_written_out_in_pieces(name: str) -> None:
    batch = pa.RecordBatch.from_arrays([BOMBS[name]()], ["value"])
    cut = list(pieces(batch))
    assert [first for first, _ in cut] == [*np.cumsum([0, *(p.num_rows for _, p in cut)])[:-1]]
    assert sum(piece.num_rows for _, piece in cut) == 4000
    assert max(piece.num_rows for _, piece in cut) <= 100


def test_uuids_are_their_bytes_in_parquet(tmp_path: Path) -> None:
    key = uuid.uuid4()
    table = pa.table({"value": pa.array([key.bytes], pa.uuid())})
    pq.write_table(table, tmp_path / "a.parquet")
    (row,) = imported(tmp_path, (tmp_path / "a.parquet").read_bytes(), ".parquet")
    assert row["value"] == key.bytes


def test_a_stream_has_its_end_marker_and_nothing_behind_it(tmp_path: Path) -> None:
    stream = file_of(pa.array(["a"]), "stream")
    assert len(imported(tmp_path, stream, ".arrow")) == 1
    with pytest.raises(ValueError, match=r"b\.arrow: the stream has no end marker: it was cut off"):
        planned(tmp_path / "b.arrow", stream[:-8])
    with pytest.raises(ValueError, match=r"c\.arrow: [0-9,]+ bytes follow the end of the stream"):
        planned(tmp_path / "c.arrow", stream + stream)


def planned(path: Path, content: bytes) -> list[Any]:
    """The partitions of a plan."""
    path.write_bytes(content)
    return kafkajit.import_files(path, path.parent / "m", topic="t", partitions=1).partitions


@pytest.mark.parametrize("kind", ["parquet", "file", "stream"])
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_type_that_arrow_does_not_know_is_an_error(
    kind: str, tmp_path: Path, *, is_nested: bool
) -> None:
    """It shows only how the values are stored, as of the periods of pandas the number of months."""
    months = pa.field("value", pa.int64(), metadata={"ARROW:extension:name": "pandas.period"})
    column = pa.array([{"value": 600}], pa.struct([months])) if is_nested else pa.array([600])
    field = pa.field("value", column.type, metadata=None if is_nested else months.metadata)
    table = pa.table([column], schema=pa.schema([field]))
    suffix = ".parquet" if kind == "parquet" else ".arrow"
    words = "extension type pandas.period has no plain value: cast it to int64"
    with pytest.raises(ValueError, match=words):
        imported(tmp_path, written(table, kind), suffix)


def test_the_checksums_of_parquet_are_compared(tmp_path: Path) -> None:
    """Spark and others write one for each page, which readers ignore by default."""
    sink = pa.BufferOutputStream()
    value = b"kafka" * 1000  # too long for statistics
    table = pa.table({"value": [value]})
    pq.write_table(table, sink, write_page_checksum=True, compression="none", use_dictionary=False)
    content = sink.getvalue().to_pybytes()
    assert content.count(value) == 1
    with pytest.raises(ValueError, match="CRC checksum verification failed"):
        imported(tmp_path, content.replace(b"kafka", b"Kafka", 1), ".parquet")
    (row,) = imported(tmp_path, content, ".parquet")
    assert row["value"] == value


def test_a_word_that_a_dictionary_lacks_is_an_error_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow does not compare the numbers in a damaged file with its dictionary."""
    words = pa.DictionaryArray.from_arrays(pa.array([5], pa.int32()), pa.array(["a"]), safe=False)
    table = pa.table({"value": words})
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: iter(table.to_batches()))
    with pytest.raises(ValueError, match=r"rows\.parquet cannot be .*: index 5 is out"):
        imported(tmp_path, file_of(pa.array(["a"]), "parquet"), ".parquet")


@pytest.mark.parametrize(
    "kind",
    [
        "interval day to second",
        {"type": "array", "elementType": "interval year to month", "containsNull": True},
        {"type": "struct", "fields": [{"name": "a", "type": "interval", "nullable": True}]},
    ],
)
def test_intervals_of_spark_are_refused(kind: Any, tmp_path: Path) -> None:
    """Its Parquet files have them as numbers, and tell the type only in the footer."""
    fields = [
        {"name": "key", "type": "long", "nullable": True},
        {"name": "value", "type": kind, "nullable": True},
    ]
    schema = {"org.apache.spark.sql.parquet.row.metadata": json.dumps({"fields": fields})}
    table = pa.table({"key": [1], "value": [93_784_000_000]}).replace_schema_metadata(schema)
    pq.write_table(table, tmp_path / "a.parquet")
    named: dict[str, Any] = {"topic": "t", "partitions": 1}
    with pytest.raises(ValueError, match="column 'value' has intervals"):
        kafkajit.import_files(tmp_path / "a.parquet", tmp_path / "logs", **named).apply()
    plan = kafkajit.import_files(
        tmp_path / "a.parquet", tmp_path / "logs", value_column="key", **named
    )
    plan.apply()
