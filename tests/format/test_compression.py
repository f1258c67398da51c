from __future__ import annotations

import gzip
import tracemalloc

import cramjam
import lz4.frame
import numpy as np
import pytest
import reference
import zstandard
from corpus import NO_JIT, by_v2_log

import kafkajit
from kafkajit import testing as kt
from kafkajit.format.codecs import COMPRESSION_TYPES
from kafkajit.format.compression import DecodeError, OutputFull, Scratch, decompress_into

VARIANTS = [name for name in kt.COMPRESSORS if name != "none"]
by_variant = pytest.mark.parametrize("variant", VARIANTS)

# Sizes around the blocks of snappy-java (32 KiB), LZ4 (64 KiB) and zstd (128 KiB), and some more.
SIZES = [0, 1, 2, 13, 100, 32_767, 32_768, 32_769, 65_536, 131_072, 131_073, 400_000]


def text(size: int) -> bytes:
    return (b"offset %d key and value " * (size // 20 + 1))[:size]


def noise(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


def zeros(size: int) -> bytes:
    return bytes(size)


def decompress(variant: str, compressed: bytes, room: int) -> bytes:
    out = np.full(room, 0xAA, dtype=np.uint8)
    size = decompress_into(kt.COMPRESSORS[variant][0], memoryview(compressed), out)
    return out[:size].tobytes()


def compress(variant: str, plain: bytes) -> bytes:
    return kt.COMPRESSORS[variant][1](plain)


@by_variant
@pytest.mark.parametrize("fill", [text, noise, zeros], ids=lambda fill: fill.__name__)
@pytest.mark.parametrize("size", SIZES)
def test_what_was_compressed_comes_back(variant: str, fill: object, size: int) -> None:
    plain = fill(size)
    compressed = compress(variant, plain)
    for room in (size, size + 1, 2 * size + 100):
        if room:
            assert decompress(variant, compressed, room) == plain
    scratch = Scratch(max(size, 1))
    scratch.append(np.frombuffer(b"before", dtype=np.uint8))
    scratch.decompress(kt.COMPRESSORS[variant][0], memoryview(compressed))
    assert scratch.buffer[: scratch.written].tobytes() == b"before" + plain


@by_variant
@pytest.mark.parametrize("size", [1, 100, 40_000, 300_000])
def test_the_output_may_be_as_large_as_its_room_and_no_larger(variant: str, size: int) -> None:
    for plain in (text(size), noise(size)):
        compressed = compress(variant, plain)
        assert decompress(variant, compressed, size) == plain
        with pytest.raises(OutputFull):
            decompress(variant, compressed, size - 1)


@by_variant
@pytest.mark.parametrize("size", [1, 5000, 300_000])
def test_the_limit_is_each_batchs_own(variant: str, size: int) -> None:
    codec, plain = kt.COMPRESSORS[variant][0], text(size)
    compressed = memoryview(compress(variant, plain))
    scratch = Scratch(size)
    for count in (1, 2, 3):
        scratch.decompress(codec, compressed)
        assert scratch.buffer[: scratch.written].tobytes() == plain * count
    scratch = Scratch(size + 1)
    scratch.decompress(codec, compressed)
    assert scratch.written == size
    scratch = Scratch(size - 1)
    with pytest.raises(OutputFull):
        scratch.decompress(codec, compressed)
    assert scratch.written == 0


def bomb(variant: str, size: int) -> bytes:
    return compress(variant, bytes(size))


@by_variant
def test_a_bomb_is_stopped_at_the_limit(variant: str) -> None:
    limit, size = 1 << 20, 1 << 26
    if variant == "snappy-small-blocks":
        size = 1 << 22  # that many blocks take the test's own compressor long
    compressed = memoryview(bomb(variant, size))
    tracemalloc.start()
    try:
        with pytest.raises(OutputFull):
            Scratch(limit).decompress(kt.COMPRESSORS[variant][0], compressed)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The decoder's own tables, the buffer before it grew, and one copy.
    assert most < 6 * limit + 2 * len(compressed)


def framed_lz4(declared: int) -> bytes:
    """A frame that claims a size, its header's checksum right (found by trying)."""
    frame = bytearray(lz4.frame.compress(b"abc" * 10, store_size=True))
    frame[6:14] = declared.to_bytes(8, "little")
    for checksum in range(256):
        frame[14] = checksum
        try:
            assert lz4.frame.get_frame_info(bytes(frame))["content_size"] == declared
        except RuntimeError:
            continue
        return bytes(frame)
    raise AssertionError


def framed_zstd(declared: int) -> bytes:
    frame = bytearray(zstandard.compress(noise(70_000)))
    assert frame[4] >> 6 == 2  # a size of four bytes
    frame[4] |= 0xC0
    return bytes(frame[:5]) + declared.to_bytes(8, "little") + bytes(frame[9:])


@pytest.mark.parametrize("declared", [1 << 33, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 3])
@pytest.mark.parametrize(
    ("codec", "frame"), [(3, framed_lz4), (4, framed_zstd)], ids=["lz4", "zstd"]
)
def test_a_size_that_a_frame_only_claims_is_not_allocated(
    codec: int, frame: object, declared: int
) -> None:
    compressed = memoryview(frame(declared))
    tracemalloc.start()
    try:
        with pytest.raises((OutputFull, DecodeError)):
            decompress_into(codec, compressed, np.empty(1000, dtype=np.uint8))
        with pytest.raises((OutputFull, DecodeError)):
            Scratch(1 << 20).decompress(codec, compressed)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_size_that_a_snappy_block_only_claims_is_not_allocated() -> None:
    block = b"\xff\xff\xff\xff\x0f" + b"\x00a" * 10
    with pytest.raises(OutputFull):
        Scratch(1 << 20).decompress(2, memoryview(block))


@pytest.mark.parametrize("declared", [29, 31])
def test_an_lz4_frame_of_another_size_than_it_claims_is_an_error(declared: int) -> None:
    with pytest.raises(DecodeError, match=r"^lz4: "):
        decompress_into(3, memoryview(framed_lz4(declared)), np.empty(1000, dtype=np.uint8))


@by_variant
def test_a_bomb_in_a_log_is_a_named_error(variant: str) -> None:
    log = kt.batch([kt.Record(value=bytes(100_000 if NO_JIT else 3_000_000))], codec=variant)
    with pytest.raises(
        kafkajit.DecompressionLimitError,
        match=r"^Record batch \(\w+, \d+ bytes\) holds more than max_decompressed_bytes = 50000",
    ):
        kafkajit.read_records(log, max_decompressed_bytes=50_000)


def ends(variant: str, plain: bytes) -> set[int]:
    """Where a stream may end: behind a member, frame or block, or in the next one's magic."""
    compressed = compress(variant, plain)
    first = len(compress(variant.split("-")[0], plain[: len(plain) // 2]))
    if variant in ("gzip-members", "lz4-frames", "zstd-frames"):
        size_of_magic = {"gzip-members": 2, "lz4-frames": 4, "zstd-frames": 1}[variant]
        return set(range(first, first + size_of_magic))
    if variant in ("snappy", "snappy-little-endian", "snappy-small-blocks"):
        block = 100 if variant == "snappy-small-blocks" else 32 * 1024
        order = "little" if variant == "snappy-little-endian" else "big"
        found, at = set(range(8, 17)), 16  # the frame's header alone: no records
        for _ in range(0, len(plain), block):
            at += 4 + int.from_bytes(compressed[at : at + 4], order)
            found.add(at)
        return found
    return set()


@by_variant
def test_a_stream_cut_anywhere_is_an_error(variant: str) -> None:
    plain = b"".join(b"record %d " % number for number in range(60))
    compressed = compress(variant, plain)
    name = COMPRESSION_TYPES[kt.COMPRESSORS[variant][0]]
    allowed = ends(variant, plain)
    for size in range(len(compressed)):
        if size in allowed:
            assert plain.startswith(decompress(variant, compressed[:size], 1 << 16))
        else:
            # The rest of snappy's magic reads as the size of a raw block.
            with pytest.raises((DecodeError, OutputFull)) as caught:
                decompress(variant, compressed[:size], 1 << 16)
            assert str(caught.value).startswith(f"{name}: ") or (name == "snappy" and size < 8)


@by_variant
def test_noise_is_an_error_and_not_a_crash(variant: str) -> None:
    plain = text(700)
    compressed = compress(variant, plain)
    refused = 0
    for at in range(len(compressed)):
        for flip in (0x01, 0x10, 0x80, 0xFF):
            flipped = bytearray(compressed)
            flipped[at] ^= flip
            try:
                decompress(variant, bytes(flipped), 1 << 16)
            except (DecodeError, OutputFull):
                refused += 1
    assert refused > len(compressed)  # of four times that


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@pytest.mark.parametrize("junk", [b"", b"\x01", b"junk of some length", b"\xff" * 100])
def test_what_no_codec_wrote_is_an_error(codec: int, junk: bytes) -> None:
    with pytest.raises((DecodeError, OutputFull)):
        decompress_into(codec, memoryview(junk), np.empty(1 << 16, dtype=np.uint8))


@pytest.mark.parametrize(
    ("codec", "stream"),
    [
        (1, gzip.compress(b"records") + b"\x00" * 9),
        (1, gzip.compress(b"records") + b"junk"),
        (3, lz4.frame.compress(b"records") + b"junk"),
    ],
    ids=["gzip zeros", "gzip junk", "lz4 junk"],
)
def test_bytes_behind_the_stream_are_ignored_as_in_java(codec: int, stream: bytes) -> None:
    out = np.empty(100, dtype=np.uint8)
    size = decompress_into(codec, memoryview(stream), out)
    assert out[:size].tobytes() == b"records"


def test_bytes_behind_a_zstd_frame_are_an_error() -> None:
    with pytest.raises(DecodeError, match=r"^zstd: "):
        decompress("zstd", zstandard.compress(b"records") + b"junk", 100)


@pytest.mark.parametrize("kind", range(16))
def test_skippable_zstd_frames_are_skipped(kind: int) -> None:
    skippable = bytes([0x50 + kind]) + b"\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    frame = compress("zstd", b"records")
    assert decompress("zstd", frame + skippable + frame, 100) == b"recordsrecords"


def test_a_zstd_frames_checksum_is_held_against_the_records() -> None:
    frame = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(text(500)))
    assert decompress("zstd", bytes(frame), 500) == text(500)
    frame[-1] ^= 1
    with pytest.raises(DecodeError, match=r"^zstd: "):
        decompress("zstd", bytes(frame), 500)
    with pytest.raises(DecodeError, match=r"^zstd: the frame ends early"):
        decompress("zstd", bytes(frame[:-4]), 500)


def test_snappy_streams_one_behind_the_other_are_read() -> None:
    stream = compress("snappy", b"records")
    assert decompress("snappy", stream + stream, 100) == b"recordsrecords"


def test_a_snappy_block_past_the_end_is_an_error() -> None:
    stream = compress("snappy", b"records")
    with pytest.raises(DecodeError, match="a block goes past the end of the records"):
        decompress("snappy", stream[:16] + (1000).to_bytes(4) + stream[20:], 2000)


def test_a_short_snappy_literal_may_say_its_length_at_length() -> None:
    block = b"\x02\xf0\x01ab"  # as snappy-java reads it
    assert decompress("snappy-raw", block, 3) == b"ab"
    stream = compress("snappy", b"records")
    assert decompress("snappy", stream + len(block).to_bytes(4) + block, 10) == b"recordsab"
    with pytest.raises(DecodeError, match="snappy"):
        decompress("snappy-raw", block[:-1], 3)


def test_an_empty_raw_snappy_block_is_empty() -> None:
    assert decompress("snappy-raw", bytes(cramjam.snappy.compress_raw(b"")), 10) == b""


@by_v2_log
def test_brokers_batches_are_decompressed_as_by_other_decoders(path: object) -> None:
    for batch in reference.read_batches(path.read_bytes())[0]:
        if batch.codec:
            expected = reference.decompress(batch.codec, batch.payload)
            scratch = Scratch(max(len(expected), 1))
            scratch.decompress(batch.codec, memoryview(batch.payload))
            assert scratch.buffer[: scratch.written].tobytes() == expected


def test_scratch_without_recycling_leaves_the_last_chunk_alone() -> None:
    scratch = Scratch(1000)
    scratch.append(np.frombuffer(b"first", dtype=np.uint8))
    first = scratch.content
    scratch.reset(recycle=False)
    scratch.append(np.frombuffer(b"second", dtype=np.uint8))
    assert first[:5].tobytes() == b"first"
    again = scratch.content
    scratch.reset(recycle=True)
    scratch.append(np.frombuffer(b"third", dtype=np.uint8))
    assert again[:6].tobytes() == b"thirdd"


def test_scratch_is_read_only_from_outside() -> None:
    assert not Scratch(10).content.flags.writeable


def test_scratch_grows_and_keeps_what_it_has() -> None:
    scratch = Scratch(100)
    for number in range(50):
        scratch.append(np.full(90, number, dtype=np.uint8))
    assert scratch.written == 4500
    assert scratch.content[:4500:90].tolist() == list(range(50))


@pytest.mark.parametrize(
    ("codec", "part"),
    [(1, gzip.compress(b"", mtime=0)), (3, lz4.frame.compress(b""))],
    ids=["gzip", "lz4"],
)
def test_more_parts_than_anybody_writes_are_refused(codec: int, part: bytes) -> None:
    out = np.empty(1 << 16, dtype=np.uint8)
    assert decompress_into(codec, memoryview(part * 200), out) == 0
    with pytest.raises(DecodeError, match="more than 256"):
        decompress_into(codec, memoryview(part * 300), out)


@pytest.mark.parametrize("size", SIZES)
def test_what_other_libraries_compressed_is_read(size: int) -> None:
    plain = text(size)
    raw = bytes(cramjam.snappy.compress_raw(plain))
    frame = zstandard.ZstdCompressor(level=1, write_checksum=True).compress(plain)
    assert decompress("snappy-raw", raw, size) == decompress("zstd", frame, size + 1) == plain


@pytest.mark.parametrize("block", [b"", b"\x80", b"\xff" * 4, b"\xff\xff\xff\xff\x10", b"\x80" * 9])
def test_a_snappy_block_without_its_size_is_an_error(block: bytes) -> None:
    with pytest.raises(DecodeError, match="the block does not begin with its size"):
        decompress("snappy-raw", block, 10)


def test_zstd_frames_may_be_many_and_each_is_read_once() -> None:
    frames = [zstandard.compress(b"%d," % i) for i in range(2000)]
    plain = b"".join(b"%d," % i for i in range(2000))
    assert decompress("zstd", b"".join(frames), len(plain)) == plain
    with pytest.raises(OutputFull):
        decompress("zstd", b"".join(frames), len(plain) - 1)
    with pytest.raises(DecodeError, match="the frame ends early"):
        decompress("zstd", b"".join(frames)[:-1], len(plain))
    frames[1000] = b"\0" + frames[1000][1:]
    with pytest.raises(DecodeError, match=r"^zstd: "):
        decompress("zstd", b"".join(frames), len(plain))
