"""Filter batches: copy them, rewrite them without some of their records, or drop them.

Answers to MemoryRecords.filterTo. A batch that loses nothing stays byte for byte. A batch that
loses records keeps its offsets, its codec and its producer's fields. A batch that loses all records
may stay as a header, for its last offset or its producer's last sequence number. Messages of v0 and
v1 become batches of v2, even if they lose nothing.

A batch with tombstones, or with the marker of an empty transaction, gets a delete horizon in place
of its base timestamp when it is first compacted: after that time its tombstones go too.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from kafkajit.errors import InvalidRecordError
from kafkajit.format.compressor import Compressor, compressed_bound
from kafkajit.format.layout import (
    COMPRESSION_CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    LOG_OVERHEAD,
    MAGIC_V2,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    bytes_of,
)
from kafkajit.format.limits import MAX_INT32
from kafkajit.kernel import kernel
from kafkajit.kernel.intrinsics import WIDE
from kafkajit.records.batches import Batches
from kafkajit.records.chunk import Chunk, located
from kafkajit.storage.source import Bytes, Int64s, Mask
from kafkajit.upkeep.compact.batch_rewriting import (
    COPIED,
    DROPPED,
    EMPTIED,
    KEPT,
    NO_PAYLOAD,
    OUTCOME,
    REWRITTEN,
    size_records,
    write_batches,
    write_plain,
)
from kafkajit.upkeep.compact.record_bitmap import Bitmap, is_set

Headers = npt.NDArray[np.void]
_Buffer = TypeVar("_Buffer", npt.NDArray[np.uint8], npt.NDArray[np.void])

_NO_TIMESTAMP = -1
_NO_HORIZON = -1


class Run(NamedTuple):
    """Consecutive batches, either all of v2 or all messages of v0 and v1.

    A batch may be left unread if all of its records are superseded, or if none is and it has no
    tombstones.
    """

    batches: Batches
    counts: Int64s  # the number of records in each batch
    is_read: Mask
    chunk: Chunk  # the batches that are read


class BatchDecisions(NamedTuple):
    """The decisions of a compaction, one for each batch of a run."""

    discards: Mask  # no record stays
    keeps_header: Mask  # the header stays even if no record does
    keeps_tombstones: Mask
    wants_horizon: Mask  # a delete horizon, with or without tombstones
    ages_tombstones: Mask  # its tombstones may go one day: they get a delete horizon


class Filtered(NamedTuple):
    """Filtered batches; their bytes and positions are valid until the next call of `filter`."""

    content: Bytes
    batches: Batches
    actions: Int64s  # what became of each batch of the run
    records: int  # that stay


class RecordFilter:
    """Filters batches, run after run, in buffers that are reused.

    Args:
        delete_horizon: the delete horizon of batches that get one; negative for no horizon.
    """

    def __init__(self, delete_horizon: int) -> None:
        self._horizon = delete_horizon
        self._compressors: dict[int, Compressor] = {}
        self._kept = np.empty(0, dtype=KEPT)
        self._plain = np.empty(0, dtype=np.uint8)
        self._payload = np.empty(0, dtype=np.uint8)
        self._out = np.empty(0, dtype=np.uint8)

    def filter(
        self,
        run: Run,
        source: Bytes,
        decisions: BatchDecisions,
        superseded: Bitmap,
        first: int,
    ) -> Filtered:
        """Filter the batches of a run.

        Args:
            run: the batches.
            source: the bytes that the batches lie in.
            decisions: what to do with each batch.
            superseded: a bit for each record that is not kept.
            first: the number of the run's first record in `superseded`.
        """
        batches, chunk = run.batches, run.chunk
        outcomes = np.zeros(len(batches), dtype=OUTCOME)
        self._kept = _with_room(self._kept, chunk.rows)
        _select_records(
            *(chunk.fields, run.counts, run.is_read, batches.is_control, decisions.discards),
            *(decisions.keeps_tombstones, superseded, first, self._kept, outcomes),
        )
        records = int(outcomes["records"].sum())
        has_horizon = batches.has_delete_horizon & ~batches.is_message
        has_tombstones = (outcomes["tombstones"] > 0) & decisions.ages_tombstones
        needs_horizon = (has_tombstones | decisions.wants_horizon) & ~has_horizon
        actions = _actions(run, outcomes, decisions.keeps_header, needs_horizon)
        outcomes["action"] = actions
        if (actions == COPIED).all():
            content = source[int(batches.position[0]) : int(batches.end[-1])]
            moved = Batches(batches.position - batches.position[0], batches.header)
            return Filtered(content, moved, actions, records)
        outcomes["from"], outcomes["size"] = batches.position, batches.size_in_bytes
        outcomes["payload"] = NO_PAYLOAD
        horizons = np.where(needs_horizon, self._horizon, _NO_HORIZON)
        horizons[has_horizon] = batches.field("baseTimestamp")[has_horizon]
        headers = _headers(batches, outcomes, horizons)
        self._size(run, headers, outcomes)
        content, batches = self._written(run, source, headers, outcomes)
        return Filtered(content, batches, actions, records)

    def _size(self, run: Run, headers: Headers, outcomes: Headers) -> None:
        """Compute the size of each batch and compress the records of rewritten ones."""
        size_records(
            run.chunk.content,
            run.chunk.fields,
            self._kept,
            headers,
            run.batches.is_message,
            outcomes,
        )
        rewritten = outcomes["action"] == REWRITTEN
        codecs = np.where(rewritten, run.batches.codec, 0)
        outcomes["payloadSize"] = outcomes["plainSize"]
        if codecs.any():
            self._compress(run, headers, outcomes, codecs)
        written = outcomes["action"] != COPIED
        outcomes["size"][written] = RECORD_BATCH_OVERHEAD + outcomes["payloadSize"][written]
        outcomes["size"][outcomes["action"] == DROPPED] = 0
        if (outcomes["size"] > MAX_INT32).any():
            row = int(np.argmax(outcomes["size"]))
            error = InvalidRecordError(f"a batch would grow to {outcomes['size'][row]} bytes")
            raise located(error, run.chunk.path, run.batches, row)

    def _compress(
        self, run: Run, headers: Headers, outcomes: Headers, codecs: npt.NDArray[np.int16]
    ) -> None:
        wanted = codecs != 0
        sizes = np.where(wanted, outcomes["plainSize"], 0)
        ends = np.cumsum(sizes)
        self._plain = _with_room(self._plain, int(ends[-1]) + WIDE)
        write_plain(
            *(run.chunk.content, run.chunk.fields, self._kept, headers, run.batches.is_message),
            *(outcomes, wanted, self._plain),
        )
        self._payload = _with_room(
            self._payload, compressed_bound(int(ends[-1]), len(wanted)) + WIDE
        )
        places = [0]
        start = 0
        for codec, end in zip(codecs[wanted].tolist(), ends[wanted].tolist(), strict=True):
            if codec not in self._compressors:
                self._compressors[codec] = Compressor(codec)
            compress = self._compressors[codec].write
            places.append(compress(self._plain[start:end], self._payload, places[-1]))
            start = end
        outcomes["payload"][wanted] = places[:-1]
        outcomes["payloadSize"][wanted] = np.diff(places)

    def _written(
        self, run: Run, source: Bytes, headers: Headers, outcomes: Headers
    ) -> tuple[Bytes, Batches]:
        ends = np.cumsum(outcomes["size"])
        size = int(ends[-1])
        self._out = _with_room(self._out, size + WIDE)
        headers["batchLength"] = outcomes["size"] - LOG_OVERHEAD
        write_batches(
            *(source, run.chunk.content, run.chunk.fields, self._kept, _read_only(self._payload)),
            *(run.batches.is_message, headers, bytes_of(headers), outcomes, self._out),
        )
        content = _read_only(self._out[:size])
        stays = outcomes["action"] != DROPPED
        return content, Batches((ends - outcomes["size"])[stays], headers[stays])


def _read_only(buffer: npt.NDArray[np.uint8]) -> Bytes:
    view = buffer[:]
    view.flags.writeable = False
    return view


def _with_room(buffer: _Buffer, size: int) -> _Buffer:
    return buffer if buffer.size >= size else np.empty_like(buffer, shape=size)


def _actions(run: Run, outcomes: Headers, keeps_header: Mask, needs_horizon: Mask) -> Int64s:
    loses_nothing = (outcomes["records"] == run.counts) & ~needs_horizon & ~run.batches.is_message
    with_records = np.where(loses_nothing, COPIED, REWRITTEN)
    without = np.where(keeps_header, EMPTIED, DROPPED)
    return np.where(outcomes["records"] > 0, with_records, without)


def _headers(batches: Batches, outcomes: Headers, horizons: Int64s) -> Headers:
    """The headers of filtered batches without their lengths and checksums."""
    headers = batches.header.copy()
    kept = TIMESTAMP_TYPE_MASK | TRANSACTIONAL_MASK | CONTROL_MASK
    emptied = outcomes["action"] == EMPTIED
    headers["magic"][emptied] = MAGIC_V2
    headers["attributes"][emptied] &= kept
    headers["baseTimestamp"][emptied] = _NO_TIMESTAMP
    headers["recordsCount"][emptied] = 0

    rewritten = outcomes["action"] == REWRITTEN
    old, outcome, horizon = headers[rewritten], outcomes[rewritten], horizons[rewritten]
    old["magic"] = MAGIC_V2
    old["attributes"] &= kept | COMPRESSION_CODEC_MASK
    old["attributes"][horizon >= 0] |= DELETE_HORIZON_MASK
    old["baseTimestamp"] = np.where(horizon >= 0, horizon, outcome["firstTimestamp"])
    own_time = old["attributes"] & TIMESTAMP_TYPE_MASK == 0
    old["maxTimestamp"][own_time] = outcome["maxTimestamp"][own_time]
    old["recordsCount"] = outcome["records"]
    messages = batches.is_message[rewritten]
    old["baseOffset"][messages] = outcome["firstOffset"][messages]
    old["lastOffsetDelta"][messages] = (outcome["lastOffset"] - outcome["firstOffset"])[messages]
    headers[rewritten] = old
    return headers


@kernel
def _select_records(
    records,
    counts,
    is_read,
    is_control,
    discards,
    keeps_tombstones,
    superseded,
    number,
    kept,
    outcomes,
):
    """Count the records of each batch that stay, and list their rows in `kept`."""
    row, count = np.int64(0), np.int64(0)
    for batch in range(counts.size):
        outcome = outcomes[batch]
        outcome["kept"] = count
        if not is_read[batch]:
            if counts[batch] > 0 and not discards[batch] and not is_set(superseded, number):
                outcome["records"] = counts[batch]
        elif discards[batch]:
            row += counts[batch]
        else:
            max_timestamp = np.int64(_NO_TIMESTAMP)
            for at in range(row, row + counts[batch]):
                record = records[at]
                is_tombstone = record["valueSize"] < 0
                if not is_control[batch]:
                    if is_set(superseded, number + at - row):
                        continue
                    if is_tombstone and not keeps_tombstones[batch]:
                        continue
                kept[count]["row"] = at
                count += 1
                outcome["tombstones"] += is_tombstone
                max_timestamp = max(max_timestamp, record["timestamp"])
            outcome["records"] = count - outcome["kept"]
            if outcome["records"] > 0:
                first, last = records[kept[outcome["kept"]]["row"]], records[kept[count - 1]["row"]]
                outcome["firstOffset"], outcome["lastOffset"] = first["offset"], last["offset"]
                outcome["firstTimestamp"], outcome["maxTimestamp"] = (
                    first["timestamp"],
                    max_timestamp,
                )
            row += counts[batch]
        number += counts[batch]
