"""Builds any batch, message or file beside a log, every field of it, and breaks it in a named way.

It is written with struct and loops, to be read rather than to be fast. It shares no code with the
reader's kernels, so that tests can compare the two.

>>> log = batch([Record(key=b"k", value=b"v")], base_offset=42, codec="zstd")
>>> import kafkajit
>>> kafkajit.read_records(log, columns=["offset", "value"]).to_pylist()
[{'offset': 42, 'value': b'v'}]
>>> kafkajit.read_records(broken("unknown magic", base_offset=42))
Traceback (most recent call last):
...
kafkajit.errors.CorruptRecordError: Invalid magic found in record: 3 at position 0, base offset 42
"""

from __future__ import annotations

from pathlib import Path

from kafkajit.testing.batches import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    Record,
    batch,
    control_batch,
    repair_crc,
    varint,
)
from kafkajit.testing.breaks import BREAKS, Break, broken
from kafkajit.testing.compressors import CODECS, COMPRESSORS
from kafkajit.testing.kafscale import kafscale_segment
from kafkajit.testing.messages import message, message_set
from kafkajit.testing.sidecars import (
    Producer,
    offset_index,
    producer_snapshot,
    time_index,
    transaction_index,
)

# The logs that come with the package: orders in every codec, and payments with transactions, damage
# and torn ends (tests/support/make_sample.py writes them).
SAMPLE = str(Path(__file__).parent.parent / "sample" / "logs")

__all__ = [
    "BREAKS",
    "CODECS",
    "COMPRESSORS",
    "CREATE_TIME",
    "LOG_APPEND_TIME",
    "SAMPLE",
    "Break",
    "Producer",
    "Record",
    "batch",
    "broken",
    "control_batch",
    "kafscale_segment",
    "message",
    "message_set",
    "offset_index",
    "producer_snapshot",
    "repair_crc",
    "time_index",
    "transaction_index",
    "varint",
]
