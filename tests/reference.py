"""The slow twin: the same bytes read with struct and loops, no numba, no numpy, no shared code.

Follows Kafka's DefaultRecordBatch and DefaultRecord line by line. Tests hold the kernels against
it.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import zlib
from dataclasses import dataclass, field
from typing import Any

import cramjam
import lz4.frame
import zstandard
from crc32c import crc32c


class Invalid(Exception):
    """The reference refuses these bytes."""


@dataclass
class Batch:
    position: int
    size: int
    base_offset: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int
    is_valid: bool
    payload: bytes = field(repr=False)

    @property
    def codec(self) -> int:
        return self.attributes & 7

    @property
    def timestamp_type(self) -> int:
        return self.attributes >> 3 & 1 if self.magic else -1

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & 0x10)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & 0x20)

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.attributes & 0x40 else None

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == -1:
            return -1
        return increment_sequence(self.base_sequence, self.last_offset_delta)


@dataclass
class Record:
    offset: int
    timestamp: int
    sequence: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes | None]]


def int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def int64(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def increment_sequence(sequence: int, increment: int) -> int:
    if sequence > int32(2**31 - 1 - increment):
        return int32(increment - (2**31 - 1 - sequence) - 1)
    return int32(sequence + increment)


def read_batches(log: bytes) -> tuple[list[Batch], int]:
    """The batches of a log that ends as one may, and the position behind the last whole one."""
    batches, position, problem = framed(log)
    if problem is not None:
        raise problem
    return batches, position


def framed(log: bytes, *, is_beginning: bool = True) -> tuple[list[Batch], int, Invalid | None]:
    """The batches, the position behind the last whole one, and what is wrong there.

    Bytes from the middle of a log are not taken for another kind of file.
    """
    batches = []
    position = 0
    while position < len(log) - 17:
        base_offset, length = struct.unpack_from(">qi", log, position)
        if length < 14:
            break
        if position + 12 + length > len(log):
            break
        is_foreign = is_beginning and position == 0 and wrong_fields(log) > 1
        if is_foreign and not (holds(log) or any_sound(log, 1)):
            return [], 0, Invalid("no log")
        whole = log[position : position + 12 + length]
        if log[position + 16] < 2:
            batches.append(read_message(position, whole))
            position += len(whole)
            continue
        header = whole[:61].ljust(61, b"\0")
        _, _, epoch, magic, crc = struct.unpack_from(">qiibI", header)
        fields = struct.unpack_from(">hiqqqhii", header, 21)
        batches.append(
            Batch(
                position,
                len(whole),
                base_offset,
                epoch,
                magic,
                crc,
                *fields,
                is_valid=len(whole) >= 61 and crc32c(whole[21:]) == crc,
                payload=whole[61:],
            )
        )
        position += len(whole)
    return batches, position, tail_problem(log, position, is_beginning=is_beginning)


def tail_problem(log: bytes, position: int, *, is_beginning: bool) -> Invalid | None:
    """What no broker leaves behind the last whole batch of a last segment."""
    tail = log[position:]
    if not any(tail):
        return None
    if len(tail) > 17 and struct.unpack_from(">i", tail, 8)[0] < 14:
        return Invalid(f"a record size below 14 at {position}")
    if any_sound(log, position + 1):
        return Invalid(f"a length at {position} that leads past sound batches")
    if is_beginning and position == 0 and wrong_fields(log) > 0:
        return Invalid("no log, or its only header is damaged")
    if len(tail) > 25 and tail[16] <= 2:
        at, least = (17, 61) if tail[16] == 2 else (12, 26)
        checksum = crc32c if tail[16] == 2 else zlib.crc32
        (stored,) = struct.unpack_from(">I", tail, at)
        computed = checksum(tail[at + 4 : least - 1])
        for end in range(least, len(tail) + 1):
            computed = checksum(tail[end - 1 : end], computed)
            if computed == stored and may_follow(tail[end:]):
                return Invalid(f"a wrong length at {position}: the batch has {end} bytes")
    return None


def may_follow(rest: bytes) -> bool:
    """Whether a batch, a part of one, zeros or nothing stand there, as far as a glance tells."""
    if len(rest) > 16 and rest[16] > 2:
        return False
    return not any(rest[:1]) and (len(rest) < 12 or rest[8] < 0x80)


def holds(log: bytes) -> bool:
    """Whether the checksum of the first batch or message is right, whatever its fields."""
    end = 12 + struct.unpack_from(">i", log, 8)[0]
    if log[16] > 1:
        return end >= 61 and crc32c(log[21:end]) == struct.unpack_from(">I", log, 17)[0]
    return zlib.crc32(log[16:end]) == struct.unpack_from(">I", log, 12)[0]


def any_sound(log: bytes, start: int) -> bool:
    """Whether a batch whose checksum holds begins anywhere from there on."""
    for position in range(start, len(log) - 25):
        magic = log[position + 16]
        if magic > 2:
            continue
        size = 12 + struct.unpack_from(">i", log, position + 8)[0]
        if position + size > len(log) or size < (26, 34, 61)[magic]:
            continue
        whole = log[position : position + size]
        if magic == 2:
            if crc32c(whole[21:]) == struct.unpack_from(">I", whole, 17)[0]:
                return True
            continue
        if zlib.crc32(whole[16:]) != struct.unpack_from(">I", whole, 12)[0]:
            continue
        rest = whole[18 + 8 * magic :]
        for _ in range(2):
            if len(rest) < 4 or (field := struct.unpack_from(">i", rest)[0]) < -1:
                break
            rest = rest[4 + max(field, 0) :] if len(rest) >= 4 + field else None
            if rest is None:
                break
        else:
            if not rest:
                return True
    return False


def wrong_fields(log: bytes) -> int:
    """How many fields of the first header no broker writes; of those that are there in whole."""
    head = log[:61]
    least = {"offset": (0, ">q", 0), "length": (8, ">i", 14)}
    wrong = 0
    if len(head) > 16:
        if head[16] > 2:
            wrong += 1
        if head[16] >= 2:
            least |= {
                "epoch": (12, ">i", -1),
                "lastOffsetDelta": (23, ">i", 0),
                "maxTimestamp": (35, ">q", -1),
                "producerId": (43, ">q", -1),
                "baseSequence": (53, ">i", -1),
                "count": (57, ">i", 0),
            }
            wrong += len(head) > 22 and head[21:23] > b"\0\x7f"
        else:
            at = 18 + 8 * head[16]
            wrong += len(head) > 17 and head[17] > 15
            if len(head) >= at + 4:
                (size,) = struct.unpack_from(">i", head, 8)
                (key,) = struct.unpack_from(">i", head, at)
                left = 12 + size - at - 8
                wrong += not -1 <= key <= left
                value_at = at + 4 + max(key, 0)
                if len(head) >= value_at + 4:
                    (value,) = struct.unpack_from(">i", head, value_at)
                    is_right = max(value, 0) == left - max(key, 0) and value >= -1
                    wrong += not is_right
    for at, layout, smallest in least.values():
        if at + struct.calcsize(layout) <= len(head):
            wrong += struct.unpack_from(layout, head, at)[0] < smallest
    is_partial = len(head) < 61 or head[16] != 2
    is_unusual = is_partial and head[:1] not in (b"", b"\0") and head[0] < 0x80
    is_cut_and_negative = len(head) < 8 and head[:1] >= b"\x80"
    return wrong + is_unusual + is_cut_and_negative


def read_message(position: int, entry: bytes) -> Batch:
    """A message of v0 or v1, or a set of them, as a batch that has nothing else."""
    offset, _, crc, magic, attributes = struct.unpack_from(">qiIbb", entry)
    timestamp = -1
    if magic == 1 and len(entry) >= 26:
        (timestamp,) = struct.unpack_from(">q", entry, 18)
    return Batch(
        position=position,
        size=len(entry),
        base_offset=offset,
        partition_leader_epoch=-1,
        magic=magic,
        crc=crc,
        attributes=attributes & (15 if magic else 7),
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=-1 if attributes & 7 else 1,
        is_valid=zlib.crc32(entry[16:]) == crc,
        payload=entry,
    )


def _message_fields(entry: bytes) -> tuple[bytes | None, bytes | None]:
    """Key and value."""
    position = 26 if entry[16] == 1 else 18
    fields: list[bytes | None] = []
    for _ in range(2):
        if position + 4 > len(entry):
            raise Invalid("message")
        (size,) = struct.unpack_from(">i", entry, position)
        position += 4
        if size > len(entry) - position:
            raise Invalid("message")
        fields.append(None if size < 0 else entry[position : position + size])
        position += max(size, 0)
    return fields[0], fields[1]


def _accepted(frame: bytes) -> bytes:
    """An LZ4 frame with the header's checksum that the library accepts, whatever it has."""
    end = 14 if frame[4] & 8 else 6
    for byte in range(256):
        candidate = frame[:end] + bytes([byte]) + frame[end + 1 :]
        try:
            lz4.frame.get_frame_info(candidate)
        except RuntimeError:
            continue
        return candidate
    return frame


def read_messages(batch: Batch) -> list[Record]:
    """The record of a message, or the records of the set in it."""
    if batch.codec == 0:
        key, value = _message_fields(batch.payload)
        return [Record(batch.base_offset, batch.base_timestamp, -1, key, value, [])]
    _, value = _message_fields(batch.payload)
    if value is None or batch.codec > 3:
        raise Invalid("wrapper")
    if batch.magic == 0 and batch.codec == 3 and len(value) > 6:
        value = _accepted(value)
    data = decompress(batch.codec, value)
    entries = []
    position = 0
    while position + 12 <= len(data):
        offset, size = struct.unpack_from(">qi", data, position)
        if size < 14:
            raise Invalid("inner size")
        if position + 12 + size > len(data):
            break
        entries.append((offset, data[position : position + 12 + size]))
        position += 12 + size
    if not entries:
        raise Invalid("no inner messages")
    base = 0
    if batch.magic == 1 and batch.base_offset != 0:
        base = batch.base_offset - entries[-1][0]
        if base < 0:
            raise Invalid("wrapper offset")
    records = []
    for offset, entry in entries:
        magic, attributes = struct.unpack_from(">bb", entry, 16)
        if magic not in (0, 1) or attributes & 7:
            raise Invalid("inner message")
        key, value = _message_fields(entry)
        timestamp = -1
        if magic == 1:
            (timestamp,) = struct.unpack_from(">q", entry, 18)
            if batch.timestamp_type == 1:
                timestamp = batch.max_timestamp
        records.append(Record(int64(base + offset), timestamp, -1, key, value, []))
    return records


class _Reader:
    """A ByteBuffer: reads inside [position, limit)."""

    def __init__(self, data: bytes, position: int = 0, limit: int | None = None) -> None:
        self.data = data
        self.position = position
        self.limit = len(data) if limit is None else limit

    def byte(self) -> int:
        if self.position >= self.limit:
            raise Invalid("underflow")
        self.position += 1
        return self.data[self.position - 1]

    def _unsigned(self, most: int) -> int:
        result = 0
        for i in range(most):
            byte = self.byte()
            result |= (byte & 0x7F) << (7 * i)
            if byte < 0x80:
                return result
        raise Invalid("varint too long")

    def varint(self) -> int:
        raw = self._unsigned(5) & 0xFFFFFFFF
        return raw >> 1 ^ -(raw & 1)

    def varlong(self) -> int:
        raw = self._unsigned(10) & 0xFFFFFFFFFFFFFFFF
        return raw >> 1 ^ -(raw & 1)

    def field(self) -> bytes | None:
        size = self.varint()
        if size < 0:
            return None
        return self.take(size)

    def take(self, size: int) -> bytes:
        if size > self.limit - self.position:
            raise Invalid("field past the end")
        self.position += size
        return self.data[self.position - size : self.position]


def decompress(codec: int, payload: bytes) -> bytes:
    """By other means than the reader where there are any."""
    try:
        if codec == 0:
            return payload
        if not payload or (codec == 3 and not payload.startswith(b"\x04\x22\x4d\x18")):
            raise Invalid("no stream")  # the decoders below take that for an empty one
        if codec == 1:
            return gzip.decompress(payload)
        if codec == 2:
            return _unsnappy(payload)
        if codec == 3:
            out = b""
            while payload.startswith(b"\x04\x22\x4d\x18"):
                plain, read = lz4.frame.decompress(payload, return_bytes_read=True)
                out += plain
                payload = payload[read:]
            return out
        if codec == 4:
            reader = zstandard.ZstdDecompressor().stream_reader(
                io.BytesIO(payload), read_across_frames=True
            )
            return reader.read()
    except Exception as error:
        raise Invalid(f"codec {codec}: {error}") from error
    raise Invalid(f"codec {codec}")


def _unsnappy(payload: bytes) -> bytes:
    if not payload.startswith(b"\x82SNAPPY\x00"):
        return bytes(cramjam.snappy.decompress_raw(payload))
    order = ">" if payload[8:12] == b"\0\0\0\1" else "<"
    out, position = b"", 16
    while position < len(payload):
        (size,) = struct.unpack_from(order + "i", payload, position)
        out += bytes(cramjam.snappy.decompress_raw(payload[position + 4 : position + 4 + size]))
        position += 4 + size
    return out


def unsnappy_block(block: bytes) -> bytes:
    """A raw snappy block, element by element; ValueError or IndexError if it is malformed."""
    size = shift = at = 0
    while True:
        byte = block[at]
        size |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
        if shift == 35:
            raise ValueError("the size is too long")
    plain = bytearray()
    while at < len(block):
        tag, at = block[at], at + 1
        if tag % 4 == 0:
            length = tag // 4 + 1
            if length > 60:
                more = length - 60
                if at + more > len(block):
                    raise ValueError("a length is cut")
                length = int.from_bytes(block[at : at + more], "little") + 1
                at += more
            if at + length > len(block):
                raise ValueError("a literal is cut")
            plain += block[at : at + length]
            at += length
            continue
        more = {1: 1, 2: 2, 3: 4}[tag % 4]
        if at + more > len(block):
            raise ValueError("a copy is cut")
        back = int.from_bytes(block[at : at + more], "little")
        length = tag // 4 + 1
        if tag % 4 == 1:
            back += tag // 32 * 256
            length = tag // 4 % 8 + 4
        at += more
        if not 0 < back <= len(plain):
            raise ValueError("a copy from before the block")
        for _ in range(length):
            plain.append(plain[-back])
        if len(plain) > size:
            break
    if len(plain) != size:
        raise ValueError("another size")
    return bytes(plain)


def read_records(batch: Batch) -> list[Record]:
    """All records of a batch, or Invalid."""
    if batch.magic < 2:
        return read_messages(batch)
    if batch.records_count == 0:
        return []
    if batch.records_count < 0:
        raise Invalid("negative count")
    data = decompress(batch.codec, batch.payload)
    reader = _Reader(data)
    records = []
    for _ in range(batch.records_count):
        length = reader.varint()
        if batch.codec and length < 0:
            raise Invalid("negative length")
        if length > reader.limit - reader.position:
            raise Invalid("record past the end")
        body = _Reader(reader.take(length)) if batch.codec else reader
        start = body.position
        records.append(_read_body(body, batch))
        if body.position - start != length:
            raise Invalid("record size")
    if reader.position != len(data):
        raise Invalid("records remaining")
    return records


def _read_body(reader: _Reader, batch: Batch) -> Record:
    reader.byte()
    timestamp = int64(batch.base_timestamp + reader.varlong())
    if batch.timestamp_type == 1:
        timestamp = batch.max_timestamp
    delta = reader.varint()
    sequence = increment_sequence(batch.base_sequence, delta) if batch.base_sequence >= 0 else -1
    key = reader.field()
    value = reader.field()
    count = reader.varint()
    if count < 0 or count > reader.limit - reader.position:
        raise Invalid("header count")
    headers = []
    for _ in range(count):
        size = reader.varint()
        if size < 0:
            raise Invalid("header key size")
        headers.append((reader.take(size), reader.field()))
    return Record(int64(batch.base_offset + delta), timestamp, sequence, key, value, headers)


def rows(log: bytes) -> list[dict[str, Any]]:
    """Records as the rows that kafkajit.read_records(log) has, timestamps in milliseconds."""
    found = []
    for batch in read_batches(log)[0]:
        records = read_records(batch)
        for record in records:
            row = {
                "key": record.key,
                "value": record.value,
                "offset": record.offset,
                "timestamp": record.timestamp,
                "timestampType": batch.timestamp_type,
                "headers": [
                    {"key": key.decode("utf-8", "replace"), "value": value}
                    for key, value in record.headers
                ]
                or None,
                "sequence": record.sequence,
                "controlType": None,
                "coordinatorEpoch": None,
                "baseOffset": batch.base_offset if batch.magic == 2 else records[0].offset,
                "partitionLeaderEpoch": batch.partition_leader_epoch,
                "producerId": batch.producer_id,
                "producerEpoch": batch.producer_epoch,
                "isTransactional": batch.is_transactional,
                "magic": batch.magic,
                "position": batch.position,
            }
            if batch.is_control:
                assert record.key is not None
                type_id = struct.unpack_from(">h", record.key, 2)[0]
                row["controlType"] = {
                    0: "ABORT",
                    1: "COMMIT",
                    2: "LEADER_CHANGE",
                    3: "SNAPSHOT_HEADER",
                    4: "SNAPSHOT_FOOTER",
                    5: "KRAFT_VERSION",
                    6: "KRAFT_VOTERS",
                }.get(type_id, "UNKNOWN")
                if type_id in (0, 1):
                    assert record.value is not None
                    row["coordinatorEpoch"] = struct.unpack_from(">i", record.value, 2)[0]
            found.append(row)
    return found


@dataclass
class AbortedTransaction:
    """Kafka's AbortedTxn, and which segment the marker is in."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    segment: int

    def encode(self) -> bytes:
        return struct.pack(
            ">hqqqq",
            0,
            self.producer_id,
            self.first_offset,
            self.last_offset,
            self.last_stable_offset,
        )


def _marker_type(batch: Batch) -> int | None:
    """0 is ABORT; None where compaction took the marker out of its batch."""
    for record in read_records(batch):
        assert record.key is not None
        type_id: int = struct.unpack_from(">h", record.key, 2)[0]
        return type_id
    return None


def transactions(logs: list[bytes]) -> tuple[list[AbortedTransaction], int]:
    """Aborted transactions of a partition's segments, and the last stable offset.

    Follows ProducerStateManager: a transaction is what a producer appends between its markers.
    """
    ongoing: dict[int, int] = {}
    aborted = []
    end = 0
    for segment, log in enumerate(logs):
        for batch in read_batches(log)[0]:
            end = batch.base_offset + batch.last_offset_delta + 1
            if not batch.is_transactional:
                continue
            if not batch.is_control:
                ongoing.setdefault(batch.producer_id, batch.base_offset)
                continue
            first_offset = ongoing.pop(batch.producer_id, None)
            if first_offset is not None and _marker_type(batch) == 0:
                stable = min(ongoing.values(), default=end)
                aborted.append(
                    AbortedTransaction(
                        batch.producer_id, first_offset, batch.base_offset, stable, segment
                    )
                )
    return aborted, min(ongoing.values(), default=end)


def committed_rows(logs: list[bytes]) -> list[dict[str, Any]]:
    """What a consumer with isolation.level=read_committed is given, batch by batch.

    Follows CompletedFetch.nextFetchedRecord: the broker sends all up to the last stable offset and
    the list of aborted transactions; the consumer knows of which producers it has to drop batches.
    """
    aborted, last_stable_offset = transactions(logs)
    coming = sorted(aborted, key=lambda transaction: transaction.first_offset)
    dropped: set[int] = set()
    found = []
    for log in logs:
        for batch in read_batches(log)[0]:
            if batch.base_offset >= last_stable_offset:
                return found
            while coming and coming[0].first_offset <= batch.base_offset + batch.last_offset_delta:
                dropped.add(coming.pop(0).producer_id)
            if batch.is_control:
                if _marker_type(batch) == 0:
                    dropped.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in dropped):
                whole = log[batch.position : batch.position + batch.size]
                found += [row | {"position": batch.position} for row in rows(whole)]
    return found


def key_hash(key: bytes) -> int:
    """The hash by which a report counts keys: SplitMix64's mixing over words of eight bytes."""
    whole = len(key) // 8 * 8
    words = [int.from_bytes(key[at : at + 8]) for at in range(0, whole, 8)]
    state = 0x9E3779B97F4A7C15 ^ len(key)
    for word in words:
        state = _mixed(state ^ word)
    return _mixed(state ^ int.from_bytes(key[whole:]))


def _mixed(word: int) -> int:
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def holders(stretches: list[bytes], needle: bytes, *, ignores_case: bool) -> list[bool]:
    """Which of some bytes contain the needle; the case of ASCII letters may not count."""
    if ignores_case:
        return [needle.lower() in stretch.lower() for stretch in stretches]
    return [needle in stretch for stretch in stretches]


def json_members(line: bytes, wanted: list[str], depth: int = 500) -> dict[str, tuple[str, bytes]]:
    """The wanted members of a JSON object: the first letter of each value, and its text.

    A string's text has no quotes and no escapes; any other value is the bytes of the line.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise Invalid("not UTF-8") from None
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    found: dict[str, tuple[str, bytes]] = {}

    def behind(at: int) -> int:
        while text[at : at + 1] in (" ", "\t", "\r"):
            at += 1
        return at

    def decoded(at: int) -> tuple[Any, int]:
        try:
            return decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            raise Invalid(f"no value at {at}") from None

    at = behind(0)
    if text[at : at + 1] != "{":
        raise Invalid("not an object")
    at = behind(at + 1)
    while text[at : at + 1] != "}":
        name, at = decoded(at)
        if not isinstance(name, str) or text[behind(at) : behind(at) + 1] != ":":
            raise Invalid(f"no member at {at}")
        start = behind(behind(at) + 1)
        value, at = decoded(start)
        if name in found or any(map(_is_surrogate, name)) or _depth(value) >= depth:
            raise Invalid(f"the member {name}")
        if name in wanted:
            piece = value if isinstance(value, str) else text[start:at]
            if any(map(_is_surrogate, piece)):
                raise Invalid("half a surrogate pair")
            found[name] = text[start], piece.encode()
        at = behind(at)
        if text[at : at + 1] == "}":
            break
        if text[at : at + 1] != ",":
            raise Invalid(f"no comma at {at}")
        at = behind(at + 1)
        if text[at : at + 1] == "}":
            raise Invalid("a comma is last")
    if behind(at + 1) < len(text):
        raise Invalid("more follows")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _is_surrogate(letter: str) -> bool:
    return "\ud800" <= letter <= "\udfff"


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level:
        inside = [part for part in level if isinstance(part, (dict, list))]
        depth += bool(inside)
        level = [
            item for part in inside for item in (part.values() if isinstance(part, dict) else part)
        ]
    return depth


def csv_records(content: bytes) -> list[tuple[int, list[str | None]]]:
    """The records of CSV, each with its line; the blank lines are records of one NULL."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise Invalid("not UTF-8") from None
    found: list[tuple[int, list[str | None]]] = []
    at, line = 0, 1
    while at < len(text):
        begin, fields = line, []
        while True:
            field: str | None = None
            if text[at : at + 1] == '"':
                field, at = "", at + 1
                while True:
                    if at >= len(text):
                        raise Invalid("a quote is not closed")
                    if text[at : at + 2] == '""':
                        field, at = field + '"', at + 2
                    elif text[at] == '"':
                        at += 1
                        break
                    else:
                        line += text[at] == "\n"
                        field, at = field + text[at], at + 1
            else:
                while at < len(text) and text[at] not in ',\n\r"':
                    field, at = (field or "") + text[at], at + 1
            fields.append(field)
            if text[at : at + 1] != ",":
                break
            at += 1
        rest = text[at : at + 2]
        if rest not in ("", "\r") and rest[:1] != "\n" and rest != "\r\n":
            raise Invalid(f"a field ends with {rest!r}")
        at += 2 if rest == "\r\n" else 1
        line += 1
        found.append((begin, fields))
    return found
