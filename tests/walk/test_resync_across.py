"""A batch that was never finished claims bytes of the sound one that was written over it."""

from __future__ import annotations

import pytest

import kafkajit
import kafkajit.testing as kt

TORN = kt.batch([kt.Record(value=b"x" * 40)])
SOUND = kt.batch([kt.Record(value=b"kept")], base_offset=6)


def lead(left: int) -> bytes:
    """The beginning of a torn batch whose claimed end has this number of bytes behind it."""
    length = 62 + len(SOUND) - left - 12
    return (TORN[:8] + length.to_bytes(4) + TORN[12:])[:62]


@pytest.mark.parametrize("left", range(18))
def test_a_sound_batch_across_the_claimed_end_is_read(left: int) -> None:
    rows = kafkajit.read_records(lead(left) + SOUND, mode="DROPMALFORMED")
    assert rows["offset"].to_pylist() == [6]


@pytest.mark.parametrize("left", range(18))
@pytest.mark.parametrize("magic", [1, 2])
def test_a_batch_in_a_damaged_ones_value_is_not_read(magic: int, left: int) -> None:
    record = kt.Record(value=SOUND)
    whole = kt.batch([record]) if magic == 2 else kt.message(record, magic=1)
    damaged = bytearray(whole)
    damaged[30] ^= 1
    rows = kafkajit.read_records(bytes(damaged) + SOUND[:left], mode="DROPMALFORMED")
    assert rows.num_rows == 0
