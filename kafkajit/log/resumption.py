"""Whether a log is still the one that was read up to an offset, and what of it is gone.

An offset alone does not say it: a topic may have been deleted and made again, or a log truncated
and written again, up to this offset and beyond. So whoever reads on keeps the last batch, too. The
log must still have it, unless

- retention has removed it: the log begins after it,
- compaction has removed it, or changed it: a cleaner keeps the first and the last offset of a
  batch, and puts no other batch in place of one that it removes. A batch before it with a later
  leader epoch is of another history.

Where that batch is gone, the topic's id and its leader epochs decide: a topic that was made again
has another id, and a log that was truncated has other epochs from there on. Kafka before 2.8 and
copies of a log lack the id.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from kafkajit.errors import CorruptCheckpointError, KafkaJitError, OffsetOutOfRangeError
from kafkajit.format.layout import DELETE_HORIZON_MASK
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import NOTHING, Range
from kafkajit.format.tiered_names import object_name
from kafkajit.log.footing import (
    Epochs,
    Footing,
    ReadBatch,
    agreed_up_to,
    made_again_text,
    truncated_text,
)
from kafkajit.log.open_segment import OpenSegment
from kafkajit.log.segment import Segment
from kafkajit.log.tiered_segments import epochs_of, topic_id_beside
from kafkajit.places.tiered_files import TieredFile
from kafkajit.records.batches import Batches
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.decode import Decoder
from kafkajit.state.leader_epochs import LEADER_EPOCHS
from kafkajit.state.partition_metadata import PARTITION_METADATA
from kafkajit.storage.source import Int64s, Source
from kafkajit.storage.stored_file import StoredFile
from kafkajit.walk.damage import DROPMALFORMED
from kafkajit.walk.walk import Walk

logger = logging.getLogger("kafkajit")


def batch_at(segments: Sequence[Segment], offset: int, position: int) -> ReadBatch | None:
    """The batch at the position of a segment, which is the one with this offset.

    >>> import kafkajit.testing as kt
    >>> from kafkajit.scan.partitions import find_partitions
    >>> from kafkajit.scan.options import ScanOptions
    >>> (segments,) = find_partitions(ScanOptions(paths=(f"{kt.SAMPLE}/orders-0",)))
    >>> batch_at(segments, 2, 0)[:2]
    (0, 3)
    """
    batch = _at(segments, offset, position)
    return None if batch is None or batch.last_offset < offset else batch


def footing_of(segments: Sequence[Segment]) -> Footing:
    """The ground of the positions in a log as it is now, except for their last batches.

    >>> footing_of([])
    Footing(topic_id=None, last=None, epochs=(), log_start=None)
    """
    topic_id: str | None = None
    beside: dict[str, StoredFile] = {}
    for log in {segment.log.folder: segment.log for segment in segments}.values():
        tiered = object_name(log.path)
        if tiered is not None:
            topic_id = topic_id or tiered.topic_id
            continue
        beside |= {file.path: file for file in log.beside()}
        if topic_id is None and f"{log.folder}/{PARTITION_METADATA}" in beside:
            try:
                topic_id = topic_id_beside(log, beside)
            except CorruptCheckpointError as error:
                logger.warning("%s: the topic's id is not known", error)
    epochs = _epochs_at_end(segments[-1].log, beside) if segments else ()
    start = min((one.base_offset for one in segments if one.log.size and one.cut), default=None)
    return Footing(topic_id, None, epochs, start)


def _epochs_at_end(last: StoredFile, beside: Mapping[str, StoredFile]) -> Epochs:
    """The leader epochs up to a log's end, as far as they are noted."""
    if not isinstance(last, TieredFile) and f"{last.folder}/{LEADER_EPOCHS}" not in beside:
        return ()
    try:
        return tuple(epochs_of(last, beside))
    except FileNotFoundError:  # a broker has removed it meanwhile
        return ()


def check_resumed(
    segments: Sequence[Segment], next_offset: int, read: Footing, now: Footing
) -> Range:
    """Check that a log is the one that was read up to an offset.

    Args:
        segments: of the log.
        next_offset: up to which it was read.
        read: what that position stands on, as far as it is known.
        now: what positions in the log stand on now.

    Returns:
        The offsets from the next one on that retention has removed meanwhile.

    Raises:
        OffsetOutOfRangeError: it is another log, or was truncated.
    """
    last = read.last
    why = made_again_text(read.topic_id, now.topic_id)
    if why is not None:
        raise OffsetOutOfRangeError(why, path=segments[0].log.folder)
    there = None if last is None else _at(segments, last.last_offset, last.position)
    if last is not None and there is not None and there.is_same(last):
        return NOTHING
    begin = min(segment.base_offset for segment in segments)
    wanted = next_offset - 1 if last is None else last.last_offset
    source, found = next(_from(segments, wanted), (None, None))
    if last is not None and found is not None and ReadBatch.of(found).is_same(last):
        return NOTHING
    agreed = agreed_up_to(read.epochs, next_offset, now.epochs, MAX_INT64)
    if agreed is not None and agreed < next_offset:
        raise OffsetOutOfRangeError(
            truncated_text(agreed, read.epochs, now.epochs), path=segments[0].log.folder
        )
    end = max(segment.base_offset for segment in segments)
    if found is None and end < next_offset:
        raise _another(segments, f"it ends before offset {next_offset}, up to which it was read")
    if begin > wanted:
        return Range(next_offset, begin - 1) if begin > next_offset else NOTHING
    if last is None:
        return NOTHING
    before = _before(segments, wanted)
    if before is not None and -1 < last.leader_epoch < before.leader_epoch:
        raise _another(
            segments,
            f"its batch at offset {before.base_offset} has leader epoch {before.leader_epoch}, and "
            f"the one that was read at offset {last.base_offset} had epoch {last.leader_epoch}",
        )
    if source is None or found is None:
        return NOTHING
    if not may_be(found, last, offsets_in_set(source, found)):
        raise _another(segments, f"its batch at offset {wanted} is not the one that was read")
    return NOTHING


def has_any(segments: Sequence[Segment], offsets: Range) -> bool:
    """Whether a log has a batch with one of these offsets."""
    _, found = next(_from(segments, offsets.first), (None, None))
    return found is not None and int(found.header["baseOffset"][0]) <= offsets.last


def segment_with(segments: Sequence[Segment], offset: int) -> Segment | None:
    """The segment that has an offset; of those that overlap, the one that is read.

    >>> segment_with([], 7)
    """
    return next(_segments_from(segments, offset), None)


def offsets_in_set(source: Source, found: Batches) -> Int64s | None:
    """The offsets in a compressed set of messages; None of another batch or a malformed one."""
    if not found.is_message_set[0]:
        return None
    try:
        chunk = Decoder(source, ColumnMemory(Wanted(fields=True))).decode(found)
    except KafkaJitError:
        return None
    offsets: Int64s = chunk.fields["offset"]
    return offsets if offsets.size else None


def may_be(found: Batches, last: ReadBatch, offsets: Int64s | None = None) -> bool:
    """Whether a batch is the one that was read, or what a cleaner has left of it or after it.

    Args:
        found: the batch.
        last: the one that was read.
        offsets: those in a set of messages, whose header has only the last one.
    """
    here = ReadBatch.of(found)
    if here[:4] == last[:4]:
        return True
    epochs = {here.leader_epoch, last.leader_epoch}
    if found.is_message[0]:
        first = here.last_offset if offsets is None else int(offsets.min())
        if offsets is None or here.last_offset != last.last_offset:
            return last.last_offset < first
        return offsets.size < here.last_offset - first + 1
    if here.base_offset > last.last_offset:  # a leader's epoch is higher than those before it
        return -1 in epochs or here.leader_epoch >= last.leader_epoch
    lacks_records = found.header["recordsCount"][0] < here.last_offset - here.base_offset + 1
    # A cleaner notes in batches of tombstones and markers when it may remove them.
    has_horizon = found.header["attributes"][0] & DELETE_HORIZON_MASK
    return here[:2] == last[:2] and bool(lacks_records or has_horizon)


def _another(segments: Sequence[Segment], why: str) -> OffsetOutOfRangeError:
    return OffsetOutOfRangeError(
        f"the topic was made again, or the log truncated: {why}",
        path=segments[0].log.folder,
    )


def _at(segments: Sequence[Segment], offset: int, position: int) -> ReadBatch | None:
    """The batch at a position of the segment that has an offset."""
    segment = segment_with(segments, offset)
    if segment is None or not 0 <= position < segment.log.size:
        return None
    found = OpenSegment(segment).batches_at(position)[:1]
    return ReadBatch.of(found) if len(found) else None


def _before(segments: Sequence[Segment], offset: int) -> ReadBatch | None:
    """The last batch before an offset in the segment that has it."""
    segment = segment_with(segments, offset)
    if segment is None or offset <= segment.base_offset:
        return None
    source, start = OpenSegment(segment).tail(offset - 1)
    found = None
    for batches in Walk(source, mode=DROPMALFORMED, start=start).framed():
        count = int((batches.last_offset < offset).sum())
        if count:
            found = ReadBatch.of(batches, count - 1)
        if count < len(batches):
            break
        source.forget(int(batches.end[-1]))
    return found


def _from(segments: Sequence[Segment], offset: int) -> Iterator[tuple[Source, Batches]]:
    """The batches of a log from the one that has an offset on, each alone."""
    for segment in _segments_from(segments, offset):
        source, start = OpenSegment(segment).tail(offset)
        for batches in Walk(source, mode=DROPMALFORMED, start=start).framed():
            late = batches[batches.last_offset >= offset]
            yield from ((source, late[row : row + 1]) for row in range(len(late)))
            source.forget(int(batches.end[-1]))


def _segments_from(segments: Sequence[Segment], offset: int) -> Iterator[Segment]:
    """The segments from the one that has an offset on; of those that overlap, what is read."""
    read = [segment for segment in segments if segment.cut and segment.log.size]
    for segment, following in zip_longest(read, read[1:]):
        if following is None or offset < max(following.base_offset, following.cut.first):
            yield segment
