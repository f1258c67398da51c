"""Reads from control batches how transactions ended: which way, by which coordinator, when.

Answers to EndTransactionMarker.deserialize, which looks at a batch's first record.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from kafkajit.errors import KafkaJitError
from kafkajit.format.layout import (
    COMPRESSION_CODEC_MASK,
    MAGIC_V2,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
)
from kafkajit.records.batches import Batches
from kafkajit.records.chunk import Chunk, without_bad_markers
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.control_records import COMMIT, read_control_records
from kafkajit.records.decode import Decoder
from kafkajit.storage.source import Bytes, Int64s, Mask, Source

# The type of a batch that compaction has emptied.
NO_MARKER = -1


# The record of a COMMIT or an ABORT: its length, attributes, differences of time and offset, then
# the key (its length, version, type), the value (its length, version, the coordinator's epoch), and
# the number of headers.
_CONTENTS = np.dtype(
    {
        "names": ["type", "coordinatorEpoch"],
        "formats": [">u2", ">i4"],
        "offsets": [7, 12],
        "itemsize": 17,
    }
)
_USUAL = np.frombuffer(b"\x20\0\0\0\x08\0\0\0\0\x0c\0\0\0\0\0\0\0", dtype=np.uint8)
# The type, the epoch and the attributes may be any, and so may versions, unless they are negative.
_FIXED_BITS = np.frombuffer(b"\xff\0\xff\xff\xff\x80\0\0\0\xff\x80\0\0\0\0\0\xff", dtype=np.uint8)
_USUAL_SIZE = RECORD_BATCH_OVERHEAD + _USUAL.size


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
    usual = _usual_markers(decoder.content, batches[:good])
    if usual is not None:
        return usual, error
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


def marker_errors(source: Source, batches: Batches) -> dict[int, KafkaJitError]:
    """The errors of the control batches among sound ones that cannot be read, by position."""
    errors = {}
    decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
    while len(batches):
        found, error = read_markers(decoder, batches, np.ones(len(batches), dtype=np.bool_))
        batches = batches[len(found) :]
        if error is not None:
            errors[int(batches.position[0])] = error
        batches = batches[1:]
    return errors


def _usual_markers(content: Bytes, batches: Batches) -> Markers | None:
    """The markers as they lie in the bytes; None if one is not as brokers write it.

    Decoding is for all forms that a record can have, and takes five times as long.
    """
    attributes = batches.field("attributes")
    has_usual_header = (
        (batches.field("magic") == MAGIC_V2)
        & (batches.size_in_bytes == _USUAL_SIZE)
        & (batches.field("recordsCount") == 1)
        & (attributes & (COMPRESSION_CODEC_MASK | TIMESTAMP_TYPE_MASK) == 0)
    )
    if not len(batches) or not has_usual_header.all():
        return None
    record = sliding_window_view(content, _USUAL.size)[batches.position + RECORD_BATCH_OVERHEAD]
    read = record.view(_CONTENTS)[:, 0]
    if ((record ^ _USUAL) & _FIXED_BITS).any() or (read["type"] > COMMIT).any():
        return None
    return Markers(
        read["type"].astype(np.int16),
        read["coordinatorEpoch"].astype(np.int32),
        batches.field("baseTimestamp").astype(np.int64),
    )


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
