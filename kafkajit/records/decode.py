"""Decodes framed batches into chunks of records: checks, decompresses, finds the records.

A chunk is a run of batches of about CHUNK_BYTES: large enough to pay for a handful of Python calls,
small enough to stay in the processor's cache from one stage to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from kafkajit.errors import (
    INVALID_MESSAGE,
    NULL_MESSAGE_SET,
    CorruptRecordError,
    DecompressionLimitError,
    KafkaJitError,
    UnsupportedCompressionTypeError,
    error_for,
)
from kafkajit.format.codecs import COMPRESSION_TYPES, DEFAULT_MAX_DECOMPRESSED_BYTES, LZ4
from kafkajit.format.compression import DecodeError, OutputFull, Scratch, with_right_lz4_checksum
from kafkajit.format.decompressors import UNCHECKED, decompress_run
from kafkajit.format.layout import MAGIC_V0, MAGIC_V1, MAGIC_V2, RECORD_BATCH_OVERHEAD
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.log_path import LogPath, parse_log_path
from kafkajit.records.batches import Batches, SingleMessages
from kafkajit.records.chunk import Chunk, located
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.default_records import read_default_records
from kafkajit.records.message_sets import IS_NULL, read_message_sets, value_extents
from kafkajit.records.one_pass import (
    OnePass,
    Room,
    compressed_batches,
    extents_of,
    read_checked,
    read_compressed,
)
from kafkajit.records.plain import Plain, Read, of_one_kind, too_small, unreadable
from kafkajit.records.single_messages import read_single_messages
from kafkajit.records.slices import SLICE_BYTES, check_slices, read_slices
from kafkajit.storage.source import Bytes, Int64s, Mask, Source

CHUNK_BYTES = SLICE_BYTES
# Positions in a chunk are int32, and a chunk may be nearly full when its last batch is added.
MAX_DECOMPRESSED_BYTES = MAX_INT32 - 2 * CHUNK_BYTES

# Kernels may look this far behind a chunk's last batch, if the source has that much.
_SLACK = 64
# Room for the records that make a chunk larger than it should be.
_OVER_ENOUGH = 128 << 10


class Decoder:
    """Decodes a source's batches, in buffers that it reuses from chunk to chunk.

    A chunk is valid until the next one is decoded; without `recycle` its content stays.
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
        self._ratio = 4.0  # of a chunk's plain bytes to the compressed ones, at most
        self._log_path = parse_log_path(source.path) if source.path else LogPath()

    @property
    def content(self) -> Bytes:
        """The bytes in which batches have their positions."""
        return self._source.content

    def sound(self, batches: Batches, *, check_crcs: bool) -> Mask:
        """Find batches of a known format that, if `check_crcs`, have the checksum they store."""
        sound: Mask = batches.is_message | (batches.field("magic") == MAGIC_V2)
        if check_crcs:
            whole = sound & batches.is_whole
            if whole.all():
                holds: Mask
                holds = batches.checksums(self._source.content) == batches.field("crc")
                return holds
            computed = batches[whole].checksums(self._source.content)
            sound[whole] = computed == batches.field("crc")[whole]
        return sound

    def unsound(self, batches: Batches, row: int, computed: int | None = None) -> KafkaJitError:
        """The error in a batch that is not sound; `computed` is its checksum, if known."""
        magic, stored = int(batches.field("magic")[row]), int(batches.field("crc")[row])
        if magic not in (MAGIC_V0, MAGIC_V1, MAGIC_V2):
            message = f"Invalid magic found in record: {magic}"
        elif not batches.is_whole[row]:
            message = too_small(batches, row)
        else:
            if computed is None:
                (computed,) = batches[row : row + 1].checksums(self._source.content)
            message = f"Record is corrupt (stored crc = {stored}, computed crc = {computed})"
        return self._error(CorruptRecordError, message, batches, row)

    def headers(self, batches: Batches) -> Chunk:
        """These batches without their records."""
        path, where = self._source.path, self._log_path
        counts = np.zeros(len(batches), dtype=np.int64)
        none = ColumnMemory(Wanted()).columns(0, 0)
        return Chunk(path, where, batches, counts, self._source.content, none, 0)

    def decode_in_one_pass(self, batches: Batches, *, check_crcs: bool) -> Chunk | None:
        """Check and decode the first of these batches in one pass: all, unless one is unusual.

        None if the first one is; `decode` reads it, or has its error.
        """
        if not len(batches) or self._memory.may_hold is not None:
            return None
        if isinstance(batches, SingleMessages):
            return self._read_singles(batches, check_crcs)
        codec = batches.codec
        if not (
            (batches.field("magic") == MAGIC_V2).all()
            and batches.is_whole.all()
            and (codec == codec[0]).all()
        ):
            return None
        crcs = np.ascontiguousarray(batches.field("crc")) if check_crcs else UNCHECKED
        starts = batches.position + RECORD_BATCH_OVERHEAD
        if codec[0] != 0:
            return self._read_compressed(batches, starts, crcs)
        first, last = int(batches.position[0]), int(batches.end[-1])
        content = self._source.content[first : last + _SLACK]
        extents = extents_of(batches, starts - first, batches.end - first)
        read = read_checked(content, extents, crcs, self._memory)
        return self._chunk(batches, content, read)

    def _read_compressed(
        self, batches: Batches, starts: Int64s, crcs: npt.NDArray[np.uint32]
    ) -> Chunk | None:
        scratch, ends = self._scratch, batches.end
        scratch.reset(recycle=self._recycle)
        expected = int((ends - starts).sum() * self._ratio)
        room = Room(
            scratch.buffer,
            scratch.content,
            limit=scratch.limit,
            enough=CHUNK_BYTES,
            expected=min(expected, CHUNK_BYTES) + _OVER_ENOUGH,
        )
        compressed = compressed_batches(batches, starts, ends, crcs)
        extents = extents_of(batches, starts, ends)
        read = read_compressed(self._source.content, compressed, extents, self._memory, room)
        if read is None or read.batches == 0:
            return None
        self._ratio = 1.1 * read.size / max(int((ends - starts)[: read.batches].sum()), 1)
        return self._chunk(batches, scratch.content, read)

    def _chunk(self, batches: Batches, content: Bytes, read: OnePass) -> Chunk | None:
        if read.batches == 0:
            return None
        batches = batches[: read.batches]
        counts = batches.field("recordsCount").astype(np.int64)
        path, where = self._source.path, self._log_path
        return Chunk(path, where, batches, counts, content, read.columns, read.records)

    def _read_singles(self, messages: SingleMessages, check_crcs: bool) -> Chunk | None:
        first, last = int(messages.position[0]), int(messages.end[-1])
        content = self._source.content[first : last + _SLACK]
        columns, count = read_single_messages(
            content, messages.position - first, messages.end - first, self._memory, check_crcs
        )
        if count == 0:
            return None
        path, log_path = self._source.path, self._log_path
        counts = np.ones(count, dtype=np.int64)
        return Chunk(path, log_path, messages[:count], counts, content, columns, count)

    def decode(self, batches: Batches, *, keep_bad: bool = False, lazy: bool = False) -> Chunk:
        """Decode the first of these batches as a chunk: all, unless they grow large or one is bad.

        Messages of v0 and v1 and batches of v2 are never in one chunk.

        A chunk ends before a bad batch and has its error. With `keep_bad` it ends with that batch
        and the records before the damage, as Kafka's iterator hands them out. A compressed batch
        then has no records, unless it is a set of messages, which Kafka has read by then.
        With `lazy` the sizes in messages are not checked (`read_message_sets`).
        """
        batches = of_one_kind(batches)
        is_messages = bool(batches.is_message[:1].any())
        read = self._read_messages(batches, lazy) if is_messages else self._read_batches(batches)
        return self._as_chunk(read, keep_bad)

    def parts(
        self,
        batches: Batches,
        in_slices: bool = True,
        *,
        keep_bad: bool = False,
        lazy: bool = False,
    ) -> Iterator[Chunk]:
        """As `decode`, but `in_slices` a compressed batch of more than a chunk becomes several.

        All of these but the last have `is_part`.
        """
        batches = of_one_kind(batches)
        if not in_slices or batches.is_message[:1].any() or not (batches.codec != 0).any():
            yield self.decode(batches, keep_bad=keep_bad, lazy=lazy)
            return
        whole, error = self._whole(batches)
        plain = self._plain(whole, whole.position + RECORD_BATCH_OVERHEAD, whole.end)
        extents = extents_of(whole[: plain.ends.size], plain.starts, plain.ends)
        is_large = (plain.ends - plain.starts > SLICE_BYTES) & (whole.codec[: extents.size] != 0)
        if not is_large.any():
            reading = read_default_records(plain.content, extents, self._memory)
            error = plain.error_before(error, len(whole))
            yield self._as_chunk(Read(batches, plain.content, reading, error), keep_bad)
            return
        # It is the last of a chunk.
        if large := int(np.argmax(is_large)):
            reading = read_default_records(plain.content, extents[:large], self._memory)
            chunk = self._as_chunk(Read(batches[:large], plain.content, reading, None), keep_bad)
            yield chunk
            if chunk.error is not None:
                return
        batch = batches[large : large + 1]
        yield from self._slices(batch, plain.content, extents[large:], keep_bad)

    def _slices(
        self, batch: Batches, content: Bytes, extent: npt.NDArray[np.void], keep_bad: bool
    ) -> Iterator[Chunk]:
        try:
            slices = check_slices(content, extent, bool(batch.is_control[0]), self._memory)
        except DecompressionLimitError as error:
            found = located(error, self._source.path, batch, 0)
            yield replace(self.headers(batch[:0]), error=found)
            return
        for reading, is_part in read_slices(content, extent, slices, self._memory):
            chunk = self._as_chunk(Read(batch, content, reading, None), keep_bad)
            yield replace(chunk, is_part=is_part)

    def _as_chunk(self, read: Read, keep_bad: bool = False) -> Chunk:
        batches, content, reading, error = read
        counts = reading.counts
        kept = counts.size
        if reading.status:
            kept = reading.batch
            error = error_for(reading.status, reading.a, reading.b, record=int(counts[kept]))
            error = located(error, self._source.path, batches, kept)
        if keep_bad and error is not None:
            counts = np.append(counts, 0)[: kept + 1]
            if batches.codec[kept] != 0 and not batches.is_message[kept]:
                counts[kept] = 0
            kept += 1
        counts = counts[:kept]
        path, where, rows = self._source.path, self._log_path, int(counts.sum())
        return Chunk(path, where, batches[:kept], counts, content, reading.columns, rows, error)

    def _read_batches(self, batches: Batches) -> Read:
        """Read batches of v2."""
        whole, error = self._whole(batches)
        plain = self._plain(whole, whole.position + RECORD_BATCH_OVERHEAD, whole.end)
        extents = extents_of(whole[: plain.ends.size], plain.starts, plain.ends)
        reading = read_default_records(plain.content, extents, self._memory)
        return Read(batches, plain.content, reading, plain.error_before(error, len(whole)))

    def _whole(self, batches: Batches) -> tuple[Batches, KafkaJitError | None]:
        """The batches up to the first one without room for a header, and its error."""
        if batches.is_whole.all():
            return batches, None
        bad = int(np.argmin(batches.is_whole))
        error = self._error(CorruptRecordError, too_small(batches, bad), batches, bad)
        return batches[:bad], error

    def _read_messages(self, batches: Batches, lazy: bool) -> Read:
        """Read messages and compressed sets of v0 and v1."""
        starts, ends = batches.position, batches.end
        is_set = batches.is_message_set
        error = None
        if is_set.any():
            starts, ends = starts.copy(), ends.copy()
            starts[is_set], ends[is_set] = value_extents(
                self._source.content, starts[is_set], ends[is_set], batches.field("magic")[is_set]
            )
        if (starts < 0).any():
            bad = int(np.argmax(starts < 0))
            if starts[bad] == IS_NULL:
                error = error_for(NULL_MESSAGE_SET, int(batches.field("magic")[bad]))
            else:
                error = error_for(INVALID_MESSAGE, int(batches.size_in_bytes[bad]))
            error = located(error, self._source.path, batches, bad)
            starts, ends = starts[:bad], ends[:bad]
        plain = self._plain(batches[: starts.size], starts, ends)
        reading, first_read = read_message_sets(
            plain.content,
            batches[: plain.ends.size],
            plain.starts,
            plain.ends,
            self._memory,
            lazy=lazy,
        )
        has_records = np.flatnonzero(reading.counts)
        first_offset = batches.field("baseOffset").astype(np.int64)
        first_offset[has_records] = first_read[has_records]
        batches = Batches(batches.position, batches.header, first_offset)
        return Read(batches, plain.content, reading, plain.error_before(error, starts.size))

    def _plain(self, batches: Batches, starts: Int64s, ends: Int64s) -> Plain:
        """Find the plain records of batches: in the source if none is compressed, else in scratch.

        `starts` and `ends` are their positions in the source, compressed or not.
        """
        if (batches.codec != 0).any():
            return self._decompress(batches, starts, ends)
        first = int(batches.position[0]) if len(batches) else 0
        last = int(batches.end[-1]) if len(batches) else 0
        content = self._source.content[first : last + _SLACK]
        return Plain(content, starts - first, ends - first, None)

    def _decompress(
        self, batches: Batches, compressed_starts: Int64s, compressed_ends: Int64s
    ) -> Plain:
        """Decompress, one after the other, the records of as many batches as make a chunk."""
        scratch = self._scratch
        scratch.reset(recycle=self._recycle)
        extents = np.zeros((len(batches), 2), dtype=np.int64)
        run = partial(
            decompress_run,
            self._source.content,
            compressed_batches(batches, compressed_starts, compressed_ends),
            extents=extents,
            limit=scratch.limit,
            enough=CHUNK_BYTES,
        )
        row, error = 0, None
        while row < len(batches) and scratch.written <= CHUNK_BYTES:
            extents[row, 0] = scratch.written
            after = run(out=scratch.buffer, row=row)
            if after > row:
                row = after
                scratch.written = int(extents[row - 1, 1])
                continue
            compressed = self._source.content.data[compressed_starts[row] : compressed_ends[row]]
            error = self._decompress_one(batches, row, compressed)
            if error is not None:
                break
            extents[row, 1] = scratch.written
            row += 1
        return Plain(scratch.content, extents[:row, 0].copy(), extents[:row, 1].copy(), error)

    def _decompress_one(
        self, batches: Batches, row: int, compressed: memoryview
    ) -> KafkaJitError | None:
        """Append a batch's records to scratch; return the error if that fails."""
        scratch = self._scratch
        codec, magic = int(batches.codec[row]), int(batches.field("magic")[row])
        refused = unreadable(codec, magic)
        if refused is not None:
            return self._error(UnsupportedCompressionTypeError, refused, batches, row)
        try:
            if codec == 0:
                scratch.append(np.frombuffer(compressed, dtype=np.uint8))
            elif batches.field("recordsCount")[row] != 0:  # an empty batch is not read, as in Kafka
                if codec == LZ4 and magic == MAGIC_V0:
                    compressed = with_right_lz4_checksum(compressed)
                scratch.decompress(codec, compressed)
        except OutputFull:
            return self._error(
                DecompressionLimitError,
                f"Record batch ({COMPRESSION_TYPES[codec]}, {len(compressed)} bytes) "
                f"holds more than max_decompressed_bytes = {scratch.limit}",
                batches,
                row,
            )
        except DecodeError as reason:
            return self._error(
                CorruptRecordError, f"Failed to decompress record stream ({reason})", batches, row
            )
        return None

    def _error(
        self, exception: type[KafkaJitError], message: str, batches: Batches, row: int
    ) -> KafkaJitError:
        return located(exception(message), self._source.path, batches, row)
