"""Reads from control batches how transactions ended: which way, by which coordinator, when.

Answers to EndTransactionMarker.deserialize, which looks at a batch's first record.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.errors import KafkaJitError
from kafkajit.records.batches import Batches
from kafkajit.records.chunk import Chunk, without_bad_markers
from kafkajit.records.control_records import read_control_records
from kafkajit.records.decode import Decoder
from kafkajit.storage.source import Int64s, Mask

# The type of a batch that compaction has emptied.
NO_MARKER = -1


class Markers(NamedTuple):
    """A row for each control batch."""

    type_id: npt.NDArray[np.int16]
    coordinator_epoch: npt.NDArray[np.int32]
    timestamp: Int64s

    def __len__(self) -> int:
        return self.type_id.size

    def between(self, start: int, end: int) -> Markers:
        """The markers of these rows."""
        rows = slice(start, end)
        return Markers(self.type_id[rows], self.coordinator_epoch[rows], self.timestamp[rows])


NO_MARKERS = Markers(np.empty(0, np.int16), np.empty(0, np.int32), np.empty(0, np.int64))


def read_markers(
    decoder: Decoder, batches: Batches, sound: Mask
) -> tuple[Markers, KafkaJitError | None]:
    """Read control batches up to the first that cannot be read, and return that one's error.

    The decoder must be one that finds `fields`; `sound` is its result for the batches.
    """
    good, error = len(batches), None
    if not sound.all():
        good = int(np.argmin(sound))
        error = decoder.unsound(batches, good)
    found: list[Markers] = [NO_MARKERS]
    done = 0
    while done < good:
        chunk = without_bad_markers(decoder.decode(batches[done:good]))
        found.append(_first_records(chunk))
        done += len(chunk.batches)
        if chunk.error is not None:
            error = chunk.error
            break
    return Markers(*map(np.concatenate, zip(*found, strict=True))), error


def _first_records(chunk: Chunk) -> Markers:
    count = len(chunk.batches)
    markers = Markers(
        np.full(count, NO_MARKER, dtype=np.int16),
        np.full(count, -1, dtype=np.int32),
        np.full(count, -1, dtype=np.int64),
    )
    filled = chunk.counts > 0
    records = chunk.fields[(np.cumsum(chunk.counts) - chunk.counts)[filled]]
    read = read_control_records(chunk.content, records)
    markers.type_id[filled] = read.type_id
    markers.coordinator_epoch[filled] = read.coordinator_epoch
    markers.timestamp[filled] = records["timestamp"]
    return markers
