"""The tables' columns, as data: the only place where schemas are spelled.

Names are Kafka's words in Spark's casing, and the first eight columns of a record are those of
Spark's format("kafka"). NULL where Java returns null or an empty Optional; -1 where Java returns
that sentinel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa


class Column(NamedTuple):
    """A column's Arrow type, and what it says."""

    type: pa.DataType
    doc: str


HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
TIMESTAMP_TYPE = pa.timestamp("ms", tz="UTC")
# Spark's TIMESTAMP. A millisecond that microseconds cannot hold is NULL there.
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
    "timestampType": Column(pa.int32(), "0 CreateTime, 1 LogAppendTime, -1 none (v0)"),
    "headers": Column(HEADERS_TYPE, "in order, keys may repeat; NULL when there are none"),
    "sequence": Column(pa.int32(), "the producer's sequence number, -1 without idempotence"),
    "controlType": Column(pa.string(), "COMMIT, ABORT, …; NULL for data"),
    "coordinatorEpoch": Column(pa.int32(), "who wrote a COMMIT or ABORT; NULL otherwise"),
    "baseOffset": Column(pa.int64(), "the batch's first offset"),
    "partitionLeaderEpoch": Column(pa.int32(), "the leader's epoch at the append"),
    "producerId": Column(pa.int64(), "-1 without idempotence"),
    "producerEpoch": Column(pa.int16(), "-1 without idempotence"),
    "isTransactional": Column(pa.bool_(), "whether the batch is part of a transaction"),
    "magic": Column(pa.int8(), "the message format's version"),
    "position": Column(pa.int64(), "the batch's first byte in the segment"),
}

# Of records: bytes that may be asked for as text.
TEXT_COLUMNS = ("key", "value")

BATCH_COLUMNS: dict[str, Column] = {
    "baseOffset": Column(
        pa.int64(), "the first offset when the batch was written; NULL of a v0 or v1 set"
    ),
    "lastOffset": Column(
        pa.int64(), "the last offset, kept when compaction removes the record; of a set its own"
    ),
    "recordsCount": Column(pa.int32(), "records now in the batch; NULL of a v0 or v1 set"),
    "baseSequence": Column(pa.int32(), "-1 without idempotence"),
    "lastSequence": Column(pa.int32(), "-1 without idempotence"),
    "producerId": Column(pa.int64(), "-1 without idempotence"),
    "producerEpoch": Column(pa.int16(), "-1 without idempotence"),
    "partitionLeaderEpoch": Column(pa.int32(), "the leader's epoch at the append"),
    "isTransactional": Column(pa.bool_(), "whether it is part of a transaction"),
    "isControlBatch": Column(pa.bool_(), "whether it holds markers instead of data"),
    "deleteHorizonMs": Column(pa.int64(), "when tombstones may go; NULL where none is set"),
    "position": Column(pa.int64(), "its first byte in the segment"),
    "timestampType": Column(pa.int32(), "0 CreateTime, 1 LogAppendTime, -1 none (v0)"),
    "baseTimestamp": Column(TIMESTAMP_TYPE, "what timestamp deltas count from"),
    "maxTimestamp": Column(TIMESTAMP_TYPE, "the largest timestamp, or that of the append"),
    "sizeInBytes": Column(pa.int32(), "with its header"),
    "magic": Column(pa.int8(), "the message format's version"),
    "compressionType": Column(pa.string(), "none, gzip, snappy, lz4 or zstd"),
    "crc": Column(pa.int64(), "the stored checksum: CRC-32C, of v0 and v1 CRC-32"),
    "isValid": Column(pa.bool_(), "whether that is the checksum of the bytes"),
}


# What the tables of a log folder say of where a row comes from.
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
    "baseOffset": Column(pa.int64(), "from the name; NULL where it does not say"),
    "suffix": Column(pa.string(), ".log, .index, .timeindex.deleted, …; NULL without one"),
    "modificationTime": Column(TIMESTAMP_TYPE, "of the file"),
    "length": Column(pa.int64(), "in bytes"),
}

CORRUPTION_COLUMNS: dict[str, Column] = {
    **_SEGMENT,
    "position": Column(pa.int64(), "the first byte that is no sound batch's"),
    "length": Column(pa.int64(), "bytes up to where the log goes on"),
    "reason": Column(pa.string(), "what is wrong with the first of them"),
    "firstMissingOffset": Column(
        pa.int64(), "the first that no batch around it has; NULL where none is missing, or unknown"
    ),
    "lastMissingOffset": Column(pa.int64(), "the last; NULL also where nothing follows"),
}

# The files beside a log's segments: what is in them, and what their paths say.
OFFSET_INDEX_COLUMNS: dict[str, Column] = {
    "offset": Column(pa.int64(), "the last offset of what was appended there"),
    "position": Column(pa.int32(), "where its batch begins in the log"),
}

TIME_INDEX_COLUMNS: dict[str, Column] = {
    "timestamp": Column(TIMESTAMP_TYPE, "no record up to the offset is later"),
    "offset": Column(pa.int64(), "the last offset of the batch with that timestamp"),
}

TRANSACTION_INDEX_COLUMNS: dict[str, Column] = {
    "producerId": Column(pa.int64(), "whose transaction was aborted"),
    "firstOffset": Column(pa.int64(), "its first offset"),
    "lastOffset": Column(pa.int64(), "that of its marker"),
    "lastStableOffset": Column(pa.int64(), "before it every transaction had ended then"),
}

PRODUCER_COLUMNS: dict[str, Column] = {
    "producerId": Column(pa.int64(), "the producer's id"),
    "producerEpoch": Column(pa.int16(), "its epoch"),
    "coordinatorEpoch": Column(
        pa.int32(), "of the coordinator that ended its last transaction; -1 without one"
    ),
    "currentTxnFirstOffset": Column(
        pa.int64(), "where its open transaction begins; NULL where none is open"
    ),
    "lastTimestamp": Column(TIMESTAMP_TYPE, "of what it wrote last, or of its last marker"),
    "firstSequence": Column(
        pa.int32(), "of its last batch, as are all that follow; NULL where no batch is kept"
    ),
    "lastSequence": Column(pa.int32(), "the last sequence number"),
    "lastOffset": Column(pa.int64(), "the last record's offset"),
    "offsetDelta": Column(pa.int32(), "the last record's place in the batch, from 0"),
    "timestamp": Column(TIMESTAMP_TYPE, "the batch's largest timestamp"),
}

LEADER_EPOCH_COLUMNS: dict[str, Column] = {
    "epoch": Column(pa.int32(), "the leader's epoch"),
    "startOffset": Column(pa.int64(), "the first offset that was appended in it"),
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
    "clusterId": Column(pa.string(), "in version 0, where it may be empty; else NULL"),
    "leaderId": Column(pa.int32(), "the leader of the quorum, -1 where it is not known"),
    "leaderEpoch": Column(pa.int32(), "the epoch of the quorum"),
    "votedId": Column(pa.int32(), "whom this node voted for in it, -1 for nobody"),
    "votedDirectoryId": Column(
        pa.string(), "that candidate's directory, all A where there is none; NULL in version 0"
    ),
    "appliedOffset": Column(pa.int64(), "in version 0, where Kafka writes 0; else NULL"),
    "currentVoters": Column(
        pa.list_(pa.int32()), "the voters' ids in version 0; NULL in version 1"
    ),
}

INDEX_PROBLEM_COLUMNS: dict[str, Column] = {
    "entry": Column(pa.int32(), "its number in the index, from 0"),
    "offset": Column(pa.int64(), "that it names; NULL where the file ends inside the entry"),
    "position": Column(pa.int32(), "that it names"),
    "logOffset": Column(pa.int64(), "the last offset of the batch there; NULL where none begins"),
    "problem": Column(pa.string(), "what is wrong"),
}

TIME_INDEX_PROBLEM_COLUMNS: dict[str, Column] = {
    "entry": Column(pa.int32(), "its number in the index, from 0"),
    "timestamp": Column(TIMESTAMP_TYPE, "that it names; NULL where the file ends inside the entry"),
    "offset": Column(pa.int64(), "that it names"),
    "logTimestamp": Column(TIMESTAMP_TYPE, "the largest of the batch with that offset"),
    "logOffset": Column(pa.int64(), "the last offset of that batch; NULL where there is none"),
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
    "entries": Column(pa.int32(), "how many it has; NULL where they cannot be told"),
    "lastOffset": Column(pa.int64(), "of the last of them; NULL where there is none"),
    "problems": Column(pa.int32(), "how many things are wrong with it; 0 where nothing is"),
    "problem": Column(
        pa.string(), "the first of them: of the file by itself, else against the log beside it"
    ),
    "path": PLACE_COLUMNS["path"],
}

# Records of internal topics, taken apart; `record` says which of the topic's.
_OF_TOPIC: dict[str, Column] = {
    "isDeleted": Column(pa.bool_(), "whether the record is a tombstone: what it had is forgotten"),
    "recordPartition": Column(pa.int32(), "the internal topic's partition"),
    "recordOffset": Column(pa.int64(), "the record's offset in it; the latest of a key counts"),
    "recordTimestamp": Column(TIMESTAMP_TYPE, "the record's timestamp"),
}

CONSUMER_OFFSET_COLUMNS: dict[str, Column] = {
    "groupId": Column(pa.string(), "the consumer group"),
    "topic": Column(pa.string(), "the topic that it consumes"),
    "partition": Column(pa.int32(), "its partition"),
    "committedOffset": Column(pa.int64(), "the next offset to consume; NULL of a tombstone"),
    "leaderEpoch": Column(pa.int32(), "of the record consumed last; NULL where nobody said"),
    "metadata": Column(pa.string(), "what the consumer added"),
    "commitTimestamp": Column(TIMESTAMP_TYPE, "when it was committed"),
    "expireTimestamp": Column(TIMESTAMP_TYPE, "when it expires; NULL where retention decides"),
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
    "timeoutMs": Column(pa.int32(), "after which the coordinator aborts it"),
    "lastUpdate": Column(TIMESTAMP_TYPE, "of its state"),
    "start": Column(TIMESTAMP_TYPE, "of the transaction; NULL before the first"),
    "partitions": Column(
        pa.list_(
            pa.struct(
                [pa.field("topic", pa.string()), pa.field("partitions", pa.list_(pa.int32()))]
            )
        ),
        "that are part of it; NULL where there is none",
    ),
    **_OF_TOPIC,
}


def table_schema(columns: Mapping[str, Column]) -> pa.Schema:
    """The schema of a table that is spelled above."""
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
    """The names as a list, or an error that tells which exist."""
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
    """The schema of PERMISSIVE reading: records, and rows for what lies between them."""
    return schema.append(pa.field("corruption", GAP_TYPE))


# A record of an internal topic, each side as JSON.
DECODED_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.string())])

# What the SQL functions return: of bare bytes, whose path nobody knows.
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
