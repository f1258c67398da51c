"""Errors about a log's bytes, in Kafka's words and with the place.

Kernels never raise: they return a status and two numbers. The stage that called them asks
`error_for` for the exception, once; `MESSAGES` is the only table from statuses to exceptions. The
texts are those of Kafka's DefaultRecord, DefaultRecordBatch and FileLogInputStream, so that an
operator who has seen them in a broker's log recognises them here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable


class KafkaJitError(ValueError):
    """The base of every error about a log's bytes: what is wrong, at which position and offset.

    An error about a text names the line, and perhaps the column, counted from 1. An error about
    records to be written names the row, counted from 0. `advice` describes what you can do about
    it, if the message alone does not.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        position: int | None = None,
        base_offset: int | None = None,
        line: int | None = None,
        column: int | None = None,
        row: int | None = None,
        advice: str | None = None,
    ) -> None:
        self.message = message
        self.advice = advice
        self.path = path
        self.position = position
        self.base_offset = base_offset
        self.line = line
        self.column = column
        self.row = row
        super().__init__(message)

    def __str__(self) -> str:
        text = self.message if self.row is None else f"row {self.row}: {self.message}"
        if self.position is not None:
            text += f" at position {self.position}"
        if self.base_offset is not None:
            text += f", base offset {self.base_offset}"
        if self.line is not None:
            text += f" at line {self.line}"
        if self.column is not None:
            text += f", column {self.column}"
        if self.path is not None:
            text += f" in {self.path}"
        return text if self.advice is None else f"{text}: {self.advice}"


class CorruptRecordError(KafkaJitError):
    """The framing or the checksum is wrong: a broker did not write these bytes."""


class NotALogError(CorruptRecordError):
    """The file does not begin with a record batch: it is not a Kafka log."""


class InvalidRecordError(KafkaJitError):
    """The checksum may hold, but the records inside contradict themselves."""


class UnsupportedCompressionTypeError(KafkaJitError):
    """The batch names a codec that its message format does not have."""


class DecompressionLimitError(KafkaJitError):
    """A batch decompresses to more than max_decompressed_bytes."""


class CorruptIndexError(KafkaJitError):
    """An index beside a log is not one that a broker wrote, or does not fit the log."""


class InvalidOffsetError(KafkaJitError):
    """An offset cannot be appended, because it is not behind those in the log."""


class OffsetOutOfRangeError(KafkaJitError):
    """A log does not have this offset: it lies before the log's start or behind its end."""


class CorruptSnapshotError(KafkaJitError):
    """A snapshot of producers is not one that a broker wrote."""


class CorruptCheckpointError(KafkaJitError):
    """A checkpoint, or another text file beside a log, is not one that a broker wrote."""


class RecordTooLargeError(KafkaJitError):
    """A batch is larger than the log's configuration allows."""


class LockedError(KafkaJitError):
    """A folder cannot be changed, because a running broker has it open."""


class InvalidSchemaError(KafkaJitError):
    """A schema of keys or values is malformed or incomplete."""


class RecordDeserializationError(KafkaJitError):
    """A key or a value does not fit its schema, or its schema is not known."""


class RemoteStorageError(KafkaJitError):
    """An object of tiered storage is malformed, or cannot be decrypted."""

    # The positions in the segment that are lost, if only a part of it is: [first, behind).
    lost: tuple[int, int] | None = None


class LeftOutError(KafkaJitError):
    """A file or a folder that may have records is not read."""

    # Whether it is a folder that lies beside what is read, such as a copy: the rest is whole.
    is_beside = False
    places: tuple[str, ...] = ()  # its path, or those of several


class RecordSerializationError(KafkaJitError):
    """A row cannot be written as a key or a value of a schema."""


# Is called with the error of a part that is left out, such as a folder that cannot be read, so that
# the others are read. With None the error is raised.
Failed = Callable[[Exception], None] | None

# The statuses that kernels return: OK, or a key of MESSAGES.
OK = 0
BATCH_TOO_SMALL = 1
LENGTH_VARINT_TOO_LONG = 2
PREMATURE_EOF = 3
RECORD_PAST_BATCH = 4
RECORD_PAST_STREAM = 5
INVALID_STRUCTURE = 6
NEGATIVE_HEADER_COUNT = 7
HEADER_COUNT_PAST_END = 8
NEGATIVE_HEADER_KEY_SIZE = 9
WRONG_RECORD_SIZE = 10
RECORDS_REMAINING = 11
NEGATIVE_RECORDS_COUNT = 12
INVALID_MESSAGE = 13
INNER_MESSAGE_TOO_SMALL = 14
EMPTY_MESSAGE_SET = 15
WRONG_WRAPPER_OFFSET = 16
NESTED_COMPRESSION = 17
INNER_MAGIC = 18
NULL_MESSAGE_SET = 19
OFFSET_OVERFLOW = 20
INDEX_OFFSET_NOT_LARGER = 21
TIME_INDEX_OFFSET_NOT_LARGER = 22
INVALID_TXN_STATE = 23
INVALID_CONTROL_TYPE = 24

# status: (exception, text); {a} and {b} stand for the two numbers that come with the status
MESSAGES: dict[int, tuple[type[KafkaJitError], str]] = {
    BATCH_TOO_SMALL: (
        CorruptRecordError,
        "Found record size {a} smaller than minimum record overhead (14)",
    ),
    LENGTH_VARINT_TOO_LONG: (
        InvalidRecordError,
        "Varint is too long, the most significant bit in the 5th byte is set",
    ),
    PREMATURE_EOF: (
        InvalidRecordError,
        "Incorrect declared batch size, premature EOF reached",
    ),
    RECORD_PAST_BATCH: (
        InvalidRecordError,
        "Invalid record size: expected {a} bytes in record payload, "
        "but instead the buffer has only {b} remaining bytes.",
    ),
    RECORD_PAST_STREAM: (
        InvalidRecordError,
        "Invalid record size: expected {a} bytes in record payload, "
        "but the record payload reached EOF.",
    ),
    INVALID_STRUCTURE: (InvalidRecordError, "Found invalid record structure"),
    NEGATIVE_HEADER_COUNT: (InvalidRecordError, "Found invalid number of record headers {a}"),
    HEADER_COUNT_PAST_END: (
        InvalidRecordError,
        "Found invalid number of record headers. "
        "{a} is larger than the remaining size of the buffer",
    ),
    NEGATIVE_HEADER_KEY_SIZE: (InvalidRecordError, "Invalid negative header key size {a}"),
    WRONG_RECORD_SIZE: (
        InvalidRecordError,
        "Invalid record size: expected to read {a} bytes in record payload, but instead read {b}",
    ),
    RECORDS_REMAINING: (
        InvalidRecordError,
        "Incorrect declared batch size, records still remaining in file",
    ),
    NEGATIVE_RECORDS_COUNT: (
        InvalidRecordError,
        "Found invalid record count {a} in magic v{b} batch",
    ),
    INVALID_MESSAGE: (
        InvalidRecordError,
        "Found invalid message: its key and value do not fit its {a} bytes",
    ),
    INNER_MESSAGE_TOO_SMALL: (
        CorruptRecordError,
        "Record size is less than the minimum record overhead (14)",
    ),
    EMPTY_MESSAGE_SET: (
        InvalidRecordError,
        "Found invalid compressed record set with no inner records",
    ),
    WRONG_WRAPPER_OFFSET: (
        InvalidRecordError,
        "Found invalid wrapper offset in compressed v1 message set, wrapper offset '{a}' is less "
        "than the last inner message offset '{b}' and it is not zero.",
    ),
    NESTED_COMPRESSION: (InvalidRecordError, "Inner messages must not be compressed"),
    NULL_MESSAGE_SET: (
        InvalidRecordError,
        "Found invalid compressed record set with null value (magic = {a})",
    ),
    INNER_MAGIC: (InvalidRecordError, "Invalid magic found in a compressed message set: {a}"),
    OFFSET_OVERFLOW: (
        InvalidOffsetError,
        "Detected offset overflow at offset {a} in a segment of base offset {b}",
    ),
    INDEX_OFFSET_NOT_LARGER: (
        InvalidOffsetError,
        "Attempt to append an offset {a} to an index, no larger than the last offset appended "
        "({b})",
    ),
    TIME_INDEX_OFFSET_NOT_LARGER: (
        InvalidOffsetError,
        "Attempt to append an offset {a} to a time index, no larger than the last offset appended "
        "({b})",
    ),
    INVALID_TXN_STATE: (InvalidRecordError, "Expected transactional write from producer {a}"),
    INVALID_CONTROL_TYPE: (
        InvalidRecordError,
        "Invalid control record type for end transaction marker of producer {a}: {b}",
    ),
}


def error_for(
    status: int,
    a: int = 0,
    b: int = 0,
    *,
    path: str | None = None,
    position: int | None = None,
    base_offset: int | None = None,
    record: int | None = None,
) -> KafkaJitError:
    """The exception for a kernel's status and its two numbers; `record` counts from 0."""
    exception, text = MESSAGES[status]
    message = text.format(a=a, b=b)
    if record is not None:
        message += f" (record {record} of the batch)"
    return exception(message, path=path, position=position, base_offset=base_offset)


def did_you_mean(
    name: str,
    candidates: Iterable[str],
    *,
    cutoff: float = 0.6,
    spelled: Callable[[str], str] = str.lower,
    quoted: bool = True,
) -> str:
    """A question that names the candidate closest to `name`; an empty string if no one is close.

    Names are compared as `spelled` writes them. `cutoff` is difflib's: from 0 (anything is close)
    to 1 (only the same name is).

    >>> did_you_mean("Ofset", ["offset", "position"])
    "did you mean 'offset'?"
    >>> did_you_mean("topic", ["offset", "position"])
    ''
    """
    from difflib import get_close_matches  # here, to keep `import kafkajit` light

    shown = {spelled(candidate): candidate for candidate in sorted(candidates)}
    close = get_close_matches(spelled(name), shown, n=1, cutoff=cutoff)
    if not close:
        return ""
    meant = shown[close[0]]
    return f"did you mean {repr(meant) if quoted else meant}?"
