"""The outcomes of transactions in the logs of __transaction_state, by their coordinator.

A broker is the coordinator of some transactional ids. So these logs may be in another broker's
folder, and they are compacted: a transaction without an entry proves nothing.
"""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from kafkajit.change.files import identity
from kafkajit.errors import KafkaJitError
from kafkajit.reader import iter_records
from kafkajit.records.control_records import ABORT, COMMIT
from kafkajit.topics.structs import decode_payloads
from kafkajit.walk.damage import DROPMALFORMED

logger = logging.getLogger("kafkajit")

_TOPIC = "transaction_state"
# TransactionState of Kafka 4.1.1: PrepareCommit and CompleteCommit, PrepareAbort and CompleteAbort.
_OUTCOMES = {2: COMMIT, 4: COMMIT, 3: ABORT, 5: ABORT}
_COUNTS_EPOCHS = 2  # TransactionVersion.TV_2
# The clocks of producers and coordinators differ.
_SLACK_MS = 5_000


class Outcome(NamedTuple):
    """The end of a transaction, as its coordinator logged it."""

    producer_epoch: int  # of its records
    start_ms: int
    end_ms: int
    control_type: int
    has_own_epoch: bool  # no other transaction of the producer has the epoch


def outcome_of(log_dirs: Path, producer: tuple[int, int], times: tuple[int, int]) -> int | None:
    """The outcome of a transaction; None if nothing tells it.

    Args:
        log_dirs: the folder with the logs of __transaction_state.
        producer: its id and epoch.
        times: the first and the last timestamp of its records.
    """
    (producer_id, epoch), (first_ms, last_ms) = producer, times
    known = [
        one
        for one in _outcomes(log_dirs, _state_of(log_dirs)).get(producer_id, ())
        if one.producer_epoch == epoch
    ]
    if known and all(one.has_own_epoch for one in known):
        return known[-1].control_type
    for slack in (0, _SLACK_MS):
        found = {
            one.control_type
            for one in known
            if one.start_ms - slack <= first_ms and last_ms <= one.end_ms + slack
        }
        if len(found) == 1:
            return found.pop()
        if found:
            return None
    return None


def _state_of(log_dirs: Path) -> tuple[object, ...]:
    logs = sorted(log_dirs.glob(f"__{_TOPIC}-*/*.log"))
    return tuple((log, identity(log)) for log in logs)


@lru_cache(maxsize=4)
def _outcomes(log_dirs: Path, _: tuple[object, ...]) -> dict[int, list[Outcome]]:
    """The outcomes of transactions by producer id."""
    found: dict[int, list[Outcome]] = {}
    for log in sorted(log_dirs.glob(f"__{_TOPIC}-*/*.log")):
        try:
            for records in iter_records(str(log), columns=["key", "value"], mode=DROPMALFORMED):
                for value in _values(records):
                    _add(found, value)
        except (OSError, KafkaJitError) as error:
            logger.warning("%s", error)
    return found


def _values(records: pa.RecordBatch) -> list[dict[str, object]]:
    decoded = decode_payloads(_TOPIC, records["key"], records["value"], lenient=True)
    texts = decoded.field("value").to_pylist()
    return [json.loads(text)["data"] for text in texts if text is not None]


def _add(found: dict[int, list[Outcome]], value: dict[str, object]) -> None:
    status = value.get("transactionStatus")
    start = value.get("transactionStartTimestampMs")
    end = value.get("transactionLastUpdateTimestampMs")
    if status in _OUTCOMES and isinstance(start, int) and isinstance(end, int) and start >= 0:
        # With version 2, the end of a transaction counts the producer's epoch up.
        version, epoch = value.get("clientTransactionVersion"), value.get("producerEpoch")
        assert isinstance(epoch, int)
        has_own_epoch = isinstance(version, int) and version >= _COUNTS_EPOCHS
        outcome = Outcome(epoch - has_own_epoch, start, end, _OUTCOMES[status], has_own_epoch)
        for name in ("producerId", "previousProducerId"):
            producer = value.get(name, -1)
            if isinstance(producer, int) and producer >= 0:
                found.setdefault(producer, []).append(outcome)
