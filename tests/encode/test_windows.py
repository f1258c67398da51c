from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkajit import InvalidRecordError
from kafkajit.encode import windows
from kafkajit.encode.windows import chunks_of, window_rows


def in_pieces(table: pa.Table, cuts: list[int]) -> list[pa.RecordBatch]:
    """The table as Arrow record batches that end at these rows."""
    ends = [0, *sorted(min(cut, table.num_rows) for cut in cuts), table.num_rows]
    return [
        piece
        for start, end in pairwise(ends)
        for piece in table.slice(start, end - start).combine_chunks().to_batches()
    ]


def rows_in(records: Any, *, whole_batches: bool = False) -> list[list[Any]]:
    """The first column of each chunk."""
    found = chunks_of(records, whole_batches=whole_batches)
    return [piece.column(0).to_pylist() for piece in found]


def test_a_table_a_record_batch_and_many_of_either_are_records() -> None:
    table = pa.table({"offset": [1, 2]})
    (batch,) = table.to_batches()
    for records in (table, batch):
        assert rows_in(records) == [[1, 2]]
    for records in ([table, table], iter([batch, batch]), [batch, table]):
        assert rows_in(records) == [[1, 2, 1, 2]]
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch, batch])
    assert rows_in(reader) == [[1, 2, 1, 2]]
    assert rows_in(table.slice(0, 0)) == rows_in([]) == rows_in(pa.table({})) == []


@pytest.mark.parametrize(
    ("records", "kind"),
    [
        ({"key": [b"a"]}, "dict"),
        (pa.chunked_array([[b"a"]]), "ChunkedArray"),
        ([{"key": b"a"}], "dict"),
        (None, "NoneType"),
        ([b"a"], "bytes"),
    ],
)
def test_what_holds_no_records_is_a_type_error(records: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"records must be an Arrow table .*not {kind}: pyarrow"):
        rows_in(records)


def test_a_column_that_no_record_has_is_an_error_that_names_those_that_there_are() -> None:
    for rows in (["a"], []):
        table = pa.table({"keys": pa.array(rows, pa.string())})
        with pytest.raises(ValueError, match="unknown column 'keys'; there are: key, value, topic"):
            rows_in(table)
    twice = pa.Table.from_arrays([pa.array(["a"])] * 2, names=["key", "key"])
    with pytest.raises(ValueError, match="a column is named twice"):
        rows_in(twice)


def test_records_have_the_same_columns_from_first_to_last() -> None:
    with pytest.raises(ValueError, match="records change their columns"):
        rows_in([pa.table({"key": [b"a"]}), pa.table({"value": [b"a"]})])
    with pytest.raises(ValueError, match="records change their columns"):
        rows_in([pa.table({"key": [b"a"]}), pa.table({"key": ["a"]})])


# Small tables


def test_small_pieces_are_put_together_and_large_ones_left_alone() -> None:
    small, large = [1] * 100, [2] * 5000
    table = {1: pa.table({"offset": small}), 2: pa.table({"offset": large})}
    assert rows_in([table[1]] * 3) == [small * 3]
    assert rows_in([table[1], table[1], table[2], table[1], table[2]]) == [
        small * 2,
        large,
        small,
        large,
    ]


def test_small_pieces_are_put_together_as_long_as_they_are_few() -> None:
    lengths = [len(rows) for rows in rows_in([pa.table({"offset": range(1000)})] * 200)]
    assert sum(lengths) == 200_000
    assert max(lengths) < windows._WINDOW_ROWS + 1000
    assert len(lengths) == 4


def test_joined_tables_of_large_values_have_a_limit() -> None:
    piece = pa.table({"value": [bytes(1 << 20)] * 3})
    found = list(chunks_of([piece] * 20, whole_batches=False))
    assert sum(part.num_rows for part in found) == 60
    assert max(part.nbytes for part in found) < windows._WINDOW_BYTES + (4 << 20)
    assert len(found) > 4


def test_a_piece_with_one_large_value_is_not_small() -> None:
    large = pa.table({"value": [bytes(9 << 20)]})
    small = pa.table({"value": [b"a"]})
    found = chunks_of([small, large, small, small], whole_batches=False)
    assert [part.num_rows for part in found] == [1, 1, 2]


# Chunks of whole batches


@given(st.lists(st.integers(1, 9), max_size=12), st.lists(st.integers(0, 60), max_size=8))
def test_chunks_are_cut_where_named_batches_end(counts: list[int], cuts: list[int]) -> None:
    names = [name for name, count in enumerate(counts) for _ in range(count)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "_FEW_ROWS", 0)
        found = rows_in(
            in_pieces(pa.table({"position": pa.array(names, pa.int64())}), cuts),
            whole_batches=True,
        )
    assert [name for piece in found for name in piece] == names
    assert all(found)
    assert all(piece[-1] != following[0] for piece, following in pairwise(found))


def test_a_batch_is_named_by_base_offset_and_position_together() -> None:
    rows = pa.table({"offset": [0, 1, 2, 3], "baseOffset": [0, 0, 0, 2], "position": [0, 0, 9, 9]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "_FEW_ROWS", 0)
        found = rows_in(in_pieces(rows, [1, 2, 3]), whole_batches=True)
    assert found == [[0, 1], [2], [3]]


def test_tables_that_end_with_a_batch_are_not_cut() -> None:
    table = pa.table({"position": np.repeat(np.arange(100), 100)})
    lengths = [len(rows) for rows in rows_in(in_pieces(table, [5000]), whole_batches=True)]
    assert lengths == [5000, 5000]


def test_where_no_batch_is_named_pieces_are_left_as_they_are() -> None:
    table = pa.table({"offset": np.arange(10_000)})
    lengths = [len(rows) for rows in rows_in(in_pieces(table, [5000]), whole_batches=True)]
    assert lengths == [5000, 5000]


def test_a_batch_of_more_than_an_arrow_array_holds_is_an_error() -> None:
    zeros = np.zeros(1 << 30, dtype=np.uint8)  # never touched
    value = pa.Array.from_buffers(
        pa.binary(),
        1,
        [None, pa.py_buffer(np.array([0, zeros.size], np.int32)), pa.py_buffer(zeros)],
    )
    piece = pa.record_batch({"value": value, "position": pa.array([7])})
    with pytest.raises(InvalidRecordError, match="are more than 2 GiB: leave out baseOffset"):
        list(chunks_of([piece] * 3, whole_batches=True))


# Windows


def test_a_window_of_large_rows_has_fewer_rows() -> None:
    def rows(**columns: Any) -> int:
        return window_rows(pa.record_batch(columns))

    many = 100_000
    assert rows(offset=range(many)) == windows._WINDOW_ROWS
    assert rows(key=[b"k" * 10] * many) == windows._WINDOW_ROWS
    assert 7000 < rows(value=[bytes(1 << 10)] * many) <= 1 << 13
    assert rows(key=[bytes(1 << 10)] * 50, value=[bytes(1 << 10)] * 50) in range(4000, 4097)
    assert rows(value=[bytes(9 << 20)]) == 1
    headers = pa.array([[("a", bytes(1 << 10))]] * 50, pa.map_(pa.string(), pa.binary()))
    assert rows(headers=headers) < 8200


def test_a_dictionarys_entries_count_for_each_row_that_names_one() -> None:
    column = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(1000, dtype=np.int8)), pa.array([bytes(1 << 20)])
    )
    assert window_rows(pa.record_batch({"value": column})) == 7
    assert window_rows(pa.record_batch({"value": column.slice(0, 5)})) == 7
    empty = pa.DictionaryArray.from_arrays(pa.nulls(9, pa.int8()), pa.array([], pa.binary()))
    assert window_rows(pa.record_batch({"value": empty})) == windows._WINDOW_ROWS
