from __future__ import annotations

import random

import cramjam
import numpy as np
import pytest
import reference
from corpus import NO_JIT
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkajit.format.snappy import BAD_BLOCK, decompress_block

MARGIN = 40  # bytes around the block and around its output, which stay as they are
SIZES = [0, 1, 5, 15, 16, 17, 63, 64, 65, 79, 80, 81, 200, 1000, 5000]


def decompress(block: bytes, room: int) -> bytes | None:
    """What the kernel makes of a block amid other bytes; None where it refuses it."""
    around = np.frombuffer(b"\xfe" * MARGIN + block + b"\xfe" * MARGIN, dtype=np.uint8)
    source = around[: MARGIN + len(block)] if room % 2 else around  # nothing behind the block, too
    out = np.full(2 * MARGIN + room, 0xAA, dtype=np.uint8)
    source.flags.writeable = False
    end = decompress_block(source, MARGIN, MARGIN + len(block), out, MARGIN, room)
    assert (out[:MARGIN] == 0xAA).all()
    assert (out[MARGIN + room :] == 0xAA).all()
    return None if end == BAD_BLOCK else out[MARGIN:end].tobytes()


def twin(block: bytes, room: int) -> bytes | None:
    try:
        plain = reference.unsnappy_block(block)
    except (ValueError, IndexError):
        return None
    return plain if len(plain) <= room else None


def size(number: int) -> bytes:
    encoded = b""
    while number >= 0x80:
        encoded += bytes([number & 0x7F | 0x80])
        number >>= 7
    return encoded + bytes([number])


def literal(text: bytes, extra: int | None = None) -> bytes:
    if extra is None:
        return bytes([(len(text) - 1) << 2]) + text
    return bytes([(59 + extra) << 2]) + (len(text) - 1).to_bytes(extra, "little") + text


def copy(kind: int, length: int, back: int) -> bytes:
    if kind == 1:
        return bytes([1 | (length - 4) << 2 | back >> 8 << 5, back & 0xFF])
    return bytes([kind | (length - 1) << 2]) + back.to_bytes(2 if kind == 2 else 4, "little")


def words(rng: random.Random, length: int) -> bytes:
    """Text that snappy finds short copies in."""
    known = [bytes(rng.choices(b"abcdef", k=rng.randrange(1, 9))) for _ in range(20)]
    text = b""
    while len(text) < length:
        text += rng.choice(known) + (b"%d" % rng.randrange(1000) if rng.random() < 0.3 else b"")
    return text[:length]


@pytest.mark.parametrize("length", SIZES)
def test_what_snappy_compressed_comes_back(length: int) -> None:
    rng = random.Random(length)
    for plain in (words(rng, length), rng.randbytes(length), bytes(length), b"ab" * (length // 2)):
        block = bytes(cramjam.snappy.compress_raw(plain))
        for room in (len(plain), len(plain) + 1, 2 * len(plain) + 100):
            assert decompress(block, room) == plain


@pytest.mark.parametrize("length", SIZES[1:])
def test_a_block_that_is_larger_than_its_room_is_refused(length: int) -> None:
    block = bytes(cramjam.snappy.compress_raw(words(random.Random(length), length)))
    assert decompress(block, length - 1) is None


@pytest.mark.parametrize(
    ("kind", "length"),
    [
        (1, 4),
        (1, 11),
        *((kind, length) for kind in (2, 3) for length in (1, 15, 16, 17, 32, 33, 64)),
    ],
)
def test_copies_of_every_kind_reach_back_as_far_as_the_block(kind: int, length: int) -> None:
    before = random.Random(kind * length).randbytes(1200)
    for back in [*range(1, 70), 255, 256, 1199, 1200]:
        # Followed by enough bytes that the copy is not near the end.
        block = size(1200 + length + 300) + literal(before, 2) + copy(kind, length, back)
        block += literal(bytes(300), 2)
        assert decompress(block, 4096) == twin(block, 4096)
        assert twin(block, 4096) is not None
    for back in (0, 1201, 2000):
        block = size(1200 + length) + literal(before, 2) + copy(kind, length, back)
        assert decompress(block, 4096) is None


@pytest.mark.parametrize("extra", [None, 1, 2, 3, 4])
def test_literals_of_every_length_and_encoding(extra: int | None) -> None:
    for length in [*range(1, 70), 100, 256]:
        if (extra is None and length > 60) or (extra == 1 and length > 255):
            continue
        text = random.Random(length).randbytes(length)
        for behind in (b"", literal(bytes(60)) * 4):
            block = size(length + 60 * 4 * bool(behind)) + literal(text, extra) + behind
            assert decompress(block, 4096) == text + bytes(60 * 4 * bool(behind))


@pytest.mark.parametrize(
    "block",
    [
        b"",
        b"\x80",
        b"\xff" * 6 + b"\x00a",
        size(1),
        size(0) + literal(b"a"),
        size(1) + literal(b"ab"),
        size(3) + literal(b"ab"),
        size(2) + literal(b"ab")[:-1],
        size(70) + literal(b"a" * 70, 1)[:1],
        size(6) + literal(b"ab") + copy(1, 4, 2)[:1],
        size(6) + literal(b"ab") + copy(1, 4, 3),
        size(100) + copy(2, 4, 1),
        size(2**32 - 1) + literal(b"a", 4)[:1] + b"\xff\xff\xff\xff",
    ],
    ids=repr,
)
def test_what_is_no_block_is_refused(block: bytes) -> None:
    assert decompress(block, 4096) is None
    assert twin(block, 4096) is None


@pytest.mark.thorough
@given(st.binary(max_size=60), st.integers(0, 300))
@settings(max_examples=300 if NO_JIT else 2000, deadline=None)
def test_any_bytes_are_read_as_by_the_twin(block: bytes, room: int) -> None:
    assert decompress(block, room) == twin(block, room)


@pytest.mark.thorough
def test_damaged_blocks_are_read_as_by_the_twin() -> None:
    rng = random.Random(7)
    taken = 0
    for _ in range(200 if NO_JIT else 4000):
        block = bytearray(cramjam.snappy.compress_raw(words(rng, rng.randrange(1, 700))))
        for _ in range(rng.randrange(1, 4)):
            block[rng.randrange(len(block))] = rng.randrange(256)
        expected = twin(bytes(block), 1000)
        assert decompress(bytes(block), 1000) == expected
        taken += expected is not None
    assert taken  # the format does not notice some damage
