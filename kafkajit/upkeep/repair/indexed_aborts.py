"""The ABORT markers that a log's .txnindex files know."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kafkajit.errors import KafkaJitError
from kafkajit.format.log_path import TXN_INDEX_SUFFIX
from kafkajit.format.ranges import Range
from kafkajit.index.transaction_index import transaction_entries
from kafkajit.storage.source import as_bytes, read_small
from kafkajit.upkeep.repair.damaged_batches import DamagedBatch
from kafkajit.upkeep.repair.losses import Kept
from kafkajit.upkeep.repair.lost_ends import Hole


class Abort(NamedTuple):
    """An aborted transaction."""

    producer_id: int
    first: int
    last: int  # the offset of its marker


def indexed_aborts(files: Mapping[str, Path]) -> dict[int, list[Abort]]:
    """The aborted transactions in the .txnindex files that can be read, by base offset.

    A broker creates such a file for its first entry: an empty one tells nothing.
    """
    found: dict[int, list[Abort]] = {}
    for name, path in files.items():
        if not name[:20].isdecimal() or name[20:] != TXN_INDEX_SUFFIX:
            continue
        try:
            entries = transaction_entries(as_bytes(read_small(path)))
        except (OSError, KafkaJitError):
            continue
        if entries.size:
            columns = (entries[one].tolist() for one in ("producerId", "firstOffset", "lastOffset"))
            found[int(name[:20])] = list(map(Abort._make, zip(*columns, strict=True)))
    return found


def holes_of_aborts(
    aborts: Iterable[Abort], markers: Collection[tuple[int, int]], holes: Sequence[Hole], kept: Kept
) -> Iterator[Hole]:
    """Yield the offsets of ABORT markers that only an index knows, if no other hole has them.

    Args:
        aborts: those of the index.
        markers: the offset and the producer of each ABORT marker that stays.
        holes: the other ones, in order.
        kept: the offsets that stay.
    """
    firsts = [hole.first for hole in holes]
    for producer_id, first, last in aborts:
        at = bisect_right(firsts, last)
        before = holes[max(at - 1, 0) : at]
        is_known = (last, producer_id) in markers or any(hole.has(last) for hole in before)
        if not is_known and 0 <= first < last:
            marker = DamagedBatch(
                -1, 0, last, last, 0, True, True, producer_id, -1, b"", wrong_bits=0
            )
            yield Hole(last, last, [marker], is_taken=kept.missing(Range(last, last)) is None)
