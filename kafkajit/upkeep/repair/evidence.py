"""Facts about a log's offsets, taken from the files beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from kafkajit.change.partition_offsets import PartitionOffsets
from kafkajit.errors import CorruptCheckpointError
from kafkajit.format.log_path import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from kafkajit.index.offset_index import ENTRY as OFFSET_ENTRY
from kafkajit.index.time_index import ENTRY as TIME_ENTRY
from kafkajit.log.config import LogConfig
from kafkajit.state.checkpoints import CLEANER_OFFSETS, HIGH_WATERMARKS, RECOVERY_POINTS
from kafkajit.state.leader_epochs import LEADER_EPOCHS, parse_leader_epochs
from kafkajit.storage.source import whole
from kafkajit.upkeep.repair.log_bodies import Facts


def facts_of(
    folder: Path,
    files: Mapping[str, Path],
    snapshots: Mapping[int, Path],
    checkpoints: Mapping[str, PartitionOffsets],
    config: LogConfig,
) -> Facts:
    """Take facts about a partition's logs from the files beside them."""
    known = [*snapshots, *_epoch_starts(folder), *_indexed(files)]
    names = (HIGH_WATERMARKS, RECOVERY_POINTS, CLEANER_OFFSETS)
    known += [checkpoints[name].offset or 0 for name in names]
    greatest = max(known, default=0)
    cleaned = checkpoints[CLEANER_OFFSETS].offset
    was_cleaned = config.compact or (cleaned is not None and cleaned > 0)
    return Facts(greatest if greatest > 0 else -1, was_cleaned)


def _epoch_starts(folder: Path) -> list[int]:
    path = folder / LEADER_EPOCHS
    if not path.is_file():
        return []
    try:
        return list(parse_leader_epochs(*whole(str(path)))["startOffset"].to_pylist())
    except CorruptCheckpointError:
        return []


def _indexed(files: Mapping[str, Path]) -> Iterator[int]:
    """The last offset in each index; zeros at its end are preallocated."""
    for name, path in files.items():
        for suffix, kind in ((INDEX_SUFFIX, OFFSET_ENTRY), (TIME_INDEX_SUFFIX, TIME_ENTRY)):
            if name.endswith(suffix) and name[:20].isdecimal():
                content = path.read_bytes()
                whole_entries = len(content) // kind.itemsize * kind.itemsize
                entries = np.frombuffer(content[:whole_entries], kind)
                relative = entries["relativeOffset"]
                if (relative > 0).any():
                    yield int(name[:20]) + int(relative.max())
