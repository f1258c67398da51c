"""What is to become of logs: a plan says it first, and does it when it is told to.

Repairing, retention and compaction plan for one partition, or for each of a log.dirs folder. A
partition is changed whole or not at all, and only if it is as it was when the plan was made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from kafkajit.change.change import Change
from kafkajit.change.lock import FolderLock
from kafkajit.change.partitions import check_finished, interrupted_in, seen_in
from kafkajit.errors import KafkaJitError


class Moment:
    """How a partition's folder was when somebody looked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = seen_in(folder)
        # What is left of a change that was not finished, and what becomes of it.
        self.interrupted = interrupted_in(folder)

    @property
    def is_over(self) -> bool:
        """Whether something in the folder has been written since."""
        return self._seen != seen_in(self._folder)


class PartitionPlan(ABC):
    """What becomes of one partition's log."""

    WHAT: ClassVar[str]  # is done: it names the folder with what is kept
    folder: Path
    moment: Moment

    @property
    @abstractmethod
    def is_needed(self) -> bool:
        """Whether anything is to be done."""

    @property
    @abstractmethod
    def lines(self) -> Iterable[str]:
        """What is to be done."""

    @abstractmethod
    def again(self) -> Self:
        """The same plan for what is there now."""

    @abstractmethod
    def put_into(self, change: Change) -> None:
        """All that is to be done, as a change of files."""

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @abstractmethod
    def summary(self) -> str:
        """What is to be done, in a few words."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """The plan as JSON has it."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.folder.name}: {self.summary()}>"

    def carry_out(self, *, keep: bool = True) -> Path | None:
        """Do it, with the folder's lock held; where the files are that went, if they are kept."""
        if self.moment.interrupted:  # which who took the lock has finished: all is another now
            check_finished(self.folder)
            return self.again().carry_out(keep=keep)
        if not self.is_needed:
            return None
        if self.moment.is_over:
            raise KafkaJitError(
                "files have changed since they were looked at: make another plan",
                path=str(self.folder),
            )
        with Change(self.folder, self.WHAT) as change:
            self.put_into(change)
            return change.commit(keep=keep)


P = TypeVar("P", bound=PartitionPlan)


@dataclass(repr=False)
class Plan(Generic[P]):
    """What becomes of the partitions of a place; its text is a command's output."""

    location: Path
    partitions: list[P]

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be done."""
        return any(partition.is_needed for partition in self.partitions)

    def __repr__(self) -> str:
        if len(self.partitions) == 1:
            what = f"{self.partitions[0].folder.name}: {self.partitions[0].summary()}"
        else:
            needed = sum(partition.is_needed for partition in self.partitions)
            what = f"{len(self.partitions)} partitions, something to do in {needed or 'none'}"
        return f"<{type(self).__name__} {what}; print() shows all of it>"

    def __str__(self) -> str:
        return "\n".join(line for partition in self.partitions for line in partition.lines)

    def apply(self, *, keep: bool = True, force: bool = False) -> list[Path]:
        """Do it all; the folders in which files are kept that went or were replaced.

        Args:
            keep: keep them, and with them the room that they take.
            force: go on where a running broker, or somebody else, has the logs' lock.
        """
        with FolderLock(self.location, force=force):
            kept = [partition.carry_out(keep=keep) for partition in self.partitions]
        return [path for path in kept if path is not None]
