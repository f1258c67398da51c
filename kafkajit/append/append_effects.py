"""The changes that an append makes to a log in addition to its new segments.

Answers to what UnifiedLog does when it rolls and when it is closed. It writes a snapshot of
producers where a segment begins and at the end of the log, and the leader epochs. It closes the
segment that was the last before the append: its indexes are completed, or it is removed if empty.
"""

from __future__ import annotations

from pathlib import Path

from kafkajit.change.change import Change
from kafkajit.format.log_path import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kafkajit.log.log_end import LogEnd
from kafkajit.state.leader_epochs import LEADER_EPOCHS
from kafkajit.system import disk


class AppendEffects:
    """The files beside new segments at a log's end.

    The caller updates `producers` and `epochs` with each batch it appends.

    Args:
        folder: of the partition
        end: the end of the log before the append
        change: collects the new files
    """

    def __init__(self, folder: Path, end: LogEnd, change: Change) -> None:
        self.producers = end.producers
        self.epochs = end.epochs
        self._folder = folder
        self._end = end
        self._change = change
        self._snapshot = end.snapshot

    def new(self, name: str) -> Path:
        """The path to write a new file of the log to."""
        return self._change.new(self._folder / name)

    def take_snapshot(self, offset: int) -> None:
        """Write a snapshot of the producers, unless there is one of this offset."""
        if offset > self._snapshot:
            disk.write(self.new(f"{offset:020}.snapshot"), self.producers.snapshot())
            self._snapshot = offset

    def finish(self, base_offset: int, end_offset: int) -> None:
        """Write the remaining files, after the last batch.

        Args:
            base_offset: the first new segment's
            end_offset: the log's, after the append
        """
        self.take_snapshot(end_offset)
        end = self._end
        if self.epochs.is_changed:
            disk.write(self.new(LEADER_EPOCHS), self.epochs.text())
        elif not (self._folder / LEADER_EPOCHS).exists():
            # A broker writes an empty file until it knows an epoch.
            disk.write(self.new(LEADER_EPOCHS), b"")
        if end.active is not None and not end.active.stat().st_size:
            if int(end.active.stem) != base_offset:  # else the new segment replaces it
                self._change.remove(end.active)
        elif end.active is not None and end.indexes is not None:
            end.indexes.close()
            stem, indexes = end.active.stem, end.indexes
            disk.write(self.new(f"{stem}{INDEX_SUFFIX}"), indexes.offset_index)
            disk.write(self.new(f"{stem}{TIME_INDEX_SUFFIX}"), indexes.time_index)
        for stray in end.strays:
            self._change.remove(stray)
