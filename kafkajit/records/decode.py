"""Framed batches → chunks of plain records: check, decompress, find the records.

A chunk is a run of batches of about CHUNK_BYTES: large enough to pay for a handful of Python calls,
small enough to stay in the processor's cache from one stage to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kafkajit.errors import (
    CorruptRecordError,
    DecompressionLimitError,
    InvalidRecordError,
    KafkaJitError,
    UnsupportedCompressionTypeError,
    UnsupportedVersionError,
    error_for,
)
from kafkajit.format.checksum import batch_checksums
from kafkajit.format.compression import (
    COMPRESSION_TYPES,
    DEFAULT_MAX_DECOMPRESSED_BYTES,
    DecodeError,
    OutputFull,
    Scratch,
)
from kafkajit.format.layout import MAGIC_V2, RECORD_BATCH_OVERHEAD
from kafkajit.format.log_path import LogPath, parse_log_path
from kafkajit.records.batches import Batches, Int64s
from kafkajit.records.columns import ColumnMemory, Columns, Wanted
from kafkajit.records.control_records import check_marker
from kafkajit.records.default_records import EXTENT, read_default_records
from kafkajit.source import Bytes, Source

CHUNK_BYTES = 8 << 20
# Positions in a chunk are int32, and a chunk may be nearly full when its last batch is added.
MAX_DECOMPRESSED_BYTES = 2**31 - 1 - 2 * CHUNK_BYTES

# Kernels may look this far behind a chunk's last batch, where the source has that much.
_SLACK = 64


@dataclass
class Chunk:
    """Decoded batches: their headers, the bytes their records stand in, and where in those."""

    path: str | None
    log_path: LogPath
    batches: Batches
    counts: Int64s  # records of each batch
    content: Bytes  # what `fields` points into
    columns: Columns
    rows: int  # that count in the columns
    error: KafkaJitError | None = None  # what is wrong with the batch behind the last

    def __len__(self) -> int:
        return self.rows

    @property
    def fields(self) -> npt.NDArray[np.void]:
        """Where the parts of each record stand: rows of RECORD."""
        return self.columns.fields[: self.rows]

    def field(self, row: int, name: str) -> bytes | None:
        """The key or the value of one record."""
        size = int(self.columns.fields[name + "Size"][row])
        start = int(self.columns.fields[name][row])
        return None if size < 0 else self.content[start : start + size].tobytes()


def without_bad_markers(chunk: Chunk) -> Chunk:
    """The chunk up to the first control batch that says nothing sensible."""
    if not chunk.batches.is_control.any():
        return chunk
    first_rows = np.cumsum(chunk.counts) - chunk.counts
    for batch in np.flatnonzero(chunk.batches.is_control).tolist():
        first = int(first_rows[batch])
        for row in range(first, first + int(chunk.counts[batch])):
            try:
                check_marker(chunk.field(row, "key"), chunk.field(row, "value"))
            except InvalidRecordError as error:
                return replace(
                    chunk,
                    batches=chunk.batches[:batch],
                    counts=chunk.counts[:batch],
                    rows=first,
                    error=located(error, chunk.path, chunk.batches, batch),
                )
    return chunk


def located(error: KafkaJitError, path: str | None, batches: Batches, row: int) -> KafkaJitError:
    """The error, told where: the batch that it is about."""
    error.path = path
    error.position = int(batches.position[row])
    error.base_offset = int(batches.field("baseOffset")[row])
    return error


class Decoder:
    """Decodes a source's batches, in buffers that are used again from chunk to chunk.

    A chunk is good until the next one is decoded; without `recycle` its content stays.
    """

    def __init__(
        self,
        source: Source,
        memory: ColumnMemory,
        *,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        recycle: bool = True,
    ) -> None:
        if not 0 < max_decompressed_bytes <= MAX_DECOMPRESSED_BYTES:
            raise ValueError(
                f"max_decompressed_bytes must be 1 to {MAX_DECOMPRESSED_BYTES}, "
                f"not {max_decompressed_bytes}"
            )
        self._source = source
        self._memory = memory
        self._recycle = recycle
        self._scratch = Scratch(max_decompressed_bytes)
        self._log_path = (
            parse_log_path(source.path) if source.path else LogPath(None, None, None, None)
        )

    def sound(self, batches: Batches, *, check_crcs: bool) -> npt.NDArray[np.bool_]:
        """Which batches are of a known format and, if asked, what their checksums say."""
        sound: npt.NDArray[np.bool_] = batches.field("magic") == MAGIC_V2
        if check_crcs:
            whole = sound & (batches.size_in_bytes >= RECORD_BATCH_OVERHEAD)
            sound[whole] = self._checksums(batches, whole) == batches.field("crc")[whole]
        return sound

    def unsound(self, batches: Batches, row: int) -> KafkaJitError:
        """What is wrong with a batch that is not sound."""
        magic, stored = int(batches.field("magic")[row]), int(batches.field("crc")[row])
        if magic in (0, 1):
            message = f"Message format v{magic} is not supported"
            return self._error(UnsupportedVersionError, message, batches, row)
        if magic != MAGIC_V2:
            message = f"Invalid magic found in record: {magic}"
        else:
            (computed,) = self._checksums(batches, slice(row, row + 1))
            message = f"Record is corrupt (stored crc = {stored}, computed crc = {computed})"
        return self._error(CorruptRecordError, message, batches, row)

    def _checksums(
        self, batches: Batches, rows: slice | npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.uint32]:
        return batch_checksums(self._source.content, batches.position[rows], batches.end[rows])

    def headers(self, batches: Batches) -> Chunk:
        """These batches without their records."""
        return Chunk(
            self._source.path,
            self._log_path,
            batches,
            np.zeros(len(batches), dtype=np.int64),
            self._source.content,
            ColumnMemory(Wanted()).columns(0, 0),
            0,
        )

    def decode(self, batches: Batches, *, keep_bad: bool = False) -> Chunk:
        """The first of these batches as a chunk: all, unless they grow large or one is bad.

        A chunk ends before a bad batch and says what is wrong with it. With `keep_bad` it ends
        with that batch and the records before the damage, as Kafka's iterator hands them out: none
        where the batch is compressed.
        """
        content, starts, ends, error = self._plain(batches)
        good = batches[: ends.size]
        reading = read_default_records(content, _extents(good, starts, ends), self._memory)
        counts = reading.counts
        kept = len(good)
        if reading.status:
            kept = reading.batch
            error = error_for(reading.status, reading.a, reading.b, record=int(counts[kept]))
            error = located(error, self._source.path, batches, kept)
        if keep_bad and error is not None:
            counts = np.append(counts, 0)[: kept + 1]
            if batches.codec[kept] != 0:
                counts[kept] = 0
            kept += 1
        counts = counts[:kept]
        return Chunk(
            self._source.path,
            self._log_path,
            batches[:kept],
            counts,
            content,
            reading.columns,
            int(counts.sum()),
            error,
        )

    def _plain(self, batches: Batches) -> tuple[Bytes, Int64s, Int64s, KafkaJitError | None]:
        """Where the plain records of batches are: the array, starts and ends in it.

        That is the source itself where no batch is compressed, else scratch.
        """
        error = None
        undersized = batches.size_in_bytes < RECORD_BATCH_OVERHEAD
        if undersized.any():
            bad = int(np.argmax(undersized))
            error = self._error(
                CorruptRecordError,
                f"Record batch is corrupt (the size {batches.size_in_bytes[bad]} is smaller than "
                f"the minimum allowed overhead {RECORD_BATCH_OVERHEAD})",
                batches,
                bad,
            )
            batches = batches[:bad]
        if (batches.codec != 0).any():
            content, starts, ends, worse = self._decompress(batches)
            return content, starts, ends, worse or (error if ends.size == len(batches) else None)
        first = int(batches.position[0]) if len(batches) else 0
        last = int(batches.end[-1]) if len(batches) else 0
        content = self._source.content[first : last + _SLACK]
        starts = batches.position + (RECORD_BATCH_OVERHEAD - first)
        return content, starts, batches.end - first, error

    def _decompress(self, batches: Batches) -> tuple[Bytes, Int64s, Int64s, KafkaJitError | None]:
        """The records of as many batches as make a chunk, one behind the other in scratch."""
        scratch = self._scratch
        scratch.reset(recycle=self._recycle)
        source = self._source.content.data
        starts: list[int] = []
        ends: list[int] = []
        error: KafkaJitError | None = None
        codecs = batches.codec.tolist()
        counts = batches.field("recordsCount").tolist()
        for row, (position, end) in enumerate(
            zip(batches.position.tolist(), batches.end.tolist(), strict=True)
        ):
            start = scratch.written
            if start > CHUNK_BYTES:
                break
            compressed = source[position + RECORD_BATCH_OVERHEAD : end]
            if codecs[row] not in COMPRESSION_TYPES:
                error = self._error(
                    UnsupportedCompressionTypeError,
                    f"Unknown compression type id: {codecs[row]}",
                    batches,
                    row,
                )
                break
            try:
                if codecs[row] == 0:
                    scratch.append(np.frombuffer(compressed, dtype=np.uint8))
                elif counts[row] != 0:  # Kafka does not look into a batch without records
                    scratch.decompress(codecs[row], compressed)
            except OutputFull:
                error = self._error(
                    DecompressionLimitError,
                    f"Record batch ({COMPRESSION_TYPES[codecs[row]]}, {len(compressed)} bytes) "
                    f"holds more than max_decompressed_bytes = {scratch.limit}",
                    batches,
                    row,
                )
            except DecodeError as reason:
                error = self._error(
                    CorruptRecordError,
                    f"Failed to decompress record stream ({reason})",
                    batches,
                    row,
                )
            if error is not None:
                break
            starts.append(start)
            ends.append(scratch.written)
        return (
            scratch.content,
            np.array(starts, dtype=np.int64),
            np.array(ends, dtype=np.int64),
            error,
        )

    def _error(
        self, exception: type[KafkaJitError], message: str, batches: Batches, row: int
    ) -> KafkaJitError:
        return located(exception(message), self._source.path, batches, row)


def _extents(batches: Batches, starts: Int64s, ends: Int64s) -> npt.NDArray[np.void]:
    extents = np.empty(len(batches), dtype=EXTENT)
    extents["start"] = starts
    extents["end"] = ends
    extents["count"] = batches.field("recordsCount")
    extents["baseOffset"] = batches.field("baseOffset")
    extents["baseTimestamp"] = batches.field("baseTimestamp")
    extents["logAppendTime"] = batches.field("maxTimestamp")
    extents["isLogAppendTime"] = batches.timestamp_type
    extents["isCompressed"] = batches.codec != 0
    extents["magic"] = batches.field("magic")
    return extents
