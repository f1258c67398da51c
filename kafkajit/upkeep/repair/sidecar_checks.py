"""Check whether a file beside a log fits the log, or has to be rebuilt.

Each check returns None, or what is wrong with the file. There is more than one right file: the
entries of an index depend on when the broker opened the log, on the broker's version and on the
topic's configuration. A broker forgets producers with time, and compaction removes what it knew of
them. So a file is right if all of it is true of the log, and if nothing needed is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kafkajit.errors import KafkaJitError
from kafkajit.format.limits import MAX_INT64
from kafkajit.format.ranges import Range
from kafkajit.index.offset_index import ENTRY as OFFSET_ENTRY
from kafkajit.index.time_index import ENTRY as TIME_ENTRY
from kafkajit.index.time_index import NO_TIMESTAMP
from kafkajit.index.transaction_index import ENTRY as ABORTED
from kafkajit.index.transaction_index import transaction_entries
from kafkajit.index.verify import verify_offset_index, verify_time_index
from kafkajit.log.producers import PRODUCER_EXPIRATION_MS
from kafkajit.records.batches import Batches
from kafkajit.storage.source import Bytes, Source
from kafkajit.walk.damage import DROPMALFORMED
from kafkajit.walk.selection import Selection
from kafkajit.walk.walk import Walk

# The most bytes of a log between two entries. Older brokers write one entry per fetch.
_SPARSE = 4 << 20
# More than this many times the usual distance behind the last entry: entries have been lost there.
_MANY_TIMES = 4
ENDS_IN_ZEROS = "it ends in zeros"
_BEGINS_ELSEWHERE = "the transaction begins elsewhere"

Entries = npt.NDArray[np.void]


def problem_with_offset_index(
    content: Bytes, expected: bytes, log: str, log_size: int, base_offset: int, interval: int
) -> str | None:
    """Check an .index.

    Args:
        content: the file.
        expected: the content that a repair would write.
        log: the path of the segment's log.
        log_size: the size of the log after the repair.
        base_offset: the segment's base offset.
        interval: the bytes between entries that a repair would write.
    """
    if content.tobytes() == expected:
        return None
    if content.size == 0:
        return "it is empty"
    found = verify_offset_index(log, content, base_offset)
    if found.num_rows:
        return _first_problem(found)
    if not content[-OFFSET_ENTRY.itemsize :].any():
        return ENDS_IN_ZEROS
    positions = content.view(OFFSET_ENTRY)["position"].astype(np.int64)
    expected_count = len(expected) // OFFSET_ENTRY.itemsize
    stretches = np.diff(positions, prepend=0, append=log_size)
    usual = max(int(stretches[:-1].max()), interval)
    if positions.size < expected_count:
        if usual > _SPARSE:
            return f"there is no entry for {usual} bytes of the log"
        if stretches[-1] > _MANY_TIMES * usual:
            return f"there is no entry for the last {stretches[-1]} bytes of the log"
    return None


def problem_with_time_index(
    content: Bytes, expected: bytes, log: str, base_offset: int
) -> str | None:
    """Check a .timeindex; `expected` is the content that a repair would write."""
    if content.tobytes() == expected:
        return None
    if content.size == 0:
        return "it is empty"
    found = verify_time_index(log, content, base_offset)
    if found.num_rows:
        return _first_problem(found)
    if content.size >= TIME_ENTRY.itemsize and not content[-TIME_ENTRY.itemsize :].any():
        return ENDS_IN_ZEROS
    last, latest = (
        int(entries[-1]["timestamp"]) if entries.size else NO_TIMESTAMP
        for entries in (content.view(TIME_ENTRY), np.frombuffer(expected, TIME_ENTRY))
    )
    if last < latest:
        return f"its last timestamp is {last}, that of the log {latest}"
    return None


def problem_with_transaction_index(
    content: Bytes,
    expected: Entries,
    aborts: Entries,
    logs: Sequence[str | Path],
    *,
    known_since: int,
    has_holes: bool,
    new_markers: Sequence[tuple[int, int]] = (),
) -> str | None:
    """Check a .txnindex.

    Args:
        content: the file.
        expected: the entries that a repair would write.
        aborts: the producer ID and the offset of each ABORT marker in the segment. If compaction
            has removed the aborted data, `expected` has no entry for a marker.
        logs: the logs of the partition up to the segment's own.
        known_since: `expected` knows transactions from this offset on; they may begin before it.
        has_holes: whether offsets are missing in the log, as after compaction.
        new_markers: the offsets and producers of markers that are not in the logs yet.
    """
    if content.tobytes() == expected.tobytes():
        return None
    try:
        entries = transaction_entries(content)
    except KafkaJitError as error:
        return error.message
    if (np.diff(entries["lastOffset"]) <= 0).any():
        return "its entries are out of order"
    markers = dict(zip(aborts["offset"].tolist(), aborts["producerId"].tolist(), strict=True))
    by_last_offset = {int(entry["lastOffset"]): entry for entry in expected}
    # The least first offset of the entries behind each.
    following = np.append(np.minimum.accumulate(entries["firstOffset"][::-1])[::-1][1:], MAX_INT64)
    earlier: list[_Stretch] = []
    for row, entry in enumerate(entries):
        producer, first, last, last_stable = (
            int(entry[name])
            for name in ABORTED.names[1:]  # type: ignore[index]
        )
        if markers.get(last) != producer:
            return f"entry {row}: the log has no such marker"
        right = by_last_offset.pop(last, None)
        begins = last if right is None else int(right["firstOffset"])
        may_begin_earlier = right is None or has_holes or first < known_since
        if first > begins or (first < begins and not may_begin_earlier):
            return f"entry {row}: {_BEGINS_ELSEWHERE}"
        if max(first, known_since) < begins:
            stretch = _Stretch(row, producer, max(first, known_since), begins)
            if any(stretch.start <= at < begins and who == producer for at, who in new_markers):
                return f"entry {row}: {_BEGINS_ELSEWHERE}"
            earlier.append(stretch)
        if right is None:
            continue
        stable = int(right["lastStableOffset"])
        if last_stable != stable and last_stable >= known_since:
            # A broker also knows transactions that begin later in the same append.
            is_later = last < last_stable <= following[row] and _transactional_records(
                logs[-1:], None, last_stable, last_stable
            )
            was_open = has_holes and 0 <= last_stable <= last
            if not is_later and not was_open:
                return f"entry {row}: its last stable offset is wrong"
    # Its own batches are gone from there, and another transaction of the producer ends before it.
    wrong = _first_with_batches(logs, earlier) if earlier else None
    if wrong is not None:
        return f"entry {wrong}: {_BEGINS_ELSEWHERE}"
    for last, lacking in by_last_offset.items():
        # Compaction may have left only empty batches of the aborted data.
        producer, first = int(lacking["producerId"]), int(lacking["firstOffset"])
        if _transactional_records(logs, producer, first, last):
            return f"it lacks the transaction that was aborted at offset {last}"
    return None


class _Stretch(NamedTuple):
    """Offsets where a producer must have no batches, for an entry of a .txnindex."""

    row: int  # of the entry
    producer_id: int
    start: int
    end: int


def _first_with_batches(logs: Sequence[str | Path], stretches: Sequence[_Stretch]) -> int | None:
    """The first row whose stretch has a marker or a batch of a transaction of its producer."""
    wanted = np.array(stretches, dtype=np.int64)
    rows, ids, starts, ends = wanted[np.argsort(wanted[:, 1], kind="stable")].T
    found: list[int] = []
    for log in logs:
        selection = Selection(Range(int(starts.min()), int(ends.max()) - 1))
        walk = Walk(Source(str(log)), mode=DROPMALFORMED, selection=selection, is_last=True)
        for batches in _sound(walk):
            chosen = batches[batches.is_transactional & np.isin(batches.header["producerId"], ids)]
            for producer, offset in zip(
                chosen.header["producerId"].tolist(),
                chosen.header["baseOffset"].tolist(),
                strict=True,
            ):
                own = slice(*np.searchsorted(ids, [producer, producer + 1]).tolist())
                is_in = (starts[own] <= offset) & (offset < ends[own])
                found += rows[own][is_in].tolist()
    return min(found, default=None)


def _transactional_records(
    logs: Sequence[str | Path], producer_id: int | None, first: int, last: int
) -> bool:
    """Whether batches with base offsets in this range have records of a producer's transaction."""
    for log in logs:
        # Damage is skipped: batches behind it may stay, too.
        selection = Selection(Range(first, last))
        walk = Walk(Source(str(log)), mode=DROPMALFORMED, selection=selection, is_last=True)
        for batches in _sound(walk):
            base_offset = batches.header["baseOffset"]
            found = batches.is_transactional & ~batches.is_control & (base_offset >= first)
            found &= (base_offset <= last) & (batches.header["recordsCount"] > 0)
            if producer_id is not None:
                found &= batches.header["producerId"] == producer_id
            if found.any():
                return True
    return False


def _sound(walk: Walk) -> Iterator[Batches]:
    with suppress(KafkaJitError):  # the pass that repairs the log reports it
        yield from walk.framed()


def problem_with_snapshot(
    entries: Entries,
    expected: Entries,
    offset: int,
    *,
    known_since: int,
    has_holes: bool,
    taken_ms: int,
) -> str | None:
    """Check the producers in a .snapshot.

    Args:
        entries: the producers in the file.
        expected: the producers that a repair would write.
        offset: the offset in the file's name.
        known_since: `expected` knows the log from this offset on; a broker may know more.
        has_holes: whether offsets are missing before, as after compaction.
        taken_ms: when the file was written.
    """
    stored, known = (
        part[np.argsort(part["producerId"], kind="stable")] for part in (entries, expected)
    )
    problem = contradiction_in_snapshot(stored, offset)
    if problem is not None:
        return problem
    _, ours, theirs = np.intersect1d(
        stored["producerId"], known["producerId"], assume_unique=True, return_indices=True
    )
    problem = _first_difference(stored[ours], known[theirs], known_since, has_holes=has_holes)
    if problem is not None:
        return problem
    if not has_holes:
        extra = np.delete(stored, ours)
        wrong = extra["producerId"][extra["lastOffset"] >= known_since]
        if wrong.size:
            return f"the log has no such batch of producer {wrong[0]}"
    missing = np.delete(known, theirs)
    is_forgotten = (missing["currentTxnFirstOffset"] < 0) & (
        taken_ms - missing["timestamp"] >= PRODUCER_EXPIRATION_MS
    )
    if not is_forgotten.all():
        return f"it lacks producer {missing['producerId'][~is_forgotten][0]}"
    return None


def contradiction_in_snapshot(entries: Entries, offset: int) -> str | None:
    """Find what is wrong with a .snapshot whatever the log has."""
    for name in ("lastOffset", "currentTxnFirstOffset"):
        if (entries[name] >= offset).any():
            return "it has producers from behind its offset"
    if np.unique(entries["producerId"]).size < entries.size:
        return "it has a producer twice"
    return None


def _first_difference(
    stored: Entries, known: Entries, known_since: int, *, has_holes: bool
) -> str | None:
    """Describe the first of these producers that differs from the log."""
    same = stored["lastOffset"] == known["lastOffset"]
    # The stored batch is from before the known part of the log.
    is_earlier = (known["lastOffset"] < 0) & (stored["lastOffset"] < known_since)
    is_right = np.ones(stored.size, dtype=np.bool_)
    for name in ("producerEpoch", "lastSequence", "offsetDelta"):
        is_right &= ~same | (stored[name] == known[name])
    began, is_open = stored["currentTxnFirstOffset"], known["currentTxnFirstOffset"] >= 0
    began_earlier = (began >= 0) & (began < known_since)
    coordinator = stored["coordinatorEpoch"].astype(np.int64) - known["coordinatorEpoch"]
    # A broker that had forgotten the producer learns the epoch again from its next marker.
    coordinator[stored["coordinatorEpoch"] < 0] = 0
    if has_holes:  # compaction may have removed later batches and markers
        is_later = (stored["lastOffset"] > known["lastOffset"]) | (stored["lastOffset"] < 0)
        is_right &= same | is_earlier | is_later
        is_right &= ~same | (began < 0) | is_open | began_earlier
        is_right &= coordinator >= 0
    else:
        is_right &= same | is_earlier
        is_right &= stored["timestamp"] == known["timestamp"]
        is_right &= (coordinator == 0) | (known["coordinatorEpoch"] < 0)
        is_right &= (began == known["currentTxnFirstOffset"]) | (began_earlier & is_open)
    if is_right.all():
        return None
    producer = int(stored["producerId"][np.argmin(is_right)])
    return f"its entry of producer {producer} differs from the log"


def _first_problem(found: Any) -> str:
    entry, problem = found["entry"][0].as_py(), found["problem"][0].as_py()
    return f"entry {entry}: {problem}"
