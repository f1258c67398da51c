"""Dry runs of retention and compaction: the plans of `kafkajit retain` and `kafkajit compact`.

A partition's folder does not show how its topic is configured. Retention is planned for some days,
and leaves alone what `kafkajit retain` leaves alone in a log.dirs folder. Compaction is planned for
each topic that has keys, as by `kafkajit compact --config cleanup.policy=compact` of its folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafkajit.change.files import local_folder
from kafkajit.change.journal import logs_in
from kafkajit.log.log import Log
from kafkajit.log.segment import Segment
from kafkajit.places.tiered_files import TieredFile
from kafkajit.report.savings import DAY, DAYS
from kafkajit.upkeep.compact import plan as compaction
from kafkajit.upkeep.compact.options import CompactOptions
from kafkajit.upkeep.compact.options import why_left_alone as why_not_compacted
from kafkajit.upkeep.retain.options import RetainOptions
from kafkajit.upkeep.retain.options import why_left_alone as why_not_retained
from kafkajit.upkeep.retain.plan import expiry_of

# How often a plan is made again if a running broker removes a segment meanwhile.
_TURNS = 5
_RETAIN, _COMPACT = "retain", "compact"


@dataclass
class DryRuns:
    """Adds up the plans for the partitions of a topic."""

    now: int
    partitions: int = 0
    _retained: int = 0
    _compacted: int = 0
    _is_compacted: bool = False
    _limits: dict[int, Counter[str]] = field(
        default_factory=lambda: {days: Counter(bytes=0, segments=0) for days in DAYS}
    )
    _freed: Counter[str] = field(default_factory=Counter)
    _left_alone: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, folder: Path, *, has_keys: bool) -> None:
        """Plan for one partition more."""
        self.partitions += 1
        plans = [(_RETAIN, self._retain)]
        if has_keys:
            plans.append((_COMPACT, self._compact))
        for name, plan in plans:
            for turn in range(_TURNS):
                try:
                    reason = plan(folder)
                except (FileNotFoundError, EOFError) as error:
                    reason = str(error)
                    if turn + 1 < _TURNS:
                        continue
                except (OSError, ValueError) as error:
                    reason = str(error)
                if reason is not None:
                    self._left_alone[name, reason] += 1
                break

    def add_all(self, other: DryRuns) -> None:
        """Add the plans for other partitions."""
        self.partitions += other.partitions
        self._retained += other._retained
        self._compacted += other._compacted
        self._is_compacted |= other._is_compacted
        for days, limit in other._limits.items():
            self._limits[days].update(limit)
        self._freed.update(other._freed)
        self._left_alone.update(other._left_alone)

    def document(self) -> dict[str, Any]:
        """The topic's dry runs in the document."""
        freed = self._freed
        return {
            "partitions": self.partitions,
            "retention": None
            if not self._retained
            else {
                "partitions": self._retained,
                "limits": [{"days": days, **self._limits[days]} for days in DAYS],
            },
            "compaction": None
            if not self._compacted
            else {
                "partitions": self._compacted,
                "isCompacted": self._is_compacted,
                "records": freed["recordsBefore"] - freed["records"],
                "ofRecords": freed["recordsBefore"],
                "bytes": freed["bytesBefore"] - freed["bytes"],
                "ofBytes": freed["bytesBefore"],
                "recordsWithoutKey": freed["recordsWithoutKey"],
            },
            "leftAlone": [
                {"command": command, "partitions": count, "reason": reason}
                for (command, reason), count in sorted(self._left_alone.items())
            ],
        }

    def _retain(self, folder: Path) -> str | None:
        options = RetainOptions.of(None, now=self.now)
        reason = why_not_retained(folder, options, is_named=False)
        if reason is not None:
            return reason
        expiry = expiry_of(folder, Log(folder))
        expiry.before_start()
        found: dict[int, Counter[str]] = {}
        for days in sorted(DAYS, reverse=True):  # a shorter retention deletes more
            expiry.beyond_time(days * DAY, self.now)
            gone = expiry.expired
            found[days] = Counter(bytes=sum(each.size for each in gone), segments=len(gone))
        for days, limit in found.items():
            self._limits[days].update(limit)
        self._retained += 1
        return None

    def _compact(self, folder: Path) -> str | None:
        options = CompactOptions.of({"cleanup.policy": "compact"}, now=self.now)
        reason = why_not_compacted(folder, options, is_named=True)
        if reason is not None:
            return reason
        plan = compaction.plan_of(folder, options, is_named=True)
        plan.find_out()
        for segment in plan.document()["segments"]:
            for name in ("recordsBefore", "records", "bytesBefore", "bytes", "recordsWithoutKey"):
                self._freed[name] += segment[name]
        self._is_compacted |= why_not_compacted(folder, options, is_named=False) is None
        self._compacted += 1
        return None


def folder_of(segments: Sequence[Segment]) -> Path | None:
    """The local folder that has these segments of a partition and no others; None otherwise."""
    logs = [segment.log for segment in segments]
    if not logs or any(log.filesystem is not None or isinstance(log, TieredFile) for log in logs):
        return None
    if segments[0].path.partition is None or len({log.folder for log in logs}) > 1:
        return None
    folder = local_folder(logs[0].folder)
    names = {log.name for log in logs}
    return folder if {Path(name).name for name in logs_in(folder)} <= names else None
