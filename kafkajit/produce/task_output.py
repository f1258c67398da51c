"""Rows of a task → staged segments of each partition, in the task's own folder.

    record batches ─▶ windows ─▶ rows by partition ─▶ batches ─▶ segments with their indexes

Offsets begin at 0 in each partition, unless rows have their own: the offsets in the log are known
when all tasks are done (`commit`). Memory holds one window, whatever the number of partitions, and
the number of open files is limited.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.append.rolled_segments import RolledSegments
from kafkajit.change.files import say_where
from kafkajit.encode.encode_options import BATCH_NAMES
from kafkajit.encode.record_writer import BatchWriter
from kafkajit.encode.rows import numbers_of
from kafkajit.encode.writer import Encoder
from kafkajit.errors import InvalidOffsetError, KafkaJitError, RecordTooLargeError
from kafkajit.format.limits import MAX_INT64
from kafkajit.produce.open_transactions import without_producers
from kafkajit.produce.options import ProduceOptions
from kafkajit.produce.router import Router, TopicPartition
from kafkajit.produce.unmarked import PLAIN
from kafkajit.records.batches import Batches, frame
from kafkajit.schema import RECORD_COLUMNS
from kafkajit.storage.source import Int64s, as_bytes
from kafkajit.system import disk

# Bytes of a window, whose rows are sorted by partition. A batch ends with its window: the more
# partitions a task has rows for, the smaller its batches are.
_WINDOW_BYTES = 32 << 20
_MOST_OPEN = 256  # segments

# The columns that are written: of records with new offsets, and of those that keep theirs.
_NEW = ("key", "value", "headers", "timestamp")
_KEPT = tuple(name for name in RECORD_COLUMNS if name not in ("topic", "partition"))
SORT = (
    "sort the rows by topic, partition and offset, in Spark with "
    "df.repartition('topic', 'partition').sortWithinPartitions('topic', 'partition', 'offset')"
)


def check_growing(partition: TopicPartition, offsets: Int64s, least: int) -> None:
    """Raise unless the offsets of a partition's rows increase from `least` on, below 2^63 - 1."""
    if offsets[0] < least or (np.diff(offsets) <= 0).any():
        raise InvalidOffsetError(
            "rows that keep their offsets must be in the order of these, each offset once, and "
            f"those of {partition} are not: {SORT}"
        )
    if offsets[-1] == MAX_INT64:
        raise InvalidOffsetError(
            f"a row for {partition} has the offset {MAX_INT64}, behind which no log can go on: the "
            f"last offset that a record can have is {MAX_INT64 - 1}"
        )


class StagedSegment(NamedTuple):
    """A segment that a task has written; its files are FOLDER/BASE_OFFSET.log and so on."""

    partition: TopicPartition
    folder: str  # its path
    base_offset: int
    next_offset: int
    size: int
    has_producers: bool
    leader_epoch: int | None  # of all its batches; None if each has its own

    def path(self, suffix: str) -> Path:
        """The path of the file with this suffix."""
        return Path(self.folder) / f"{self.base_offset:020}{suffix}"


class TaskOutput:
    """Writes a task's rows; leaving the `with` block by an error removes what was written.

    Args:
        folder: the task's own folder, which must not exist yet.
        options: the job's options.
        timestamp: milliseconds since 1970, for rows without a timestamp.
        task: the task's number: its first row without a key goes to that partition.
    """

    def __init__(
        self, folder: Path, options: ProduceOptions, *, timestamp: int = 0, task: int = 0
    ) -> None:
        self._folder = folder
        self._options = options
        self._router = Router(options, task)
        self._batches = options.encode_options(timestamp)
        self._writer = BatchWriter(self._batches.compression_level)
        self._leader_epoch: int | None = options.leader_epoch or 0
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        # By the router's index of a partition.
        self._series: list[RolledSegments] = []
        self._encoders: list[Encoder] = []
        self._open: OrderedDict[int, RolledSegments] = OrderedDict()
        self._held: dict[int, pa.RecordBatch] = {}  # rows of a batch that may continue
        disk.make_folder(folder)

    def write(self, records: pa.RecordBatch) -> None:
        """Take rows, whose columns are those of records."""
        if self._waiting_bytes + records.nbytes > _WINDOW_BYTES:
            self._flush()
        if records.num_rows:
            self._waiting.append(records)
            self._waiting_bytes += records.nbytes

    def close(self) -> list[StagedSegment]:
        """Write the remaining rows, and return all segments."""
        self._flush()
        for index, held in self._held.items():
            self._encode(index, [held])
        return [
            StagedSegment(partition, str(self._folder_of(partition)), *written, self._leader_epoch)
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
            disk.remove_tree(self._folder, ignore_errors=True)

    def _flush(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return
        indices = np.concatenate([self._router.route(records) for records in waiting])
        self._make_series()
        records = [self._columns(part) for part in waiting]
        if (indices == indices[0]).all():
            self._take(int(indices[0]), records)
            return
        window = pa.concat_batches(records)
        if (np.diff(indices) < 0).any():
            # Few distinct numbers of 16 bits are sorted in one pass.
            keys = indices.astype(np.uint16) if indices.max() < 1 << 16 else indices
            order = np.argsort(keys, kind="stable")
            window, indices = window.take(pa.array(order)), indices[order]
        cuts = np.flatnonzero(np.diff(indices)) + 1
        for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), indices.size], strict=True):
            self._take(int(indices[start]), [window.slice(start, end - start)])

    def _columns(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that are written."""
        names = records.schema.names
        if not self._options.keep_offsets:
            if "controlType" in names and records.column("controlType").null_count < len(records):
                raise ValueError(
                    "rows with a controlType are not data, but control records: "
                    "leave them out (.where('controlType IS NULL')), or read with isolationLevel "
                    "read_committed, which also leaves out aborted data"
                )
            return records.select([name for name in _NEW if name in names])
        if records.column("offset").null_count:
            raise ValueError("with keepOffsets every row needs an offset, and some are null")
        for name, is_lost in without_producers(dict(zip(names, records.columns, strict=True))):
            becomes_plain = self._options.transactions == PLAIN and name == "isTransactional"
            if not becomes_plain and pc.any(is_lost).as_py():
                row = pc.index(is_lost, True).as_py()
                raise ValueError(
                    f"the row of offset {records['offset'][row]} has {name} and no producerId, so "
                    "that others' markers would end its transaction: keep producerId and "
                    "producerEpoch, or drop isTransactional and the rows with a controlType"
                )
        if "partitionLeaderEpoch" in names and self._options.leader_epoch is None:
            self._leader_epoch = None
        return records.select([name for name in _KEPT if name in names])

    def _take(self, index: int, records: list[pa.RecordBatch]) -> None:
        """Encode a partition's rows, except the last ones if their batch may continue."""
        if self._options.keep_offsets:
            whole = pa.concat_batches([*self._held_of(index), *records])
            keeps = self._batches.keeps_batches(whole.schema.names)
            begin = _last_batch(whole) if keeps else len(whole)
            if begin < len(whole):
                # A copy, because a slice would keep the whole window alive.
                self._held[index] = whole.slice(begin).take(pa.array(range(len(whole) - begin)))
            records = [whole.slice(0, begin)]
        self._encode(index, records)

    def _held_of(self, index: int) -> Iterable[pa.RecordBatch]:
        held = self._held.pop(index, None)
        return [] if held is None else [held]

    def _encode(self, index: int, records: list[pa.RecordBatch]) -> None:
        series = self._opened(index)
        if self._options.keep_offsets and len(records[0]):
            offsets = numbers_of(records[0].column("offset"), "offset")
            check_growing(self._router.partitions[index], offsets, series.next_offset)
            series.least_offset = int(offsets[0])
        for buffer in self._encoded(index, records):
            content = as_bytes(buffer)
            batches = frame(content).batches
            self._check_size(batches)
            series.append(content, batches)

    def _encoded(self, index: int, records: list[pa.RecordBatch]) -> Iterator[pa.Buffer]:
        try:
            yield from self._encoders[index].encode(records)
        except KafkaJitError as error:
            if error.row is not None:  # of these records, which the user does not know
                place = f"a row for {self._router.partitions[index]}"
                if self._options.keep_offsets:
                    place += f", offset {_offset_at(error.row, records)}"
                error.row, error.message = None, f"{place}: {error.message}"
            raise

    def _check_size(self, batches: Batches) -> None:
        config = self._options.config
        size = int(batches.size_in_bytes.max())
        for name in ("max_message_bytes", "segment_bytes"):
            limit = getattr(config, name)
            if size > limit:
                option = name.replace("_", ".")
                raise RecordTooLargeError(
                    f"a batch of {size} bytes is larger than {option}, {limit}: set the option "
                    f"{option}, and the topic's configuration, to a larger number"
                )

    def _make_series(self) -> None:
        """Create a folder, segments and an encoder for each new partition."""
        for partition in self._router.partitions[len(self._series) :]:
            folder = self._folder_of(partition)
            disk.make_folder(folder)
            self._series.append(RolledSegments(folder.joinpath, self._options.config))
            self._encoders.append(Encoder(self._batches, self._writer))

    def _opened(self, index: int) -> RolledSegments:
        """A partition's segments; closes the file that waited longest if too many are open."""
        series = self._open[index] = self._series[index]
        self._open.move_to_end(index)
        if len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)[1].suspend()
        return series

    def _folder_of(self, partition: TopicPartition) -> Path:
        return self._folder / str(partition)


def _last_batch(records: pa.RecordBatch) -> int:
    """The first row of the last batch that the rows name."""
    begins = np.zeros(len(records), dtype=np.bool_)
    for name in BATCH_NAMES:
        if name in records.schema.names:
            column = numbers_of(records.column(name), name)
            begins[1:] |= column[1:] != column[:-1]
    return int(np.flatnonzero(begins)[-1]) if begins.any() else 0


def _offset_at(row: int, records: list[pa.RecordBatch]) -> int | None:
    """The offset of a row that is counted over all of these records."""
    for part in records:
        if row < part.num_rows:
            return part["offset"][row].as_py()  # type: ignore[no-any-return]
        row -= part.num_rows
    return None
