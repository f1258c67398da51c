"""Which batches and rows a range of offsets and timestamps selects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import BROKER_TIMESTAMPS, partitions, transactional_logs

import kafkajit
import kafkajit.testing as kt
from kafkajit.format.limits import MIN_INT64
from kafkajit.format.ranges import ALL, NOTHING, Range
from kafkajit.reader import SegmentReader
from kafkajit.records.batches import frame
from kafkajit.records.transactions import AbortedTransactions
from kafkajit.schema import BATCH_COLUMNS, record_schema, table_schema
from kafkajit.storage.source import Source, as_bytes
from kafkajit.walk.selection import EVERYTHING, Selection

# Ranges around the batches; most contain all of them.
OFFSETS = st.one_of(
    st.just(ALL), st.just(ALL), st.builds(Range, st.integers(-2, 20), st.integers(0, 25))
)
TIMES = st.one_of(st.just(ALL), st.builds(Range, BROKER_TIMESTAMPS, BROKER_TIMESTAMPS))


def test_everything_and_nothing() -> None:
    assert EVERYTHING.is_everything
    assert ALL.is_everything
    assert not EVERYTHING.judges_rows
    assert not NOTHING
    for selection in (Selection(Range(3)), Selection(timestamps=Range(last=3)), Selection(NOTHING)):
        assert not selection.is_everything
        assert selection.judges_rows
    assert not Selection(committed=True).is_everything
    assert not Selection(committed=True).judges_rows


def selected(log: bytes, selection: Selection, **stretch: int) -> list[dict[str, Any]]:
    reader = SegmentReader(Source(log), selection=selection, **stretch)
    read = reader.records(record_schema(["value", "offset", "timestamp"]), batch_rows=2)
    return [
        {"value": value, "offset": offset, "timestamp": timestamp}
        for rows in read
        for value, offset, timestamp in zip(
            rows["value"].to_pylist(),
            rows["offset"].to_pylist(),
            rows["timestamp"].cast(pa.int64()).to_pylist(),
            strict=True,
        )
    ]


@given(partitions(), OFFSETS, TIMES)
def test_a_selection_is_the_rows_in_its_ranges(
    segments: dict[int, bytes], offsets: Range, timestamps: Range
) -> None:
    for log in segments.values():
        assert selected(log, Selection(offsets, timestamps)) == [
            {name: row[name] for name in ("value", "offset", "timestamp")}
            for row in reference.rows(log)
            if offsets.first <= row["offset"] <= offsets.last
            and timestamps.first <= row["timestamp"] <= timestamps.last
        ]


@given(partitions(), OFFSETS, TIMES)
def test_a_batch_is_dropped_only_if_it_holds_nothing_that_is_asked_for(
    segments: dict[int, bytes], offsets: Range, timestamps: Range
) -> None:
    for log in segments.values():
        batches = frame(as_bytes(log)).batches
        kept = Selection(offsets, timestamps).batches(batches)
        for batch, is_kept in zip(reference.read_batches(log)[0], kept.tolist(), strict=True):
            within = batch.base_offset <= offsets.last and offsets.first <= (
                batch.base_offset + batch.last_offset_delta
            )
            # A header has the smallest timestamp only if all records have the same.
            at_least = batch.max_timestamp if batch.timestamp_type == 1 else MIN_INT64
            later = batch.max_timestamp >= timestamps.first and at_least <= timestamps.last
            assert is_kept == (within and later)


@given(transactional_logs())
def test_of_committed_batches_none_is_a_marker_or_aborted(segments: dict[int, bytes]) -> None:
    logs = list(segments.values())
    entries, stable = reference.transactions(logs)
    aborted = AbortedTransactions(
        *(
            np.array([getattr(entry, name) for entry in entries], dtype=np.int64)
            for name in AbortedTransactions._fields
        )
    )
    selection = Selection(Range(last=stable - 1), committed=True, aborted=aborted)
    kept = [row["offset"] for log in logs for row in selected(log, selection)]
    assert kept == [row["offset"] for row in reference.committed_rows(logs)]


LOG = b"".join(
    kt.batch(
        [kt.Record(value=b"%d" % (3 * place + i), timestamp=1000 * place + i) for i in range(3)],
        base_offset=3 * place,
        base_timestamp=1000 * place,
        codec=codec,
    )
    for place, codec in enumerate(kt.CODECS)
)


def test_what_cannot_match_is_neither_checked_nor_decompressed() -> None:
    spoilt = bytearray(LOG)
    for batch in reference.read_batches(LOG)[0][1:]:  # their headers stay right
        spoilt[batch.position + 61 : batch.position + batch.size] = bytes(batch.size - 61)
    for selection in (Selection(Range(last=2)), Selection(Range(last=2), Range(last=2))):
        rows = selected(bytes(spoilt), selection)
        assert [row["offset"] for row in rows] == [0, 1, 2]
    with pytest.raises(kafkajit.CorruptRecordError):
        selected(bytes(spoilt), Selection(Range(last=3)))


def test_offset_and_timestamp_need_not_be_among_the_columns() -> None:
    for names in (["value"], ["key"], ["topic"], ["headers", "position"]):
        reader = SegmentReader(Source(LOG), selection=Selection(Range(4, 7), Range(last=2000)))
        rows = pa.Table.from_batches(reader.records(record_schema(names)))
        assert rows.schema.names == names
        assert rows.num_rows == 3


def test_batches_are_selected_by_their_headers() -> None:
    reader = SegmentReader(Source(LOG), selection=Selection(Range(4, 7)))
    table = pa.Table.from_batches(reader.batches(table_schema(BATCH_COLUMNS)))
    assert table["baseOffset"].to_pylist() == [3, 6]


def test_a_selection_of_nothing_reads_to_the_end() -> None:
    reader = SegmentReader(Source(LOG), selection=Selection(NOTHING))
    assert list(reader.records(record_schema(["offset"]))) == []
    assert reader.position == len(LOG)


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_a_selections_record_batches_have_at_most_so_many_rows(batch_rows: int) -> None:
    reader = SegmentReader(Source(LOG), selection=Selection(Range(1, 13)))
    read = list(reader.records(record_schema(["offset"]), batch_rows=batch_rows))
    assert all(0 < rows.num_rows <= batch_rows for rows in read)
    assert pa.Table.from_batches(read)["offset"].to_pylist() == list(range(1, 14))
