"""The page of limits has those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kafkajit.change import journal as change_journal
from kafkajit.cli.shared_options import MAX_DECOMPRESSED_BYTES
from kafkajit.format import compression, decompressors
from kafkajit.places import manifest
from kafkajit.produce.inputs import (
    arrow_rows,
    avro_rows,
    csv_rows,
    parquet_footer,
    row_sizes,
    rows,
)
from kafkajit.records import slices
from kafkajit.report import newest
from kafkajit.scan.export import journal
from kafkajit.state import meta_properties, text_lines
from kafkajit.storage import source
from kafkajit.values import block, layout, registry
from kafkajit.values.avro import interpreter as avro_values
from kafkajit.values.avro import schema
from kafkajit.values.json import types
from kafkajit.values.protobuf import grammar
from kafkajit.values.protobuf import interpreter as protobuf_values

PAGE = Path(__file__).parents[1] / "docs" / "limits.md"
# The beginning of a row, and the numbers in its second column.
ROWS: dict[str, list[int]] = {
    "the records of a batch, decompressed": [MAX_DECOMPRESSED_BYTES],
    "the records of a batch with markers": [slices.SLICE_BYTES],
    "the headers of a record": [slices.MOST_HEADERS],
    "the window of a zstd frame": [decompressors._MOST_ZSTD_WINDOW],
    "gzip members or lz4 frames": [compression._MAX_PARTS],
    "a file beside a log": [source._MOST_BESIDE],
    "a line of a checkpoint": [text_lines.MAX_LINE],
    "`meta.properties`": [meta_properties.MAX_SIZE],
    "a manifest of tiered storage": [manifest._MOST_BYTES, manifest._MOST_MEMBERS],
    "the index of chunks": [manifest._MOST_CHUNKS],
    "the elements of one Avro or Protobuf value": [block._MOST_BYTES],
    "elements of no bytes": [avro_values.MAX_EMPTY_ITEMS],
    "messages inside each other in a Protobuf": [protobuf_values.MAX_DEPTH],
    "arrays and objects inside each other": [types.MAX_DEPTH],
    "columns of a schema": [layout.MAX_CELLS],
    "types inside each other": [schema.MAX_DEPTH],
    "messages inside each other in a .proto": [grammar.MAX_DEPTH],
    "a record of a registry's topic": [registry.MOST_BYTES],
    "a value of `__consumer_offsets`": [newest.MOST_BYTES],
    "a row of any format": [rows.MOST_RECORD],
    "a block of an Avro file": [avro_rows.MOST_DECOMPRESSED],
    "the header of an Avro file": [avro_rows._MOST_HEADER],
    "the columns of a CSV file": [csv_rows._MOST_COLUMNS],
    "rows of an Arrow batch": [arrow_rows._MOST_EMPTY_ROWS],
    "elements of lists in such a batch": [
        row_sizes._MOST_EMPTY,
        rows.MOST_RECORD // row_sizes._FIXED,
    ],
    "structs within structs": [parquet_footer._DEEPEST],
    "an entry of an export's journal": [journal.MOST_BYTES],
    "the journal of an interrupted change": [change_journal._MOST_BYTES],
}
UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def rows_of_the_page() -> dict[str, list[int]]:
    lines = [line.split("|")[1:3] for line in PAGE.read_text().splitlines() if "|" in line]
    found = {}
    for what, most in lines:
        amounts = re.findall(r"([\d,]*\d)(?: ([KMG]iB))?", most)
        numbers = [int(digits.replace(",", "")) * UNITS[unit] for digits, unit in amounts]
        if numbers:
            found[what.strip()] = numbers
    return found


@pytest.mark.parametrize("begin", ROWS)
def test_the_page_has_the_limits_of_the_code(begin: str) -> None:
    (numbers,) = (found for what, found in rows_of_the_page().items() if what.startswith(begin))
    assert numbers == ROWS[begin]


def test_each_limit_on_the_page_is_compared() -> None:
    assert len(rows_of_the_page()) == len(ROWS)
