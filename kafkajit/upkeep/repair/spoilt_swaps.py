"""Swaps that something spoilt after the cleaner had finished them, for a salvage.

A broker completes every swap: the segments go whose offsets it has. The cleaner finishes a swap
before it gives it that name, and takes all its batches from those segments. So a swap that is
empty, that is damaged, or that leaps to offsets behind those segments is not what the cleaner
wrote, and the segments may have records that it lost. The cleaner compacts them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from kafkajit.errors import CorruptRecordError
from kafkajit.upkeep.repair.census import ZEROS, BatchRows, Census, take_census

_ADVICE = (
    "move the .swap files away to keep the segments, or the segments away to keep the swap, and "
    "repair the rest"
)


def why_not_swapped(swaps: Sequence[Path], segments: Iterable[Path]) -> str | None:
    """Why the segments stay, rather than the swaps that would replace them; None if they go.

    Swaps and segments that both have offsets of their own, although a swap is spoilt, are an error.
    """
    new, old = [_census(path) for path in swaps], [_census(path) for path in segments]
    given, there = _rows(new), _rows(old)
    if _has_all(given, there):
        return None
    why = next((found for one in new if (found := _spoilt(one, there)) is not None), None)
    if why is None:
        return None
    if not _has_all(there, given):
        raise CorruptRecordError(
            f"a swap {why}, but it has offsets that the segments which it was to replace lack",
            path=str(swaps[0]),
            advice=_ADVICE,
        )
    return f"it {why}: the segments stay that it was to replace"


def _census(log: Path) -> Census:
    return take_census(log, int(log.name[:20]), lambda _: None)


def _rows(logs: Iterable[Census]) -> BatchRows:
    rows = [one.rows for one in logs]
    return np.concatenate(rows)


def _spoilt(swap: Census, segments: BatchRows) -> str | None:
    if not swap.batches:
        return "has no sound batches" if swap.size else "is empty"
    damage = next((gap for gap in swap.gaps if gap.reason != ZEROS), None)
    if damage is not None:
        return f"is damaged at {damage.position} ({damage.reason})"
    end = int(segments["last"].max(initial=-1))
    behind = swap.rows["first"][swap.rows["first"] > end]
    if behind.size and behind.min() > end + 1:  # otherwise a segment may be gone
        return f"goes on at offset {behind.min()}, and the segments end at {end}"
    return None


def _has_all(rows: BatchRows, others: BatchRows) -> bool:
    """Whether the batches of `rows` have all offsets of the other ones."""
    rows = np.sort(rows[rows["first"] <= rows["last"]], order=["first", "last"])
    others = others[others["first"] <= others["last"]]
    if not rows.size or not others.size:
        return not others.size
    reached = np.maximum.accumulate(rows["last"])
    # A stretch begins at each batch that does not follow what is before it.
    begins = np.concatenate([[True], rows["first"][1:] > reached[:-1] + 1])
    stretch = np.searchsorted(rows["first"][begins], others["first"], side="right") - 1
    ends = np.append(np.flatnonzero(begins)[1:], rows.size) - 1
    return bool((stretch >= 0).all() and (others["last"] <= reached[ends[stretch]]).all())
