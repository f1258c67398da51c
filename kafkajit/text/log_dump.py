"""A log → the lines that kafka-dump-log.sh prints of it, byte for byte.

Answers to Kafka 4.1.1's DumpLogSegments.dumpLog. Before an error it prints what Kafka prints
before it throws: a line may break off in the middle. Kernels write the text into a buffer that is
used again; Python sees a few megabytes of finished lines at a time.

The modes that skip damage print the batches that the reader reads in those modes.

Over 400 lines because one pass keeps what it has found for all of its lines: their text, the errors
that end them, and the offsets that do not follow one another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kafkajit.errors import (
    CorruptIndexError,
    CorruptRecordError,
    InvalidRecordError,
    KafkaJitError,
    UnsupportedCompressionTypeError,
)
from kafkajit.format.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kafkajit.format.kafscale import HEAD
from kafkajit.format.layout import BATCH_LENGTH_OFFSET, LOG_OVERHEAD, RECORD_BATCH_OVERHEAD
from kafkajit.format.limits import MAX_INT32
from kafkajit.kernel.intrinsics import read_int32
from kafkajit.records.batches import Batches, frame, framing_error
from kafkajit.records.chunk import Chunk, located
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import CHUNK_BYTES, Decoder
from kafkajit.storage.source import Source
from kafkajit.text import DECODER_CLASSES
from kafkajit.text.fragments import JSON
from kafkajit.text.line_codes import (
    BAD_CONTROL_KEY,
    BAD_MARKER,
    BAD_MESSAGE,
    BY_PYTHON,
    BYTES,
    COORDINATOR,
    FLAG_CONTENTS,
    FLAG_FORM,
    FLAG_KEY_DECODER,
    FLAG_METADATA,
    FLAG_TOPIC,
    FLAG_VALUE_DECODER,
    FLAGS,
    INTEGER,
    LONG,
    METADATA,
    NO_KEY,
    NO_NUMBER,
    NO_TOPIC,
    PAYLOADS,
    PREPARED,
    RAFT_RECORD,
    STRING,
    UNKNOWN_CODEC,
)
from kafkajit.text.lines import batch_lines, write_lines
from kafkajit.text.pairs import OffsetPairs
from kafkajit.text.prepared import Texts, prepared_texts
from kafkajit.topics.kinds import TopicKind
from kafkajit.topics.message import MessageTables, learn, new_tables
from kafkajit.topics.raft import raft_message
from kafkajit.topics.single import printed, printed_misfit
from kafkajit.topics.status import DONE, NEW_DOUBLE
from kafkajit.walk.damage import FAILFAST, PERMISSIVE, Gap
from kafkajit.walk.kafscale import KafscaleSegment, is_kafscale
from kafkajit.walk.walk import Walk

DECODERS = dict(zip(DECODER_CLASSES, (STRING, LONG, INTEGER, BYTES), strict=True))

NO_LIMIT = MAX_INT32  # of --max-bytes

_TEXT_BYTES = 4 << 20


class UnreadableByDecoder(InvalidRecordError):
    """A key or value that the chosen decoder cannot decode."""


_MESSAGES: dict[int, tuple[type[KafkaJitError], str]] = {
    NO_NUMBER: (
        UnreadableByDecoder,
        "The key ({keySize} bytes) or the value ({valueSize} bytes) of the record "
        "with offset {offset} is too short for its decoder",
    ),
    NO_KEY: (
        UnreadableByDecoder,
        "Failed to decode message at offset {offset} using the specified decoder "
        "(message had a missing key)",
    ),
    BAD_CONTROL_KEY: (
        InvalidRecordError,
        "Invalid key found for the control record with offset {offset}",
    ),
    BAD_MARKER: (
        InvalidRecordError,
        "Invalid value found for the end transaction marker with offset {offset}",
    ),
    BAD_MESSAGE: (
        InvalidRecordError,
        "Found invalid message: its key and value do not fit its {entrySize} bytes "
        "(record {record} of the batch)",
    ),
    UNKNOWN_CODEC: (UnsupportedCompressionTypeError, "Unknown compression type id: {codec}"),
}


@dataclass
class Style:
    """The parts of each record that are printed, and their form."""

    records: bool = False  # --deep-iteration
    contents: bool = False  # --print-data-log
    metadata: bool = True  # not --skip-record-metadata
    key_decoder: int = STRING
    value_decoder: int = STRING
    topic: TopicKind | None = (
        None  # decode keys and values as this topic's payloads, not with the decoders
    )
    json: bool = False  # --format json
    key_texts: Texts | None = None  # write keys, instead of their decoder
    value_texts: Texts | None = None

    def flags(self) -> npt.NDArray[np.int64]:
        """The style as kernels take it."""
        flags = np.zeros(FLAGS, dtype=np.int64)
        flags[FLAG_CONTENTS] = self.contents
        flags[FLAG_METADATA] = self.metadata
        flags[FLAG_KEY_DECODER] = PREPARED if self.key_texts else self.key_decoder
        flags[FLAG_VALUE_DECODER] = PREPARED if self.value_texts else self.value_decoder
        flags[FLAG_TOPIC] = self._topic_flag()
        flags[FLAG_FORM] = JSON if self.json else 0
        return flags

    def _topic_flag(self) -> int:
        if self.topic is None:
            return NO_TOPIC
        if self.topic.has_keys:
            return COORDINATOR
        # Kafka prints remote log metadata with Java's toString.
        return METADATA if self.topic.name == "cluster_metadata" else BY_PYTHON

    def tables(self) -> MessageTables | None:
        """The tables with which kernels decode the topic's payloads.

        None if there is no topic: numba then compiles a kernel without the readers of messages.
        """
        if self.topic is None:
            return None
        return new_tables(self.topic.programs, self.topic.types)


class LogDump:
    """One dump of one log: read `text` to its end, then look at the findings.

    Without a mode, it prints what Kafka's tool prints, for which all bytes after the last whole
    batch are invalid bytes. With a mode, it reports damage there as all readers do.
    """

    def __init__(
        self,
        source: Source,
        style: Style,
        *,
        max_bytes: int = NO_LIMIT,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        mode: str | None = None,
    ) -> None:
        self.non_consecutive = OffsetPairs()  # offsets next to each other
        self.error: KafkaJitError | None = None  # the error that ended the dump early
        self.position = 0  # after the last batch that was read
        self._source = source
        self._is_kafscale = is_kafscale(source)
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
        self._printed = 0  # records of a batch whose others follow in the next chunk
        self._buffer = np.empty(_TEXT_BYTES, dtype=np.uint8)

    def text(self) -> Iterator[memoryview]:
        """The lines, in buffers that are valid until the next one is requested."""
        yield from self._as_kafka() if self._mode is None else self._as_readers(self._mode)
        trailing = self._end - self.position
        if self.error is None and trailing and not self._limited and not self._is_kafscale:
            name = Path(self._source.path or "").name
            kafkas = f"Found {trailing} invalid bytes at the end of {name}"
            yield self._line(kafkas, "invalidBytes", file=name, size=trailing)

    def _as_readers(self, mode: str) -> Iterator[memoryview]:
        """The batches that other readers read in this mode; keeps the error that ends FAILFAST."""
        walk = Walk(self._source, mode=mode, end=self._end)
        try:
            yield from self._walked(walk)
        except CorruptIndexError as error:
            if not self._limited:  # otherwise --max-bytes cuts a batch, which is not damage
                self.error = error
        except KafkaJitError as error:
            self.error = error
        self.position = walk.position

    def _walked(self, walk: Walk) -> Iterator[memoryview]:
        """The lines of a walk's batches, and in PERMISSIVE one for each bad batch and gap."""
        parts: Iterator[Chunk | Batches | Gap] = walk.headers()
        if self._style.records:
            most = self._max_decompressed_bytes
            parts = walk.chunks(self._memory, max_decompressed_bytes=most, in_slices=True)
        is_behind_error = False  # in a batch that is printed in parts
        for part in parts:
            if isinstance(part, Gap):
                # --max-bytes may cut a batch, which is not damage.
                is_cut = self._limited and part.position + part.length == self._end
                if self._mode == PERMISSIVE and not is_cut:
                    yield self._gap_line(part)
                continue
            chunk = part if isinstance(part, Chunk) else self._decoder.headers(part)
            if is_behind_error:
                is_behind_error = chunk.is_part
                continue
            if self._style.records:
                self._note_offsets(chunk.fields["offset"])
                yield from self._lines(chunk)
            else:
                yield from self._judged(chunk)
            while self.error is not None:
                if self._mode == FAILFAST or isinstance(self.error, UnreadableByDecoder):
                    return  # in the second case the decoder does not fit, which is not damage
                is_behind_error = chunk.is_part
                chunk, gap = _behind_error(chunk, self.error)
                self.error = None
                if not self._style.json:
                    yield memoryview(b"\n")  # the line had begun
                if self._mode == PERMISSIVE:
                    yield self._gap_line(gap)
                yield from self._lines(chunk)
            self.position = walk.position
            self._source.forget(self.position)

    def _judged(self, chunk: Chunk) -> Iterator[memoryview]:
        """The lines of headers, each bad one with what is wrong with it."""
        batches = chunk.batches
        sound = self._decoder.sound(batches, check_crcs=True) & batches.is_whole
        done = 0
        for bad in np.flatnonzero(~sound).tolist():
            yield from self._lines(replace(chunk, batches=batches[done : bad + 1]))
            if self.error is not None:
                return
            error = self._decoder.unsound(batches, bad)
            if self._mode == FAILFAST:
                self.error = error
                return
            if self._mode == PERMISSIVE:
                yield self._gap_line(_gap_of(batches, bad, error))
            done = bad + 1
        yield from self._lines(replace(chunk, batches=batches[done:]))

    def _as_kafka(self) -> Iterator[memoryview]:
        size = CHUNK_BYTES
        kafscale = KafscaleSegment(self._source, checks_crc=True) if self._is_kafscale else None
        if kafscale is not None:
            self.error = kafscale.head_error()
            self.position = HEAD.size
        while self.error is None:
            loaded = self._source.load(min(self.position + size, self._end))
            framing = frame(
                self._source.content,
                self.position,
                end=min(loaded, self._end),
                max_bytes=CHUNK_BYTES,
            )
            if not len(framing.batches):
                if loaded < self._end:  # a batch is larger than what is there of it
                    size *= 2
                    continue
                break
            size = CHUNK_BYTES
            if kafscale is not None:
                kafscale.add(framing)
            yield from self._run(framing.batches)
            self.position = framing.position
            self._source.forget(self.position)
        if self.error is not None:
            return
        if kafscale is None:
            self.error = framing_error(self._source, framing)
        elif not self._limited:
            self.error = kafscale.end_error(self.position)

    def _run(self, batches: Batches) -> Iterator[memoryview]:
        batches, unreadable = self._readable(batches)
        while len(batches):
            if self._style.records:
                chunks = self._decoder.parts(batches, keep_bad=True, lazy=True)
            else:
                chunks = iter([self._decoder.headers(batches)])
            for chunk in chunks:
                if self._style.records:
                    self._note_offsets(chunk.fields["offset"])
                yield from self._lines(chunk)
                self.error = self.error or chunk.error
                if self.error is not None:
                    return
                if not chunk.is_part:
                    batches = batches[len(chunk.batches) :]
        has_begun = unreadable is not None and unreadable.base_offset is not None
        if has_begun and not self._style.json:
            # Kafka takes anything below v2 for a legacy batch, until it reads the message.
            assert unreadable is not None
            yield memoryview(f"offset: {unreadable.base_offset}".encode())
        self.error = unreadable

    def _readable(self, batches: Batches) -> tuple[Batches, KafkaJitError | None]:
        """The batches whose headers can be printed, and the error of the next one."""
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
        odd = (before != -1) & (offsets != before + 1)
        self.non_consecutive.add(before[odd], offsets[odd])
        if offsets.size:
            self._last_offset = int(offsets[-1])

    def _lines(self, chunk: Chunk) -> Iterator[memoryview]:
        lines = batch_lines(chunk.batches, self._source.content)
        texts = None
        if self._style.contents and self._style.topic is None:
            texts = prepared_texts(chunk, self._style.key_texts, self._style.value_texts)
        # A part that is not the first of its batch goes on behind the records of those before.
        batch, record, row = 0, self._printed or -1, 0
        counts = chunk.counts + self._printed
        self._printed = int(counts[0]) if chunk.is_part else 0
        while True:
            status, batch, record, row, written = write_lines(
                chunk.content,
                lines,
                counts,
                chunk.fields if self._style.records else None,
                self._flags,
                self._tables,
                True if chunk.batches.is_message.any() else None,
                True if self._style.json else None,
                texts,
                self._buffer,
                batch,
                (record, row),
            )
            rest = ""
            if status == PAYLOADS:
                rest = self._payloads(chunk, row)
            elif status == RAFT_RECORD:
                try:
                    rest = self._raft_record(chunk, row)
                except InvalidRecordError as error:
                    self.error = located(error, self._source.path, chunk.batches, batch)
            elif status == NO_KEY and self._mode not in (None, FAILFAST):
                rest = self._complaint(self._error(status, chunk, batch, record, row))
            elif status in _MESSAGES:
                self.error = self._error(status, chunk, batch, record, row)
            if self.error is not None and self._style.json:
                written = self._buffer[:written].tobytes().rfind(b"\n") + 1
            if written:
                yield self._buffer[:written].data
            if status == DONE or self.error is not None:
                return
            if rest:
                yield memoryview(rest.encode())
                record += 1
                row += 1
            elif status == NEW_DOUBLE:
                assert self._tables is not None
                learn(self._tables)
            elif not written:  # one record larger than the buffer
                self._buffer = np.empty(2 * self._buffer.size, dtype=np.uint8)

    def _line(self, kafkas: str, kind: str, **fields: Any) -> memoryview:
        """A line in Kafka's words, or as JSON with these fields."""
        return memoryview(json_line(kind, **fields) if self._style.json else f"{kafkas}\n".encode())

    def _gap_line(self, gap: Gap) -> memoryview:
        kafkas = f"damaged position: {gap.position} size: {gap.length} reason: {gap.reason}"
        # Without compilation kernels return numpy's numbers, which json cannot write.
        place = {"position": int(gap.position), "size": int(gap.length)}
        return self._line(kafkas, "gap", **place, reason=gap.reason)

    def _complaint(self, error: KafkaJitError) -> str:
        """The rest of the line of a record that the decoder cannot read."""
        reason = f"{type(error).__name__}: {error.message}"
        return f',"error":{json.dumps(reason)}}}\n' if self._style.json else f" {reason}\n"

    def _raft_record(self, chunk: Chunk, row: int) -> str:
        """The rest of the line of a Raft control record."""
        text = raft_message(chunk.field(row, "key"), chunk.field(row, "value"))
        if not self._style.json:
            return f" {text}\n"
        head, _, fields = text.partition("{")
        return f',"{head.strip(": ")}":{{{fields}}}\n'

    def _payloads(self, chunk: Chunk, row: int) -> str:
        """The rest of a record's line that reports an error, or is Java's toString."""
        assert self._style.topic is not None
        offset = int(chunk.fields["offset"][row])
        misfit = _misfit(chunk, row, with_key=self._style.topic.has_keys)
        if misfit is not None:
            key, payload = printed_misfit(self._style.topic, offset, misfit)
        else:
            key, payload = printed(
                self._style.topic, offset, chunk.field(row, "key"), chunk.field(row, "value")
            )
        if self._style.json:
            fields = {"key": key, "payload": payload}
            return (
                "".join(f",{json.dumps(name)}:{_as_json(text)}" for name, text in fields.items())
                + "}\n"
            )
        prefix = " " if self._style.metadata else "| "
        line = "" if key is None else f"{prefix}key: {key}"
        return line + ("" if payload is None else f" payload: {payload}") + "\n"

    def _error(self, status: int, chunk: Chunk, batch: int, record: int, row: int) -> KafkaJitError:
        exception, text = _MESSAGES[status]
        values = {"codec": chunk.batches.codec[batch], "record": record}
        if status == BAD_MESSAGE:
            entry = int(chunk.fields["headers"][row])
            length = int(read_int32(chunk.content, entry + BATCH_LENGTH_OFFSET))
            values["entrySize"] = LOG_OVERHEAD + length
        if row < len(chunk):
            for name in ("offset", "keySize", "valueSize"):
                values[name] = chunk.fields[name][row]
        error = exception(text.format_map(values))
        return located(error, self._source.path, chunk.batches, batch)


def _behind_error(chunk: Chunk, error: KafkaJitError) -> tuple[Chunk, Gap]:
    """The part of a chunk after the batch of the error, and that batch as a gap."""
    batch = int(np.flatnonzero(chunk.batches.position == error.position)[0])
    rows = int(chunk.counts[: batch + 1].sum())
    rest = replace(
        chunk,
        batches=chunk.batches[batch + 1 :],
        counts=chunk.counts[batch + 1 :],
        columns=chunk.columns._replace(fields=chunk.columns.fields[rows:]),
        rows=chunk.rows - rows,
    )
    return rest, _gap_of(chunk.batches, batch, error)


def _gap_of(batches: Batches, row: int, error: KafkaJitError) -> Gap:
    """A batch as a gap."""
    reason = f"{type(error).__name__}: {error.message}"
    size = int(batches.size_in_bytes[row])
    return Gap(error.path, int(batches.position[row]), size, reason)


def _misfit(chunk: Chunk, row: int, *, with_key: bool) -> str | None:
    """Java's error for a message whose key or value do not fit into it; None if they fit."""
    if not chunk.batches.is_message.any():
        return None
    record = chunk.fields[row]
    entry = int(record["headers"])
    end = entry + LOG_OVERHEAD + int(read_int32(chunk.content, entry + BATCH_LENGTH_OFFSET))
    for name in ("key", "value") if with_key else ("value",):
        start = int(record[name])
        if start < 0:
            return "null"
        size = int(read_int32(chunk.content, start - 4))
        if start + size > end:
            return f"newLimit > capacity: ({size} > {end - start})"
    return None


def _as_json(text: str | None) -> str:
    """The text if it is JSON already, else as a JSON string."""
    return text if text is not None and text.startswith("{") else json.dumps(text)


def json_line(kind: str, **fields: Any) -> bytes:
    r"""A line of --format json that Python writes.

    >>> json_line("gap", position=69)
    b'{"kind":"gap","position":69}\n'
    """
    return (json.dumps({"kind": kind, **fields}, separators=(",", ":")) + "\n").encode()
