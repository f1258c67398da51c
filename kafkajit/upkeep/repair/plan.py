"""A broker's logs put right without it: what LogLoader would do when it starts, or gently more.

A plan says what is to be done and does it when it is told to. All files of a partition are changed
at once (kafkajit/change/change.py), and what was there is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafkajit.change.change import Change
from kafkajit.change.files import local_folder
from kafkajit.change.partition_plan import Moment, PartitionPlan, Plan
from kafkajit.change.partitions import partitions_at
from kafkajit.log.config import LogConfig
from kafkajit.storage.locations import SEGMENT_NAME
from kafkajit.storage.source import check_regular
from kafkajit.upkeep.repair.repairs import Options, Repair, find_repairs
from kafkajit.walk.walk import Corruption


@dataclass(repr=False)
class PartitionRepair(PartitionPlan):
    """What is to be done to one partition; its text is what `kafkajit repair` prints of it."""

    WHAT = "repair"

    folder: Path
    moment: Moment
    repairs: list[Repair]
    gaps: list[Corruption]  # what is lost
    log_start_offset: int
    log_end_offset: int
    segments: int
    bytes: int
    notes: list[str]
    loses: int  # sound batches that are behind damage
    _options: Options

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.repairs or self.moment.interrupted)

    @property
    def changes(self) -> list[tuple[str, str]]:
        """The name of a file and what is done to it, for each thing."""
        done = [(repair.path.name, what) for repair in self.repairs for what in repair.what]
        return self.moment.interrupted + done

    @property
    def lines(self) -> Iterator[str]:
        """What is done, a line for each thing, and what the log is then."""
        after = f"{_count(self.segments, 'segment')}, {_size(self.bytes)}, {self._offsets}"
        if self.is_needed:
            yield f"{self.folder.name}:"
        else:
            yield f"{self.folder.name}: {after}: nothing to do"
        changes = self.changes
        width = max((len(name) for name, _ in changes), default=0)
        yield from (f"  {name:{width}}  {what}" for name, what in changes)
        yield from (f"  note: {note}" for note in self.notes)
        if self.is_needed:
            yield f"  then: {after}"
        if self.loses and not self._options.salvage:
            yield f"  {_count(self.loses, 'sound batch', 'es')} behind damage; --salvage keeps them"

    def summary(self) -> str:
        files = len({name for name, _ in self.changes})
        return f"{_count(files, 'file')} to {self.WHAT}" if self.is_needed else "nothing to do"

    def document(self) -> dict[str, Any]:
        return {
            "changes": [{"file": name, "what": what} for name, what in self.changes],
            "damage": [
                {
                    "path": gap.path,
                    "position": int(gap.position),
                    "length": int(gap.length),
                    "reason": gap.reason,
                    "firstMissingOffset": gap.first_missing_offset,
                    "lastMissingOffset": gap.last_missing_offset,
                }
                for gap in self.gaps
            ],
            "segments": self.segments,
            "bytes": self.bytes,
            "logStartOffset": self.log_start_offset,
            "logEndOffset": self.log_end_offset,
            "notes": self.notes,
        }

    @property
    def _offsets(self) -> str:
        if self.log_start_offset >= self.log_end_offset:
            return f"empty at offset {self.log_end_offset}"
        return f"offsets {self.log_start_offset} to {self.log_end_offset - 1}"

    def check_keep(self, *, keep: bool) -> None:
        """Raise if files are to go for good of which nobody knows what they are."""
        if not keep and any(path.parent == self.folder for path in self._options.discard):
            raise ValueError("what is discarded is kept: apply without keep=False")

    def carry_out(self, *, keep: bool = True) -> Path | None:
        """Do it; what is discarded is kept."""
        self.check_keep(keep=keep)
        return super().carry_out(keep=keep)

    def again(self) -> PartitionRepair:
        return plan_of(self.folder, self._options)

    def put_into(self, change: Change) -> None:
        for repair in self.repairs:
            if repair.new is None:
                change.remove(repair.path)
            else:
                repair.new(change.new(repair.path, first=repair.first))


class RepairPlan(Plan[PartitionRepair]):
    """What is to be done to the partitions of a place; its text is what the command prints."""

    def apply(self, *, keep: bool = True, force: bool = False) -> list[Path]:
        """Do it all, as for every plan; what is discarded is kept."""
        for partition in self.partitions:
            partition.check_keep(keep=keep)
        return super().apply(keep=keep, force=force)


def repair(
    folder: str | os.PathLike[str],
    *,
    salvage: bool = False,
    truncate_to: int | None = None,
    discard: Iterable[str | os.PathLike[str]] = (),
    config: LogConfig | Mapping[str, Any] | None = None,
) -> RepairPlan:
    """What is to be done for a broker to find a partition's log right, or all logs of a log.dirs.

    Nothing is touched before the plan's `apply` is called.

    Args:
        folder: a partition's folder, or a log.dirs folder with several.
        salvage: keep sound batches behind damage, which brokers throw away.
        truncate_to: cut the log of this one partition at this offset: the batch that has it goes
            too.
        discard: segments that are not Kafka logs but other files, to be replaced by empty ones.
            Without it a partition with such a file is a NotALogError. They are always kept.
        config: the topic's, a `LogConfig` or by Kafka's names, which says how its indexes are made
            (index.interval.bytes, segment.index.bytes).

    >>> import kafkajit.testing as kt
    >>> plan = repair(f"{kt.SAMPLE}/orders-0")  # which is a log and nothing else
    >>> print(plan)
    orders-0:
      00000000000000000000.index      make: it is missing
      00000000000000000000.timeindex  make: it is missing
      00000000000000000000.txnindex   make: it lacks the transaction that was aborted at offset 25
      00000000000000000027.snapshot   make: it is missing
      leader-epoch-checkpoint         make: it lacks epoch 0 from offset 0
      then: 1 segment, 1951 bytes, offsets 0 to 26
    """
    location = local_folder(folder)
    folders = partitions_at(location)
    paths = discarded(discard, folders)
    options = Options(LogConfig.of(config), salvage, truncate_to, paths)
    if truncate_to is not None and folders != [location]:
        raise ValueError("truncate_to is for one log: name its partition's folder")
    return RepairPlan(location, [plan_of(path, options) for path in folders])


def discarded(
    files: Iterable[str | os.PathLike[str]], folders: Collection[Path]
) -> frozenset[Path]:
    """The segments of partitions that these paths name."""
    paths = frozenset(local_folder(file) for file in files)
    for path in sorted(paths):
        if path.parent not in folders or not SEGMENT_NAME.fullmatch(path.name):
            raise ValueError(f"{path} is no segment of a partition that is to be repaired")
        check_regular(path)
    return paths


def plan_of(
    folder: Path, options: Options, progress: Callable[[int], None] = lambda _: None
) -> PartitionRepair:
    """What is to be done to one partition."""
    moment = Moment(folder)
    found = find_repairs(folder, options, progress)
    is_needed = moment.interrupted or any(one.is_needed for one in found.repairs)
    return PartitionRepair(
        folder=folder,
        moment=moment,
        repairs=found.repairs if is_needed else [],
        gaps=found.gaps,
        log_start_offset=found.log_start_offset,
        log_end_offset=found.log_end_offset,
        segments=found.segments,
        bytes=found.bytes,
        notes=found.notes,
        loses=found.loses,
        _options=options,
    )


def _count(count: int, what: str, plural: str = "s") -> str:
    return f"{count} {what}{'' if count == 1 else plural}"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else _count(count, "byte")
