"""Record batches as other programs read them, against readers of these formats."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.cli.sql.formats import csv_header, format_named, to_csv, to_json

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
BATCH = pa.record_batch(
    {
        "key": pa.array([b"k", None, b""]),
        "value": pa.array([b'say "hi"', b"\xff", b"a,b\nc"]),
        "offset": pa.array([1, 2, None]),
        "timestamp": pa.array([0, 1000, None], pa.timestamp("us", "UTC")),
        "headers": pa.array([[{"key": "a", "value": b"b"}], [], None], HEADERS),
        "isTransactional": pa.array([True, False, None]),
    }
)


def written(name: str, batches: list[pa.RecordBatch], out: Any = None) -> bytes:
    out = out or io.BytesIO()
    format_ = format_named(name, batches[0].schema)
    format_.write(out, map(format_.encode, batches))
    return out.getvalue()  # type: ignore[no-any-return]


def test_csv_tells_null_from_an_empty_text() -> None:
    assert written("csv", [BATCH]).decode() == (
        "key,value,offset,timestamp,headers,isTransactional\n"
        'k,"say ""hi""",1,1970-01-01T00:00:00.000Z,"[{""key"":""a"",""value"":""b""}]",true\n'
        ",X'FF',2,1970-01-01T00:00:00.001Z,[],false\n"
        '"","a,b\nc",,,,\n'
    )


def test_csv_of_several_batches_has_one_head() -> None:
    lines = written("csv", [BATCH, BATCH.slice(1, 1), BATCH.slice(0, 0)]).decode()
    assert lines.count("offset") == 1
    assert len(list(csv.reader(io.StringIO(lines)))) == 1 + 3 + 1


def test_csv_without_rows_has_a_head() -> None:
    assert written("csv", [BATCH.slice(0, 0)]).count(b"\n") == 1


def test_csv_may_have_no_head() -> None:
    format_ = format_named("csv", BATCH.schema, has_header=False)
    out = io.BytesIO()
    format_.write(out, [format_.encode(BATCH)])
    assert out.getvalue() == to_csv(BATCH)


def test_a_name_is_quoted_if_csv_needs_it() -> None:
    assert csv_header(["a", "max(a, b)", 'x"y']) == b'a,"max(a, b)","x""y"\n'


@given(st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=2), min_size=1))
def test_csv_is_read_back_unchanged(rows: list[list[str]]) -> None:
    # csv takes a lone carriage return for the end of a line, quoted or not, when it reads text.
    rows = [[text.replace("\r", "") for text in row] for row in rows]
    batch = pa.record_batch([pa.array(column) for column in zip(*rows, strict=True)], ["a", "b"])
    assert list(csv.reader(io.StringIO(to_csv(batch).decode(), newline=""))) == rows


def test_arrows_own_reader_reads_csv() -> None:
    options = pyarrow.csv.ConvertOptions(
        strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
    )
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    table = pyarrow.csv.read_csv(
        io.BytesIO(written("csv", [BATCH])), convert_options=options, parse_options=parse
    )
    assert table["key"].to_pylist() == ["k", None, ""]
    assert table["offset"].to_pylist() == [1, 2, None]


def test_json_has_an_object_for_each_row() -> None:
    rows = [json.loads(line) for line in written("json", [BATCH, BATCH]).splitlines()]
    assert len(rows) == 6
    assert rows[0] == {
        "key": "k",
        "value": 'say "hi"',
        "offset": 1,
        "timestamp": "1970-01-01T00:00:00.000Z",
        "headers": [{"key": "a", "value": "b"}],
        "isTransactional": True,
    }
    assert rows[1]["key"] is None
    assert rows[2]["headers"] is None


@given(st.lists(st.none() | st.text(), min_size=1), st.text())
def test_json_is_what_it_was(values: list[str | None], name: str) -> None:
    batch = pa.record_batch([pa.array(values, pa.string())], ["a"])
    lines = to_json(batch, [name]).decode().removesuffix("\n").split("\n")
    assert [json.loads(line) for line in lines] == [{name: value} for value in values]


def test_arrow_in_a_file_is_arrows_file_format(tmp_path: Path) -> None:
    path = tmp_path / "rows.arrow"
    format_ = format_named("arrow", BATCH.schema)
    with path.open("wb") as out:
        format_.write(out, map(format_.encode, [BATCH, BATCH]))
    assert pa.ipc.open_file(path).read_all() == pa.Table.from_batches([BATCH, BATCH])


class Pipe(io.BytesIO):
    """What cannot be sought."""

    def seekable(self) -> bool:
        return False


def test_arrow_in_a_pipe_is_a_stream() -> None:
    held = written("arrow", [BATCH, BATCH], Pipe())
    assert pa.ipc.open_stream(held).read_all() == pa.Table.from_batches([BATCH, BATCH])


@pytest.mark.parametrize("out", [io.BytesIO, Pipe])
def test_parquet_has_the_same_rows(out: Any) -> None:
    held = written("parquet", [BATCH, BATCH], out())
    table = pq.read_table(io.BytesIO(held))
    assert table.cast(BATCH.schema) == pa.Table.from_batches([BATCH, BATCH])


def test_parquet_gathers_batches_into_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkajit.cli.sql.formats._ROW_GROUP_BYTES", 8000)
    batch = pa.record_batch({"a": pa.array(range(100))})
    metadata = pq.ParquetFile(io.BytesIO(written("parquet", [batch] * 25))).metadata
    assert metadata.num_rows == 2500
    assert metadata.num_row_groups == 3


@pytest.mark.parametrize("name", ["csv", "json", "arrow", "parquet"])
def test_a_query_that_fails_at_once_writes_nothing(name: str) -> None:
    out = io.BytesIO()

    def fails() -> Any:
        raise ValueError("boom")
        yield

    with pytest.raises(ValueError, match="boom"):
        format_named(name, BATCH.schema).write(out, fails())
    assert b"key" not in out.getvalue() or name in ("arrow", "parquet")


def test_columns_of_one_name_are_kept() -> None:
    schema = pa.schema([("a", pa.int64()), ("a", pa.int64())])
    batch = pa.record_batch([pa.array([1]), pa.array([2])], names=["c0", "c1"])
    for name, expected in (("csv", b"a,a\n1,2\n"), ("json", b'{"a":1,"a":2}\n')):
        format_ = format_named(name, schema)
        out = io.BytesIO()
        format_.write(out, [format_.encode(batch)])
        assert out.getvalue() == expected
