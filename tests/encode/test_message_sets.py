from __future__ import annotations

import numpy as np
import pytest
import reference
from encoding import plan_of, rows_of_records, written
from hypothesis import given
from hypothesis import strategies as st
from strategies import INT64, NULLABLE

from kafkajit import testing as kt

MAGICS = [0, 1]
CODECS = {"gzip": 1, "snappy": 2, "lz4": 3}
LOG_APPEND_TIME = 8

MESSAGES = st.lists(
    st.builds(kt.Record, key=NULLABLE, value=NULLABLE, timestamp=INT64), min_size=1, max_size=6
)
OFFSETS = st.lists(st.integers(0, 2**62), min_size=6, max_size=6, unique=True).map(sorted)

by_magic = pytest.mark.parametrize("magic", MAGICS)
by_codec = pytest.mark.parametrize("codec", CODECS)


@by_magic
@given(MESSAGES, OFFSETS, st.integers(0, 9))
def test_messages_are_byte_for_byte_those_of_the_twin(
    magic: int, records: list[kt.Record], offsets: list[int], position: int
) -> None:
    offsets = offsets[: len(records)]
    plan = plan_of([{"rows": len(records), "magic": magic}])
    expected = [
        kt.message(record, offset=offset, magic=magic)
        for record, offset in zip(records, offsets, strict=True)
    ]
    assert written(rows_of_records(records, offsets), plan, position) == b"".join(expected)


@by_magic
def test_messages_have_none_of_a_batchs_fields(magic: int) -> None:
    record = kt.Record(b"k", b"v", timestamp=5)
    said = {"baseOffset": 3, "producerId": 7, "baseTimestamp": 9, "maxTimestamp": 11}
    said |= {"attributes": 0x70, "partitionLeaderEpoch": 4}
    log = written(rows_of_records([record], [42]), plan_of([{"rows": 1, "magic": magic} | said]))
    assert log == kt.message(record, offset=42, magic=magic)


@given(MESSAGES, INT64)
def test_messages_that_were_stamped_have_the_time_of_the_append(
    records: list[kt.Record], append_time: int
) -> None:
    header = {"rows": len(records), "attributes": LOG_APPEND_TIME, "maxTimestamp": append_time}
    rows = rows_of_records(records, range(len(records)))
    stamped = [kt.Record(record.key, record.value) for record in records]
    expected = kt.message_set(stamped, timestamp=append_time, timestamp_type=1)
    assert written(rows, plan_of([header | {"magic": 1}])) == expected
    # v0 has neither timestamps nor timestamp types.
    assert written(rows, plan_of([header | {"magic": 0}])) == kt.message_set(stamped, magic=0)


@pytest.mark.thorough
@by_magic
@by_codec
@given(MESSAGES, OFFSETS, st.integers(0, 9))
def test_a_set_holds_the_messages_of_the_twin(
    magic: int, codec: str, records: list[kt.Record], offsets: list[int], position: int
) -> None:
    offsets = offsets[: len(records)]
    plan = plan_of([{"rows": len(records), "magic": magic, "attributes": CODECS[codec]}])
    log = written(rows_of_records(records, offsets), plan, position)
    (batch,), end = reference.read_batches(log)
    assert end == len(log)
    assert batch.is_valid
    assert (batch.magic, batch.codec, batch.base_offset) == (magic, CODECS[codec], offsets[-1])
    stamps = [record.timestamp for record in records]
    assert batch.max_timestamp == (-1 if magic == 0 else max(stamps))  # type: ignore[type-var]
    found = [(r.offset, r.timestamp, r.key, r.value) for r in reference.read_records(batch)]
    assert found == [
        (offset, record.timestamp if magic else -1, record.key, record.value)
        for offset, record in zip(offsets, records, strict=True)
    ]


@by_magic
@by_codec
def test_within_a_set_v1_counts_from_0_and_v0_as_the_log_does(magic: int, codec: str) -> None:
    records = [kt.Record(b"k%d" % n, bytes([n]) * n, timestamp=n) for n in range(5)]
    offsets = [100, 101, 105, 107, 2**40]
    plan = plan_of([{"rows": 5, "magic": magic, "attributes": CODECS[codec]}])
    log = written(rows_of_records(records, offsets), plan)
    head = 26 + 8 if magic else 18 + 8
    assert int.from_bytes(log[head - 8 : head - 4], signed=True) == -1  # no key
    assert int.from_bytes(log[head - 4 : head]) == len(log) - head
    frame = log[head:]
    if magic == 0 and codec == "lz4":
        assert frame[6] == 0x1A  # a checksum that no library accepts
        frame = frame[:6] + b"\x82" + frame[7:]
    inner = reference.decompress(CODECS[codec], frame)
    assert inner == b"".join(
        kt.message(record, offset=offset - (100 if magic else 0), magic=magic)
        for record, offset in zip(records, offsets, strict=True)
    )


@given(MESSAGES, INT64)
def test_a_set_that_was_stamped_has_the_time_of_the_append_around_it(
    records: list[kt.Record], append_time: int
) -> None:
    header = {"magic": 1, "attributes": LOG_APPEND_TIME | 1, "maxTimestamp": append_time}
    rows = rows_of_records(records, range(len(records)))
    log = written(rows, plan_of([header | {"rows": len(records)}]))
    (batch,), _ = reference.read_batches(log)
    assert (batch.timestamp_type, batch.max_timestamp) == (1, append_time)
    assert {record.timestamp for record in reference.read_records(batch)} == {append_time}


@by_codec
def test_sets_are_of_their_own_rows(codec: str) -> None:
    records = [kt.Record(value=b"v%d" % n, timestamp=1000 - n) for n in range(6)]
    header = {"rows": 2, "magic": 1, "attributes": CODECS[codec]}
    log = written(rows_of_records(records, range(10, 16)), plan_of([header] * 3))
    batches, _ = reference.read_batches(log)
    assert [batch.base_offset for batch in batches] == [11, 13, 15]
    assert [batch.max_timestamp for batch in batches] == [1000, 998, 996]
    values = [[record.value for record in reference.read_records(batch)] for batch in batches]
    assert values == [[b"v0", b"v1"], [b"v2", b"v3"], [b"v4", b"v5"]]


@by_magic
def test_a_null_and_an_empty_string_are_two_things(magic: int) -> None:
    records = [kt.Record(None, b""), kt.Record(b"", None)]
    log = written(rows_of_records(records, [0, 1]), plan_of([{"rows": 2, "magic": magic}]))
    first, second = reference.read_batches(log)[0]
    (one,), (other,) = reference.read_records(first), reference.read_records(second)
    assert (one.key, one.value, other.key, other.value) == (None, b"", b"", None)


@by_magic
def test_a_plan_of_messages_without_rows_is_nothing(magic: int) -> None:
    rows = rows_of_records([kt.Record()], [np.int64(5)])
    assert written(rows, plan_of([{"rows": 0, "magic": magic}])) == b""
