"""Reads and writes Apache Kafka's on-disk log without a broker: raw bytes, Arrow columns.

>>> import kafkajit
>>> kafkajit.read_records(b"").num_rows
0

Names are loaded when first used, so that `import kafkajit` costs nothing: numba and pyarrow come
with the first function that needs them. `kafkajit.index` has the indexes beside a log, and
`kafkajit.sizes` Kafka's sizes of varints, records and headers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkajit import index as index
    from kafkajit import sizes as sizes
    from kafkajit.append.log_writer import LogWriter as LogWriter
    from kafkajit.encode.writer import encode_batches as encode_batches
    from kafkajit.encode.writer import iter_encoded_batches as iter_encoded_batches
    from kafkajit.errors import CorruptCheckpointError as CorruptCheckpointError
    from kafkajit.errors import CorruptIndexError as CorruptIndexError
    from kafkajit.errors import CorruptRecordError as CorruptRecordError
    from kafkajit.errors import CorruptSnapshotError as CorruptSnapshotError
    from kafkajit.errors import DecompressionLimitError as DecompressionLimitError
    from kafkajit.errors import InvalidOffsetError as InvalidOffsetError
    from kafkajit.errors import InvalidRecordError as InvalidRecordError
    from kafkajit.errors import InvalidSchemaError as InvalidSchemaError
    from kafkajit.errors import KafkaJitError as KafkaJitError
    from kafkajit.errors import LockedError as LockedError
    from kafkajit.errors import NotALogError as NotALogError
    from kafkajit.errors import OffsetOutOfRangeError as OffsetOutOfRangeError
    from kafkajit.errors import RecordDeserializationError as RecordDeserializationError
    from kafkajit.errors import RecordSerializationError as RecordSerializationError
    from kafkajit.errors import RecordTooLargeError as RecordTooLargeError
    from kafkajit.errors import RemoteStorageError as RemoteStorageError
    from kafkajit.errors import UnsupportedCompressionTypeError as UnsupportedCompressionTypeError
    from kafkajit.format.log_path import parse_log_path as parse_log_path
    from kafkajit.log.config import LogConfig as LogConfig
    from kafkajit.log.log import Log as Log
    from kafkajit.produce.importer import ImportPlan as ImportPlan
    from kafkajit.produce.importer import import_files as import_files
    from kafkajit.reader import find_corruption as find_corruption
    from kafkajit.reader import iter_records as iter_records
    from kafkajit.reader import read_record_batches as read_record_batches
    from kafkajit.reader import read_records as read_records
    from kafkajit.reader import valid_bytes as valid_bytes
    from kafkajit.scan.dataset import Dataset as Dataset
    from kafkajit.scan.dataset import dataset as dataset
    from kafkajit.scan.export.exporter import ExportResult as ExportResult
    from kafkajit.scan.export.exporter import export as export
    from kafkajit.state.checkpoints import read_checkpoint as read_checkpoint
    from kafkajit.state.leader_epochs import read_leader_epochs as read_leader_epochs
    from kafkajit.state.meta_properties import read_meta_properties as read_meta_properties
    from kafkajit.state.partition_metadata import read_partition_metadata as read_partition_metadata
    from kafkajit.state.producer_snapshot import read_producer_snapshot as read_producer_snapshot
    from kafkajit.state.quorum_state import read_quorum_state as read_quorum_state
    from kafkajit.topics.structs import decode_payloads as decode_payloads
    from kafkajit.upkeep.compact.plan import CompactionPlan as CompactionPlan
    from kafkajit.upkeep.compact.plan import compact as compact
    from kafkajit.upkeep.repair.plan import RepairPlan as RepairPlan
    from kafkajit.upkeep.repair.plan import repair as repair
    from kafkajit.upkeep.restore.plan import RestorationPlan as RestorationPlan
    from kafkajit.upkeep.restore.plan import restore as restore
    from kafkajit.upkeep.retain.plan import RetentionPlan as RetentionPlan
    from kafkajit.upkeep.retain.plan import retain as retain
    from kafkajit.values.decode import decode_values as decode_values
    from kafkajit.values.encode import encode_values as encode_values
    from kafkajit.values.registry import read_schemas as read_schemas

# The same again for when the program runs.
_NAMES = {
    "kafkajit.append.log_writer": ("LogWriter",),
    "kafkajit.encode.writer": (
        "encode_batches",
        "iter_encoded_batches",
    ),
    "kafkajit.errors": (
        "CorruptCheckpointError",
        "CorruptIndexError",
        "CorruptRecordError",
        "CorruptSnapshotError",
        "DecompressionLimitError",
        "InvalidOffsetError",
        "InvalidRecordError",
        "InvalidSchemaError",
        "KafkaJitError",
        "LockedError",
        "NotALogError",
        "OffsetOutOfRangeError",
        "RecordDeserializationError",
        "RecordSerializationError",
        "RemoteStorageError",
        "RecordTooLargeError",
        "UnsupportedCompressionTypeError",
    ),
    "kafkajit.format.log_path": ("parse_log_path",),
    "kafkajit.log.config": ("LogConfig",),
    "kafkajit.log.log": ("Log",),
    "kafkajit.produce.importer": (
        "ImportPlan",
        "import_files",
    ),
    "kafkajit.reader": (
        "find_corruption",
        "iter_records",
        "read_record_batches",
        "read_records",
        "valid_bytes",
    ),
    "kafkajit.scan.dataset": (
        "Dataset",
        "dataset",
    ),
    "kafkajit.scan.export.exporter": (
        "ExportResult",
        "export",
    ),
    "kafkajit.state.checkpoints": ("read_checkpoint",),
    "kafkajit.state.leader_epochs": ("read_leader_epochs",),
    "kafkajit.state.meta_properties": ("read_meta_properties",),
    "kafkajit.state.partition_metadata": ("read_partition_metadata",),
    "kafkajit.state.producer_snapshot": ("read_producer_snapshot",),
    "kafkajit.state.quorum_state": ("read_quorum_state",),
    "kafkajit.topics.structs": ("decode_payloads",),
    "kafkajit.upkeep.compact.plan": (
        "CompactionPlan",
        "compact",
    ),
    "kafkajit.upkeep.repair.plan": (
        "RepairPlan",
        "repair",
    ),
    "kafkajit.upkeep.restore.plan": (
        "RestorationPlan",
        "restore",
    ),
    "kafkajit.upkeep.retain.plan": (
        "RetentionPlan",
        "retain",
    ),
    "kafkajit.values.decode": ("decode_values",),
    "kafkajit.values.encode": ("encode_values",),
    "kafkajit.values.registry": ("read_schemas",),
}
_MODULES = ("index", "sizes")
_HOME = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"kafkajit.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'kafkajit' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
