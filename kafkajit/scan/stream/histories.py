"""The comparison of a log with the one that a stream has read.

A log is the one that was read if its topic has the same id, if its leader epochs are those that
were read, and if it still has the last batch that was read. Compaction and retention may have
removed that batch, which changes none of the offsets behind it.
"""

from __future__ import annotations

from typing import NamedTuple

from kafkajit.log.footing import (
    Footing,
    ReadBatch,
    agreed_up_to,
    epochs_before,
    made_again_text,
    truncated_text,
)
from kafkajit.log.resumption import may_be, offsets_in_set
from kafkajit.places.named import Place
from kafkajit.records.batches import Batches
from kafkajit.scan.stream.partition import Partition
from kafkajit.storage.source import Int64s, Source
from kafkajit.storage.stored_file import StoredFile


class Parting(NamedTuple):
    """The place at which a log parts from the one that was read, and how that is known."""

    # Up to there both have the same records. None: the log is another one, or may be.
    offset: int | None
    why: str
    is_loss: bool = True  # whether records were read that the log lacks, or others are missed
    # Nothing contradicts what was read, but the log ends before it.
    is_short: bool = False


class _State(NamedTuple):
    """A position in a log that had everything that was read up to there."""

    generation: object
    offset: int
    footing: Footing


class Histories:
    """Compares logs with what was read of them: once, unless a log may have changed since.

    A micro-batch asks for two positions of a partition, its start and its end.
    """

    def __init__(self) -> None:
        self._seen: dict[Place, tuple[_State | None, _State]] = {}  # the newest two

    def parting(
        self, place: Place, partition: Partition, offset: int, footing: Footing | None
    ) -> Parting | None:
        """Find where a log parts from the one that was read up to an offset, if it does."""
        known = footing or Footing()
        state = _State(partition.generation, offset, known)
        if state in self._seen.get(place, ()):
            return None
        found = parting(partition, offset, known)
        if found is None:
            self._see(place, state)
        return found

    def footing(
        self, place: Place, partition: Partition, offset: int, before: Footing | None
    ) -> Footing:
        """The ground of a position that has just been reached, from one in the same log.

        A copy may lack for a moment the files that tell its id and its epochs.
        """
        found = partition.footing(offset)
        if before is not None:
            epochs = found.epochs or epochs_before(before.epochs, offset, found.last)
            found = found._replace(topic_id=found.topic_id or before.topic_id, epochs=epochs)
        self._see(place, _State(partition.generation, offset, found))
        return found

    def _see(self, place: Place, state: _State) -> None:
        _, newest = self._seen.get(place, (None, None))
        if state != newest:
            self._seen[place] = newest, state


def parting(partition: Partition, offset: int, footing: Footing) -> Parting | None:
    """Find where a log parts from the one that was read up to an offset; None if it does not."""
    id_, last = partition.listing.topic_id or None, footing.last
    why = made_again_text(footing.topic_id, id_)
    if why is not None:
        return Parting(None, why, is_loss=last is not None)
    if last is not None and partition.ends_with(last):
        return None
    parted = agreed_up_to(footing.epochs, offset, partition.epochs, partition.end_offset)
    # Without the id the topic may have been made again, and all of its log be new.
    agreed = parted if id_ is not None and id_ == footing.topic_id else None
    needed = offset if last is None else max(offset, last.last_offset + 1)
    if needed > partition.end_offset:
        return _from_wrong_batch(partition, last) or _short(partition, footing, agreed)
    # A damaged batch may reach over the offset, where another segment is read.
    at = None if last is None else min(last.last_offset, offset - 1)
    there = None if at is None else partition.batch_with(at)
    log, found = there or (None, None)
    here = None if found is None else ReadBatch.of(found)
    if last is not None and here is not None and here.is_same(last):
        return None
    wrong = _from_wrong_batch(partition, last)
    if wrong is not None:
        return wrong
    if agreed is not None and agreed < offset:
        return Parting(agreed, truncated_text(agreed, footing.epochs, partition.epochs))
    if last is None or log is None or found is None or partition.start_offset > last.last_offset:
        return None
    if may_be(found, last, _offsets_in(log, found)):
        if parted is None or parted >= offset:
            return None
        return Parting(None, truncated_text(parted, footing.epochs, partition.epochs))
    return Parting(
        None,
        f"its batch at offset {last.last_offset} is not the one that was read: the topic was made "
        "again, or the log truncated and written again",
    )


def _offsets_in(log: StoredFile, found: Batches) -> Int64s | None:
    """The offsets in a set of messages, as far as its header does not have them."""
    if not found.is_message_set[0]:
        return None
    begin, end = int(found.position[0]), int(found.end[0])
    source = Source(log.read(begin, end - begin), path=log.path)
    return offsets_in_set(source, Batches(found.position - begin, found.header))


def _from_wrong_batch(partition: Partition, last: ReadBatch | None) -> Parting | None:
    """Go back to where the last batch that was read should be, if its base offset is wrong."""
    right = None if last is None else partition.right_end_before(last)
    if last is None or right is None or right > last.base_offset:
        return None
    return Parting(
        right,
        f"its last batch, at offset {last.base_offset}, does not fit between that at {right - 1} "
        "and those that have come behind it: its base offset is damaged",
    )


def _short(partition: Partition, footing: Footing, agreed: int | None) -> Parting:
    """Judge a log that ends before the offset up to which it was read."""
    end = partition.end_offset
    why = f"its log now ends at {end}: it was truncated, or "
    if agreed is None:
        return Parting(None, f"{why}made again")
    if agreed < end:
        return Parting(agreed, truncated_text(agreed, footing.epochs, partition.epochs))
    return Parting(
        end, f"{why}is a copy without its end", is_loss=footing.last is not None, is_short=True
    )
