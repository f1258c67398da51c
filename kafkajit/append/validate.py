"""Whether batches may be appended behind a log's end.

Answers to UnifiedLog.analyzeAndValidateRecords of Kafka 4.1.1 and what a follower's append asks
besides, in the same words; records are not looked at.
"""

from __future__ import annotations

import numpy as np

from kafkajit.errors import (
    InvalidOffsetError,
    KafkaJitError,
    RecordTooLargeError,
    UnsupportedCompressionTypeError,
)
from kafkajit.format.compression import COMPRESSION_TYPES
from kafkajit.format.limits import MAX_INT64
from kafkajit.log.config import LogConfig
from kafkajit.records.batches import Batches
from kafkajit.records.decode import Decoder, located


def check_appendable(
    decoder: Decoder, batches: Batches, next_offset: int, config: LogConfig, path: str | None
) -> int:
    """The offset behind these batches; an error names the first of them that may not be there.

    Of a set of v0 or v1 the first offset is not known: as in Kafka, its last one has to be behind
    the log's.
    """
    sound = decoder.sound(batches, check_crcs=True) & batches.is_whole
    most = min(config.max_message_bytes, config.segment_bytes)
    is_large = batches.size_in_bytes > most
    is_unknown = batches.codec > max(COMPRESSION_TYPES)
    first = np.where(batches.is_message, batches.last_offset, batches.header["baseOffset"])
    before = np.empty_like(first)
    before[0], before[1:] = next_offset - 1, batches.last_offset[:-1]
    is_before = (first <= before) | (batches.last_offset < first)
    is_before |= batches.last_offset == MAX_INT64  # there is none behind it
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
