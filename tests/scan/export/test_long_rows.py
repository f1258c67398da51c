"""Long rows are written in pieces, and are the same text."""

from __future__ import annotations

import io
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.scan.export import formats, long_rows
from kafkajit.scan.export.long_rows import csv_line, is_long, json_line, slices
from kafkajit.scan.export.options import ExportOptions
from kafkajit.scan.export.text_rows import as_text, json_lines
from kafkajit.scan.options import ScanOptions

TEXTS = st.none() | st.text(st.sampled_from('a"\\\n\r\0\x1f,é€𝄞 '), max_size=20)
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def options_for(format_: str) -> ExportOptions:
    return ExportOptions(scan=ScanOptions(("sample:",)), format=format_)


@st.composite
def rows(draw: st.DrawFn) -> pa.RecordBatch:
    """One row, in front of which another one may have been cut off."""
    texts = [draw(TEXTS), draw(TEXTS)]
    lists = [None, [{"key": "k", "value": b'x"'}, {"key": '"', "value": None}]]
    columns = {
        "topic": pa.array(["t,", "u"]),
        "offset": pa.array([7, None], pa.int64()),
        "timestamp": pa.array([0, 1], pa.timestamp("ms", tz="UTC")),
        "key": pa.array(texts, draw(st.sampled_from([pa.string(), pa.large_string()]))),
        "value": pa.array([text and text.encode() for text in texts], pa.binary()),
        "headers": pa.array(lists, HEADERS),
    }
    names = draw(st.lists(st.sampled_from(list(columns)), min_size=1, unique=True))
    both = pa.record_batch({name: columns[name] for name in names})
    return both.slice(draw(st.integers(0, 1)), 1)


@given(rows(), st.integers(0, 9), st.sampled_from(["text", "base64"]))
def test_a_row_in_pieces_is_the_same_text(row: pa.RecordBatch, most: int, encoding: str) -> None:
    table = pa.Table.from_batches([row])
    (text,) = as_text(table, encoding, is_csv=False).to_batches()
    assert b"".join(json_line(text, most)) == json_lines(pa.Table.from_batches([text]))
    (text,) = as_text(table, encoding).to_batches()
    write = partial(formats._csv, header=False)
    assert b"".join(csv_line(text, write, most)) == write(text)


@given(st.lists(st.binary(max_size=30), max_size=40), st.integers(1, 200))
def test_slices_are_the_rows_in_their_order(values: list[bytes], most: int) -> None:
    batch = pa.record_batch({"value": pa.array(values, pa.binary())})
    found = list(slices(batch, most))
    assert pa.Table.from_batches(found, batch.schema).equals(pa.Table.from_batches([batch]))
    assert all(part.num_rows == 1 or part.nbytes <= most for part in found if batch.num_rows)


@pytest.mark.parametrize("format_", ["csv", "jsonl", "avro"])
def test_a_file_with_long_rows_is_the_same(format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [b"x" * size for size in (0, 5, 70, 3, 0, 200)]
    table = pa.table({"offset": pa.array(range(6)), "value": pa.array(values, pa.binary())})

    def written() -> bytes:
        sink = pa.BufferOutputStream()
        options = options_for(format_)
        writer = formats.file_writer(sink, table.schema, options, {})
        writer.write(table)
        writer.close({})
        content: bytes = sink.getvalue().to_pybytes()
        return content

    whole = written()
    most = 50
    monkeypatch.setattr(formats, "slices", partial(slices, most=most))
    monkeypatch.setattr(formats, "is_long", partial(is_long, most=most))
    monkeypatch.setattr(formats, "json_line", partial(json_line, most=most))
    monkeypatch.setattr(formats, "csv_line", partial(csv_line, most=most))
    monkeypatch.setattr("kafkajit.scan.export.avro_file._BLOCK_BYTES", 1)
    if format_ == "avro":
        whole = written()  # a block for each row, as slices have
        monkeypatch.setattr("kafkajit.scan.export.avro_file.slices", partial(slices, most=most))
    assert written() == whole


def test_a_piece_ends_between_characters() -> None:
    text = "é€𝄞" * 5
    for most in range(8):
        found: list[Any] = list(long_rows._pieces(pa.array([text]), most))
        assert "".join(piece[0].as_py() for piece in found) == text
        for piece in found:
            piece.validate(full=True)


@pytest.mark.parametrize("size", [1, formats._LONG + 1])
def test_parquet_keeps_no_copies_of_long_texts_to_compare(size: int) -> None:
    key = pa.array([b"k" * size])
    headers = pa.array([[{"key": "k", "value": b"x"}]], HEADERS)
    typed = pa.array([{"id": "i" * size}])
    table = pa.table({"key": key, "value": key, "typed": typed, "headers": headers})
    sink = io.BytesIO()
    writer = formats.file_writer(sink, table.schema, options_for("parquet"), {})
    writer.write(table)
    writer.close({})
    group = pq.ParquetFile(sink).metadata.row_group(0)
    compared = {
        group.column(number).path_in_schema
        for number in range(group.num_columns)
        if group.column(number).is_stats_set
    }
    assert compared == ({"key", "typed.id"} if size == 1 else set())
    assert pq.read_table(sink).equals(table)


def test_one_row_of_avro_is_encoded_as_several_are() -> None:
    from kafkajit.values.encode import encode_values

    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "a", "type": ["null", "bytes"]},
            {"name": "b", "type": {"type": "array", "items": "long"}},
        ],
    }
    items = [{"a": None, "b": [1, 2]}, {"a": b"xy", "b": []}, {"a": b"", "b": [3]}]
    array = pa.array(items, pa.struct([("a", pa.binary()), ("b", pa.list_(pa.int64()))]))
    together = encode_values(array, schema).to_pylist()
    alone = [encode_values(array.slice(at, 1), schema)[0].as_py() for at in range(3)]
    assert alone == together
    assert np.size(alone) == 3
