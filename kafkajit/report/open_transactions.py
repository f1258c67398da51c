"""Transactions without a marker: whether they hang, by their coordinators or by their age."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from kafkajit.errors import KafkaJitError
from kafkajit.format.amounts import time_text
from kafkajit.format.limits import MAX_INT64
from kafkajit.log.live_segments import listed_again
from kafkajit.places.tiered_files import TieredFile
from kafkajit.report.coordinators import CoordinatedTransaction, Coordinators
from kafkajit.report.headers import TopicFigures
from kafkajit.report.partition import OpenTransaction, PartitionFigures
from kafkajit.report.trouble import DAMAGE, NOTE, WARNING, Trouble, of_gap
from kafkajit.walk.damage import PERMISSIVE, Gap
from kafkajit.walk.walk import Walk

# A broker's transaction.max.timeout.ms: an older transaction may hang.
_LONG = 15 * 60 * 1000
# The kinds of trouble behind which a marker may have been.
_LOSSES = ("corruption", "missing", "unreadable")
_WAIT = "consumers with read_committed wait before it"
_ASK = "kafka-transactions.sh find-hanging tells whether it hangs"


def of_topics(
    topics: Iterable[TopicFigures],
    coordinators: Coordinators | None,
    known: Iterable[Trouble] = (),
    now: int = MAX_INT64,
) -> Iterator[Trouble]:
    """The open transactions of the topics.

    Args:
        topics: the figures of all of their partitions.
        coordinators: without them, nothing tells which hang.
        known: the trouble that is known: markers may have been where a log is damaged.
        now: the time, in milliseconds.
    """
    known = [*known]
    losses: dict[str, list[Trouble]] = {}  # by the folder of a partition
    for one in known:
        if one.severity == DAMAGE and one.kind in _LOSSES:
            is_folder = one.kind == "missing"
            folder = one.path if is_folder else one.path.rpartition("/")[0]
            losses.setdefault(folder, []).append(one)
    damaged = {(one.path, one.position) for one in known}
    for topic in topics:
        copies: dict[int | None, list[PartitionFigures]] = {}
        for partition in topic.partitions:
            copies.setdefault(partition.partition, []).append(partition)
        for partition in topic.partitions:
            others, lost = copies[partition.partition], losses.get(partition.folder, [])
            look = _Look(topic.topic, partition, others, coordinators, lost, now, damaged)
            yield from filter(None, map(look.at, partition.open_transactions.values()))


class _Look:
    """Judges the open transactions of a partition's copy."""

    def __init__(
        self,
        topic: str | None,
        partition: PartitionFigures,
        copies: Sequence[PartitionFigures],
        coordinators: Coordinators | None,
        losses: Sequence[Trouble],
        now: int,
        damaged: Collection[tuple[str, int | None]],
    ) -> None:
        # A folder that is not named after a partition is unknown to coordinators.
        self._coordinators = None if partition.partition is None else coordinators
        self._topic = topic
        self._partition = partition
        self._copies = copies
        self._losses = losses
        self._now = now
        self._damaged = damaged

    def at(self, transaction: OpenTransaction) -> Trouble | None:
        """The trouble; None if the transaction has ended since the log was read."""
        topic, partition = self._topic, self._partition
        damage = _damage_of(transaction)
        if damage is not None:
            return of_gap(damage, topic, partition.partition) if self._is_new(damage) else None
        if _ends_elsewhere(partition):
            advice = "the broker's folder has the newest segments, and may have its marker"
            return self._trouble(NOTE, transaction, "", advice)
        if any(_has_ended_in(one, transaction) for one in self._copies):
            advice = "this copy is behind"
            return self._trouble(NOTE, transaction, ": another copy has its marker", advice)
        known = self._coordinators
        own = [] if known is None else known.of(transaction.producer_id)
        alive = [one for one in own if one.is_open_in(topic, partition.partition)]
        if alive:
            advice = f"{_WAIT} until its producer or its coordinator ends it"
            return self._trouble(NOTE, transaction, f": {_said(alive)}", advice)
        if any(_may_hide_marker(loss, transaction) for loss in self._losses):
            problem = ": its marker may have been among the offsets that are damaged or missing"
            return self._trouble(WARNING, transaction, problem, f"{_WAIT}; {_ASK}")
        # The coordinator was asked after the log was read.
        ended = self._ended_since if own or (known is not None and known.is_complete) else None
        if ended is not None:
            if transaction.producer_id in ended:
                return None
            why = _said(own) if own else "no coordinator knows its producer"
            advice = (
                f"{_WAIT}; if kafka-transactions.sh find-hanging lists it too, "
                f"kafka-transactions.sh abort --topic {topic} --partition {partition.partition} "
                f"--start-offset {transaction.first_offset} ends it"
            )
            problem = f", and hangs unless the files were copied at different times: {why}"
            return self._trouble(WARNING, transaction, problem, advice)
        latest = min(partition.last_timestamp or 0, self._now)
        if transaction.timestamp >= 0 and latest - transaction.timestamp > _LONG:
            # A producer that copies old records has old timestamps, and its transaction is alive.
            advice = f"{_WAIT}; {_ASK}"
            problem = ": the log has much newer records, so it may hang"
            return self._trouble(WARNING, transaction, problem, advice)
        advice = (
            f"{_WAIT} until its producer ends it, or the coordinator after transaction.timeout.ms; "
            f"{_ASK}"
        )
        return self._trouble(NOTE, transaction, "", advice)

    def _is_new(self, damage: Gap) -> bool:
        return (damage.path or "", damage.position) not in self._damaged

    @cached_property
    def _ended_since(self) -> dict[int, int] | None:
        """The producers with a marker behind what was read; None if that cannot be read."""
        try:
            later = listed_again(self._partition.read[-1], self._partition.behind)
            figures = TopicFigures(None, 0)
            gaps = [*figures.read(later, continues=True)] if later else []
        except (OSError, EOFError, KafkaJitError):
            return None
        return None if gaps or not later else figures.partitions[0].ended

    def _trouble(
        self, severity: str, transaction: OpenTransaction, known: str, advice: str
    ) -> Trouble:
        problem = (
            f"the transaction of producer {transaction.producer_id} is open since offset "
            f"{transaction.first_offset}{known}"
        )
        where = (self._topic, self._partition.partition, self._partition.folder)
        return Trouble(severity, "openTransaction", *where, problem, advice)


def _has_ended_in(copy: PartitionFigures, transaction: OpenTransaction) -> bool:
    """Whether another copy of the partition has the end of the transaction."""
    return copy.ended.get(transaction.producer_id, -1) > transaction.first_offset


def _may_hide_marker(loss: Trouble, transaction: OpenTransaction) -> bool:
    """Whether what is lost in a partition's folder is behind a transaction's first batch."""
    if loss.kind == "missing":
        return (loss.last_missing_offset or 0) >= transaction.first_offset
    name, own = loss.path.rpartition("/")[2], transaction.log.name
    is_behind = loss.position is None or loss.position >= transaction.start
    return name > own or (name == own and is_behind)


def _damage_of(transaction: OpenTransaction) -> Gap | None:
    """The damage of a transaction's first batch: it may not be of this producer, or of none."""
    start, end = transaction.start, transaction.end
    try:
        walk = Walk(transaction.log.open(start, end), mode=PERMISSIVE, start=start, end=end)
        return next((part for part in walk.checked() if isinstance(part, Gap)), None)
    except (OSError, EOFError, KafkaJitError):
        return None  # a broker has replaced it meanwhile


def _ends_elsewhere(partition: PartitionFigures) -> bool:
    """Whether the newest segments that are there are tiered: a broker has newer ones."""
    return bool(partition.read) and isinstance(partition.read[-1].log, TieredFile)


def _said(transactions: Iterable[CoordinatedTransaction]) -> str:
    return ", ".join(
        f"its coordinator has {one.transactional_id!r} as {one.state} since "
        f"{time_text(one.updated)}"
        for one in transactions
    )
