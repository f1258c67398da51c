"""Seeds and mutations for tests/support/fuzz.py: small logs, and ways to spoil them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from corpus import SOUND_LOGS, split

from kafkajit import testing as kt

_MAX_SEED = 700


def seeds() -> list[bytes]:
    """Small logs of every codec, and batches that a real broker wrote."""
    records = [
        kt.Record(b"key", b"value", [("h", b"1"), ("h", None)]),
        kt.Record(None, b"v" * 70, timestamp=1_700_000_000_999),
        kt.Record(b"", None, [("é", b"x" * 70)], offset_delta=700),
    ]
    built = [
        kt.batch(records, base_offset=3, codec=codec, producer_id=1, base_sequence=2**31 - 2)
        + kt.batch(records[:1], base_offset=900, codec=codec)
        for codec in kt.COMPRESSORS
    ]
    sets = [
        kt.message_set(records, base_offset=3, magic=magic, codec=codec, timestamp_type=kind)
        for codec in kt.COMPRESSORS
        if codec != "zstd"
        for magic, kind in ((0, kt.CREATE_TIME), (1, kt.CREATE_TIME), (1, kt.LOG_APPEND_TIME))
    ]
    marker = kt.control_batch(1, coordinator_epoch=3, base_offset=40)
    real = {
        batch[21:]: batch  # not the same records again
        for path in SOUND_LOGS
        for batch in split(_beginning(path))
        if len(batch) < _MAX_SEED
    }
    return [*built, *sets, marker + kt.control_batch(0), kt.batch([]), *real.values()]


def _beginning(path: Path) -> bytes:
    return path.read_bytes()[:8000]


def mutants(count: int, seed: int) -> Iterator[bytes]:
    """Yield logs with one to four mutations each; two of three have right checksums again."""
    rng = random.Random(seed)
    sources = seeds()
    for _ in range(count):
        log = rng.choice(sources)
        if rng.random() < 0.3:
            log += rng.choice(sources)
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            log = rng.choice(_MUTATIONS)(rng, log)
        yield repaired(log) if rng.random() < 0.67 else log


def framed_mutant(rng: random.Random, sources: list[bytes]) -> bytes:
    """One batch of the length in its header, mutated before or after compression."""
    batch = rng.choice(sources)
    if rng.random() < 0.7:
        batch = split(batch)[0]
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        batch = rng.choice(_MUTATIONS)(rng, batch)
    if rng.random() < 0.3:
        batch = _compressed(rng, batch)
    batch = batch.ljust(17, b"\0")
    batch = batch[:8] + struct.pack(">i", len(batch) - 12) + batch[12:]
    return repaired(batch) if rng.random() < 0.8 else batch


def _compressed(rng: random.Random, batch: bytes) -> bytes:
    """The log as the payload of a compressed batch or message."""
    codec, compress = kt.COMPRESSORS[rng.choice(list(kt.COMPRESSORS))]
    if batch[16:17] >= b"\x02":
        attributes = bytes([batch[22] & ~7 | codec]) if len(batch) > 22 else b""
        return batch[:22] + attributes + batch[23:61] + compress(batch[61:])
    record = kt.Record(value=compress(repaired(batch)))
    offset = rng.choice([0, 1, 5, 1000])
    return kt.message(record, magic=rng.randrange(2), attributes=codec, offset=offset)


def repaired(log: bytes) -> bytes:
    """The log with a right checksum in every whole batch."""
    position = 0
    while position + 17 <= len(log):
        (length,) = struct.unpack_from(">i", log, position + 8)
        end = position + 12 + length
        if length < (14 if log[position + 16] < 2 else 49) or end > len(log):
            break
        log = kt.repair_crc(log, position)
        position = end
    return log


def _place(rng: random.Random, log: bytes) -> int:
    """A random place in the log; those in a header, or soon behind it, are more likely."""
    if rng.random() < 0.4:
        return rng.randrange(min(len(log), 90))
    return rng.randrange(len(log))


def _flip_a_bit(rng: random.Random, log: bytes) -> bytes:
    at = _place(rng, log)
    return log[:at] + bytes([log[at] ^ 1 << rng.randrange(8)]) + log[at + 1 :]


def _set_bytes(rng: random.Random, log: bytes) -> bytes:
    at = _place(rng, log)
    value = rng.choice([b"\x00", b"\xff", b"\x7f", b"\x80", b"\xff" * 4, bytes(4), bytes(8)])
    return log[:at] + value + log[at + len(value) :]


def _random_bytes(rng: random.Random, log: bytes) -> bytes:
    at = _place(rng, log)
    value = rng.randbytes(rng.randrange(1, 9))
    return log[:at] + value + log[at + len(value) :]


def _cut_the_end(rng: random.Random, log: bytes) -> bytes:
    return log[: rng.randrange(1, len(log) + 1)]


def _cut_out(rng: random.Random, log: bytes) -> bytes:
    at = _place(rng, log)
    return _with_length(log[:at] + log[at + rng.randrange(1, 20) :] or b"\x00", rng)


def _insert(rng: random.Random, log: bytes) -> bytes:
    at = _place(rng, log)
    return _with_length(log[:at] + rng.randbytes(rng.randrange(1, 10)) + log[at:], rng)


def _double(rng: random.Random, log: bytes) -> bytes:
    at, size = _place(rng, log), rng.randrange(1, 40)
    return _with_length(log[: at + size] + log[at:], rng)


def _swap(rng: random.Random, log: bytes) -> bytes:
    swapped = bytearray(log)
    a, b = _place(rng, log), _place(rng, log)
    swapped[a], swapped[b] = swapped[b], swapped[a]
    return bytes(swapped)


def _edit_a_varint(rng: random.Random, log: bytes) -> bytes:
    """Replace a possible varint by another number, in as many bytes or in more."""
    at = min(61 + rng.randrange(60), len(log) - 1)
    near = (log[at] >> 1) + rng.choice([-2, -1, 1, 2])
    far = rng.choice([-1, -2, 63, 64, 2**31 - 1, -(2**31), 2**62, rng.randrange(2**20)])
    value = kt.varint(rng.choice([near, far]))
    if rng.random() < 0.2:
        value = value[:-1] + bytes([value[-1] | 0x80]) + b"\x80" * rng.randrange(9) + b"\x00"
    return _with_length(log[:at] + value + log[at + 1 :], rng)


# baseOffset, batchLength, magic, attributes, lastOffsetDelta, baseTimestamp, baseSequence, count
_FIELDS = [(0, ">q"), (8, ">i"), (16, ">b"), (21, ">h"), (23, ">i"), (27, ">q"), (53, ">i")]
_FIELDS += [(57, ">i"), (18, ">i"), (26, ">i")]  # and the sizes of a message's key, or value


def _edit_a_field(rng: random.Random, log: bytes) -> bytes:
    """Write another number into a header's field."""
    at, layout = rng.choice(_FIELDS)
    bits = 8 * struct.calcsize(layout)
    number = rng.choice(
        [-1, 0, 1, 2, 3, 4, 5, 13, 14, 48, 49, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]
    )
    number = max(min(number, 2 ** (bits - 1) - 1), -(2 ** (bits - 1)))
    value = struct.pack(layout, number)
    return log[:at] + value + log[at + len(value) :]


def _with_length(log: bytes, rng: random.Random) -> bytes:
    """The first batch's length made to fit a log that is one batch, half of the time."""
    if len(log) < 61 or rng.random() < 0.5:
        return log
    return log[:8] + struct.pack(">i", len(log) - 12) + log[12:]


_MUTATIONS: list[Callable[[random.Random, bytes], bytes]] = [
    _flip_a_bit,
    _flip_a_bit,
    _set_bytes,
    _random_bytes,
    _cut_the_end,
    _cut_out,
    _insert,
    _double,
    _swap,
    _edit_a_varint,
    _edit_a_varint,
    _edit_a_field,
]
