"""The options of the data source, as Kafka and Spark name them, and their values.

Spark passes option keys in lower case, and values as strings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from kafkajit.errors import Failed
from kafkajit.format.amounts import parse_size
from kafkajit.format.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.format.limits import MAX_INT32, MAX_INT64
from kafkajit.format.moment import option_time
from kafkajit.format.text_options import Option, boolean, is_sparks_own, one_of, suggestion
from kafkajit.places.layouts import AUTO, LAYOUTS
from kafkajit.places.private_keys import NO_KEYS, PrivateKeys
from kafkajit.records.decode import MAX_DECOMPRESSED_BYTES
from kafkajit.scan.used_options import check_used
from kafkajit.state.sidecar_files import INDEXES, SIDECAR_FILES
from kafkajit.state.uuid import parse_uuid
from kafkajit.storage.globs import glob_to_regex
from kafkajit.values.framing import RECORD_FRAMINGS
from kafkajit.walk.damage import FAILFAST, MODES

if TYPE_CHECKING:
    from kafkajit.values.typed_records import TypedColumns

READ_UNCOMMITTED = "read_uncommitted"
READ_COMMITTED = "read_committed"

KINDS = (
    "records",
    "batches",
    "files",
    "corruption",
    "schemas",
    "remoteSegments",
    INDEXES,
    *SIDECAR_FILES,
)

# Offsets by topic and partition, without those that are earliest or latest.
Offsets = dict[str, dict[int, int]]

# What is read of segments that overlap: each offset once, as a broker serves it, or all records.
SERVED, ALL_COPIES = "served", "all"

EARLIEST, LATEST = -2, -1
_PARTITION = re.compile(r"0|[1-9][0-9]{0,9}")
# The files of private keys by their ids, as Aiven's plugin names them in a broker's options.
_PRIVATE_KEY = re.compile(r"encryption\.key\.pairs\.(?P<id>.+)\.private\.key\.file", re.IGNORECASE)


@dataclass(frozen=True)
class ScanOptions:
    """The options of one table over logs."""

    paths: tuple[str, ...]
    kind: str = "records"
    path_glob_filter: str | None = None
    layout: str = AUTO
    topic_id: str | None = None
    overlaps: str = SERVED
    starting_offsets: Offsets = field(default_factory=dict)
    ending_offsets: Offsets = field(default_factory=dict)
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    isolation_level: str = READ_UNCOMMITTED
    check_crcs: bool = True
    mode: str = FAILFAST
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    max_partition_bytes: int | None = None
    one_task_per_partition: bool = False
    value_schema: str | None = None
    key_schema: str | None = None
    value_message: str | None = None
    key_message: str | None = None
    schemas: str | None = None
    framing: str = "auto"
    private_keys: PrivateKeys = NO_KEYS
    typed: TypedColumns | None = None  # the types that these options ask for, once planned
    # The partitions that startingOffsets and endingOffsets name; topics without any have None.
    named: frozenset[tuple[str, int | None]] = field(default=frozenset(), compare=False)
    # What commands do about folders that cannot be read; for everybody else they are errors.
    failed: Failed = field(default=None, compare=False, repr=False)
    parallelism: int = 8  # how many tasks run at once, unless the bridge knows better

    @classmethod
    def parse(cls, given: Mapping[str, str], others: Iterable[str] = ()) -> ScanOptions:
        """Parse options as Spark passes them; `others` are known, too, but not given.

        >>> ScanOptions.parse({"path": "/logs", "KIND": "batches"}).kind
        'batches'
        >>> ScanOptions.parse({"path": "/logs", "kin": "batches"})
        Traceback (most recent call last):
        ValueError: unknown option 'kin': did you mean 'kind'?
        """
        names = {name.lower(): name for name in OPTIONS}
        values: dict[str, Any] = {}
        if "location" in given:  # CREATE TABLE renames the path
            given = {"path": given["location"], **given}
        keys: dict[str, str] = {}
        for key, text in given.items():
            if is_sparks_own(key):
                continue
            private = _PRIVATE_KEY.fullmatch(key)
            if private is not None:
                keys[private["id"]] = text
                continue
            name = names.get(key.lower())
            if name is None:
                hint = suggestion(key, [*OPTIONS, *others])
                raise ValueError(f"unknown option {key!r}{hint}")
            option = OPTIONS[name]
            try:
                values[option.attribute] = option.parse(text)
            except ValueError as error:
                raise ValueError(f"option {name}: {error}") from None
        paths = values.pop("path", ()) + values.pop("paths", ())
        if not paths:
            raise ValueError(
                "option path is missing: pass a segment file, a partition's folder, a log.dirs "
                "root or a glob, as in spark.read.format('kafkaLog').load('/var/kafka/orders-*'). "
                "If a table was created with a list of columns, Spark does not pass its options "
                "on: make a temporary view instead"
            )
        options = cls(
            paths=paths,
            private_keys=PrivateKeys.of(keys),
            named=frozenset(_take_named(values)),
            **values,
        )
        check_used(
            [name for name in OPTIONS if name.lower() in map(str.lower, given)],
            options.kind,
            has_value=options.value_schema is not None or options.schemas is not None,
            has_key=options.key_schema is not None or options.schemas is not None,
        )
        return options


def _take_named(values: dict[str, Any]) -> Iterator[tuple[str, int | None]]:
    """Yield the partitions that options of offsets name, and take those without an offset out."""
    for attribute, without in (("starting_offsets", EARLIEST), ("ending_offsets", LATEST)):
        given: Offsets = values.get(attribute, {})
        for topic, partitions in given.items():
            if not partitions:
                yield topic, None
            for number in partitions:
                yield topic, number
        if given:
            values[attribute] = {
                topic: {number: at for number, at in partitions.items() if at != without}
                for topic, partitions in given.items()
            }


def number_of_bytes(least: int, most: int) -> Callable[[str], int]:
    """A parser of bytes, with a unit or without.

    >>> number_of_bytes(1, 2**40)("128m")
    134217728
    """
    return partial(parse_size, least=least, most=most)


def offsets_in_json(text: str, wrong: str) -> Offsets:
    """Offsets in JSON as Spark's Kafka source has them: -2 is the earliest, -1 the latest."""
    try:
        topics = json.loads(text, object_pairs_hook=_unique)
        parsed = {
            topic: {_partition(number): offset for number, offset in partitions.items()}
            for topic, partitions in topics.items()
        }
    except _Refused as error:
        raise ValueError(f"{error}: {text!r}") from None
    except (ValueError, AttributeError, RecursionError):
        raise ValueError(wrong) from None
    numbers = [offset for partitions in parsed.values() for offset in partitions.values()]
    if not all(type(number) is int and EARLIEST <= number <= MAX_INT64 for number in numbers):
        raise ValueError(wrong)
    return parsed


class _Refused(ValueError):
    """JSON of which a part would be ignored."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Refused(f"{twice!r} is named twice")
    return found


def _partition(number: str) -> int:
    if not _PARTITION.fullmatch(number) or int(number) > MAX_INT32:
        raise _Refused(f"{number!r} is not the number of a partition")
    return int(number)


def _offsets(word: str, without: int) -> Callable[[str], Offsets]:
    def parse(text: str) -> Offsets:
        if text.strip().lower() == word:
            return {}
        form = f'{word} or JSON such as {{"orders": {{"0": 42, "1": {without}}}}}'
        parsed = offsets_in_json(text, f"expected {form}, not {text!r}")
        other = EARLIEST + LATEST - without  # only one of them is allowed
        if any(other in partitions.values() for partitions in parsed.values()):
            raise ValueError(f"{other} has no meaning in this option: {text!r}")
        return parsed

    return parse


def _paths(text: str) -> tuple[str, ...]:
    """Parse the JSON list that Spark makes of load([a, b])."""
    try:
        paths = json.loads(text)
    except (ValueError, RecursionError):
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) and path for path in paths):
        raise ValueError(
            f'expected a list of paths in JSON such as ["/logs/a-0", "/logs/b-0"], not {text}'
        )
    return tuple(paths)


def _path(text: str) -> tuple[str, ...]:
    if not text:
        raise ValueError("expected a path, not an empty text")
    return (text,)


def _text(expected: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not text.strip():
            raise ValueError(f"expected {expected}, not an empty text")
        return text

    return parse


def _glob(text: str) -> str:
    glob_to_regex(text)  # raises ValueError if it is not a glob
    return text


def _topic_id(text: str) -> str:
    id_ = parse_uuid(text)
    if id_ is None:
        raise ValueError("a topic's id has 22 letters of base64, as partition.metadata has it")
    return id_


OPTIONS: dict[str, Option] = {
    "path": Option(
        "path", _path, "a segment file, a partition's folder, a log.dirs folder or a glob"
    ),
    "paths": Option("paths", _paths, "several paths as a list in JSON; load([…]) sets it"),
    "kind": Option("kind", one_of(KINDS), f"the table: {', '.join(KINDS)}; records by default"),
    "pathGlobFilter": Option(
        "path_glob_filter",
        _glob,
        "a glob of the files to read, instead of segments' names or the names of the kind's files",
    ),
    "layout": Option(
        "layout",
        one_of(LAYOUTS),
        f"the layout whose segments are read: {', '.join(LAYOUTS)}; auto, the default, recognizes "
        "segments of all layouts by their names",
    ),
    "topicId": Option(
        "topic_id",
        _topic_id,
        "the id of the topic to read, if another one had its name before: segments of topics with "
        "other ids, or without any, are left out",
    ),
    "overlaps": Option(
        "overlaps",
        one_of((SERVED, ALL_COPIES)),
        "what is read of segments that overlap: served, the default, reads each offset once, as a "
        "broker serves it to a consumer that reads from the start; all reads all records",
    ),
    "startingOffsets": Option(
        "starting_offsets",
        _offsets("earliest", EARLIEST),
        'earliest, or the first offset to read, by topic and partition: {"orders": {"0": 42}}',
    ),
    "endingOffsets": Option(
        "ending_offsets",
        _offsets("latest", LATEST),
        "latest, or the offset to stop before, in the same form",
    ),
    "startingTimestamp": Option(
        "starting_timestamp",
        option_time,
        "begin each partition at its first record with this timestamp or a later one: ISO 8601 (in "
        "UTC without a zone), milliseconds, or a number with s or ms. A stream begins at "
        "offsets that are missing right before that record, which may have the timestamp, too",
    ),
    "endingTimestamp": Option(
        "ending_timestamp",
        option_time,
        "end each partition before its first record with this timestamp or a later one, in the "
        "same form",
    ),
    "isolationLevel": Option(
        "isolation_level",
        one_of((READ_UNCOMMITTED, READ_COMMITTED)),
        "read_committed leaves out aborted and unfinished transactions, and control records",
    ),
    "checkCrcs": Option("check_crcs", boolean, "whether checksums must hold; true by default"),
    "mode": Option(
        "mode",
        one_of(MODES),
        "FAILFAST, the default, fails at a damaged batch or file, DROPMALFORMED skips it, "
        "PERMISSIVE skips it and adds a row that reports it in the column corruption",
    ),
    "maxDecompressedBytes": Option(
        "max_decompressed_bytes",
        number_of_bytes(1, MAX_DECOMPRESSED_BYTES),
        "the largest size of a decompressed batch; 268435456 (256 MiB) by default",
    ),
    "maxPartitionBytes": Option(
        "max_partition_bytes",
        number_of_bytes(1, 2**40),
        "bytes of log for one task; by default all bytes divided by the number of cores, but from "
        "16m to 128m",
    ),
    "oneTaskPerPartition": Option(
        "one_task_per_partition",
        boolean,
        "whether a task reads a partition from its first offset to its last; false by default",
    ),
    "valueSchema": Option(
        "value_schema",
        _text("a schema or a path"),
        "an Avro or JSON schema or .proto text, or the path of such a file: makes the column value "
        "typed; rawValue has the bytes",
    ),
    "keySchema": Option(
        "key_schema",
        _text("a schema or a path"),
        "the same for the column key, with rawKey",
    ),
    "valueMessage": Option(
        "value_message",
        _text("the name of a Protobuf message"),
        "the Protobuf message to read values into; by default that of the first value",
    ),
    "keyMessage": Option(
        "key_message",
        _text("the name of a Protobuf message"),
        "the same for keys",
    ),
    "schemas": Option(
        "schemas",
        _text("auto or a path"),
        "a path with the schemas that values and keys name: a registry's log (_schemas-0), .avsc "
        "or .proto files or a registry's JSON; auto: the registry's log beside the topic, if "
        "there is one",
    ),
    "framing": Option(
        "framing",
        one_of(tuple(RECORD_FRAMINGS)),
        "the bytes in front of values and keys, or headers that name their schemas: "
        f"{', '.join(RECORD_FRAMINGS)}; auto by default",
    ),
}
