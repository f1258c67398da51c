from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.format import batch_checksum, message_checksum
from kafkajit.format.crc import move, over_zeros, slicing_tables, take_bytes
from kafkajit.storage.source import as_bytes

by_kind = pytest.mark.parametrize(
    ("polynomial", "checksum"),
    [(batch_checksum.POLYNOMIAL, crc32c), (message_checksum.POLYNOMIAL, zlib.crc32)],
    ids=["CRC-32C", "CRC-32"],
)
ALL_ONES = np.uint64(0xFFFFFFFF)


@by_kind
@given(content=st.binary(max_size=40), behind=st.integers(0, 9))
def test_bytes_are_taken_by_tables(
    polynomial: int, checksum: Callable[[bytes], int], content: bytes, behind: int
) -> None:
    tables = slicing_tables(polynomial)
    taken = take_bytes(ALL_ONES, as_bytes(content + bytes(behind)), 0, len(content), tables)
    assert np.uint64(taken) ^ ALL_ONES == checksum(content)


@by_kind
@given(first=st.binary(max_size=40), second=st.binary(max_size=2000))
def test_the_sum_of_two_stretches_follows_from_those_of_each(
    polynomial: int, checksum: Callable[[bytes], int], first: bytes, second: bytes
) -> None:
    moved = move(np.uint64(checksum(first)), len(second), over_zeros(polynomial))
    assert int(moved) ^ checksum(second) == checksum(first + second)
