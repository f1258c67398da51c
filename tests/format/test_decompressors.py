from __future__ import annotations

import ctypes
import gzip
import random
import threading
import types

import numpy as np
import pytest
import zstandard
from corpus import NO_JIT

import kafkajit
from kafkajit import testing as kt
from kafkajit.format import decompressors
from kafkajit.format.compression import LZ4_KAFKA_HEADER, DecodeError, decompress_into
from kafkajit.format.decompressors import CompressedBatches, decompress_frame, decompress_run
from kafkajit.kernel.intrinsics import HAS_C

CODECS = ["gzip", "snappy", "lz4", "zstd"]
by_codec = pytest.mark.parametrize("codec", CODECS)
by_variant = pytest.mark.parametrize("variant", [name for name in kt.COMPRESSORS if name != "none"])
# snappy's kernel needs no C; without compilation it is not used.
TAKEN = {codec: HAS_C or (codec == "snappy" and not NO_JIT) for codec in CODECS}


def run(
    codec: int,
    payloads: list[bytes],
    room: int,
    *,
    limit: int = 1 << 20,
    enough: int = 1 << 20,
    magic: int = 2,
    counts: list[int] | None = None,
) -> list[bytes]:
    """The payloads that the kernel decompresses, given one after the other."""
    content = np.frombuffer(b"".join(payloads), dtype=np.uint8)
    ends = np.cumsum([len(payload) for payload in payloads], dtype=np.int64)
    starts = ends - [len(payload) for payload in payloads]
    rows = len(payloads)
    out = np.full(room + 64, 0xAA, dtype=np.uint8)
    extents = np.zeros((rows, 2), dtype=np.int64)
    stopped = decompress_run(
        content,
        CompressedBatches(
            starts,
            ends,
            np.full(rows, codec, dtype=np.int16),
            np.full(rows, magic, dtype=np.int8),
            np.array(counts or [1] * rows, dtype=np.int32),
        ),
        out[:room],
        extents,
        0,
        limit=limit,
        enough=enough,
    )
    assert (out[room:] == 0xAA).all()
    return [out[start:end].tobytes() for start, end in extents[:stopped].tolist()]


def the_general_way(codec: int, payload: bytes, room: int) -> bytes | DecodeError:
    out = np.empty(room, dtype=np.uint8)
    try:
        return out[: decompress_into(codec, memoryview(payload), out)].tobytes()
    except DecodeError as refused:
        return refused


def text(size: int) -> bytes:
    return (b"offset %d key and value " * (size // 20 + 1))[:size]


def noise(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


def compress(variant: str, plain: bytes) -> bytes:
    return kt.COMPRESSORS[variant][1](plain)


def code(variant: str) -> int:
    return kt.COMPRESSORS[variant][0]


@by_codec
def test_batches_of_kafkas_clients_are_all_taken(codec: str) -> None:
    plains = [text(1), text(100), noise(3000), text(70_000), bytes(200_000), text(5)]
    payloads = [compress(codec, plain) for plain in plains]
    expected = plains if TAKEN[codec] else []
    assert run(code(codec), payloads, sum(map(len, plains))) == expected


@by_variant
def test_what_is_taken_is_what_the_general_way_gives(variant: str) -> None:
    rng = random.Random(variant)
    for size in (1, 40, 5000, 140_000):
        payload = compress(variant, text(size))
        damaged = [payload]
        for _ in range(3 if NO_JIT else 100):
            mutant = bytearray(payload)
            for _ in range(rng.randrange(1, 3)):
                mutant[rng.randrange(min(len(mutant), 64 if rng.random() < 0.5 else 1 << 20))] = (
                    rng.randrange(256)
                )
            damaged.append(bytes(mutant))
            damaged.append(payload[: rng.randrange(len(payload))])
            damaged.append(payload + rng.randbytes(rng.randrange(1, 9)))
        for one in damaged:
            for room in (size, size + 100):
                for plain in run(code(variant), [one], room):
                    general = the_general_way(code(variant), one, room)
                    if isinstance(general, DecodeError):
                        # If there is room, zstd accepts blocks larger than the format allows.
                        assert "Data corruption detected" in str(general)
                        assert len(plain) > 1 << 17
                    else:
                        assert general == plain


@by_codec
def test_the_first_batch_that_is_not_plain_ends_the_run(codec: str) -> None:
    good = compress(codec, text(100))
    taken = [text(100)] * 2 if TAKEN[codec] else []
    for bad in (b"", b"junk", good[:-1], b"\xff" * 40):
        assert run(code(codec), [good, good, bad, good], 1000) == taken


@by_codec
def test_a_batch_takes_no_more_than_the_room_and_the_limit(codec: str) -> None:
    payloads = [compress(codec, text(100)), compress(codec, text(5000))]
    both = [text(100), text(5000)] if TAKEN[codec] else []
    assert run(code(codec), payloads, 5100, limit=5000) == both
    assert run(code(codec), payloads, 5099) == both[:1]
    assert run(code(codec), payloads, 6000, limit=4999) == both[:1]


@by_codec
def test_a_run_ends_when_there_is_enough(codec: str) -> None:
    payloads = [compress(codec, text(1000))] * 5
    taken = [text(1000)] * 3 if TAKEN[codec] else []
    assert run(code(codec), payloads, 9000, enough=2000) == taken


@by_codec
def test_a_batch_without_records_is_not_looked_into(codec: str) -> None:
    payloads = [b"junk", compress(codec, text(10))]
    taken = [b"", text(10)] if TAKEN[codec] else []
    assert run(code(codec), payloads, 100, counts=[0, 1]) == taken


def test_zstd_in_messages_is_left_to_be_refused() -> None:
    assert run(4, [compress("zstd", text(10))], 100, magic=1) == []


def test_a_zstd_window_that_java_refuses_is_left_to_be_refused() -> None:
    def frame(descriptor: int) -> bytes:
        raw = (len(b"records") << 3 | 1).to_bytes(3, "little") + b"records"
        return b"\x28\xb5\x2f\xfd\x00" + bytes([descriptor]) + raw

    largest = 27 - 10 << 3
    assert run(4, [frame(largest)], 100) == ([b"records"] if TAKEN["zstd"] else [])
    assert run(4, [frame(largest + 1)], 100) == []
    with pytest.raises(DecodeError, match="zstd"):
        decompress_into(4, memoryview(frame(largest + 8)), np.empty(100, dtype=np.uint8))
    single = zstandard.compress(b"records")
    assert single[4] >> 5 & 1
    claimed = single[:4] + bytes([single[4] | 0xC0]) + (2**27 + 1).to_bytes(8, "little")
    assert run(4, [claimed + single[6:]], 100) == []


@pytest.mark.parametrize("behind", [b"", b"junk", b"\x07\0\0\x80another\0\0\0\0"])
def test_an_lz4_block_of_no_bytes_ends_the_frame_stored_or_not(behind: bytes) -> None:
    for mark in (b"\0\0\0\0", b"\0\0\0\x80"):
        frame = LZ4_KAFKA_HEADER + b"\x07\0\0\x80records" + mark + behind
        assert run(3, [frame], 100) == ([b"records"] if TAKEN["lz4"] else [])
        for room in (7, 1 << 17):
            assert the_general_way(3, frame, room) == b"records"


@pytest.mark.parametrize("flags", [1, 2, 4, 8, 16, 32, 64, 128])
def test_a_gzip_header_with_options_is_left_to_who_checks_them(flags: int) -> None:
    plain = gzip.compress(b"records", mtime=0)
    options = {2: b"\0\0", 4: b"\1\0x", 8: b"name\0", 16: b"comment\0"}.get(flags, b"")
    payload = plain[:3] + bytes([flags]) + plain[4:10] + options + plain[10:]
    assert run(1, [payload], 100) == []
    if flags == 2:  # and has another checksum than it says
        assert isinstance(the_general_way(1, payload, 100), DecodeError)
    elif flags < 32:
        assert the_general_way(1, payload, 100) == b"records"


def test_what_only_the_c_functions_take() -> None:
    """Nobody writes it, and no byte beyond the room is touched; else it is worth another look."""
    block = (3000 << 3 | 1).to_bytes(3, "little") + text(3000)
    larger_than_its_window = b"\x28\xb5\x2f\xfd\0\0" + block
    length_code_286 = bytes.fromhex("1f8b08000129fbf411c963601807e4020004c8f6ed3c010000")
    for codec, payload, size in ((4, larger_than_its_window, 3000), (1, length_code_286, 316)):
        assert [len(plain) for plain in run(codec, [payload], size)] == [size] * HAS_C
        assert run(codec, [payload], size - 1) == []
        assert isinstance(the_general_way(codec, payload, 5000), DecodeError)


@by_codec
def test_without_the_packages_functions_all_is_read_the_general_way(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = b"".join(
        kt.batch([kt.Record(value=text(300))] * 5, codec=codec, base_offset=5 * i) for i in range(9)
    )
    expected = kafkajit.read_records(log)

    def missing(*_module: str) -> None:
        raise AttributeError("undefined symbol")

    monkeypatch.setattr(decompressors, "_library", missing)
    monkeypatch.setattr(decompressors, "_zstd_library", missing)
    monkeypatch.setattr(decompressors, "_DECODERS", decompressors._Decoders())
    assert kafkajit.read_records(log).equals(expected)


@pytest.mark.parametrize("library", [types.SimpleNamespace(), None], ids=["exports none", "none"])
def test_a_python_with_zstd_built_in_takes_the_systems(
    library: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built_in(_module: str) -> object:
        if library is None:
            raise AttributeError("module '_zstd' has no attribute '__file__'")
        return library

    monkeypatch.setattr(decompressors, "_library", built_in)
    monkeypatch.setattr(decompressors, "_DECODERS", decompressors._Decoders())
    try:
        ctypes.CDLL("libzstd.so.1")
    except OSError:
        pytest.skip("this system has no libzstd.so.1")
    taken = [text(100)] if HAS_C else []
    assert run(4, [compress("zstd", text(100))], 100) == taken


def test_threads_do_not_spoil_each_others_batches() -> None:
    logs = {
        codec: b"".join(
            kt.batch([kt.Record(value=noise(50) + text(2000))] * 9, codec=codec, base_offset=9 * i)
            for i in range(3 if NO_JIT else 60)
        )
        for codec in CODECS
    }
    expected = {codec: kafkajit.read_records(log) for codec, log in logs.items()}
    wrong: list[str] = []

    def read() -> None:
        for _ in range(1 if NO_JIT else 5):
            for codec, log in logs.items():
                if not kafkajit.read_records(log).equals(expected[codec]):
                    wrong.append(codec)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not HAS_C, reason="calls libzstd's function")
def test_a_frame_of_exactly_its_size_fills_the_memory() -> None:
    plain = random.Random(3).randbytes(5000) * 20
    frame = memoryview(zstandard.compress(plain))
    memory = bytearray(len(plain))
    assert decompress_frame(frame, memoryview(memory))
    assert memory == plain
    for wrong in (frame[:-1], memoryview(bytes(frame) + b"x"), memoryview(b"")):
        assert not decompress_frame(wrong, memoryview(memory))
    for size in (0, len(plain) - 1, len(plain) + 1):
        guarded = bytearray(b"\xaa") * (size + 64)
        assert not decompress_frame(frame, memoryview(guarded)[:size])
        assert guarded[size:] == b"\xaa" * 64
