"""Transactions without a marker: whether they hang, by their coordinators or by their age."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from kafkajit.errors import KafkaJitError
from kafkajit.format.amounts import time_text
from kafkajit.log.live_segments import listed_again
from kafkajit.places.tiered_files import TieredFile
from kafkajit.report.coordinators import CoordinatedTransaction, Coordinators
from kafkajit.report.headers import TopicFigures
from kafkajit.report.partition import OpenTransaction, PartitionFigures
from kafkajit.report.trouble import NOTE, WARNING, Trouble

# A broker's transaction.max.timeout.ms: an older transaction may hang.
_LONG = 15 * 60 * 1000
_WAIT = "consumers with read_committed wait before it"
_ASK = "kafka-transactions.sh find-hanging tells whether it hangs"


def of_topics(
    topics: Iterable[TopicFigures], coordinators: Coordinators | None
) -> Iterator[Trouble]:
    """The open transactions of the topics; without coordinators, nothing tells which hang."""
    for topic in topics:
        copies: dict[int | None, list[PartitionFigures]] = {}
        for partition in topic.partitions:
            copies.setdefault(partition.partition, []).append(partition)
        for partition in topic.partitions:
            look = _Look(topic.topic, partition, copies[partition.partition], coordinators)
            yield from filter(None, map(look.at, partition.open_transactions.values()))


class _Look:
    """Judges the open transactions of a partition's copy."""

    def __init__(
        self,
        topic: str | None,
        partition: PartitionFigures,
        copies: Sequence[PartitionFigures],
        coordinators: Coordinators | None,
    ) -> None:
        # A folder that is not named after a partition is unknown to coordinators.
        self._coordinators = None if partition.partition is None else coordinators
        self._topic = topic
        self._partition = partition
        self._copies = copies

    def at(self, transaction: OpenTransaction) -> Trouble | None:
        """The trouble; None if the transaction has ended since the log was read."""
        topic, partition = self._topic, self._partition
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
        if (partition.last_timestamp or 0) - transaction.timestamp > _LONG:
            # A producer that copies old records has old timestamps, and its transaction is alive.
            advice = f"{_WAIT}; {_ASK}"
            problem = ": the log has much newer records, so it may hang"
            return self._trouble(WARNING, transaction, problem, advice)
        advice = (
            f"{_WAIT} until its producer ends it, or the coordinator after transaction.timeout.ms; "
            f"{_ASK}"
        )
        return self._trouble(NOTE, transaction, "", advice)

    @cached_property
    def _ended_since(self) -> set[int] | None:
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
    """Whether another copy of the partition has the transaction, and its end."""
    open_ = copy.open_transactions.get(transaction.producer_id)
    is_there = copy.first_offset <= transaction.first_offset < copy.behind
    return is_there and (open_ is None or open_.first_offset > transaction.first_offset)


def _ends_elsewhere(partition: PartitionFigures) -> bool:
    """Whether the newest segments that are there are tiered: a broker has newer ones."""
    return bool(partition.read) and isinstance(partition.read[-1].log, TieredFile)


def _said(transactions: Iterable[CoordinatedTransaction]) -> str:
    return ", ".join(
        f"its coordinator has {one.transactional_id!r} as {one.state} since "
        f"{time_text(one.updated)}"
        for one in transactions
    )
