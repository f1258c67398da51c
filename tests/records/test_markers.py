from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
import reference
from corpus import V2_LOGS, log_id
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
import kafkajit.testing as kt
from kafkajit.errors import KafkaJitError
from kafkajit.records.batches import frame
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.records.markers import Markers, read_markers
from kafkajit.storage.source import Source

LOGS = [path for path in V2_LOGS if "transactions" in path.parent.name or "__" in str(path)]


def markers_of(log: bytes, name: str = "a/b") -> tuple[Markers, KafkaJitError | None]:
    source = Source(log, path=name)
    decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
    batches = frame(source.content).batches
    control = batches[batches.is_control]
    return read_markers(decoder, control, decoder.sound(control, check_crcs=True))


def rows(markers: Markers) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in markers), strict=True))


def twin(log: bytes) -> list[tuple[int, ...]]:
    """The first record of each control batch, with struct."""
    found = []
    for batch in reference.read_batches(log)[0]:
        if batch.is_control:
            found.append((-1, -1, -1))
            for record in reference.read_records(batch)[:1]:
                assert record.key is not None
                (type_id,) = struct.unpack_from(">h", record.key, 2)
                epoch = -1
                if type_id in (0, 1):
                    assert record.value is not None
                    (epoch,) = struct.unpack_from(">i", record.value, 2)
                found[-1] = (type_id, epoch, record.timestamp)
    return found


@pytest.mark.parametrize("path", LOGS, ids=log_id)
def test_markers_are_those_of_a_broker(path: Any) -> None:
    log = path.read_bytes()
    markers, error = markers_of(log)
    assert error is None
    assert rows(markers) == twin(log)


def test_the_corpus_has_markers() -> None:
    found = [marker for path in LOGS for marker in twin(path.read_bytes())]
    assert {type_id for type_id, _, _ in found} >= {0, 1, 2}


def marker(type_id: int, epoch: int, **fields: Any) -> bytes:
    return kt.control_batch(type_id, coordinator_epoch=epoch, **fields)


SOUND = st.one_of(
    st.builds(marker, st.integers(0, 6), st.integers(-1, 5), codec=st.sampled_from(kt.CODECS)),
    st.builds(marker, st.just(0), st.just(3), timestamp_type=st.just(1), max_timestamp=st.just(77)),
    st.just(kt.batch([], is_control=True)),
    st.just(kt.batch([kt.Record(struct.pack(">hh", 0, 1), bytes(6))] * 2, is_control=True)),
    st.just(kt.batch([kt.Record(b"data")])),
)
BAD = st.sampled_from(
    [
        marker(1, 0, crc=1),
        marker(1, 0, magic=3),
        kt.batch([kt.Record(b"\0\0\0\1", bytes(5))], is_control=True),
        kt.batch([kt.Record(b"\0\0\0\1", bytes(6)), kt.Record(b"")], is_control=True),
        kt.batch([kt.Record()], is_control=True, records_count=2),
    ]
)


@given(st.lists(SOUND, max_size=8), BAD, st.lists(SOUND, max_size=3))
def test_markers_are_read_up_to_the_first_bad_one(
    sound: list[bytes], bad: bytes, more: list[bytes]
) -> None:
    before = b"".join(sound)
    markers, error = markers_of(before)
    assert (rows(markers), error) == (twin(before), None)
    markers, error = markers_of(before + bad + b"".join(more))
    assert rows(markers) == twin(before)
    assert isinstance(error, (kafkajit.CorruptRecordError, kafkajit.InvalidRecordError))
    assert (error.position, error.path) == (len(before), "a/b")


def test_no_batches_have_no_markers() -> None:
    markers, error = markers_of(b"")
    assert (len(markers), error) == (0, None)
    assert markers.timestamp.dtype == np.int64
