"""Schemas out of the log: the topic in which a schema registry keeps them.

Answers to KafkaSchemaStore of Confluent's registry, which reads the topic when it starts; Karapace
writes the same records. Schemas that were deleted stay, because old values still name them: those
that are marked as deleted, and those with a tombstone if the log has not lost the record before it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kafkajit.arrow.arrays import allocate
from kafkajit.arrow.record_batches import record_record_batch, wanted_for
from kafkajit.errors import InvalidSchemaError
from kafkajit.format.log_path import parse_log_path
from kafkajit.places.locations import find_segments
from kafkajit.places.wanted import of_topics
from kafkajit.records.columns import ColumnMemory
from kafkajit.schema import SCHEMA_COLUMNS, record_schema, table_schema
from kafkajit.storage.stored_file import StoredFile
from kafkajit.values.schema import HARD, SOFT, Schema, context_of, registered
from kafkajit.walk.damage import Gap
from kafkajit.walk.walk import Walk

logger = logging.getLogger("kafkajit")

SCHEMAS_TOPIC = "_schemas"
_RECORD = record_schema(["offset", "key", "value", "controlType"])
_Key = tuple[str, int]
# JSON in Python takes thirty times its bytes.
MOST_BYTES = 16 << 20
_FOREIGN = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


def is_internal(topic: str) -> bool:
    """Whether a topic is one of the brokers' own or a registry's: these have no schemas.

    >>> is_internal("__consumer_offsets"), is_internal("_schemas"), is_internal("_schemas_old")
    (True, True, False)
    """
    return topic.startswith("__") or topic == SCHEMAS_TOPIC


def read_schemas(location: str | os.PathLike[str], *, topic: str = SCHEMAS_TOPIC) -> pa.Table:
    """Read the schemas of a registry from its log.

    Args:
        location: the folder of the partition, such as _schemas-0, or a log.dirs folder that has it.
        topic: the name of the registry's topic, if it is not _schemas.

    Returns:
        A table with a row for each version of each subject, in the order of the log.
    """
    rows = [_row(schema) for schema in schemas_in(os.fspath(location), topic)]
    return pa.Table.from_pylist(rows, schema=table_schema(SCHEMA_COLUMNS))


def _row(schema: Schema) -> dict[str, Any]:
    return {
        "subject": schema.subject,
        "version": schema.version,
        "id": schema.id,
        "guid": None if schema.guid is None else str(schema.guid),
        "schemaType": schema.type,
        "schema": schema.text,
        "references": [reference._asdict() for reference in schema.references],
        "metadata": schema.metadata,
        "deletion": schema.deletion,
        "context": schema.context,
        "aliases": list(schema.aliases),
        "offset": schema.offset,
    }


def schemas_of(table: pa.Table) -> Iterator[Schema]:
    """The schemas of a table that `read_schemas` returned, or of some of its rows."""
    for row in table.to_pylist():
        schema = registered({**row, "metadata": None}, offset=row.get("offset"))
        yield replace(
            schema,
            metadata=row.get("metadata"),
            deletion=row.get("deletion"),
            aliases=tuple(row.get("aliases") or ()),
        )


def schemas_in(location: str, topic: str = SCHEMAS_TOPIC) -> list[Schema]:
    """The schemas of a registry's topic, in the order of the log."""
    logs = segments_in(location, topic)
    if not logs:
        raise FileNotFoundError(f"there is no log of {topic} at {location}")
    registry = _Registry()
    for log in sorted(logs, key=lambda log: (log.folder, log.name)):
        for offset, key, value in _records(log):
            registry.read(offset, key, value)
    registry.report(logs[0].folder)
    return registry.schemas


def segments_in(location: str, topic: str = SCHEMAS_TOPIC) -> list[StoredFile]:
    """The segments of a registry's topic at a location, which may have others, too."""
    try:
        logs, _ = find_segments([location], wanted=of_topics([topic]))
    except FileNotFoundError:
        return []
    return [log for log in logs if parse_log_path(log.path).topic == topic]


def _records(log: StoredFile) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    for chunk in Walk(log.open()).chunks(ColumnMemory(wanted_for(_RECORD), allocate)):
        if not isinstance(chunk, Gap):
            for row in record_record_batch(chunk, _RECORD).to_pylist():
                if row["controlType"] is None:  # a transaction's marker is nobody's record
                    yield row["offset"], row["key"], row["value"]


class _Registry:
    """The state of a registry as the records of its topic make it."""

    def __init__(self) -> None:
        self._versions: dict[_Key, Schema] = {}
        self._undeleted: dict[str, set[int]] = {}  # the versions of subjects
        self._texts: dict[tuple[str, int], Schema] = {}  # by context and id
        self._subjects: dict[str, str] = {}  # by their aliases
        self._read = 0
        self._strange: list[str] = []  # where and why

    @property
    def schemas(self) -> list[Schema]:
        aliases: dict[str | None, list[str]] = {}
        for alias, subject in self._subjects.items():
            aliases.setdefault(subject, []).append(alias)
        return [
            replace(schema, aliases=tuple(aliases.get(schema.subject, ())))
            for schema in self._versions.values()
        ]

    def read(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Take in a record. One that is not the registry's is left out."""
        self._read += 1
        try:
            size = len(key or b"") + len(value or b"")
            if size > MOST_BYTES:
                raise ValueError(f"a record of {size:,} bytes, more than {MOST_BYTES:,}")
            named = json.loads(key or b"null")
            given = None if value is None else json.loads(value)
            # Not by the order of fields: Karapace has another one than Confluent's registry.
            kind = named["keytype"]
            if kind == "SCHEMA":
                self._schema(offset, (named["subject"], int(named["version"])), given)
            elif kind == "CONFIG" and named.get("subject"):
                self._config(named["subject"], given or {})
            elif kind == "DELETE_SUBJECT" and given is not None:
                self._delete_subject(given["subject"], int(given["version"]))
        except _FOREIGN as error:
            self._strange.append(f"offset {offset}: {error!r}")

    def report(self, folder: str) -> None:
        """Warn of records that are not a registry's; raise an error if none is."""
        if not self._strange:
            return
        if len(self._strange) == self._read:
            raise InvalidSchemaError(
                f"none of its {self._read} records comes from a schema registry; the first is at "
                f"{self._strange[0]}",
                path=folder,
            )
        logger.warning(
            "%s: %d of %d records do not come from a schema registry; the first is at %s",
            folder,
            len(self._strange),
            self._read,
            self._strange[0],
        )

    def _schema(self, offset: int, key: _Key, given: dict[str, Any] | None) -> None:
        before = self._versions.get(key)
        if given is None:
            if before is not None:
                self._put(key, replace(before, deletion=HARD))
            return
        schema = registered(given, offset=offset)
        if schema.id is not None:
            known = self._texts.setdefault((schema.context, schema.id), schema)
            if known.text != schema.text:
                logger.warning(
                    "the id %d has another schema at offset %d than at offset %s, which counts",
                    schema.id,
                    offset,
                    known.offset,
                )
                schema = replace(schema, id=None)
        self._put(key, schema)

    def _put(self, key: _Key, schema: Schema) -> None:
        subject, version = key
        self._versions[key] = schema
        undeleted = self._undeleted.setdefault(subject, set())
        (undeleted.add if schema.deletion is None else undeleted.discard)(version)

    def _config(self, subject: str, given: dict[str, Any]) -> None:
        """Take in the settings of a subject: it may be an alias of another one."""
        self._subjects.pop(subject, None)
        alias = given.get("alias")
        if alias:
            for name in (subject, alias):
                if not isinstance(name, str):
                    raise InvalidSchemaError(f"an alias is a name, not {name!r:.60}")
                name.encode()  # half a surrogate pair is not UTF-8
            context = context_of(subject)
            is_qualified = context == "." or context_of(alias) != "."
            self._subjects[subject] = alias if is_qualified else f":{context}:{alias}"

    def _delete_subject(self, subject: str, last: int) -> None:
        left = self._undeleted.pop(subject, set())
        for version in left:
            if version <= last:
                key = subject, version
                self._versions[key] = replace(self._versions[key], deletion=SOFT)
        self._undeleted[subject] = {version for version in left if version > last}
