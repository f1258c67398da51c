"""The last batch of a log if it lies behind a hole: compaction, or a base offset that is damaged.

No checksum covers a base offset. A position behind a wrong one would run ahead, and the records
that come next would never be read. So such a batch is read once another one follows it, or if the
log was compacted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from kafkajit.errors import KafkaJitError
from kafkajit.log.footing import ReadBatch
from kafkajit.log.missing_segments import may_have_hole
from kafkajit.log.positions import Believed, IndexEntries, believe, headers
from kafkajit.log.segment import Segment
from kafkajit.records.batches import lacks_records
from kafkajit.storage.stored_file import StoredFile


class Unsure(NamedTuple):
    """The end of a log before a last batch whose base offset may be wrong, and what is known."""

    end_offset: int
    text: str


def unsure_end(segments: Sequence[Segment], *, check_crcs: bool) -> Unsure | None:
    """The end of a log before its last batch, if that is not to be read yet."""
    last = next((one for one in reversed(segments) if one.log.size), None)
    if last is None:
        return None
    try:
        known = Believed(IndexEntries(last).late_position(), last.base_offset)
        known = believe(last.log, known, check_crcs=check_crcs)
        text = leap_text(last.log, known)
        if text is None or Leaps().is_usual(segments[: segments.index(last) + 1], last.log, known):
            return None
    except (OSError, EOFError, KafkaJitError):
        return None  # whoever reads the batch reports it
    return Unsure(known.offset, text)


class Leaps:
    """Judges the last batches of a log: each once."""

    def __init__(self) -> None:
        self._judged: ReadBatch | None = None
        self._is_usual = False

    def is_usual(self, segments: Sequence[Segment], log: StoredFile, known: Believed) -> bool:
        """Whether the last batch lies behind a hole that compaction explains."""
        if known.leap is None or known.leap.base_offset < known.offset:
            return False
        if known.leap != self._judged:
            end = replace(segments[-1], log=replace(log, size=known.position))
            is_usual = _was_cleaned(log, known.leap) or may_have_hole([*segments[:-1], end])
            self._judged, self._is_usual = known.leap, is_usual
        return self._is_usual


def _was_cleaned(log: StoredFile, batch: ReadBatch) -> bool:
    """Whether a cleaner has written a batch: it lacks records, or has the time of its removal."""
    found = next(headers(log, batch.position), None)
    if found is None:
        return False
    first = found[:1]
    return lacks_records(first) or bool(first.has_delete_horizon[0])


def leap_text(log: StoredFile, known: Believed) -> str | None:
    """A line about a log's last batch if it is not read; None if it is."""
    if known.leap is None:
        return None
    text = (
        f"the last batch of {log.name}, at position {known.leap.position}, begins at offset "
        f"{known.leap.base_offset}, the one before it ends at {known.offset - 1}"
    )
    if known.leap.base_offset < known.offset:
        return f"{text}: its base offset is damaged"
    return f"{text}, and nothing tells that the log was compacted: its base offset may be damaged"
