"""Plans to change logs: a plan describes the changes first, and `apply` makes them.

Repair, retention and compaction plan for one partition, or for each partition of a log.dirs folder.
A partition is changed whole or not at all, and only if it is as it was when the plan was made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from kafkajit.change.change import Change
from kafkajit.change.lock import FolderLock
from kafkajit.change.partitions import check_finished, interrupted_in, seen_in
from kafkajit.errors import KafkaJitError
from kafkajit.format.amounts import number_of
from kafkajit.format.notebook import html_lines, in_notebook
from kafkajit.format.progress import Progress
from kafkajit.system.acting import reading_for


class FolderState:
    """The state of a partition's folder when the plan was made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = seen_in(folder)
        # What an unfinished change has left, and what becomes of it.
        self.interrupted = interrupted_in(folder)

    @property
    def has_changed(self) -> bool:
        """Whether a file in the folder has been written since."""
        return self._seen != seen_in(self._folder)


class PartitionPlan(ABC):
    """The changes of one partition's log."""

    ACTION: ClassVar[str]  # names the folder in which replaced files are kept
    folder: Path
    state: FolderState

    @property
    @abstractmethod
    def is_needed(self) -> bool:
        """Whether the log needs a change."""

    @property
    @abstractmethod
    def lines(self) -> Iterable[str]:
        """The changes, line by line."""

    @abstractmethod
    def replanned(self) -> Self:
        """The same plan for the folder as it is now."""

    @abstractmethod
    def stage(self, change: Change) -> None:
        """Stage all changes of files."""

    @property
    def models(self) -> Iterable[Path]:
        """Files and folders than which a folder that the change makes is no more open."""
        return ()

    def report_to(self, progress: Progress) -> None:
        """Report the bytes that `apply` reads; most plans have read everything before."""
        progress(self.folder.name, 0, 0)

    def __str__(self) -> str:
        return "\n".join(self.lines)

    @abstractmethod
    def summary(self) -> str:
        """The changes in a few words."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """The plan as a JSON object."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.folder.name}: {self.summary()}>"

    def apply(self, *, keep: bool = True) -> Path | None:
        """Change the files while the caller holds the folder's lock.

        Returns:
            The folder in which replaced and removed files are kept, if there are any.
        """
        if self.state.interrupted:  # the lock's taker has finished that: the plan is out of date
            check_finished(self.folder)
            with reading_for(self.folder):
                return self.replanned().apply(keep=keep)
        if not self.is_needed:
            return None
        if self.state.has_changed:
            raise KafkaJitError(
                "files have changed since the plan was made: make another plan",
                path=str(self.folder),
            )
        with reading_for(self.folder), Change(self.folder, self.ACTION, self.models) as change:
            self.stage(change)
            return change.commit(keep=keep)


P = TypeVar("P", bound=PartitionPlan)


@dataclass(repr=False)
class UpkeepPlan(Generic[P]):
    """The plans for all partitions of a location; its text is a command's output."""

    location: Path
    partitions: list[P]
    # Why other partitions could not be planned; `apply` raises it when the others are done.
    problems: list[Exception] = field(default_factory=list)

    @property
    def is_needed(self) -> bool:
        """Whether any log needs a change."""
        return any(partition.is_needed for partition in self.partitions)

    def __repr__(self) -> str:
        if len(self.partitions) == 1:
            what = f"{self.partitions[0].folder.name}: {self.partitions[0].summary()}"
        else:
            needed = sum(partition.is_needed for partition in self.partitions)
            what = f"{len(self.partitions)} partitions, something to do in {needed or 'none'}"
        if self.problems:
            what += f", {number_of(len(self.problems), 'problem')}"
        return f"<{type(self).__name__} {what}; print() shows all of it>"

    def __str__(self) -> str:
        lines = [line for partition in self.partitions for line in partition.lines]
        return "\n".join([*lines, *(f"problem: {problem}" for problem in self.problems)])

    def _repr_html_(self) -> str:
        title, _, _ = repr(self).partition("; print()")
        return html_lines(title if title.endswith(">") else f"{title}>", str(self))

    def apply(self, *, keep: bool = True, force: bool = False) -> list[Path]:
        """Change the logs.

        Args:
            keep: keep the replaced and removed files, which still use their disk space.
            force: go on although a running broker, or another process, holds the logs' lock.

        Returns:
            The folders in which files are kept.

        Raises:
            OSError, ValueError: a partition could not be planned or changed. The others have been
                changed, and each later plan lists it among its `problems`.
        """
        with FolderLock(self.location, force=force):
            return self._applied(keep=keep, goes_on=True)

    def _applied(self, *, keep: bool, goes_on: bool = False) -> list[Path]:
        """Apply all plans, while the caller holds the lock; a notebook shows the progress.

        With `goes_on` an error in a partition does not stop the others, and is raised at the end.
        """
        kept, problems = [], [*self.problems]
        with in_notebook() as progress:
            for partition in self.partitions:
                partition.report_to(progress)
                try:
                    kept.append(partition.apply(keep=keep))
                except (OSError, ValueError) as error:
                    if not goes_on:
                        raise
                    problems.append(error)
        if problems:
            if len(problems) > 1:
                others = number_of(len(problems) - 1, "more partition")
                problems[0].add_note(f"and {others}: " + "; ".join(map(str, problems[1:])))
            raise problems[0]
        return [path for path in kept if path is not None]


def plans_of(
    location: Path, folders: Iterable[Path], plan: Callable[[Path], P]
) -> tuple[list[P], list[Exception]]:
    """Plan for each partition; return the plans, and the errors of the partitions without one.

    The error of a partition that is named by itself is raised, and so is the first one if there is
    no plan at all.
    """
    plans: list[P] = []
    problems: list[Exception] = []
    for folder in folders:
        try:
            with reading_for(folder):
                plans.append(plan(folder))
        except (OSError, ValueError) as error:
            if folder == location:
                raise
            problems.append(error)
    if problems and not plans:
        raise problems[0]
    return plans, problems
