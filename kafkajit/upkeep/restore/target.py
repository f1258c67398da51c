"""The folder that a partition is restored into, which must not hold a log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kafkajit.change.change import Change
from kafkajit.change.files import check_files
from kafkajit.change.journal import READY
from kafkajit.change.partition_offsets import PartitionOffsets
from kafkajit.change.partitions import interrupted_in
from kafkajit.format.log_path import LOG_SUFFIX, is_segment_file, partition_of
from kafkajit.log.log import Log
from kafkajit.log.missing_segments import missing_around
from kafkajit.state.checkpoints import NAMES as CHECKPOINTS
from kafkajit.state.checkpoints import START_OFFSETS
from kafkajit.state.leader_epochs import LEADER_EPOCHS
from kafkajit.state.partition_metadata import PARTITION_METADATA, read_partition_metadata
from kafkajit.system import disk

_FIRST_LOG = f"{0:020d}{LOG_SUFFIX}"


@dataclass(frozen=True)
class Target:
    """A partition's folder as it is before the restoration."""

    folder: Path
    topic_id: str | None  # in its partition.metadata
    obstacle: str | None  # why the partition cannot be restored here
    is_empty_log: bool  # a broker has made the partition, and nothing was written to it yet

    @classmethod
    def at(cls, folder: Path) -> Target:
        """Look at a folder, which need not exist."""
        if not folder.exists():
            return cls(folder, None, None, is_empty_log=False)
        if not folder.is_dir():
            return cls(folder, None, "it is a file", is_empty_log=False)
        check_files(folder)
        if (folder / READY).exists():
            return cls(
                folder,
                None,
                "a change was interrupted there; `kafkajit repair --apply` finishes it",
                is_empty_log=False,
            )
        left = {name for name, _ in interrupted_in(folder)}
        found = {path.name: path for path in folder.iterdir() if path.name not in left}
        if not found:
            return cls(folder, None, None, is_empty_log=False)
        topic_id = None
        if PARTITION_METADATA in found:
            (row,) = read_partition_metadata(found[PARTITION_METADATA]).to_pylist()
            topic_id = row["topicId"]
        logs = {name: path for name, path in found.items() if LOG_SUFFIX in name}
        obstacle, is_empty = "it is there already", False
        if set(logs) == {_FIRST_LOG} and not logs[_FIRST_LOG].stat().st_size:
            obstacle, is_empty = "it is there already, with an empty log", True
            had = _records_before(folder)
            if had is not None:
                obstacle, is_empty = f"its log is empty, but {had}", False
        return cls(folder, topic_id, obstacle, is_empty_log=is_empty)

    def clear(self, change: Change) -> None:
        """Remove the files of an empty log; partition.metadata stays, and files of others."""
        for path in self.folder.iterdir() if self.is_empty_log else ():
            is_a_logs = is_segment_file(path.name) or path.name == LEADER_EPOCHS
            if path.is_file() and is_a_logs:
                change.remove(path)

    def set_offsets(self, change: Change, start_offset: int | None) -> None:
        """Note where the log starts, and forget what checkpoints have of an earlier log.

        Without an entry, a broker takes the first segment's offset for the start and recovers the
        log from there, unless it was stopped cleanly.
        """
        for name in CHECKPOINTS:
            offsets = PartitionOffsets(self.folder, name)
            wanted = start_offset if name == START_OFFSETS else None
            if offsets.offset != wanted:
                content = offsets.with_offset(wanted)
                # A broker deletes a log that ends before its start.
                goes_back = wanted is None or wanted < (offsets.offset or 0)
                disk.write(change.new(offsets.path, first=goes_back), content)


def _records_before(folder: Path) -> str | None:
    """A reason to believe that an empty log has had records, by the files beside it, or None."""
    for missing in missing_around(Log(folder).segments):
        return missing.text
    start = PartitionOffsets(folder, START_OFFSETS).offset or 0
    return f"{START_OFFSETS} says that it begins at offset {start}" if start > 0 else None


def check_targets(targets: list[Target], *, into_existing: bool) -> None:
    """Raise an error that names the partitions that are in the way, or that are not there."""
    blocked = [one for one in targets if one.obstacle and not (into_existing and one.is_empty_log)]
    if blocked:
        raise FileExistsError("; ".join(_described(blocked)))
    if into_existing:
        missing = [one.folder.name for one in targets if not one.is_empty_log]
        if missing:
            raise FileNotFoundError(
                f"{', '.join(missing)}: no such folder in {targets[0].folder.parent}: create the "
                "topic with as many partitions, and stop the broker"
            )


def check_topic_id(root: Path, topic: str, topic_id: str) -> None:
    """Raise an error if a partition of the topic is in the folder under another id."""
    for path in sorted(root.glob(f"*/{PARTITION_METADATA}")):
        if partition_of(path.parent)[:1] != (topic,) or path.parent.name.startswith("."):
            continue
        (row,) = read_partition_metadata(path).to_pylist()
        if row["topicId"] != topic_id:
            raise ValueError(
                f"{path.parent} has the topic id {row['topicId']}, and another partition of "
                f"{topic} would get {topic_id}: is it another cluster's? pass --topic-id "
                f"{topic}={row['topicId']} --leader-epoch 0"
            )


def _described(blocked: list[Target]) -> Iterator[str]:
    for one in blocked[:10]:
        yield f"{one.folder} is not overwritten: {one.obstacle}"
    if len(blocked) > 10:
        yield f"and {len(blocked) - 10} more"
    if any(one.is_empty_log for one in blocked):
        yield "--into-existing-topics replaces empty logs"
    else:
        yield "name other partitions, or pass --skip-existing"
