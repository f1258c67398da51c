from __future__ import annotations

import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kafkajit import testing as kt
from kafkajit.format.layout import MAGIC_OFFSET
from kafkajit.format.message_checksum import message_checksums
from kafkajit.storage.source import as_bytes


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_it_is_zlibs_crc_from_magic_to_the_end(values: list[bytes]) -> None:
    parts = [bytes(MAGIC_OFFSET) + value for value in values]
    ends = np.cumsum([0, *map(len, parts)])
    computed = message_checksums(as_bytes(b"".join(parts)), ends[:-1], ends[1:])
    assert computed.tolist() == [zlib.crc32(value) for value in values]


def test_nothing_behind_a_message_counts() -> None:
    message = kt.message(kt.Record(value=b"v"))
    end = np.array([len(message)])
    (first,) = message_checksums(as_bytes(message + b"more"), np.array([0]), end)
    (second,) = message_checksums(as_bytes(message + b"else"), np.array([0]), end)
    assert first == second == int.from_bytes(message[12:16])


def test_every_size_around_the_blocks_it_is_made_of() -> None:
    noise = np.random.default_rng(1).bytes(MAGIC_OFFSET + 100)
    ends = np.arange(MAGIC_OFFSET, len(noise) + 1)
    computed = message_checksums(as_bytes(noise), np.zeros_like(ends), ends)
    assert computed.tolist() == [zlib.crc32(noise[MAGIC_OFFSET:end]) for end in ends.tolist()]
