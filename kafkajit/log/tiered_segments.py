"""The segments of a tiered partition as one log: each offset once, along the lineage of epochs.

Segments overlap as a matter of course: a new leader copies segments that the old one has copied,
and a broker keeps for a while what is in tiered storage. Copies have the same batches, and
`tiered_copies` finds those that do not. If an unclean election has lost records, their segments
stay, too: a segment counts up to the offset at which its leader epochs leave those of the log that
went on.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate, pairwise, zip_longest
from pathlib import Path
from typing import NamedTuple

from kafkajit.errors import CorruptCheckpointError, KafkaJitError
from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.format.log_path import partition_of
from kafkajit.format.ranges import ALL, Range
from kafkajit.format.tiered_names import object_name
from kafkajit.log.segment import Segment, segments_of
from kafkajit.places.tiered_files import TieredFile
from kafkajit.state.leader_epochs import LEADER_EPOCHS, epochs_in
from kafkajit.state.partition_metadata import PARTITION_METADATA, parse_partition_metadata
from kafkajit.storage.source import as_bytes
from kafkajit.storage.stored_file import StoredFile, report_unread
from kafkajit.walk.damage import PERMISSIVE

logger = logging.getLogger("kafkajit")

_Partition = tuple[str, int, str]  # topic, partition, and the topic's id
_READERS = 64
_UNKNOWN_ID = ""  # of a partition.metadata that is damaged

Epochs = list[tuple[int, int]]  # leader epochs, each with its first offset, in order


class _Copy(NamedTuple):
    """A segment with the offsets that it has."""

    segment: Segment
    offsets: Range

    @property
    def is_tiered(self) -> bool:
        return isinstance(self.segment.log, TieredFile)


def joined(segments: Sequence[Segment], files: Mapping[str, StoredFile]) -> list[Segment]:
    """The segments to read, in the order of offsets, each with those that no other one has.

    The segments are those of one folder, or of several, folder by folder.
    """
    if not any(isinstance(segment.log, TieredFile) for segment in segments):
        return list(segments)
    behind = [*segments[1:], None]
    copies = [
        _Copy(segment, Range(segment.base_offset, _last_offset(segment, following)))
        for segment, following in zip(segments, behind, strict=True)
    ]
    copies = [copy for copy in copies if copy.offsets]
    copies.sort(key=_order)
    is_simple = _are_apart(copies)
    if not is_simple:
        copies = sorted(_up_to_what_they_have(copies), key=_order)
        if any(not copy.is_tiered for copy in copies):
            copies = sorted(_up_to_their_ends(copies), key=_order)
    epochs = [[] if is_simple else epochs_of(copy.segment.log, files) for copy in copies]
    lineage = max(epochs, key=_newest, default=[])
    found: list[_Copy] = []
    hidden: list[_Copy] = []
    covered = -1
    for copy, own in zip(copies, epochs, strict=True):
        path = copy.segment.log.path
        divergence = _divergence(copy.offsets, own, lineage)
        last = copy.offsets.last
        if divergence is not None:
            last = divergence - 1
            logger.warning(
                "%s: not read from offset %d on, which an election of another leader has lost",
                path,
                divergence,
            )
        kept = Range(max(copy.offsets.first, covered + 1), last)
        unread = Range(copy.offsets.first, min(covered, last))
        if unread:
            hidden.append(_Copy(copy.segment, unread))
        if not kept:
            logger.info("%s: not read, other segments have its offsets", path)
            continue
        # A segment that is read whole has no last offset: a broker may append to it.
        is_whole = kept == copy.offsets
        found.append(_Copy(replace(copy.segment, cut=ALL if is_whole else kept), kept))
        covered = kept.last
    read = [_with_copies(copy, hidden) for copy in _with_neighbours(found)]
    return [*read, *_empty_end(segments, covered)] or list(segments[:1])


def _empty_end(segments: Sequence[Segment], covered: int) -> list[Segment]:
    """The segment in which a broker's log ends, if it is empty and behind all others.

    The files beside it may know of records that it should have.
    """
    brokers = [one for one in segments if not isinstance(one.log, TieredFile)]
    last = max(brokers, key=lambda one: one.base_offset, default=None)
    is_end = last is not None and not last.log.size and last.base_offset > covered
    return [last] if last is not None and is_end else []


def _with_neighbours(found: Sequence[_Copy]) -> Iterator[_Copy]:
    """The tiered segments that are read whole with the offsets between those around them."""
    first = MIN_INT64
    for copy, following in zip_longest(found, found[1:]):
        if copy.is_tiered and copy.segment.cut.is_everything:
            last = MAX_INT64 if following is None else following.offsets.first - 1
            segment = replace(copy.segment, between=Range(first, last))
            copy = _Copy(segment, copy.offsets)
        yield copy
        first = copy.offsets.last + 1


def _up_to_what_they_have(copies: Sequence[_Copy]) -> list[_Copy]:
    """The segments with each tiered one up to the first one behind it of which it has nothing.

    The end of one is that of a manifest or of its last batch, and no checksum covers either.
    """
    from kafkajit.log.tiered_copies import ends_before  # numba comes with it

    tiered = [copy for copy in copies if copy.is_tiered]
    firsts = [copy.offsets.first for copy in tiered]

    def up_to_what_it_has(copy: _Copy) -> _Copy:
        if not copy.is_tiered:
            return copy
        first, last = copy.offsets
        inside = tiered[bisect_right(firsts, first) : bisect_right(firsts, last)]
        behind = next((one for one in inside if ends_before(copy.segment, one.segment)), None)
        if behind is None:
            return copy
        begin = behind.offsets.first
        logger.warning(
            "%s: it ends before offset %d, not at offset %d as its %s says",
            copy.segment.log.path,
            begin,
            last,
            "last batch" if _known_end(copy.segment) is None else "manifest",
        )
        return _Copy(copy.segment, Range(first, begin - 1))

    with ThreadPoolExecutor(_READERS) as pool:
        return list(pool.map(up_to_what_it_has, copies))


def _order(copy: _Copy) -> tuple[int, bool, int]:
    return copy.offsets.first, copy.is_tiered, -copy.offsets.last


def _are_apart(copies: Sequence[_Copy]) -> bool:
    return all(one.offsets.last < other.offsets.first for one, other in pairwise(copies))


def _with_copies(read: _Copy, hidden: Sequence[_Copy]) -> Segment:
    copies = tuple(
        replace(copy.segment, offsets=copy.offsets)
        for copy in hidden
        if copy.offsets & read.offsets
    )
    return replace(read.segment, offsets=read.offsets, copies=copies)


def _up_to_their_ends(copies: Sequence[_Copy]) -> list[_Copy]:
    """The segments with those of a broker up to their last batches, where tiered storage goes on.

    A copy of a folder may have segments that are empty, torn or older than those in the bucket.
    """
    from kafkajit.log.tiered_copies import last_batch_of  # numba comes with it

    tiered = [copy.offsets for copy in copies if copy.is_tiered]
    firsts = [offsets.first for offsets in tiered]
    behind = list(accumulate((offsets.last for offsets in tiered), max))

    def is_tiered(offset: int) -> bool:
        at = bisect_right(firsts, offset) - 1
        return at >= 0 and behind[at] >= offset

    def up_to_its_end(copy: _Copy) -> _Copy:
        log = copy.segment.log
        if copy.is_tiered or not is_tiered(copy.offsets.last):
            return copy
        last, end = last_batch_of(copy.segment)
        if not is_tiered(last + 1):
            return copy
        if end < log.size:
            logger.warning(
                "%s: not read from position %d on, behind its last sound batch: tiered storage has "
                "offset %d",
                log.path,
                end,
                last + 1,
            )
        segment = replace(copy.segment, log=replace(log, size=end))
        return _Copy(segment, Range(copy.offsets.first, last))

    if all(copy.is_tiered or copy.segment.log.is_local for copy in copies):
        found = list(map(up_to_its_end, copies))
    else:
        with ThreadPoolExecutor(_READERS) as pool:
            found = list(pool.map(up_to_its_end, copies))
    return [copy for copy in found if copy.offsets]


def partitions_of(
    logs: Iterable[StoredFile], files: Mapping[str, StoredFile], topic_id: str | None = None
) -> list[list[Segment]]:
    """The segments of each partition, in the order of folders.

    A partition is a folder; in tiered storage, all folders of one id of a topic, with the folder of
    a broker that has that id. With a topic id, the partitions of that topic.
    """
    folders: dict[str, list[StoredFile]] = {}
    for log in logs:
        folders.setdefault(log.folder, []).append(log)
    names = {folder: object_name(inside[0].path) for folder, inside in folders.items()}
    tiered = {(name.topic, name.partition, name.topic_id) for name in names.values() if name}
    parts: dict[object, list[Segment]] = {}
    for folder in sorted(folders):
        name = names[folder]
        key: object = folder
        id_ = None
        if name is not None:
            id_ = name.topic_id
            key = name.topic, name.partition, id_
        else:
            copies = _of_partition(folder, tiered)
            if copies or topic_id is not None:
                id_ = _topic_id(folders[folder][0], files)
            key = _tiered_partition(folder, id_, copies) or folder
        if topic_id in (None, id_):
            # Each folder by itself: its segments end where the next of them begins.
            parts.setdefault(key, []).extend(segments_of(folders[folder], files))
    return [joined(part, files) for part in parts.values()]


def _of_partition(folder: str, tiered: set[_Partition]) -> list[_Partition]:
    """The partitions in tiered storage with the name of a broker's folder."""
    place = partition_of(Path(folder))
    return [one for one in tiered if one[:2] == (place.topic, place.partition)]


def _tiered_partition(
    folder: str, topic_id: str | None, named: list[_Partition]
) -> _Partition | None:
    """The partition in tiered storage that a broker's folder belongs to, of those of its name."""
    known = [one for one in named if topic_id in (None, one[2])]
    if len(known) > 1:
        logger.warning("%s: read by itself, tiered storage has several topics of its name", folder)
    if len(known) == 1 and topic_id is None:
        report_unread(
            folder,
            f"without {PARTITION_METADATA}, it is taken for a part of topic {known[0][2]}, which "
            "tiered storage has under its name",
        )
    return known[0] if len(known) == 1 else None


def _topic_id(log: StoredFile, files: Mapping[str, StoredFile]) -> str | None:
    """The id of a topic, of which this is a broker's segment; None without partition.metadata."""
    try:
        return topic_id_beside(log, files)
    except CorruptCheckpointError as error:
        logger.warning("%s: the log is read by itself", error)
        return _UNKNOWN_ID


def topic_id_beside(log: StoredFile, files: Mapping[str, StoredFile]) -> str | None:
    """The topic's id in partition.metadata beside a broker's segment; None without that file.

    Raises:
        CorruptCheckpointError: the file is damaged.
    """
    metadata = _beside(log, PARTITION_METADATA, files)
    if metadata is None:
        return None
    content = as_bytes(metadata.read_now())
    (row,) = parse_partition_metadata(content, metadata.path).to_pylist()
    id_: str = row["topicId"]
    return id_


def _beside(log: StoredFile, name: str, files: Mapping[str, StoredFile]) -> StoredFile | None:
    """A file in the folder of a broker's segment, which may be the only one that was listed."""
    found = files.get(f"{log.folder}/{name}")
    return found or next((file for file in log.beside() if file.name == name), None)


def _last_offset(segment: Segment, following: Segment | None) -> int:
    """The last offset that a segment has, or may have if it is not the last of a broker's."""
    log = segment.log
    is_last = following is None or following.log.folder != log.folder
    if not isinstance(log, TieredFile) and not is_last:
        return segment.offsets.last
    known = _known_end(segment)
    if known is not None:
        return known
    from kafkajit.log.open_segment import OpenSegment  # numba comes with it

    try:
        found = OpenSegment(segment).last_offset(PERMISSIVE) if log.size else None
    except KafkaJitError as error:
        logger.warning("%s: the segment's last offset is not known", error)
        return segment.offsets.last
    return segment.base_offset - 1 if found is None else found


def _known_end(segment: Segment) -> int | None:
    """The last offset of a tiered segment by its manifest."""
    manifest = segment.log.manifest if isinstance(segment.log, TieredFile) else None
    known = None if manifest is None else manifest.end_offset
    return known if known is not None and segment.base_offset <= known <= MAX_INT64 else None


def _newest(epochs: Epochs) -> tuple[int, int]:
    """The key of the epochs that the log went on with; of two, those that go back farther."""
    return (epochs[-1][0], -epochs[0][1]) if epochs else (-1, 0)


def epochs_of(log: StoredFile, files: Mapping[str, StoredFile]) -> Epochs:
    """The leader epochs up to the end of a segment, as far as they are known."""
    file = log.epochs if isinstance(log, TieredFile) else _beside(log, LEADER_EPOCHS, files)
    try:
        if file is not None and file.size:
            found = epochs_in(file.read_now(), file.path)
            if all(one < other and one[1] <= other[1] for one, other in pairwise(found)):
                return found
            logger.warning("%s: its epochs are not in order, and not used", file.path)
    except KafkaJitError as error:
        logger.warning("%s: segments that overlap are joined without it", error)
    # Those of the segment alone.
    manifest = log.manifest if isinstance(log, TieredFile) else None
    return [] if manifest is None else list(manifest.epochs)


def _divergence(offsets: Range, own: Epochs, lineage: Epochs) -> int | None:
    """The first offset of a segment that was not written in the lineage's epoch, if any."""
    if not own or not lineage:
        return None
    # Retention cuts off the first epochs.
    first = max(offsets.first, own[0][1], lineage[0][1])
    starts = {at for _, at in (*lineage, *own)} | {first}
    for offset in sorted(at for at in starts if first <= at <= offsets.last):
        if _epoch_at(own, offset) != _epoch_at(lineage, offset):
            return offset
    return None


def _epoch_at(epochs: Epochs, offset: int) -> int:
    return epochs[bisect_right(epochs, offset, key=lambda pair: pair[1]) - 1][0]
