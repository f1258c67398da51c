"""A .snapshot file: the producers whose records a log holds (ProducerStateManager).

Reads the bytes into a row for each producer, and writes them. The file is a version (int16), a
CRC-32C of all that follows it, the number of entries (int32), and the entries in `ENTRY`'s layout.
Kafka has written version 1 since 0.11. As in Kafka, bytes behind the last entry are ignored if the
checksum holds.

A snapshot is checked in Kafka's order: first its structure, then its checksum. No kernel is needed.

Producers are in the order of a Java HashMap. If nine of them fell into one bucket, Java would make
a tree of it, and its order would differ from the one here; but brokers assign consecutive ids, so
no bucket gets nine.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from crc32c import crc32c

from kafkajit.errors import CorruptSnapshotError
from kafkajit.format.sequence import decrement_sequence
from kafkajit.schema import PRODUCER_COLUMNS, table_schema
from kafkajit.storage.source import Bytes, Int64s, whole

SNAPSHOT_NAME = re.compile(r"\d{20}\.snapshot", re.ASCII)
VERSION = 1


# The names are those of the columns.
ENTRY = np.dtype(
    [
        ("producerId", ">i8"),
        ("producerEpoch", ">i2"),
        ("lastSequence", ">i4"),
        ("lastOffset", ">i8"),
        ("offsetDelta", ">i4"),
        ("timestamp", ">i8"),
        ("coordinatorEpoch", ">i4"),
        ("currentTxnFirstOffset", ">i8"),
    ]
)
_HEAD = np.dtype([("version", ">i2"), ("crc", ">u4"), ("count", ">i4")])
_CHECKED = 6  # the checksum covers the bytes from here on
_INVALID = "Snapshot failed schema validation: "


class SnapshotCutShortError(CorruptSnapshotError):
    """The bytes end before the entries do; Kafka reports only `null`."""


def read_producer_snapshot(source: Any) -> pa.Table:
    """Read a .snapshot file, in the columns of `kafkajit.schema.PRODUCER_COLUMNS`.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.

    >>> import kafkajit.testing as kt
    >>> content = kt.producer_snapshot([kt.Producer(9, last_offset=12, current_txn_first_offset=3)])
    >>> table = read_producer_snapshot(content)
    >>> table.select(["producerId", "currentTxnFirstOffset", "lastOffset"]).to_pylist()
    [{'producerId': 9, 'currentTxnFirstOffset': 3, 'lastOffset': 12}]
    """
    return parse_producer_snapshot(*whole(source))


def parse_producer_snapshot(content: Bytes, path: str | None = None) -> pa.Table:
    """As `read_producer_snapshot`, from bytes and the path that they came from."""
    entries = snapshot_entries(content, path)
    without_batch = entries["lastOffset"] < 0
    native = {
        name: entries[name].astype(entries[name].dtype.newbyteorder("="))
        for name in ENTRY.names or ()
    }
    native["firstSequence"] = decrement_sequence(native["lastSequence"], native["offsetDelta"])
    native["lastTimestamp"] = native["timestamp"]
    nulls = dict.fromkeys(
        ("firstSequence", "lastSequence", "lastOffset", "offsetDelta", "timestamp"), without_batch
    )
    nulls["currentTxnFirstOffset"] = entries["currentTxnFirstOffset"] < 0
    arrays = [
        pa.array(native[name], column.type, mask=nulls.get(name))
        for name, column in PRODUCER_COLUMNS.items()
    ]
    return pa.Table.from_arrays(arrays, schema=table_schema(PRODUCER_COLUMNS))


def producer_snapshot_bytes(producers: npt.NDArray[np.void]) -> bytes:
    """Write producers, which have the fields of ENTRY in any byte order, as Kafka does.

    They must be in the order in which the broker first saw them.

    >>> producers = np.zeros(2, ENTRY)
    >>> producers["producerId"] = [20, 3]
    >>> read_producer_snapshot(producer_snapshot_bytes(producers))["producerId"].to_pylist()
    [3, 20]
    """
    ids = producers["producerId"].astype(np.int64)
    entries = np.empty(producers.size, dtype=ENTRY)
    for name in ENTRY.names or ():
        entries[name] = producers[name]
    entries = entries[np.argsort(_hash_map_buckets(ids), kind="stable")]
    checked = np.array(entries.size, ">i4").tobytes() + entries.tobytes()
    return np.array((VERSION, crc32c(checked), 0), _HEAD).tobytes()[:_CHECKED] + checked


def _hash_map_buckets(keys: Int64s) -> npt.NDArray[np.uint32]:
    """The bucket of each long in a Java HashMap that holds them all."""
    buckets = 16
    while keys.size > buckets // 4 * 3:
        buckets *= 2
    words = keys.view(np.uint64)
    hashes = (words ^ words >> np.uint64(32)).astype(np.uint32)
    spread: npt.NDArray[np.uint32] = (hashes ^ hashes >> np.uint32(16)) & np.uint32(buckets - 1)
    return spread


def snapshot_entries(content: Bytes, path: str | None = None) -> npt.NDArray[np.void]:
    """The entries of a snapshot as stored; a view.

    >>> snapshot_entries(np.frombuffer(producer_snapshot_bytes(np.zeros(2, ENTRY)), np.uint8)).size
    2
    """

    def wrong(reason: str, position: int) -> CorruptSnapshotError:
        return CorruptSnapshotError(_INVALID + reason, path=path, position=position)

    def cut_short(part: str) -> CorruptSnapshotError:
        return SnapshotCutShortError(
            f"Snapshot is cut short in {part}", path=path, position=content.size
        )

    # The version is checked before the parts that a short file lacks.
    head = np.frombuffer(content[: _HEAD.itemsize].tobytes().ljust(_HEAD.itemsize, b"\0"), _HEAD)[0]
    if content.size < 2:
        raise cut_short("its header")
    if head["version"] != VERSION:
        raise wrong(f"Snapshot contained an unknown file version {head['version']}", 0)
    if content.size < _HEAD.itemsize:
        raise cut_short("its header")
    count, remaining = int(head["count"]), content.size - _HEAD.itemsize
    if count < 0:
        raise wrong("non-nullable field producerEntries was serialized as null", _CHECKED)
    if count > remaining:
        raise wrong(
            f"Tried to allocate a collection of size {count}, but there are only {remaining} "
            "bytes remaining.",
            _CHECKED,
        )
    if count * ENTRY.itemsize > remaining:
        raise cut_short(f"entry {remaining // ENTRY.itemsize} of {count}")
    stored, computed = int(head["crc"]), crc32c(content[_CHECKED:].data)
    if stored != computed:
        raise CorruptSnapshotError(
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. "
            f"Computed crc: {computed}",
            path=path,
        )
    return np.frombuffer(content, ENTRY, count=count, offset=_HEAD.itemsize)
