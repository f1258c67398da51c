"""Rows of a task → segments of each partition, in a folder of the task's own.

    record batches ─▶ a window of them ─▶ by partition ─▶ batches ─▶ segments with their indexes

Offsets begin at 0 in each partition, unless rows bring their own: what they are in the log is known
when all tasks are done (`commit`). Memory holds one window, whatever the number of partitions, and
only so many files are open.
"""

from __future__ import annotations

import shutil
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from kafkajit.append.rolled_segments import SegmentSeries
from kafkajit.change.files import say_where
from kafkajit.encode.batch_options import BATCH_NAMES
from kafkajit.encode.record_writer import BatchWriter
from kafkajit.encode.rows import numbers_of
from kafkajit.encode.writer import Encoder
from kafkajit.errors import InvalidOffsetError, KafkaJitError, RecordTooLargeError
from kafkajit.produce.options import ProduceOptions
from kafkajit.produce.router import Router, TopicPartition
from kafkajit.records.batches import Batches, frame
from kafkajit.schema import RECORD_COLUMNS
from kafkajit.storage.source import Int64s, as_bytes

# Rows are put in order by partition so many bytes at a time. A batch ends with them: the more
# partitions a task has rows of, the smaller are its batches.
_WINDOW_BYTES = 32 << 20
_MOST_OPEN = 256

# What is written of a record whose offset is new.
_NEW = ("key", "value", "headers", "timestamp")
_KEPT = tuple(name for name in RECORD_COLUMNS if name not in ("topic", "partition"))
SORT = (
    "df.repartition('topic', 'partition').sortWithinPartitions('topic', 'partition', 'offset') "
    "puts them so"
)


class Staged(NamedTuple):
    """A segment that a task has written: its files are FOLDER/BASE_OFFSET.log and so on."""

    partition: TopicPartition
    folder: str  # its path
    base_offset: int
    next_offset: int
    size: int
    has_producers: bool
    leader_epoch: int | None  # of all its batches; None where each has its own

    def path(self, suffix: str) -> Path:
        """Of one of its files."""
        return Path(self.folder) / f"{self.base_offset:020}{suffix}"


class TaskWriter:
    """Writes a task's rows; what it has written goes where the block is left by an error.

    Args:
        folder: of the task's own, which is made; nobody else may have written there.
        options: of the job.
        timestamp: milliseconds, of rows without.
        task: its number: rows without a key go to another partition first in each.
    """

    def __init__(
        self, folder: Path, options: ProduceOptions, *, timestamp: int = 0, task: int = 0
    ) -> None:
        self._folder = folder
        self._options = options
        self._router = Router(options, task)
        self._batches = options.of_batches(timestamp)
        self._writer = BatchWriter(self._batches.compression_level)
        self._leader_epoch: int | None = options.leader_epoch or 0
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        # By the router's places.
        self._series: list[SegmentSeries] = []
        self._encoders: list[Encoder] = []
        self._open: OrderedDict[int, SegmentSeries] = OrderedDict()
        self._held: dict[int, pa.RecordBatch] = {}  # rows of a batch that may go on
        folder.mkdir()

    def write(self, records: pa.RecordBatch) -> None:
        """Take rows, whose columns are those of a record."""
        if self._waiting_bytes + records.nbytes > _WINDOW_BYTES:
            self._flush()
        if records.num_rows:
            self._waiting.append(records)
            self._waiting_bytes += records.nbytes

    def close(self) -> list[Staged]:
        """What was written, when no more rows come."""
        self._flush()
        for place, held in self._held.items():
            self._encode(place, [held])
        return [
            Staged(partition, str(self._place_of(partition)), *written, self._leader_epoch)
            for partition, series in zip(self._router.partitions, self._series, strict=True)
            for written in series.close()
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            say_where(error, self._folder)
            for series in self._series:
                series.abandon()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _flush(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return
        places = np.concatenate([self._router.route(records) for records in waiting])
        self._make_series()
        records = [self._columns(part) for part in waiting]
        if (places == places[0]).all():
            self._take(int(places[0]), records)
            return
        window = pa.concat_batches(records)
        if (np.diff(places) < 0).any():
            # Few distinct numbers of 16 bits are sorted in one pass.
            keys = places.astype(np.uint16) if places.max() < 1 << 16 else places
            order = np.argsort(keys, kind="stable")
            window, places = window.take(pa.array(order)), places[order]
        cuts = np.flatnonzero(np.diff(places)) + 1
        for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), places.size], strict=True):
            self._take(int(places[start]), [window.slice(start, end - start)])

    def _columns(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Those that are written."""
        names = records.schema.names
        if not self._options.keep_offsets:
            if "controlType" in names and records.column("controlType").null_count < len(records):
                raise ValueError(
                    "rows with a controlType are no data, but markers of a log's transactions: "
                    "leave them out (.where('controlType IS NULL')), or read with isolationLevel "
                    "read_committed, which leaves out aborted data too"
                )
            return records.select([name for name in _NEW if name in names])
        if records.column("offset").null_count:
            raise ValueError("with keepOffsets every row has an offset, and some are null")
        if "partitionLeaderEpoch" in names and self._options.leader_epoch is None:
            self._leader_epoch = None
        return records.select([name for name in _KEPT if name in names])

    def _take(self, place: int, records: list[pa.RecordBatch]) -> None:
        """Encode a partition's rows, but those at the end whose batch may go on."""
        if self._options.keep_offsets:
            whole = pa.concat_batches([*self._held_of(place), *records])
            keeps = self._batches.keeps_batches(whole.schema.names)
            begin = _last_batch(whole) if keeps else len(whole)
            if begin < len(whole):
                # A slice would hold the whole window.
                self._held[place] = whole.slice(begin).take(pa.array(range(len(whole) - begin)))
            records = [whole.slice(0, begin)]
        self._encode(place, records)

    def _held_of(self, place: int) -> Iterable[pa.RecordBatch]:
        held = self._held.pop(place, None)
        return [] if held is None else [held]

    def _encode(self, place: int, records: list[pa.RecordBatch]) -> None:
        series = self._opened(place)
        if self._options.keep_offsets and len(records[0]):
            offsets = numbers_of(records[0].column("offset"), "offset")
            self._check_growing(place, offsets, series.next_offset)
            series.next_offset = int(offsets[0])
        for buffer in self._encoded(place, records):
            content = as_bytes(buffer)
            batches = frame(content).batches
            self._check_size(batches)
            series.append(content, batches)

    def _encoded(self, place: int, records: list[pa.RecordBatch]) -> Iterator[pa.Buffer]:
        try:
            yield from self._encoders[place].encode(records)
        except KafkaJitError as error:
            if error.row is not None:  # of a window, which nobody knows
                error.row = None
                error.message = f"a row for {self._router.partitions[place]}: {error.message}"
            raise

    def _check_growing(self, place: int, offsets: Int64s, least: int) -> None:
        """Raise where the offsets of rows do not grow from there."""
        if offsets[0] < least or (np.diff(offsets) <= 0).any():
            raise InvalidOffsetError(
                f"the rows of {self._router.partitions[place]} do not come in the order of their "
                f"offsets, once each, as keepOffsets needs them: {SORT}"
            )

    def _check_size(self, batches: Batches) -> None:
        config = self._options.config
        size = int(batches.size_in_bytes.max())
        for name in ("max_message_bytes", "segment_bytes"):
            limit = getattr(config, name)
            if size > limit:
                option = name.replace("_", ".")
                raise RecordTooLargeError(
                    f"a batch of {size} bytes is larger than {option}, {limit}: a topic that is to "
                    f"take it needs a larger one, which the option {option} says here"
                )

    def _make_series(self) -> None:
        """For partitions that rows have come for."""
        for partition in self._router.partitions[len(self._series) :]:
            folder = self._place_of(partition)
            folder.mkdir()
            self._series.append(SegmentSeries(folder.joinpath, self._options.config))
            self._encoders.append(Encoder(self._batches, self._writer))

    def _opened(self, place: int) -> SegmentSeries:
        """A partition's segments; of too many open files the one that waited longest is closed."""
        series = self._open[place] = self._series[place]
        self._open.move_to_end(place)
        if len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)[1].suspend()
        return series

    def _place_of(self, partition: TopicPartition) -> Path:
        return self._folder / str(partition)


def _last_batch(records: pa.RecordBatch) -> int:
    """The row that the last batch begins with, which rows name."""
    begins = np.zeros(len(records), dtype=np.bool_)
    for name in BATCH_NAMES:
        if name in records.schema.names:
            column = numbers_of(records.column(name), name)
            begins[1:] |= column[1:] != column[:-1]
    return int(np.flatnonzero(begins)[-1]) if begins.any() else 0
