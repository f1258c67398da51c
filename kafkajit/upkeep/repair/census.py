"""The census of a segment's log: its sound batches, and the bytes between them.

Answers to LogSegment.recover of Kafka 4.1.1, which checks each batch of a segment as if it were the
log's last segment: an incomplete batch at its end goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.errors import KafkaJitError
from kafkajit.format.layout import HEADER_SIZE_UP_TO_MAGIC
from kafkajit.log.missing_offsets import Extent
from kafkajit.records.batches import Batches, lacks_records
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.storage.source import Int64s, Mask, Source
from kafkajit.walk.damage import DROPMALFORMED, Gap
from kafkajit.walk.resync import PrefixChecksums
from kafkajit.walk.tail import only_zeros
from kafkajit.walk.walk import Walk

ZEROS = "zeros"
# Those beside one batch with a wrong base offset.
_MOST_HOLES = 2

# A sound batch, as far as its place in the log depends on it.
BATCH = np.dtype(
    [
        ("position", np.int64),
        ("end", np.int64),
        ("first", np.int64),
        ("last", np.int64),
        ("crc", np.uint32),
        ("records", np.int64),  # 0 for a marker
    ]
)
BatchRows = npt.NDArray[np.void]


@dataclass
class Census:
    """The batches of one log that have right checksums, and what lies between them."""

    log: Path
    base_offset: int  # in the log's name
    size: int
    first_offset: int = 0  # of the first batch
    last_offset: int = -1  # of the last batch
    greatest: int = -1  # the greatest offset of all batches
    ends_behind_hole: bool = False  # whether offsets are missing before the last batch
    sound_end: int = 0  # the position behind the last batch
    batches: int = 0
    records: int = 0
    has_holes: bool = False  # whether offsets are missing between batches
    holes: int = 0  # how often they are missing between two batches without damage between them
    lacks_records: bool = False  # whether they are missing in batches
    begins_with_set: bool = False  # of messages, which has its last one's offset
    is_ordered: bool = True  # whether the offsets of each batch are behind those before it
    has_lies: bool = False  # whether the header of a batch has a wrong offset

    def __post_init__(self) -> None:
        self.gaps: list[Gap] = []
        # The position and the first offset of each compressed set of messages.
        self._sets: list[Int64s] = [np.empty((0, 2), dtype=np.int64)]

    @property
    def is_plain(self) -> bool:
        """Whether the log is one sound batch after the other, in the order of their offsets."""
        return self.is_ordered and not self.gaps and not self.has_lies

    @property
    def was_compacted(self) -> bool:
        """Whether compaction alone explains the holes: a wrong base offset makes two."""
        return self.lacks_records or self.holes > _MOST_HOLES

    @property
    def ends_in_damage(self) -> bool:
        """Whether damaged bytes end the log; zeros may be preallocated."""
        last = self.gaps[-1] if self.gaps else None
        return last is not None and last.reason != ZEROS and last.position >= self.sound_end

    @property
    def extent(self) -> Extent:
        """The offsets of the log, for the search for missing ones."""
        base_offset, first, behind = self.base_offset, self.first_offset, self.greatest + 1
        if not self.batches:
            first = behind = base_offset
        if self.begins_with_set or (self.gaps and self.gaps[0].position == 0):
            first = min(first, base_offset)
        return Extent(base_offset, first, behind, self.ends_in_damage)

    def add_sets(self, batches: Batches, rows: BatchRows) -> None:
        """Note where sets are, whose headers have only their last offset."""
        is_set = batches.is_message_set
        if is_set.any():
            pairs = np.stack([rows["position"][is_set], rows["first"][is_set]], axis=1)
            self._sets.append(pairs)

    def first_offsets(self, batches: Batches, begin: int = 0) -> Int64s:
        """The first offset of each of these batches, which lie in the log from `begin` on."""
        first = batches.header["baseOffset"].astype(np.int64)
        is_set = batches.is_message_set
        if is_set.any():
            sets = self._all_sets
            first[is_set] = sets[np.searchsorted(sets[:, 0], begin + batches.position[is_set]), 1]
        return first

    @cached_property
    def _all_sets(self) -> Int64s:
        return np.concatenate(self._sets)

    @property
    def rows(self) -> BatchRows:
        """The sound batches in the order of their positions, which are read once more."""
        return self._read[0]

    @property
    def lies(self) -> Mask:
        """Whether the header of each of these batches has a wrong offset."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[BatchRows, Mask]:
        source = Source(str(self.log))
        if self.is_plain:  # their checksums are known to be right
            walk = Walk(source, mode=DROPMALFORMED, is_last=True)
            found = [_rows_of(source, part) for part in walk.headers() if isinstance(part, Batches)]
        else:
            found = [part[1:] for part in _parts(source) if isinstance(part, _Part)]
        rows = np.concatenate([np.empty(0, BATCH), *(rows for rows, _ in found)])
        return rows, np.concatenate([np.empty(0, np.bool_), *(lies for _, lies in found)])


def take_census(log: Path, base_offset: int, progress: Callable[[int], None]) -> Census:
    """Check every batch of a log; `progress` is called with the number of bytes read."""
    source = Source(str(log))
    census = Census(log, base_offset, source.content.size)
    for part in _parts(source):
        if isinstance(part, Gap):
            census.gaps.append(part)
            progress(part.length)
            continue
        batches, rows, lies = part
        census.has_lies |= bool(lies.any())
        census.add_sets(batches, rows)
        before = np.append(census.last_offset, rows["last"][:-1])
        census.is_ordered &= bool(
            (rows["first"] > before).all() and (rows["last"] >= rows["first"]).all()
        )
        is_hole = rows["first"] > before + 1
        if census.batches == 0:
            census.first_offset = int(rows["first"][0])
            census.begins_with_set = bool(batches.is_message_set[0])
            is_hole[0] = False  # that may be a log with a wrong name
            before[0] = base_offset - 1
        census.ends_behind_hole = bool(rows["first"][-1] != before[-1] + 1)
        census.last_offset = int(rows["last"][-1])
        census.greatest = max(census.greatest, int(rows["last"].max()))
        census.has_holes |= bool(is_hole.any())
        follows = rows["position"] == np.append(census.sound_end, rows["end"][:-1])
        census.holes += int((is_hole & follows).sum())
        census.lacks_records |= lacks_records(batches)
        census.sound_end = int(rows["end"][-1])
        census.batches += rows.size
        census.records += int(rows["records"].sum())
        progress(int(batches.size_in_bytes.sum()))
        source.forget(int(batches.end[-1]))
    return census


class _Part(NamedTuple):
    """Sound batches, and what a census has of each."""

    batches: Batches
    rows: BatchRows
    lies: Mask


def _parts(source: Source) -> Iterator[_Part | Gap]:
    """Yield the sound batches of a log, and the bytes between them, up to its last byte."""
    for part in _sound_parts(source):
        yield part if isinstance(part, Gap) else _Part(part, *_rows_of(source, part))


def _sound_parts(source: Source) -> Iterator[Batches | Gap]:
    """Yield the batches of a log with right checksums, and the bytes between them."""
    start: int | None = 0
    while start is not None:
        walk, start = Walk(source, mode=DROPMALFORMED, start=start, is_last=True), None
        reason = None
        try:
            for part in walk.checked():
                if isinstance(part, Gap) and (inside := _sound_inside(source, part)) is not None:
                    yield part._replace(length=inside - part.position)
                    start = inside
                    break
                yield part
        except KafkaJitError as error:
            reason = f"{type(error).__name__}: {error.message}"
        size = source.content.size
        if start is None and walk.position < size:
            if reason is None:
                is_padding = only_zeros(source, walk.position)
                reason = ZEROS if is_padding else "an incomplete batch"
            yield Gap(source.path, walk.position, size - walk.position, reason)


def _sound_inside(source: Source, gap: Gap) -> int | None:
    """Look for a sound batch inside of damaged bytes, if there is a reason to.

    The walk steps over a damaged batch if another one seems to begin behind it, or if almost
    nothing follows. In the second case its length may be wrong, and may hide others.
    """
    content, end = source.content, gap.position + gap.length
    if not 0 < content.size - end <= HEADER_SIZE_UP_TO_MAGIC:
        return None
    found = PrefixChecksums(content).next_sound_batch(gap.position + 1)
    return found if found < end else None


def _rows_of(source: Source, batches: Batches) -> tuple[BatchRows, Mask]:
    """The rows of batches, and whether the offset in the header of each is wrong.

    The header of a compressed set of messages has only its last offset. In v0 the messages inside
    have theirs, too, under the checksum: the row has the offsets of these.
    """
    rows = np.empty(len(batches), BATCH)
    rows["position"], rows["end"] = batches.position, batches.end
    rows["first"], rows["last"] = batches.header["baseOffset"], batches.last_offset
    rows["crc"] = batches.header["crc"]
    rows["records"] = batches.header["recordsCount"]
    rows["records"][batches.is_control] = 0
    lies = np.zeros(len(batches), dtype=np.bool_)
    sets = np.flatnonzero(batches.is_message_set)
    if sets.size:
        decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
        for row in sets.tolist():
            chunk = decoder.decode(batches[row : row + 1])
            rows["records"][row] = chunk.counts[0] if len(chunk.batches) else 0
            if rows["records"][row]:
                offsets = chunk.fields["offset"]
                rows["first"][row] = min(rows["first"][row], offsets.min())
                if batches.header["magic"][row] == 0 and offsets.max() != rows["last"][row]:
                    lies[row] = True
                    rows["first"][row], rows["last"][row] = offsets.min(), offsets.max()
    return rows, lies
