from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable
from pathlib import Path

import fuzz_inputs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus import NO_JIT
from parquet_footers import LIST, STRUCT, footer_of, value_of, with_footer

import kafkajit
from kafkajit.produce.inputs import row_sizes
from kafkajit.produce.inputs.parquet_footer import row_groups_in


def test_mutated_files_are_read_or_an_error_that_names_them(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count = 3 if NO_JIT else 200 if request.config.getoption("--thorough") else 15
    for suffix, content in fuzz_inputs.SEEDS:
        sound = content()
        path = tmp_path / f"sound{suffix}"
        path.write_bytes(sound)
        assert fuzz_inputs.read(path, tmp_path) == "3 partitions"
        for seed in range(count):
            path = tmp_path / f"{seed}{suffix}"
            path.write_bytes(fuzz_inputs.mutated(sound, random.Random(seed)))
            fuzz_inputs.read(path, tmp_path)  # raises if it is another error


def test_every_cut_file_is_an_error_or_has_fewer_records(tmp_path: Path) -> None:
    for suffix, content in fuzz_inputs.SEEDS:
        sound = content()
        is_text = suffix in (".csv", ".jsonl")
        for size in range(1, len(sound), max(1, len(sound) // (3 if NO_JIT else 25))):
            path = tmp_path / f"cut{suffix}"
            path.write_bytes(sound[:size])
            found = fuzz_inputs.read(path, tmp_path)
            # Lines of text, and blocks of Avro, have no end that could be missing.
            assert found == "error" or is_text or suffix == ".avro", (suffix, size)


@pytest.mark.skipif(NO_JIT, reason="large")
def test_a_line_of_gigabytes_is_an_error_in_bounded_time(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.jsonl.gz", "wb", 1) as file:
        file.write(b'{"value":"')
        for _ in range(300):
            file.write(b"x" * (1 << 20))
    with pytest.raises(ValueError, match=r"a\.jsonl\.gz, line 1: a record has more than 256 MiB"):
        kafkajit.import_files(tmp_path / "a.jsonl.gz", tmp_path / "logs", topic="t", partitions=1)


MANY = 2**31 - 1
SOME = 1_234_567


def run(count: int, text: str) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([count], pa.int64()), pa.array([text]))


def list_of(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, MANY], pa.int32()), values)


# Columns, and the words of the error.
CLAIMS: dict[str, tuple[Callable[[], pa.Array], str]] = {
    "rows of nulls": (
        lambda: pa.nulls(SOME),
        "a batch claims 1,099,511,627,776 rows in 0 bytes",
    ),
    "rows of a run": (
        lambda: run(SOME, "x"),
        "a batch claims 1,099,511,627,776 rows in 17 bytes",
    ),
    "nulls": (
        lambda: list_of(pa.nulls(MANY)),
        "row 1: it has 17,179,869,184 bytes, more than 268,435,456",
    ),
    "as many nulls": (
        lambda: pa.FixedSizeListArray.from_arrays(pa.nulls(MANY), MANY),
        "row 1: it has 17,179,869,184 bytes",
    ),
    "structs": (
        lambda: list_of(pa.StructArray.from_buffers(pa.struct([]), MANY, [None])),
        "row 1: it has 17,179,869,184 bytes",
    ),
    "a run": (
        lambda: list_of(run(MANY, "")),
        "lists claim 2,147,483,647 elements, which their bytes do not have",
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_rows_and_elements_without_bytes_are_not_believed(tmp_path: Path, claim: str) -> None:
    make, words = CLAIMS[claim]
    column = make()
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(path, pa.schema([("value", column.type)])) as file:
        file.write_batch(pa.record_batch({"value": column}))
    # Arrow writes no array of more than 2 Gi rows.
    some, many = (struct.pack("<q", count) for count in (SOME, 1 << 40))
    path.write_bytes(path.read_bytes().replace(some, many))
    with pytest.raises(ValueError, match=r"a\.arrow") as error:
        kafkajit.import_files(path, tmp_path / "logs", topic="t", partitions=1)
    assert words in str(error.value)


def parquet_file() -> bytes:
    return fuzz_inputs.parquet("none")


def histogram_of_another_column(content: bytes) -> bytes:
    footer = footer_of(content)
    for chunk in value_of(value_of(footer, 4)[1][0], 1)[1]:
        # Size statistics, with a histogram of definition levels that the column does not have.
        value_of(chunk, 3).append([16, STRUCT, [[3, LIST, [6, [1] * 9]]]])
    return with_footer(content, footer)


def more_columns_than_the_schema(content: bytes) -> bytes:
    footer = footer_of(content)
    chunks = value_of(value_of(footer, 4)[1][0], 1)[1]
    chunks.append(chunks[0])
    return with_footer(content, footer)


def test_a_footer_that_contradicts_itself_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(more_columns_than_the_schema(parquet_file()))
    with pytest.raises(ValueError, match="row group 0 has 9 columns, and the schema 8"):
        kafkajit.import_files(path, tmp_path / "logs", new_offsets=True)


def test_statistics_of_another_column_do_not_end_the_process(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(histogram_of_another_column(parquet_file()))
    assert fuzz_inputs.read(path, tmp_path)


def test_rows_that_pyarrow_leaves_out_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    words = pa.list_(pa.dictionary(pa.int32(), pa.string()))
    with pq.ParquetWriter(
        path,
        pa.schema([("key", pa.string()), ("value", words)]),
        dictionary_pagesize_limit=1,
        data_page_size=1,
        write_batch_size=1,
    ) as writer:
        for group in ([[]], [["a"], ["b"]]):
            keys = [str(number) for number in range(len(group))]
            writer.write_table(pa.table({"key": keys, "value": pa.array(group, words)}))
    plan = kafkajit.import_files(path, tmp_path / "logs", topic="t", partitions=1)
    with pytest.raises(ValueError, match="pyarrow reads 0 of the 1 rows of row group 0"):
        plan.apply()
    assert not (tmp_path / "logs").exists()


def test_a_footer_is_read_as_pyarrow_reads_it(tmp_path: Path) -> None:
    options = [
        {"compression": "zstd", "row_group_size": 7},
        {"use_dictionary": False, "write_page_index": True},
        {"data_page_version": "2.0", "store_schema": False, "write_statistics": False},
        {"store_decimal_as_integer": True, "column_encoding": {"offset": "DELTA_BINARY_PACKED"}},
    ]
    for number, more in enumerate(options):
        path = tmp_path / f"{number}.parquet"
        if "column_encoding" in more:
            more["use_dictionary"] = False
        pq.write_table(fuzz_inputs.table(), path, **more)
        metadata = pq.read_metadata(path)
        expected = []
        for at in range(metadata.num_row_groups):
            group = metadata.row_group(at)
            columns = [group.column(column) for column in range(group.num_columns)]
            chunks = [
                (
                    one.path_in_schema,
                    ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY"].index(
                        one.physical_type
                    ),
                    any("DICTIONARY" in encoding for encoding in one.encodings),
                    one.num_values,
                    one.total_uncompressed_size,
                )
                for one in columns
            ]
            expected.append((group.num_rows, group.total_byte_size, chunks))
        with pa.OSFile(str(path)) as file:
            assert row_groups_in(file) == expected


def test_sizes_of_nested_lists_do_not_overflow() -> None:
    kind = pa.null()
    for _ in range(5):
        kind = pa.list_(kind, 1 << 30)
    size = row_sizes._constant_size(kind)
    assert size == row_sizes._MOST_SIZE
    array = pa.array([[None]], pa.list_(pa.null()))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(row_sizes, "_constant_size", lambda _: size)
        found = row_sizes._list_sizes(array, np.array([0]), np.array([1 << 40]))
    assert row_sizes._MOST_SIZE <= found[0] < 1 << 42
