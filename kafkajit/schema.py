"""The columns of every table, as data: no other module spells a schema.

Names are Kafka's words in Spark's casing. The first eight columns of a record are those of Spark's
format("kafka"). A value is NULL if Java returns null or an empty Optional, and -1 if Java returns
that sentinel.

Over 400 lines because it has the columns of all tables, line by line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa


class TableColumn(NamedTuple):
    """A column of a table: its Arrow type, and its meaning for the docs."""

    type: pa.DataType
    doc: str


HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
TIMESTAMP_TYPE = pa.timestamp("ms", tz="UTC")
# Spark's TIMESTAMP. A timestamp that microseconds cannot hold is NULL.
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

RECORD_COLUMNS: dict[str, TableColumn] = {
    "key": TableColumn(pa.binary(), "the record's key"),
    "value": TableColumn(pa.binary(), "the record's value; NULL is a tombstone under compaction"),
    "topic": TableColumn(pa.string(), "from the path"),
    "partition": TableColumn(pa.int32(), "from the path"),
    "offset": TableColumn(pa.int64(), "the record's offset in its partition"),
    "timestamp": TableColumn(
        TIMESTAMP_TYPE, "when the record was created, or appended under LogAppendTime; -1 ms in v0"
    ),
    "timestampType": TableColumn(pa.int32(), "0 CreateTime, 1 LogAppendTime, -1 none (v0)"),
    "headers": TableColumn(HEADERS_TYPE, "in order, keys may repeat; NULL if the record has none"),
    "sequence": TableColumn(pa.int32(), "the producer's sequence number, -1 without idempotence"),
    "controlType": TableColumn(pa.string(), "COMMIT, ABORT, …; NULL for data"),
    "coordinatorEpoch": TableColumn(
        pa.int32(), "the epoch of the coordinator that wrote a COMMIT or ABORT; NULL otherwise"
    ),
    "baseOffset": TableColumn(pa.int64(), "the batch's first offset"),
    "partitionLeaderEpoch": TableColumn(pa.int32(), "the leader's epoch at the append"),
    "producerId": TableColumn(pa.int64(), "-1 without idempotence"),
    "producerEpoch": TableColumn(pa.int16(), "-1 without idempotence"),
    "isTransactional": TableColumn(pa.bool_(), "whether the batch is part of a transaction"),
    "magic": TableColumn(pa.int8(), "the message format's version"),
    "position": TableColumn(pa.int64(), "the batch's first byte in the segment"),
}

# The columns of records that may be read as text instead of bytes.
TEXT_COLUMNS = ("key", "value")

BATCH_COLUMNS: dict[str, TableColumn] = {
    "baseOffset": TableColumn(
        pa.int64(), "the first offset when the batch was written; NULL for a v0 or v1 set"
    ),
    "lastOffset": TableColumn(
        pa.int64(), "the last offset, even if compaction has removed its record; for a set, its own"
    ),
    "recordsCount": TableColumn(pa.int32(), "records now in the batch; NULL for a v0 or v1 set"),
    "baseSequence": TableColumn(pa.int32(), "-1 without idempotence"),
    "lastSequence": TableColumn(pa.int32(), "-1 without idempotence"),
    "producerId": TableColumn(pa.int64(), "-1 without idempotence"),
    "producerEpoch": TableColumn(pa.int16(), "-1 without idempotence"),
    "partitionLeaderEpoch": TableColumn(pa.int32(), "the leader's epoch at the append"),
    "isTransactional": TableColumn(pa.bool_(), "whether the batch is part of a transaction"),
    "isControlBatch": TableColumn(pa.bool_(), "whether the batch holds markers instead of data"),
    "deleteHorizonMs": TableColumn(
        pa.int64(), "when tombstones may be removed; NULL if it is not set"
    ),
    "position": TableColumn(pa.int64(), "the batch's first byte in the segment"),
    "timestampType": TableColumn(pa.int32(), "0 CreateTime, 1 LogAppendTime, -1 none (v0)"),
    "baseTimestamp": TableColumn(TIMESTAMP_TYPE, "the time from which timestamp deltas count"),
    "maxTimestamp": TableColumn(TIMESTAMP_TYPE, "the largest timestamp, or the time of the append"),
    "sizeInBytes": TableColumn(pa.int32(), "the batch's size, with its header"),
    "magic": TableColumn(pa.int8(), "the message format's version"),
    "compressionType": TableColumn(pa.string(), "none, gzip, snappy, lz4 or zstd"),
    "crc": TableColumn(pa.int64(), "the stored checksum: CRC-32C; CRC-32 in v0 and v1"),
    "isValid": TableColumn(pa.bool_(), "whether crc is the checksum of the bytes"),
}


# The columns for where a row comes from, in the tables of a log folder.
_SEGMENT = {
    "topic": RECORD_COLUMNS["topic"],
    "partition": RECORD_COLUMNS["partition"],
    "path": TableColumn(pa.string(), "the segment's file"),
}

SEGMENT_BATCH_COLUMNS: dict[str, TableColumn] = {
    "topic": _SEGMENT["topic"],
    "partition": _SEGMENT["partition"],
    **BATCH_COLUMNS,
    "path": _SEGMENT["path"],
}

FILE_COLUMNS: dict[str, TableColumn] = {
    **_SEGMENT,
    "baseOffset": TableColumn(pa.int64(), "from the name; NULL if the name has none"),
    "suffix": TableColumn(pa.string(), ".log, .index, .timeindex.deleted, …; NULL without one"),
    "modificationTime": TableColumn(TIMESTAMP_TYPE, "when the file was last changed"),
    "length": TableColumn(pa.int64(), "the file's size in bytes"),
    "topicId": TableColumn(
        pa.string(),
        "the topic's id, from the name of an object or from partition.metadata; NULL without one",
    ),
}

CORRUPTION_COLUMNS: dict[str, TableColumn] = {
    **_SEGMENT,
    "position": TableColumn(pa.int64(), "the first byte that belongs to no sound batch"),
    "length": TableColumn(pa.int64(), "bytes up to the next sound batch, or the end"),
    "reason": TableColumn(pa.string(), "what is wrong with the first bytes of the range"),
    "firstMissingOffset": TableColumn(
        pa.int64(), "the first offset that is lost; NULL if none is lost or it is not known"
    ),
    "lastMissingOffset": TableColumn(
        pa.int64(), "the last offset that is lost; NULL also if no sound batch follows"
    ),
}

# The files beside a log's segments: their contents, and their paths.
OFFSET_INDEX_COLUMNS: dict[str, TableColumn] = {
    "offset": TableColumn(pa.int64(), "the last offset of the batch at the position"),
    "position": TableColumn(pa.int32(), "the position of that batch in the log"),
}

TIME_INDEX_COLUMNS: dict[str, TableColumn] = {
    "timestamp": TableColumn(TIMESTAMP_TYPE, "no record up to the offset has a later timestamp"),
    "offset": TableColumn(pa.int64(), "the last offset of the batch with that timestamp"),
}

TRANSACTION_INDEX_COLUMNS: dict[str, TableColumn] = {
    "producerId": TableColumn(pa.int64(), "the producer whose transaction was aborted"),
    "firstOffset": TableColumn(pa.int64(), "the transaction's first offset"),
    "lastOffset": TableColumn(pa.int64(), "the offset of its marker"),
    "lastStableOffset": TableColumn(
        pa.int64(), "every transaction before this offset had ended when the marker was written"
    ),
}

PRODUCER_COLUMNS: dict[str, TableColumn] = {
    "producerId": TableColumn(pa.int64(), "the producer's id"),
    "producerEpoch": TableColumn(pa.int16(), "its epoch"),
    "coordinatorEpoch": TableColumn(
        pa.int32(), "the epoch of the coordinator that ended its last transaction; -1 without one"
    ),
    "currentTxnFirstOffset": TableColumn(
        pa.int64(), "the first offset of its open transaction; NULL without one"
    ),
    "lastTimestamp": TableColumn(
        TIMESTAMP_TYPE, "the timestamp of its last batch, or of its last marker"
    ),
    "firstSequence": TableColumn(
        pa.int32(),
        "the first sequence number of its last batch, NULL if no batch is known; the "
        "columns that follow are also about this batch",
    ),
    "lastSequence": TableColumn(pa.int32(), "the last sequence number"),
    "lastOffset": TableColumn(pa.int64(), "the last record's offset"),
    "offsetDelta": TableColumn(pa.int32(), "the last record's place in the batch, from 0"),
    "timestamp": TableColumn(TIMESTAMP_TYPE, "the batch's largest timestamp"),
}

LEADER_EPOCH_COLUMNS: dict[str, TableColumn] = {
    "epoch": TableColumn(pa.int32(), "the leader's epoch"),
    "startOffset": TableColumn(pa.int64(), "the first offset that was appended in that epoch"),
}

CHECKPOINT_COLUMNS: dict[str, TableColumn] = {
    "topic": TableColumn(pa.string(), "the partition's topic"),
    "partition": TableColumn(pa.int32(), "its number"),
    "offset": TableColumn(
        pa.int64(),
        "the offset up to which the partition is cleaned, flushed, replicated or deleted",
    ),
}

PARTITION_METADATA_COLUMNS: dict[str, TableColumn] = {
    "version": TableColumn(pa.int32(), "the file's version"),
    "topicId": TableColumn(pa.string(), "the topic's id, in base64 as Kafka prints it"),
}

META_PROPERTIES_COLUMNS: dict[str, TableColumn] = {
    "key": TableColumn(pa.string(), "version, cluster.id, node.id, broker.id, directory.id, …"),
    "value": TableColumn(pa.string(), "the property's value"),
}

QUORUM_STATE_COLUMNS: dict[str, TableColumn] = {
    "dataVersion": TableColumn(pa.int16(), "the file's version, 0 or 1"),
    "clusterId": TableColumn(pa.string(), "the cluster's id, or an empty text; NULL in version 1"),
    "leaderId": TableColumn(pa.int32(), "the leader of the quorum; -1 if it is not known"),
    "leaderEpoch": TableColumn(pa.int32(), "the epoch of the quorum"),
    "votedId": TableColumn(
        pa.int32(), "the candidate that this node voted for in that epoch; -1 if it has not voted"
    ),
    "votedDirectoryId": TableColumn(
        pa.string(), "the id of that candidate's directory, all A without one; NULL in version 0"
    ),
    "appliedOffset": TableColumn(
        pa.int64(), "0 in files that Kafka writes in version 0; NULL in version 1"
    ),
    "currentVoters": TableColumn(
        pa.list_(pa.int32()), "the voters' ids in version 0; NULL in version 1"
    ),
}

INDEX_PROBLEM_COLUMNS: dict[str, TableColumn] = {
    "entry": TableColumn(pa.int32(), "its number in the index, from 0"),
    "offset": TableColumn(pa.int64(), "the entry's offset; NULL if the file ends inside the entry"),
    "position": TableColumn(pa.int32(), "the entry's position"),
    "logOffset": TableColumn(
        pa.int64(), "the last offset of the batch there; NULL if no batch begins there"
    ),
    "problem": TableColumn(pa.string(), "what is wrong"),
}

TIME_INDEX_PROBLEM_COLUMNS: dict[str, TableColumn] = {
    "entry": TableColumn(pa.int32(), "its number in the index, from 0"),
    "timestamp": TableColumn(
        TIMESTAMP_TYPE, "the entry's timestamp; NULL if the file ends inside the entry"
    ),
    "offset": TableColumn(pa.int64(), "the entry's offset"),
    "logTimestamp": TableColumn(TIMESTAMP_TYPE, "the largest in the batch with that offset"),
    "logOffset": TableColumn(pa.int64(), "the last offset of that batch; NULL without a batch"),
    "problem": TableColumn(pa.string(), "what is wrong"),
}

TRANSACTION_INDEX_PROBLEM_COLUMNS: dict[str, TableColumn] = {
    "entry": TableColumn(pa.int32(), "its number in the index, from 0; NULL if the index lacks it"),
    "producerId": TableColumn(pa.int64(), "the producer of the aborted transaction"),
    "firstOffset": TableColumn(pa.int64(), "the transaction's first offset"),
    "lastOffset": TableColumn(pa.int64(), "the offset of its ABORT marker"),
    "problem": TableColumn(pa.string(), "what is wrong"),
}

FILE_PATH_COLUMNS: dict[str, TableColumn] = {
    **_SEGMENT,
    "path": TableColumn(pa.string(), "the file"),
    "name": TableColumn(pa.string(), "the file's name"),
    "baseOffset": FILE_COLUMNS["baseOffset"],
}

INDEX_FILE_COLUMNS: dict[str, TableColumn] = {
    "topic": FILE_PATH_COLUMNS["topic"],
    "partition": FILE_PATH_COLUMNS["partition"],
    "baseOffset": FILE_PATH_COLUMNS["baseOffset"],
    "suffix": TableColumn(pa.string(), ".index, .timeindex or .txnindex"),
    "entries": TableColumn(pa.int32(), "the number of entries; NULL if they cannot be counted"),
    "lastOffset": TableColumn(pa.int64(), "the last entry's offset; NULL without entries"),
    "problems": TableColumn(pa.int32(), "the number of problems"),
    "problem": TableColumn(
        pa.string(), "the first problem: in the file itself, otherwise between it and its log"
    ),
    "path": FILE_PATH_COLUMNS["path"],
}

# The columns for the record that a row of an internal topic was decoded from.
_OF_TOPIC: dict[str, TableColumn] = {
    "isDeleted": TableColumn(
        pa.bool_(), "whether the record is a tombstone, which deletes the entry"
    ),
    "recordPartition": TableColumn(pa.int32(), "the internal topic's partition"),
    "recordOffset": TableColumn(
        pa.int64(), "the record's offset there; the last record of a key is the valid one"
    ),
    "recordTimestamp": TableColumn(TIMESTAMP_TYPE, "the record's timestamp"),
}

CONSUMER_OFFSET_COLUMNS: dict[str, TableColumn] = {
    "groupId": TableColumn(pa.string(), "the consumer group"),
    "topic": TableColumn(pa.string(), "the topic that the group consumes"),
    "partition": TableColumn(pa.int32(), "the topic's partition"),
    "committedOffset": TableColumn(pa.int64(), "the next offset to consume; NULL for a tombstone"),
    "leaderEpoch": TableColumn(
        pa.int32(),
        "the leader epoch of the record consumed last; NULL if the consumer did not send one",
    ),
    "metadata": TableColumn(pa.string(), "text that the consumer added"),
    "commitTimestamp": TableColumn(TIMESTAMP_TYPE, "when the offset was committed"),
    "expireTimestamp": TableColumn(
        TIMESTAMP_TYPE, "when the commit expires; NULL if the broker's retention decides"
    ),
    "isTransactional": TableColumn(
        pa.bool_(), "whether the offset was committed in a transaction, which may have been aborted"
    ),
    "isCommitted": TableColumn(
        pa.bool_(), "whether the commit counts: false if its transaction is open or was aborted"
    ),
    **_OF_TOPIC,
}

TRANSACTION_COLUMNS: dict[str, TableColumn] = {
    "transactionalId": TableColumn(pa.string(), "the producer's transactional.id"),
    "producerId": TableColumn(pa.int64(), "its producer id"),
    "producerEpoch": TableColumn(pa.int16(), "its epoch"),
    "state": TableColumn(
        pa.string(),
        "Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, Dead or "
        "PrepareEpochFence",
    ),
    "timeoutMs": TableColumn(
        pa.int32(), "the time in milliseconds after which the coordinator aborts it"
    ),
    "lastUpdate": TableColumn(TIMESTAMP_TYPE, "when the state last changed"),
    "start": TableColumn(TIMESTAMP_TYPE, "when the transaction began; NULL before the first"),
    "partitions": TableColumn(
        pa.list_(
            pa.struct(
                [pa.field("topic", pa.string()), pa.field("partitions", pa.list_(pa.int32()))]
            )
        ),
        "the partitions that are part of it; NULL without partitions",
    ),
    **_OF_TOPIC,
}


_REFERENCE = pa.struct([("name", pa.string()), ("subject", pa.string()), ("version", pa.int32())])
SCHEMA_COLUMNS: dict[str, TableColumn] = {
    "subject": TableColumn(pa.string(), "the name under which the schema was registered"),
    "version": TableColumn(pa.int32(), "its version there, from 1 on"),
    "id": TableColumn(
        pa.int32(), "stands in front of keys and values; unique in its context, not in a subject"
    ),
    "guid": TableColumn(
        pa.string(), "stands in headers of records, if a newer registry's serializer wrote them"
    ),
    "schemaType": TableColumn(pa.string(), "AVRO, PROTOBUF or JSON"),
    "schema": TableColumn(pa.string(), "the schema"),
    "references": TableColumn(pa.list_(_REFERENCE), "the schemas that it uses"),
    "metadata": TableColumn(pa.string(), "JSON that was registered with it"),
    "deletion": TableColumn(pa.string(), "soft or hard if it is deleted; values may still name it"),
    "context": TableColumn(pa.string(), "the registry's context; most have only `.`"),
    "aliases": TableColumn(pa.list_(pa.string()), "other names of the subject"),
    "offset": TableColumn(pa.int64(), "the offset of the record"),
}


_EPOCH = pa.struct([("epoch", pa.int32()), ("startOffset", pa.int64())])
REMOTE_SEGMENT_COLUMNS: dict[str, TableColumn] = {
    "topic": TableColumn(pa.string(), "the topic"),
    "partition": TableColumn(pa.int32(), "the partition"),
    "topicId": TableColumn(
        pa.string(), "the topic's id; a topic that was made anew has another one"
    ),
    "segmentId": TableColumn(pa.string(), "the id of this copy of the segment"),
    "startOffset": TableColumn(pa.int64(), "the offset of its first record"),
    "endOffset": TableColumn(
        pa.int64(), "the offset of its last record; NULL if no event or manifest has it"
    ),
    "maxTimestamp": TableColumn(
        TIMESTAMP_TYPE, "the latest timestamp of its records; NULL as endOffset"
    ),
    "leaderEpochs": TableColumn(
        pa.list_(_EPOCH), "its leader epochs, each with its first offset in it; NULL as endOffset"
    ),
    "size": TableColumn(pa.int64(), "the segment's size in bytes"),
    "objectSize": TableColumn(
        pa.int64(), "the object's size in bytes; NULL if the object is missing"
    ),
    "isCompressed": TableColumn(
        pa.bool_(), "whether the plugin has compressed the segment; NULL without a manifest"
    ),
    "keyId": TableColumn(
        pa.string(), "the id of the private key that opens the object; NULL if it is not encrypted"
    ),
    "state": TableColumn(
        pa.string(),
        "COPY_SEGMENT_STARTED, COPY_SEGMENT_FINISHED, DELETE_SEGMENT_STARTED or "
        "DELETE_SEGMENT_FINISHED: its last event in __remote_log_metadata; NULL "
        "without events",
    ),
    "eventTimestamp": TableColumn(TIMESTAMP_TYPE, "the timestamp of that event"),
    "brokerId": TableColumn(pa.int32(), "the broker that wrote that event"),
    "customMetadata": TableColumn(
        pa.binary(), "bytes that the broker's plugin stored with the segment"
    ),
    "problem": TableColumn(
        pa.string(), "what disagrees between events, manifest and objects; NULL if all agree"
    ),
    "path": TableColumn(pa.string(), "the object; NULL if it is missing"),
}


def table_schema(columns: Mapping[str, TableColumn]) -> pa.Schema:
    """The schema of a table with these columns."""
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
    """Return the names as a list; raise a ValueError if one does not exist."""
    names = [columns] if isinstance(columns, str) else list(columns)
    known = list(known)
    for name in names:
        if name not in known:
            raise ValueError(f"unknown column {name!r}; there are: {', '.join(known)}")
    if not names:
        raise ValueError("columns is empty: name at least one")
    if len(set(names)) < len(names):
        raise ValueError(f"a column is named twice in {names}")
    return names


def with_corruption(schema: pa.Schema) -> pa.Schema:
    """The schema of PERMISSIVE reading: records, and rows for the damage between them."""
    return schema.append(pa.field("corruption", GAP_TYPE))


# A record of an internal topic, key and value as JSON.
DECODED_TYPE = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.string())])

_NAMES = pa.field("metadata", pa.binary(), nullable=False, metadata={"variant": "true"})
VARIANT_TYPE = pa.struct([pa.field("value", pa.binary(), nullable=False), _NAMES])

# What the SQL functions return: they receive bytes without a path.
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
