"""Facts about a partition's log, taken from the files beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from kafkajit.change.partition_offsets import PartitionOffsets
from kafkajit.format.log_path import INDEX_SUFFIX, TIME_INDEX_SUFFIX, partition_of
from kafkajit.index.offset_index import ENTRY as OFFSET_ENTRY
from kafkajit.index.time_index import ENTRY as TIME_ENTRY
from kafkajit.log.config import LogConfig
from kafkajit.log.evidence import REMOTE_INDEXES, add_configs, take_evidence
from kafkajit.log.missing_offsets import Evidence
from kafkajit.log.topic_configs import topic_configs
from kafkajit.storage.source import read_small
from kafkajit.upkeep.repair.log_bodies import Facts


def evidence_of(
    folder: Path,
    files: Mapping[str, Path],
    checkpoints: Mapping[str, PartitionOffsets],
    config: LogConfig,
) -> Evidence:
    """Take the evidence that the files beside a partition's logs have."""
    topic = partition_of(folder).topic
    evidence = take_evidence(
        {path.name: 0 for path in folder.glob("*.deleted")}
        | {name: path.stat().st_size for name, path in files.items()},
        lambda name: read_small(files[name]),
        {name: offsets.offset for name, offsets in checkpoints.items()},
        topic=topic,
        may_be_tiered=(folder.parent / REMOTE_INDEXES).is_dir(),
    )
    add_configs(evidence, topic_configs(folder.parent).get(topic or "", {}))
    if config.compact:
        evidence.why_cleaned = evidence.why_cleaned or "its cleanup.policy is compact"
    return evidence


def facts_of(evidence: Evidence, files: Mapping[str, Path], snapshots: Mapping[int, Path]) -> Facts:
    """Conclude what the offsets of a log can be."""
    ends = [*(offset for offset, _ in evidence.ends), *snapshots]
    known = [*(end - 1 for end in ends), *_indexed(files)]
    return Facts(max(known, default=-1), evidence.why_cleaned is not None)


def _indexed(files: Mapping[str, Path]) -> Iterator[int]:
    """The last offset in each index; zeros at its end are preallocated."""
    for name, path in files.items():
        for suffix, kind in ((INDEX_SUFFIX, OFFSET_ENTRY), (TIME_INDEX_SUFFIX, TIME_ENTRY)):
            if name.endswith(suffix) and name[:20].isdecimal():
                content = read_small(path)
                whole = len(content) // kind.itemsize * kind.itemsize
                relative = np.frombuffer(content[:whole], kind)["relativeOffset"]
                if (relative > 0).any():
                    yield int(name[:20]) + int(relative.max())
