from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pyarrow as pa
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
from kafkajit import encode_batches, iter_encoded_batches, pieces


def in_pieces(table: pa.Table, cuts: list[int]) -> list[pa.RecordBatch]:
    """The table as Arrow record batches that end at these rows."""
    ends = [0, *sorted(cuts), table.num_rows]
    return [
        piece
        for start, end in pairwise(ends)
        for piece in table.slice(start, end - start).combine_chunks().to_batches()
    ]


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows at a time, as millions of rows are encoded."""
    monkeypatch.setattr(pieces, "_WINDOW_ROWS", 8)
    monkeypatch.setattr(pieces, "_FEW_ROWS", 4)


# Where batches begin and end, whatever the rows come in


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("rows_before", [1, 7, 8, 9, 16])
@pytest.mark.parametrize("goes_back", [True, False], ids=["back", "twice"])
def test_an_offset_behind_no_other_is_an_error_at_a_windows_edge_too(
    rows_before: int, goes_back: bool
) -> None:
    offsets = list(range(100, 100 + rows_before))
    offsets.append(99 if goes_back else offsets[-1])
    message = f"row {rows_before}: offset {offsets[-1]} is not behind {offsets[-2]} of the record"
    with pytest.raises(kafkajit.InvalidOffsetError, match=message):
        encode_batches(pa.table({"offset": offsets}), batch_records=4)


@pytest.mark.usefixtures("small_windows")
def test_an_error_names_the_row_of_the_whole_table() -> None:
    table = pa.table({"offset": [*range(20), None]})
    with pytest.raises(kafkajit.InvalidRecordError, match="row 20: offset is null"):
        encode_batches(table, batch_records=1)
    pieces = iter(in_pieces(table, [6, 12]))
    with pytest.raises(kafkajit.InvalidRecordError, match="row 20: offset is null"):
        list(iter_encoded_batches(pieces, batch_records=1))
    named = pa.table({"position": [*[0] * 9, *[1] * 9, None]})
    with pytest.raises(kafkajit.InvalidRecordError, match="row 18: position is null"):
        encode_batches(pa.Table.from_batches(in_pieces(named, [6, 12])))


def batches_of(log: bytes | pa.Buffer) -> Iterator[tuple[int, list[int]]]:
    """The base offset of each batch, and its records' offsets."""
    for batch in reference.read_batches(bytes(log))[0]:
        yield batch.base_offset, [record.offset for record in reference.read_records(batch)]


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=8),
    st.lists(st.integers(0, 96), max_size=6),
    st.booleans(),
)
def test_records_stay_in_the_batches_that_they_name_however_they_come(
    counts: list[int], cuts: list[int], has_windows: bool
) -> None:
    names = [name for name, count in enumerate(counts) for _ in range(count)]
    table = pa.table({"position": names, "offset": range(len(names))})
    expected, base = [], 0
    for count in counts:
        expected.append((base, list(range(base, base + count))))
        base += count
    with pytest.MonkeyPatch.context() as patch:
        if has_windows:
            patch.setattr(pieces, "_WINDOW_ROWS", 8)
            patch.setattr(pieces, "_FEW_ROWS", 4)
        cuts = [cut for cut in cuts if cut < len(names)]
        parts = list(iter_encoded_batches(in_pieces(table, cuts)))
    assert list(batches_of(b"".join(map(bytes, parts)))) == expected
