"""What an append changes of a log besides its segments.

Answers to what UnifiedLog does when it rolls and when it is closed: a snapshot of producers where a
segment begins and at the end, leader epochs, and of the segment that was the last what a broker
would have closed.
"""

from __future__ import annotations

from pathlib import Path

from kafkajit.change.change import Change
from kafkajit.format.log_path import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kafkajit.log.log_end import LogEnd
from kafkajit.state.leader_epochs import LEADER_EPOCHS


class LogGrowth:
    """Goes along with segments that come behind a log's end.

    `producers` and `epochs` are to be told of their batches.
    """

    def __init__(self, folder: Path, end: LogEnd, change: Change) -> None:
        self.producers = end.producers
        self.epochs = end.epochs
        self._folder = folder
        self._end = end
        self._change = change
        self._snapshot = end.snapshot

    def new(self, name: str) -> Path:
        """Where to write a file of the log."""
        return self._change.new(self._folder / name)

    def take_snapshot(self, offset: int) -> None:
        """Write the producers as they are now, unless there is a snapshot of this offset."""
        if offset > self._snapshot:
            self.new(f"{offset:020}.snapshot").write_bytes(self.producers.snapshot())
            self._snapshot = offset

    def finish(self, base_offset: int, end_offset: int) -> None:
        """Stage all that is not yet there.

        Args:
            base_offset: of the first new segment
            end_offset: the log's
        """
        self.take_snapshot(end_offset)
        end = self._end
        if self.epochs.is_changed:
            self.new(LEADER_EPOCHS).write_bytes(self.epochs.text())
        elif not (self._folder / LEADER_EPOCHS).exists():
            self.new(LEADER_EPOCHS).write_bytes(b"")  # a broker's is empty until it knows of one
        if end.active is not None and not end.active.stat().st_size:
            if int(end.active.stem) != base_offset:  # else another takes its place
                self._change.remove(end.active)
        elif end.active is not None and end.indexes is not None:
            end.indexes.close()
            self.new(f"{end.active.stem}{INDEX_SUFFIX}").write_bytes(end.indexes.offset_index)
            self.new(f"{end.active.stem}{TIME_INDEX_SUFFIX}").write_bytes(end.indexes.time_index)
        for stray in end.strays:
            self._change.remove(stray)
