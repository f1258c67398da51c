"""Framed batches → chunks of plain records: check, decompress, find the records.

A chunk is a run of batches of about CHUNK_BYTES: large enough to pay for a handful of Python calls,
small enough to stay in the processor's cache from one stage to the next.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kafkajit.errors import (
    CorruptRecordError,
    DecompressionLimitError,
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
from kafkajit.records.default_records import EXTENT, read_default_records
from kafkajit.source import Bytes, Source

CHUNK_BYTES = 4 << 20

# Kernels may look this far behind a chunk's last batch, where the source has that much.
_SLACK = 64


@dataclass
class Chunk:
    """Decoded batches: their headers, the bytes their records stand in, and where in those."""

    log_path: LogPath
    batches: Batches
    counts: Int64s  # records of each batch
    content: Bytes  # what `records` points into
    records: npt.NDArray[np.void]  # RECORD
    error: KafkaJitError | None = None  # what is wrong with the batch behind the last

    def __len__(self) -> int:
        return self.records.size

    def field(self, row: int, name: str) -> bytes | None:
        """The key or the value of one record."""
        size = int(self.records[name + "Size"][row])
        start = int(self.records[name][row])
        return None if size < 0 else self.content[start : start + size].tobytes()


class Decoder:
    """Decodes a source's batches, in buffers that are used again from chunk to chunk.

    A chunk is good until the next one is decoded; without `recycle` its content stays.
    """

    def __init__(
        self,
        source: Source,
        *,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        recycle: bool = True,
    ) -> None:
        self._source = source
        self._recycle = recycle
        self._scratch = Scratch(max_decompressed_bytes)
        self._records: npt.NDArray[np.void] | None = None
        self._log_path = (
            parse_log_path(source.path) if source.path else LogPath(None, None, None, None)
        )

    def check(self, batches: Batches, *, check_crcs: bool) -> tuple[Batches, KafkaJitError | None]:
        """The batches before the first that is not a sound v2 batch, and what is wrong with it."""
        magic, stored = batches.field("magic"), batches.field("crc")
        sound = (magic == MAGIC_V2) & (batches.size_in_bytes >= RECORD_BATCH_OVERHEAD)
        computed = stored.copy()
        if check_crcs:
            computed[sound] = batch_checksums(
                self._source.content, batches.position[sound], batches.end[sound]
            )
        sound &= computed == stored
        if sound.all():
            return batches, None
        bad = int(np.argmin(sound))
        if magic[bad] in (0, 1):
            exception: type[KafkaJitError] = UnsupportedVersionError
            message = f"Message format v{magic[bad]} is not supported"
        else:
            exception = CorruptRecordError
            if magic[bad] != MAGIC_V2:
                message = f"Invalid magic found in record: {magic[bad]}"
            elif computed[bad] != stored[bad]:
                message = (
                    f"Record is corrupt (stored crc = {stored[bad]}, "
                    f"computed crc = {computed[bad]})"
                )
            else:
                message = (
                    f"Record batch is corrupt (the size {batches.size_in_bytes[bad]} is smaller "
                    f"than the minimum allowed overhead {RECORD_BATCH_OVERHEAD})"
                )
        return batches[:bad], self._error(exception, message, batches, bad)

    def decode(self, batches: Batches, *, keep_partial: bool = False) -> Chunk:
        """The first of these batches as a chunk: all, unless they grow large or one is bad.

        `keep_partial` keeps the good records of a batch that breaks off, where it is not
        compressed (a compressed one, to Kafka, is good or bad as a whole).
        """
        if (batches.codec == 0).all():
            first = int(batches.position[0])
            content = self._source.content[first : int(batches.end[-1]) + _SLACK]
            starts = batches.position + (RECORD_BATCH_OVERHEAD - first)
            ends = batches.end - first
            error = None
        else:
            content, starts, ends, error = self._decompress(batches)
            batches = batches[: ends.size]

        reading = read_default_records(content, _extents(batches, starts, ends), self._records)
        self._records = reading.buffer
        counts, records = reading.counts, reading.records
        if reading.status:
            bad = reading.batch
            error = error_for(
                reading.status,
                reading.a,
                reading.b,
                path=self._source.path,
                position=int(batches.position[bad]),
                base_offset=int(batches.field("baseOffset")[bad]),
                record=int(counts[bad]),
            )
            good = bad + 1 if keep_partial and batches.codec[bad] == 0 else bad
            batches, counts = batches[:good], counts[:good]
            records = records[: int(counts.sum())]
        return Chunk(self._log_path, batches, counts, content, records, error)

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
            try:
                if codecs[row] == 0:
                    scratch.append(np.frombuffer(compressed, dtype=np.uint8))
                elif counts[row] != 0:  # Kafka does not look into a batch without records
                    scratch.decompress(codecs[row], compressed)
            except KeyError:
                error = self._error(
                    UnsupportedCompressionTypeError,
                    f"Unknown compression type id: {codecs[row]}",
                    batches,
                    row,
                )
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
        return exception(
            message,
            path=self._source.path,
            position=int(batches.position[row]),
            base_offset=int(batches.field("baseOffset")[row]),
        )


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
