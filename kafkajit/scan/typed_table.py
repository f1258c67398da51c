"""The options valueSchema, keySchema and schemas: the types of a table's keys and values."""

from __future__ import annotations

from dataclasses import replace

from kafkajit.format.log_path import parse_log_path
from kafkajit.scan.options import ScanOptions
from kafkajit.storage.locations import find_segments
from kafkajit.values.framing import FRAMINGS
from kafkajit.values.registry import SCHEMAS_TOPIC
from kafkajit.values.typed_records import AUTO_SCHEMAS, typed_columns


def with_types(options: ScanOptions, topic: str | None = None) -> ScanOptions:
    """The options with the types that they ask for; `topic` is the only one that is read.

    Whoever plans a query decides them, so that all tasks read into the same columns.
    """
    named = (options.key_schema, options.value_schema)
    if options.kind != "records" or (options.schemas is None and named == (None, None)):
        return options
    logs, _ = find_segments(options.paths, options.path_glob_filter)
    topics = {log: parse_log_path(log.path).topic for log in logs}
    schemas = options.schemas
    if schemas == AUTO_SCHEMAS:
        # The registry's own log may be among those that are read.
        read = next((log.folder for log in logs if topics[log] == SCHEMAS_TOPIC), None)
        schemas = read or schemas
    is_auto = options.schemas == AUTO_SCHEMAS
    typed = typed_columns(
        {topic} if topic is not None else {name for name in topics.values() if _has_types(name)},
        *named,
        schemas,
        beside=logs[0].folder,
        is_auto=is_auto,
        framing=FRAMINGS[options.framing],
        mode=options.mode,
        for_spark=True,
    )
    return replace(options, typed=typed)


def _has_types(topic: str | None) -> bool:
    """Whether a topic may have schemas: the brokers' and the registry's own have none."""
    return topic is not None and not topic.startswith("__") and topic != SCHEMAS_TOPIC
