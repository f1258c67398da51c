"""The pipeline on one screen: bytes or a path → batches → plain records → Arrow.

source ─▶ frame ─▶ check ─▶ decompress ─▶ find records ─▶ gather columns
          batches  └─────────── decode ──────────────┘    arrow
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from kafkajit.arrow import (
    RECORD_COLUMNS,
    Gap,
    allocate,
    batch_record_batch,
    batch_schema,
    check_columns,
    gap_record_batch,
    record_record_batch,
    record_schema,
    wanted_for,
    with_corruption,
    without_corruption,
)
from kafkajit.errors import KafkaJitError
from kafkajit.format.compression import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.records.batches import Batches, Framing, frame, framing_error
from kafkajit.records.columns import ColumnMemory
from kafkajit.records.decode import CHUNK_BYTES, Chunk, Decoder, without_bad_markers
from kafkajit.records.resync import next_sound_batch, resync
from kafkajit.source import Bytes, Source

DEFAULT_BATCH_ROWS = 65536
FAILFAST = "FAILFAST"
DROPMALFORMED = "DROPMALFORMED"
PERMISSIVE = "PERMISSIVE"
MODES = (FAILFAST, DROPMALFORMED, PERMISSIVE)


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
        columns: names of `kafkajit.arrow.RECORD_COLUMNS`; only these are decoded. All by default;
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
    reader = _RecordReader(
        source,
        columns=columns,
        check_crcs=check_crcs,
        mode=mode,
        max_decompressed_bytes=max_decompressed_bytes,
        binary_view=binary_view,
    )
    table = pa.Table.from_batches(reader.batches(DEFAULT_BATCH_ROWS), schema=reader.schema)
    return table.replace_schema_metadata(_extent_metadata(reader.source.content, reader.position))


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
    reader = _RecordReader(
        source,
        columns=columns,
        check_crcs=check_crcs,
        mode=mode,
        max_decompressed_bytes=max_decompressed_bytes,
        binary_view=binary_view,
    )
    return reader.batches(batch_rows)


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
    tables, position = [], 0
    for framing in frames(opened):
        tables.append(batch_record_batch(framing.batches, opened.content))
        position = framing.position
        opened.forget(position)
    table = pa.Table.from_batches(tables, schema=batch_schema())
    return table.replace_schema_metadata(_extent_metadata(opened.content, position))


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
    while True:
        framing = frame(content, position, end=end, max_bytes=CHUNK_BYTES, max_records=max_records)
        if len(framing.batches):
            yield framing
        else:
            error = framing_error(source, framing)
            if error is not None and not _is_padding(content, framing.position):
                raise error
            return
        position = framing.position


def _is_padding(content: Bytes, position: int) -> bool:
    step = 1 << 20
    return not any(content[at : at + step].any() for at in range(position, content.size, step))


def _extent_metadata(content: Bytes, position: int) -> dict[str, str]:
    return {"validBytes": str(position), "trailingBytes": str(content.size - position)}


class _RecordReader:
    """One pass over a source's records, whatever is wrong with some of them."""

    def __init__(
        self,
        source: Any,
        *,
        columns: Iterable[str] | None,
        check_crcs: bool,
        mode: str,
        max_decompressed_bytes: int,
        binary_view: bool,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"unknown mode {mode!r}; there are: {', '.join(MODES)}")
        self.source = Source(source)
        known = [
            name
            for name in RECORD_COLUMNS
            if self.source.path is not None or name not in ("topic", "partition")
        ]
        self._columns = record_schema(
            known if columns is None else check_columns(columns, known), binary_view=binary_view
        )
        self.schema = with_corruption(self._columns) if mode == PERMISSIVE else self._columns
        self.position = 0  # behind the last batch or gap
        self._check_crcs = check_crcs
        self._mode = mode
        self._reads_markers = bool({"controlType", "coordinatorEpoch"} & set(self._columns.names))
        self._decoder = Decoder(
            self.source,
            ColumnMemory(wanted_for(self._columns), allocate),
            max_decompressed_bytes=max_decompressed_bytes,
            recycle=not binary_view,
        )

    def batches(self, batch_rows: int) -> Iterator[pa.RecordBatch]:
        # Few rows are cut from a chunk of many: a chunk costs as much as 10,000 records.
        for part in self._parts(max(batch_rows, DEFAULT_BATCH_ROWS)):
            if isinstance(part, Gap):
                if self._mode == PERMISSIVE:
                    yield gap_record_batch(part, self.schema)
                continue
            rows = record_record_batch(part, self._columns)
            if self._mode == PERMISSIVE:
                rows = without_corruption(rows, self.schema)
            for start in range(0, rows.num_rows, batch_rows):
                yield rows.slice(start, batch_rows)
            self.source.forget(self.position)

    def _parts(self, max_records: int) -> Iterator[Chunk | Gap]:
        """Chunks and, unless the mode is FAILFAST, what lies damaged between them."""
        content = self.source.content
        while True:
            try:
                for framing in frames(self.source, position=self.position, max_records=max_records):
                    leaves = yield from self._read(framing.batches)
                    if leaves:
                        break
                else:
                    if self._mode == FAILFAST:
                        return
                    # What looks like a batch cut by the end may have a damaged length.
                    start = self.position
                    self.position = next_sound_batch(content, start)
                    if self.position == content.size:
                        self.position = start
                        return
                    yield Gap(start, self.position - start, "No record batch")
            except KafkaJitError as error:  # of the framing
                if self._mode == FAILFAST:
                    raise
                yield self._gap(error)

    def _read(self, batches: Batches) -> Generator[Chunk | Gap, None, bool]:
        """Read framed batches; whether the log goes on elsewhere than behind the last of them."""
        sound = self._decoder.sound(batches, check_crcs=self._check_crcs)
        window = len(batches)  # how many to decode at once
        while len(batches):
            error = None
            good = int(np.argmin(sound)) if not sound.all() else len(batches)
            if good == 0:
                error = self._decoder.unsound(batches, 0)
            else:
                chunk = self._decoder.decode(batches[: min(good, window)])
                if self._reads_markers:
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
            yield self._gap(error)
            if len(batches) == 1 or self.position != batches.position[1]:
                return self.position != int(batches.end[0])
            # What was decoded behind a bad batch is lost: feel forward after one.
            batches, sound, window = batches[1:], sound[1:], 1
        return False

    def _gap(self, error: KafkaJitError) -> Gap:
        """Step over what is bad at the present position, or give up."""
        if self._mode == FAILFAST:
            raise error
        start = self.position
        self.position = resync(self.source.content, start)
        return Gap(start, self.position - start, f"{type(error).__name__}: {error.message}")
