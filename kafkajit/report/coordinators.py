"""The states of transactions by their coordinators, from __transaction_state.

A coordinator writes that a transaction is ongoing before its producer writes a record, and aborts
it after its timeout. So a transaction that is open in a partition hangs if its coordinator has
ended it, or does not know of it: nobody writes its marker any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kafkajit.report.newest import Newest
from kafkajit.topics import TRANSACTION_STATES

TRANSACTIONS_TOPIC = "__transaction_state"
# transaction.state.log.num.partitions by default. A folder with fewer may be a broker's share.
_PARTITIONS = 50
_UNENDED = {"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"}


@dataclass(frozen=True)
class CoordinatedTransaction:
    """The newest state of a transactional id."""

    transactional_id: str
    state: str
    updated: int  # milliseconds
    partitions: frozenset[tuple[str, int]]

    def is_open_in(self, topic: str | None, partition: int | None) -> bool:
        """Whether the coordinator will write a marker into the partition."""
        return self.state in _UNENDED and (topic, partition) in self.partitions


class Coordinators:
    """The states of producers' transactions by the logs of __transaction_state.

    Args:
        newest: the newest values there.
        partitions: those whose logs are there. If some may be missing, a producer that is unknown
            proves nothing.
    """

    def __init__(self, newest: Newest, partitions: Iterable[int | None]) -> None:
        numbers = set(partitions)
        # Whether all transactions are known.
        self.is_complete = numbers == set(range(max(len(numbers), _PARTITIONS)))
        self.undecoded = 0
        self._by_producer: dict[int, list[CoordinatedTransaction]] = {}
        for row in newest.decoded("transaction_state"):
            if row.key is None or row.value is None or not _has_known_state(row.value):
                self.is_complete = False
                self.undecoded += row.value is None
            else:
                self._add(row.key, row.value)

    def of(self, producer_id: int) -> list[CoordinatedTransaction]:
        """The transactions of a producer; more than one only if ids were given anew."""
        return self._by_producer.get(producer_id, [])

    def _add(self, key: dict[str, Any], value: dict[str, Any]) -> None:
        found = CoordinatedTransaction(
            key["transactionalId"],
            TRANSACTION_STATES[value["transactionStatus"]],
            value["transactionLastUpdateTimestampMs"],
            frozenset(
                (topic["topic"], number)
                for topic in value["transactionPartitions"] or ()
                for number in topic["partitionIds"]
            ),
        )
        # The end of a transaction may give a producer another id: the old one's is the same.
        for producer in {value["producerId"], value.get("previousProducerId", -1)} - {-1}:
            self._by_producer.setdefault(producer, []).append(found)


def _has_known_state(value: dict[str, Any]) -> bool:
    return value["transactionStatus"] in range(len(TRANSACTION_STATES))
