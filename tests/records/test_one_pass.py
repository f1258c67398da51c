from __future__ import annotations

from typing import Any

import pytest
import reference
from column_rows import column_rows
from hypothesis import given
from hypothesis import strategies as st
from strategies import BATCH

from kafkajit import testing as kt
from kafkajit.format.codecs import COMPRESSION_IDS
from kafkajit.format.decompressors import functions_of
from kafkajit.records.batches import frame
from kafkajit.records.chunk import Chunk
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.storage.source import Source

COPIED = Wanted(offset=True, timestamp=True, key=True, value=True, headers=True)
KEPT = COPIED._replace(fields=True)
CODECS = [codec for codec in kt.CODECS if codec == "none" or functions_of(COMPRESSION_IDS[codec])]
by_codec = pytest.mark.parametrize("codec", CODECS)
RECORDS = [kt.Record(b"k%d" % i, b"v" * i, headers=[("h", b"1")]) for i in range(50)]


def read(log: bytes, wanted: Wanted = COPIED, **options: bool) -> Chunk | None:
    """The chunk that one pass reads once the memory is as large as it should be."""
    source = Source(log)
    batches = frame(source.content).batches
    memory = ColumnMemory(wanted)
    Decoder(source, memory).decode(batches)
    decoder = Decoder(source, memory)
    return decoder.decode_in_one_pass(batches, check_crcs=options.get("check_crcs", True))


def batches_read(log: bytes, **options: bool) -> int:
    chunk = read(log, **options)
    return 0 if chunk is None else len(chunk.batches)


def expected_rows(log: bytes) -> list[tuple[Any, ...]]:
    return [
        (record.offset, record.timestamp, record.key, record.value, list(record.headers))
        for batch in reference.read_batches(log)[0]
        for record in reference.read_records(batch)
    ]


@given(st.lists(BATCH, min_size=1, max_size=4), st.sampled_from([COPIED, KEPT]), st.booleans())
def test_one_pass_reads_what_the_slow_twin_reads(
    batches: list[bytes], wanted: Wanted, check_crcs: bool
) -> None:
    log = b"".join(batches)
    chunk = read(log, wanted, check_crcs=check_crcs)
    if chunk is not None:
        read_bytes = log[: int(chunk.batches.end[-1])]
        assert column_rows(chunk.columns, len(chunk)) == expected_rows(read_bytes)
        counts = [len(reference.read_records(b)) for b in reference.read_batches(read_bytes)[0]]
        assert chunk.counts.tolist() == counts
        if wanted.fields:
            found = [
                (chunk.field(row, "key"), chunk.field(row, "value")) for row in range(len(chunk))
            ]
            assert found == [row[2:4] for row in column_rows(chunk.columns, len(chunk))]


@by_codec
@pytest.mark.parametrize("wanted", [COPIED, KEPT])
@pytest.mark.parametrize("batches", [1, 100])
def test_all_batches_of_one_codec_are_read(codec: str, wanted: Wanted, batches: int) -> None:
    log = b"".join(
        kt.batch(RECORDS, base_offset=50 * i, codec=codec, records_count=len(RECORDS))
        for i in range(batches)
    )
    chunk = read(log, wanted)
    assert chunk is not None
    assert len(chunk.batches) == batches
    assert column_rows(chunk.columns, len(chunk)) == expected_rows(log)


@by_codec
def test_one_pass_stops_before_a_wrong_checksum_unless_nobody_asks(codec: str) -> None:
    good, bad = kt.batch(RECORDS, codec=codec), bytearray(kt.batch(RECORDS, codec=codec))
    bad[17] ^= 1
    assert batches_read(good * 3 + bad + good) == 3
    assert batches_read(bad + good) == 0
    assert batches_read(good * 3 + bad + good, check_crcs=False) == 5


@by_codec
@pytest.mark.parametrize("name", kt.BREAKS)
def test_one_pass_stops_before_a_broken_batch(codec: str, name: str) -> None:
    good = kt.batch(RECORDS, codec=codec)
    log = good * 2 + kt.broken(name, base_offset=9, codec=codec) + good
    assert batches_read(log) <= 2


@by_codec
def test_a_count_that_no_batch_of_that_size_can_have_reserves_no_memory(codec: str) -> None:
    good = kt.batch(RECORDS, codec=codec)
    bad = kt.batch(RECORDS, codec=codec, records_count=2**31 - 1)
    assert batches_read(good + bad) == 1
    assert batches_read(bad + good) == 0


def test_batches_of_several_codecs_are_left_to_the_steps() -> None:
    assert read(kt.batch(RECORDS) + kt.batch(RECORDS, codec="gzip")) is None
    assert read(kt.batch(RECORDS, codec="lz4") + kt.batch(RECORDS, codec="gzip")) is None


def test_records_larger_than_those_before_end_a_chunk_and_begin_the_next() -> None:
    small = [kt.batch([kt.Record(b"k" * 50, b"v")] * 50, base_offset=50 * i) for i in range(10)]
    large = [
        kt.batch([kt.Record(b"k", b"v" * 50)] * 50, base_offset=500 + 50 * i) for i in range(10)
    ]
    log = b"".join(small + large)
    source = Source(log)
    decoder = Decoder(source, ColumnMemory(COPIED))
    framed = frame(source.content).batches
    first = decoder.decode_in_one_pass(framed[:10], check_crcs=True)
    assert first is not None  # after which there is little room for values
    rows = column_rows(first.columns, len(first))
    rest = framed[10:]
    while len(rest):
        chunk = decoder.decode_in_one_pass(rest, check_crcs=True)
        if chunk is None:
            chunk = decoder.decode(rest)
        rows += column_rows(chunk.columns, len(chunk))
        rest = rest[len(chunk.batches) :]
    assert rows == expected_rows(log)
