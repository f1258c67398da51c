"""The pipeline on one screen: bytes or a path → batches → plain records → Arrow.

source ─▶ frame ─▶ check ─▶ decompress ─▶ find records ─▶ gather columns
          batches  └─────────── decode ──────────────┘    arrow
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from kafkajit.arrow import (
    Gap,
    allocate,
    batch_record_batch,
    gap_record_batch,
    record_record_batch,
    wanted_for,
)
from kafkajit.errors import CorruptIndexError, KafkaJitError
from kafkajit.format.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.format.layout import BATCH_LENGTH_OFFSET, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD
from kafkajit.format.log_path import LogPath, parse_log_path
from kafkajit.kernel import read_int32
from kafkajit.records.batches import Batches, Framing, frame, framing_error
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import CHUNK_BYTES, Chunk, Decoder, without_bad_markers
from kafkajit.records.resync import goes_on, next_sound_batch, plausible, resync
from kafkajit.schema import (
    BATCH_COLUMNS,
    RECORD_COLUMNS,
    check_columns,
    record_schema,
    table_schema,
    with_corruption,
)
from kafkajit.selection import EVERYTHING, Mask, Selection
from kafkajit.source import Bytes, Source

DEFAULT_BATCH_ROWS = 65536
FAILFAST = "FAILFAST"
DROPMALFORMED = "DROPMALFORMED"
PERMISSIVE = "PERMISSIVE"
MODES = (FAILFAST, DROPMALFORMED, PERMISSIVE)

Part = TypeVar("Part", Chunk, Batches)


def read_records(
    source: Any,
    *,
    columns: Iterable[str] | None = None,
    check_crcs: bool = True,
    mode: str = FAILFAST,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    binary_view: bool = False,
) -> pa.Table:
    """All records of a log segment as a table; see `iter_records` for one that is large.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path (memory-mapped).
        columns: names of `kafkajit.schema.RECORD_COLUMNS`; only these are decoded. All by default;
            topic and partition only where the source is a path.
        check_crcs: whether a batch's checksum must hold before its records are believed.
        mode: FAILFAST raises at the first bad batch. DROPMALFORMED leaves bad batches out and
            goes on where the log does. PERMISSIVE also has a row for what was left out: its
            column `corruption` says where and why, and is NULL for records.
        max_decompressed_bytes: what one batch may grow to.
        binary_view: key and value as views into the segment instead of copies.

    The table's schema metadata says how far the log reads: validBytes and trailingBytes.

    >>> import kafkajit.testing as kt
    >>> log = kt.batch([kt.Record(key=b"k", value=b"v")], base_offset=7)
    >>> read_records(log, columns=["offset", "key", "value"]).to_pylist()
    [{'offset': 7, 'key': b'k', 'value': b'v'}]
    """
    opened = Source(source)
    schema = _schema(opened, columns, mode, binary_view)
    reader = SegmentReader(opened, mode=mode)
    records = reader.records(
        schema, check_crcs=check_crcs, max_decompressed_bytes=max_decompressed_bytes
    )
    table = pa.Table.from_batches(records, schema=schema)
    return table.replace_schema_metadata(_extent_metadata(opened.content, reader.position))


def iter_records(
    source: Any,
    batch_rows: int = DEFAULT_BATCH_ROWS,
    *,
    columns: Iterable[str] | None = None,
    check_crcs: bool = True,
    mode: str = FAILFAST,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    binary_view: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Records as Arrow record batches of at most `batch_rows` rows and a few megabytes each.

    Memory stays bounded whatever the segment's size. Arguments as for `read_records`.

    >>> import kafkajit.testing as kt
    >>> log = kt.batch([kt.Record(value=bytes([i])) for i in range(5)])
    >>> [batch.num_rows for batch in iter_records(log, batch_rows=2)]
    [2, 2, 1]
    """
    if batch_rows < 1:
        raise ValueError(f"batch_rows must be at least 1, not {batch_rows}")
    opened = Source(source)
    return SegmentReader(opened, mode=mode).records(
        _schema(opened, columns, mode, binary_view),
        batch_rows=batch_rows,
        check_crcs=check_crcs,
        max_decompressed_bytes=max_decompressed_bytes,
    )


def read_record_batches(source: Any) -> pa.Table:
    """Headers of all record batches as a table: nothing is decompressed, checksums are checked.

    A batch that is not what was written has isValid = false. The schema's metadata says how far
    the log reads: validBytes and trailingBytes.

    >>> import kafkajit.testing as kt
    >>> log = kt.batch([kt.Record(value=b"v")], base_offset=7) + b"torn"
    >>> table = read_record_batches(log)
    >>> table.select(["baseOffset", "recordsCount", "sizeInBytes", "isValid"]).to_pylist()
    [{'baseOffset': 7, 'recordsCount': 1, 'sizeInBytes': 69, 'isValid': True}]
    >>> table.schema.metadata[b"trailingBytes"]
    b'4'
    """
    opened = Source(source)
    schema = table_schema(BATCH_COLUMNS)
    reader = SegmentReader(opened)
    table = pa.Table.from_batches(reader.batches(schema), schema=schema)
    return table.replace_schema_metadata(_extent_metadata(opened.content, reader.position))


def valid_bytes(source: Any) -> int:
    """Bytes up to the end of the last whole batch.

    >>> import kafkajit.testing as kt
    >>> valid_bytes(kt.batch([kt.Record(value=b"v")]) + b"torn")
    69
    """
    opened = Source(source)
    return max((framing.position for framing in frames(opened)), default=0)


def frames(
    source: Source, *, position: int = 0, end: int | None = None, max_records: int = 2**62
) -> Iterator[Framing]:
    """Runs of batches of about a chunk each, to the end of the log.

    An incomplete batch ends a log, and so do the zeros of a preallocated file; anything else that
    is not a batch is an error.
    """
    content = source.content
    end = content.size if end is None else end
    while True:
        loaded = source.load(min(position + CHUNK_BYTES, end))
        framing = frame(
            content, position, end=min(loaded, end), max_bytes=CHUNK_BYTES, max_records=max_records
        )
        if len(framing.batches):
            yield framing
            position = framing.position
            continue
        error = framing_error(source, framing)
        if error is None and loaded < end:
            # More of a batch than is loaded; its length is, as a chunk is larger than a header.
            length = read_int32(content, position + BATCH_LENGTH_OFFSET)
            source.load(min(position + LOG_OVERHEAD + max(int(length), CHUNK_BYTES), end))
            continue
        # Only a log ends in zeros: a stretch of it ends where a batch begins.
        if error is not None and (end < content.size or not _is_padding(source, framing.position)):
            raise error
        return


def _is_padding(source: Source, position: int) -> bool:
    step, end = 1 << 20, source.content.size
    source.load(end)
    return not any(source.content[at : at + step].any() for at in range(position, end, step))


def _extent_metadata(content: Bytes, position: int) -> dict[str, str]:
    return {"validBytes": str(position), "trailingBytes": str(content.size - position)}


def _schema(
    source: Source, columns: Iterable[str] | None, mode: str, binary_view: bool
) -> pa.Schema:
    known = [
        name
        for name in RECORD_COLUMNS
        if source.path is not None or name not in ("topic", "partition")
    ]
    names = known if columns is None else check_columns(columns, known)
    schema = record_schema(names, binary_view=binary_view)
    return with_corruption(schema) if mode == PERMISSIVE else schema


class SegmentReader:
    """One pass over a segment, or a stretch of it, whatever is wrong with some of its batches.

    A stretch begins and ends where batches do. A schema's column `corruption` asks for a row for
    each gap, in the mode PERMISSIVE.
    """

    def __init__(
        self,
        source: Source,
        *,
        mode: str = FAILFAST,
        selection: Selection = EVERYTHING,
        start: int = 0,
        end: int | None = None,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"unknown mode {mode!r}; there are: {', '.join(MODES)}")
        self.position = start  # behind the last batch or gap
        self._source = source
        self._mode = mode
        self._selection = selection
        self._end = source.content.size if end is None else min(end, source.content.size)
        self._is_cut = self._end < source.content.size  # and does not end as a log may
        self._path = parse_log_path(source.path) if source.path else LogPath(None, None, None, None)

    def records(
        self,
        schema: pa.Schema,
        *,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        check_crcs: bool = True,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """Records as record batches of that schema, of at most so many rows."""
        wanted = wanted_for(schema)
        if self._selection.judges_rows:
            wanted = wanted._replace(offset=True, timestamp=True)
        decoder = Decoder(
            self._source,
            ColumnMemory(wanted, allocate),
            max_decompressed_bytes=max_decompressed_bytes,
            recycle=pa.binary_view() not in schema.types,
        )
        reads_markers = bool({"controlType", "coordinatorEpoch"} & set(schema.names))

        def read(framing: Framing) -> Generator[Chunk | Gap, None, bool]:
            return self._decode(framing, decoder, check_crcs, reads_markers)

        # Few rows are cut from a chunk of many: a chunk costs as much as 10,000 records.
        for part in self._parts(read, max(batch_rows, DEFAULT_BATCH_ROWS)):
            if isinstance(part, Gap):
                if "corruption" in schema.names:
                    yield gap_record_batch(part, schema, self._path)
                continue
            rows = record_record_batch(part, schema)
            asked = self._selection.rows(part)
            if asked is not None:
                rows = rows.filter(pa.array(asked))
            for start in range(0, rows.num_rows, batch_rows):
                yield rows.slice(start, batch_rows)
            self._source.forget(self.position)

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Headers of batches as record batches of that schema; nothing is decompressed."""
        where = {
            "topic": self._path.topic,
            "partition": self._path.partition,
            "path": self._source.path,
        }
        for part in self._parts(self._headers):
            if not isinstance(part, Gap):
                yield batch_record_batch(part, self._source.content, schema, where)
                self._source.forget(self.position)
            elif "corruption" in schema.names:
                yield gap_record_batch(part, schema, self._path)

    def gaps(
        self,
        schema: pa.Schema,
        *,
        check_crcs: bool = True,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """What PERMISSIVE would report, a row each; every batch is decoded to know."""
        decoder = Decoder(
            self._source,
            ColumnMemory(wanted_for(record_schema(["controlType"])), allocate),
            max_decompressed_bytes=max_decompressed_bytes,
        )

        def read(framing: Framing) -> Generator[Chunk | Gap, None, bool]:
            return self._decode(framing, decoder, check_crcs, reads_markers=True)

        for part in self._parts(read):
            if isinstance(part, Gap):
                yield gap_record_batch(part, schema, self._path)
            else:
                self._source.forget(self.position)

    def framed(self) -> Iterator[Batches]:
        """Headers of batches that are asked for, as they are found."""
        for part in self._parts(self._headers):
            if not isinstance(part, Gap):
                yield part

    def _parts(
        self,
        read: Callable[[Framing], Generator[Part | Gap, None, bool]],
        max_records: int = 2**62,
    ) -> Iterator[Part | Gap]:
        """What `read` makes of framed batches and, unless the mode is FAILFAST, gaps."""
        while True:
            try:
                for framing in frames(
                    self._source, position=self.position, end=self._end, max_records=max_records
                ):
                    leaves = yield from read(framing)
                    if leaves:
                        break
                else:
                    if self._mode == FAILFAST:
                        self._check_end()
                        return
                    # What looks like a batch cut by the end may have a damaged length. What is
                    # left behind a log's last batch is no damage.
                    start = self.position
                    self.position = next_sound_batch(self._rest(), start)
                    if self.position == self._end and not (self._is_cut and start < self._end):
                        self.position = start
                        return
                    yield self._gap_from(start, "No record batch")
            except KafkaJitError as error:  # of the framing
                if self._mode == FAILFAST:
                    raise
                yield self._gap(error)

    def _headers(self, framing: Framing) -> Generator[Batches | Gap, None, bool]:
        batches = framing.batches
        misleading = self._misleading(framing)
        believed = int(np.argmax(misleading)) if misleading.any() else len(batches)
        self.position = framing.position
        if believed < len(batches):
            self.position = int(batches.position[believed])
        asked = batches[:believed]
        if not self._selection.is_everything:
            asked = asked[self._selection.batches(asked)]
        if len(asked):
            yield asked
        if believed < len(batches):
            decoder = Decoder(self._source, ColumnMemory(Wanted()))
            yield self._gap(decoder.unsound(batches, believed))
        return believed < len(batches)

    def _decode(
        self, framing: Framing, decoder: Decoder, check_crcs: bool, reads_markers: bool
    ) -> Generator[Chunk | Gap, None, bool]:
        """Decode framed batches; whether the log goes on elsewhere than behind the last of them."""
        batches = framing.batches
        misleading = np.zeros(len(batches), dtype=np.bool_)
        if not self._selection.is_everything:
            misleading = self._misleading(framing)
            asked = self._selection.batches(batches) | misleading
            batches, misleading = batches[asked], misleading[asked]
        sound = decoder.sound(batches, check_crcs=check_crcs) & ~misleading
        window = len(batches)  # how many to decode at once
        while len(batches):
            self.position = int(batches.position[0])
            error = None
            good = int(np.argmin(sound)) if not sound.all() else len(batches)
            if good == 0:
                error = decoder.unsound(batches, 0)
            else:
                chunk = decoder.decode(batches[: min(good, window)])
                if reads_markers:
                    chunk = without_bad_markers(chunk)
                done = len(chunk.batches)
                window = 2 * max(window, 1)
                batches, sound = batches[done:], sound[done:]
                if done:
                    self.position = int(chunk.batches.end[-1])
                    yield chunk
                error = chunk.error
            if error is None:
                continue
            self.position = int(batches.position[0])
            yield self._gap(error)
            if self.position != int(batches.end[0]):
                return True
            # What was decoded behind a bad batch is lost: feel forward after one.
            batches, sound, window = batches[1:], sound[1:], 1
        self.position = framing.position
        return False

    def _misleading(self, framing: Framing) -> Mask:
        """Bad batches behind which no other begins, unless the mode is FAILFAST.

        Their lengths may be what is damaged, and they hide batches that somebody asks for, so a
        header's word is not enough to step over them.
        """
        batches = framing.batches
        misleading = np.zeros(len(batches), dtype=np.bool_)
        if self._mode != FAILFAST:
            self._source.load(min(framing.position + RECORD_BATCH_OVERHEAD, self._end))
            content = self._source.content[: self._end]
            misleading[-1] = not goes_on(content, framing.position, is_cut=self._is_cut)
            misleading[:-1] = ~plausible(content, batches.position[1:])
            misleading[misleading] = ~batches[misleading].is_valid(content)
        return misleading

    def _gap(self, error: KafkaJitError) -> Gap:
        """Step over what is bad at the present position, or give up."""
        if self._mode == FAILFAST:
            raise error
        start = self.position
        self.position = resync(self._rest(), start, is_cut=self._is_cut)
        return self._gap_from(start, f"{type(error).__name__}: {error.message}")

    def _gap_from(self, start: int, reason: str) -> Gap:
        return Gap(self._source.path, start, self.position - start, reason)

    def _rest(self) -> Bytes:
        """The bytes of the stretch: a search does not leave it."""
        self._source.load(self._end)
        return self._source.content[: self._end]

    def _check_end(self) -> None:
        """A stretch ends where the next begins, or it was cut at what is no batch."""
        if self._is_cut and self.position < self._end:
            raise CorruptIndexError(
                f"No record batch ends at position {self._end}, where the segment was split: its "
                "offset index is wrong, or the file has changed",
                path=self._source.path,
                position=self.position,
            )
