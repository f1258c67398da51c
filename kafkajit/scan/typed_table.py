"""The options valueSchema, keySchema and schemas: the types of a table's keys and values."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from kafkajit.format.log_path import parse_log_path
from kafkajit.places.location import as_location
from kafkajit.places.locations import find_segments
from kafkajit.places.wanted import any_partition, of_topics
from kafkajit.scan.options import ScanOptions
from kafkajit.values.framing import RECORD_FRAMINGS
from kafkajit.values.layout import Types
from kafkajit.values.registry import SCHEMAS_TOPIC, is_internal, read_schemas
from kafkajit.values.typed_records import AUTO_SCHEMAS, PartitionFolder, typed_columns


def with_types(
    options: ScanOptions, topic: str | None = None, types: Types = Types.SPARK
) -> ScanOptions:
    """The options with the types that they ask for; `topic` is the only one that is read.

    Whoever plans a query decides them, so that all tasks read into the same columns.
    """
    named = (options.key_schema, options.value_schema)
    messages = (options.key_message, options.value_message)
    if options.kind != "records" or not any((options.schemas, *named, *messages)):
        return options
    found = (options.paths, options.path_glob_filter, options.private_keys)
    # The plan of the query reports what is left out.
    wanted = any_partition if topic is None else of_topics([topic, SCHEMAS_TOPIC])
    logs = (
        find_segments(*found, wanted, options.layout, options.failed)[0]
        or find_segments(*found, any_partition, options.layout, options.failed)[0]
    )
    topics = [parse_log_path(log.path).topic for log in logs]
    schemas = options.schemas
    if schemas == AUTO_SCHEMAS:
        # The registry's own log may be among those that are read.
        pairs = zip(logs, topics, strict=True)
        read = next((log.folder for log, name in pairs if name == SCHEMAS_TOPIC), None)
        schemas = as_location(read, options.paths) if read is not None else schemas
    is_auto = options.schemas == AUTO_SCHEMAS
    theirs = {name for name in topics if name is not None and not is_internal(name)}
    typed = typed_columns(
        theirs if topic is None else {topic},
        *named,
        schemas,
        beside=PartitionFolder(logs[0].folder, options.paths, options.private_keys),
        is_auto=is_auto,
        messages=messages,
        framing=RECORD_FRAMINGS[options.framing],
        mode=options.mode,
        types=types,
    )
    return replace(options, typed=typed)


def read_registry(options: ScanOptions, schema: pa.Schema) -> pa.RecordBatch:
    """The schemas of the registries whose logs lie at the paths."""
    tables = [read_schemas(path, topic=_registry_topic(path)) for path in options.paths]
    rows = pa.concat_tables(tables).select(schema.names).cast(schema)
    return rows.combine_chunks().to_batches()[0] if rows.num_rows else _no_rows(schema)


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _registry_topic(location: str) -> str:
    """The topic of a registry: the only one there, whatever its name, or _schemas."""
    logs, _ = find_segments([location], wanted=any_partition)
    topics = {parse_log_path(log.path).topic for log in logs}
    (only,) = topics if len(topics) == 1 else {SCHEMAS_TOPIC}
    return only or SCHEMAS_TOPIC
