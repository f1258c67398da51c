"""Small segments with wrong indexes, each in one way: name → suffix → bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from kafkajit import testing as kt

TIME = 1_700_000_000_000
_Files = Mapping[str, bytes]


def damaged_indexes() -> dict[str, _Files]:
    """Five batches of two records, 92 bytes each, the last offsets 1, 3 … 9; and what is beside."""
    batches = [
        kt.batch(
            [kt.Record(value=b"v" * 8, timestamp=TIME + 10 * n + i) for i in (0, 1)],
            base_offset=2 * n,
            base_timestamp=TIME + 10 * n,
        )
        for n in range(5)
    ]
    size = len(batches[0])
    log = b"".join(batches)
    offsets = [(3, size), (5, 2 * size), (9, 4 * size)]
    times = [(TIME + 11, 3), (TIME + 21, 5), (TIME + 41, 9)]
    sound = {".log": log, ".index": _offsets(*offsets), ".timeindex": _times(*times)}

    def index(*entries: tuple[int, int]) -> _Files:
        return sound | {".index": _offsets(*entries)}

    def time_index(*entries: tuple[int, int]) -> _Files:
        return sound | {".timeindex": _times(*entries)}

    # A whole batch inside another's value, for an index to lead to.
    inner = kt.batch([kt.Record(value=b"w", timestamp=TIME + 9)], base_offset=3)
    outer = kt.batch([kt.Record(value=inner, timestamp=TIME)], base_offset=0)
    cut = kt.repair_crc(_patched(batches[2], ">i", 57, 9))
    return {
        "position-within-a-batch": index((3, size), (5, 2 * size + 7), (9, 4 * size)),
        "position-of-a-batch-inside-a-value": sound
        | {
            ".log": outer + b"".join(batches[1:]),
            ".index": _offsets((3, outer.index(inner))),
            ".timeindex": _times((TIME + 11, 3), (TIME + 9, 3), (TIME + 21, 5)),
        },
        "position-past-the-end": index((3, size), (5, len(log) + 1)),
        "position-at-the-end": index((3, size), (5, len(log))),
        "position-negative": index((3, size), (5, -size)),
        "position-too-late": index((3, 3 * size), (5, 4 * size)),
        "offsets-out-of-order": index((9, 4 * size), (3, size), (5, 2 * size), (4, 0)),
        "zeros-in-the-middle": index((3, size), (0, 0), (5, 2 * size), (9, 4 * size)),
        "zeros-at-the-end": sound | {".index": _offsets(*offsets) + bytes(8 * 1100)},
        "times-out-of-order": time_index(*reversed(times), (TIME + 31, 7), (TIME, 5)),
        "times-of-other-offsets": time_index((TIME + 11, 2), (TIME + 21, 4), (TIME + 41, 90)),
        "times-with-zeros": time_index(times[0], (0, 0), times[1]),
        "batches-in-another-order": sound | {".log": b"".join(batches[n] for n in (4, 0, 1, 3, 2))},
        "a-batch-without-all-its-records": time_index(times[2], times[1], times[0])
        | {".log": b"".join([*batches[:2], cut, *batches[3:]])},
        "a-header-cut-short": sound
        | {".log": log[: 2 * size] + _patched(batches[2], ">i", 8, 20)[:40]},
        "a-log-cut-short": sound | {".log": log[: 4 * size + 30]},
        "a-set-of-negative-magic": sound
        | {
            ".log": log + _negative(kt.message_set([kt.Record()], base_offset=10, codec="gzip")),
            ".timeindex": _times(*times, (TIME, 10)),
        },
        "an-empty-log": sound | {".log": b""},
        "an-empty-index": index(),
        "zeros-behind-the-log": time_index(*times, (TIME + 51, 11)) | {".log": log + bytes(50)},
        "transactions-of-odd-versions": {
            ".txnindex": b"".join(bytes([version, 1]) + bytes(32) for version in (0, 255, 128))
        },
        "transactions-of-a-later-version": {".txnindex": bytes(34) + b"\1" + bytes(33)},
        "transactions-cut-short": {".txnindex": bytes(40)},
    }


def _offsets(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *entry) for entry in entries)


def _times(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">qi", *entry) for entry in entries)


def _negative(message: bytes) -> bytes:
    return message[:16] + b"\x80" + message[17:]


def _patched(batch: bytes, kind: str, at: int, value: int) -> bytes:
    patched = bytearray(batch)
    struct.pack_into(kind, patched, at, value)
    return bytes(patched)
