from __future__ import annotations

from typing import Any

import pytest
import reference
from corpus import SOUND_LOGS, by_sound_log
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
import kafkajit.testing as kt
from kafkajit.append.validate import check_appendable
from kafkajit.log.config import LogConfig
from kafkajit.records.batches import frame
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.storage.source import Source


def check(log: bytes, next_offset: int = 0, **config: int) -> int:
    source = Source(log, path="a/b")
    decoder = Decoder(source, ColumnMemory(Wanted()))
    batches = frame(source.content).batches
    return check_appendable(decoder, batches, next_offset, LogConfig(**config), source.path)


@by_sound_log
def test_a_brokers_batches_may_be_appended(path: Any) -> None:
    log = path.read_bytes()
    batches = reference.read_batches(log)[0]
    if len(batches) > 0 and not path.name.endswith(".checkpoint"):
        last = batches[-1].base_offset + batches[-1].last_offset_delta
        assert check(log, max_message_bytes=2**31 - 1) == last + 1


def test_the_corpus_has_logs() -> None:
    assert len(SOUND_LOGS) > 100


def record(offset: int, size: int = 0, **fields: Any) -> bytes:
    return kt.batch([kt.Record(value=b"v" * size)], base_offset=offset, **fields)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0, 1, 1, 3, -1, -5]),  # steps
            st.sampled_from([0, 0, 4, -1]),  # last offset deltas
            st.booleans(),  # of v1
        ),
        min_size=1,
        max_size=6,
    ),
    st.integers(40, 60),
)
def test_offsets_only_grow(steps: list[tuple[int, int, bool]], next_offset: int) -> None:
    offset, log, places = 50, b"", []
    for step, delta, is_message in steps:
        places.append(len(log))
        if is_message:
            log += kt.message(kt.Record(), offset=offset)
        else:
            log += record(offset, last_offset_delta=delta)
            offset += max(delta, 0)
        offset += step
    end, bad = next_offset, None
    for row, batch in enumerate(reference.read_batches(log)[0]):
        last = batch.base_offset + batch.last_offset_delta
        if batch.base_offset < end or last < batch.base_offset:
            bad = row
            break
        end = last + 1
    if bad is None:
        assert check(log, next_offset) == end
    else:
        with pytest.raises(kafkajit.InvalidOffsetError) as error:
            check(log, next_offset)
        assert (error.value.position, error.value.path) == (places[bad], "a/b")


@pytest.mark.parametrize(
    ("log", "config", "kind", "message"),
    [
        (record(6), {}, kafkajit.InvalidOffsetError, "First offset 6 is less than the next offset"),
        (
            record(8, last_offset_delta=-1),
            {},
            kafkajit.InvalidOffsetError,
            "Last offset 7 of a batch is less than its first offset 8",
        ),
        (record(2**63 - 1), {}, kafkajit.InvalidOffsetError, "Last offset 9223372036854775807 of"),
        (
            record(2**63 - 5, last_offset_delta=9),
            {},
            kafkajit.InvalidOffsetError,
            "Last offset -9223372036854775804 of a batch is less",
        ),
        (
            record(8, 100),
            {"max_message_bytes": 169},
            kafkajit.RecordTooLargeError,
            r"is 170 bytes which exceeds the maximum configured value of 169 \(max.message.bytes\)",
        ),
        (
            record(8, 100),
            {"segment_bytes": 168},
            kafkajit.RecordTooLargeError,
            r"exceeds the maximum configured segment size of 168 \(segment.bytes\)",
        ),
        (record(8, crc=1), {}, kafkajit.CorruptRecordError, r"corrupt \(stored crc = 1, computed"),
        (record(8, magic=3), {}, kafkajit.CorruptRecordError, "Invalid magic found in record: 3"),
        (
            kt.batch([], base_offset=8, batch_length=48)[:60],
            {},
            kafkajit.CorruptRecordError,
            "size 60 is smaller than the minimum allowed overhead 61",
        ),
        (
            record(8, attributes=5),
            {},
            kafkajit.UnsupportedCompressionTypeError,
            "Unknown compression type id: 5",
        ),
    ],
)
def test_a_batch_that_may_not_be_appended_is_an_error(
    log: bytes, config: dict[str, int], kind: type[Exception], message: str
) -> None:
    before = record(7)
    with pytest.raises(kind, match=message) as error:
        check(before + log + record(0), 7, **config)
    assert isinstance(error.value, kafkajit.KafkaJitError)
    assert error.value.position == len(before)
    assert error.value.path == "a/b"


def test_a_batch_of_just_the_size_is_taken() -> None:
    assert check(record(8, 100), max_message_bytes=170, segment_bytes=170) == 9
