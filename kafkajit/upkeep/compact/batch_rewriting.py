"""Kernels that rewrite batches with fewer records: sizes first, then bytes.

Records keep their bytes from the key on. Only the fields before it change, since they are relative
to the batch: length, timestamp delta, offset delta. Messages of v0 and v1 become records of v2.
"""

from __future__ import annotations

import numpy as np

from kafkajit.encode.record_writer import finish_batch
from kafkajit.format.layout import RECORD_BATCH_OVERHEAD
from kafkajit.format.varint import put_varint, read_varint, varlong_size
from kafkajit.kernel import inlined, kernel
from kafkajit.kernel.intrinsics import copy_bytes

# What becomes of a batch.
DROPPED, EMPTIED, REWRITTEN, COPIED = range(4)

# A record that stays.
KEPT = np.dtype(
    [
        ("row", np.int64),  # of the chunk
        ("tail", np.int64),  # the bytes from its key on, if its batch is rewritten
    ]
)

# What stays of a batch, and where its bytes go.
OUTCOME = np.dtype(
    [
        ("records", np.int64),
        ("kept", np.int64),  # the first of its rows in an array of KEPT
        ("firstOffset", np.int64),
        ("lastOffset", np.int64),
        ("firstTimestamp", np.int64),
        ("maxTimestamp", np.int64),
        ("tombstones", np.int64),
        ("action", np.int64),
        ("from", np.int64),  # position in the source, if it is copied
        ("plainSize", np.int64),  # size of its records before compression, if it is rewritten
        ("payload", np.int64),  # position of its compressed records, or NO_PAYLOAD
        ("payloadSize", np.int64),
        ("size", np.int64),  # of the whole batch
    ]
)
# The records are not compressed, or not written.
NO_PAYLOAD = -1


@kernel
def size_records(content, records, kept, headers, is_message, outcomes):
    """Compute the sizes of rewritten batches' records, and the bytes to copy of each record."""
    for batch in range(outcomes.size):
        outcome = outcomes[batch]
        if outcome["action"] == REWRITTEN:
            size = np.int64(0)
            for i in range(outcome["kept"], outcome["kept"] + outcome["records"]):
                record = records[kept[i]["row"]]
                kept[i]["tail"] = _tail_size(content, record, is_message[batch])
                body = _body_size(record, kept[i]["tail"], headers[batch])
                size += varlong_size(body) + body
            outcome["plainSize"] = size


@kernel
def _tail_size(content, record, is_message):
    """The size of a record from its key on."""
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
    """The size of a record behind its length."""
    return (
        1
        + varlong_size(record["timestamp"] - header["baseTimestamp"])
        + varlong_size(record["offset"] - header["baseOffset"])
        + varlong_size(np.int64(record["keySize"]))
        + np.int64(tail)
    )


@kernel
def write_plain(content, records, kept, headers, is_message, outcomes, wanted, out):
    """Write the records of the wanted batches one behind the other."""
    w = np.int64(0)
    for batch in range(outcomes.size):
        if wanted[batch]:
            w = _write_records(
                content, records, kept, outcomes[batch], headers[batch], is_message[batch], out, w
            )


@kernel
def _write_records(content, records, kept, outcome, header, is_message, out, w):
    """Write the records of one batch and return the position behind them."""
    for i in range(outcome["kept"], outcome["kept"] + outcome["records"]):
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
def write_batches(
    source, content, records, kept, payload, is_message, headers, header_bytes, outcomes, out
):
    """Write all batches; `out` has WIDE bytes of room behind the last."""
    position = np.int64(0)
    for batch in range(outcomes.size):
        outcome = outcomes[batch]
        end = position + outcome["size"]
        if outcome["action"] == COPIED:
            copy_bytes(out, position, source, outcome["from"], outcome["size"])
        elif outcome["action"] != DROPPED:
            behind_header = position + RECORD_BATCH_OVERHEAD
            if outcome["payload"] != NO_PAYLOAD:
                copy_bytes(out, behind_header, payload, outcome["payload"], outcome["payloadSize"])
            elif outcome["action"] == REWRITTEN:
                _write_records(
                    content,
                    records,
                    kept,
                    outcome,
                    headers[batch],
                    is_message[batch],
                    out,
                    behind_header,
                )
            finish_batch(headers, header_bytes, batch, out, position, end)
        position = end
