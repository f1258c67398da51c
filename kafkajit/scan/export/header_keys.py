"""Records with a header key that is not UTF-8, which no exported column can hold.

Readers decode header keys as Java does: bytes that are not UTF-8 become U+FFFD. A key may also have
this character itself. So the records of a row with U+FFFD are looked up in their batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafkajit.errors import InvalidOffsetError
from kafkajit.log.resumption import segment_with
from kafkajit.log.segment import Segment
from kafkajit.records.chunk import Chunk
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.scan.options import ScanOptions
from kafkajit.storage.source import Int64s, Mask
from kafkajit.walk.damage import DROPMALFORMED
from kafkajit.walk.walk import Walk

WHY = "a header key is not UTF-8"
_REPLACED = "\ufffd"
_REPLACED_BYTES = re.compile(_REPLACED.encode())


def malformed_keys(
    rows: pa.RecordBatch, segments: Sequence[Segment], scan: ScanOptions
) -> Mask | None:
    """Whether each row has a header key that is not UTF-8; None if no row has."""
    headers = rows["headers"]
    keys = headers.flatten().field("key")
    data = keys.buffers()[2]
    if data is None or _REPLACED_BYTES.search(data) is None:
        return None
    suspect = pc.match_substring(keys, _REPLACED).to_numpy(zero_copy_only=False)
    suspects = np.unique(pc.list_parent_indices(headers).to_numpy()[suspect])
    is_malformed = np.zeros(rows.num_rows, dtype=bool)
    offsets, positions = (rows[name].to_numpy() for name in ("offset", "position"))
    for position in np.unique(positions[suspects]).tolist():
        waiting = suspects[positions[suspects] == position]
        while waiting.size:  # rows of several segments may have batches at this position
            first = int(offsets[waiting[0]])
            batch = _batch_with(first, position, segments, scan)
            last = int(batch.batches.last_offset[0])
            here, waiting = np.split(waiting, [int((offsets[waiting] <= last).sum())])
            is_malformed[here] = np.isin(offsets[here], list(_malformed_in(batch, offsets[here])))
    return is_malformed if is_malformed.any() else None


def _batch_with(
    offset: int, position: int, segments: Sequence[Segment], scan: ScanOptions
) -> Chunk:
    """The batch that a row was read from, again, as its first one."""
    segment = segment_with(segments, offset)
    if segment is not None:
        walk = Walk(segment.log.open(position), mode=DROPMALFORMED, start=position)
        parts = walk.chunks(
            ColumnMemory(Wanted(offset=True, headers=True)),
            check_crcs=scan.check_crcs,
            max_decompressed_bytes=scan.max_decompressed_bytes,
            max_records=1,
        )
        chunk = next(parts, None)
        if isinstance(chunk, Chunk) and int(chunk.batches.last_offset[0]) >= offset:
            return chunk
    raise InvalidOffsetError(
        f"offset {offset} is not at position {position} any more",
        path=segments[0].log.folder,
        advice="the log has changed while it was read: export it again",
    )


def _malformed_in(batch: Chunk, suspects: Int64s) -> Iterator[int]:
    """Those of some offsets in a batch whose record has such a key."""
    firsts, keys, _ = batch.columns.headers
    found = batch.columns.offset[: int(batch.counts[0])]
    for row in np.flatnonzero(np.isin(found, suspects)).tolist():
        headers = range(firsts[row], firsts[row + 1])
        texts = (keys.data[keys.offsets[one] : keys.offsets[one + 1]] for one in headers)
        if not all(_is_text(text.tobytes()) for text in texts):
            yield int(found[row])


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
