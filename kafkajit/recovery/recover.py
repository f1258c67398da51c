"""A broker's logs put right without it: what LogLoader would do when it starts, or gently more.

A plan says what is to be done and does it when it is told to. All files of a partition are changed
at once (kafkajit/segment/change.py), and what was there is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kafkajit.disk.change import Change
from kafkajit.disk.lock import FolderLock
from kafkajit.errors import KafkaJitError
from kafkajit.recovery.repairs import Options, Repair, find_repairs
from kafkajit.segment.config import LogConfig
from kafkajit.segment.partitions import interrupted_in, partitions_at, seen_in
from kafkajit.walk import Corruption

_WHAT = "repair"


@dataclass
class PartitionPlan:
    """What is to be done to one partition. Its text is a line for each thing."""

    folder: Path
    repairs: list[Repair]
    gaps: list[Corruption]  # what is lost
    log_start_offset: int
    log_end_offset: int
    segments: int
    bytes: int
    notes: list[str]
    loses: bool  # sound batches or not, behind damage
    interrupted: list[tuple[str, str]]  # what is left of a change that was, and what becomes of it
    _options: Options
    _seen: dict[str, tuple[int | None, ...]]

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.repairs or self.interrupted)

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The name of a file and what is done to it, for each thing."""
        done = [(repair.path.name, what) for repair in self.repairs for what in repair.what]
        return self.interrupted + done

    def __str__(self) -> str:
        return "\n".join(f"{name}: {what}" for name, what in self.lines)

    def carry_out(self) -> Path | None:
        """Do it, with the folder's lock held; where the files are that went."""
        if self.interrupted:  # which who took the lock has finished: all is another now
            return plan_of(self.folder, self._options).carry_out()
        if not self.repairs:
            return None
        if self._seen != seen_in(self.folder):
            raise KafkaJitError(
                "files have changed since they were looked at: make another plan",
                path=str(self.folder),
            )
        with Change(self.folder, _WHAT) as change:
            for repair in self.repairs:
                if repair.new is None:
                    change.remove(repair.path)
                else:
                    repair.new(change.new(repair.path, first=repair.first))
            return change.commit()


@dataclass
class RepairPlan:
    """What is to be done to the partitions of a place; its text is a line for each thing."""

    location: Path
    partitions: list[PartitionPlan]

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be done."""
        return any(partition.is_needed for partition in self.partitions)

    def __str__(self) -> str:
        return "\n".join(
            f"{partition.folder.name}/{name}: {what}"
            for partition in self.partitions
            for name, what in partition.lines
        )

    def apply(self, *, force: bool = False) -> list[Path]:
        """Do it all; the folders in which replaced files are kept.

        Args:
            force: go on where a running broker, or somebody else, has the logs' lock.
        """
        with FolderLock(self.location, force=force):
            kept = [partition.carry_out() for partition in self.partitions]
        return [path for path in kept if path is not None]


def repair(
    folder: str | os.PathLike[str],
    *,
    salvage: bool = False,
    truncate_to: int | None = None,
    config: LogConfig | None = None,
) -> RepairPlan:
    """What is to be done for a broker to find a partition's log right, or all logs of a log.dirs.

    Nothing is touched before the plan's `apply` is called.

    Args:
        folder: a partition's folder, or a log.dirs folder with several.
        salvage: keep sound batches behind damage, which brokers throw away.
        truncate_to: cut the log at this offset: the batch that has it goes too.
        config: the topic's, which says how its indexes are made.

    >>> import kafkajit.testing as kt
    >>> plan = repair(f"{kt.SAMPLE}/orders-0")  # which is a log and nothing else
    >>> print(str(plan).splitlines()[0])
    orders-0/00000000000000000000.index: make: it is missing
    """
    options = Options(config or LogConfig(), salvage, truncate_to)
    plans = [plan_of(path, options) for path in partitions_at(folder)]
    return RepairPlan(Path(folder), plans)


def plan_of(
    folder: Path, options: Options, progress: Callable[[int], None] = lambda _: None
) -> PartitionPlan:
    """What is to be done to one partition."""
    seen = seen_in(folder)
    interrupted = interrupted_in(folder)
    found = find_repairs(folder, options, progress)
    is_needed = interrupted or any(one.is_needed for one in found.repairs)
    return PartitionPlan(
        folder=folder,
        repairs=found.repairs if is_needed else [],
        gaps=found.gaps,
        log_start_offset=found.log_start_offset,
        log_end_offset=found.log_end_offset,
        segments=found.segments,
        bytes=found.bytes,
        notes=found.notes,
        loses=found.loses,
        interrupted=interrupted,
        _options=options,
        _seen=seen,
    )
