"""The pieces that a segment's log is made of: stretches of logs, and batches that are written."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.encode.writer import encode_batches
from kafkajit.errors import KafkaJitError
from kafkajit.format.layout import BATCH_HEADER, RECORD_BATCH_OVERHEAD
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.ranges import Range
from kafkajit.reader import read_record_batches, read_records
from kafkajit.storage.source import Mask, Source, open_file
from kafkajit.walk.walk import Walk


class Extent(NamedTuple):
    """Bytes of a log that stay."""

    log: Path
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


class Written(NamedTuple):
    """Batches that are written, and the line about them."""

    content: bytes
    what: str
    of: Extent | None  # the batch that it is a part of
    records: int

    @property
    def size(self) -> int:
        return len(self.content)

    @property
    def begin(self) -> int:
        """The position in the log of the batch that it is a part of."""
        return 0 if self.of is None else self.of.start


Piece = Extent | Written


def are_in(rows: npt.NDArray[np.void], extents: Iterable[Extent]) -> Mask:
    """Whether each batch of a log, by its position and end, is in one of these extents of it."""
    found = np.zeros(rows.size, dtype=np.bool_)
    for _, start, end in extents:
        found |= (rows["position"] >= start) & (rows["end"] <= end)
    return found


def runs_of(rows: npt.NDArray[np.void], lies: Mask) -> Iterator[tuple[npt.NDArray[np.void], bool]]:
    """Batches side by side in a log, those with a wrong offset alone, and whether they have one."""
    is_break = (rows["position"][1:] != rows["end"][:-1]) | lies[1:] | lies[:-1]
    cuts = np.flatnonzero(is_break) + 1
    for run, is_wrong in zip(np.split(rows, cuts), np.split(lies, cuts), strict=True):
        yield run, bool(is_wrong[0])


def put_right(extent: Extent, row: np.void) -> Written:
    """A set of messages with the offset of its last one in its header, which no checksum covers."""
    last = int(row["last"])
    with open_file(extent.log) as file:
        file.seek(extent.start)
        content = file.read(extent.size)
    what = f"write the offset {last} of the set at {extent.start}"
    return Written(last.to_bytes(8, "big") + content[8:], what, extent, int(row["records"]))


def producer_of(marker: Written) -> int:
    """The producer of a marker that is written."""
    return int(np.frombuffer(marker.content[:RECORD_BATCH_OVERHEAD], BATCH_HEADER)["producerId"][0])


def source_of(piece: Piece) -> tuple[Source, int, int]:
    """The bytes with a piece, and where it begins and ends there."""
    if isinstance(piece, Extent):
        return Source(str(piece.log)), piece.start, piece.end
    return Source(piece.content), 0, piece.size


def with_pieces(pieces: Iterable[Piece], others: Iterable[tuple[int, Written]]) -> Iterator[Piece]:
    """The pieces with others, each in front of the first batch behind its offset."""
    waiting = deque(sorted(others, key=itemgetter(0)))
    for piece in pieces:
        if not waiting:
            yield piece
            continue
        source, start, end = source_of(piece)
        for batches in Walk(source, start=start, end=end, is_last=True).framed():
            highest = np.maximum.accumulate(batches.header["baseOffset"].astype(np.int64))
            while waiting and waiting[0][0] < highest[-1]:
                row = np.searchsorted(highest, waiting[0][0], side="right")
                position = int(batches.position[row])
                if isinstance(piece, Extent) and position > piece.start:
                    yield piece._replace(end=position)
                    piece = piece._replace(start=position)
                yield waiting.popleft()[1]
        yield piece
    yield from (piece for _, piece in waiting)


def part_of(batch: Extent, offsets: Range) -> Written | None:
    """The records of a batch with these offsets, as a batch; None if it has no such records."""
    with open_file(batch.log) as file:
        file.seek(batch.start)
        content = file.read(batch.size)
    try:
        records = read_records(content)
    except KafkaJitError:
        return None  # its checksum is right, but its records are not
    found = [offsets.first <= offset <= offsets.last for offset in records["offset"].to_pylist()]
    chosen = records.filter(pa.array(found, pa.bool_()))
    if not chosen.num_rows:
        return None
    (header,) = read_record_batches(content).to_pylist()
    written = encode_batches(
        chosen.drop_columns(["baseOffset", "position"]),  # which would keep the old header
        compression_type=header["compressionType"],
        batch_size=MAX_INT32,
        delete_horizon_ms=header["deleteHorizonMs"],
    )
    first, last = chosen["offset"][0].as_py(), chosen["offset"][-1].as_py()
    what = f"offsets {first} to {last} of the batch at {batch.start} of {batch.log.name} stay"
    return Written(written.to_pybytes(), what, batch, chosen.num_rows)
