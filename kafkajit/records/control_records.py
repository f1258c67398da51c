"""Control records: the markers that brokers write between the data.

Answers to Kafka's ControlRecordType and EndTransactionMarker. The key holds the kind (version
int16, type int16; longer keys of newer versions are read the same way). The value of a COMMIT or
ABORT holds the coordinator's epoch (version int16, coordinatorEpoch int32).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.errors import InvalidRecordError
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import read_int32
from kafkajit.storage.source import Bytes, Mask

CONTROL_TYPES = {
    0: "ABORT",
    1: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}
ABORT = 0
COMMIT = 1
UNKNOWN = "UNKNOWN"
END_TRANSACTION = ("COMMIT", "ABORT")


def control_type_id(key: bytes | None) -> int:
    """The number of a control record's type.

    >>> control_type_id(bytes([0, 0, 0, 1]))
    1
    """
    if key is None or len(key) < 4:
        raise InvalidRecordError(
            "Invalid value size found for end control record key. "
            f"Must have at least 4 bytes, but found only {len(key or b'')}"
        )
    version, type_id = struct.unpack_from(">hh", key)
    if version < 0:
        raise InvalidRecordError(
            f"Invalid version found for control record: {version}. May indicate data corruption"
        )
    return int(type_id)


def control_type(key: bytes | None) -> str:
    """The name of a control record's type: COMMIT, ABORT, …; UNKNOWN for types not known here.

    >>> control_type(bytes([0, 0, 0, 1]))
    'COMMIT'
    """
    return CONTROL_TYPES.get(control_type_id(key), UNKNOWN)


def coordinator_epoch(value: bytes | None) -> int:
    """The epoch of the transaction coordinator that wrote a COMMIT or ABORT.

    >>> coordinator_epoch(bytes([0, 0, 0, 0, 0, 7]))
    7
    """
    if value is None or len(value) < 2:
        raise InvalidRecordError(
            f"Transaction marker value has only {len(value or b'')} bytes, needs 6"
        )
    version = int.from_bytes(value[:2], signed=True)
    if version < 0:
        raise InvalidRecordError(
            f"Invalid version found for end transaction marker: {version}. "
            "May indicate data corruption"
        )
    if len(value) < 6:
        raise InvalidRecordError(f"Transaction marker value has only {len(value)} bytes, needs 6")
    return int.from_bytes(value[2:6], signed=True)


def end_transaction_marker(control_type: str, coordinator_epoch: int) -> tuple[bytes, bytes]:
    r"""Build the key and value of a COMMIT or an ABORT.

    >>> end_transaction_marker("COMMIT", 7)
    (b'\x00\x00\x00\x01', b'\x00\x00\x00\x00\x00\x07')
    """
    type_id = next(number for number, name in CONTROL_TYPES.items() if name == control_type)
    return struct.pack(">hh", 0, type_id), struct.pack(">hi", 0, coordinator_epoch)


def check_marker(key: bytes | None, value: bytes | None) -> None:
    """Raise an InvalidRecordError if a control record cannot be read."""
    if control_type(key) in END_TRANSACTION:
        coordinator_epoch(value)


class ControlRecords(NamedTuple):
    """The contents of control records, a row each."""

    type_id: npt.NDArray[np.int16]
    coordinator_epoch: npt.NDArray[np.int32]  # -1 except in a COMMIT or ABORT
    is_bad: Mask  # `check_marker` raises the reason


def read_control_records(content: Bytes, records: npt.NDArray[np.void]) -> ControlRecords:
    """Read many control records at once; `records` are rows of columns.RECORD."""
    found = ControlRecords(
        np.full(records.size, -1, dtype=np.int16),
        np.full(records.size, -1, dtype=np.int32),
        np.zeros(records.size, dtype=np.bool_),
    )
    _read(content, records, *found)
    return found


@kernel
def _read(content, records, type_ids, coordinator_epochs, is_bad):
    for row in range(records.size):
        record = records[row]
        key, value = np.int64(record["key"]), np.int64(record["value"])
        if record["keySize"] < 4 or content[key] & 0x80:
            is_bad[row] = True
            continue
        type_id = np.int16(np.int64(content[key + 2]) << 8 | np.int64(content[key + 3]))
        type_ids[row] = type_id
        if type_id in (ABORT, COMMIT):
            if record["valueSize"] < 6 or content[value] & 0x80:
                is_bad[row] = True
            else:
                coordinator_epochs[row] = read_int32(content, value + 2)
