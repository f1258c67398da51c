"""Compare the batches of a KafScale segment with its head and its footer.

Nothing in such a segment is a torn tail or a preallocated zero: an object is written whole.
"""

from __future__ import annotations

import numpy as np

from kafkajit.errors import CorruptRecordError, KafkaJitError
from kafkajit.format.batch_checksum import POLYNOMIAL, crc32c
from kafkajit.format.crc import move, over_zeros
from kafkajit.format.kafscale import END_MAGIC, FOOTER, HEAD, MAGIC, SUFFIX, VERSION
from kafkajit.format.log_path import parse_log_path
from kafkajit.records.batches import Framing, frame
from kafkajit.storage.source import Bytes, Source

_OVER_ZEROS = over_zeros(POLYNOMIAL)


def is_kafscale(source: Source) -> bool:
    """Whether these bytes are a segment of KafScale's, by their name or their first bytes."""
    if source.path is not None and source.path.endswith(SUFFIX):
        return True
    return source.is_there and source.content[: len(MAGIC)].tobytes() == MAGIC


class KafscaleSegment:
    """A segment as a walk has seen it so far, for the judgement of its head and its footer."""

    def __init__(self, source: Source, *, checks_crc: bool = False) -> None:
        self.checks_crc = checks_crc  # of all batches, if all of them are framed
        self.is_damaged = False  # so its footer need not fit the batches that are left
        self._source = source
        self._position: int | None = None  # behind the batches so far, if all have been framed
        self._crc = np.uint64(0)
        self._records = self._expected = 0
        self._last_offset: int | None = None

    def head_error(self) -> KafkaJitError | None:
        """The error of the head; None if it is sound."""
        content = self._source.content
        self._source.load(min(HEAD.size, content.size))
        head = content[: HEAD.size].tobytes()
        if not MAGIC.startswith(head[: len(MAGIC)]):
            return self._error(f"it begins with {head[: len(MAGIC)]!r} instead of {MAGIC!r}", 0)
        if len(head) < HEAD.size:
            return self._error(f"it is cut short within its head of {HEAD.size} bytes", 0)
        _, version, flags, base_offset, self._expected, _, _ = HEAD.unpack(head)
        if version != VERSION or flags:
            return self._error(
                f"its head has version {version} and flags {flags}; kafkajit reads version "
                f"{VERSION} without flags",
                0,
            )
        named = parse_log_path(self._source.path).base_offset if self._source.path else None
        if named not in (None, base_offset):
            return self._error(f"its head has base offset {base_offset}, its name {named}", 0)
        self._position, self._last_offset = HEAD.size, base_offset - 1
        return None

    def add(self, framing: Framing) -> None:
        """Take in the next batches that have been framed."""
        batches = framing.batches
        start = int(batches.position[0])
        if self._position != start:
            self._position = None
            return
        if self.checks_crc:
            self._crc = _crc(self._crc, self._source.content, start, framing.position)
        self._records += int(batches.field("recordsCount").sum(dtype=np.int64))
        self._last_offset = int(batches.last_offset[-1])
        self._position = framing.position

    def end_error(self, position: int) -> KafkaJitError | None:
        """The error of the bytes behind the last batch; None if they are the footer that fits."""
        self._source.load(self._source.content.size)
        rest = self._source.content[position:].tobytes()
        if not rest and self.is_damaged:
            return None  # a gap that goes up to the end
        if len(rest) != FOOTER.size:
            return self._error(
                f"it is cut short: {len(rest)} bytes without its footer follow the last batch"
                if rest
                else "it is cut short: it has no footer",
                position,
            )
        crc, last_offset, magic = FOOTER.unpack(rest)
        if magic != END_MAGIC:
            return self._error(f"it ends with {magic!r} instead of {END_MAGIC!r}", position)
        if self.is_damaged or self._position != position:
            return None
        if self.checks_crc and crc != self._crc:
            return self._error(
                f"its footer has crc = {crc}, the computed crc of its batches = {self._crc}",
                position,
            )
        if last_offset != self._last_offset:
            return self._error(
                f"its footer has last offset {last_offset}, its batches {self._last_offset}",
                position,
            )
        if self._records != self._expected:
            return self._error(
                f"its head has {self._expected} records, its batches have {self._records}",
                position,
            )
        return None

    def _error(self, problem: str, position: int) -> KafkaJitError:
        return CorruptRecordError(
            f"The KafScale segment is corrupt: {problem}",
            path=self._source.path,
            position=position,
        )


def unwrapped(source: Source, *, checks_crc: bool) -> Bytes | None:
    """The batches of a small segment by themselves; None if anything in it is wrong."""
    segment = KafscaleSegment(source, checks_crc=checks_crc)
    if segment.head_error() is not None:
        return None
    position = HEAD.size
    while len((framing := frame(source.content, position)).batches):
        segment.add(framing)
        position = framing.position
    return None if segment.end_error(position) else source.content[HEAD.size : position]


def _crc(before: np.uint64, content: Bytes, start: int, end: int) -> np.uint64:
    """The CRC-32C of the bytes so far and these."""
    here = np.uint64(crc32c(content, np.int64(start), np.int64(end)))
    return np.uint64(move(before, np.int64(end - start), _OVER_ZEROS)) ^ here
