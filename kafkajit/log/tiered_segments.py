"""The segments of a tiered partition as one log: each offset once, along the lineage of epochs.

Segments overlap as a matter of course: a new leader copies segments that the old one has copied,
and a broker keeps for a while what is in tiered storage. Copies have the same batches. If an
unclean election has lost records, their segments stay, too: a segment counts up to the offset at
which its leader epochs leave those of the log that went on.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kafkajit.errors import CorruptCheckpointError
from kafkajit.format.log_path import LOG_SUFFIX, partition_of
from kafkajit.format.tiered_names import object_name
from kafkajit.log.segment import OpenSegment, Segment, segments_of
from kafkajit.places.tiered_files import TieredFile
from kafkajit.state.leader_epochs import LEADER_EPOCHS, parse_leader_epochs
from kafkajit.state.partition_metadata import PARTITION_METADATA, parse_partition_metadata
from kafkajit.storage.source import as_bytes
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.selection import Range

logger = logging.getLogger("kafkajit")

# Beside a segment in tiered storage; its epochs go back to the first one of the log.
_EPOCHS_SUFFIX = ".leader_epoch_checkpoint"
Epochs = list[tuple[int, int]]  # leader epochs, each with its first offset, in order


class _Copy(NamedTuple):
    """A segment with the offsets that it has, and the leader epochs that it was written in."""

    segment: Segment
    offsets: Range
    epochs: Epochs

    @property
    def is_tiered(self) -> bool:
        return isinstance(self.segment.log, TieredFile)


def joined(segments: Sequence[Segment], files: Mapping[str, StoredFile]) -> list[Segment]:
    """The segments to read, in the order of offsets, each with those that no other one has."""
    if not any(isinstance(segment.log, TieredFile) for segment in segments):
        return list(segments)
    copies = [_copy(segment, files) for segment in segments if segment.log.size]
    copies.sort(key=lambda copy: (copy.offsets.first, copy.is_tiered, -copy.offsets.last))
    lineage: Epochs = []
    if any(copy.offsets.first <= before.offsets.last for before, copy in pairwise(copies)):
        lineage = max((copy.epochs for copy in copies), key=_newest, default=[])
    found: list[Segment] = []
    covered = -1
    for copy in copies:
        divergence = _divergence(copy, lineage)
        if divergence is not None:
            logger.warning(
                "%s: not read from offset %d on, which an election of another leader has lost",
                copy.segment.log.path,
                divergence,
            )
        last = copy.offsets.last if divergence is None else divergence - 1
        kept = Range(max(copy.offsets.first, covered + 1), last)
        if not kept:
            logger.info("%s: not read, other segments have its offsets", copy.segment.log.path)
            continue
        cut = copy.segment.cut if kept == copy.offsets else kept
        found.append(replace(copy.segment, offsets=kept, cut=cut))
        covered = kept.last
    return found


def partitions_of(
    logs: Iterable[StoredFile], files: Mapping[str, StoredFile]
) -> list[list[Segment]]:
    """The segments of each partition, in the order of folders.

    A partition is a folder; in tiered storage, all folders of one id of a topic, with the folder of
    a broker that has that id.
    """
    folders: dict[str, list[StoredFile]] = {}
    for log in logs:
        folders.setdefault(log.folder, []).append(log)
    names = {folder: object_name(inside[0].path) for folder, inside in folders.items()}
    tiered = {(name.topic, name.partition, name.topic_id) for name in names.values() if name}
    parts: dict[object, list[StoredFile]] = {}
    for folder in sorted(folders):
        name = names[folder]
        key: object = folder
        if name is not None:
            key = name.topic, name.partition, name.topic_id
        elif tiered:
            key = _tiered_partition(folder, files, tiered) or folder
        parts.setdefault(key, []).extend(folders[folder])
    return [joined(segments_of(part, files), files) for part in parts.values()]


def _tiered_partition(
    folder: str, files: Mapping[str, StoredFile], tiered: set[tuple[str, int, str]]
) -> tuple[str, int, str] | None:
    """The partition in tiered storage that a broker's folder belongs to."""
    place = partition_of(Path(folder))
    known = [one for one in tiered if one[:2] == (place.topic, place.partition)]
    metadata = files.get(f"{folder}/{PARTITION_METADATA}")
    if metadata is not None:
        (row,) = parse_partition_metadata(as_bytes(metadata.read_now()), metadata.path).to_pylist()
        known = [one for one in known if one[2] == row["topicId"]]
    if len(known) > 1:
        logger.warning("%s: read by itself, tiered storage has several topics of its name", folder)
    return known[0] if len(known) == 1 else None


def _newest(epochs: Epochs) -> tuple[int, int]:
    return epochs[-1] if epochs else (-1, -1)


def _copy(segment: Segment, files: Mapping[str, StoredFile]) -> _Copy:
    log = segment.log
    last = segment.offsets.last
    if isinstance(log, TieredFile):
        known = None if log.manifest is None else log.manifest.end_offset
        found = OpenSegment(segment).last_offset() if known is None else known
        last = segment.base_offset - 1 if found is None else found
        beside = files.get(log.path.removesuffix(LOG_SUFFIX) + _EPOCHS_SUFFIX)
    else:
        beside = files.get(f"{log.folder}/{LEADER_EPOCHS}")
    return _Copy(segment, Range(segment.base_offset, last), _epochs(beside))


def _epochs(file: StoredFile | None) -> Epochs:
    if file is None or not file.size:
        return []
    try:
        rows = parse_leader_epochs(as_bytes(file.read_now()), file.path).to_pylist()
    except CorruptCheckpointError as error:
        logger.warning("%s: segments that overlap are joined without it", error)
        return []
    return [(row["epoch"], row["startOffset"]) for row in rows]


def _divergence(copy: _Copy, lineage: Epochs) -> int | None:
    """The first offset of a segment that was not written in the lineage's epoch, if any."""
    if not lineage or not copy.epochs:
        return None
    first, last = copy.offsets
    # A lineage may begin behind the segment: retention cuts it.
    starts = {at for _, at in (*lineage, *copy.epochs)} | {first}
    for offset in sorted(at for at in starts if max(first, lineage[0][1]) <= at <= last):
        if _epoch_at(copy.epochs, offset) != _epoch_at(lineage, offset):
            return offset
    return None


def _epoch_at(epochs: Epochs, offset: int) -> int:
    row = bisect_right(epochs, offset, key=lambda pair: pair[1]) - 1
    return epochs[max(row, 0)][0]
