"""Evidence about the offsets of a log, from the files beside it."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping

from kafkajit.errors import CorruptCheckpointError, CorruptSnapshotError
from kafkajit.format.log_path import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from kafkajit.log.missing_offsets import COMPACTED_TOPICS, Evidence
from kafkajit.state.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
)
from kafkajit.state.leader_epochs import LEADER_EPOCHS, epochs_in
from kafkajit.state.producer_snapshot import SNAPSHOT_NAME, snapshot_entries
from kafkajit.storage.source import as_bytes

REMOTE_INDEXES = "remote-log-index-cache"  # in log.dirs of a broker with tiered storage
_DIGITS = 20
# Entries of indexes, whose modules load kernels.
_ENTRY, _TIME_ENTRY, _TXN_ENTRY = map(struct.Struct, (">ii", ">qi", ">hqqqq"))
_INDEX_NAME = re.compile(r"\d{20}(\.(?:index|timeindex|txnindex))", re.ASCII)


def take_evidence(
    sizes: Mapping[str, int],
    read: Callable[[str], bytes],
    checkpoints: Mapping[str, int | None],
    *,
    topic: str | None = None,
    may_be_tiered: bool = False,
) -> Evidence:
    """Take the evidence about one log.

    Args:
        sizes: the sizes of the files in its folder, by name.
        read: returns the content of one of them.
        checkpoints: the log's offsets in the checkpoints of log.dirs, by the checkpoints' names.
        topic: the topic's name.
        may_be_tiered: whether the broker has tiered storage.
    """
    names = sorted(sizes)
    evidence = Evidence(
        _why_cleaned(topic, checkpoints),
        "the broker has tiered storage, and they may be there" if may_be_tiered else None,
        any(name.endswith(LOG_SUFFIX + DELETED_SUFFIX) for name in names),
        max(0, checkpoints.get(START_OFFSETS) or 0),
    )
    for name in (HIGH_WATERMARKS, RECOVERY_POINTS, CLEANER_OFFSETS):
        offset = checkpoints.get(name)
        if offset is not None:
            evidence.ends.append((offset, name))
    for name in names:
        if name == LEADER_EPOCHS:
            starts = [*_epoch_starts(read(name))]
            evidence.starts += [(offset, name) for offset in starts[:1]]
            evidence.ends += [(offset, name) for offset in starts[-1:]]
        elif SNAPSHOT_NAME.fullmatch(name):
            last = _last_produced(read(name))
            offset = int(name[:_DIGITS])
            if last is not None and offset > 0:  # the broker had records before it
                # The one at the log's start stays when the segments before it are deleted.
                evidence.starts.append((offset, name))
                # A log that was cut inside of a batch ends before its snapshot's offset.
                evidence.ends.append((last + 1, name))
        elif _INDEX_NAME.fullmatch(name) and not sizes.get(name[:_DIGITS] + LOG_SUFFIX):
            base_offset = int(name[:_DIGITS])
            last = _LAST[name[_DIGITS:]](read(name), base_offset)
            if last is not None:
                evidence.indexed.append((base_offset, last, name))
    # A snapshot of a broker's stop inside of a segment stays when that one is deleted.
    begin = min((offset for offset, name in evidence.starts if name == LEADER_EPOCHS), default=0)
    evidence.starts = [one for one in evidence.starts if one[0] >= begin]
    return evidence


def add_configs(evidence: Evidence, configs: Mapping[str, str]) -> None:
    """Add what a topic's own configs tell."""
    policy = configs.get("cleanup.policy", "")
    if "compact" in policy and evidence.why_cleaned is None:
        evidence.why_cleaned = f"its cleanup.policy is {policy}"
    enabled = configs.get("remote.storage.enable")
    if enabled == "true":
        evidence.tiered = "the topic is tiered, and they may be in tiered storage"
    elif enabled == "false":
        evidence.tiered = None


def _why_cleaned(topic: str | None, checkpoints: Mapping[str, int | None]) -> str | None:
    if checkpoints.get(CLEANER_OFFSETS) is not None:
        return f"{CLEANER_OFFSETS} has an entry for the log"
    if topic in COMPACTED_TOPICS:
        return "this topic is compacted"
    return None


def _epoch_starts(content: bytes) -> Iterator[int]:
    try:
        starts = [start for _, start in epochs_in(content)]
    except CorruptCheckpointError:
        return
    yield from starts


def _last_indexed(content: bytes, base_offset: int) -> int | None:
    """The last offset in an index; None if it has no entries."""
    if not content.strip(b"\0"):  # the rest is preallocated
        return None
    offsets = [offset for offset, _ in _ENTRY.iter_unpack(content[: len(content) // 8 * 8])]
    return base_offset + max(offsets, default=0)


def _last_timed(content: bytes, base_offset: int) -> int | None:
    """The last offset in a time index; None if it has none or is damaged.

    A broker adds an entry only if its time is later, and its offset not before the last one's.
    """
    if len(content) % _TIME_ENTRY.size:
        return None
    entries = list(_TIME_ENTRY.iter_unpack(content))
    while entries and not any(entries[-1]):  # preallocated
        entries.pop()
    before = -1, 0
    for timestamp, offset in entries:
        if timestamp <= before[0] or offset < before[1]:
            return None
        before = timestamp, offset
    return base_offset + before[1] if entries else None


def _last_aborted(content: bytes, base_offset: int) -> int | None:
    """The offset of the last marker in a transaction index; None if it has none or is damaged."""
    last = base_offset - 1
    for version, _, first, marker, _ in _TXN_ENTRY.iter_unpack(
        content[: len(content) // _TXN_ENTRY.size * _TXN_ENTRY.size]
    ):
        if version != 0 or not first < marker or marker <= last:
            return None
        last = marker
    return last if last >= base_offset else None


_LAST = {
    INDEX_SUFFIX: _last_indexed,
    TIME_INDEX_SUFFIX: _last_timed,
    TXN_INDEX_SUFFIX: _last_aborted,
}


def _last_produced(content: bytes) -> int | None:
    """The last offset of all producers in a snapshot, or -1; None if it is damaged."""
    try:
        entries = snapshot_entries(as_bytes(content))
    except CorruptSnapshotError:
        return None
    return int(entries["lastOffset"].max()) if entries.size else -1
