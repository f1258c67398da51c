"""Restore logs from tiered storage or a backup into a log.dirs folder.

A plan lists what would be written, and its `apply` writes it: each partition whole or not at all.
Answers to LogLoader of Kafka 4.1.1, which has to find the log as a stopped broker leaves it.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from kafkajit.change.files import local_folder
from kafkajit.change.journal import logs_in
from kafkajit.change.lock import FolderLock, check_is_no_part_of_a_broker
from kafkajit.change.partition_plan import UpkeepPlan
from kafkajit.errors import CorruptCheckpointError, KafkaJitError, RemoteStorageError
from kafkajit.format.moment import Time, python_time
from kafkajit.places.location import absolute
from kafkajit.places.private_keys import PrivateKeys
from kafkajit.system import disk
from kafkajit.system.acting import reading_for
from kafkajit.upkeep.restore.kept_segments import DAMAGED
from kafkajit.upkeep.restore.options import RestoreOptions
from kafkajit.upkeep.restore.partition_restoration import PartitionRestoration, partition_plan
from kafkajit.upkeep.restore.source_logs import find_logs
from kafkajit.upkeep.restore.target import Target, check_targets, check_topic_id


class RestorationPlan(UpkeepPlan[PartitionRestoration]):
    """The partitions to restore; its text is the output of the command."""

    left_out: tuple[tuple[str, str], ...] = ()  # partitions that are not restored, and why

    unsearched: tuple[KafkaJitError, ...] = ()  # folders of segments that no path names

    @property
    def losses(self) -> list[KafkaJitError]:
        """The parts of the sources that are left out although nobody asked for that."""
        return [*self.unsearched, *(loss for one in self.partitions for loss in one.losses)]

    def __str__(self) -> str:
        others = [f"{name}: left out: {reason}" for name, reason in self.left_out]
        others += [str(error) for error in self.unsearched]
        return "\n".join([*filter(None, [super().__str__()]), *others])

    def apply(self, *, keep: bool = False, force: bool = False) -> list[Path]:
        """Write the partitions.

        Args:
            keep: keep the files of empty logs that are replaced.
            force: go on although a running broker, or another process, holds the folder's lock.
        """
        if not self.partitions:
            return []
        self.check_room()
        with lock_of(self.location, force=force):
            return self._applied(keep=keep)

    def check_room(self) -> None:
        """Raise an error if the segments do not fit on the disk."""
        there = next(path for path in (self.location, *self.location.parents) if path.exists())
        size, free = sum(plan.size for plan in self.partitions), shutil.disk_usage(there).free
        if size > free:
            raise OSError(
                errno.ENOSPC,
                f"the logs need {size:,} bytes, and {free:,} are free: choose fewer partitions, or "
                "another disk",
                str(self.location),
            )


def lock_of(folder: Path, *, force: bool = False) -> FolderLock:
    """The lock of a log.dirs folder, which is made if it does not exist."""
    disk.make_folders(folder)
    # A folder may be called kafka-1 and be log.dirs: a name in it leaves no doubt.
    return FolderLock(folder / "?-0", force=force)


def restore(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    *,
    topics: Iterable[str] | str = (),
    partitions: Iterable[str] | str = (),
    starting_offset: int | None = None,
    ending_offset: int | None = None,
    starting_timestamp: Time | None = None,
    ending_timestamp: Time | None = None,
    topic_ids: Mapping[str, str] | None = MappingProxyType({}),
    into_existing_topics: bool = False,
    leader_epoch: int | None = None,
    private_keys: Mapping[str, str] | None = None,
) -> RestorationPlan:
    """Plan the restoration of logs from tiered storage or a backup.

    No file is written before you call the plan's `apply`. A partition that exists in the folder is
    an error.

    Args:
        sources: locations of tiered segments or of partitions' folders: paths, globs or URIs.
            Tiered segments and a broker's folder are one log if they have the same topic id.
        folder: the log.dirs folder to write to.
        topics: the topics to restore; by default all but the brokers' own.
        partitions: the partitions to restore, such as orders-0.
        starting_offset: the log start offset of the only partition.
        ending_offset: the offset before which the only partition ends.
        starting_timestamp: milliseconds, a datetime, or a text as the command takes it; a log
            begins with the first record that has this timestamp or a later one. Its batch is kept
            whole, and the log start offset hides the records before it.
        ending_timestamp: the same; a log ends exactly before the first record that has this
            timestamp or a later one. The batch of that record is written with the records before.
        topic_ids: the ids of topics, if they are not to be those of the source. None: no
            partition.metadata is written.
        into_existing_topics: fill the empty partitions that a broker has made in the folder, which
            keep their topics' ids; batches then get leader epoch 0.
        leader_epoch: the epoch to write into all batches, instead of their own.
        private_keys: files of private keys by their ids, for encrypted tiered segments.

    >>> import kafkajit.testing as kt
    >>> ids = {"payments": "pUM3BMsVQk2fe-klgEgLLA"}
    >>> print(restore(f"{kt.SAMPLE}/payments-0", "/no/such/folder", topic_ids=ids))
    payments-0: 2 segments, 1,015 bytes, offsets 0 to 26, 2025-11-05T00:00:00.000Z to
    2025-11-05T00:26:00.000Z
      topic id pUM3BMsVQk2fe-klgEgLLA
      missing: offsets 10 to 19 are in no source
    """
    given = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    options = RestoreOptions.of(
        topics=topics,
        partitions=partitions,
        starting_offset=starting_offset,
        ending_offset=ending_offset,
        starting_timestamp=python_time(starting_timestamp),
        ending_timestamp=python_time(ending_timestamp),
        topic_ids=topic_ids,
        into_existing_topics=into_existing_topics,
        leader_epoch=leader_epoch,
        keys=PrivateKeys.of(private_keys),
    )
    return plan_of([os.fspath(source) for source in given], folder, options)


def plan_of(
    sources: Iterable[str],
    folder: str | os.PathLike[str],
    options: RestoreOptions,
    failed: Callable[[Exception], None] | None = None,
) -> RestorationPlan:
    """Plan the restoration of all chosen partitions.

    The plan leaves out damaged partitions, and calls `failed` with their errors; None: it raises.
    """
    root = local_folder(folder)
    with reading_for(root):  # its owner gets what is read
        return _plan_of(root, sources, options, failed)


def _plan_of(
    root: Path,
    sources: Iterable[str],
    options: RestoreOptions,
    failed: Callable[[Exception], None] | None,
) -> RestorationPlan:
    if root.exists() and not root.is_dir():
        raise NotADirectoryError(f"{root} is not a folder: name the log.dirs folder to write to")
    if logs_in(root):
        raise ValueError(f"{root} is a partition's folder: name the log.dirs folder around it")
    check_is_no_part_of_a_broker(root)
    found = find_logs(map(absolute, sources), options)
    left_out = list(found.left_out)
    chosen = []
    for log in found.logs:
        target = Target.at(root / log.name)
        is_filled = options.into_existing_topics and target.is_empty_log
        if options.skip_existing and target.obstacle is not None and not is_filled:
            left_out.append((log.name, target.obstacle))
        else:
            chosen.append((log, target))
    check_targets([target for _, target in chosen], into_existing=options.into_existing_topics)
    plan = RestorationPlan(root, [])
    for error in found.unread:
        if failed is None:
            raise error
        failed(error)
    for log, target in chosen:
        try:
            plan.partitions.append(partition_plan(log, target.folder, options))
        except (KafkaJitError, OSError) as error:
            is_damage = _is_damage(error) or any(error is one.error for one in log.unread)
            if failed is None or not is_damage:
                raise
            failed(error)
    plan.left_out = tuple(sorted(left_out))
    plan.unsearched = tuple(found.unsearched)
    for topic, id_ in sorted(
        {(one.source.topic, one.topic_id) for one in plan.partitions}, key=str
    ):
        if id_ is not None:
            check_topic_id(root, topic, id_)
    return plan


def _is_damage(error: KafkaJitError | OSError) -> bool:
    """Whether a log, or a file beside it, is damaged. A missing key is not damage."""
    if isinstance(error, OSError):
        return isinstance(error, PermissionError)
    if isinstance(error, RemoteStorageError):
        return error.lost is not None
    return isinstance(error, (*DAMAGED, CorruptCheckpointError))
