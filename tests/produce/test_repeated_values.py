"""Values that repeat take little room in a file, and much in memory."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafkajit.produce.inputs import arrow_rows, row_sizes
from kafkajit.produce.inputs.input_files import input_files
from kafkajit.produce.inputs.readers import rows_in

COLUMNS = ["topic", "value", "headers"]
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.string())]))
LONG = "a" * (1 << 20)


def _write(path: Path, table: pa.Table) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd", store_schema=False)
        return
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(path, table.schema, options=options) as writer:
        writer.write_table(table)


def _table(rows: int, value: str, headers: int = 0) -> pa.Table:
    words = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([value]))
    of_each = [{"key": "h", "value": LONG}] * headers
    return pa.table(
        {
            "topic": ["orders"] * rows,
            "value": words,
            "headers": pa.array([of_each] * rows, HEADERS),
        }
    )


def _read(path: Path) -> int:
    count, before = 0, pa.total_allocated_bytes()
    for file in input_files(str(path)).files:
        for rows in rows_in(file, COLUMNS):
            assert pa.total_allocated_bytes() - before < 300 << 20
            count += rows.count
    return count


@pytest.mark.parametrize(("value", "headers"), [(LONG, 0), ("a", 20)], ids=["value", "headers"])
def test_a_value_that_repeats_is_read_in_little_memory(
    value: str, headers: int, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    _write(path, _table(40 if headers else 1500, value, headers))
    assert _read(path) == (40 if headers else 1500)


def test_words_that_repeat_are_the_same_as_words_that_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [None, *(f"{n % 7}" * (n % 5) for n in range(300)), None]
    table = pa.table({"topic": ["orders"] * 302, "value": texts})
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path, row_group_size=100)

    def values() -> list[str | None]:
        (file,) = input_files(str(path)).files
        parts = [rows.columns["value"].to_pylist() for rows in rows_in(file, COLUMNS)]
        return [value for part in parts for value in part]

    assert values() == texts
    monkeypatch.setattr(arrow_rows, "_BATCH_BYTES", 100)
    assert values() == texts


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_row_that_is_too_large_is_an_error_with_its_place(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"rows{suffix}"
    parts = [_table(1, "a"), _table(1, "b" * 5000)]
    _write(path, pa.concat_tables(parts).unify_dictionaries().combine_chunks())
    monkeypatch.setattr(row_sizes, "MOST_RECORD", 4000)
    words = r"rows\.\w+, row 2: it has 5,0\d\d bytes, more than 4,000"
    with pytest.raises(ValueError, match=words):
        _read(path)
    monkeypatch.setattr(arrow_rows, "MOST_RECORD", 100)
    if suffix == ".parquet":
        with pytest.raises(ValueError, match=r"rows.parquet: a row has .* bytes, more than 100"):
            _read(path)
