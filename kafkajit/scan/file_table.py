"""The files at the paths as a table, with the ids of their topics if a query asks for these."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import parse_log_path
from kafkajit.format.tiered_names import object_name
from kafkajit.places.locations import files_at
from kafkajit.places.tiered_files import READERS
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.predicates import Predicate, meets, wanted_by
from kafkajit.state.partition_metadata import PARTITION_METADATA, parse_partition_metadata
from kafkajit.storage.source import as_bytes
from kafkajit.storage.stored_file import StoredFile

logger = logging.getLogger("kafkajit")

_TOPIC_ID = "topicId"


def read_files(
    options: ScanOptions, predicates: Sequence[Predicate], schema: pa.Schema
) -> pa.RecordBatch:
    """A row for each file at the given locations, including those that Kafka keeps beside logs."""
    rows = []
    found = files_at(options.paths, options.private_keys, wanted_by(predicates), options.layout)
    ids = _ids_by_folder(found.values()) if _TOPIC_ID in schema.names else {}
    for file in found.values():
        tiered = object_name(file.path)
        path = parse_log_path(file.path)
        row = {
            "topic": path.topic,
            "partition": path.partition,
            "path": file.path,
            "baseOffset": path.base_offset,
            "suffix": path.suffix,
            "modificationTime": None if file.modified_ns is None else file.modified_ns // 1000,
            "length": file.size,
            _TOPIC_ID: ids.get(file.folder) if tiered is None else tiered.topic_id,
        }
        if meets({name: row[name] for name in row if name not in _UNJUDGED}, predicates):
            rows.append(row)
    return pa.RecordBatch.from_pylist(rows, schema=schema)


# Columns whose conditions are left to Spark.
_UNJUDGED = ("modificationTime", _TOPIC_ID)


def _ids_by_folder(files: Iterable[StoredFile]) -> dict[str, str]:
    """The ids of topics that brokers' folders have."""
    metadata = [file for file in files if file.name == PARTITION_METADATA]
    with ThreadPoolExecutor(READERS) as pool:
        ids = pool.map(_id_in, metadata)
        return {file.folder: id_ for file, id_ in zip(metadata, ids, strict=True) if id_}


def _id_in(file: StoredFile) -> str | None:
    try:
        (row,) = parse_partition_metadata(as_bytes(file.read_now()), file.path).to_pylist()
    except KafkaJitError as error:
        logger.warning("%s: the topic's id is not known", error)
        return None
    id_: str = row["topicId"]
    return id_
