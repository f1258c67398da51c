"""A log → the lines that kafka-dump-log.sh prints of it, byte for byte.

Answers to Kafka 4.1.1's DumpLogSegments.dumpLog. What is printed before an error is what Kafka
prints before it throws: a line may break off in the middle. Text is written by kernels into a
buffer that is used again; Python sees a few megabytes of finished lines at a time.

In the modes that step over damage, the lines are those of the batches that every reader reads then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkajit.errors import (
    CorruptRecordError,
    InvalidRecordError,
    KafkaJitError,
    UnsupportedCompressionTypeError,
)
from kafkajit.format.compression import COMPRESSION_TYPES, DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.format.decimal import write_decimal
from kafkajit.format.json_text import new_doubles
from kafkajit.format.layout import (
    BATCH_LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_V2,
    MESSAGE_CRC_OFFSET,
    RECORD_BATCH_OVERHEAD,
    TIMESTAMP_TYPES,
)
from kafkajit.format.message import DONE, FULL, NEW_DOUBLE, learn, new_scratch, read_int16
from kafkajit.format.message_checksum import crc32
from kafkajit.format.utf8 import MAX_GROWTH, write_string
from kafkajit.format.varint import read_varint
from kafkajit.kernel import WIDE, copy_wide, inlined, kernel, read_int32, read_int64
from kafkajit.records.batches import Batches, frame, framing_error
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.control_records import CONTROL_TYPES, UNKNOWN, raft_message
from kafkajit.records.decode import CHUNK_BYTES, Chunk, Decoder, located
from kafkajit.source import Bytes, Source
from kafkajit.topics.kinds import TopicKind
from kafkajit.topics.payloads import write_key, write_metadata, write_value
from kafkajit.topics.single import printed
from kafkajit.walk import FAILFAST, PERMISSIVE, Gap, Walk

# How keys and values are printed: Kafka's decoder classes.
STRING = 0
LONG = 1
INTEGER = 2
BYTES = 3
DECODERS = {
    "org.apache.kafka.tools.api.StringDecoder": STRING,
    "org.apache.kafka.tools.api.LongDecoder": LONG,
    "org.apache.kafka.tools.api.IntegerDecoder": INTEGER,
    "org.apache.kafka.tools.api.DefaultDecoder": BYTES,
}

NO_LIMIT = 2**31 - 1  # of --max-bytes

_TEXT_BYTES = 4 << 20
# Room for all of a batch's line, or of a record's but for its keys and values.
_LINE_ROOM = 1024

# Why the kernels return.
_DONE = 0
_FULL = 1
_NO_NUMBER = 2  # a key or value too short for its decoder
_BAD_CONTROL_KEY = 3
_BAD_MARKER = 4
_UNKNOWN_CODEC = 5
_RAFT_RECORD = 6  # Python has to write the rest of its line
_PAYLOADS = 7  # so it has, of an internal topic's record
_NO_KEY = 8
_NEW_DOUBLE = 9  # Python knows its text


class UnreadableByDecoder(InvalidRecordError):
    """A key or value that is not what the decoder that was asked for reads."""


_MESSAGES: dict[int, tuple[type[KafkaJitError], str]] = {
    _NO_NUMBER: (
        UnreadableByDecoder,
        "The key ({keySize} bytes) or the value ({valueSize} bytes) of the record "
        "with offset {offset} is too short for its decoder",
    ),
    _NO_KEY: (
        UnreadableByDecoder,
        "Failed to decode message at offset {offset} using the specified decoder "
        "(message had a missing key)",
    ),
    _BAD_CONTROL_KEY: (
        InvalidRecordError,
        "Invalid key found for the control record with offset {offset}",
    ),
    _BAD_MARKER: (
        InvalidRecordError,
        "Invalid value found for the end transaction marker with offset {offset}",
    ),
    _UNKNOWN_CODEC: (UnsupportedCompressionTypeError, "Unknown compression type id: {codec}"),
}

(
    _FLAG_RECORDS,
    _FLAG_CONTENTS,
    _FLAG_METADATA,
    _FLAG_KEY_DECODER,
    _FLAG_VALUE_DECODER,
    _FLAG_TOPIC,
) = range(6)

# Of _FLAG_TOPIC: how the payloads of an internal topic are written.
_NO_TOPIC, _COORDINATOR, _METADATA, _BY_PYTHON = range(4)

# Every text that lines are put together from, padded so that one wide copy writes it.
_TEXTS: list[bytes] = []


def _text(text: str) -> int:
    assert len(text) <= WIDE
    _TEXTS.append(text.encode())
    return len(_TEXTS) - 1


def _texts(texts: Iterable[str]) -> int:
    """Texts next to each other; the number of the first."""
    first, *_ = [_text(text) for text in texts]
    return first


_BASE_OFFSET = _text("baseOffset: ")
_LAST_OFFSET = _text(" lastOffset: ")
_COUNT = _text(" count: ")
_BASE_SEQUENCE = _text(" baseSequence: ")
_LAST_SEQUENCE = _text(" lastSequence: ")
_PRODUCER_ID = _text(" producerId: ")
_PRODUCER_EPOCH = _text(" producerEpoch: ")
_LEADER_EPOCH = _text(" partitionLeaderEpoch: ")
_TRANSACTIONAL = _text(" isTransactional: ")
_CONTROL = _text(" isControl: ")
_HORIZON = _text(" deleteHorizonMs: OptionalLong")
_EMPTY = _text(".empty")
_OPEN = _text("[")
_CLOSE = _text("]")
_POSITION = _text(" position: ")
_TIMESTAMP_TYPE = _texts(f" {TIMESTAMP_TYPES[i]}: " for i in (0, 1, -1))
_SIZE = _text(" size: ")
_MAGIC = _text(" magic: ")
_CODEC = _text(" compresscodec: ")
_CODEC_NAMES = _texts(COMPRESSION_TYPES.values())
_CRC = _text(" crc: ")
_VALID = _text(" isvalid: ")
_FALSE = _texts(["false", "true"])
_NEW_LINE = _text("\n")
_MESSAGE_OFFSET = _text("offset: ")
_RECORD_OFFSET = _text("| offset: ")
_MESSAGE_VALID = _text(" isValid: ")
_MESSAGE_END = _text("}")  # it is Kafka's
_KEY_SIZE = _text(" keySize: ")
_VALUE_SIZE = _text(" valueSize: ")
_SEQUENCE = _text(" sequence: ")
_HEADER_KEYS = _text(" headerKeys: [")
_COMMA = _text(",")
_MARKER = _text(" endTxnMarker: ")
_CONTROL_TYPE = _text(" controlType: ")
_CONTROL_NAMES = _texts(CONTROL_TYPES.values())
_UNKNOWN = _text(UNKNOWN)
_BRACKET_OPEN = _text("(")
_BRACKET_CLOSE = _text(")")
_COORDINATOR_EPOCH = _text(" coordinatorEpoch: ")
_FIRST_KEY = _text("| key: ")
_KEY = _text(" key: ")
_PAYLOAD = _text(" payload: ")
_DELETE = _text("<DELETE>")

_PADDED = np.frombuffer(b"".join(text.ljust(WIDE, b"\0") for text in _TEXTS), dtype=np.uint8)
_LENGTHS = np.array([len(text) for text in _TEXTS], dtype=np.int64)
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)

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


@dataclass
class Style:
    """What is printed of each record."""

    records: bool = False  # --deep-iteration
    contents: bool = False  # --print-data-log
    metadata: bool = True  # not --skip-record-metadata
    key_decoder: int = STRING
    value_decoder: int = STRING
    topic: TopicKind | None = None  # whose payloads keys and values are, instead of the decoders

    def flags(self) -> npt.NDArray[np.int64]:
        """The same for kernels, at the places that _FLAG_… name."""
        return np.array(
            [
                self.records,
                self.contents,
                self.metadata,
                self.key_decoder,
                self.value_decoder,
                self._topic_flag(),
            ],
            dtype=np.int64,
        )

    def _topic_flag(self) -> int:
        if self.topic is None:
            return _NO_TOPIC
        if self.topic.has_keys:
            return _COORDINATOR
        # What Kafka prints of remote log metadata is Java's toString.
        return _METADATA if self.topic.name == "cluster_metadata" else _BY_PYTHON

    def tables(self) -> tuple[npt.NDArray[Any], ...]:
        """What kernels need to read the topic's payloads; of the same types where there is none."""
        if self.topic is None:
            rows, texts = np.zeros((1, 8), dtype=np.int32), np.zeros(1, dtype=np.uint8)
            types, scratch = np.zeros((1, 4), dtype=np.int32), np.zeros(1, dtype=np.int64)
            for table in (rows, texts, types):
                table.setflags(write=False)
            return rows, texts, types, new_doubles(), scratch
        programs = self.topic.programs
        scratch = new_scratch(programs)
        return programs.rows, programs.texts, self.topic.types, new_doubles(), scratch


class LogDump:
    """One dump of one log: read `text` to its end, then see what was found on the way."""

    def __init__(
        self,
        source: Source,
        style: Style,
        *,
        max_bytes: int = NO_LIMIT,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        mode: str = FAILFAST,
    ) -> None:
        self.non_consecutive: list[tuple[int, int]] = []  # offsets next to each other
        self.error: KafkaJitError | None = None  # what ended the dump early
        self.position = 0  # behind the last batch that was looked at
        self._source = source
        self._style = style
        self._flags = style.flags()
        self._tables = style.tables()
        self._limited = max_bytes != NO_LIMIT
        self._end = min(source.content.size, max_bytes)
        self._memory = ColumnMemory(Wanted(fields=True))
        self._max_decompressed_bytes = max_decompressed_bytes
        self._decoder = Decoder(source, self._memory, max_decompressed_bytes=max_decompressed_bytes)
        self._mode = mode
        self._last_offset = -1
        self._buffer = np.empty(_TEXT_BYTES, dtype=np.uint8)

    def text(self) -> Iterator[memoryview]:
        """The lines, in pieces that are good until the next one is asked for."""
        yield from self._as_kafka() if self._mode == FAILFAST else self._past_damage()
        trailing = self._end - self.position
        if self.error is None and trailing and not self._limited:
            name = Path(self._source.path or "").name
            yield memoryview(f"Found {trailing} invalid bytes at the end of {name}\n".encode())

    def _past_damage(self) -> Iterator[memoryview]:
        """What other readers read in this mode, and in PERMISSIVE a line for each gap."""
        walk = Walk(self._source, mode=self._mode, end=self._end)
        parts: Iterator[Chunk | Batches | Gap] = walk.headers()
        if self._style.records:
            parts = walk.chunks(self._memory, max_decompressed_bytes=self._max_decompressed_bytes)
        for part in parts:
            if isinstance(part, Gap):
                # --max-bytes may cut a batch: that is no damage.
                is_cut = self._limited and part.position + part.length == self._end
                if self._mode == PERMISSIVE and not is_cut:
                    yield memoryview(f"{_gap_line(part)}\n".encode())
                continue
            chunk = part if isinstance(part, Chunk) else self._decoder.headers(part)
            if self._style.records:
                self._note_offsets(chunk.fields["offset"])
            yield from self._lines(chunk)
            while self.error is not None:
                if isinstance(self.error, UnreadableByDecoder):
                    return  # a matter of what was asked for
                chunk, gap = _behind_error(chunk, self.error)
                self.error = None
                # The line had begun.
                told = f"{_gap_line(gap)}\n" if self._mode == PERMISSIVE else ""
                yield memoryview(f"\n{told}".encode())
                yield from self._lines(chunk)
            self.position = walk.position
            self._source.forget(self.position)
        self.position = walk.position

    def _as_kafka(self) -> Iterator[memoryview]:
        while self.error is None:
            framing = frame(
                self._source.content, self.position, end=self._end, max_bytes=CHUNK_BYTES
            )
            if not len(framing.batches):
                break
            yield from self._run(framing.batches)
            self.position = framing.position
            self._source.forget(self.position)
        if self.error is None:
            self.error = framing_error(self._source, framing)

    def _run(self, batches: Batches) -> Iterator[memoryview]:
        batches, unreadable = self._readable(batches)
        while len(batches):
            if self._style.records:
                chunk = self._decoder.decode(batches, keep_bad=True)
                self._note_offsets(chunk.fields["offset"])
            else:
                chunk = self._decoder.headers(batches)
            yield from self._lines(chunk)
            self.error = self.error or chunk.error
            if self.error is not None:
                return
            batches = batches[len(chunk.batches) :]
        if unreadable is not None and unreadable.base_offset is not None:
            # To Kafka anything below v2 is a legacy batch, until it looks inside.
            yield memoryview(f"offset: {unreadable.base_offset}".encode())
        self.error = unreadable

    def _readable(self, batches: Batches) -> tuple[Batches, KafkaJitError | None]:
        """The batches whose headers can be printed, and what is wrong with the next."""
        negative = batches.field("magic") < 0
        cut = batches.position + RECORD_BATCH_OVERHEAD > self._source.content.size
        cut &= ~batches.is_message
        if not (negative | cut).any():
            return batches, None
        bad = int(np.argmax(negative | cut))
        magic = int(batches.field("magic")[bad])
        if magic < 0:
            error = CorruptRecordError(f"Invalid magic used in LegacyRecord: {magic}")
            error.base_offset = int(batches.field("baseOffset")[bad])
        else:
            error = CorruptRecordError("Reached the end of the file in a record batch header")
        error.path = self._source.path
        error.position = int(batches.position[bad])
        return batches[:bad], error

    def _note_offsets(self, offsets: npt.NDArray[np.int64]) -> None:
        before = np.concatenate([[self._last_offset], offsets[:-1]]) if offsets.size else offsets
        for row in np.flatnonzero((before != -1) & (offsets != before + 1)).tolist():
            self.non_consecutive.append((int(before[row]), int(offsets[row])))
        if offsets.size:
            self._last_offset = int(offsets[-1])

    def _lines(self, chunk: Chunk) -> Iterator[memoryview]:
        lines = _batch_lines(chunk.batches, self._source.content)
        batch, record, row = 0, -1, 0
        while True:
            status, batch, record, row, written = _write_lines(
                chunk.content,
                lines,
                chunk.counts,
                chunk.fields,
                self._flags,
                *self._tables,
                self._buffer,
                batch,
                record,
                row,
            )
            if written:
                yield self._buffer[:written].data
            elif status == _FULL:  # one record larger than the buffer
                self._buffer = np.empty(2 * self._buffer.size, dtype=np.uint8)
            if status == _DONE:
                return
            if status == _NEW_DOUBLE:
                *_, doubles, scratch = self._tables
                learn(doubles, scratch)
            elif status == _PAYLOADS:
                yield memoryview(self._payloads(chunk, row).encode())
                record += 1
                row += 1
            elif status == _RAFT_RECORD:
                try:
                    text = raft_message(chunk.field(row, "key"), chunk.field(row, "value"))
                except InvalidRecordError as error:
                    self.error = located(error, self._source.path, chunk.batches, batch)
                    return
                yield memoryview(f" {text}\n".encode())
                record += 1
                row += 1
            elif status != _FULL:
                self.error = self._error(status, chunk, batch, row)
                return

    def _payloads(self, chunk: Chunk, row: int) -> str:
        """The rest of a record's line that says what is wrong, or is Java's toString."""
        assert self._style.topic is not None
        key, payload = printed(
            self._style.topic,
            int(chunk.fields["offset"][row]),
            chunk.field(row, "key"),
            chunk.field(row, "value"),
        )
        prefix = " " if self._style.metadata else "| "
        line = "" if key is None else f"{prefix}key: {key}"
        return line + ("" if payload is None else f" payload: {payload}") + "\n"

    def _error(self, status: int, chunk: Chunk, batch: int, row: int) -> KafkaJitError:
        exception, text = _MESSAGES[status]
        values = {"codec": chunk.batches.codec[batch]}
        if row < len(chunk):
            for name in ("offset", "keySize", "valueSize"):
                values[name] = chunk.fields[name][row]
        error = exception(text.format_map(values))
        return located(error, self._source.path, chunk.batches, batch)


def _behind_error(chunk: Chunk, error: KafkaJitError) -> tuple[Chunk, Gap]:
    """What is left of a chunk behind the batch that the error is about, and that batch as a gap."""
    batch = int(np.flatnonzero(chunk.batches.position == error.position)[0])
    rows = int(chunk.counts[: batch + 1].sum())
    rest = replace(
        chunk,
        batches=chunk.batches[batch + 1 :],
        counts=chunk.counts[batch + 1 :],
        columns=chunk.columns._replace(fields=chunk.columns.fields[rows:]),
        rows=chunk.rows - rows,
    )
    size = int(chunk.batches.size_in_bytes[batch])
    reason = f"{type(error).__name__}: {error.message}"
    return rest, Gap(chunk.path, error.position or 0, size, reason)


def _gap_line(gap: Gap) -> str:
    return f"damaged position: {gap.position} size: {gap.length} reason: {gap.reason}"


def _batch_lines(batches: Batches, content: Bytes) -> npt.NDArray[np.void]:
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
def _write_lines(
    content,
    lines,
    counts,
    records,
    flags,
    rows,
    texts,
    types,
    doubles,
    scratch,
    out,
    batch,
    record,
    row,
):
    """Write on from a batch (record -1 is its own line) until all is written or `out` is full.

    (status, batch, record, row, bytes written); a line that fails is written up to where it does.
    """
    w = np.int64(0)
    deep = flags[_FLAG_RECORDS] != 0
    while batch < lines.size:
        if record < 0:
            if w + _LINE_ROOM > out.size:
                return _FULL, batch, record, row, w
            status, w = _write_batch(lines[batch], out, w)
            if status != _DONE:
                return status, batch, record, row, w
            record = np.int64(0)
        if deep:
            while record < counts[batch]:
                status, after = _write_record(
                    content,
                    lines[batch],
                    records[row],
                    flags,
                    rows,
                    texts,
                    types,
                    doubles,
                    scratch,
                    out,
                    w,
                )
                if status in (_FULL, _NEW_DOUBLE):
                    return status, batch, record, row, w
                w = after
                if status != _DONE:
                    return status, batch, record, row, w
                record += 1
                row += 1
        batch += 1
        record = np.int64(-1)
    return _DONE, batch, record, row, w


@kernel
def _write_batch(line, out, w):
    """One line, at most _LINE_ROOM bytes: (status, where it ends)."""
    if line["magic"] < MAGIC_V2:
        w = write_decimal(out, _put(out, w, _MESSAGE_OFFSET), line["lastOffset"])
        return _write_rest_of_batch(line, out, w)
    w = write_decimal(out, _put(out, w, _BASE_OFFSET), line["baseOffset"])
    w = write_decimal(out, _put(out, w, _LAST_OFFSET), line["lastOffset"])
    w = write_decimal(out, _put(out, w, _COUNT), line["recordsCount"])
    w = write_decimal(out, _put(out, w, _BASE_SEQUENCE), line["baseSequence"])
    w = write_decimal(out, _put(out, w, _LAST_SEQUENCE), line["lastSequence"])
    w = write_decimal(out, _put(out, w, _PRODUCER_ID), line["producerId"])
    w = write_decimal(out, _put(out, w, _PRODUCER_EPOCH), line["producerEpoch"])
    w = write_decimal(out, _put(out, w, _LEADER_EPOCH), line["partitionLeaderEpoch"])
    w = _put(out, _put(out, w, _TRANSACTIONAL), _FALSE + line["isTransactional"])
    w = _put(out, _put(out, w, _CONTROL), _FALSE + line["isControl"])
    w = _put(out, w, _HORIZON)
    if line["hasHorizon"] != 0:
        w = write_decimal(out, _put(out, w, _OPEN), line["baseTimestamp"])
        w = _put(out, w, _CLOSE)
    else:
        w = _put(out, w, _EMPTY)
    return _write_rest_of_batch(line, out, w)


@kernel
def _write_rest_of_batch(line, out, w):
    """What is printed of all formats."""
    if line["codec"] > 4:
        return _UNKNOWN_CODEC, w
    w = write_decimal(out, _put(out, w, _POSITION), line["position"])
    w = _put(out, w, _timestamp_type(line))
    w = write_decimal(out, w, line["maxTimestamp"])
    w = write_decimal(out, _put(out, w, _SIZE), line["size"])
    w = write_decimal(out, _put(out, w, _MAGIC), line["magic"])
    w = _put(out, _put(out, w, _CODEC), _CODEC_NAMES + line["codec"])
    w = write_decimal(out, _put(out, w, _CRC), line["crc"])
    w = _put(out, _put(out, w, _VALID), _FALSE + line["isValid"])
    return _DONE, _put(out, w, _NEW_LINE)


@kernel
def _write_record(content, line, record, flags, rows, texts, types, doubles, scratch, out, w):
    """One line: (status, where it ends). Nothing counts of _FULL and _NEW_DOUBLE."""
    key_size, value_size = np.int64(record["keySize"]), np.int64(record["valueSize"])
    if line["magic"] < MAGIC_V2:  # a null's size as it stands there: any negative one
        key_size = np.int64(read_int32(content, np.int64(record["key"]) - 4))
        value_size = np.int64(read_int32(content, np.int64(record["value"]) - 4))
    contents = flags[_FLAG_CONTENTS] != 0 and line["isControl"] == 0
    room = _LINE_ROOM
    topic = flags[_FLAG_TOPIC]
    if contents and topic == _NO_TOPIC:
        room += (max(key_size, np.int64(0)) + max(value_size, np.int64(0))) * MAX_GROWTH
    if w + room > out.size:
        return _FULL, w

    key_prefix = _FIRST_KEY
    if flags[_FLAG_METADATA] != 0:
        key_prefix = _KEY
        w = write_decimal(out, _put(out, w, _RECORD_OFFSET), record["offset"])
        w = _put(out, w, _timestamp_type(line))
        w = write_decimal(out, w, record["timestamp"])
        w = write_decimal(out, _put(out, w, _KEY_SIZE), key_size)
        w = write_decimal(out, _put(out, w, _VALUE_SIZE), value_size)
        if line["magic"] < MAGIC_V2:
            w = _write_message_checksum(content, np.int64(record["headers"]), out, w)
        else:
            w = write_decimal(out, _put(out, w, _SEQUENCE), _sequence(line, record))
            status, w = _write_header_keys(content, record, out, w, room - _LINE_ROOM)
            if status != _DONE:
                return status, w
        if line["isControl"] != 0:
            status, w = _write_control(content, record, out, w)
            if status != _DONE:
                return status, w
    if contents and topic != _NO_TOPIC:
        if topic == _BY_PYTHON:
            return _PAYLOADS, w
        status, w = _write_payloads(
            content,
            record,
            key_size,
            value_size,
            key_prefix,
            topic,
            rows,
            texts,
            types,
            doubles,
            scratch,
            out,
            w,
        )
        if status != _DONE:
            return status, w
    elif contents:
        key_decoder, value_decoder = flags[_FLAG_KEY_DECODER], flags[_FLAG_VALUE_DECODER]
        # Kafka decodes both before it prints either.
        if _too_short(key_size, key_decoder) or _too_short(value_size, value_decoder):
            return _NO_NUMBER, w
        if key_size >= 0:
            w = _put(out, w, key_prefix)
            w = _write_decoded(content, np.int64(record["key"]), key_size, key_decoder, out, w)
        if value_size >= 0:
            w = _put(out, w, _PAYLOAD)
            w = _write_decoded(
                content, np.int64(record["value"]), value_size, value_decoder, out, w
            )
    return _DONE, _put(out, w, _NEW_LINE)


@kernel
def _write_payloads(
    content,
    record,
    key_size,
    value_size,
    key_prefix,
    topic,
    rows,
    texts,
    types,
    doubles,
    scratch,
    out,
    w,
):
    """What an internal topic's key and value are; w again where Python has to say why not."""
    key, value = np.int64(record["key"]), np.int64(record["value"])
    if topic == _METADATA:
        if value_size < 0:
            return _PAYLOADS, w
        after = _put(out, w, _PAYLOAD)
        status, after = write_metadata(
            rows, texts, doubles, types, content, value, value_size, True, out, after, scratch
        )
        if status != DONE:
            return _payload_status(status), w
        return (_FULL, w) if after + _LINE_ROOM > out.size else (_DONE, after)
    if key_size < 0:
        return _NO_KEY, w
    after = _put(out, w, key_prefix)
    status, after = write_key(
        rows, texts, doubles, types, content, key, key_size, out, after, scratch
    )
    if status != DONE:
        return _payload_status(status), w
    if after + _LINE_ROOM > out.size:
        return _FULL, w
    after = _put(out, after, _PAYLOAD)
    if value_size < 0:
        return _DONE, _put(out, after, _DELETE)
    type_id = read_int16(content, key)
    status, after = write_value(
        rows, texts, doubles, types, content, type_id, value, value_size, out, after, scratch
    )
    if status != DONE:
        return _payload_status(status), w
    if after + _LINE_ROOM > out.size:
        return _FULL, w
    return _DONE, after


@kernel
def _payload_status(status):
    if status == FULL:
        return _FULL
    return _NEW_DOUBLE if status == NEW_DOUBLE else _PAYLOADS


@kernel
def _timestamp_type(line):
    """The text of a type from -1 to 1."""
    return _TIMESTAMP_TYPE + (line["timestampType"] + 3) % 3


@kernel
def _write_message_checksum(content, entry, out, w):
    """Whether the checksum of a message holds, inside a set too, and what it is."""
    end = entry + LOG_OVERHEAD + read_int32(content, entry + BATCH_LENGTH_OFFSET)
    stored = np.int64(read_int32(content, entry + MESSAGE_CRC_OFFSET)) & 0xFFFFFFFF
    computed = np.int64(crc32(content, entry + MAGIC_OFFSET, end))
    w = _put(out, _put(out, w, _MESSAGE_VALID), _FALSE + (1 if stored == computed else 0))
    w = write_decimal(out, _put(out, w, _CRC), stored)
    return _put(out, w, _MESSAGE_END)


@kernel
def _sequence(line, record):
    """DefaultRecordBatch.incrementSequence, in Java's int."""
    base = line["baseSequence"]
    if base < 0:
        return np.int64(-1)
    delta = record["offset"] - line["baseOffset"]
    last_before_wrap = ((2**31 - 1 - delta) & 0xFFFFFFFF ^ 0x80000000) - 0x80000000
    total = base + delta
    if base > last_before_wrap:
        total -= 2**31
    return ((total & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


@kernel
def _write_header_keys(content, record, out, w, reserved):
    """Header keys as Java prints them; `reserved` bytes of `out` are spoken for."""
    w = _put(out, w, _HEADER_KEYS)
    p = np.int64(record["headers"])
    for i in range(record["headersCount"]):
        size, p = read_varint(content, p, content.size)
        if w + size * MAX_GROWTH + reserved + _LINE_ROOM > out.size:
            return _FULL, w
        if i > 0:
            w = _put(out, w, _COMMA)
        w = write_string(content, p, size, out, w)
        size, p = read_varint(content, p + size, content.size)
        p += max(size, np.int64(0))
    return _DONE, _put(out, w, _CLOSE)


@kernel
def _write_control(content, record, out, w):
    """What DumpLogSegments.printControlRecord says of a marker."""
    key, key_size = np.int64(record["key"]), record["keySize"]
    value, value_size = np.int64(record["value"]), record["valueSize"]
    if key_size < 4 or content[key] >= 0x80:
        return _BAD_CONTROL_KEY, w
    type_id = read_int32(content, key) & 0xFFFF
    if type_id <= 1:
        if value_size < 6 or content[value] >= 0x80:
            return _BAD_MARKER, w
        w = _put(out, _put(out, w, _MARKER), _CONTROL_NAMES + type_id)
        epoch = read_int32(content, value + 2)
        return _DONE, write_decimal(out, _put(out, w, _COORDINATOR_EPOCH), epoch)
    if type_id <= 6:
        return _RAFT_RECORD, w
    w = _put(out, _put(out, w, _CONTROL_TYPE), _UNKNOWN)
    w = write_decimal(out, _put(out, w, _BRACKET_OPEN), (type_id ^ 0x8000) - 0x8000)
    return _DONE, _put(out, w, _BRACKET_CLOSE)


@kernel
def _too_short(size, decoder):
    return size >= 0 and ((decoder == LONG and size < 8) or (decoder == INTEGER and size < 4))


@kernel
def _write_decoded(content, position, size, decoder, out, w):
    if decoder == LONG:
        return write_decimal(out, w, read_int64(content, position))
    if decoder == INTEGER:
        return write_decimal(out, w, read_int32(content, position))
    if decoder == BYTES:
        for i in range(position, position + size):
            out[w] = _HEX[content[i] >> 4]
            out[w + 1] = _HEX[content[i] & 0xF]
            w += 2
        return w
    return write_string(content, position, size, out, w)


@inlined
def _put(out, w, text):
    copy_wide(out, w, _PADDED, np.int64(text * WIDE))
    return w + _LENGTHS[text]
