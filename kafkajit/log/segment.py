"""A segment: a log file with the files beside it, by their names.

Nothing is opened, and no kernel loaded: `open_segment` does both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from kafkajit.format.limits import MAX_INT32, MAX_INT64, MIN_INT64
from kafkajit.format.log_path import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    LogPath,
    parse_log_path,
)
from kafkajit.format.ranges import ALL, Range
from kafkajit.places.tiered_files import TieredFile
from kafkajit.storage.stored_file import StoredFile


@dataclass(frozen=True, repr=False)
class Segment:
    """A log file with the files beside it, and the offsets that it may have."""

    log: StoredFile
    path: LogPath
    offsets: Range
    # Files that exist and are not empty.
    index: StoredFile | None
    time_index: StoredFile | None
    transaction_index: StoredFile | None
    cut: Range = ALL  # the offsets that are read of it, if another segment has the others
    # The offsets between the segments around it, if these are known and all of it is read.
    between: Range = field(default=ALL, compare=False)
    # Those with the same offsets at the other place, if tiered storage and a broker's folder are
    # one log. They are not read.
    copies: tuple[Segment, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        return f"<Segment {self.log.path}, {self.log.size:,} bytes>"

    @property
    def base_offset(self) -> int:
        """The base offset in the file's name; 0 if the name has none."""
        return self.path.base_offset or 0

    @property
    def first_offset(self) -> int:
        """The offset in its name, or the first one that is read if it has the name of another."""
        first, base = self.cut.first, self.base_offset
        return first if self.cut and MIN_INT64 < first < base else base

    @property
    def last_possible(self) -> int:
        """The highest offset that its batches can have: the next segment begins behind it."""
        if self.path.base_offset is None:
            return self.offsets.last
        # An index has offsets relative to the one in the name, in 32 bits.
        return min(self.offsets.last, max(self.base_offset, self.cut.first) + MAX_INT32)

    def may_have(self, timestamps: Range) -> bool:
        """Whether a record may have such a timestamp, by the manifest of a tiered segment."""
        manifest = self.log.manifest if isinstance(self.log, TieredFile) else None
        latest = None if manifest is None else manifest.max_timestamp
        return latest is None or latest >= timestamps.first


def segments_of(logs: Iterable[StoredFile], files: Mapping[str, StoredFile]) -> list[Segment]:
    """The logs of one folder as segments, each of which ends where the next begins.

    Logs with other names, such as .deleted ones, overlap these.
    """
    named = [(parse_log_path(log.path), log) for log in logs]
    named.sort(key=lambda pair: (pair[0].base_offset or 0, pair[1].path))
    live = {
        base for (_, _, base, suffix), _ in named if base is not None and suffix in SEGMENT_SUFFIXES
    }
    following = dict(pairwise(sorted(live)))
    segments = []
    for path, log in named:
        base = path.base_offset
        behind = (
            following.get(base) if path.suffix in SEGMENT_SUFFIXES and base is not None else None
        )
        stem = log.path.removesuffix(LOG_SUFFIX)
        offsets = Range(
            MIN_INT64 if base is None else base, MAX_INT64 if behind is None else behind - 1
        )
        beside = (files.get(stem + suffix) for suffix in INDEX_SUFFIXES)
        # An empty index has no information: the segment is young, or a crash left it so.
        index, times, aborted = (
            file if file is not None and file.size else None for file in beside
        )
        segments.append(Segment(log, path, offsets, index, times, aborted))
    return segments
