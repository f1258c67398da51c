"""The columns of all tables, as data: the only place that spells schemas.

Names are Kafka's words in Spark's casing, and the first eight columns of a record are those of
Spark's format("kafka"). A value is NULL if Java returns null or an empty Optional, and -1 if Java
returns that sentinel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa


class Column(NamedTuple):
    """A column's Arrow type and its meaning."""

    type: pa.DataType
    doc: str


HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
TIMESTAMP_TYPE = pa.timestamp("ms", tz="UTC")
# Spark's TIMESTAMP. Milliseconds that do not fit into 64 bits of microseconds become NULL.
MICROSECONDS_TYPE = pa.timestamp("us", tz="UTC")
GAP_TYPE = pa.struct(
    [
        pa.field("path", pa.string()),
        pa.field("position", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("reason", pa.string()),
    ]
)

LOG_PATH_TYPE = pa.struct(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("baseOffset", pa.int64()),
        pa.field("suffix", pa.string()),
    ]
)

RECORD_COLUMNS: dict[str, Column] = {
    "key": Column(pa.binary(), "the record's key"),
    "value": Column(pa.binary(), "the record's value; NULL is a tombstone under compaction"),
    "topic": Column(pa.string(), "from the path"),
    "partition": Column(pa.int32(), "from the path"),
    "offset": Column(pa.int64(), "the record's offset in its partition"),
    "timestamp": Column(
        TIMESTAMP_TYPE, "when it was created, or appended under LogAppendTime; -1 ms in v0"
    ),
    "timestampType": Column(pa.int32(), "0 CreateTime, 1 LogAppendTime, -1 unknown (v0)"),
    "headers": Column(HEADERS_TYPE, "in order, keys may repeat; NULL without headers"),
    "sequence": Column(pa.int32(), "the producer's sequence number, -1 without idempotence"),
    "controlType": Column(pa.string(), "COMMIT, ABORT, …; NULL for data"),
    "coordinatorEpoch": Column(
        pa.int32(),
        "of the coordinator that wrote a COMMIT or ABORT; else NULL",
    ),
    "baseOffset": Column(pa.int64(), "the batch's first offset"),
    "partitionLeaderEpoch": Column(pa.int32(), "the leader's epoch at the append"),
    "producerId": Column(pa.int64(), "-1 without idempotence"),
    "producerEpoch": Column(pa.int16(), "-1 without idempotence"),
    "isTransactional": Column(pa.bool_(), "whether the batch is part of a transaction"),
    "magic": Column(pa.int8(), "the message format's version"),
    "position": Column(pa.int64(), "the batch's first byte in the segment"),
}

# Columns of bytes that the options of a reader can turn into text.
TEXT_COLUMNS = ("key", "value")

BATCH_COLUMNS: dict[str, Column] = {
    "baseOffset": Column(
        pa.int64(), "the first offset when the batch was written; NULL for a v0 or v1 set"
    ),
    "lastOffset": Column(
        pa.int64(),
        "the last offset, kept when compaction removes the record; in v0 and v1 the set's own",
    ),
    "recordsCount": Column(pa.int32(), "records now in the batch; NULL for a v0 or v1 set"),
    "baseSequence": Column(pa.int32(), "-1 without idempotence"),
    "lastSequence": Column(pa.int32(), "-1 without idempotence"),
    "producerId": Column(pa.int64(), "-1 without idempotence"),
    "producerEpoch": Column(pa.int16(), "-1 without idempotence"),
    "partitionLeaderEpoch": Column(pa.int32(), "the leader's epoch at the append"),
    "isTransactional": Column(pa.bool_(), "whether it is part of a transaction"),
    "isControlBatch": Column(pa.bool_(), "whether it holds markers instead of data"),
    "deleteHorizonMs": Column(pa.int64(), "when tombstones may be removed; NULL if not set"),
    "position": Column(pa.int64(), "its first byte in the segment"),
    "timestampType": Column(pa.int32(), "0 CreateTime, 1 LogAppendTime, -1 unknown (v0)"),
    "baseTimestamp": Column(TIMESTAMP_TYPE, "the timestamp that deltas are added to"),
    "maxTimestamp": Column(TIMESTAMP_TYPE, "the largest timestamp, or that of the append"),
    "sizeInBytes": Column(pa.int32(), "with its header"),
    "magic": Column(pa.int8(), "the message format's version"),
    "compressionType": Column(pa.string(), "none, gzip, snappy, lz4 or zstd"),
    "crc": Column(pa.int64(), "the stored checksum: CRC-32C, or CRC-32 in v0 and v1"),
    "isValid": Column(pa.bool_(), "whether the stored checksum matches the bytes"),
}


# The columns that locate a row in a log folder.
_SEGMENT = {
    "topic": RECORD_COLUMNS["topic"],
    "partition": RECORD_COLUMNS["partition"],
    "path": Column(pa.string(), "the segment's file"),
}

SEGMENT_BATCH_COLUMNS: dict[str, Column] = {
    "topic": _SEGMENT["topic"],
    "partition": _SEGMENT["partition"],
    **BATCH_COLUMNS,
    "path": _SEGMENT["path"],
}

FILE_COLUMNS: dict[str, Column] = {
    **_SEGMENT,
    "baseOffset": Column(pa.int64(), "from the file's name; NULL if it has no offset"),
    "suffix": Column(pa.string(), ".log, .index, .timeindex.deleted, …; NULL without one"),
    "modificationTime": Column(TIMESTAMP_TYPE, "of the file"),
    "length": Column(pa.int64(), "in bytes"),
}

CORRUPTION_COLUMNS: dict[str, Column] = {
    **_SEGMENT,
    "position": Column(pa.int64(), "the first byte outside any sound batch"),
    "length": Column(pa.int64(), "bytes up to the next sound batch"),
    "reason": Column(pa.string(), "what is wrong at that position"),
    "firstMissingOffset": Column(
        pa.int64(), "the first missing offset; NULL if none is missing, or it is unknown"
    ),
    "lastMissingOffset": Column(
        pa.int64(), "the last missing offset; NULL also if no batch follows"
    ),
}

# The contents of the files beside a log's segments, and what their paths contain.
OFFSET_INDEX_COLUMNS: dict[str, Column] = {
    "offset": Column(pa.int64(), "the last offset of the batches appended there"),
    "position": Column(pa.int32(), "where its batch begins in the log"),
}

TIME_INDEX_COLUMNS: dict[str, Column] = {
    "timestamp": Column(TIMESTAMP_TYPE, "the largest timestamp up to the offset"),
    "offset": Column(pa.int64(), "the last offset of the batch with that timestamp"),
}

TRANSACTION_INDEX_COLUMNS: dict[str, Column] = {
    "producerId": Column(pa.int64(), "the producer whose transaction was aborted"),
    "firstOffset": Column(pa.int64(), "its first offset"),
    "lastOffset": Column(pa.int64(), "the offset of its marker"),
    "lastStableOffset": Column(pa.int64(), "every transaction before it had ended by then"),
}

PRODUCER_COLUMNS: dict[str, Column] = {
    "producerId": Column(pa.int64(), "the producer's id"),
    "producerEpoch": Column(pa.int16(), "its epoch"),
    "coordinatorEpoch": Column(
        pa.int32(), "of the coordinator that ended its last transaction; -1 without one"
    ),
    "currentTxnFirstOffset": Column(
        pa.int64(), "where its open transaction begins; NULL without an open one"
    ),
    "lastTimestamp": Column(TIMESTAMP_TYPE, "of its last batch, or of its last marker"),
    "firstSequence": Column(
        pa.int32(),
        "of its last batch, like the columns that follow; NULL if no batch is kept",
    ),
    "lastSequence": Column(pa.int32(), "the last sequence number"),
    "lastOffset": Column(pa.int64(), "the last record's offset"),
    "offsetDelta": Column(pa.int32(), "the last record's place in the batch, from 0"),
    "timestamp": Column(TIMESTAMP_TYPE, "the batch's largest timestamp"),
}

LEADER_EPOCH_COLUMNS: dict[str, Column] = {
    "epoch": Column(pa.int32(), "the leader's epoch"),
    "startOffset": Column(pa.int64(), "the first offset appended in that epoch"),
}

CHECKPOINT_COLUMNS: dict[str, Column] = {
    "topic": Column(pa.string(), "the partition's topic"),
    "partition": Column(pa.int32(), "its number"),
    "offset": Column(pa.int64(), "how far it is cleaned, flushed, replicated or deleted"),
}

PARTITION_METADATA_COLUMNS: dict[str, Column] = {
    "version": Column(pa.int32(), "the file's version"),
    "topicId": Column(pa.string(), "the topic's id, in base64 as Kafka prints it"),
}

META_PROPERTIES_COLUMNS: dict[str, Column] = {
    "key": Column(pa.string(), "version, cluster.id, node.id, broker.id, directory.id, …"),
    "value": Column(pa.string(), "the property's value"),
}

QUORUM_STATE_COLUMNS: dict[str, Column] = {
    "dataVersion": Column(pa.int16(), "the file's version, 0 or 1"),
    "clusterId": Column(pa.string(), "only in version 0, and perhaps empty; else NULL"),
    "leaderId": Column(pa.int32(), "the leader of the quorum, -1 if unknown"),
    "leaderEpoch": Column(pa.int32(), "the epoch of the quorum"),
    "votedId": Column(pa.int32(), "the node that this node voted for, -1 if it did not vote"),
    "votedDirectoryId": Column(
        pa.string(), "that candidate's directory, all A without a vote; NULL in version 0"
    ),
    "appliedOffset": Column(pa.int64(), "only in version 0, in which Kafka writes 0; else NULL"),
    "currentVoters": Column(
        pa.list_(pa.int32()), "the voters' ids in version 0; NULL in version 1"
    ),
}

INDEX_PROBLEM_COLUMNS: dict[str, Column] = {
    "entry": Column(pa.int32(), "its number in the index, from 0"),
    "offset": Column(pa.int64(), "the entry's offset; NULL if the file ends inside the entry"),
    "position": Column(pa.int32(), "the entry's position"),
    "logOffset": Column(
        pa.int64(), "the last offset of the batch that begins there; NULL if no batch does"
    ),
    "problem": Column(pa.string(), "what is wrong"),
}

TIME_INDEX_PROBLEM_COLUMNS: dict[str, Column] = {
    "entry": Column(pa.int32(), "its number in the index, from 0"),
    "timestamp": Column(
        TIMESTAMP_TYPE, "the entry's timestamp; NULL if the file ends inside the entry"
    ),
    "offset": Column(pa.int64(), "the entry's offset"),
    "logTimestamp": Column(TIMESTAMP_TYPE, "the largest of the batch with that offset"),
    "logOffset": Column(pa.int64(), "the last offset of that batch; NULL without such a batch"),
    "problem": Column(pa.string(), "what is wrong"),
}

PLACE_COLUMNS: dict[str, Column] = {
    **_SEGMENT,
    "path": Column(pa.string(), "the file"),
    "name": Column(pa.string(), "the file's name"),
    "baseOffset": FILE_COLUMNS["baseOffset"],
}

INDEX_FILE_COLUMNS: dict[str, Column] = {
    "topic": PLACE_COLUMNS["topic"],
    "partition": PLACE_COLUMNS["partition"],
    "baseOffset": PLACE_COLUMNS["baseOffset"],
    "suffix": Column(pa.string(), ".index, .timeindex or .txnindex"),
    "entries": Column(pa.int32(), "the number of entries; NULL if they cannot be counted"),
    "lastOffset": Column(pa.int64(), "the last entry's offset; NULL without entries"),
    "problems": Column(pa.int32(), "the number of problems; 0 for a sound index"),
    "problem": Column(
        pa.string(), "the first problem: in the file by itself, else against the log beside it"
    ),
    "path": PLACE_COLUMNS["path"],
}

# Decoded records of internal topics; the columns `record…` locate each one in the topic.
_OF_TOPIC: dict[str, Column] = {
    "isDeleted": Column(pa.bool_(), "whether the record is a tombstone, which deletes its key"),
    "recordPartition": Column(pa.int32(), "the internal topic's partition"),
    "recordOffset": Column(pa.int64(), "its offset there; for each key the latest record counts"),
    "recordTimestamp": Column(TIMESTAMP_TYPE, "the record's timestamp"),
}

CONSUMER_OFFSET_COLUMNS: dict[str, Column] = {
    "groupId": Column(pa.string(), "the consumer group"),
    "topic": Column(pa.string(), "the topic that the group consumes"),
    "partition": Column(pa.int32(), "its partition"),
    "committedOffset": Column(pa.int64(), "the next offset to consume; NULL for a tombstone"),
    "leaderEpoch": Column(pa.int32(), "of the record consumed last; NULL if not sent"),
    "metadata": Column(pa.string(), "the consumer's own text"),
    "commitTimestamp": Column(TIMESTAMP_TYPE, "when it was committed"),
    "expireTimestamp": Column(TIMESTAMP_TYPE, "when it expires; NULL if retention decides"),
    "isTransactional": Column(
        pa.bool_(), "whether it was committed in a transaction, which may have been aborted"
    ),
    **_OF_TOPIC,
}

TRANSACTION_COLUMNS: dict[str, Column] = {
    "transactionalId": Column(pa.string(), "the producer's transactional.id"),
    "producerId": Column(pa.int64(), "its producer id"),
    "producerEpoch": Column(pa.int16(), "its epoch"),
    "state": Column(
        pa.string(),
        "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, Dead or "
        "PrepareEpochFence",
    ),
    "timeoutMs": Column(pa.int32(), "the time after which the coordinator aborts it"),
    "lastUpdate": Column(TIMESTAMP_TYPE, "when its state changed last"),
    "start": Column(TIMESTAMP_TYPE, "when the transaction began; NULL before the first"),
    "partitions": Column(
        pa.list_(
            pa.struct(
                [pa.field("topic", pa.string()), pa.field("partitions", pa.list_(pa.int32()))]
            )
        ),
        "the partitions that are part of it; NULL without any",
    ),
    **_OF_TOPIC,
}


def table_schema(columns: Mapping[str, Column]) -> pa.Schema:
    """The Arrow schema of one of the tables above."""
    return pa.schema([pa.field(name, column.type) for name, column in columns.items()])


def record_schema(columns: Iterable[str], *, binary_view: bool = False) -> pa.Schema:
    """The schema of these record columns, in this order.

    >>> record_schema(["key", "offset"]).names
    ['key', 'offset']
    """
    view = {"key": pa.binary_view(), "value": pa.binary_view()} if binary_view else {}
    return pa.schema(
        [pa.field(name, view.get(name, RECORD_COLUMNS[name].type)) for name in columns]
    )


def in_microseconds(schema: pa.Schema) -> pa.Schema:
    """The schema with Spark's TIMESTAMP instead of Kafka's milliseconds.

    >>> in_microseconds(record_schema(["timestamp"])).types
    [TimestampType(timestamp[us, tz=UTC])]
    """
    return pa.schema(
        [
            field.with_type(MICROSECONDS_TYPE) if field.type == TIMESTAMP_TYPE else field
            for field in schema
        ]
    )


def check_columns(columns: Iterable[str], known: Iterable[str]) -> list[str]:
    """The names as a list, or an error that lists those that exist."""
    names = [columns] if isinstance(columns, str) else list(columns)
    known = list(known)
    for name in names:
        if name not in known:
            raise ValueError(f"unknown column {name!r}; there are: {', '.join(known)}")
    if not names:
        raise ValueError("columns names no column")
    if len(set(names)) < len(names):
        raise ValueError(f"a column is named twice in {names}")
    return names


def with_corruption(schema: pa.Schema) -> pa.Schema:
    """The schema of PERMISSIVE reading: records, and a row for each gap between them."""
    return schema.append(pa.field("corruption", GAP_TYPE))


# A record of an internal topic, each side as JSON.
DECODED_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.string())])

# What the SQL functions return: they are given bytes without a path.
CONTENT_RECORDS = in_microseconds(
    record_schema(name for name in RECORD_COLUMNS if name not in ("topic", "partition"))
)
CONTENT_BATCHES = in_microseconds(table_schema(BATCH_COLUMNS))
CONTENT_CORRUPTION = table_schema(
    {name: CORRUPTION_COLUMNS[name] for name in CORRUPTION_COLUMNS if name not in _SEGMENT}
)
RECORDS_TYPE = pa.list_(pa.struct(list(CONTENT_RECORDS)))
BATCHES_TYPE = pa.list_(pa.struct(list(CONTENT_BATCHES)))
CORRUPTIONS_TYPE = pa.list_(pa.struct(list(CONTENT_CORRUPTION)))
