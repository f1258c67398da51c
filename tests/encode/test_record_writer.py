from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
import reference
from corpus import NO_JIT
from encoding import field, huge_rows, plan_of, rows_of_records, written
from hypothesis import given
from hypothesis import strategies as st
from strategies import DATA, HEADER, INT64, NULLABLE, VARLONGS

from kafkajit import InvalidRecordError
from kafkajit import testing as kt
from kafkajit.encode import record_writer as encode
from kafkajit.encode.batch_plan import (
    BatchPlan,
    ByteStrings,
    RecordRows,
    plain_headers,
)
from kafkajit.encode.record_writer import BatchWriter

UNLIMITED = 2**62
MAX_INT32 = 2**31 - 1
HEAD = 61


# A record whose counts and sizes are all true.
RECORD = st.builds(
    kt.Record,
    key=NULLABLE,
    value=NULLABLE,
    headers=st.lists(HEADER, max_size=3),
    timestamp=INT64,
)

# Bytes

HEADER_FIELDS = {
    "partition_leader_epoch": ("partitionLeaderEpoch", st.integers(-(2**31), MAX_INT32)),
    "max_timestamp": ("maxTimestamp", INT64),
    "producer_id": ("producerId", INT64),
    "producer_epoch": ("producerEpoch", st.integers(-(2**15), 2**15 - 1)),
    "base_sequence": ("baseSequence", st.integers(-1, MAX_INT32)),
    "last_offset_delta": ("lastOffsetDelta", st.integers(0, MAX_INT32)),
}


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[kt.Record], dict[str, Any], dict[str, Any]]:
    """Records, the fields of their header, and the same as arguments of kafkajit.testing."""
    records = draw(st.lists(RECORD, max_size=5))
    deltas = draw(
        st.lists(
            st.integers(0, 70) | st.integers(8190, 8200) | st.integers(0, MAX_INT32),
            min_size=len(records),
            max_size=len(records),
            unique=True,
        ).map(sorted)
    )
    base = draw(st.integers(0, 2**40))
    attributes = draw(st.sampled_from([0x00, 0x10, 0x20, 0x30, 0x40, 0x50]))
    base_timestamp = draw(VARLONGS)
    header = {
        "rows": len(records),
        "baseOffset": base,
        "attributes": attributes,
        "baseTimestamp": base_timestamp,
    }
    stated: dict[str, Any] = {"attributes": attributes, "base_timestamp": base_timestamp}
    for name, (column, values) in HEADER_FIELDS.items():
        stated[name] = header[column] = draw(values)
    stated |= {"base_offset": base, "deltas": deltas}
    return records, header, stated


def twin_of(records: list[kt.Record], stated: dict[str, Any], **more: Any) -> bytes:
    placed = [
        kt.Record(r.key, r.value, r.headers, r.timestamp, offset_delta=delta)
        for r, delta in zip(records, stated["deltas"], strict=True)
    ]
    return kt.batch(placed, **{k: v for k, v in stated.items() if k != "deltas"} | more)


def offsets_of(given_batches: list[Any]) -> list[int]:
    return [
        stated["base_offset"] + delta
        for _, _, stated in given_batches
        for delta in stated["deltas"]
    ]


@given(st.lists(batches(), max_size=4), st.integers(0, 9))
def test_batches_are_byte_for_byte_those_of_the_twin(
    given_batches: list[tuple[list[kt.Record], dict[str, Any], dict[str, Any]]], position: int
) -> None:
    records = [record for batch, _, _ in given_batches for record in batch]
    offsets = [
        stated["base_offset"] + delta
        for _, _, stated in given_batches
        for delta in stated["deltas"]
    ]
    plan = plan_of([header for _, header, _ in given_batches])
    expected = [twin_of(batch, stated) for batch, _, stated in given_batches]
    assert written(rows_of_records(records, offsets), plan, position) == b"".join(expected)
    # Copy fields that are known only afterwards into the plan.
    assert plan.header["batchLength"].tolist() == [len(batch) - 12 for batch in expected]
    assert plan.header["crc"].tolist() == [
        struct.unpack_from(">I", batch, 17)[0] for batch in expected
    ]


@pytest.mark.parametrize("codec", range(1, 5))
@given(st.lists(batches(), max_size=4), st.integers(0, 9))
def test_compressed_batches_hold_the_records_of_the_twin(
    codec: int,
    given_batches: list[tuple[list[kt.Record], dict[str, Any], dict[str, Any]]],
    position: int,
) -> None:
    records = [record for batch, _, _ in given_batches for record in batch]
    offsets = [
        stated["base_offset"] + delta
        for _, _, stated in given_batches
        for delta in stated["deltas"]
    ]
    plan = plan_of(
        [header | {"attributes": header["attributes"] | codec} for _, header, _ in given_batches]
    )
    log = written(rows_of_records(records, offsets), plan, position)
    found, end = reference.read_batches(log)
    assert end == len(log)
    assert len(found) == len(given_batches)
    for batch, (given_records, header, stated) in zip(found, given_batches, strict=True):
        assert batch.is_valid
        assert batch.codec == codec
        plain = reference.decompress(codec, batch.payload)
        twin = twin_of(given_records, stated, attributes=header["attributes"] | codec)
        assert plain == twin[HEAD:]
        assert log[batch.position + 21 : batch.position + HEAD] == twin[21:HEAD]


@pytest.mark.parametrize("size", [*range(54, 68), *range(8120, 8200), 1_048_500, 1_048_600, 2**21])
@pytest.mark.parametrize("stamp", [0, -(2**63), 64])
def test_records_of_every_size_have_lengths_of_as_few_bytes_as_can_be(
    size: int, stamp: int
) -> None:
    if NO_JIT and size > 2**14:
        size = 2**14
    records = [kt.Record(key=b"k", value=bytes(size), timestamp=0), kt.Record(timestamp=stamp)]
    rows = rows_of_records(records, [0, MAX_INT32])
    plan = BatchPlan(plain_headers(rows, np.array([0, 2])), np.array([0, 2]))
    twin = [records[0], kt.Record(timestamp=stamp, offset_delta=MAX_INT32)]
    assert written(rows, plan) == kt.batch(twin, base_timestamp=0)


@given(DATA, st.integers(0, 40), st.sampled_from(range(5)))
def test_nothing_is_read_behind_the_end_of_the_data(value: bytes, left: int, codec: int) -> None:
    data = np.frombuffer(b"x" * 100 + value + b"y" * left, dtype=np.uint8)
    spans = ByteStrings(data, np.array([100], np.int64), np.array([len(value)], np.int64))
    none = field([None])
    numbers = np.zeros(1, dtype=np.int64)
    rows = RecordRows(numbers, numbers, spans, spans, none._replace(sizes=numbers))
    log = written(rows, plan_of([{"rows": 1, "attributes": codec}]))
    ((batch,), _) = reference.read_batches(log)
    (record,) = reference.read_records(batch)
    assert (record.key, record.value) == (value, value)


def test_records_of_a_batch_that_was_stamped_have_no_timestamps_of_their_own() -> None:
    records = [kt.Record(timestamp=stamp) for stamp in (5, 99, -7)]
    plan = plan_of([{"rows": 3, "attributes": 8, "maxTimestamp": 50, "baseTimestamp": 1}])
    twin = [kt.Record(timestamp=1)] * 3
    expected = kt.batch(
        twin, timestamp_type=1, max_timestamp=50, base_timestamp=1, last_offset_delta=0,
        producer_id=0, producer_epoch=0, base_sequence=0,
    )  # fmt: skip
    assert written(rows_of_records(records, [0, 1, 2]), plan) == expected


def test_batches_of_every_kind_stand_in_one_plan() -> None:
    kinds = [(2, 0), (2, 1), (1, 0), (1, 3), (2, 1), (0, 3), (0, 2), (2, 4), (2, 4), (0, 0)]
    plan = plan_of(
        [
            {"rows": 2, "magic": magic, "attributes": codec, "baseOffset": 2 * place}
            for place, (magic, codec) in enumerate(kinds)
        ]
    )
    count = 2 * len(kinds)
    records = [kt.Record(b"k%d" % n, b"v%d" % n * 20, timestamp=0) for n in range(count)]
    log = written(rows_of_records(records, range(count)), plan)
    found = [
        (batch.magic, batch.codec, record.offset, record.key, record.value)
        for batch in reference.read_batches(log)[0]
        for record in reference.read_records(batch)
    ]
    assert found == [
        (*kinds[n // 2], n, record.key, record.value) for n, record in enumerate(records)
    ]


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_a_plan_without_batches_is_nothing(codec: int) -> None:
    rows = rows_of_records([], [])
    assert written(rows, plan_of([])) == b""
    empty = plan_of([{"rows": 0, "attributes": codec}])
    assert len(written(rows, empty)) == (61 if codec == 0 else 61 + len(_nothing(codec)))


def _nothing(codec: int) -> bytes:
    from kafkajit.format.compressor import Compressor

    out = np.empty(100, dtype=np.uint8)
    return out[: Compressor(codec).write(out[:0], out, 0)].tobytes()


# The buffer for the records of compressed batches


@pytest.mark.parametrize("scratch", [100, 1000, 10_000])
def test_records_are_compressed_however_few_fit_the_buffer(
    scratch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode, "_SCRATCH_BYTES", scratch)
    records = [kt.Record(value=bytes([n]) * (n * 7 % 900), timestamp=0) for n in range(60)]
    rows = rows_of_records(records, range(60))
    for magic in (2, 1):
        plan = plan_of(
            [
                {"rows": 5, "attributes": 3, "magic": magic, "baseOffset": first}
                for first in range(0, 60, 5)
            ]
        )
        found = [
            (record.offset, record.value)
            for batch in reference.read_batches(written(rows, plan))[0]
            for record in reference.read_records(batch)
        ]
        assert found == [(n, record.value) for n, record in enumerate(records)]


def test_a_writer_is_used_again_for_other_codecs_and_sizes() -> None:
    writer = BatchWriter()
    for codec in (4, 1, 4, 3, 2, 0, 3):
        for size in (10, 5000, 1):
            rows = rows_of_records([kt.Record(value=bytes(size), timestamp=0)], [0])
            plan = plan_of([{"rows": 1, "attributes": codec}])
            out = np.empty(BatchWriter.bound(rows, plan), dtype=np.uint8)
            end = writer.write(rows, plan, out)
            (batch,), _ = reference.read_batches(out[:end].tobytes())
            assert [record.value for record in reference.read_records(batch)] == [bytes(size)]


# Batches that are too large


@pytest.mark.parametrize("attributes", [0, 4])
@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize(
    ("sizes", "counts", "row", "records"),
    [
        ([MAX_INT32], [1], 0, 1),
        ([5, MAX_INT32 - 30], [1, 1], 1, 1),
        ([1 << 30, 5, 1 << 30, 1 << 30], [2, 2], 2, 2),
        ([1 << 26] * 32, [32], 0, 32),
    ],
)
def test_a_batch_beyond_2_gib_is_an_error_before_there_is_memory_for_it(
    sizes: list[int], counts: list[int], row: int, records: int, magic: int, attributes: int
) -> None:
    rows = huge_rows(sizes)
    plan = plan_of([{"rows": n, "magic": magic, "attributes": attributes} for n in counts])
    message = f"^row {row}: its batch of {records} records would be larger than 2 GiB$"
    with pytest.raises(InvalidRecordError, match=message):
        BatchWriter.bound(rows, plan)


def test_small_batches_of_more_than_2_gib_together_are_no_error() -> None:
    rows = huge_rows([1 << 29] * 8)
    assert BatchWriter.bound(rows, plan_of([{"rows": 2}] * 4)) > 1 << 32


def test_a_compressed_batch_that_is_too_large_is_found_before_its_records_are_written() -> None:
    # Too large by so few bytes that `bound` could not be certain.
    rows = huge_rows([MAX_INT32 - 70])
    plan = plan_of([{"rows": 1, "attributes": 1}])
    BatchWriter.bound(rows, plan)
    with pytest.raises(InvalidRecordError, match="row 0: its batch of 1 records would be larger"):
        BatchWriter().write(rows, plan, np.empty(100, dtype=np.uint8))
