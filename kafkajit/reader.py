"""The pipeline on one screen: bytes or a path → batches → plain records → Arrow.

source ─▶ frame ─▶ check ─▶ decompress ─▶ read records ─▶ columns
          batches  └─────────── decode ──────────────┘    arrow
          └────────────────── walk ──────────────────┘
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafkajit.arrow.arrays import allocate, column_of
from kafkajit.arrow.record_batches import (
    batch_record_batch,
    corruption_record_batch,
    gap_record_batch,
    record_record_batch,
    wanted_for,
)
from kafkajit.format.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.format.log_path import parse_log_path
from kafkajit.format.ranges import Range
from kafkajit.places.locations import opened_source
from kafkajit.places.private_keys import PrivateKeys
from kafkajit.records.batches import Batches
from kafkajit.records.chunk import Chunk
from kafkajit.records.columns import ColumnMemory, MayHold
from kafkajit.schema import (
    BATCH_COLUMNS,
    CONTENT_CORRUPTION,
    RECORD_COLUMNS,
    check_columns,
    record_schema,
    table_schema,
    with_corruption,
)
from kafkajit.storage.source import Bytes, Source
from kafkajit.walk.corruptions import corruptions
from kafkajit.walk.damage import FAILFAST, PERMISSIVE, Gap, Stretch, mode_named
from kafkajit.walk.frames import frames
from kafkajit.walk.threads import LEAST_BYTES, stretches, thread_count
from kafkajit.walk.walk import Walk

if TYPE_CHECKING:
    from kafkajit.values.typed_records import TypedColumns

DEFAULT_BATCH_ROWS = 65536


def read_records(
    source: Any,
    *,
    columns: Iterable[str] | None = None,
    check_crcs: bool = True,
    mode: str = FAILFAST,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    binary_view: bool = False,
    threads: int | None = None,
    value_schema: Any = None,
    key_schema: Any = None,
    value_message: str | None = None,
    key_message: str | None = None,
    schemas: Any = None,
    framing: str = "auto",
    private_keys: Mapping[str, str] | None = None,
) -> pa.Table:
    """Read all records of a log segment into a table; see `iter_records` for large segments.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, a path (memory-mapped), or the
            URI of a file, such as s3://bucket/orders-0/00000000000000000000.log.
        columns: names of `kafkajit.schema.RECORD_COLUMNS`; only these are decoded. By default all
            columns; topic and partition only if the source is a path.
        check_crcs: whether to check a batch's checksum before reading its records.
        mode: FAILFAST raises an error at the first bad batch. DROPMALFORMED leaves bad batches out
            and goes on at the next sound one. PERMISSIVE also returns a row for each gap: its
            column `corruption` has the place and the reason, and is NULL for records. The mode may
            be written in any case of letters.
        max_decompressed_bytes: the largest size of a decompressed batch.
        binary_view: return keys and values as views into the segment instead of copies.
        threads: the number of threads that read a large segment. By default one for each processor
            that this process may use; one in Spark's tasks, and in modes other than FAILFAST.
        value_schema: the schema of values, as for `decode_values`, to read them into typed columns.
            The column `value` is then typed, and `rawValue` has the bytes if `columns` names it.
            `columns` may name fields, such as "value.customer.id". For a malformed value,
            PERMISSIVE returns NULL and the reason in a column `valueError`; DROPMALFORMED leaves
            the record out.
        key_schema: the same for keys, with `rawKey` and `keyError`.
        value_message: the Protobuf message to read values into, if its schema has several. By
            default the message of the partition's first value.
        key_message: the same for keys.
        schemas: the schemas that keys and values name, as for `decode_values`; "auto" is the
            registry's log beside the topic. Without value_schema and key_schema, values and keys
            are read into the newest versions of the subjects TOPIC-value and TOPIC-key.
        framing: the bytes in front of keys and values that name their schemas, as for
            `decode_values`; with "headers", headers of records name them, if there are such
            headers.
        private_keys: files of private keys by their ids, for a segment that is encrypted in tiered
            storage.

    The table's schema metadata has two sizes: validBytes is the size of the log up to the end of
    its last batch, and trailingBytes that of the bytes behind it.

    >>> import kafkajit.testing as kt
    >>> log = kt.batch([kt.Record(key=b"k", value=b"v")], base_offset=7)
    >>> read_records(log, columns=["offset", "key", "value"]).to_pylist()
    [{'offset': 7, 'key': b'k', 'value': b'v'}]
    """
    count = thread_count(threads)
    mode = mode_named(mode)
    keys = PrivateKeys.of(private_keys)
    opened = opened_source(source, stays=binary_view, keys=keys)
    typed = _typed_columns(
        opened,
        (key_schema, value_schema),
        (key_message, value_message),
        schemas,
        framing,
        mode,
        location=source,
        keys=keys,
    )
    asked = _schema(opened, columns, mode, binary_view, typed)
    schema = asked if typed is None else typed.raw_schema(asked)

    def read(stretch: Stretch, source: Source) -> tuple[list[pa.RecordBatch], int]:
        reader = SegmentReader(source, mode=mode, start=stretch.start, end=stretch.end)
        records = reader.records(
            schema, check_crcs=check_crcs, max_decompressed_bytes=max_decompressed_bytes
        )
        return list(records), reader.position

    is_small = opened.content.size <= 2 * LEAST_BYTES
    if count == 1 or mode != FAILFAST or is_small or not opened.is_there:
        parts = [read(Stretch(0, opened.content.size), opened)]
    else:
        with ThreadPoolExecutor(count) as pool:
            parts = list(pool.map(read, stretches(opened, count), repeat(opened.shared())))
    rows: Iterable[pa.RecordBatch] = (batch for batches, _ in parts for batch in batches)
    if typed is not None:
        rows = typed.rows(rows, asked)
    table = pa.Table.from_batches(rows, asked)
    return table.replace_schema_metadata(_extent_metadata(opened.content, parts[-1][1]))


def iter_records(
    source: Any,
    batch_rows: int = DEFAULT_BATCH_ROWS,
    *,
    columns: Iterable[str] | None = None,
    check_crcs: bool = True,
    mode: str = FAILFAST,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    binary_view: bool = False,
    value_schema: Any = None,
    key_schema: Any = None,
    value_message: str | None = None,
    key_message: str | None = None,
    schemas: Any = None,
    framing: str = "auto",
    private_keys: Mapping[str, str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield records as Arrow record batches of at most `batch_rows` rows and a few megabytes each.

    Memory stays bounded, whatever the segment's size. The arguments are those of `read_records`.

    >>> import kafkajit.testing as kt
    >>> log = kt.batch([kt.Record(value=bytes([i])) for i in range(5)])
    >>> [batch.num_rows for batch in iter_records(log, batch_rows=2)]
    [2, 2, 1]
    """
    if batch_rows < 1:
        raise ValueError(f"batch_rows must be at least 1, not {batch_rows}")
    mode = mode_named(mode)
    keys = PrivateKeys.of(private_keys)
    opened = opened_source(source, stays=binary_view, keys=keys)
    typed = _typed_columns(
        opened,
        (key_schema, value_schema),
        (key_message, value_message),
        schemas,
        framing,
        mode,
        location=source,
        keys=keys,
    )
    asked = _schema(opened, columns, mode, binary_view, typed)
    records = SegmentReader(opened, mode=mode).records(
        asked if typed is None else typed.raw_schema(asked),
        batch_rows=batch_rows,
        check_crcs=check_crcs,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    return records if typed is None else typed.rows(records, asked)


def read_record_batches(source: Any, *, mode: str = FAILFAST) -> pa.Table:
    """Read the headers of all record batches into a table; check checksums, decompress nothing.

    A batch with a wrong checksum has isValid = false. The mode decides whether bytes that do not
    belong to a batch raise an error, are left out, or become a row with `corruption`. The schema's
    metadata has validBytes and trailingBytes, as for `read_records`.

    >>> import kafkajit.testing as kt
    >>> log = kt.batch([kt.Record(value=b"v")], base_offset=7) + b"torn"
    >>> table = read_record_batches(log)
    >>> table.select(["baseOffset", "recordsCount", "sizeInBytes", "isValid"]).to_pylist()
    [{'baseOffset': 7, 'recordsCount': 1, 'sizeInBytes': 69, 'isValid': True}]
    >>> table.schema.metadata[b"trailingBytes"]
    b'4'
    """
    opened = opened_source(source)
    schema = table_schema(BATCH_COLUMNS)
    if mode == PERMISSIVE:
        schema = with_corruption(schema)
    reader = SegmentReader(opened, mode=mode)
    table = pa.Table.from_batches(reader.batches(schema), schema=schema)
    return table.replace_schema_metadata(_extent_metadata(opened.content, reader.position))


def find_corruption(
    source: Any,
    *,
    check_crcs: bool = True,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> pa.Table:
    """List the damage in a log segment: a row for each damaged stretch between sound batches.

    This decodes every batch. Each row has the place of the stretch, the reason, and the range of
    missing offsets. `firstMissingOffset` is unknown only at the start of bytes without a file name,
    `lastMissingOffset` only if no sound batch follows. An unfinished batch at the end of the last
    segment is not damage. The arguments are those of `read_records`.

    >>> import kafkajit.testing as kt
    >>> good = [kt.batch([kt.Record(value=b"v")], base_offset=offset) for offset in (7, 9)]
    >>> log = good[0] + kt.broken("wrong crc", base_offset=8) + good[1]
    >>> columns = ["position", "length", "firstMissingOffset", "lastMissingOffset"]
    >>> find_corruption(log).select(columns).to_pylist()
    [{'position': 69, 'length': 127, 'firstMissingOffset': 8, 'lastMissingOffset': 8}]
    """
    reader = SegmentReader(opened_source(source), mode=PERMISSIVE)
    rows = reader.corruption(
        CONTENT_CORRUPTION, check_crcs=check_crcs, max_decompressed_bytes=max_decompressed_bytes
    )
    return pa.Table.from_batches(rows, schema=CONTENT_CORRUPTION)


def valid_bytes(source: Any) -> int:
    """Count the bytes up to the end of the last whole batch.

    >>> import kafkajit.testing as kt
    >>> valid_bytes(kt.batch([kt.Record(value=b"v")]) + b"torn")
    69
    """
    opened = opened_source(source)
    return max((framing.position for framing in frames(opened)), default=0)


def _extent_metadata(content: Bytes, position: int) -> dict[str, str]:
    return {"validBytes": str(position), "trailingBytes": str(content.size - position)}


def _schema(
    source: Source,
    columns: Iterable[str] | None,
    mode: str,
    binary_view: bool,
    typed: TypedColumns | None,
) -> pa.Schema:
    known = [
        name
        for name in RECORD_COLUMNS
        if source.path is not None or name not in ("topic", "partition")
    ]
    if typed is None:
        names = known if columns is None else check_columns(columns, known)
        schema = record_schema(names, binary_view=binary_view)
    else:
        schema = typed.asked(columns, known)
    return with_corruption(schema) if mode == PERMISSIVE else schema


def _typed_columns(
    source: Source,
    given: tuple[Any, Any],
    messages: tuple[str | None, str | None],
    schemas: Any,
    framing: str,
    mode: str,
    *,
    location: Any,
    keys: PrivateKeys,
) -> TypedColumns | None:
    """The types of keys and values, by their schemas or those that are at the source's location."""
    if all(it is None for it in (*given, *messages, schemas)):
        return None
    from kafkajit.values.framing import RECORD_FRAMINGS
    from kafkajit.values.typed_records import PartitionFolder, typed_columns

    if framing not in RECORD_FRAMINGS:
        raise ValueError(f"framing must be one of {', '.join(RECORD_FRAMINGS)}, not {framing!r}")
    folder = topic = None
    if source.path is not None:
        locations = (location,) if isinstance(location, str) else ()
        folder = PartitionFolder(source.path.rpartition("/")[0], locations, keys)
        topic = parse_log_path(source.path).topic
    return typed_columns(
        [topic],
        *given,
        schemas,
        beside=folder,
        framing=RECORD_FRAMINGS[framing],
        mode=mode,
        messages=messages,
    )


class SegmentReader(Walk):
    """A walk that yields Arrow record batches.

    If the schema has a column `corruption`, each gap becomes a row, in the mode PERMISSIVE.
    """

    def records(
        self,
        schema: pa.Schema,
        *,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        check_crcs: bool = True,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        may_hold: MayHold | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield records as record batches of that schema, of at most `batch_rows` rows.

        Batches of v2 that `may_hold` does not find in their bytes are checked and left out.
        """
        wanted = wanted_for(schema)
        if self._selection.judges_rows:
            wanted = wanted._replace(offset=True, timestamp=True)
        parts = self.chunks(
            ColumnMemory(wanted, allocate, may_hold),
            check_crcs=check_crcs,
            max_decompressed_bytes=max_decompressed_bytes,
            # Small record batches are cut from larger chunks, because each chunk costs as much as
            # 10,000 records.
            max_records=max(batch_rows, DEFAULT_BATCH_ROWS),
            recycle=pa.binary_view() not in schema.types,
            in_slices=True,
            reads_markers=bool({"controlType", "coordinatorEpoch"} & set(schema.names)),
        )
        for part in parts:
            if isinstance(part, Gap):
                if "corruption" in schema.names:
                    yield gap_record_batch(part, schema, self._path)
                continue
            rows = self._record_rows(part, schema)
            asked = self._selection.rows(part)
            if asked is not None and not asked.all():
                rows = rows.filter(column_of(asked))
            for start in range(0, rows.num_rows, batch_rows):
                yield rows.slice(start, batch_rows)
            self._source.forget(self.position)

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield headers of batches as record batches of that schema; nothing is decompressed."""
        for part in self.headers():
            if not isinstance(part, Gap):
                yield self._batch_rows(part, schema)
                self._source.forget(self.position)
            elif "corruption" in schema.names:
                yield gap_record_batch(part, schema, self._path)

    def _record_rows(self, chunk: Chunk, schema: pa.Schema) -> pa.RecordBatch:
        return record_record_batch(chunk, schema)

    def _batch_rows(self, batches: Batches, schema: pa.Schema) -> pa.RecordBatch:
        where = {
            "topic": self._path.topic,
            "partition": self._path.partition,
            "path": self._source.path,
        }
        return batch_record_batch(batches, self._source.content, schema, where)

    def corruption(
        self,
        schema: pa.Schema,
        offsets: Range | None = None,
        *,
        check_crcs: bool = True,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """Yield a row for each damaged stretch, in the columns of that schema."""
        found = corruptions(self, self._source, offsets, check_crcs, max_decompressed_bytes)
        for corruption in found:
            yield corruption_record_batch(corruption, schema, self._path)
