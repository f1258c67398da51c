"""Reads many small segments as if they were one segment.

Opening a reader, decoding columns and converting them to Arrow costs some 2 ms for each segment,
whatever its size, and Spark takes about as long again for each record batch. Therefore one reader
reads the bytes of several small segments, one behind the other, and the columns that name the
segment are filled in afterwards. If a batch is damaged, its segment is read by itself from there
on, so that the error names it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import KafkaJitError
from kafkajit.format.kafscale import HEAD
from kafkajit.format.kafscale import SUFFIX as KAFSCALE_SUFFIX
from kafkajit.format.limits import MIN_INT64
from kafkajit.format.log_path import parse_log_path
from kafkajit.reader import SegmentReader
from kafkajit.records.batches import Batches, frame
from kafkajit.records.chunk import Chunk
from kafkajit.records.columns import MayHold
from kafkajit.records.decode import CHUNK_BYTES
from kafkajit.records.offset_order import has_messages, offsets_of
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.plan import Split
from kafkajit.storage.source import Source, as_bytes
from kafkajit.walk.kafscale import unwrapped

# Reading a segment of this size takes as long as opening it. Larger segments are mapped.
SMALL = 1 << 20

# The segment that a record comes from: most are those of many others, too.
PATH = pa.field("path", pa.dictionary(pa.int32(), pa.string()))


def small_segments(splits: Sequence[Split]) -> Sequence[Split]:
    """The leading splits that can be read together: small, whole segments of one chunk's size."""
    room = CHUNK_BYTES
    for count, split in enumerate(splits):
        room -= split.size
        is_whole = split.start == 0 and split.end == split.file.size
        if room < 0 or split.size > SMALL or not is_whole or not split.selection.is_everything:
            return splits[:count]
    return splits


def read_together(
    splits: Sequence[Split],
    schema: pa.Schema,
    options: ScanOptions,
    may_hold: MayHold | None = None,
) -> Generator[pa.RecordBatch, None, list[Split]]:
    """Yield the rows of small segments, up to the first damaged one.

    Records may have a column PATH, and `may_hold` is as for SegmentReader.

    Returns the splits that are left to read: the damaged segment from its first bad batch on, and
    the segments behind it.
    """
    try:
        contents = [split.file.read() for split in splits]
    except (OSError, KafkaJitError):
        contents = []
    if [len(content) for content in contents] != [split.size for split in splits]:
        return list(splits)  # a file has changed since it was listed, or cannot be read
    heads = np.zeros(len(splits), dtype=np.int64)
    for at, split in enumerate(splits):
        if split.file.name.endswith(KAFSCALE_SUFFIX):
            wrapped = Source(contents[at], path=split.file.path)
            batches = unwrapped(wrapped, checks_crc=options.check_crcs)
            if batches is None:
                break  # the reader stops there, because no batch begins with its head
            contents[at], heads[at] = batches.tobytes(), HEAD.size
    starts = np.array([0, *accumulate(map(len, contents))], dtype=np.int64)
    content = as_bytes(b"".join(contents))
    good = _count_of_whole(content, starts, splits)
    reader = _SmallSegmentsReader(splits, content, starts[: good + 1], heads)
    try:
        if options.kind == "batches":
            yield from reader.batches(schema)
        else:
            yield from reader.records(
                schema,
                check_crcs=options.check_crcs,
                max_decompressed_bytes=options.max_decompressed_bytes,
                may_hold=may_hold,
            )
    except KafkaJitError:
        pass  # the caller reads on from there, and reports or skips the damage
    at = int(np.searchsorted(starts, reader.position, side="right")) - 1
    left = list(splits[at:])
    if left:
        start = reader.position - int(starts[at])
        left[0] = left[0]._replace(start=start and start + int(heads[at]))
    return left


def _count_of_whole(
    content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], splits: Sequence[Split]
) -> int:
    """The number of leading segments that are batches from end to end, with growing offsets.

    A segment that begins before the offset in its name is not one of them.
    """
    bases = [parse_log_path(split.file.path).base_offset for split in splits]
    firsts_of = zip((split.between.first for split in splits), bases, strict=True)
    minimum = np.array([first if base is None else max(first, base) for first, base in firsts_of])
    maximum = np.array([split.between.last for split in splits])
    ends, last = [0], -1
    while True:
        framing = frame(content, ends[-1])
        batches = framing.batches
        if not len(batches):
            break
        if not has_messages(batches):
            firsts, lasts = offsets_of(batches)
            before = np.concatenate(([last], lasts[:-1]))
            segment = np.searchsorted(starts, batches.position, side="right") - 1
            is_first = starts[segment] == batches.position
            before[is_first] = np.maximum(minimum[segment[is_first]], MIN_INT64 + 1) - 1
            is_over = (firsts > maximum[segment]) | (lasts > maximum[segment])
            wrong = np.flatnonzero((firsts <= before) | is_over)
            if wrong.size:
                ends.extend(batches.end[: wrong[0]].tolist())
                break
            last = int(lasts[-1])
        ends.extend(batches.end.tolist())
    is_end = np.isin(starts, ends)
    return int(np.argmin(is_end)) - 1 if not is_end.all() else starts.size - 1


class _SmallSegmentsReader(SegmentReader):
    """A reader of several segments' bytes that knows which segment each row comes from."""

    def __init__(
        self,
        splits: Sequence[Split],
        content: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        heads: npt.NDArray[np.int64],
    ) -> None:
        super().__init__(Source(content), end=int(starts[-1]))
        paths = [split.file.path for split in splits]
        places = [parse_log_path(path) for path in paths]
        self._starts = starts
        self._heads = heads  # bytes in front of the batches
        self._places: dict[str, list[Any]] = {
            "topic": [place.topic for place in places],
            "partition": [place.partition for place in places],
            "path": paths,
        }

    def _record_rows(self, chunk: Chunk, schema: pa.Schema) -> pa.RecordBatch:
        segment = np.repeat(self._segment_of(chunk.batches), chunk.counts)
        if PATH not in schema:
            return self._placed(super()._record_rows(chunk, schema), segment)
        plain = schema.remove(schema.names.index(PATH.name))
        rows = self._placed(super()._record_rows(chunk, plain), segment)
        paths = pa.DictionaryArray.from_arrays(
            segment.astype(np.int32), pa.array(self._places["path"])
        )
        return pa.RecordBatch.from_arrays([*rows.columns, paths], schema=plain.append(PATH))

    def _batch_rows(self, batches: Batches, schema: pa.Schema) -> pa.RecordBatch:
        return self._placed(super()._batch_rows(batches, schema), self._segment_of(batches))

    def _segment_of(self, batches: Batches) -> npt.NDArray[np.int64]:
        return np.searchsorted(self._starts, batches.position, side="right") - 1

    def _placed(self, rows: pa.RecordBatch, segment: npt.NDArray[np.int64]) -> pa.RecordBatch:
        """Set each row's topic, partition and path, and its position in its segment."""
        columns = rows.columns
        for at, field in enumerate(rows.schema):
            if field.name in self._places:
                known = pa.array(self._places[field.name], field.type)
                columns[at] = known.take(pa.array(segment))
            elif field.name == "position":
                position = columns[at].to_numpy() - self._starts[segment] + self._heads[segment]
                columns[at] = pa.array(position).cast(field.type)
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
