"""Transactions without a marker: whether they hang, by their coordinators or by their age."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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


def of_topics(
    topics: Iterable[TopicFigures], coordinators: Coordinators | None
) -> Iterator[Trouble]:
    """The open transactions of the topics; without coordinators, nothing tells which hang."""
    for topic in topics:
        for partition in topic.partitions:
            for transaction in partition.open_transactions.values():
                found = _of_transaction(topic.topic, partition, transaction, coordinators)
                if found is not None:
                    yield found


def _of_transaction(
    topic: str | None,
    partition: PartitionFigures,
    transaction: OpenTransaction,
    coordinators: Coordinators | None,
) -> Trouble | None:
    """The trouble; None if the transaction has ended since the log was read."""
    if _ends_elsewhere(partition):
        advice = "the broker's folder has the newest segments, and may have its marker"
        return _trouble(NOTE, topic, partition, transaction, "", advice)
    own = [] if coordinators is None else coordinators.of(transaction.producer_id)
    alive = [one for one in own if one.is_open_in(topic, partition.partition)]
    if alive:
        known = f": {_said(alive)}"
        advice = f"{_WAIT} until its producer or its coordinator ends it"
        return _trouble(NOTE, topic, partition, transaction, known, advice)
    if own or (coordinators is not None and coordinators.is_complete):
        # The coordinator was asked after the log was read.
        if _has_ended(partition, transaction):
            return None
        why = _said(own) if own else "no coordinator knows its producer"
        advice = (
            f"{_WAIT}; if kafka-transactions.sh find-hanging lists it too, kafka-transactions.sh "
            f"abort --topic {topic} --partition {partition.partition} --start-offset "
            f"{transaction.first_offset} ends it"
        )
        known = f", and hangs unless __transaction_state is an older copy than this log: {why}"
        return _trouble(WARNING, topic, partition, transaction, known, advice)
    if (partition.last_timestamp or 0) - transaction.timestamp > _LONG:
        # A producer that copies old records has old timestamps, and its transaction is alive.
        advice = f"{_WAIT}; kafka-transactions.sh find-hanging tells whether it hangs"
        known = ": the log has much newer records, so it may hang"
        return _trouble(WARNING, topic, partition, transaction, known, advice)
    advice = f"{_WAIT} until its producer ends it, or the coordinator after transaction.timeout.ms"
    return _trouble(NOTE, topic, partition, transaction, "", advice)


def _ends_elsewhere(partition: PartitionFigures) -> bool:
    """Whether the newest segments that are there are tiered: a broker has newer ones."""
    return bool(partition.read) and isinstance(partition.read[-1].log, TieredFile)


def _trouble(
    severity: str,
    topic: str | None,
    partition: PartitionFigures,
    transaction: OpenTransaction,
    known: str,
    advice: str,
) -> Trouble:
    problem = (
        f"the transaction of producer {transaction.producer_id} is open since offset "
        f"{transaction.first_offset}{known}"
    )
    where = (topic, partition.partition, partition.folder)
    return Trouble(severity, "openTransaction", *where, problem, advice)


def _said(transactions: Iterable[CoordinatedTransaction]) -> str:
    return ", ".join(
        f"its coordinator has {one.transactional_id!r} as {one.state} since "
        f"{time_text(one.updated)}"
        for one in transactions
    )


def _has_ended(partition: PartitionFigures, transaction: OpenTransaction) -> bool:
    """Whether the log has a marker behind what was read, or is gone."""
    later = listed_again(partition.read[-1], partition.behind)
    if not later:
        return True
    figures = TopicFigures(None, 0)
    for _ in figures.read(later, continues=True):
        pass
    return transaction.producer_id in figures.partitions[0].ended
