"""Batches whose records are unchanged are copied from their log; the others are written."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from corpus import DATA, NO_JIT, split
from encoding import T, log_of_all_kinds
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
from kafkajit import CorruptRecordError, encode_batches
from kafkajit import testing as kt

LOG = log_of_all_kinds()
RECORDS = kafkajit.read_records(LOG)
BATCHES = kafkajit.read_record_batches(LOG)
SOURCE = {
    row["position"]: LOG[row["position"] : row["position"] + row["sizeInBytes"]]
    for row in BATCHES.to_pylist()
}
# Each changes one record of a batch; the first two do not.
CHANGES: dict[str, Any] = {
    "nothing": lambda row: row,
    "nothing that is a record's": lambda row: row | {"producerId": 99, "magic": 2},
    "is gone": lambda _: None,
    "a key": lambda row: row | {"key": b"x"},
    "a longer value": lambda row: row | {"value": (row["value"] or b"") + b"x"},
    "no value": lambda row: row | {"value": None if row["value"] is not None else b""},
    "a time": lambda row: row | {"timestamp": row["timestamp"].replace(year=2001)},
    "an offset": lambda row: row | {"offset": row["offset"] + 1},
    "a header": lambda row: row | {"headers": [{"key": "k", "value": b"v"}]},
}
ROWS = RECORDS.to_pylist()
# Those of v2 in a batch of four, with CreateTime.
CHANGED = [at for at, row in enumerate(ROWS) if row["magic"] == 2 and row["controlType"] is None]


def encoded(table: pa.Table, source: Any = LOG, cuts: tuple[int, ...] = ()) -> bytes:
    ends = sorted({0, table.num_rows, *(cut for cut in cuts if cut < table.num_rows)})
    pieces = [table.slice(a, b - a) for a, b in pairwise(ends)]
    return b"".join(map(bytes, kafkajit.iter_encoded_batches(pieces, source=source)))


@given(
    st.dictionaries(st.sampled_from(CHANGED), st.sampled_from(sorted(CHANGES)), max_size=4),
    st.sets(st.integers(0, len(ROWS) - 1), max_size=8),
    st.lists(st.integers(0, 33), max_size=4).map(tuple),
    st.booleans(),
)
def test_all_batches_but_those_with_a_change_come_out_byte_for_byte(
    changes: dict[int, str], gone: set[int], cuts: tuple[int, ...], has_windows: bool
) -> None:
    rows, touched = [], {ROWS[at]["position"] for at in gone}
    for at, row in enumerate(ROWS):
        what = changes.get(at, "nothing") if at not in gone else "is gone"
        new = CHANGES[what](row)
        if what == "an offset" and at + 1 < len(ROWS) and ROWS[at + 1]["offset"] == new["offset"]:
            new = row
        if new != row and not what.startswith("nothing"):
            touched.add(row["position"])
        rows += [] if new is None else [new]
    table = pa.Table.from_pylist(rows, RECORDS.schema)
    with pytest.MonkeyPatch.context() as patch:
        if has_windows:
            patch.setattr("kafkajit.encode.windows._WINDOW_ROWS", 3)
            patch.setattr("kafkajit.encode.windows._FEW_ROWS", 2)
        found = split(encoded(table, cuts=cuts))
    written = encode_batches(table, batches=BATCHES).to_pybytes()
    left = {row["position"] for row in rows}
    expected = [
        position
        for position, batch in zip(SOURCE, BATCHES.to_pylist(), strict=True)
        if batch["magic"] == 2 or position in left  # v0 and v1 have no empty batches
    ]
    for position, mine, stated in zip(expected, found, split(written), strict=True):
        assert mine == (stated if position in touched else SOURCE[position])


@pytest.mark.parametrize(
    "folder",
    [
        *(f"v2/{codec}-0" for codec in ("gzip", "snappy", "lz4", "zstd")),
        *(f"old/v1-{codec}-0" for codec in ("gzip", "snappy", "lz4")),
    ],
)
def test_batches_of_other_compressors_are_copied(folder: str) -> None:
    path = DATA / folder / "00000000000000000000.log"
    log = path.read_bytes()
    assert encoded(kafkajit.read_records(path), str(path)) == log


def test_times_that_no_column_holds_stay_in_batches_that_are_copied() -> None:
    records = [kt.Record(b"k", b"v", timestamp=T + at) for at in range(3)]
    log = kt.batch(records, timestamp_type=1, max_timestamp=T + 9, base_timestamp=T)
    table = kafkajit.read_records(log)
    assert encoded(table, log) == log
    assert encode_batches(table, batches=kafkajit.read_record_batches(log)).to_pybytes() != log


def test_a_damaged_batch_of_the_source_is_never_copied() -> None:
    log = kt.batch([kt.Record(b"k", b"v")])
    table = kafkajit.read_records(log)
    with pytest.raises(CorruptRecordError):
        encoded(table, log[:-1] + b"x")


def test_a_source_has_its_own_batches_and_codecs() -> None:
    with pytest.raises(ValueError, match="pass either source or batches"):
        encode_batches(RECORDS, batches=BATCHES, source=LOG)
    with pytest.raises(ValueError, match="source keeps the compression of each batch"):
        encode_batches(RECORDS, source=LOG, compression_type="gzip")
    with pytest.raises(ValueError, match="batches already set producer_id"):
        kafkajit.iter_encoded_batches(RECORDS, source=LOG, producer_id=7)


def test_many_batches_take_little_memory_and_come_from_a_file(tmp_path: Path) -> None:
    size = 40 if NO_JIT else 4000
    path = tmp_path / "00000000000000000000.log"
    one = [
        kt.batch([kt.Record(value=bytes([at % 251]) * size)] * 50, base_offset=at * 50)
        for at in range(100)
    ]
    path.write_bytes(b"".join(one))
    kept = (rows.filter(pc.not_equal(rows["offset"], 2600)) for rows in kafkajit.iter_records(path))
    parts = split(b"".join(map(bytes, kafkajit.iter_encoded_batches(kept, source=path))))
    assert [at for at, part in enumerate(parts) if part != one[at]] == [52]
