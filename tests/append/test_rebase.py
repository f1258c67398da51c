from __future__ import annotations

import struct
from pathlib import Path

import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from strategies import BATCH

import kafkajit
import kafkajit.testing as kt
from kafkajit.append.rebase import rebase


def moved(log: bytes, shift: int, epoch: int) -> bytes:
    """The twin."""
    out = bytearray(log)
    for batch in reference.read_batches(log)[0]:
        if batch.magic == 2:
            offset = (batch.base_offset + shift + 2**63) % 2**64 - 2**63
            struct.pack_into(">q", out, batch.position, offset)
            struct.pack_into(">i", out, batch.position + 12, epoch)
    return bytes(out)


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rebase") / "segment"


@given(st.lists(BATCH, max_size=4), st.integers(-(2**40), 2**62), st.integers(0, 2**31 - 1))
def test_batches_are_written_over_where_they_say_their_offset_and_epoch(
    segment: Path, batches: list[bytes], shift: int, epoch: int
) -> None:
    log = b"".join(batches)
    segment.write_bytes(log)
    rebase(segment, shift, epoch)
    assert segment.read_bytes() == moved(log, shift, epoch)


def test_records_are_the_same_at_other_offsets(tmp_path: Path) -> None:
    log = tmp_path / f"{0:020}.log"
    records = [kt.Record(key=b"k", value=b"v"), kt.Record(value=b"w")]
    log.write_bytes(kt.batch(records) + kt.batch(records, base_offset=2, codec="zstd"))
    rebase(log, 40, 7)
    table = kafkajit.read_records(log, columns=["offset", "value", "partitionLeaderEpoch"])
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (40, b"v", 7),
        (41, b"w", 7),
        (42, b"v", 7),
        (43, b"w", 7),
    ]
    assert kafkajit.read_record_batches(log)["isValid"].to_pylist() == [True, True]


def test_messages_of_old_formats_stay_as_they_are(tmp_path: Path) -> None:
    log = tmp_path / "log"
    messages = kt.message(kt.Record(value=b"v"), magic=1) + kt.message(kt.Record(), magic=0)
    log.write_bytes(messages + kt.batch([kt.Record()], base_offset=2))
    rebase(log, 0, 7)
    assert log.read_bytes() == moved(messages + kt.batch([kt.Record()], base_offset=2), 0, 7)
    assert log.read_bytes().startswith(messages)


def test_an_empty_segment_has_nothing_to_move(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"")
    rebase(tmp_path / "log", 1, 1)
    assert (tmp_path / "log").read_bytes() == b""
