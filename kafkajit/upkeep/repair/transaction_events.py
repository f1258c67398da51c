"""The batches of transactions and the markers of a log, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.records.batches import Batches
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.control_records import ABORT, COMMIT
from kafkajit.records.decode import Decoder
from kafkajit.records.markers import NO_MARKER, read_markers
from kafkajit.upkeep.repair.pieces import Piece, source_of
from kafkajit.walk.walk import Walk


class TransactionEvent(NamedTuple):
    """A batch of a transaction, or a marker."""

    first: int
    last: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int
    first_ms: int
    last_ms: int
    leader_epoch: int
    control_type: int | None  # None for data
    coordinator_epoch: int


def events_of(segments: Iterable[Sequence[Piece]]) -> Iterator[TransactionEvent]:
    """The batches of transactions and the markers of these segments, in order."""
    for pieces in segments:
        for piece in pieces:
            source, start, end = source_of(piece)
            decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
            for framed in Walk(source, start=start, end=end, is_last=True).framed():
                chosen = framed[framed.is_transactional]
                if len(chosen):
                    yield from _rows_of(chosen, decoder)
                source.forget(int(framed.end[-1]))


def _rows_of(batches: Batches, decoder: Decoder) -> Iterator[TransactionEvent]:
    types: npt.NDArray[np.int64] = np.full(len(batches), NO_MARKER, dtype=np.int64)
    coordinators = np.full(len(batches), -1, dtype=np.int64)
    control = np.flatnonzero(batches.is_control)
    if control.size:
        chosen = batches[batches.is_control]
        markers, _ = read_markers(decoder, chosen, np.ones(len(chosen), dtype=np.bool_))
        types[control[: len(markers)]] = markers.type_id
        coordinators[control[: len(markers)]] = markers.coordinator_epoch
    header: Any = batches.header
    for row in range(len(batches)):
        is_control = bool(batches.is_control[row])
        if is_control and types[row] not in (ABORT, COMMIT):
            continue
        one = header[row]
        yield TransactionEvent(
            int(one["baseOffset"]),
            int(batches.last_offset[row]),
            int(one["producerId"]),
            int(one["producerEpoch"]),
            int(one["baseSequence"]),
            0 if is_control else int(one["recordsCount"]),
            int(one["baseTimestamp"]),
            int(one["maxTimestamp"]),
            int(one["partitionLeaderEpoch"]),
            int(types[row]) if is_control else None,
            int(coordinators[row]),
        )
