"""The stretches of a segment that a query has to read.

Indexes narrow the bytes that can hold the offsets and timestamps asked for. In a local file the
rest is framed, and cut where batches begin. A remote file would have to be downloaded for that; it
is cut at the positions in its .index, or not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from kafkajit.errors import CorruptIndexError, KafkaJitError, RemoteStorageError
from kafkajit.format.kafscale import SUFFIX as KAFSCALE_SUFFIX
from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.format.ranges import NOTHING, Range
from kafkajit.log.open_segment import OpenSegment, order_in
from kafkajit.log.positions import IndexEntries
from kafkajit.log.segment import Segment
from kafkajit.records.batches import Batches, frame
from kafkajit.records.offset_order import grow, has_messages, offsets_of
from kafkajit.scan.options import ScanOptions
from kafkajit.storage.source import Mask
from kafkajit.walk.borders import hidden_by_damage, offset_behind
from kafkajit.walk.damage import FAILFAST, Gap, Stretch
from kafkajit.walk.selection import Selection
from kafkajit.walk.walk import Walk

logger = logging.getLogger("kafkajit")

# As many batches behind another one tell whether its base offset fits.
_WITNESSES = 2


def stretches_of(
    segment: Segment, asked: Selection, options: ScanOptions, share: int, budget: int
) -> tuple[list[Stretch], int]:
    """The stretches of a segment to read, and how many bytes were framed to find them."""
    opened = OpenSegment(segment)
    whole = opened.stretch(asked) if asked.judges_rows else Stretch(0, segment.log.size)
    if whole.end < segment.log.size:
        # The batches behind it tell whether the base offset of its last one fits.
        behind = opened.batches_at(whole.end)[:_WITNESSES]
        whole = whole._replace(end=int(behind.end.max(initial=whole.end)))
    if whole.start and segment.log.filesystem is None:  # and so do those before its first one
        before = IndexEntries(segment).position_before(whole.start - 1)
        whole = whole._replace(start=before)
    size = whole.end - whole.start
    # One task compares all batches of a KafScale segment with its footer.
    pieces = 1 if segment.path.suffix == KAFSCALE_SUFFIX else -(-size // share)
    is_local = segment.log.filesystem is None
    if pieces > 1 and (asked.is_everything or not is_local):
        cuts = _cuts_by_index(opened, whole, pieces)
        if cuts is not None:
            return _between([whole.start, *cuts, whole.end]), 0
    is_worth_it = pieces > 1 or not asked.is_everything
    if is_local and is_worth_it and size <= budget:
        return _framed_stretches(segment, whole, asked, options, pieces), size
    return _between(whole), 0


def _between(cuts: Iterable[int]) -> list[Stretch]:
    return [Stretch(start, end) for start, end in pairwise(cuts) if start < end]


def _cuts_by_index(opened: OpenSegment, whole: Stretch, pieces: int) -> list[int] | None:
    """Beginnings of sound batches near the ends of equal pieces; None if the index is unusable."""
    try:
        index = opened.offset_index
        if index is None:
            return None
        positions = index.entries["position"].astype(np.int64)
        ideal = whole.start + np.arange(1, pieces) * (whole.end - whole.start) // pieces
        rows = np.unique(np.searchsorted(positions, ideal).clip(max=len(index) - 1))
        cuts = {opened.position_of(index.entry(row).offset) for row in rows.tolist()}
    except (CorruptIndexError, RemoteStorageError) as error:
        logger.warning("%s: the segment is split without it", error)
        return None
    return sorted(
        cut for cut in cuts if whole.start < cut < whole.end and _fits_around(opened, cut)
    )


def _fits_around(opened: OpenSegment, cut: int) -> bool:
    """Whether the offsets of the batches around a cut grow: tasks do not see those of others.

    A remote segment is not looked at: each cut would take two more requests.
    """
    if opened.segment.log.filesystem is not None:
        return True
    start = IndexEntries(opened.segment).position_before(cut - 1)
    before = opened.batches_at(start, cut - start)
    near = [before[before.position < cut], opened.batches_at(cut)[:_WITNESSES]]
    if any(map(has_messages, near)):
        return True
    firsts, lasts = map(np.concatenate, zip(*map(offsets_of, near), strict=True))
    return grow(firsts, lasts, None)


def _framed_stretches(
    segment: Segment, whole: Stretch, asked: Selection, options: ScanOptions, pieces: int
) -> list[Stretch]:
    """Runs of selected batches, cut near the ends of equal pieces."""
    mode = options.mode
    source = segment.log.open()
    # A batch whose base offset does not fit may have any offset between those around it.
    order = order_in(segment, whole.start)
    reader = Walk(source, mode=mode, start=whole.start, end=whole.end, order=order)
    every = replace(asked, committed=False)  # a damaged batch may look like an aborted one
    cuts = [whole.start]
    firsts: dict[int, int] = {}  # cut: where the selected batches behind it begin
    lasts: dict[int, int] = {}  # cut: where they end
    behind, gap, was_wanted = MIN_INT64, Stretch(0, 0), False
    witness_before: int | None = None  # the position of the last batch
    claimed = NOTHING  # the offsets of damage by its own header

    def is_sound(these: Batches) -> Mask:
        return these.is_valid(source.content)

    def add_damage(before: int, is_near: bool, until: int) -> None:
        """Add the last damage, and the batches around it, if it may have had wanted offsets."""
        is_near |= was_wanted or asked.timestamps.is_everything
        is_wanted = Range(behind, before) & asked.offsets or claimed & asked.offsets
        if gap.end and is_near and is_wanted:
            start = gap.start if witness_before is None else witness_before
            cut = cuts[int(np.searchsorted(cuts, start, side="right")) - 1]
            firsts[cut] = min(firsts.get(cut, start), start)
            lasts[cut] = max(lasts.get(cut, until), until)

    try:
        for batches in reader.headers():
            if isinstance(batches, Gap):
                start = gap.start if gap.end else batches.position
                gap = Stretch(start, batches.position + batches.length)
                header = frame(source.content, batches.position, max_records=1).batches[:1]
                if len(header):
                    (first,), (last,) = offsets_of(header)
                    claimed = Range(int(first), int(last))
                continue
            source.forget(int(batches.position[0]))
            ideal = whole.start + np.arange(len(cuts), pieces) * (whole.end - whole.start) // pieces
            rows = np.searchsorted(batches.position, ideal)
            # Behind damage only a checksum proves that a batch begins.
            begins = np.isin(np.arange(len(batches)), rows)
            begins[begins] = batches[begins].is_valid(source.content)
            cuts.extend(batches.position[begins].tolist())
            are_wanted = every.batches(batches)
            if options.check_crcs and asked.judges_rows:
                bound = offset_behind(source.content, int(batches.end[-1]), order.behind)
                are_wanted |= hidden_by_damage(asked, batches, are_wanted, bound, is_sound)
            witness = int(batches.end[:_WITNESSES][-1])
            add_damage(int(batches.field("baseOffset")[0]) - 1, bool(are_wanted[0]), witness)
            gap, claimed, was_wanted = Stretch(0, 0), NOTHING, bool(are_wanted[-1])
            behind, witness_before = int(batches.last_offset[-1]) + 1, int(batches.position[-1])
            wanted = batches[are_wanted]
            pieces_of = np.searchsorted(cuts, wanted.position, side="right") - 1
            for piece in np.unique(pieces_of).tolist():
                within = wanted[pieces_of == piece]
                firsts.setdefault(cuts[piece], int(within.position[0]))
                lasts[cuts[piece]] = int(within.end[-1])
        # The segment behind may begin with a wanted batch.
        add_damage(MAX_INT64, segment.between.last < MAX_INT64, whole.end)
    except KafkaJitError:
        # A task will reach the same damage, and report it.
        lasts[cuts[-1]] = whole.end
        begin = reader.position if witness_before is None else max(cuts[-1], witness_before)
        firsts.setdefault(cuts[-1], begin)
    if asked.is_everything:
        return _between([*cuts, whole.end])
    if mode != FAILFAST and firsts:
        # Damage between selected batches is reported, wherever the cuts are.
        start, end = min(firsts.values()), max(lasts.values())
        return _between([start, *(cut for cut in cuts if start < cut < end), end])
    return [Stretch(firsts[cut], lasts[cut]) for cut in cuts if cut in firsts]
