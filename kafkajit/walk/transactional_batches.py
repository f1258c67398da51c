"""The batches of transactions in a segment, their markers, and the offsets that damage took."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.records.batches import Batches
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.control_records import ABORT
from kafkajit.records.decode import Decoder
from kafkajit.records.markers import read_markers
from kafkajit.records.transactions import TransactionalBatches
from kafkajit.storage.source import Mask, Source
from kafkajit.walk.damage import FAILFAST, Gap
from kafkajit.walk.selection import EVERYTHING, Selection
from kafkajit.walk.walk import Walk


class Holes:
    """The offsets that damaged bytes and damaged markers of a log may have had, as it is read."""

    def __init__(self) -> None:
        self._found: list[Range] = []
        self._behind = 0  # the last batch
        self._is_open = False

    def pass_gap(self) -> None:
        """Pass over damaged bytes."""
        self._is_open = True

    def pass_batches(self, batches: Batches, damaged: Batches | None) -> None:
        """Pass over batches, of which some are damaged."""
        first = int(batches.field("baseOffset")[0])
        if self._is_open and first > self._behind:
            self._found.append(Range(self._behind, first - 1))
        self._is_open = False
        if damaged is not None:
            lost = zip(damaged.field("baseOffset"), damaged.last_offset, strict=True)
            self._found += [Range(int(base), int(last)) for base, last in lost]
        self._behind = max(self._behind, int(batches.last_offset.max()) + 1)

    def ranges(self) -> list[Range]:
        """All of them, in order."""
        end = [Range(self._behind, MAX_INT64)] if self._is_open else []
        return sorted(self._found + end)


def transactional_batches(
    source: Source,
    mode: str,
    check_crcs: bool,
    *,
    reads_markers: bool = True,
    start: int = 0,
    end: int | None = None,
    asked: Selection = EVERYTHING,
    holes: Holes | None = None,
) -> Iterator[TransactionalBatches]:
    """The batches of transactions in a stretch of a segment, and their markers.

    `holes` takes up the offsets that damage may have had.
    """
    decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
    for framed in Walk(source, mode=mode, start=start, end=end, selection=asked).headers():
        if isinstance(framed, Gap):
            if holes is not None:
                holes.pass_gap()
            continue
        batches = framed[framed.is_transactional]
        is_abort = np.zeros(len(batches), dtype=np.bool_)
        damaged = None
        if reads_markers and batches.is_control.any():
            markers = batches[batches.is_control]
            is_abort[batches.is_control], bad = _aborts(decoder, markers, mode, check_crcs)
            damaged = markers[bad] if bad.any() else None
        if holes is not None:
            holes.pass_batches(framed, damaged)
        yield TransactionalBatches(
            batches.field("producerId").astype(np.int64),
            batches.field("baseOffset").astype(np.int64),
            batches.is_control,
            is_abort,
        )
        source.forget(int(framed.end[-1]))


def _aborts(decoder: Decoder, markers: Batches, mode: str, check_crcs: bool) -> tuple[Mask, Mask]:
    """Find the ABORT markers among these control batches, and the damaged ones.

    With FAILFAST a damaged one is an error.
    """
    sound = decoder.sound(markers, check_crcs=check_crcs)
    aborts, damaged = np.zeros((2, len(markers)), dtype=np.bool_)
    done = 0
    while done < len(markers):
        found, error = read_markers(decoder, markers[done:], sound[done:])
        aborts[done : done + len(found)] = found.type_id == ABORT
        done += len(found)
        if error is not None:
            if mode == FAILFAST:
                raise error
            damaged[done] = True
        done += 1  # behind the bad batch, if there is one
    return aborts, damaged
