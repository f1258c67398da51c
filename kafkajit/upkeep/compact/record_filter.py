"""A chunk of batches → the same without some of their records: copied, written anew, or left out.

Answers to MemoryRecords.filterTo. A batch that loses nothing stays byte for byte. One that loses
records keeps its offsets, its codec and what its producer said of it. One that loses all of them
may stay as a header, for its last offset or its producer's last sequence number. Messages of v0 and
v1 become batches of v2, even if they lose nothing.

A batch with tombstones, or with a marker of a transaction that is empty, is given a delete horizon
when that is first noticed, in place of its base timestamp: later than that they go, too.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from kafkajit.encode.record_writer import finish_batch
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
from kafkajit.format.varint import put_varint, read_varint, varlong_size
from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import WIDE, copy_bytes
from kafkajit.records.batches import Batches
from kafkajit.records.decode import Chunk, located
from kafkajit.storage.source import Bytes, Int64s, Mask
from kafkajit.upkeep.compact.record_bitmap import Bitmap, is_set

Headers = npt.NDArray[np.void]
_Buffer = TypeVar("_Buffer", npt.NDArray[np.uint8], npt.NDArray[np.void])

# What becomes of a batch.
DROPPED, EMPTIED, REWRITTEN, COPIED = range(4)

_NO_TIMESTAMP = -1
_NO_HORIZON = -1


class Run(NamedTuple):
    """Batches that lie behind one another, all messages or none of them.

    Some have not been read, of which either every record is superseded or none, and no tombstone
    is among them.
    """

    batches: Batches
    counts: Int64s  # of records
    is_read: Mask
    chunk: Chunk  # those that are read


# A row that stays; in a batch that is rewritten, what its record takes from the key on.
_KEPT = np.dtype([("row", np.int64), ("tail", np.int64)])

# What stays of a batch, and where its bytes go.
# In `payload`, of one whose records are not compressed or not written.
_NO_PAYLOAD = -1
_REST = np.dtype(
    [
        ("records", np.int64),
        ("kept", np.int64),  # the first of the rows that stay
        ("firstOffset", np.int64),
        ("lastOffset", np.int64),
        ("firstTimestamp", np.int64),
        ("maxTimestamp", np.int64),
        ("tombstones", np.int64),
        ("action", np.int64),
        ("from", np.int64),  # in the source, where it is copied
        ("plainSize", np.int64),  # of its records, where they are written
        ("payload", np.int64),  # where those are compressed
        ("payloadSize", np.int64),
        ("size", np.int64),  # in all
    ]
)


class Retention(NamedTuple):
    """What to do with each of some batches."""

    discards: Mask  # none of its records stays
    keeps_header: Mask  # even if none does
    keeps_tombstones: Mask
    wants_horizon: Mask  # whether it has tombstones or not


class Filtered(NamedTuple):
    """Batches as they come out; bytes and positions are good until the next are filtered."""

    content: Bytes
    batches: Batches
    actions: Int64s  # for each batch that went in
    records: int


class RecordFilter:
    """Filters batches, run after run, in buffers that are used again.

    New delete horizons are `delete_horizon`; a negative one is none.
    """

    def __init__(self, delete_horizon: int) -> None:
        self._horizon = delete_horizon
        self._compressors: dict[int, Compressor] = {}
        self._kept = np.empty(0, dtype=_KEPT)
        self._plain = np.empty(0, dtype=np.uint8)
        self._payload = np.empty(0, dtype=np.uint8)
        self._out = np.empty(0, dtype=np.uint8)

    def filter(
        self,
        run: Run,
        source: Bytes,
        retention: Retention,
        superseded: Bitmap,
        first: int,
    ) -> Filtered:
        """The batches of a run without the records that are superseded or not to be kept.

        Its records have the bits of `superseded` from number `first` on; `source` is what its
        batches stand in.
        """
        batches, chunk = run.batches, run.chunk
        rests = np.zeros(len(batches), dtype=_REST)
        self._kept = _with_room(self._kept, chunk.rows)
        _retain(
            *(chunk.fields, run.counts, run.is_read, batches.is_control, retention.discards),
            *(retention.keeps_tombstones, superseded, first, self._kept, rests),
        )
        records = int(rests["records"].sum())
        has_horizon = batches.has_delete_horizon & ~batches.is_message
        needs_horizon = ((rests["tombstones"] > 0) | retention.wants_horizon) & ~has_horizon
        actions = _actions(run, rests, retention.keeps_header, needs_horizon)
        rests["action"] = actions
        if (actions == COPIED).all():
            content = source[int(batches.position[0]) : int(batches.end[-1])]
            moved = Batches(batches.position - batches.position[0], batches.header)
            return Filtered(content, moved, actions, records)
        rests["from"], rests["size"] = batches.position, batches.size_in_bytes
        rests["payload"] = _NO_PAYLOAD
        horizons = np.where(needs_horizon, self._horizon, _NO_HORIZON)
        horizons[has_horizon] = batches.field("baseTimestamp")[has_horizon]
        headers = _headers(batches, rests, horizons)
        self._size(run, headers, rests)
        content, batches = self._written(run, source, headers, rests)
        return Filtered(content, batches, actions, records)

    def _size(self, run: Run, headers: Headers, rests: Headers) -> None:
        """Find out how large each batch will be; compress what is to be compressed."""
        _size_records(
            run.chunk.content, run.chunk.fields, self._kept, headers, run.batches.is_message, rests
        )
        rewritten = rests["action"] == REWRITTEN
        codecs = np.where(rewritten, run.batches.codec, 0)
        rests["payloadSize"] = rests["plainSize"]
        if codecs.any():
            self._compress(run, headers, rests, codecs)
        written = rests["action"] != COPIED
        rests["size"][written] = RECORD_BATCH_OVERHEAD + rests["payloadSize"][written]
        rests["size"][rests["action"] == DROPPED] = 0
        if (rests["size"] > MAX_INT32).any():
            row = int(np.argmax(rests["size"]))
            error = InvalidRecordError(f"a batch would grow to {rests['size'][row]} bytes")
            raise located(error, run.chunk.path, run.batches, row)

    def _compress(
        self, run: Run, headers: Headers, rests: Headers, codecs: npt.NDArray[np.int16]
    ) -> None:
        wanted = codecs != 0
        sizes = np.where(wanted, rests["plainSize"], 0)
        ends = np.cumsum(sizes)
        self._plain = _with_room(self._plain, int(ends[-1]) + WIDE)
        _write_plain(
            *(run.chunk.content, run.chunk.fields, self._kept, headers, run.batches.is_message),
            *(rests, wanted, self._plain),
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
        rests["payload"][wanted] = places[:-1]
        rests["payloadSize"][wanted] = np.diff(places)

    def _written(
        self, run: Run, source: Bytes, headers: Headers, rests: Headers
    ) -> tuple[Bytes, Batches]:
        ends = np.cumsum(rests["size"])
        size = int(ends[-1])
        self._out = _with_room(self._out, size + WIDE)
        headers["batchLength"] = rests["size"] - LOG_OVERHEAD
        _write(
            *(source, run.chunk.content, run.chunk.fields, self._kept, _read_only(self._payload)),
            *(run.batches.is_message, headers, bytes_of(headers), rests, self._out),
        )
        content = _read_only(self._out[:size])
        stays = rests["action"] != DROPPED
        return content, Batches((ends - rests["size"])[stays], headers[stays])


def _read_only(buffer: npt.NDArray[np.uint8]) -> Bytes:
    view = buffer[:]
    view.flags.writeable = False
    return view


def _with_room(buffer: _Buffer, size: int) -> _Buffer:
    return buffer if buffer.size >= size else np.empty_like(buffer, shape=size)


def _actions(run: Run, rests: Headers, keeps_header: Mask, needs_horizon: Mask) -> Int64s:
    loses_nothing = (rests["records"] == run.counts) & ~needs_horizon & ~run.batches.is_message
    with_records = np.where(loses_nothing, COPIED, REWRITTEN)
    without = np.where(keeps_header, EMPTIED, DROPPED)
    return np.where(rests["records"] > 0, with_records, without)


def _headers(batches: Batches, rests: Headers, horizons: Int64s) -> Headers:
    """Those of batches as they come out, but for their lengths and checksums."""
    headers = batches.header.copy()
    kept = TIMESTAMP_TYPE_MASK | TRANSACTIONAL_MASK | CONTROL_MASK
    emptied = rests["action"] == EMPTIED
    headers["magic"][emptied] = MAGIC_V2
    headers["attributes"][emptied] &= kept
    headers["baseTimestamp"][emptied] = _NO_TIMESTAMP
    headers["recordsCount"][emptied] = 0

    rewritten = rests["action"] == REWRITTEN
    old, rest, horizon = headers[rewritten], rests[rewritten], horizons[rewritten]
    old["magic"] = MAGIC_V2
    old["attributes"] &= kept | COMPRESSION_CODEC_MASK
    old["attributes"][horizon >= 0] |= DELETE_HORIZON_MASK
    old["baseTimestamp"] = np.where(horizon >= 0, horizon, rest["firstTimestamp"])
    own_time = old["attributes"] & TIMESTAMP_TYPE_MASK == 0
    old["maxTimestamp"][own_time] = rest["maxTimestamp"][own_time]
    old["recordsCount"] = rest["records"]
    messages = batches.is_message[rewritten]
    old["baseOffset"][messages] = rest["firstOffset"][messages]
    old["lastOffsetDelta"][messages] = (rest["lastOffset"] - rest["firstOffset"])[messages]
    headers[rewritten] = old
    return headers


@kernel
def _retain(
    records,
    counts,
    is_read,
    is_control,
    discards,
    keeps_tombstones,
    superseded,
    number,
    kept,
    rests,
):
    """Say of each batch how many records stay and, one behind the other in `kept`, which."""
    row, count = np.int64(0), np.int64(0)
    for batch in range(counts.size):
        rest = rests[batch]
        rest["kept"] = count
        if not is_read[batch]:
            if counts[batch] > 0 and not discards[batch] and not is_set(superseded, number):
                rest["records"] = counts[batch]
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
                rest["tombstones"] += is_tombstone
                max_timestamp = max(max_timestamp, record["timestamp"])
            rest["records"] = count - rest["kept"]
            if rest["records"] > 0:
                first, last = records[kept[rest["kept"]]["row"]], records[kept[count - 1]["row"]]
                rest["firstOffset"], rest["lastOffset"] = first["offset"], last["offset"]
                rest["firstTimestamp"], rest["maxTimestamp"] = first["timestamp"], max_timestamp
            row += counts[batch]
        number += counts[batch]


@kernel
def _size_records(content, records, kept, headers, is_message, rests):
    """How large the records of rewritten batches will be, and what is copied of each."""
    for batch in range(rests.size):
        rest = rests[batch]
        if rest["action"] == REWRITTEN:
            size = np.int64(0)
            for i in range(rest["kept"], rest["kept"] + rest["records"]):
                record = records[kept[i]["row"]]
                kept[i]["tail"] = _tail_size(content, record, is_message[batch])
                body = _body_size(record, kept[i]["tail"], headers[batch])
                size += varlong_size(body) + body
            rest["plainSize"] = size


@kernel
def _tail_size(content, record, is_message):
    """What a record takes from its key on."""
    key, value_size = np.int64(record["key"]), np.int64(record["valueSize"])
    if is_message:
        fields = max(np.int64(record["keySize"]), np.int64(0)) + max(value_size, np.int64(0))
        return fields + varlong_size(value_size) + 1
    p = np.int64(record["headers"])
    for _ in range(2 * record["headersCount"]):
        size, p = read_varint(content, p, content.size)
        p += max(size, np.int64(0))
    return p - key


@inlined
def _body_size(record, tail, header):
    """Of a record behind its length."""
    return (
        1
        + varlong_size(record["timestamp"] - header["baseTimestamp"])
        + varlong_size(record["offset"] - header["baseOffset"])
        + varlong_size(np.int64(record["keySize"]))
        + np.int64(tail)
    )


@kernel
def _write_plain(content, records, kept, headers, is_message, rests, wanted, out):
    """The records of the batches that are wanted, one behind the other."""
    w = np.int64(0)
    for batch in range(rests.size):
        if wanted[batch]:
            w = _write_records(
                content, records, kept, rests[batch], headers[batch], is_message[batch], out, w
            )


@kernel
def _write_records(content, records, kept, rest, header, is_message, out, w):
    """The records of one batch; where they end."""
    for i in range(rest["kept"], rest["kept"] + rest["records"]):
        record, tail = records[kept[i]["row"]], np.int64(kept[i]["tail"])
        key, key_size = np.int64(record["key"]), np.int64(record["keySize"])
        w = put_varint(out, w, _body_size(record, tail, header))
        out[w] = 0  # attributes
        w = put_varint(out, w + 1, record["timestamp"] - header["baseTimestamp"])
        w = put_varint(out, w, record["offset"] - header["baseOffset"])
        w = put_varint(out, w, key_size)
        if not is_message:
            copy_bytes(out, w, content, key, tail)
            w += tail
            continue
        if key_size > 0:
            copy_bytes(out, w, content, key, key_size)
            w += key_size
        value_size = np.int64(record["valueSize"])
        w = put_varint(out, w, value_size)
        if value_size > 0:
            copy_bytes(out, w, content, np.int64(record["value"]), value_size)
            w += value_size
        out[w] = 0  # headers
        w += 1
    return w


@kernel
def _write(source, content, records, kept, payload, is_message, headers, header_bytes, rests, out):
    """Batches as they come out; `out` has WIDE bytes of room behind the last."""
    position = np.int64(0)
    for batch in range(rests.size):
        rest = rests[batch]
        end = position + rest["size"]
        if rest["action"] == COPIED:
            copy_bytes(out, position, source, rest["from"], rest["size"])
        elif rest["action"] != DROPPED:
            behind_header = position + RECORD_BATCH_OVERHEAD
            if rest["payload"] != _NO_PAYLOAD:
                copy_bytes(out, behind_header, payload, rest["payload"], rest["payloadSize"])
            elif rest["action"] == REWRITTEN:
                _write_records(
                    content,
                    records,
                    kept,
                    rest,
                    headers[batch],
                    is_message[batch],
                    out,
                    behind_header,
                )
            finish_batch(headers, header_bytes, batch, out, position, end)
        position = end
