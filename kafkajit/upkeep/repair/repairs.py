"""The repairs of a partition's files, so that a broker finds its log right.

Answers to LogLoader.load of Kafka 4.1.1: the files become what it leaves on the disk. A file that
is right already stays, even if a broker would write it a little differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kafkajit.change.partition_offsets import PartitionOffsets
from kafkajit.errors import CorruptCheckpointError, CorruptSnapshotError
from kafkajit.format.amounts import number_of
from kafkajit.format.ranges import Range
from kafkajit.log.epochs import LeaderEpochs
from kafkajit.log.missing_offsets import Missing
from kafkajit.places.location import SEGMENT_NAME
from kafkajit.state.checkpoints import NAMES as CHECKPOINTS
from kafkajit.state.checkpoints import START_OFFSETS
from kafkajit.state.leader_epochs import LEADER_EPOCHS, epochs_in
from kafkajit.state.producer_snapshot import SNAPSHOT_NAME, snapshot_entries
from kafkajit.storage.source import as_bytes, read_small, whole
from kafkajit.system import disk
from kafkajit.upkeep.repair.broker_names import broker_names
from kafkajit.upkeep.repair.broker_start import topic_id_problem, unreadable_checkpoints
from kafkajit.upkeep.repair.census import take_census
from kafkajit.upkeep.repair.evidence import evidence_of
from kafkajit.upkeep.repair.file_repair import Contents, FileRepair, removal
from kafkajit.upkeep.repair.links import drop_aliases, links_in
from kafkajit.upkeep.repair.loading import LoadedLog, load
from kafkajit.upkeep.repair.losses import Loss
from kafkajit.upkeep.repair.lost_ends import LostEnd
from kafkajit.upkeep.repair.options import RepairOptions
from kafkajit.upkeep.repair.segment_reading import StoredLog
from kafkajit.upkeep.repair.sidecar_checks import contradiction_in_snapshot
from kafkajit.upkeep.repair.temp_files import LiveFiles, live_files

_INDEX = re.compile(r"\d{20}\.(?:index|timeindex|txnindex)", re.ASCII)

Epochs = list[tuple[int, int]]  # each with its start offset


@dataclass
class PartitionRepairs:
    """The repairs of a partition, and its log after them."""

    folder: Path
    segments: int
    bytes: int
    log_start_offset: int
    log_end_offset: int
    gaps: list[Loss]
    loses: int  # sound batches behind damage
    records: int  # that stay
    lost_ends: list[LostEnd]
    missing: list[Missing]
    repairs: list[FileRepair]
    notes: list[str]
    obstacles: list[str]  # what keeps a broker from loading the log, and stays as it is


@dataclass
class _Partition:
    """A partition's folder and the log loaded from it."""

    folder: Path
    files: LiveFiles
    snapshots: Mapping[int, Path]  # of producers, by offset
    checkpoints: Mapping[str, PartitionOffsets]
    contents: Contents
    log: LoadedLog

    @property
    def names(self) -> set[str]:
        """The names of the segments' files without their suffixes."""
        return {segment.name for segment in self.log.segments}

    @cached_property
    def homes(self) -> dict[Path, list[str]]:
        """The names of the segments that have the batches of each log then."""
        homes: dict[Path, list[str]] = {}
        for segment in self.log.segments:
            for log in dict.fromkeys((*segment.logs, segment.log)):
                if log is not None:
                    homes.setdefault(log, []).append(segment.name)
        return homes


def find_repairs(
    folder: Path, options: RepairOptions, progress: Callable[[int], None]
) -> PartitionRepairs:
    """Find all repairs of a partition. No file is changed.

    Args:
        folder: the partition's folder.
        options: how to treat the log.
        progress: is called with the number of bytes read since the last call.
    """
    files = live_files(folder, salvage=options.salvage)
    drop_aliases(files)
    checkpoints = {name: PartitionOffsets(folder, name) for name in CHECKPOINTS}
    snapshots = {int(name[:20]): path for name, path in files.matching(SNAPSHOT_NAME)}
    stored = StoredLog(
        folder,
        files.files,
        logs={int(name[:20]): path for name, path in files.matching(SEGMENT_NAME)},
        snapshots=snapshots,
        log_start_offset=max(0, checkpoints[START_OFFSETS].offset or 0),
        options=options,
        contents=Contents(),
        evidence=evidence_of(folder, files.files, checkpoints, options.config),
    )
    log = load(stored, progress)
    partition = _Partition(folder, files, stored.snapshots, checkpoints, stored.contents, log)
    repairs = [repair for segment in log.segments for repair in segment.repairs]
    repairs.extend(_temp_file_repairs(partition))
    removed = list(_log_removals(partition))
    removed.extend(_unreplaced_removals(partition, {one.path for one in [*repairs, *removed]}))
    repairs.extend(removed)
    removed_stems = {
        one.path.stem
        for one in repairs
        if one.write is None and SEGMENT_NAME.fullmatch(one.path.name)
    }
    repairs.extend(_orphan_removals(partition, removed_stems))
    repairs.extend(_snapshot_repairs(partition, removed_stems))
    repairs.extend(_epoch_repairs(partition))
    repairs.extend(_checkpoint_repairs(partition))
    names = broker_names(folder)
    return PartitionRepairs(
        folder,
        segments=len(log.segments),
        bytes=sum(segment.size for segment in log.segments),
        log_start_offset=max(log.segments[0].base_offset, log.log_start_offset),
        log_end_offset=log.log_end_offset,
        gaps=log.losses,
        loses=log.loses,
        records=log.records,
        lost_ends=log.lost_ends,
        missing=log.missing,
        repairs=sorted(repairs, key=lambda repair: _order(repair.path.name)),
        notes=[
            *links_in(files),
            *_replaced_records(partition),
            *_open_transactions(log, options),
            *names.notes,
        ],
        obstacles=[
            *names.obstacles,
            *topic_id_problem(folder),
            *unreadable_checkpoints(checkpoints),
        ],
    )


def _open_transactions(log: LoadedLog, options: RepairOptions) -> Iterator[str]:
    """Name transactions that stay open, if markers of all that lost theirs are asked for."""
    if options.abort.all or options.commit.all:
        for producer, offset in log.open_transactions:
            yield (
                f"the transaction of producer {producer} from offset {offset} on stays open: "
                "nothing shows that its marker is lost"
            )


def _temp_file_repairs(partition: _Partition) -> Iterator[FileRepair]:
    for name, why in sorted(partition.files.removed.items()):
        # A broker removes what waits to be deleted when it has loaded the log.
        is_needed = name not in partition.files.waiting
        yield removal(partition.folder / name, why, is_needed=is_needed)
    for name, path in sorted(partition.files.moved.items()):
        if path in partition.log.gone:
            yield _log_removal(partition, path)
        else:
            yield removal(path, f"{name} has its bytes then")


def _replaced_records(partition: _Partition) -> Iterator[str]:
    """Count the records of logs that a swap takes the place of, and does not have."""
    for name, swap in sorted(partition.files.replaced.items()):
        census = take_census(partition.folder / name, int(name[:20]), lambda _: None)
        count = sum(
            records
            for first, last, records in census.rows[["first", "last", "records"]].tolist()
            if first <= last and partition.log.kept.missing(Range(first, last)) == (first, last)
        )
        if count:
            yield (
                f"{swap}, which takes the place of {name}, does not have the offsets of "
                f"{number_of(count, 'record')}: the cleaner has removed them, or they are lost"
            )


def _log_removals(partition: _Partition) -> Iterator[FileRepair]:
    """Remove logs that have no segment any more."""
    names = partition.names
    for name, path in partition.files.matching(SEGMENT_NAME):
        if path.name == name and path.stem not in names:
            yield _log_removal(partition, path)


def _log_removal(partition: _Partition, log: Path) -> FileRepair:
    """Remove a log whose batches other segments have, or nobody."""
    size = log.stat().st_size
    others = partition.homes.get(log, [])
    why, losses = partition.log.gone.get(log, ("", []))
    if others:
        what = [f"remove: its batches are in {' and '.join(f'{name}.log' for name in others)} then"]
        if len(others) == 1 and not losses:
            what = [f"remove: it becomes {others[0]}.log"]
        return FileRepair(log, (*what, *(loss.text(size) for loss in losses)), None)
    beside = "with its indexes and snapshot"
    if len(losses) == 1 and losses[0].length == size:
        loss = losses[0]
        what = [f"remove, {size} bytes{loss.offsets_text}, {beside}: {loss.reason_text}"]
        return FileRepair(log, tuple(what), None)
    why = "none of its batches stays" if losses else why
    what = [f"remove, {size} bytes, {beside}: {why}"]
    return FileRepair(log, (*what, *(loss.text(size) for loss in losses)), None)


def _unreplaced_removals(partition: _Partition, known: set[Path]) -> Iterator[FileRepair]:
    """Remove files that a swap would have replaced with a file that loses all its bytes."""
    for name, path in sorted(partition.files.moved.items()):
        live = partition.folder / name
        if live not in known and live.exists():
            yield removal(live, f"{path.name} was to take its place")


def _orphan_removals(partition: _Partition, removed_stems: set[str]) -> Iterator[FileRepair]:
    """Remove indexes without a log; those of a log that goes are removed with it."""
    with_log = partition.names | removed_stems
    for name, path in partition.files.matching(_INDEX):
        if path.stem not in with_log and path.name == name:
            yield removal(path, "it has no log")


def _snapshot_repairs(partition: _Partition, removed_stems: set[str]) -> Iterator[FileRepair]:
    log, contents = partition.log, partition.contents
    for offset, (content, why) in sorted(log.new_snapshots.items()):
        verb = "rebuild" if offset in partition.snapshots else "create"
        path = partition.folder / f"{offset:020d}.snapshot"
        yield contents.writing(path, content, f"{verb}: {why}")
    names = partition.names
    for offset, path in sorted(partition.snapshots.items()):
        stem = f"{offset:020d}"
        if offset in log.right_snapshots:
            if stem in removed_stems:  # the log would take it along: write it again
                yield contents.writing(path, read_small(path))
        elif offset not in log.new_snapshots and stem not in removed_stems:
            yield from _stray_snapshot(path, offset, log.log_end_offset, is_base=stem in names)


def _stray_snapshot(path: Path, offset: int, end: int, *, is_base: bool) -> Iterator[FileRepair]:
    """Remove a snapshot that the log does not need, if a broker would or if it is wrong."""
    if offset > end:
        yield removal(path, "it is behind the log's end")
        return
    try:
        entries = snapshot_entries(as_bytes(read_small(path)))
        problem = contradiction_in_snapshot(entries, offset)
    except CorruptSnapshotError as error:
        problem = f"{type(error).__name__}: {error.message}"
    if problem is not None:
        yield removal(path, problem)
    elif not is_base:  # brokers remove it when they load the log
        yield removal(path, "no segment begins with its offset", is_needed=False)


def _epoch_repairs(partition: _Partition) -> Iterator[FileRepair]:
    path = partition.folder / LEADER_EPOCHS
    there, problem = _epochs_at(path)
    log = partition.log
    epochs = _loaded_epochs([] if log.starts_anew else there, log)
    write = partition.contents.writing
    if problem is not None:
        yield write(path, epochs.text(), f"rebuild: {problem}")
    elif epochs.entries != there:
        verb = "rebuild" if path.is_file() else "create"
        # Brokers forget a leader that has not written anything yet: that is not damage.
        before_end = [entry for entry in there if entry[1] != log.log_end_offset]
        is_needed = epochs.entries != before_end
        # Messages of v0 and v1 make brokers forget what they knew.
        is_needed &= not (log.has_messages and set(before_end) <= set(epochs.entries))
        what = f"{verb}: {_difference(there, epochs.entries)}"
        yield write(path, epochs.text(), what, is_needed=is_needed)


def _loaded_epochs(there: Epochs, log: LoadedLog) -> LeaderEpochs:
    """The leader epochs after a broker has loaded the log so often that they stay the same."""
    epochs, end = LeaderEpochs(there), log.log_end_offset
    seen: list[Epochs] = []
    while epochs.entries not in seen:
        seen.append(epochs.entries.copy())
        for epoch, offset in log.epochs:
            if epochs.latest is None or epoch > epochs.latest:
                epochs.assign(epoch, offset)
        epochs.truncate_from_end(end)
        epochs.truncate_from_start(min(log.log_start_offset, end))
    # If a log starts where it ends, each load takes back what the one before has done.
    epochs.truncate_from_end(end)
    return epochs


def _epochs_at(path: Path) -> tuple[Epochs, str | None]:
    """The entries of a leader-epoch-checkpoint, and the reason if it cannot be read."""
    if not path.is_file():
        return [], None
    try:
        return epochs_in(*whole(str(path))), None
    except CorruptCheckpointError as error:
        return [], f"{type(error).__name__}: {error.message}"


def _difference(there: Epochs, expected: Epochs) -> str:
    """Describe how the entries that are there differ from those that are expected."""
    lost = [entry for entry in there if entry not in expected]
    added = [entry for entry in expected if entry not in there]
    return "; ".join(
        f"{verb} {', '.join(f'epoch {epoch} from offset {start}' for epoch, start in entries[:3])}"
        + (f" and {len(entries) - 3} more" if len(entries) > 3 else "")
        for verb, entries in (("the log does not have", lost), ("it lacks", added))
        if entries
    )


def _checkpoint_repairs(partition: _Partition) -> Iterator[FileRepair]:
    """Correct checkpoints of log.dirs that have an offset behind the log's end."""
    folder, end = partition.folder, partition.log.log_end_offset
    for name, offsets in partition.checkpoints.items():
        if offsets.problem is None and offsets.offset is not None and offsets.offset > end:
            is_start = name == START_OFFSETS
            # A log that starts with its first segment has no entry there.
            is_named = not is_start or end > partition.log.segments[0].base_offset
            what = f"{folder.name}: {offsets.offset} becomes {end if is_named else 'nothing'}"
            write = _checkpoint_writer(folder, name, end if is_named else None)
            yield FileRepair(folder.parent / name, (what,), write, first=is_start)


def _checkpoint_writer(folder: Path, name: str, offset: int | None) -> Callable[[Path], None]:
    def write(staged: Path) -> None:  # read it only now: other partitions may change it before
        disk.write(staged, PartitionOffsets(folder, name).with_offset(offset))

    return write


def _order(name: str) -> tuple[str, bool, str]:
    """Sort by segment, its log first, and files of the whole log last."""
    return name[:20] if name[:20].isdigit() else "~", not name.endswith(".log"), name
