"""Damaged batches whose headers may be why a selection leaves them out.

A selection judges batches by headers that nothing has checked: a flipped bit in the last offset or
in the largest timestamp hides the records of a batch. Offsets have no holes unless a compaction
made some, so the batch before a hole that has selected offsets is checked. Timestamps need not
grow; those of batches next to selected ones are checked, and what the rest says is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import ALL
from kafkajit.records.batches import Batches, frame
from kafkajit.records.offset_order import offsets_of
from kafkajit.storage.source import Bytes, Int64s, Mask
from kafkajit.walk.selection import Selection

# How many damaged batches in a row are found next to a selected one.
_MOST = 8


def offset_behind(content: Bytes, position: int, bound: int | None = None) -> int:
    """The base offset of the batch at a position; the bound, if any, where no batch is."""
    ahead = frame(content, position, max_records=1).batches[:1]
    if len(ahead):
        return int(ahead.header["baseOffset"][0])
    return MAX_INT64 if bound is None else bound


def hidden_by_damage(
    selection: Selection,
    batches: Batches,
    asked: Mask,
    behind: int,
    sound: Callable[[Batches], Mask],
) -> Mask:
    """Find the damaged ones of batches in a row that are not asked for, but may have to be.

    Args:
        selection: by which they are not asked for.
        batches: all of the row.
        asked: those that are read, and so checked, anyway.
        behind: the offset at which the log goes on behind them.
        sound: tells which batches have the right checksum.
    """
    hidden = np.zeros(len(batches), dtype=np.bool_)
    if not len(batches):
        return hidden
    unasked = ~asked & batches.is_whole
    offsets = selection.offsets
    if not offsets.is_everything:
        firsts, lasts = offsets_of(batches)
        ends = np.append(firsts[1:], behind) - 1  # of the holes behind batches
        begins = _next(lasts)
        doubtful = (begins <= ends) & (begins <= offsets.last) & (ends >= offsets.first)
        hidden[_damaged(batches, unasked & doubtful, sound)] = True
    if not selection.timestamps.is_everything:
        inside = replace(selection, timestamps=ALL, committed=False).batches(batches)
        known = ~(unasked & inside)  # sound, or damaged and read
        near = asked | hidden
        if not near.any():
            near[0] = near[-1] = True  # others may be next to these
        for _ in range(_MOST):
            doubtful = near.copy()
            doubtful[1:] |= near[:-1]
            doubtful[:-1] |= near[1:]
            bad = _damaged(batches, doubtful & ~known, sound)
            if not bad.size:
                break
            known |= doubtful
            near = np.zeros(len(batches), dtype=np.bool_)
            near[bad] = hidden[bad] = True
    return hidden


def _next(lasts: Int64s) -> Int64s:
    return np.minimum(lasts, MAX_INT64 - 1) + 1


def _damaged(batches: Batches, doubtful: Mask, sound: Callable[[Batches], Mask]) -> Int64s:
    rows = np.flatnonzero(doubtful)
    return rows[~sound(batches[doubtful])] if rows.size else rows
