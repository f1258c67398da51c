"""The fixed part of a record batch, as Kafka's DefaultRecordBatch lays it out.

The dtype is the wire format: packed and big-endian, in order. The offsets and sizes of fields are
derived from it and written nowhere else.

    baseOffset            int64   offset of the first record when the batch was written
    batchLength           int32   bytes that follow this field
    partitionLeaderEpoch  int32   outside the checksum: brokers set it on append
    magic                 int8    2
    crc                   uint32  CRC-32C of everything from attributes to the batch's end
    attributes            int16   see the masks below
    lastOffsetDelta       int32   kept by compaction even when the last record is gone
    baseTimestamp         int64   the delete horizon when that bit is set
    maxTimestamp          int64   every record's timestamp under LogAppendTime
    producerId            int64   -1 without idempotence
    producerEpoch         int16
    baseSequence          int32   -1 without idempotence
    recordsCount          int32   0 in a batch that compaction emptied
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BATCH_HEADER = np.dtype(
    [
        ("baseOffset", ">i8"),
        ("batchLength", ">i4"),
        ("partitionLeaderEpoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("lastOffsetDelta", ">i4"),
        ("baseTimestamp", ">i8"),
        ("maxTimestamp", ">i8"),
        ("producerId", ">i8"),
        ("producerEpoch", ">i2"),
        ("baseSequence", ">i4"),
        ("recordsCount", ">i4"),
    ]
)
# The same fields in this machine's byte order.
NATIVE_BATCH_HEADER = BATCH_HEADER.newbyteorder("=")
# For each byte of a header in this machine's order, the byte of the wire that it is.
WIRE_BYTES = (
    np.arange(BATCH_HEADER.itemsize, dtype=np.uint8)
    .view(BATCH_HEADER)
    .astype(NATIVE_BATCH_HEADER)
    .view(np.uint8)
)

# A message of v0 or v1, which is an entry of its own in a log, up to its key's size. v0 has no
# timestamp. size counts what follows it; crc is the CRC-32 of everything from magic to the end.
MESSAGE_HEADER = np.dtype(
    [
        ("offset", ">i8"),  # in a compressed set, the last record's
        ("size", ">i4"),
        ("crc", ">u4"),
        ("magic", "i1"),
        ("attributes", "i1"),
        ("timestamp", ">i8"),
    ]
)


def _offset_of(field: str, header: np.dtype[np.void] = BATCH_HEADER) -> int:
    fields = header.fields
    assert fields is not None
    return int(fields[field][1])


def bytes_of(headers: npt.NDArray[np.void]) -> npt.NDArray[np.uint8]:
    """A view of the headers' bytes: a row for each header."""
    # A structured array's `view` looks for objects among its fields, which takes 40 µs.
    return np.ndarray((headers.size, headers.itemsize), np.uint8, headers)


RECORD_BATCH_OVERHEAD = BATCH_HEADER.itemsize  # 61
BATCH_LENGTH_OFFSET = _offset_of("batchLength")
MAGIC_OFFSET = _offset_of("magic")
PARTITION_LEADER_EPOCH_OFFSET = _offset_of("partitionLeaderEpoch")
CRC_OFFSET = _offset_of("crc")
ATTRIBUTES_OFFSET = _offset_of("attributes")
LAST_OFFSET_DELTA_OFFSET = _offset_of("lastOffsetDelta")
MAX_TIMESTAMP_OFFSET = _offset_of("maxTimestamp")
PRODUCER_ID_OFFSET = _offset_of("producerId")
BASE_SEQUENCE_OFFSET = _offset_of("baseSequence")
RECORDS_COUNT_OFFSET = _offset_of("recordsCount")
LOG_OVERHEAD = BATCH_LENGTH_OFFSET + 4  # baseOffset and batchLength are outside batchLength
HEADER_SIZE_UP_TO_MAGIC = MAGIC_OFFSET + 1
# The smallest entry of any format is a v0 message: crc, magic, attributes, two lengths.
MIN_ENTRY_SIZE = 14
MAGIC_V0 = 0
MAGIC_V1 = 1
MAGIC_V2 = 2
MESSAGE_CRC_OFFSET = _offset_of("crc", MESSAGE_HEADER)
MESSAGE_ATTRIBUTES_OFFSET = _offset_of("attributes", MESSAGE_HEADER)
MESSAGE_TIMESTAMP_OFFSET = _offset_of("timestamp", MESSAGE_HEADER)
# v0 has no timestamp; in v1 the key's size follows it.
KEY_SIZE_OFFSET_V0 = MESSAGE_TIMESTAMP_OFFSET  # 18
KEY_SIZE_OFFSET_V1 = MESSAGE_HEADER.itemsize  # 26
MESSAGE_OVERHEAD_V0 = KEY_SIZE_OFFSET_V0 + 8
MESSAGE_OVERHEAD_V1 = KEY_SIZE_OFFSET_V1 + 8

# attributes; Kafka reads the low byte only
COMPRESSION_CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40
KNOWN_ATTRIBUTES = (
    COMPRESSION_CODEC_MASK
    | TIMESTAMP_TYPE_MASK
    | TRANSACTIONAL_MASK
    | CONTROL_MASK
    | DELETE_HORIZON_MASK
)

# length, attributes, timestampDelta, offsetDelta at their longest: 5 + 1 + 10 + 5
MAX_RECORD_OVERHEAD = 21
# length, attributes, two deltas, two sizes, header count at their shortest
MIN_RECORD_SIZE = 7

TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
