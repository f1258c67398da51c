from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import kafkajit.testing as kt
from kafkajit.records.batches import frame
from kafkajit.records.chunk import Chunk
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.storage.source import Source
from kafkajit.upkeep.compact.record_bitmap import RecordBitmap

# For each record of each batch: whether it is superseded, and whether it is a tombstone.
BATCHES = st.lists(
    st.lists(st.tuples(st.booleans(), st.sampled_from([False] * 9 + [True])), max_size=9),
    max_size=12,
)


def chunk_of(log: bytes) -> Chunk:
    source = Source(log)
    decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
    return decoder.decode(frame(source.content).batches)


def batch(tombstones: list[bool], **fields: object) -> bytes:
    records = [kt.Record(b"k", None if tombstone else b"v") for tombstone in tombstones]
    return kt.batch(records, **fields)  # type: ignore[arg-type]


@given(BATCHES, st.integers(0, 12))
def test_a_batch_is_read_again_if_some_records_stay_or_a_tombstone_does(
    batches: list[list[tuple[bool, bool]]], cut: int
) -> None:
    superseded = RecordBitmap()
    chunks = []
    for part in (batches[:cut], batches[cut:]):
        log = b"".join(batch([tombstone for _, tombstone in records]) for records in part)
        chunks.append(chunk_of(log))
        first = superseded.note(chunks[-1])
        for number, (is_superseded, _) in enumerate([one for records in part for one in records]):
            if is_superseded:
                superseded.bits[(first + number) // 8] |= 1 << (first + number) % 8
    superseded.rewind()
    for part, chunk in zip((batches[:cut], batches[cut:]), chunks, strict=True):
        wanted = [
            any(stays for stays in kept) and (not all(kept) or any(t for _, t in records))
            for records in part
            for kept in [[not is_superseded for is_superseded, _ in records]]
        ]
        assert superseded.wanted(chunk.batches).tolist() == wanted
        superseded.take(chunk.counts)


def test_control_batches_and_messages_are_always_read() -> None:
    superseded = RecordBitmap()
    markers = chunk_of(kt.control_batch(1) + kt.control_batch(0)).batches
    assert superseded.wanted(markers).tolist() == [True, True]
    messages = chunk_of(kt.message_set([kt.Record(b"a"), kt.Record(b"b")], codec="gzip")).batches
    assert superseded.wanted(messages).tolist() == [True]


def test_bits_stay_where_more_records_come() -> None:
    superseded = RecordBitmap()
    assert superseded.take(np.array([3, 4])) == 0
    superseded.bits[0] = 0b101
    assert superseded.take(np.array([1000])) == 7
    assert superseded.bits[0] == 0b101
    assert superseded.bits.size * 8 >= 1007
    superseded.rewind()
    assert superseded.take(np.array([1])) == 0
    assert superseded.bits[0] == 0b101
