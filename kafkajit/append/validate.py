"""Whether batches may be appended to a log.

Answers to UnifiedLog.analyzeAndValidateRecords of Kafka 4.1.1 and the additional checks of a
follower's append, with the same messages. Records are not checked.
"""

from __future__ import annotations

import numpy as np

from kafkajit.errors import (
    InvalidOffsetError,
    KafkaJitError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
)
from kafkajit.format.codecs import COMPRESSION_TYPES
from kafkajit.format.limits import MAX_INT64
from kafkajit.log.config import LogConfig
from kafkajit.records.batches import Batches
from kafkajit.records.chunk import located
from kafkajit.records.decode import Decoder


def check_appendable(
    decoder: Decoder, batches: Batches, next_offset: int, config: LogConfig, path: str | None
) -> int:
    """Return the offset after these batches; raise for the first that may not be appended.

    The first offset of a message set of v0 or v1 is not known: as in Kafka, its last offset has to
    be at or after the log end offset.
    """
    sound = decoder.sound(batches, check_crcs=True) & batches.is_whole
    most = min(config.max_message_bytes, config.segment_bytes)
    is_large = batches.size_in_bytes > most
    is_unknown = batches.codec > max(COMPRESSION_TYPES)
    first = np.where(batches.is_message, batches.last_offset, batches.header["baseOffset"])
    before = np.empty_like(first)
    before[0], before[1:] = next_offset - 1, batches.last_offset[:-1]
    is_before = (first <= before) | (batches.last_offset < first)
    is_before |= batches.last_offset == MAX_INT64  # no offset could follow it
    bad = ~sound | is_large | is_unknown | is_before
    if not bad.any():
        return int(batches.last_offset[-1]) + 1
    row = int(np.argmax(bad))
    if not sound[row]:
        raise decoder.unsound(batches, row)
    error: KafkaJitError
    if is_large[row]:
        error = _too_large(int(batches.size_in_bytes[row]), config)
    elif is_unknown[row]:
        error = UnsupportedCompressionTypeError(
            f"Unknown compression type id: {batches.codec[row]}"
        )
    elif first[row] <= before[row]:
        error = InvalidOffsetError(
            f"Unexpected offset in append: offsets only grow. First offset {first[row]} is less "
            f"than the next offset {int(before[row]) + 1}"
        )
    else:
        error = InvalidOffsetError(
            f"Last offset {batches.last_offset[row]} of a batch is less than its first offset "
            f"{first[row]}, or the last that there is"
        )
    raise located(error, path, batches, row)


def _too_large(size: int, config: LogConfig) -> RecordTooLargeError:
    if size > config.max_message_bytes:
        limit, name, value = "value", "max.message.bytes", config.max_message_bytes
    else:
        limit, name, value = "segment size", "segment.bytes", config.segment_bytes
    return RecordTooLargeError(
        f"The record batch size in the append is {size} bytes which exceeds the maximum configured "
        f"{limit} of {value} ({name})"
    )
