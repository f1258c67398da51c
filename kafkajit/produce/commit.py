"""Segments that tasks have staged → the logs of partitions, all of them or none."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby
from pathlib import Path

from kafkajit.change.change import Change
from kafkajit.change.files import check_files
from kafkajit.change.journal import READY
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
from kafkajit.state.partition_metadata import PARTITION_METADATA, read_partition_metadata
from kafkajit.storage.source import whole
from kafkajit.system import disk
from kafkajit.system.acting import reading_for

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
    with reading_for(options.path), locked(options, _PATIENCE_SECONDS):
        replaced = _replaced(by_partition, options) if overwrite else []
        every = sorted({*by_partition, *replaced})
        if not every:
            return
        with ExitStack() as held:
            # These locks keep out other threads of this process, too.
            for partition in every:
                held.enter_context(FolderLock(options.path / str(partition), force=options.force))
            # Not before: another process may have written meanwhile.
            (check_new if only_new else check_clear)(options.path, every)
            change = held.enter_context(Change(options.path / str(every[0]), "write"))
            begun = every if only_new else replaced
            _forget(change, options.path, begun)
            for partition in replaced:
                is_gone = partition not in by_partition
                _remove(change, options.path / str(partition), metadata=is_gone)
            for partition, segments in by_partition.items():
                commit_partition(
                    change,
                    partition,
                    segments,
                    work,
                    options,
                    is_new=partition in begun,
                    is_replaced=partition in replaced,
                )
            change.commit(keep=False)
        for partition in set(replaced) - by_partition.keys():
            with suppress(OSError):  # if it holds other files
                disk.remove_folder(options.path / str(partition))


def check_new(folder: Path, partitions: Collection[TopicPartition]) -> None:
    """Raise an error if the folder has a log of one of these partitions, or files in its way.

    >>> check_new(Path("/no/such/folder"), [TopicPartition("orders", 0)])
    """
    there = set(partitions_in(folder)) if folder.is_dir() else set()
    both = sorted(there & set(partitions))
    if both:
        names = ", ".join(map(str, both))
        raise FileExistsError(
            f"{folder} has a log of {names}, and an import overwrites nothing: name another folder"
        )
    check_clear(folder, partitions)


def check_clear(folder: Path, partitions: Iterable[TopicPartition]) -> None:
    """Raise an error if files in the folders of partitions are in the way of their logs.

    A folder without a log may have files of others under the names that a new log's files get. The
    only such file that it may have is partition.metadata, as a broker writes it.

    >>> check_clear(Path("/no/such/folder"), [TopicPartition("orders", 0)])
    """
    there = set(partitions_in(folder)) if folder.is_dir() else set()
    for partition in partitions:
        path = folder / str(partition)
        if not os.path.lexists(path):
            continue
        if not path.is_dir():
            raise NotADirectoryError(
                f"{path} is not a folder, and the log of {partition} would be in it: name another "
                "folder, or remove it"
            )
        check_files(path)
        names = sorted(inside.name for inside in path.iterdir())
        if READY in names:  # otherwise it has been finished, because the folder is locked
            raise FileExistsError(
                f"{path} has an interrupted change: `kafkajit repair --apply` finishes it"
            )
        taken = [] if partition in there else [*filter(_is_a_logs, names)]
        if taken:
            more = f" and {len(taken) - 1:,} more" if len(taken) > 1 else ""
            raise FileExistsError(
                f"{path / taken[0]}{more}: the log of {partition} would replace or remove it, and "
                "it is not known to be a log's: name another folder, or remove it"
            )
        if PARTITION_METADATA in names:
            read_partition_metadata(path / PARTITION_METADATA)


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
            disk.write(change.new(path, first=True), offsets_text(kept))


def _remove(change: Change, folder: Path, *, metadata: bool) -> None:
    """Remove a partition's log, and with `metadata` its partition.metadata."""
    for path in folder.iterdir():
        if _is_a_logs(path.name) or (metadata and path.name == PARTITION_METADATA):
            change.remove(path)


def _is_a_logs(name: str) -> bool:
    return is_segment_file(name) or name == LEADER_EPOCHS
