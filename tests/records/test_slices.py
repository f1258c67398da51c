"""Large compressed batches, which are read slice by slice."""

from __future__ import annotations

import gc
import random

import pyarrow as pa
import pytest
from corpus import NO_JIT

import kafkajit
from kafkajit import testing as kt
from kafkajit.errors import DecompressionLimitError, InvalidRecordError
from kafkajit.reader import SegmentReader
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.slices import MOST_HEADERS, SLICE_BYTES
from kafkajit.schema import record_schema
from kafkajit.storage.source import Source
from kafkajit.testing.batches import varint
from kafkajit.walk.walk import Walk

pytestmark = pytest.mark.skipif(NO_JIT, reason="megabytes")

SMALL = kt.batch([kt.Record(b"k", b"small")], codec="zstd")
SPREAD = random.Random(5).randbytes(1 << 16)


def _record(delta: int, size: int, headers: int = 0) -> bytes:
    content = SPREAD[delta % 1000 :][: size // 2] * 2
    value = varint(len(content)) + content if delta % 7 else varint(-1)
    key = varint(3) + b"%3d" % (delta % 1000) if delta % 5 else varint(-1)
    body = b"\0" + varint(delta) + varint(delta) + key + value
    body += varint(headers) + (varint(1) + b"h" + varint(-1)) * headers
    return varint(len(body)) + body


MANY = [_record(delta, 0) for delta in range(700_000)]
LONG = [_record(delta, 60_000, delta % 3) for delta in range(400)]
ODD = [*LONG[:100], _record(100, 40_000_000, 2), *map(_record, range(101, 300), [80] * 199)]
BATCHES = {"many": MANY, "long": LONG, "odd": ODD}


def _logs(records: list[bytes], codec: str = "zstd") -> tuple[bytes, bytes]:
    """The same records compressed in one batch, and plain."""
    compressed, plain = (kt.batch(records, base_offset=1, codec=each) for each in (codec, "none"))
    behind = kt.batch([kt.Record(b"k", b"behind")], base_offset=len(records) + 1, codec=codec)
    return SMALL + compressed + behind, SMALL + plain + behind


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("binary_view", [False, True])
def test_slices_have_the_records_of_the_batch(name: str, binary_view: bool) -> None:
    compressed, plain = _logs(BATCHES[name], "lz4")
    columns = [c for c in kafkajit.schema.RECORD_COLUMNS if c not in ("topic", "partition")]
    columns.remove("position")
    read = kafkajit.read_records(compressed, columns=columns, binary_view=binary_view)
    assert max(len(batch) for batch in read.to_batches()) <= 1 << 16
    expected = kafkajit.read_records(plain, columns=columns, binary_view=binary_view)
    assert read.num_rows == len(BATCHES[name]) + 2
    assert read.equals(expected)


def test_a_damaged_record_at_the_end_leaves_out_the_whole_batch() -> None:
    (log, _) = _logs([*MANY, b"\x0e\0\0\0\x05k"])
    read = kafkajit.read_records(log, mode="PERMISSIVE", columns=["value"])
    values = read["value"].to_pylist()
    assert values == [b"small", None, b"behind"]
    (gap,) = read["corruption"].drop_null().to_pylist()
    assert gap["position"] == len(SMALL)
    with pytest.raises(InvalidRecordError, match=f"at position {len(SMALL)}, base offset 1"):
        kafkajit.read_records(log)


def test_a_record_with_more_headers_than_fit_is_an_error_if_they_are_asked_for() -> None:
    count = MOST_HEADERS + 1
    body = b"\0\0\0\x01\x01" + varint(count) + b"\0\0" * count
    log, _ = _logs([varint(len(body)) + body])
    assert kafkajit.read_records(log, columns=["offset"])["offset"].to_pylist() == [0, 1, 2]
    message = f"A record of the batch has {count} headers, more than {MOST_HEADERS} at position"
    with pytest.raises(DecompressionLimitError, match=message):
        kafkajit.read_records(log, columns=["headers"])
    read = kafkajit.read_records(log, columns=["headers"], mode="DROPMALFORMED")
    assert read.num_rows == 2


def test_a_walk_ends_a_batch_with_its_last_slice() -> None:
    log, _ = _logs(MANY)
    walk = Walk(Source(log))
    chunks = walk.chunks(ColumnMemory(Wanted(offset=True)), in_slices=True)
    places = [(chunk.is_part, walk.position) for chunk in chunks]
    assert places[0] == (False, len(SMALL))
    assert places[-1] == (False, len(log))
    parts = [position for is_part, position in places if is_part]
    assert len(parts) == len(MANY) // (1 << 16)
    assert set(parts) == {len(SMALL)}


def test_a_search_skips_a_large_batch_or_reads_all_of_it() -> None:
    log, _ = _logs(LONG)
    assert sum(map(len, LONG)) > 2 * SLICE_BYTES

    def rows(is_asked: bool) -> int:
        reader = SegmentReader(Source(log))
        found = reader.records(
            record_schema(["offset"]), may_hold=lambda _, starts, __: starts * 0 == (not is_asked)
        )
        return sum(each.num_rows for each in found)

    assert rows(True) == len(LONG) + 2
    assert rows(False) == 0


def test_memory_of_many_small_records_does_not_depend_on_their_number() -> None:
    log = kt.batch(
        [bytes.fromhex("0c000000010100") * 10_000_000],
        codec="zstd",
        records_count=10_000_000,
        last_offset_delta=9_999_999,
    )
    gc.collect()
    largest, before = 0, pa.total_allocated_bytes()  # other tests keep some
    for rows in SegmentReader(Source(log)).records(record_schema(["offset", "key", "headers"])):
        largest = max(largest, pa.total_allocated_bytes() - before)
        assert rows.num_rows <= 1 << 16
    assert largest < 100 << 20
