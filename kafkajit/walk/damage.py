"""A reader's treatment of damage: modes, reports of gaps, missing offsets."""

from __future__ import annotations

from typing import NamedTuple

from kafkajit.format.limits import MAX_INT64, MIN_INT64
from kafkajit.format.ranges import Range

FAILFAST = "FAILFAST"
DROPMALFORMED = "DROPMALFORMED"
PERMISSIVE = "PERMISSIVE"
MODES = (FAILFAST, DROPMALFORMED, PERMISSIVE)


def mode_named(name: str) -> str:
    """The mode of that name, in any case of letters.

    >>> mode_named("permissive")
    'PERMISSIVE'
    """
    if name.upper() not in MODES:
        raise ValueError(f"unknown mode {name!r}; there are: {', '.join(MODES)}")
    return name.upper()


class Stretch(NamedTuple):
    """Bytes of a segment from the start of one batch to the start of another, or to the end."""

    start: int
    end: int


class Gap(NamedTuple):
    """Bytes of a log without a sound batch, and what is wrong with the first of them."""

    path: str | None
    position: int
    length: int
    reason: str


class Corruption(NamedTuple):
    """Gaps with nothing sound between them, and the offsets that no batch around them has.

    In a compacted topic some of these offsets may have been missing before. They are None if the
    log does not reveal them, or if no offset is missing.
    """

    path: str | None
    position: int
    length: int
    reason: str
    first_missing_offset: int | None
    last_missing_offset: int | None


def corruption(gaps: list[Gap], missing: Range) -> Corruption:
    """Join gaps with nothing sound between them, and add the offsets that are missing there."""
    first = gaps[0]
    length = gaps[-1].position + gaps[-1].length - first.position
    reason = first.reason + (f" (and {len(gaps) - 1} more)" if len(gaps) > 1 else "")
    return Corruption(
        first.path,
        first.position,
        length,
        reason,
        None if not missing or missing.first == MIN_INT64 else missing.first,
        None if not missing or missing.last == MAX_INT64 else missing.last,
    )
