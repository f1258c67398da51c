"""Logs that encode_batches writes: every format and codec, and all other fields of batches.

tests/broker/make_corpus.py stores them in tests/data/written, with the records that Kafka reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import kafkajit

START = 1_700_000_000_000
_OLD_CODECS = ("none", "gzip", "snappy", "lz4")
CODECS = {2: (*_OLD_CODECS, "zstd"), 1: _OLD_CODECS, 0: _OLD_CODECS}
_HEADERS = pa.map_(pa.string(), pa.binary())

KEYS = [b"key", None, b"no value", None, b"", "ключ".encode(), b"\x00\xff", b"k" * 63, b"k" * 64]
VALUES = [b"value", b"no key", None, None, b"", "Grüße 🦉".encode(), bytes(range(256)), b"v", b""]
HEADERS = [
    [("h", b"1")],
    None,
    [("h", b"1"), ("other", b"2"), ("h", b"3"), ("h", b"3")],
    [],
    [("null", None), ("empty", b""), ("ключ", "世界".encode())],
    [("", b"")] * 64,
    None,
    [("long" * 20, b"x" * 200)],
    None,
]


def records(repeat: int = 2, *, headers: bool = True, **columns: Any) -> pa.Table:
    """Records of every shape, repeated, with other columns if given."""
    count = repeat * len(KEYS)
    found = {
        "key": pa.array(KEYS * repeat, pa.binary()),
        "value": pa.array(VALUES * repeat, pa.binary()),
        "timestamp": pa.array([START + place * 7 % 50 for place in range(count)]),
        **{name: pa.array(values) for name, values in columns.items()},
    }
    if headers:
        found["headers"] = pa.array(HEADERS * repeat, _HEADERS)
    return pa.table(found)


def _blocks(codec: str) -> pa.Buffer:
    """One batch over several blocks of a codec, some of which do not compress."""
    text = b"".join(b"line %d of a long value\n" % (n * n) for n in range(2000))
    # lz4 stores a block of 64 KiB that does not compress.
    noise = np.random.default_rng(1).bytes(70_000 if codec == "lz4" else 5_000)
    table = pa.table({"value": [text, noise, text[:9_999]], "timestamp": [START] * 3})
    return kafkajit.encode_batches(
        table, batch_records=9, batch_size=1 << 20, compression_type=codec
    )


def _transactions() -> pa.Buffer:
    """Two producers with wrapping sequence numbers, and their markers."""
    last = 2**31 - 1
    rows = [
        # producerId, sequence, isTransactional, controlType
        (7, last - 1, True, None),
        (7, last, True, None),
        (7, 0, True, None),
        (8, 0, True, None),
        (7, -1, True, "COMMIT"),
        (8, 1, True, None),
        (8, 2, True, None),
        (8, -1, True, "ABORT"),
        (9, 5, False, None),
        (9, 6, False, None),
        (-1, -1, False, None),
    ]
    producer, sequence, is_transactional, control = zip(*rows, strict=True)
    table = pa.table(
        {
            "offset": pa.array(range(40, 40 + len(rows))),
            "value": [None if kind else b"v%d" % place for place, kind in enumerate(control)],
            "timestamp": [START + place for place in range(len(rows))],
            "producerId": producer,
            "producerEpoch": [3 if producer_id > 0 else -1 for producer_id in producer],
            "sequence": sequence,
            "isTransactional": is_transactional,
            "controlType": pa.array(control, pa.string()),
            "coordinatorEpoch": pa.array([5 if kind else None for kind in control], pa.int32()),
        }
    )
    return kafkajit.encode_batches(table)


def _compacted() -> pa.Buffer:
    """A compacted log: gaps, an empty batch, a delete horizon."""
    whole = kafkajit.encode_batches(
        records(4, producerId=[4] * 36, producerEpoch=[0] * 36, sequence=range(36)),
        batch_records=6,
        base_offset=100,
    )
    table, batches = kafkajit.read_records(whole), kafkajit.read_record_batches(whole)
    kept = [1, 4, 5, 9, 20, 21, 22, 23, 24, 31]
    horizons = pa.array([START + 1000, None, None, START, None, None], pa.int64())
    place = batches.column_names.index("deleteHorizonMs")
    batches = batches.set_column(place, "deleteHorizonMs", horizons)
    return kafkajit.encode_batches(table.take(kept), batches=batches)


def _extremes() -> pa.Buffer:
    """Offsets and timestamps as far from each other as they can be."""
    most = 2**63 - 1
    table = pa.table(
        {
            "offset": [0, 1, 2**31, 2**31 + 1, 2**32, most - 2, most - 1],
            "timestamp": [0, most, -1, START, 63, 64, most],
            "value": [b"v"] * 7,
        }
    )
    return kafkajit.encode_batches(table)


def _append_time(**options: Any) -> pa.Buffer:
    table = records(headers=options.get("magic") != 1)
    return kafkajit.encode_batches(
        table, timestamp_type=1, timestamp=START, batch_records=7, **options
    )


def written_logs() -> dict[str, bytes]:
    """The logs by name; uncompressed ones have the same bytes every time."""
    logs = {}
    for magic, codecs in CODECS.items():
        for codec in codecs:
            logs[f"v{magic}-{codec}"] = kafkajit.encode_batches(
                records(headers=magic == 2),
                magic=magic,
                compression_type=codec,
                batch_records=5,
                base_offset=7,
                partition_leader_epoch=3,
            )
    for codec in CODECS[2][1:]:
        logs[f"blocks-{codec}"] = _blocks(codec)
    for codec, levels in (("gzip", (1, 9)), ("lz4", (1, 17)), ("zstd", (-131072, 22))):
        for level in levels:
            logs[f"level-{codec}{level}"] = kafkajit.encode_batches(
                records(3), compression_type=codec, compression_level=level, batch_size=1 << 20
            )
    for codec in ("none", "lz4"):
        logs[f"append-time-v1-{codec}"] = _append_time(magic=1, compression_type=codec)
        logs[f"append-time-v2-{codec}"] = _append_time(compression_type=codec)
    logs["transactions"] = _transactions()
    logs["compacted"] = _compacted()
    logs["extremes"] = _extremes()
    logs["batches-of-16-kib"] = kafkajit.encode_batches(records(15))
    mixed = records(1, headers=False, magic=[0, 0, 0, 1, 1, 1, 2, 2, 1])
    logs["mixed"] = kafkajit.encode_batches(mixed, compression_type="gzip")
    return {name: log.to_pybytes() for name, log in logs.items()}
