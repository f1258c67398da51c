"""Reasons for which a broker does not load sound logs, and which a repair leaves alone.

Answers to LogManager.loadLogs, PartitionMetadataFile and CheckpointFileWithFailureHandler of Kafka
4.1.1. If they cannot parse a file or a folder's name, the broker ends, or takes all partitions of
the log.dirs folder offline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from kafkajit.change.partition_offsets import PartitionOffsets
from kafkajit.errors import CorruptCheckpointError
from kafkajit.format.log_path import partition_of
from kafkajit.state.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
)
from kafkajit.state.meta_properties import META_PROPERTIES, read_meta_properties
from kafkajit.state.partition_metadata import PARTITION_METADATA, read_partition_metadata

_WITHOUT = {
    CLEANER_OFFSETS: "compact logs from their start",
    HIGH_WATERMARKS: "begin with the high watermark at each log's start",
    RECOVERY_POINTS: "check all of each log after a crash",
    START_OFFSETS: "start each log with its first segment",
}
_WRITE_ID = (
    "write the lines `version: 0` and `topic_id: ID` into it, with the TopicId that "
    "`kafka-topics.sh --describe` prints"
)
_REMOTE_INDEXES = "remote-log-index-cache"  # a broker's own


def unreadable_checkpoints(checkpoints: Mapping[str, PartitionOffsets]) -> Iterator[str]:
    """Name the checkpoints of a log.dirs folder that no broker can read."""
    for name, offsets in checkpoints.items():
        if offsets.problem is not None:
            yield (
                f"{offsets.path}: {offsets.problem}: a broker takes the whole log.dirs folder "
                f"offline: move the file away, and brokers {_WITHOUT[name]}"
            )


def topic_id_problem(folder: Path) -> Iterator[str]:
    """Report a partition.metadata that a broker cannot read, or needs and does not find."""
    path = folder / PARTITION_METADATA
    if path.is_file():
        try:
            read_partition_metadata(str(path))
        except CorruptCheckpointError as error:
            yield (
                f"{PARTITION_METADATA}: {error.message}: a broker ends, or takes the whole "
                f"log.dirs folder offline: {_WRITE_ID}"
            )
    elif _is_of_kraft(folder.parent):
        yield (
            f"{PARTITION_METADATA} is missing: a broker takes the log for one of a deleted topic, "
            f"and renames its folder to {folder.name}.…-stray: {_WRITE_ID}"
        )


def foreign_folders(log_dirs: Path) -> list[str]:
    """The names of folders in a broker's log.dirs folder with which no broker starts."""
    if not (log_dirs / META_PROPERTIES).is_file():
        return []  # a backup may have other folders
    return sorted(
        folder.name
        for folder in log_dirs.iterdir()
        if folder.is_dir() and folder.name != _REMOTE_INDEXES and _is_foreign(folder)
    )


def _is_foreign(folder: Path) -> bool:
    """Whether a name is not a partition's, or is another one for a partition that is there."""
    topic, partition, *_ = partition_of(folder)
    own = folder.with_name(f"{topic}-{partition}")
    is_other = folder != own and folder.name.rpartition("-")[2].isdecimal()  # such as orders-00
    return topic is None or (is_other and own.is_dir())


def _is_of_kraft(log_dirs: Path) -> bool:
    """Whether a broker without ZooKeeper writes to this log.dirs folder."""
    path = log_dirs / META_PROPERTIES
    try:
        rows = read_meta_properties(str(path)).to_pylist() if path.is_file() else []
    except CorruptCheckpointError:
        return False
    return {"key": "version", "value": "1"} in rows
