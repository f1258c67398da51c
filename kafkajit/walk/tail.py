"""Judge the bytes behind a log's last whole batch: an end that brokers leave, or damage.

Every byte of a log belongs to a record batch, or to one of these:

    a torn tail         a batch that was never finished, at the end of a partition's last segment,
                        with no sound batch behind it
    preallocated zeros  at the end of a partition's last segment, with only zeros behind them
    damage              everything else

A broker truncates a segment before it begins the next one, so every segment except the last ends
with a batch. A log that ends with a batch needs none of these checks.
"""

from __future__ import annotations

import codecs
import re
import struct
from collections.abc import Callable

from kafkajit.errors import CorruptIndexError, CorruptRecordError, KafkaJitError, NotALogError
from kafkajit.format.foreign_names import foreign_format
from kafkajit.format.layout import (
    ATTRIBUTES_OFFSET,
    BASE_SEQUENCE_OFFSET,
    BATCH_LENGTH_OFFSET,
    COMPRESSION_CODEC_MASK,
    KEY_SIZE_OFFSET_V0,
    KEY_SIZE_OFFSET_V1,
    KNOWN_ATTRIBUTES,
    LAST_OFFSET_DELTA_OFFSET,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    MAGIC_V0,
    MAGIC_V2,
    MAX_TIMESTAMP_OFFSET,
    MESSAGE_ATTRIBUTES_OFFSET,
    MIN_ENTRY_SIZE,
    PARTITION_LEADER_EPOCH_OFFSET,
    PRODUCER_ID_OFFSET,
    RECORD_BATCH_OVERHEAD,
    RECORDS_COUNT_OFFSET,
    TIMESTAMP_TYPE_MASK,
)
from kafkajit.format.log_path import parse_log_path
from kafkajit.records.batches import frame, framing_error
from kafkajit.storage.source import Bytes, Source
from kafkajit.walk.resync import PrefixChecksums, end_by_checksum

_ADVICE = "read it with mode DROPMALFORMED or PERMISSIVE, or see `kafkajit repair`"
_MAX_OFFSET = 2**63 - 1
# Brokers' offsets are far below this. The first eight bytes of most other files, such as text, are
# far above.
_USUAL_OFFSETS = 2**56

# A file's first bytes, the format that they belong to, and advice.
_SIGNATURES = [
    (re.compile(pattern, re.DOTALL), what, advice)
    for pattern, what, advice in (
        (rb"\x1f\x8b", "gzip", "decompress it first (gunzip)"),
        (rb"\x28\xb5\x2f\xfd", "zstd", "decompress it first (unzstd)"),
        (rb"\x04\x22\x4d\x18", "an lz4 frame", "decompress it first (unlz4)"),
        (rb"\xff\x06\x00\x00sNaPpY|\x82SNAPPY\x00", "snappy", "decompress it first"),
        (rb"BZh\d", "bzip2", "decompress it first (bunzip2)"),
        (rb"\xfd7zXZ\x00", "xz", "decompress it first (unxz)"),
        (rb"PK\x03\x04", "zip", "unpack it first"),
        (rb"7z\xbc\xaf\x27\x1c", "7z", "unpack it first"),
        (rb".{257}ustar", "tar", "unpack it first"),
        (rb"PAR1", "Parquet", ""),
        (rb"ARROW1|\xff{4}..\x00\x00", "Arrow", ""),
        (rb"ORC", "ORC", ""),
        (rb"Obj\x01", "Avro", ""),
        (rb"SQLite format 3\x00", "SQLite", ""),
    )
]
_TEXT_BYTES = 512
# The end of AutoMQ's objects, which have batches of many partitions (ObjectWriter.Footer).
_AUTOMQ_END = bytes.fromhex("88e241b785f4cff7")


def tail_error(
    source: Source,
    position: int,
    error: KafkaJitError | None,
    *,
    is_last: bool | None = None,
    prover: Callable[[], PrefixChecksums] | None = None,
) -> KafkaJitError | None:
    """The error in the bytes behind the last whole batch; None if a log may end like that.

    Args:
        source: a whole log.
        position: the end of its last whole batch.
        error: the reason why no batch is framed there, if framing raised one.
        is_last: whether this is its partition's last segment; if None, the folder decides, and a
            segment that has grown since it was listed was the last one then.
        prover: returns the prover of a log with more than one gap.
    """
    size = source.content.size
    if position >= size:
        return None
    source.load(size)
    if only_zeros(source, position):
        return _followed(source, position, "zeros", is_last)
    base_offset = _base_offset(source.content, position)
    behind = (
        prover() if prover else PrefixChecksums(source.content, source.data_end)
    ).next_sound_batch(position + 1)
    if position == 0 and behind == size:
        foreign = _foreign(source, error)
        if foreign is not None:
            return foreign
    if error is not None:
        return error
    if behind < size:
        problem = f"a sound batch begins at {behind}"
    elif (end := end_by_checksum(source.content, position)) is not None:
        problem = f"its checksum holds up to {end}"
    else:
        return _followed(source, position, "the beginning of a record batch", is_last)
    claimed = _claimed(source.content, position)
    what = (
        "no record batch is found"
        if claimed is None
        else (f"record size {claimed} leads past the end of the log")
    )
    return CorruptRecordError(
        f"{what}, but {problem}",
        advice=_ADVICE,
        path=source.path,
        position=position,
        base_offset=base_offset,
    )


def foreign_error(source: Source) -> NotALogError | None:
    """The error of a file that is not a log, with the format that it seems to have; else None."""
    framing = frame(source.content, max_records=1)
    if len(framing.batches):
        error = begin_error(source)
    else:
        error = tail_error(source, 0, framing_error(source, framing), is_last=True)
    return error if isinstance(error, NotALogError) else None


def begin_error(source: Source) -> KafkaJitError | None:
    """The error of a file that is framed as a batch but is not a log; else None."""
    head = source.content[:RECORD_BATCH_OVERHEAD].tobytes()
    if _wrong_fields(head) < 2:
        return None
    source.load(source.content.size)
    first = frame(source.content, max_records=1).batches[:1]
    if first.is_valid(source.content).any():
        return None
    behind = PrefixChecksums(source.content, source.data_end).next_sound_batch(1)
    return _foreign(source, None) if behind == source.content.size else None


def only_zeros(source: Source, position: int) -> bool:
    """Whether all bytes from `position` on are zeros, as at the end of a preallocated file."""
    step, end = 1 << 20, source.data_end
    for at in range(position, end, step):
        source.load(min(at + step, end))
        if source.content[at : min(at + step, end)].any():
            return False
    return True


def next_segment(source: Source) -> str | None:
    """The file name of the segment that follows this one in its folder, or None."""
    if source.surroundings is None or source.path is None:
        return None
    own = parse_log_path(source.path)
    if own.suffix != ".log" or own.base_offset is None:
        return None
    least: tuple[int, str] | None = None
    for name in source.surroundings.names():
        if name.endswith(".log"):
            base_offset = parse_log_path(name).base_offset
            if base_offset is not None and own.base_offset < base_offset <= _MAX_OFFSET:
                least = min(least or (base_offset, name), (base_offset, name))
    return None if least is None else least[1]


def _followed(
    source: Source, position: int, what: str, is_last: bool | None
) -> KafkaJitError | None:
    """The error of a log that ends as only a last segment may; None if it is the last segment."""
    if is_last:
        return None
    following = next_segment(source)
    if following is None and is_last is None:
        return None
    surroundings = source.surroundings
    if is_last is None and surroundings and surroundings.size() > source.content.size:
        # It was the last segment when it was listed or opened, in the middle of a batch. The broker
        # has finished the batch since, and rolled. `find_segments` looks again at the sizes of
        # segments that were not the last.
        return None
    return CorruptRecordError(
        f"{following or 'another segment'} follows this segment, which ends in "
        f"{source.content.size - position} bytes that are {what}",
        advice=_ADVICE,
        path=source.path,
        position=position,
        base_offset=None if what == "zeros" else _base_offset(source.content, position),
    )


def _foreign(source: Source, error: KafkaJitError | None) -> KafkaJitError | None:
    """The error of a file without a sound batch, whose first bytes may not belong to a batch.

    One wrong field in a header is damage. If the file ends before the magic byte, one wrong field
    means that the file is not a log.
    """
    content = source.content
    head = content[:RECORD_BATCH_OVERHEAD].tobytes()
    wrong = _wrong_fields(head)
    seen, advice = _seems(content, source.path or "")
    if seen is None and (wrong == 0 or (wrong == 1 and len(head) > MAGIC_OFFSET)):
        if error is not None or wrong == 0:
            return error
        return CorruptRecordError(
            "the header of the only record batch is damaged",
            path=source.path,
            position=0,
        )
    return NotALogError(
        f"no record batch begins here, so this is not a Kafka log: it seems to be "
        f"{seen or 'unknown bytes'}",
        advice=advice or None,
        path=source.path,
        position=0,
    )


def _wrong_fields(head: bytes) -> int:
    """The number of fields with values that brokers never write, in a header or its first part."""

    def field(at: int, layout: str, least: int, most: int) -> int:
        if at + struct.calcsize(layout) > len(head):
            return 0
        return int(not least <= struct.unpack_from(layout, head, at)[0] <= most)

    is_whole = len(head) == RECORD_BATCH_OVERHEAD and head[MAGIC_OFFSET] == MAGIC_V2
    most_offset = _MAX_OFFSET if is_whole else _USUAL_OFFSETS - 1
    is_unusual = int.from_bytes(head[:8].ljust(8, b"\0")) > most_offset
    wrong = is_unusual + field(BATCH_LENGTH_OFFSET, ">i", MIN_ENTRY_SIZE, 2**31 - 1)
    if len(head) <= MAGIC_OFFSET:
        return wrong
    magic = head[MAGIC_OFFSET]
    if magic < MAGIC_V2:
        known = COMPRESSION_CODEC_MASK | TIMESTAMP_TYPE_MASK
        key_at = KEY_SIZE_OFFSET_V0 if magic == MAGIC_V0 else KEY_SIZE_OFFSET_V1
        rest = struct.unpack_from(">i", head, BATCH_LENGTH_OFFSET)[0] + LOG_OVERHEAD - key_at - 8
        wrong += field(MESSAGE_ATTRIBUTES_OFFSET, "B", 0, known)
        wrong += field(key_at, ">i", -1, rest)
        if len(head) >= key_at + 4:  # the value has the rest
            key_size = max(0, struct.unpack_from(">i", head, key_at)[0])
            value_size = rest - key_size
            least = value_size if value_size else -1
            wrong += field(key_at + 4 + key_size, ">i", least, value_size)
        return wrong
    wrong += magic > MAGIC_V2
    wrong += field(PARTITION_LEADER_EPOCH_OFFSET, ">i", -1, 2**31 - 1)
    wrong += field(ATTRIBUTES_OFFSET, ">H", 0, KNOWN_ATTRIBUTES)
    wrong += field(LAST_OFFSET_DELTA_OFFSET, ">i", 0, 2**31 - 1)
    wrong += field(MAX_TIMESTAMP_OFFSET, ">q", -1, _MAX_OFFSET)
    wrong += field(PRODUCER_ID_OFFSET, ">q", -1, _MAX_OFFSET)
    wrong += field(BASE_SEQUENCE_OFFSET, ">i", -1, 2**31 - 1)
    return wrong + field(RECORDS_COUNT_OFFSET, ">i", 0, 2**31 - 1)


def _seems(content: Bytes, path: str) -> tuple[str | None, str]:
    """The format that a file seems to have, or None, and advice."""
    foreign = foreign_format(path)
    if foreign is not None:
        return foreign, ""
    if content[-len(_AUTOMQ_END) :].tobytes() == _AUTOMQ_END:
        return "an object of AutoMQ's", "only the metadata of its cluster tells what is in it"
    head = content[:_TEXT_BYTES].tobytes()
    for pattern, what, advice in _SIGNATURES:
        if pattern.match(head):
            return what, advice
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return None, ""
    text = text.lstrip("\ufeff \t\r\n")
    if any(not (character.isprintable() or character in "\t\r\n\f\x1b") for character in text):
        return None, ""
    if text.lower().startswith(("<!doctype html", "<html", "<head", "<body")):
        return "HTML", ""
    if text.startswith("<"):
        return "XML", ""
    return ("JSON" if text.startswith(("{", "[")) else "text"), ""


def _claimed(content: Bytes, position: int) -> int | None:
    if content.size - position <= MAGIC_OFFSET:
        return None
    at = position + BATCH_LENGTH_OFFSET
    return int.from_bytes(content[at : at + 4].tobytes(), signed=True)


def _base_offset(content: Bytes, position: int) -> int | None:
    if content.size - position <= MAGIC_OFFSET:
        return None
    return int.from_bytes(content[position : position + 8].tobytes(), signed=True)


def split_error(source: Source, position: int, end: int) -> KafkaJitError:
    """The error of a stretch whose last batch ends before the stretch does."""
    return CorruptIndexError(
        f"No record batch ends at position {end}, where the segment was split: its offset index is "
        "wrong, or the file has changed",
        path=source.path,
        position=position,
    )


def length_error(source: Source, position: int, end: int) -> KafkaJitError:
    """The error of a batch that reaches over the end of a stretch, where another one begins."""
    claimed = _claimed(source.content[:end], position)
    what = "no record batch is found" if claimed is None else f"record size {claimed} is too large"
    return CorruptRecordError(
        f"{what}: the next batch begins at {end}", path=source.path, position=position
    )
