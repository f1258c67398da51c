from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import BATCH

from kafkajit import testing as kt
from kafkajit.records.resync import next_sound_batch, resync
from kafkajit.source import as_bytes

A = kt.batch([kt.Record(b"a", b"1" * 30)], base_offset=1)
B = kt.batch([kt.Record(b"b", b"2" * 50)], base_offset=2, codec="zstd")


@pytest.mark.parametrize("before", [b"", b"x", bytes(60), bytes(5000), b"\x02" * 100, B[:-1]])
@pytest.mark.parametrize("behind", [b"", b"torn", B])
def test_the_next_sound_batch_is_found_at_any_distance(before: bytes, behind: bytes) -> None:
    content = as_bytes(before + A + behind)
    assert next_sound_batch(content, 0) == len(before)
    assert next_sound_batch(content, len(before)) == len(before)
    after = len(before) + len(A) if behind == B else content.size
    assert next_sound_batch(content, len(before) + 1) == after


@pytest.mark.parametrize("content", [b"", b"x", bytes(61), b"\x02" * 300, A[:-1], A[1:]])
def test_where_no_batch_is_sound_the_end_is_next(content: bytes) -> None:
    assert next_sound_batch(as_bytes(content), 0) == len(content)


def test_a_batch_whose_checksum_fails_is_not_sound() -> None:
    for at in range(21, len(A)):
        flipped = bytearray(A + B)
        flipped[at] ^= 1
        assert next_sound_batch(as_bytes(bytes(flipped)), 0) == len(A)


@pytest.mark.parametrize("behind", [B, b"", b"torn", b"\x00" * 17])
def test_a_bad_batch_ends_where_its_length_says_if_the_log_goes_on_there(behind: bytes) -> None:
    bad = bytearray(A + behind)
    bad[30] ^= 1  # its checksum fails
    assert resync(as_bytes(bytes(bad)), 0) == len(A)


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 48, len(A) - 13, len(A) - 11, 2**31 - 1])
def test_past_a_wrong_length_the_next_sound_batch_is_where_it_goes_on(length: int) -> None:
    bad = A[:8] + length.to_bytes(4, "big", signed=True) + A[12:]
    assert resync(as_bytes(bad + B), 0) == len(A)
    assert resync(as_bytes(B + bad + B), len(B)) == len(B) + len(A)
    assert resync(as_bytes(bad + b"t" * 30), 0) == len(bad) + 30


@given(st.lists(st.one_of(BATCH, st.binary(max_size=30)), max_size=5), st.floats(0, 1))
def test_resyncing_goes_forward_and_stays_inside(parts: list[bytes], where: float) -> None:
    content = as_bytes(b"".join(parts))
    position = int(where * content.size)
    after = resync(content, position)
    assert min(position + 1, content.size) <= after <= content.size


def test_a_large_gap_is_crossed() -> None:
    noise = np.random.default_rng(2).bytes(5000)
    assert next_sound_batch(as_bytes(noise + A), 0) == 5000
