"""Segments in tiered storage, which a stream reads in front of those that a broker still has.

Objects do not change, so a segment's manifest is read once. A broker copies a segment before it
deletes its own: whoever lists the broker's folder first, and the objects then, finds every offset.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from kafkajit.format.log_path import LOG_SUFFIX, parse_log_path
from kafkajit.format.ranges import Range
from kafkajit.format.tiered_names import LOCAL_TIERED_STORAGE, is_topic_folder, object_name
from kafkajit.log.segment import Segment, segments_of
from kafkajit.log.tiered_segments import joined
from kafkajit.places.tiered_files import TieredFile, as_log_files, segments_among
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.stream.listing import Listing
from kafkajit.storage.stored_file import StoredFile


class TieredPartition(NamedTuple):
    """A partition in tiered storage."""

    topic: str
    partition: int
    topic_id: str


class Tier:
    """The tiered segments of a stream, as they are finished."""

    def __init__(self, options: ScanOptions) -> None:
        self._options = options
        # By the paths of segments without suffix: their objects' names, and their files.
        self._seen: dict[str, tuple[frozenset[str], list[TieredFile]]] = {}
        self._joined: dict[TieredPartition, tuple[object, Listing | None, Listing]] = {}

    def joined_with(
        self,
        local: dict[str, Listing],
        objects: list[StoredFile],
    ) -> list[Listing]:
        """All partitions: those of brokers' folders, with what tiered storage has of them."""
        tiered, asked = self._partitions(objects), self._options.topic_id
        if not tiered and asked is None:
            return list(local.values())
        alone = dict(tiered)
        by_place = defaultdict[tuple[str | None, int | None], list[TieredPartition]](list)
        for it in tiered:
            by_place[it.topic, it.partition].append(it)
        found = []
        for listing in local.values():
            named = by_place.get(_place_of(listing.folder), [])
            if not named and asked is None:
                found.append(listing)
                continue
            id_ = listing.topic_id
            if asked is not None and id_ != asked:
                continue
            same = [it for it in named if id_ in (None, it.topic_id)]
            if len(same) == 1:
                alone.pop(same[0])
                listing = self._join(same[0], tiered[same[0]], listing)
            found.append(listing)
        return [*found, *(self._join(it, files, None) for it, files in alone.items())]

    def _partitions(
        self, objects: Iterable[StoredFile]
    ) -> dict[TieredPartition, dict[str, StoredFile]]:
        """The files of each partition's finished segments."""
        segments, _ = segments_among(objects)
        names = {stem: frozenset(inside) for stem, inside in segments.items()}
        new = [
            stem
            for stem in segments
            if stem not in self._seen or self._seen[stem][0] != names[stem]
        ]
        files: dict[str, list[TieredFile]] = {stem: [] for stem in new}
        if new:
            given = [file for stem in new for file in segments[stem].values()]
            for file in as_log_files(given, self._options.private_keys):
                if isinstance(file, TieredFile) and file.stem in files:
                    files[file.stem].append(file)
        self._seen = {
            stem: (names[stem], files[stem]) if stem in files else self._seen[stem]
            for stem in segments
        }
        found: dict[TieredPartition, dict[str, StoredFile]] = {}
        for _, inside in self._seen.values():
            for one in inside:
                name = object_name(one.path)
                if name is None or self._options.topic_id not in (None, name.topic_id):
                    continue
                key = TieredPartition(name.topic, name.partition, name.topic_id)
                found.setdefault(key, {})[one.path] = one
        return found

    def _join(
        self, key: TieredPartition, files: dict[str, StoredFile], local: Listing | None
    ) -> Listing:
        """A partition's tiered segments, and behind them those of a broker's folder."""
        if local is not None and not local.segments:
            return local  # they come back in a moment
        paths = tuple(files)
        begins = None if local is None else local.segments[0].log
        before = self._joined.get(key)
        if before is not None and before[0] == (paths, begins):
            if local is before[1]:
                return before[2]
            tiered = [it for it in before[2].segments if isinstance(it.log, TieredFile)]
        else:
            tiered = _tiered_segments(files, local)
        folder = next(iter(files)).rpartition("/")[0] if local is None else local.folder
        segments = [*tiered, *(local.segments if local is not None else ())]
        gaps = tuple(
            Range(one.offsets.last + 1, other.offsets.first - 1)
            for one, other in pairwise(segments)
            if isinstance(one.log, TieredFile) and one.offsets.last + 1 < other.offsets.first
        )
        listing = replace(
            local or Listing(folder, [], [], topic_id=key.topic_id),
            segments=segments,
            gaps=gaps,
            is_tiered=True,
        )
        self._joined[key] = ((paths, begins), local, listing)
        return listing


def _tiered_segments(files: dict[str, StoredFile], local: Listing | None) -> list[Segment]:
    """The segments to read of tiered storage, each offset once, up to a broker's first segment."""
    folders: dict[str, list[StoredFile]] = {}
    for path in sorted(files):
        if path.endswith(LOG_SUFFIX):
            folders.setdefault(files[path].folder, []).append(files[path])
    segments = [segment for logs in folders.values() for segment in segments_of(logs, files)]
    if local is None:
        return joined(segments, files)
    behind = local.segments[0]  # its folder has the leader epochs of the whole log
    found = []
    for segment in joined([*segments, behind], files):
        offsets = segment.offsets & Range(last=behind.base_offset - 1)
        if isinstance(segment.log, TieredFile) and offsets:
            is_whole = offsets == segment.offsets
            cut = segment.cut if is_whole else offsets
            found.append(replace(segment, offsets=offsets, cut=cut))
    return found


def _place_of(folder: str) -> tuple[str | None, int | None]:
    path = parse_log_path(f"{folder}/any")
    return path.topic, path.partition


def holds_objects(path: str, known: Iterable[str] = ()) -> bool:
    """Whether a folder of this machine is one of tiered storage, or has such folders.

    `known` are brokers' folders, which are not looked at.
    """
    return any(True for _ in _object_folders(path, frozenset(known)))


def _object_folders(path: str, known: frozenset[str]) -> Iterator[str]:
    if path in known:
        return
    try:
        names = os.listdir(path)  # noqa: PTH208
    except (NotADirectoryError, FileNotFoundError):
        return
    if any(object_name(f"{path}/{name}") for name in names):
        yield path
        return
    of_topic = is_topic_folder(path.rpartition("/")[2])
    for name in names:
        if is_topic_folder(name) or name == LOCAL_TIERED_STORAGE or (of_topic and name.isdecimal()):
            yield from _object_folders(f"{path}/{name}", known)
