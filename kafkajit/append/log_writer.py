"""Batches → new segments at the end of a partition's log, as a broker writes them after a roll.

Answers to UnifiedLog.appendAsFollower, roll and close of Kafka 4.1.1. The files are the same, byte
for byte, as those of a broker that appends one batch at a time, as leaders and coordinators do.

    batches ─▶ validate ─▶ new_segment (.log, indexes) ─────────┐
               log_end ──▶ append_effects (producers, epochs) ──┴─▶ change ─▶ live names
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import numpy as np

from kafkajit.append.append_effects import AppendEffects
from kafkajit.append.new_segment import NewSegment
from kafkajit.append.validate import check_appendable
from kafkajit.change.change import Change
from kafkajit.change.files import local_folder, say_where
from kafkajit.change.lock import FolderLock
from kafkajit.errors import CorruptRecordError, InvalidOffsetError
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.log_path import partition_of
from kafkajit.log.config import LogConfig
from kafkajit.log.epochs import stamp_epochs
from kafkajit.log.log_end import read_log_end
from kafkajit.log.producers import ProducerStates, are_markers, markers_of
from kafkajit.records.batches import Batches, Framing
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.storage.source import Bytes, Source
from kafkajit.system import disk
from kafkajit.system.acting import reading_for
from kafkajit.walk.frames import frames


class LogWriter:
    """Appends batches to the log in a partition's folder, such as orders-0, which may be new.

    The writer appends to new segments, the first of which begins at the log end offset. It keeps
    them apart from the log. `commit` makes all of them part of the log in one step, or none if the
    process fails. So does the end of a `with` block without an error. Until then no live file
    changes, and the writer holds the folder's lock, so no broker can run on it. After the commit
    the log is as a stopped broker leaves it, with indexes, aborted transactions, snapshots of
    producers and leader epochs.

    The files are the same, byte for byte, as those of a broker that appends the same batches one by
    one, with two exceptions. A broker rolls a segment whose first record has no timestamp by its
    clock; here that segment is not rolled by time. A broker forgets producers after some time; here
    they are kept.

    You can also append batches of message formats v0 and v1: Kafka 4 does not write them, but
    loads, recovers and serves them. They have no leader epoch; like a broker, the writer then
    forgets the epochs known before.

    Args:
        folder: the partition's folder. Missing folders are created.
        config: a `LogConfig`, or topic configs by Kafka's names. These apply: when segments are
            rolled (segment.bytes, segment.ms by the timestamps of records, segment.index.bytes),
            which entries indexes have (index.interval.bytes), and how large a batch may be
            (max.message.bytes).
        start_offset: the offset at which a new log begins. If None, 0.
        force: continue although a broker holds the lock.

    >>> import tempfile
    >>> import kafkajit, pyarrow
    >>> folder = tempfile.mkdtemp() + "/orders-0"
    >>> records = pyarrow.table({"key": ["a", "b", "c"]})
    >>> for _ in range(2):
    ...     with LogWriter(folder) as log:
    ...         log.append(kafkajit.encode_batches(records, base_offset=log.log_end_offset))
    >>> [segment.base_offset for segment in kafkajit.Log(folder).segments]
    [0, 3]
    >>> kafkajit.Log(folder).read(4, max_records=1, columns=["offset", "key"]).to_pylist()
    [{'offset': 4, 'key': b'b'}]
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        config: LogConfig | Mapping[str, Any] | None = None,
        *,
        start_offset: int | None = None,
        force: bool = False,
    ) -> None:
        self.folder = local_folder(folder)
        if partition_of(self.folder).topic is None:
            raise ValueError(
                f"{self.folder} is not a partition's folder, whose name is TOPIC-PARTITION, such "
                "as orders-0"
            )
        self.config = LogConfig.of(config)
        disk.make_folders(self.folder.parent)  # the lock is in there
        self._lock = ExitStack()
        self._lock.enter_context(FolderLock(self.folder, force=force))
        try:
            with reading_for(self.folder):
                self._end = read_log_end(self.folder, self.config)
            self._base_offset = self._offset = self._first_offset(start_offset)
            self._change = Change(self.folder, "append")
        except BaseException:
            self._lock.close()
            raise
        self._is_open = True
        self._is_broken = False
        self._segment: NewSegment | None = None
        self._effects = AppendEffects(self.folder, self._end, self._change)
        self._epoch = self._end.latest_epoch

    @property
    def log_end_offset(self) -> int:
        """The least offset that the next batch may have."""
        return self._offset

    def append(self, batches: Any, leader_epoch: int | None = None) -> None:
        """Append batches: bytes, any buffer of them, or the path of a segment.

        Batches are written as they are, except for the leader epoch. Their offsets must be at or
        after the log end offset. All batches are checked before the first is written: if one may
        not be appended, none is, and the error names its position.

        Args:
            batches: whole batches of any format, compressed or not.
            leader_epoch: the epoch to write into all batches. If None, each batch keeps its own; a
                batch without one (-1) gets the log's latest epoch, or 0. A follower refuses batches
                without an epoch, and batches with a later epoch than its leader's. That epoch is 0
                in a topic that is new to a cluster.
        """
        self._check_open()
        latest = -1 if self._epoch is None else self._epoch
        if leader_epoch is not None and not max(latest, 0) <= leader_epoch <= MAX_INT32:
            raise ValueError(
                f"leader_epoch must be {max(latest, 0)}, the log's latest, or later, "
                f"not {leader_epoch}"
            )
        source = Source(batches)
        only = self._check(source)
        if only is None:  # framed in several steps: read it again
            source = Source(batches)
        try:
            for framing in frames(source) if only is None else [only]:
                self._write(source, framing.batches, leader_epoch)
                source.forget(framing.position)
        except BaseException as error:
            self._is_broken = True
            say_where(error, self.folder)
            raise

    def commit(self) -> None:
        """Make the appended batches part of the log, and close the writer."""
        self._check_open()
        try:
            if self._segment is not None:
                self._segment.close()
                self._effects.finish(self._base_offset, self._offset)
            self._change.commit(keep=False)
        except OSError as error:
            say_where(error, self.folder)
            raise
        finally:
            self.abort()

    def abort(self) -> None:
        """Leave the log as it was, and close the writer; does nothing after a commit."""
        if not self._is_open:
            return
        self._is_open = False
        if self._segment is not None:
            self._segment.abandon()
        try:
            self._change.abort()
        finally:
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None and self._is_open:
            self.commit()
        self.abort()

    def _check_open(self) -> None:
        if not self._is_open:
            raise ValueError(f"the writer of {self.folder} is closed")
        if self._is_broken:
            raise ValueError(
                f"an append to {self.folder} failed: abort the writer, and append again with a new "
                "one"
            )

    def _first_offset(self, start_offset: int | None) -> int:
        end = self._end
        if start_offset is None or start_offset == end.end_offset:
            return end.end_offset
        if not end.is_new:
            raise ValueError(
                f"the log in {self.folder} goes on at {end.end_offset}: start_offset is for a new "
                "one"
            )
        if start_offset < end.end_offset:
            raise InvalidOffsetError(
                f"a log cannot begin at {start_offset} before its start offset {end.end_offset}, "
                "which its first segment or log-start-offset-checkpoint gives",
                path=str(self.folder),
            )
        return start_offset

    def _check(self, source: Source) -> Framing | None:
        """Raise if a batch may not be appended; return the framing if there is only one."""
        decoder = Decoder(source, ColumnMemory(Wanted()))
        offset, position, steps = self._offset, 0, 0
        producers: ProducerStates | None = None
        framing = None
        for framing in frames(source):
            batches = framing.batches
            try:
                offset = check_appendable(decoder, batches, offset, self.config, source.path)
            except InvalidOffsetError as error:
                error.advice = f"the log in {self.folder} goes on at offset {self._offset}"
                raise
            if (batches.header["producerId"] >= 0).any():
                producers = self._effects.producers.copy() if producers is None else producers
                producers.update(batches, markers_of(source, batches), source.path)
            position = framing.position
            steps += 1
            source.forget(position)
        if position != source.content.size:
            raise CorruptRecordError(
                "append only as many bytes as kafkajit.valid_bytes returns: "
                f"{source.content.size - position} bytes after the last batch are not a whole one",
                path=source.path,
                position=position,
            )
        return framing if steps == 1 else None

    def _write(self, source: Source, batches: Batches, leader_epoch: int | None) -> None:
        """Write batches that were checked, and roll where a broker would."""
        markers, are_control = markers_of(source, batches), are_markers(batches)
        content = self._stamped(source.content, batches, leader_epoch)
        if self._segment is None:
            self._segment = self._begin()
        first = int(batches.position[0])
        row = marker = 0
        while row < len(batches):
            taken = self._segment.take(batches[row:])
            if taken == 0:
                self._segment = self._roll(self._segment, batches[row:])
                self._segment.take_first(batches[row : row + 1])
                taken = 1
            run = batches[row : row + taken]
            of_run = int(are_control[row : row + taken].sum())
            aborted = self._effects.producers.update(run, markers.between(marker, marker + of_run))
            start, end = int(run.position[0]) - first, int(run.end[-1]) - first
            self._segment.write(content[start:end], aborted)
            self._offset = int(run.last_offset[-1]) + 1
            row, marker = row + taken, marker + of_run

    def _stamped(self, content: Bytes, batches: Batches, leader_epoch: int | None) -> Bytes:
        """The bytes of batches with their leader epochs set; remembers those epochs."""
        stored = batches.header["partitionLeaderEpoch"]
        epochs = stored.copy()
        if leader_epoch is not None:
            epochs[:] = leader_epoch
        elif (epochs < 0).any():
            known = np.maximum.accumulate(np.where(epochs >= 0, np.arange(epochs.size), -1))
            before = 0 if self._epoch is None else self._epoch
            epochs = np.where(known >= 0, epochs[known], before).astype(epochs.dtype)
        self._effects.epochs.append(batches, epochs)
        self._epoch = int(epochs[-1])
        first, end = int(batches.position[0]), int(batches.end[-1])
        part = content[first:end]
        changed = (epochs != stored) & ~batches.is_message
        if changed.any():
            part = part.copy()
            stamp_epochs(part, batches.position[changed] - first, epochs[changed])
        return part

    def _begin(self) -> NewSegment:
        """Create the first new segment."""
        self._effects.take_snapshot(self._offset)
        return NewSegment(self._effects.new, self._offset, self.config)

    def _roll(self, segment: NewSegment, batches: Batches) -> NewSegment:
        """Close the segment, and create the one that begins with the first of these batches."""
        base_offset = int(batches.header["baseOffset"][0])
        if batches.is_message[0]:  # a message set does not give its first offset
            base_offset -= MAX_INT32
        base_offset = max(base_offset, self._offset)
        if segment.is_empty and segment.base_offset == base_offset:
            return segment
        segment.close()
        self._effects.take_snapshot(base_offset)
        return NewSegment(self._effects.new, base_offset, self.config)
