"""Markers for transactions whose own marker is lost, at offsets that are missing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from kafkajit.encode.encode_options import ControlType
from kafkajit.encode.writer import encode_batches
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.records.control_records import ABORT, COMMIT
from kafkajit.upkeep.repair.census import ZEROS
from kafkajit.upkeep.repair.damaged_batches import DamagedBatch, damaged_batches
from kafkajit.upkeep.repair.losses import Kept, Loss
from kafkajit.upkeep.repair.lost_ends import POSSIBLE, Hole, LostEnd
from kafkajit.upkeep.repair.options import RepairOptions
from kafkajit.upkeep.repair.pieces import Written

_NAMES: dict[int, ControlType] = {ABORT: "ABORT", COMMIT: "COMMIT"}


class LostMarker(NamedTuple):
    """A marker that does not stay where it is."""

    log: Path
    left: Range  # the offsets that the batches around it leave
    batch: DamagedBatch

    def hole(self, free: Range | None) -> Hole:
        """The hole that it leaves in a log, with the free offsets of those that are left."""
        if free is None or free.last == MAX_INT64:
            first = last = self.left.first if free is None else free.first
            is_taken = free is None
        else:
            (first, last), is_taken = free, False
        batch = self.batch
        if not first <= batch.first <= last:
            batch = batch._replace(first=last, last=last)
        return Hole(first, last, [batch], int(self.log.name[:20]), is_taken)


def holes_of(
    losses: Iterable[Loss],
    missing: Iterable[Range],
    markers: Iterable[LostMarker],
    unreadable: Iterable[Hole],
    kept: Kept,
) -> list[Hole]:
    """The offsets that are missing, in order.

    Args:
        losses: what the log loses.
        missing: other offsets that it does not have.
        markers: those that do not stay.
        unreadable: damage whose offsets other batches have.
        kept: the offsets that stay.
    """
    found, rest = [], []
    losses = [one for one in losses if one.first_missing_offset is not None]
    firsts = sorted(one.first_missing_offset or 0 for one in losses if one.reason != ZEROS)
    lost_markers = {(str(one.log), one.batch.position): one for one in markers}
    for loss in losses:
        first, last = loss.first_missing_offset, loss.last_missing_offset
        if first is None or loss.reason == ZEROS:
            continue
        batches = damaged_batches(Path(loss.path), loss.position, loss.length, first, last)
        following = firsts[at] if (at := bisect_right(firsts, first)) < len(firsts) else None
        if not batches and last is not None and following is not None and following <= last:
            # The end of a log reaches up to the next batch that stays, also over other losses.
            rest.append(Hole(following, last, []))
            last = following - 1
            batches = damaged_batches(Path(loss.path), loss.position, loss.length, first, last)
        segment = int(Path(loss.path).name[:20])
        marker = lost_markers.get((loss.path, loss.position))
        if last is not None and marker is not None and marker.batch.size == loss.length:
            # The bytes were the marker, and other offsets are missing for another reason.
            hole = marker.hole(Range(first, last))
            own = Range(hole.batches[0].first, hole.batches[0].last)
            found.append(hole._replace(first=own.first, last=own.last))
            sides = Range(first, own.first - 1), Range(own.last + 1, last)
            rest += [Hole(side.first, side.last, []) for side in sides if side]
            continue
        if last is None and batches:  # the log may have had more behind these
            found.append(Hole(first, batches[-1].last, batches, segment))
            found.append(Hole(batches[-1].last + 1, None, [], segment))
        else:
            found.append(Hole(first, last, batches, segment))
    found += [*rest, *(Hole(*left, []) for one in missing if (left := kept.missing(one)))]
    found.sort(key=lambda hole: hole.first)  # of the same offsets, a loss comes first
    apart: list[Hole] = []
    for hole in found:
        before = apart[-1].last if apart else hole.first - 1
        if before is None:
            break  # after the hole that ends a log there is nothing else
        if hole.first > before:
            apart.append(hole)
        # Damage is directly before what is cut away, or a loss is among other missing offsets.
        elif hole.last is None or (hole.last > before and not hole.batches):
            apart.append(hole._replace(first=before + 1))
    for marker in lost_markers.values():
        lost = marker.hole(kept.missing(marker.left) if marker.left else None)
        if not any(hole.has(lost.first) for hole in apart):
            apart.append(lost)
    apart.sort(key=lambda hole: hole.first)
    firsts = [hole.first for hole in apart]
    for damage in unreadable:
        at = bisect_right(firsts, damage.first)
        if not at or not apart[at - 1].has(damage.first):
            apart.append(damage)
    return sorted(apart, key=lambda hole: hole.first)


def new_markers(
    ends: Sequence[LostEnd], options: RepairOptions, kept: Kept
) -> list[tuple[int, Written]]:
    """The markers to write, each with its offset, which nothing has that is kept.

    `ends` note what is written.
    """
    chosen = [(end, type_) for end in ends if (type_ := _chosen(end, options)) is not None]
    taken = {end.marker_offset for end, _ in chosen}
    written = []
    for end, control_type in chosen:
        offset = end.marker_offset
        is_taken = offset is not None and kept.missing(Range(offset, offset)) is None
        if end.hole.is_taken or is_taken:
            end.problem = "no marker is written, since another batch has its offset"
            continue
        if offset is None:
            offset = _free(end, taken, kept)
        if offset is None:
            end.problem = (
                "no offset is left for its marker: name the producers whose markers to write"
            )
            continue
        taken.add(offset)
        end.written = offset, control_type
        written.append((offset, _marker(end, offset, control_type)))
    _decide_others(ends)
    return sorted(written, key=lambda one: one[0])


def _decide_others(ends: Sequence[LostEnd]) -> None:
    """Note which transactions without a new marker are decided by that of a later one."""
    new = [(later.transaction.producer_id, *later.written) for later in ends if later.written]
    for producer_id, offset, control_type in new:
        for end in ends:
            one, decided_at = end.transaction, end.decided_at
            is_next = one.last_offset < offset < (MAX_INT64 if decided_at is None else decided_at)
            if end.written is None and one.producer_id == producer_id and is_next:
                end.becomes, end.decided_at = control_type, offset


def _chosen(end: LostEnd, options: RepairOptions) -> int | None:
    """The type of the marker that the options ask for."""
    producer_id = end.transaction.producer_id
    asked = ((options.abort, ABORT), (options.commit, COMMIT))
    for producers, control_type in asked:
        if producer_id in producers.named:
            return control_type
    if end.certainty == POSSIBLE:
        return None  # its records behind the hole may belong to it
    return next((control_type for producers, control_type in asked if producers.all), None)


def _free(end: LostEnd, taken: set[int | None], kept: Kept) -> int | None:
    """The last free offset of the holes that may have had it; at the end of the log, the first."""
    hole = end.hole
    if hole.last is None:
        offset = max(hole.first, kept.end)
        while offset in taken:
            offset += 1
        return offset if offset < MAX_INT64 else None
    first, last = min(end.since, hole.first), hole.last
    while (left := kept.missing(Range(first, last))) is not None:
        if left.last not in taken:
            return left.last
        last = left.last - 1
        if last < first:
            break
    return None


def _marker(end: LostEnd, offset: int, control_type: int) -> Written:
    name, one = _NAMES[control_type], end.transaction
    content = encode_batches(
        pa.table({"offset": pa.array([offset], pa.int64())}),
        control_type=name,
        producer_id=one.producer_id,
        producer_epoch=end.marker_epoch,
        coordinator_epoch=max(end.coordinator_epoch, 0),
        timestamp=one.last_ms,
        partition_leader_epoch=max(one.leader_epoch, -1),  # no checksum covers it
    )
    what = f"write the {name} marker of producer {one.producer_id} at offset {offset}"
    return Written(content.to_pybytes(), what, None, 0)
