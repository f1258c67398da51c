"""What is to be done to the files of a partition for a broker to find its log right.

Answers to LogLoader.load of Kafka 4.1.1: what it leaves on the disk is what is asked for here. A
file that is right already stays, also where a broker would write it a little differently.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from weakref import finalize

from kafkajit.change.partition_offsets import PartitionOffsets
from kafkajit.errors import CorruptCheckpointError, CorruptSnapshotError
from kafkajit.format.log_path import (
    INDEX_SUFFIX,
    INDEX_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from kafkajit.log.config import LogConfig
from kafkajit.log.epochs import LeaderEpochs
from kafkajit.state.checkpoints import NAMES as CHECKPOINTS
from kafkajit.state.checkpoints import START_OFFSETS
from kafkajit.state.leader_epochs import LEADER_EPOCHS, parse_leader_epochs
from kafkajit.state.producer_snapshot import SNAPSHOT_NAME, snapshot_entries
from kafkajit.storage.locations import SEGMENT_NAME
from kafkajit.storage.source import as_bytes, whole
from kafkajit.upkeep.repair.loading import LoadedSegment, Loading
from kafkajit.upkeep.repair.side_file_checks import (
    Entries,
    contradiction_in_snapshot,
    misfit_of_offset_index,
    misfit_of_time_index,
    misfit_of_transaction_index,
)
from kafkajit.upkeep.repair.temp_files import without_leftovers
from kafkajit.walk.walk import Corruption, Stretch

_AT_ONCE = 8 << 20
_IN_MEMORY = 64 << 20
# File systems that do not copy by themselves.
_NO_COPY_RANGE = (errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM)
_INDEX = re.compile(r"\d{20}\.(?:index|timeindex|txnindex)", re.ASCII)


@dataclass(frozen=True)
class Options:
    """How a log is to be repaired."""

    config: LogConfig
    salvage: bool = False
    truncate_to: int | None = None
    discard: frozenset[Path] = frozenset()  # files that are no logs

    def __post_init__(self) -> None:
        if self.truncate_to is not None and self.truncate_to < 0:
            raise ValueError(f"Cannot truncate to a negative offset ({self.truncate_to})")


@dataclass(frozen=True)
class Repair:
    """One file that is to be there, or to be another, or to go."""

    path: Path
    what: tuple[str, ...]  # is done, and why: a line each
    new: Callable[[Path], None] | None  # writes it; None where it goes
    is_needed: bool = True  # or only done along with something else
    first: bool = False  # before any log is touched


@dataclass
class PartitionRepairs:
    """What is to be done to a partition, and what its log is then."""

    folder: Path
    segments: int
    bytes: int
    log_start_offset: int
    log_end_offset: int
    gaps: list[Corruption]
    loses: int  # sound batches that are behind damage
    repairs: list[Repair] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what is wrong and left alone


def find_repairs(
    folder: Path, options: Options, progress: Callable[[int], None]
) -> PartitionRepairs:
    """Everything that is to be done to a partition's folder. Nothing is touched."""
    return _Finding(folder, options, progress).found


class _Finding:
    def __init__(self, folder: Path, options: Options, progress: Callable[[int], None]) -> None:
        self._folder = folder
        self._interval = options.config.index_interval_bytes
        self._left = without_leftovers(folder)
        self._offsets = {name: PartitionOffsets(folder, name) for name in CHECKPOINTS}
        self._loading = Loading(
            logs={int(name[:20]): path for name, path in self._named(SEGMENT_NAME)},
            snapshots={int(name[:20]): path for name, path in self._named(SNAPSHOT_NAME)},
            log_start_offset=max(0, self._offsets[START_OFFSETS].offset or 0),
            config=options.config,
            salvage=options.salvage,
            truncate_to=options.truncate_to,
            discard=options.discard,
            progress=progress,
            finish=self._segment,
        )
        self._contents = _Contents()
        self._of_segments: dict[str, list[Repair]] = {}
        self._repairs: list[Repair] = []
        self._loading.load()
        segments = self._loading.segments
        self._removed_logs: set[str] = set()
        self._stems = {segment.name for segment in segments}
        self.found = PartitionRepairs(
            folder,
            segments=len(segments),
            bytes=sum(segment.size for segment in segments),
            log_start_offset=max(segments[0].base_offset, self._loading.log_start_offset),
            log_end_offset=self._loading.log_end_offset,
            gaps=self._loading.gaps,
            loses=self._loading.loses,
        )
        self._repairs = [one for segment in segments for one in self._of_segments[segment.name]]
        self._leftovers()
        self._logs_that_go()
        self._without_successors()
        self._orphans()
        self._snapshots()
        self._leader_epochs()
        self._checkpoints()
        self._open_transactions()
        self.found.repairs = sorted(self._repairs, key=lambda repair: _place(repair.path.name))

    def _named(self, pattern: re.Pattern[str]) -> Iterator[tuple[str, Path]]:
        return (pair for pair in self._left.files.items() if pattern.fullmatch(pair[0]))

    def _write(self, path: Path, content: bytes, what: str, *, is_needed: bool = True) -> None:
        self._repairs.append(Repair(path, (what,), self._contents.keep(content), is_needed))

    def _remove(self, path: Path, why: str, *, is_needed: bool = True) -> None:
        self._repairs.append(Repair(path, (f"remove: {why}",), None, is_needed))

    def _leftovers(self) -> None:
        for name, why in sorted(self._left.removed.items()):
            self._remove(self._folder / name, why)
        for name, path in sorted(self._left.moved.items()):
            self._remove(path, self._loading.gone.get(path, f"{name} has its bytes then"))

    def _segment(self, segment: LoadedSegment) -> None:
        """What is to be done to a segment's files, as soon as it has been read."""
        self._repairs = []
        is_new = self._log(segment)
        self._indexes(segment, is_new=is_new)
        self._of_segments[segment.name] = self._repairs

    def _log(self, segment: LoadedSegment) -> bool:
        """Whether the segment's log is to be another than the file of its name."""
        path = self._folder / f"{segment.name}.log"
        log, stretches = segment.log, segment.stretches
        if log == Path():
            self._write(path, b"", "make: a log has one segment at least")
            return True
        size = log.stat().st_size
        is_whole = stretches == [Stretch(0, size)] or (size == 0 and not stretches)
        if is_whole and log == path:
            return False

        def new(staged: Path) -> None:
            _copy(log, stretches, staged)

        what = [_cut(gap, size) for gap in self._loading.gaps if gap.path == str(log)]
        if log == self._left.files.get(path.name):
            if log != path:
                what.insert(0, f"make of {log.name}: a swap was interrupted")
        else:
            what.insert(0, f"make of {log.name}: that is not where its offsets begin")
        self._repairs.append(Repair(path, tuple(what), new))
        return True

    def _indexes(self, segment: LoadedSegment, *, is_new: bool) -> None:
        aborted = segment.all_aborted
        contents = (*segment.indexes(), aborted.tobytes())
        for suffix, asked in zip(INDEX_SUFFIXES, contents, strict=True):
            path = self._folder / (segment.name + suffix)
            there = self._left.files.get(path.name)
            what = "make anew" if there is not None else "make"
            if is_new:
                if there is not None or asked or suffix != TXN_INDEX_SUFFIX:
                    self._write(path, asked, f"{what}: the log changes")
            elif there is None and suffix != TXN_INDEX_SUFFIX:
                self._write(path, asked, "make: it is missing")
            elif (misfit := self._misfit(segment, suffix, there, asked, aborted)) is not None:
                self._write(path, asked, f"{what}: {misfit}")
            elif there is not None and there != path:
                self._write(path, there.read_bytes(), f"make of {there.name}")

    def _misfit(
        self,
        segment: LoadedSegment,
        suffix: str,
        path: Path | None,
        asked: bytes,
        aborted: Entries,
    ) -> str | None:
        content = as_bytes(b"") if path is None else whole(str(path))[0]
        log, base_offset = str(segment.log), segment.base_offset
        if suffix == INDEX_SUFFIX:
            size, interval = segment.size, self._interval
            return misfit_of_offset_index(content, asked, log, size, base_offset, interval)
        if suffix == TIME_INDEX_SUFFIX:
            return misfit_of_time_index(content, asked, log, base_offset)
        segments = self._loading.segments
        logs = [str(one.log) for one in segments if one.base_offset <= base_offset]
        return misfit_of_transaction_index(
            content,
            aborted,
            segment.all_aborts,
            logs,
            known_since=segment.known_since,
            has_holes=self._loading.has_holes,
        )

    def _logs_that_go(self) -> None:
        for name, path in self._named(SEGMENT_NAME):
            if path.name == name and name[:20] not in self._stems:
                self._removed_logs.add(name[:20])
                renamed = [one.name for one in self._loading.segments if one.log == path]
                if renamed:
                    self._remove(path, f"it becomes {renamed[0]}.log")
                    continue
                size, why = path.stat().st_size, self._loading.gone[path]
                what = f"remove, {size} bytes, with its indexes and snapshot: {why}"
                self._repairs.append(Repair(path, (what,), None))

    def _without_successors(self) -> None:
        """Files in whose places others were to come, of which nothing stays."""
        known = {repair.path for repair in self._repairs}
        for name, path in sorted(self._left.moved.items()):
            live = self._folder / name
            if live not in known and live.exists():
                self._remove(live, f"{path.name} was to take its place")
                if SEGMENT_NAME.fullmatch(name):
                    self._removed_logs.add(name[:20])

    def _orphans(self) -> None:
        for name, path in self._named(_INDEX):
            # What is beside a log goes with it.
            if name[:20] not in self._stems | self._removed_logs and path.name == name:
                self._remove(path, "it has no log")

    def _snapshots(self) -> None:
        loading = self._loading
        for offset, (content, why) in sorted(loading.new_snapshots.items()):
            make = "make anew" if offset in loading.snapshots else "make"
            self._write(self._folder / f"{offset:020d}.snapshot", content, f"{make}: {why}")
        for offset, path in sorted(loading.snapshots.items()):
            stem = f"{offset:020d}"
            if offset in loading.right_snapshots:
                if stem in self._removed_logs:  # it would go with its log
                    self._keep(path)
            elif offset not in loading.new_snapshots and stem not in self._removed_logs:
                self._stray_snapshot(offset, path, is_base=stem in self._stems)

    def _keep(self, path: Path) -> None:
        content = path.read_bytes()
        self._repairs.append(Repair(path, (), self._contents.keep(content)))

    def _stray_snapshot(self, offset: int, path: Path, *, is_base: bool) -> None:
        if offset > self._loading.log_end_offset:
            self._remove(path, "it is behind the log's end")
            return
        try:
            entries = snapshot_entries(as_bytes(path.read_bytes()))
            problem = contradiction_in_snapshot(entries, offset)
        except CorruptSnapshotError as error:
            problem = f"{type(error).__name__}: {error.message}"
        if problem is not None:
            self._remove(path, problem)
        elif not is_base:  # brokers remove it when they load the log
            self._remove(path, "no segment begins with its offset", is_needed=False)

    def _leader_epochs(self) -> None:
        path = self._folder / LEADER_EPOCHS
        there, problem = _epochs_at(path)
        epochs = LeaderEpochs(() if self._loading.starts_anew else there)
        end = self._loading.log_end_offset
        seen: list[list[tuple[int, int]]] = []
        while epochs.entries not in seen:  # until a broker has loaded the log often enough
            seen.append(epochs.entries.copy())
            for epoch, offset in self._loading.epochs:
                if epochs.latest is None or epoch > epochs.latest:
                    epochs.assign(epoch, offset)
            epochs.truncate_from_end(end)
            epochs.truncate_from_start(min(self._loading.log_start_offset, end))
        # In a log that starts where it ends each load takes back what the one before has done.
        epochs.truncate_from_end(end)
        if problem is not None:
            self._write(path, epochs.text(), f"make anew: {problem}")
        elif epochs.entries != there:
            what = "make" if not path.is_file() else "make anew"
            # A leader that has written nothing yet is forgotten by brokers, and no damage.
            before_end = [entry for entry in there if entry[1] != end]
            is_needed = epochs.entries != before_end
            # Messages of v0 and v1 make brokers forget what they knew.
            is_needed &= not (self._loading.has_messages and set(before_end) <= set(epochs.entries))
            what += f": {_difference(there, epochs.entries)}"
            self._write(path, epochs.text(), what, is_needed=is_needed)

    def _open_transactions(self) -> None:
        """Those whose end may be among what is lost: consumers of committed records wait there."""
        lost = [gap.last_missing_offset for gap in self.found.gaps]
        behind = max((offset for offset in lost if offset is not None), default=-1)
        for producer, offset in self._loading.open_transactions:
            if offset <= behind:
                self.found.notes.append(
                    f"producer {producer}: its transaction from offset {offset} on is open, and "
                    "may have ended in what is lost"
                )

    def _checkpoints(self) -> None:
        end = self.found.log_end_offset
        for name, offsets in self._offsets.items():
            if offsets.problem is not None:
                self.found.notes.append(f"{offsets.path}: {offsets.problem}: brokers leave it out")
            elif offsets.offset is not None and offsets.offset > end:
                self._checkpoint(name, offsets.offset, end)

    def _checkpoint(self, name: str, offset: int, end: int) -> None:
        is_start = name == START_OFFSETS
        # A log that starts with its first segment is not named there.
        asked = None if is_start and end <= self._loading.segments[0].base_offset else end

        def new(staged: Path) -> None:  # others may be changed before
            staged.write_bytes(PartitionOffsets(self._folder, name).with_offset(asked))

        what = f"{self._folder.name}: {offset} becomes {'nothing' if asked is None else asked}"
        path = self._folder.parent / name
        self._repairs.append(Repair(path, (what,), new, first=is_start))


def _epochs_at(path: Path) -> tuple[list[tuple[int, int]], str | None]:
    """What a leader-epoch-checkpoint has, and why it cannot be read."""
    if not path.is_file():
        return [], None
    try:
        table = parse_leader_epochs(*whole(str(path)))
    except CorruptCheckpointError as error:
        return [], f"{type(error).__name__}: {error.message}"
    return [(row["epoch"], row["startOffset"]) for row in table.to_pylist()], None


def _difference(there: list[tuple[int, int]], asked: list[tuple[int, int]]) -> str:
    lost = [entry for entry in there if entry not in asked]
    added = [entry for entry in asked if entry not in there]
    parts = [
        f"{words} {', '.join(f'epoch {epoch} from offset {start}' for epoch, start in entries[:3])}"
        + (f" and {len(entries) - 3} more" if len(entries) > 3 else "")
        for words, entries in (("the log has not", lost), ("it lacks", added))
        if entries
    ]
    return "; ".join(parts)


def _cut(gap: Corruption, size: int) -> str:
    """What is said of bytes that go."""
    end = gap.position + gap.length
    if end == size:
        text = f"cut off at {gap.position}, {gap.length} bytes: {gap.reason}"
    else:
        text = f"cut out {gap.position} to {end}, {gap.length} bytes: {gap.reason}"
    first, last = gap.first_missing_offset, gap.last_missing_offset
    if first is None or gap.reason == "zeros":
        return text
    if first == last:
        return f"{text}; offset {first} is missing"
    return f"{text}; offsets from {first} {'on' if last is None else f'to {last}'} are missing"


def _place(name: str) -> tuple[str, bool, str]:
    """By segment, its log first; then what is of the whole log."""
    return name[:20] if name[:20].isdigit() else "~", not name.endswith(".log"), name


class _Contents:
    """Bytes that are to be written later, in memory as long as they are few."""

    def __init__(self) -> None:
        self._size = 0
        self._opened: int | None = None  # a file without a name

    def keep(self, content: bytes) -> Callable[[Path], None]:
        """Keep them; how to write them."""
        size = len(content)
        self._size += size
        if self._size <= _IN_MEMORY:
            return partial(_write, content)
        if self._opened is None:
            with TemporaryFile() as file:
                self._opened = os.dup(file.fileno())
            finalize(self, os.close, self._opened)
        start = os.lseek(self._opened, 0, os.SEEK_END)
        with os.fdopen(os.dup(self._opened), "wb") as end:
            end.write(content)

        def new(staged: Path) -> None:
            assert self._opened is not None
            staged.write_bytes(os.pread(self._opened, size, start))

        return new


def _write(content: bytes, staged: Path) -> None:
    staged.write_bytes(content)


def _copy(log: Path, stretches: list[Stretch], staged: Path) -> None:
    """The bytes of a log that stay. It is as old as the log was: retention looks at that."""
    with log.open("rb") as source, staged.open("wb") as target:
        for start, end in stretches:
            while start < end:
                copied = _copy_range(source.fileno(), target.fileno(), end - start, start)
                if copied == 0:
                    raise EOFError(f"{log} ended at {start}, before its {end} bytes")
                start += copied
        status = os.fstat(source.fileno())
    os.utime(staged, ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy_range(source: int, target: int, count: int, position: int) -> int:
    """Copy some bytes to where the target ends; how many."""
    try:
        return os.copy_file_range(source, target, min(count, _AT_ONCE), position)
    except OSError as error:
        if error.errno not in _NO_COPY_RANGE:
            raise
    return os.write(target, os.pread(source, min(count, _AT_ONCE), position))
