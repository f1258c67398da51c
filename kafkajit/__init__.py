"""Reads and writes Apache Kafka's on-disk log without a broker: raw bytes, Arrow columns.

>>> import kafkajit
>>> kafkajit.read_records(b"").num_rows
0

Names are loaded when first used, so that `import kafkajit` costs nothing: numba and pyarrow come
with the first function that needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkajit.append.log_writer import LogWriter
    from kafkajit.encode.writer import encode_batches, iter_encoded_batches
    from kafkajit.errors import (
        CorruptCheckpointError,
        CorruptIndexError,
        CorruptRecordError,
        CorruptSnapshotError,
        DecompressionLimitError,
        InvalidOffsetError,
        InvalidRecordError,
        KafkaJitError,
        LockedError,
        NotALogError,
        OffsetOutOfRangeError,
        RecordTooLargeError,
        UnsupportedCompressionTypeError,
    )
    from kafkajit.format.log_path import parse_log_path
    from kafkajit.index.offset_index import read_offset_index
    from kafkajit.index.time_index import read_time_index
    from kafkajit.index.transaction_index import read_transaction_index
    from kafkajit.index.verify import verify_offset_index, verify_time_index
    from kafkajit.log.config import LogConfig
    from kafkajit.log.log import Log
    from kafkajit.reader import (
        find_corruption,
        iter_records,
        read_record_batches,
        read_records,
        valid_bytes,
    )
    from kafkajit.state.checkpoints import read_checkpoint
    from kafkajit.state.leader_epochs import read_leader_epochs
    from kafkajit.state.meta_properties import read_meta_properties
    from kafkajit.state.partition_metadata import read_partition_metadata
    from kafkajit.state.producer_snapshot import read_producer_snapshot
    from kafkajit.state.quorum_state import read_quorum_state
    from kafkajit.topics.structs import decode_payloads
    from kafkajit.upkeep.compact.plan import CompactionPlan, compact
    from kafkajit.upkeep.repair.plan import RepairPlan, repair
    from kafkajit.upkeep.retain.plan import RetentionPlan, retain

_HOME = {
    "CompactionPlan": "kafkajit.upkeep.compact.plan",
    "CorruptCheckpointError": "kafkajit.errors",
    "CorruptIndexError": "kafkajit.errors",
    "CorruptRecordError": "kafkajit.errors",
    "CorruptSnapshotError": "kafkajit.errors",
    "DecompressionLimitError": "kafkajit.errors",
    "InvalidOffsetError": "kafkajit.errors",
    "InvalidRecordError": "kafkajit.errors",
    "KafkaJitError": "kafkajit.errors",
    "LockedError": "kafkajit.errors",
    "NotALogError": "kafkajit.errors",
    "Log": "kafkajit.log.log",
    "LogConfig": "kafkajit.log.config",
    "LogWriter": "kafkajit.append.log_writer",
    "OffsetOutOfRangeError": "kafkajit.errors",
    "RecordTooLargeError": "kafkajit.errors",
    "RepairPlan": "kafkajit.upkeep.repair.plan",
    "RetentionPlan": "kafkajit.upkeep.retain.plan",
    "UnsupportedCompressionTypeError": "kafkajit.errors",
    "compact": "kafkajit.upkeep.compact.plan",
    "decode_payloads": "kafkajit.topics.structs",
    "encode_batches": "kafkajit.encode.writer",
    "find_corruption": "kafkajit.reader",
    "iter_encoded_batches": "kafkajit.encode.writer",
    "iter_records": "kafkajit.reader",
    "parse_log_path": "kafkajit.format.log_path",
    "read_checkpoint": "kafkajit.state.checkpoints",
    "read_leader_epochs": "kafkajit.state.leader_epochs",
    "read_meta_properties": "kafkajit.state.meta_properties",
    "read_offset_index": "kafkajit.index.offset_index",
    "read_partition_metadata": "kafkajit.state.partition_metadata",
    "read_producer_snapshot": "kafkajit.state.producer_snapshot",
    "read_quorum_state": "kafkajit.state.quorum_state",
    "read_record_batches": "kafkajit.reader",
    "read_records": "kafkajit.reader",
    "read_time_index": "kafkajit.index.time_index",
    "read_transaction_index": "kafkajit.index.transaction_index",
    "repair": "kafkajit.upkeep.repair.plan",
    "retain": "kafkajit.upkeep.retain.plan",
    "valid_bytes": "kafkajit.reader",
    "verify_offset_index": "kafkajit.index.verify",
    "verify_time_index": "kafkajit.index.verify",
}

__all__ = [
    "CompactionPlan",
    "CorruptCheckpointError",
    "CorruptIndexError",
    "CorruptRecordError",
    "CorruptSnapshotError",
    "DecompressionLimitError",
    "InvalidOffsetError",
    "InvalidRecordError",
    "KafkaJitError",
    "LockedError",
    "Log",
    "LogConfig",
    "LogWriter",
    "NotALogError",
    "OffsetOutOfRangeError",
    "RecordTooLargeError",
    "RepairPlan",
    "RetentionPlan",
    "UnsupportedCompressionTypeError",
    "compact",
    "decode_payloads",
    "encode_batches",
    "find_corruption",
    "iter_encoded_batches",
    "iter_records",
    "parse_log_path",
    "read_checkpoint",
    "read_leader_epochs",
    "read_meta_properties",
    "read_offset_index",
    "read_partition_metadata",
    "read_producer_snapshot",
    "read_quorum_state",
    "read_record_batches",
    "read_records",
    "read_time_index",
    "read_transaction_index",
    "repair",
    "retain",
    "valid_bytes",
    "verify_offset_index",
    "verify_time_index",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'kafkajit' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
