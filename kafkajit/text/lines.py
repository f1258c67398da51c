"""Kernels that write the lines of batches and their records into an array of bytes.

Answers to DumpLogSegments.printBatchLevel; `record_lines.py` writes records. `form` is 0 for
Kafka's words, and fragments.JSON for one object per line.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.format.layout import MAGIC_V2
from kafkajit.kernel import kernel
from kafkajit.records.batches import Batches
from kafkajit.storage.source import Bytes
from kafkajit.text import fragments
from kafkajit.text.fragments import put
from kafkajit.text.line_codes import FLAG_FORM, UNKNOWN_CODEC
from kafkajit.text.record_lines import (
    LINE_ROOM,
    put_number,
    put_timestamp_type,
    write_record,
)
from kafkajit.topics.status import DONE, FULL, NEW_DOUBLE

# A batch's line as numbers.
_LINE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "baseOffset",
            "lastOffset",
            "recordsCount",
            "baseSequence",
            "lastSequence",
            "producerId",
            "producerEpoch",
            "partitionLeaderEpoch",
            "isTransactional",
            "isControl",
            "hasHorizon",
            "baseTimestamp",
            "position",
            "timestampType",
            "maxTimestamp",
            "size",
            "magic",
            "codec",
            "crc",
            "isValid",
        )
    ]
)


def batch_lines(batches: Batches, content: Bytes) -> npt.NDArray[np.void]:
    """The fields of batches' lines, as numbers."""
    lines = np.zeros(len(batches), dtype=_LINE)
    for name in (
        "baseOffset",
        "recordsCount",
        "baseSequence",
        "producerId",
        "producerEpoch",
        "partitionLeaderEpoch",
        "baseTimestamp",
        "maxTimestamp",
        "magic",
        "crc",
    ):
        lines[name] = batches.field(name)
    lines["lastOffset"] = batches.last_offset
    lines["lastSequence"] = batches.last_sequence
    lines["isTransactional"] = batches.is_transactional
    lines["isControl"] = batches.is_control
    lines["hasHorizon"] = batches.has_delete_horizon
    lines["position"] = batches.position
    lines["timestampType"] = batches.timestamp_type
    lines["size"] = batches.size_in_bytes
    lines["codec"] = batches.codec
    lines["isValid"] = batches.is_valid(content)
    return lines


@kernel
def write_lines(
    content, lines, counts, records, flags, tables, messages, json, texts, out, batch, place
):
    """Write lines from a batch on (with record -1, its own line) until done or `out` is full.

    `place` is (record, row). It returns (status, batch, record, row, bytes written). A
    line that fails is written up to where it does.
    `records`, `tables`, `messages`, `json` and `texts` may each be None (`record_lines.py`).
    """
    record, row = place
    w = np.int64(0)
    while batch < lines.size:
        if record < 0:
            if w + LINE_ROOM > out.size:
                return FULL, batch, record, row, w
            status, w = _write_batch(lines[batch], flags[FLAG_FORM], out, w)
            if status != DONE:
                return status, batch, record, row, w
            record = np.int64(0)
        if records is not None:
            while record < counts[batch]:
                status, after = write_record(
                    content,
                    lines[batch],
                    records[row],
                    flags,
                    tables,
                    messages,
                    json,
                    texts,
                    row,
                    out,
                    w,
                )
                if status in (FULL, NEW_DOUBLE):
                    return status, batch, record, row, w
                w = after
                if status != DONE:
                    return status, batch, record, row, w
                record += 1
                row += 1
        batch += 1
        record = np.int64(-1)
    return DONE, batch, record, row, w


@kernel
def _write_batch(line, form, out, w):
    """Write one line of at most LINE_ROOM bytes: (status, the position after it)."""
    w = put(out, w, form + fragments.BATCH)
    if line["magic"] < MAGIC_V2:
        w = put_number(out, w, form + fragments.MESSAGE_OFFSET, line["lastOffset"])
        return _write_rest_of_batch(line, form, out, w)
    w = put_number(out, w, form + fragments.BASE_OFFSET, line["baseOffset"])
    w = put_number(out, w, form + fragments.LAST_OFFSET, line["lastOffset"])
    w = put_number(out, w, form + fragments.COUNT, line["recordsCount"])
    w = put_number(out, w, form + fragments.BASE_SEQUENCE, line["baseSequence"])
    w = put_number(out, w, form + fragments.LAST_SEQUENCE, line["lastSequence"])
    w = put_number(out, w, form + fragments.PRODUCER_ID, line["producerId"])
    w = put_number(out, w, form + fragments.PRODUCER_EPOCH, line["producerEpoch"])
    w = put_number(out, w, form + fragments.LEADER_EPOCH, line["partitionLeaderEpoch"])
    w = put(
        out, put(out, w, form + fragments.TRANSACTIONAL), fragments.FALSE + line["isTransactional"]
    )
    w = put(out, put(out, w, form + fragments.CONTROL), fragments.FALSE + line["isControl"])
    w = put(out, w, form + fragments.HORIZON)
    if line["hasHorizon"] != 0:
        w = put_number(out, w, form + fragments.HORIZON_OPEN, line["baseTimestamp"])
        w = put(out, w, form + fragments.HORIZON_CLOSE)
    else:
        w = put(out, w, form + fragments.NO_HORIZON)
    return _write_rest_of_batch(line, form, out, w)


@kernel
def _write_rest_of_batch(line, form, out, w):
    """Write the fields that batches of all formats have."""
    if line["codec"] > 4:
        return UNKNOWN_CODEC, w
    w = put_number(out, w, form + fragments.POSITION, line["position"])
    w = put_timestamp_type(line, form, out, w)
    w = put_number(out, w, form + fragments.LARGEST, line["maxTimestamp"])
    w = put_number(out, w, form + fragments.SIZE, line["size"])
    w = put_number(out, w, form + fragments.MAGIC, line["magic"])
    w = put(out, put(out, w, form + fragments.CODEC), form + fragments.CODEC_NAMES + line["codec"])
    w = put_number(out, w, form + fragments.CRC, line["crc"])
    w = put(out, put(out, w, form + fragments.VALID), fragments.FALSE + line["isValid"])
    return DONE, put(out, w, form + fragments.END_OF_LINE)
