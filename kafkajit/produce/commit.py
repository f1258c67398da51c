"""Segments that tasks have staged → the logs of partitions, all of them or none."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby
from pathlib import Path

from kafkajit.change.change import Change
from kafkajit.change.lock import FolderLock
from kafkajit.errors import InvalidOffsetError, LockedError
from kafkajit.format.log_path import is_segment_file
from kafkajit.places.location import SEGMENT_NAME
from kafkajit.produce.commit_partition import commit_partition
from kafkajit.produce.options import STATIC, ProduceOptions
from kafkajit.produce.router import TopicPartition
from kafkajit.produce.task_output import SORT, StagedSegment
from kafkajit.state.checkpoints import NAMES as CHECKPOINTS
from kafkajit.state.checkpoints import offsets_text, parse_offsets
from kafkajit.state.leader_epochs import LEADER_EPOCHS
from kafkajit.state.partition_metadata import PARTITION_METADATA
from kafkajit.storage.source import whole

_FOLDER = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)")
# A name that locks the folder as a partition's would; no topic can have it.
_ANY = "?-0"
# Another job holds the lock while it commits, a broker as long as it runs.
_PATIENCE_SECONDS = 300
_POLL_SECONDS = 0.2


def commit(
    staged: Iterable[StagedSegment],
    work: Path,
    options: ProduceOptions,
    *,
    overwrite: bool = False,
    only_new: bool = False,
) -> None:
    """Add staged segments to the logs in the folder that the options name.

    Args:
        staged: the segments in the order of tasks: the order that a partition's rows have in its
            log.
        work: a folder on the same file system, for segments that are written again.
        options: the job's options.
        overwrite: whether to replace existing logs instead of appending to them.
        only_new: whether an existing log is an error. What checkpoints have of earlier logs of
            these partitions is removed.
    """
    by_partition = _by_partition(staged, options)
    with locked(options, _PATIENCE_SECONDS):
        replaced = _replaced(by_partition, options) if overwrite else []
        every = sorted({*by_partition, *replaced})
        if not every:
            return
        with ExitStack() as held:
            # These locks keep out other threads of this process, too.
            for partition in every:
                held.enter_context(FolderLock(options.path / str(partition), force=options.force))
            if only_new:  # not before: another process may have written one meanwhile
                check_new(options.path, every)
            change = held.enter_context(Change(options.path / str(every[0]), "write"))
            begun = every if only_new else replaced
            _forget(change, options.path, begun)
            for partition in replaced:
                is_gone = partition not in by_partition
                _remove(change, options.path / str(partition), metadata=is_gone)
            for partition, segments in by_partition.items():
                is_new = partition in begun
                commit_partition(change, partition, segments, work, options, is_new=is_new)
            change.commit(keep=False)
        for partition in set(replaced) - by_partition.keys():
            with suppress(OSError):  # if it holds other files
                (options.path / str(partition)).rmdir()


def check_new(folder: Path, partitions: Iterable[TopicPartition]) -> None:
    """Raise an error if the folder has a log of one of these partitions.

    >>> check_new(Path("/no/such/folder"), [TopicPartition("orders", 0)])
    """
    there = set(partitions_in(folder)) if folder.is_dir() else set()
    both = sorted(there & set(partitions))
    if both:
        names = ", ".join(map(str, both))
        raise FileExistsError(
            f"{folder} has a log of {names}, and an import overwrites nothing: name another folder"
        )


@contextmanager
def locked(options: ProduceOptions, patience: float) -> Iterator[None]:
    """Hold the folder's lock; wait up to `patience` seconds while others hold it."""
    deadline = time.monotonic() + patience
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(FolderLock(options.path / _ANY, force=options.force))
                break
            except LockedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_SECONDS)
        yield


def _by_partition(
    staged: Iterable[StagedSegment], options: ProduceOptions
) -> dict[TopicPartition, list[StagedSegment]]:
    of_partition = lambda segment: segment.partition  # noqa: E731
    in_order = sorted(staged, key=of_partition)  # stable: a partition's segments keep their order
    grouped = {key: list(group) for key, group in groupby(in_order, of_partition)}
    for segment in in_order:
        log = segment.path(".log")
        if not log.exists() or log.stat().st_size != segment.size:
            raise FileNotFoundError(
                f"{log} is not as its task left it: driver and executors must share the folder "
                "that is written to"
            )
    topics = sorted({partition.topic for partition in grouped})
    if options.topic_id is not None and len(topics) > 1:
        raise ValueError(
            f"the option topicId is for one topic, and rows are for {', '.join(topics)}"
        )
    for partition, segments in grouped.items():
        if options.keep_offsets:
            segments.sort(key=lambda segment: segment.base_offset)
            ends = [segment.next_offset for segment in segments]
            begins = [segment.base_offset for segment in segments[1:]]
            if any(end > begin for end, begin in zip(ends[:-1], begins, strict=True)):
                raise InvalidOffsetError(
                    f"the rows of {partition} are in several tasks or files, and their offsets "
                    "overlap: "
                    f"{SORT}"
                )
    return grouped


def _replaced(written: Collection[TopicPartition], options: ProduceOptions) -> list[TopicPartition]:
    """The partitions whose logs are removed."""
    there = partitions_in(options.path)
    if options.partition_overwrite_mode == STATIC:
        return there
    return [partition for partition in there if partition in written]


def partitions_in(folder: Path) -> list[TopicPartition]:
    """The partitions whose folders hold a log."""
    found = []
    for path in sorted(folder.iterdir()):
        name = _FOLDER.fullmatch(path.name)
        if name is None or not any(
            SEGMENT_NAME.fullmatch(file.name) for file in path.glob("*.log")
        ):
            continue
        partition = TopicPartition(name["topic"], int(name["partition"]))
        if str(partition) == path.name:
            found.append(partition)
    return found


def _forget(change: Change, folder: Path, partitions: Collection[TopicPartition]) -> None:
    """Remove partitions from the folder's checkpoints, because their logs begin anew."""
    for name in CHECKPOINTS:
        path = folder / name
        if not partitions or not path.exists():
            continue
        rows = parse_offsets(*whole(str(path))).to_pylist()
        kept = [
            (row["topic"], row["partition"], row["offset"])
            for row in rows
            if (row["topic"], row["partition"]) not in partitions
        ]
        if len(kept) < len(rows):
            # A broker deletes a log that ends before its start.
            change.new(path, first=True).write_bytes(offsets_text(kept))


def _remove(change: Change, folder: Path, *, metadata: bool) -> None:
    """Remove a partition's log, and with `metadata` its partition.metadata."""
    for path in folder.iterdir():
        is_a_logs = is_segment_file(path.name) or path.name == LEADER_EPOCHS
        if is_a_logs or (metadata and path.name == PARTITION_METADATA):
            change.remove(path)
