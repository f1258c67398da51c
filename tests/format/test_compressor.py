from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Callable

import cramjam
import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

from kafkajit.format.codecs import COMPRESSION_IDS, GZIP, LZ4, SNAPPY, ZSTD
from kafkajit.format.compressor import LEVELS, Compressor, check_level, compressed_bound

CODECS = [GZIP, SNAPPY, LZ4, ZSTD]
NAMES = {number: name for name, number in COMPRESSION_IDS.items()}
by_codec = pytest.mark.parametrize("codec", CODECS, ids=NAMES.get)


def levels_of(codec: int) -> list[int | None]:
    """None, the default, both ends, and some between."""
    if codec not in LEVELS:
        return [None]
    default, least, most = LEVELS[codec]
    inner = {level for level in (-3, -1, 1, 2, 5, 16) if least < level < most}
    return [None, *sorted({default, least, most} | inner)]


LEVELS_OF_ALL = [(codec, level) for codec in CODECS for level in levels_of(codec)]
by_level = pytest.mark.parametrize(("codec", "level"), LEVELS_OF_ALL)


# The highest levels of zstd are slow to start.
compressor = functools.cache(Compressor)


def compressed(plain: bytes, codec: int, level: int | None = None, **how: bool) -> bytes:
    """The bytes between others, which stay as they were."""
    most = compressed_bound(len(plain), 1)
    out = np.full(7 + most + 5, 0xAA, dtype=np.uint8)
    data = np.frombuffer(plain, dtype=np.uint8)
    end = compressor(codec, level, **how).write(data, out, 7)
    assert 7 <= end <= 7 + most
    assert (out[:7] == 0xAA).all()
    assert (out[end:] == 0xAA).all()
    return out[7:end].tobytes()


def plain_bytes(size: int) -> bytes:
    """Bytes that compress, as records do."""
    words = b"".join(b'{"order": %d, "state": "paid"}' % (n * n) for n in range(size // 20 + 1))
    return words[:size]


@pytest.mark.parametrize(
    ("codec", "level"),
    [(codec, level) for codec, level in LEVELS_OF_ALL if level in (None, 1, 5)],
)
@given(st.binary(max_size=300) | st.integers(0, 200_000).map(plain_bytes))
def test_what_is_compressed_is_what_was_given(codec: int, level: int | None, plain: bytes) -> None:
    assert reference.decompress(codec, compressed(plain, codec, level)) == plain


@by_codec
@pytest.mark.parametrize("size", [0, 1, 100, 32 << 10, (32 << 10) + 1, 64 << 10, (64 << 10) + 1])
def test_blocks_end_anywhere(codec: int, size: int) -> None:
    plain = plain_bytes(size)
    assert reference.decompress(codec, compressed(plain, codec)) == plain


def noise(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


def all_above_143(size: int) -> bytes:
    """What gzip's fixed codes make an eighth larger."""
    return np.random.default_rng(size).integers(144, 256, size, dtype=np.uint8).tobytes()


def short_matches(size: int) -> bytes:
    """What makes snappy's literals short and its copies short, too."""
    random = np.random.default_rng(size)
    words = [random.bytes(4) for _ in range(200)]
    found = bytearray(b"".join(words))
    while len(found) < size:
        found += random.bytes(18) + words[random.integers(200)]
    return bytes(found[:size])


@by_level
@pytest.mark.parametrize("bytes_of", [noise, all_above_143, short_matches])
@pytest.mark.parametrize("size", [0, 1, 15, 100, 1000, 16384, 65536, 300_000])
def test_what_does_not_compress_takes_no_more_room_than_was_said(
    codec: int, level: int | None, bytes_of: Callable[[int], bytes], size: int
) -> None:
    plain = bytes_of(size)
    assert reference.decompress(codec, compressed(plain, codec, level)) == plain


def test_many_parts_take_no_more_room_than_was_said() -> None:
    parts = [bytes([n]) * (n % 5) for n in range(200)]
    for codec in CODECS:
        total = sum(len(compressed(part, codec)) for part in parts)
        assert total <= compressed_bound(sum(map(len, parts)), len(parts))


# Frames, as Kafka's clients write them


def test_gzip_is_one_member() -> None:
    for level in (None, 1, 9):
        whole = compressed(plain_bytes(1000), GZIP, level)
        assert whole[:3] == b"\x1f\x8b\x08"
        member = zlib.decompressobj(31)
        assert member.decompress(whole) == plain_bytes(1000)
        assert member.eof
        assert member.unused_data == b""


def test_snappy_is_in_blocks_of_32_kib_in_a_xerial_frame() -> None:
    plain = plain_bytes((64 << 10) + 5)
    whole = compressed(plain, SNAPPY)
    assert whole[:16] == b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    sizes, position = [], 16
    while position < len(whole):
        (size,) = struct.unpack_from(">i", whole, position)
        block = whole[position + 4 : position + 4 + size]
        sizes.append(len(bytes(cramjam.snappy.decompress_raw(block))))
        position += 4 + size
    assert sizes == [32 << 10, 32 << 10, 5]


def test_lz4_is_in_independent_blocks_of_64_kib_and_stores_what_does_not_compress() -> None:
    stored = noise(64 << 10)
    whole = compressed(plain_bytes(64 << 10) + stored + b"end", LZ4)
    assert whole[:7] == b"\x04\x22\x4d\x18\x60\x40\x82"
    (first,) = struct.unpack_from("<I", whole, 7)
    assert first < 64 << 10
    (second,) = struct.unpack_from("<I", whole, 11 + first)
    assert second == 1 << 31 | 64 << 10
    assert whole[15 + first : 15 + first + len(stored)] == stored
    (third,) = struct.unpack_from("<I", whole, 15 + first + len(stored))
    assert third == 1 << 31 | 3
    assert whole.endswith(b"end" + bytes(4))


def test_lz4_of_v0_has_the_checksum_of_kafkas_first_writer() -> None:
    plain = plain_bytes(1000)
    first, later = compressed(plain, LZ4, first_lz4=True), compressed(plain, LZ4)
    # As kafka-python and the first broker computed it, over the frame's magic too: xxhash32 of
    # 04 22 4d 18 60 40, its second byte.
    assert first[6] == 0x1A
    assert first[:6] + later[6:7] + first[7:] == later
    for codec in (GZIP, SNAPPY, ZSTD):
        assert compressed(plain, codec, first_lz4=True) == compressed(plain, codec)


def test_zstd_is_one_frame_that_says_its_size() -> None:
    whole = compressed(plain_bytes(1000), ZSTD)
    assert whole[:4] == b"\x28\xb5\x2f\xfd"
    assert whole[4] & 0xC0 == 0x40  # its size takes two bytes, less 256
    assert struct.unpack_from("<H", whole, 5)[0] + 256 == 1000


# Levels


@by_codec
def test_a_higher_level_makes_less_of_it(codec: int) -> None:
    if codec not in LEVELS:
        return
    plain = plain_bytes(100_000)
    _, _, most = LEVELS[codec]
    assert len(compressed(plain, codec, most)) < len(compressed(plain, codec, 1))
    assert compressed(plain, codec, LEVELS[codec][0]) == compressed(plain, codec)


@pytest.mark.parametrize(
    ("codec", "levels", "refused"),
    [
        (GZIP, [-1, 1, 9], [-2, 0, 10]),
        (LZ4, [1, 9, 17], [-1, 0, 18]),
        (ZSTD, [-131072, -1, 0, 1, 22], [-131073, 23]),
    ],
    ids=["gzip", "lz4", "zstd"],
)
def test_levels_are_kafkas(codec: int, levels: list[int], refused: list[int]) -> None:
    for level in levels:
        check_level(codec, level)
        assert reference.decompress(codec, compressed(b"records", codec, level)) == b"records"
    for level in refused:
        with pytest.raises(ValueError, match=f"^{NAMES[codec]} has levels from .*, not {level}$"):
            Compressor(codec, level)


@pytest.mark.parametrize("codec", [0, SNAPPY])
def test_what_has_no_levels_takes_none(codec: int) -> None:
    check_level(codec, None)
    with pytest.raises(ValueError, match=f"^{NAMES[codec]} has no levels$"):
        check_level(codec, 1)
