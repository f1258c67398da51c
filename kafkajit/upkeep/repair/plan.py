"""Repair logs without a broker: what LogLoader does when a broker starts, or a little more.

A plan lists the repairs, and its `apply` carries them out. All files of a partition change at once
(kafkajit/change/change.py), and the files that were there are kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkajit.change.change import Change
from kafkajit.change.files import local_folder
from kafkajit.change.partition_plan import FolderState, PartitionPlan, UpkeepPlan, plans_of
from kafkajit.change.partitions import partitions_at
from kafkajit.errors import InvalidOffsetError
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.notebook import in_notebook
from kafkajit.format.progress import adding
from kafkajit.log.config import LogConfig
from kafkajit.log.missing_offsets import Missing
from kafkajit.places.location import SEGMENT_NAME
from kafkajit.storage.source import check_regular
from kafkajit.upkeep.repair.file_repair import FileRepair
from kafkajit.upkeep.repair.losses import Loss, RecordCounts, counts_of
from kafkajit.upkeep.repair.lost_ends import LostEnd, outcomes_text
from kafkajit.upkeep.repair.options import Producers, RepairOptions
from kafkajit.upkeep.repair.repairs import find_repairs


@dataclass(repr=False)
class PartitionRepair(PartitionPlan):
    """The repairs of one partition; its text is what `kafkajit repair` prints."""

    ACTION = "repair"

    folder: Path
    state: FolderState
    repairs: list[FileRepair]
    gaps: list[Loss]  # what is lost
    log_start_offset: int
    log_end_offset: int
    segments: int
    bytes: int
    notes: list[str]
    obstacles: list[str]  # what keeps a broker from loading the log, and stays as it is
    loses: int  # sound batches behind damage
    records: RecordCounts
    transactions: list[LostEnd]  # those whose markers may be lost
    missing: list[Missing]  # offsets that no file has
    _options: RepairOptions

    @property
    def is_needed(self) -> bool:
        """Whether the partition needs a repair."""
        return bool(self.repairs or self.state.interrupted)

    @property
    def has_trouble(self) -> bool:
        """Whether records are missing that no repair brings back."""
        return any(one.is_trouble for one in self.missing)

    @property
    def lacks_markers(self) -> bool:
        """Whether a marker is not written although the options ask for it."""
        return any(one.problem is not None for one in self.transactions)

    @property
    def changes(self) -> list[tuple[str, str]]:
        """Each change: the name of a file and what is done to it."""
        done = [(repair.path.name, what) for repair in self.repairs for what in repair.what]
        return self.state.interrupted + done

    @property
    def lines(self) -> Iterator[str]:
        """A line for each change, and the log after the repair."""
        return self.lines_as(self.folder.name)

    def lines_as(self, title: str) -> Iterator[str]:
        """The lines, under another name than the folder's."""
        after = f"{_count(self.segments, 'segment')}, {_size(self.bytes)}, {self._offsets}"
        if self.is_needed:
            yield f"{title}:"
        elif self.has_trouble:
            yield f"{title}: {after}: records are missing"
        else:
            yield f"{title}: {after}: nothing to do"
        changes = self.changes
        width = max((len(name) for name, _ in changes), default=0)
        yield from (f"  {name:{width}}  {what}" for name, what in changes)
        yield from (f"  {one.text}" for one in self.transactions)
        for one in self.missing:
            yield f"  {'missing' if one.is_trouble else 'note'}: {one.text}"
        yield from (f"  obstacle: {obstacle}" for obstacle in self.obstacles)
        yield from (f"  note: {note}" for note in self.notes)
        if self.is_needed:
            yield f"  then: {after}"
            yield f"  {self.records.text}{outcomes_text(self.transactions)}"
        if self._lost_batches:
            count = _count(self._lost_batches, "sound batch", "es")
            yield f"  {count} behind damage; --salvage keeps them"

    def summary(self) -> str:
        files = len({name for name, _ in self.changes})
        return f"{_count(files, 'file')} to {self.ACTION}" if self.is_needed else "nothing to do"

    def document(self) -> dict[str, Any]:
        return {
            "changes": [{"file": name, "what": what} for name, what in self.changes],
            "damage": [loss.document() for loss in self.gaps],
            "segments": self.segments,
            "bytes": self.bytes,
            "logStartOffset": self.log_start_offset,
            "logEndOffset": self.log_end_offset,
            "records": self.records.document(),
            "missing": [one.document() for one in self.missing],
            "transactions": [one.document() for one in self.transactions],
            "lostBatches": self._lost_batches,
            "notes": self.notes,
            "obstacles": self.obstacles,
        }

    @property
    def _lost_batches(self) -> int:
        """The sound batches that go, although they were not asked to."""
        options = self._options
        return 0 if options.salvage or options.truncate_to is not None else self.loses

    @property
    def _offsets(self) -> str:
        if self.log_start_offset >= self.log_end_offset or not self.bytes:
            return f"empty at offset {self.log_end_offset}"
        return f"offsets {self.log_start_offset} to {self.log_end_offset - 1}"

    def check_keep(self, *, keep: bool) -> None:
        """Raise if files of unknown contents are to go for good."""
        if not keep and any(path.parent == self.folder for path in self._options.discard):
            raise ValueError("discarded files are kept: apply without keep=False")

    def apply(self, *, keep: bool = True) -> Path | None:
        self.check_keep(keep=keep)
        return super().apply(keep=keep)

    def replanned(self) -> PartitionRepair:
        return plan_of(self.folder, self._options)

    def stage(self, change: Change) -> None:
        for repair in self.repairs:
            if repair.write is None:
                change.remove(repair.path)
            else:
                repair.write(change.new(repair.path, first=repair.first))


class RepairPlan(UpkeepPlan[PartitionRepair]):
    """The repairs of all partitions; its text is the output of the command."""

    def apply(self, *, keep: bool = True, force: bool = False) -> list[Path]:
        for partition in self.partitions:
            partition.check_keep(keep=keep)
        return super().apply(keep=keep, force=force)


def repair(
    folder: str | os.PathLike[str],
    *,
    config: LogConfig | Mapping[str, Any] | None = None,
    salvage: bool = False,
    abort_open: bool | Iterable[int] = False,
    commit_open: bool | Iterable[int] = False,
    truncate_to: int | None = None,
    discard: Iterable[str | os.PathLike[str]] = (),
) -> RepairPlan:
    """Plan the repair of a partition's log, or of all logs of a log.dirs folder.

    No file is changed before you call the plan's `apply`. If one of several partitions cannot be
    planned, the plan has the others, and the error is in its `problems`.

    Args:
        folder: a partition's folder, or a log.dirs folder with several partitions.
        config: the topic's configuration, a `LogConfig` or a mapping of Kafka's names. Indexes are
            built with its index.interval.bytes and segment.index.bytes.
        salvage: keep sound batches behind damage, which brokers throw away.
        abort_open: with salvage, write an ABORT marker for each transaction whose marker is lost or
            probably lost, at the offset that is missing. Or name the producers whose transactions
            to abort; then also those whose marker may be lost.
        commit_open: the same with COMMIT markers.
        truncate_to: cut the log of this one partition at this offset. The batch with this offset is
            removed.
        discard: segments that are not Kafka logs but other files, to be replaced by empty ones. If
            you do not name it here, a file that is not a log raises a NotALogError. The replaced
            files are always kept.

    >>> import kafkajit.testing as kt
    >>> plan = repair(f"{kt.SAMPLE}/orders-0")  # which is a log and nothing else
    >>> print(plan)
    orders-0:
      00000000000000000000.index      create: it is missing
      00000000000000000000.timeindex  create: it is missing
      00000000000000000000.txnindex   create: it lacks the transaction that was aborted at offset 25
      00000000000000000027.snapshot   create: it is missing
      leader-epoch-checkpoint         create: it lacks epoch 0 from offset 0
      then: 1 segment, 1,951 bytes, offsets 0 to 26
      0 records lost, 25 kept
    """
    location = local_folder(folder)
    folders = partitions_at(location)
    paths = discarded(discard, folders)
    options = RepairOptions(
        LogConfig.of(config),
        salvage,
        truncate_to,
        paths,
        Producers.of(abort_open),
        Producers.of(commit_open),
    )
    if truncate_to is not None and folders != [location]:
        raise ValueError("truncate_to is for one partition: name its folder")
    with in_notebook() as progress:

        def planned(path: Path) -> PartitionRepair:
            return plan_of(path, options, adding(progress, path.name, log_size(path)))

        plan = RepairPlan(location, *plans_of(location, folders, planned))
    check_producers(options, plan.partitions)
    return plan


def check_producers(options: RepairOptions, partitions: Iterable[PartitionRepair]) -> None:
    """Raise an error if no transaction of a named producer lacks its marker."""
    lacking = {end.transaction.producer_id for one in partitions for end in one.transactions}
    others = options.producers - lacking
    if others:
        raise ValueError(
            f"producer {', '.join(map(str, sorted(others)))} has no transaction whose marker may "
            "be lost, so no marker is written for it: `kafka-transactions.sh abort` ends open "
            "transactions of a running broker"
        )


def log_size(folder: Path) -> int:
    """The bytes of a partition's segments."""
    return sum(path.stat().st_size for path in folder.glob("*.log") if path.is_file())


def discarded(
    files: Iterable[str | os.PathLike[str]], folders: Collection[Path]
) -> frozenset[Path]:
    """The segments of these partitions that are named to be discarded."""
    paths = frozenset(local_folder(file) for file in files)
    for path in sorted(paths):
        if path.parent not in folders or not SEGMENT_NAME.fullmatch(path.name):
            raise ValueError(f"{path} is not a segment of a partition that is to be repaired")
        check_regular(path)
    return paths


def plan_of(
    folder: Path, options: RepairOptions, progress: Callable[[int], None] = lambda _: None
) -> PartitionRepair:
    """Plan the repairs of one partition."""
    state = FolderState(folder)
    found = find_repairs(folder, options, progress)
    if found.log_end_offset > MAX_INT64:
        raise InvalidOffsetError(
            f"the log has offset {MAX_INT64}, which is the last one there can be: a broker deletes "
            "the log",
            path=str(folder),
            advice=f"--truncate-to {MAX_INT64} removes its last batch",
        )
    is_needed = state.interrupted or any(one.is_needed for one in found.repairs)
    return PartitionRepair(
        folder=folder,
        state=state,
        repairs=found.repairs if is_needed else [],
        gaps=found.gaps,
        log_start_offset=found.log_start_offset,
        log_end_offset=found.log_end_offset,
        segments=found.segments,
        bytes=found.bytes,
        notes=found.notes,
        obstacles=found.obstacles,
        loses=found.loses,
        records=counts_of(found.records, found.gaps),
        transactions=found.lost_ends,
        missing=found.missing,
        _options=options,
    )


def _count(count: int, what: str, plural: str = "s") -> str:
    return f"{count:,} {what}{'' if count == 1 else plural}"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else _count(count, "byte")
