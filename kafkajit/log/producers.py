"""Follow a log's producers through its batches and markers, as a broker does.

Answers to ProducerStateManager, ProducerAppendInfo and ProducerStateEntry of Kafka 4.1.1, for
batches from a leader or from the log itself: epochs and sequence numbers that a broker would refuse
from a client are accepted. Batches are taken one by one, as when Kafka recovers a log. If several
batches are appended at once and end a transaction, a broker computes its last stable offset with
the transactions in mind that these batches begin later.

Producers that a broker forgets with time (producer.id.expiration.ms) are kept: a broker that loads
the log forgets them by itself.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

from kafkajit.errors import INVALID_CONTROL_TYPE, INVALID_TXN_STATE, OK, error_for
from kafkajit.format.layout import CONTROL_MASK, TRANSACTIONAL_MASK
from kafkajit.index.transaction_index import ENTRY as ABORTED
from kafkajit.kernel import kernel
from kafkajit.records.batches import Batches
from kafkajit.records.columns import ColumnMemory, Wanted
from kafkajit.records.control_records import ABORT, COMMIT
from kafkajit.records.decode import Decoder
from kafkajit.records.markers import NO_MARKER, NO_MARKERS, Markers, read_markers
from kafkajit.state.producer_snapshot import ENTRY, producer_snapshot_bytes, snapshot_entries
from kafkajit.storage.source import Bytes, Source

# producer.id.expiration.ms: a broker may forget a producer that has not written for this long.
PRODUCER_EXPIRATION_MS = 24 * 60 * 60 * 1000

# The state of a producer. Producers with an open transaction form a list in the order in which the
# transactions began: `before` and `behind` are the rows of its neighbours.
_PRODUCER = np.dtype(
    [
        *ENTRY.newbyteorder("=").descr,
        ("before", np.int64),
        ("behind", np.int64),
    ]
)
_NOBODY = -1
# The kernel's status: call it again with more room.
_NO_ROOM = -1
# In the array of totals: the number of producers, and the ends of the list.
_COUNT, _FIRST, _LAST = range(3)


class ProducerStates:
    """The producers of a log up to a batch, and their transactions.

    >>> import kafkajit.testing as kt
    >>> from kafkajit.records.batches import frame
    >>> from kafkajit.storage.source import as_bytes
    >>> log = kt.batch([kt.Record()], producer_id=9, is_transactional=True, base_offset=5)
    >>> states = ProducerStates()
    >>> aborted = states.update(frame(as_bytes(log)).batches, NO_MARKERS)
    >>> len(states), states.first_open_offset
    (1, 5)
    """

    def __init__(self) -> None:
        self._producers = np.empty(16, dtype=_PRODUCER)
        self._slots = np.full(32, _NOBODY, dtype=np.int64)  # a hash table of rows, by producer id
        self._ends = np.array([0, _NOBODY, _NOBODY])

    @classmethod
    def of_snapshot(cls, content: Bytes, path: str | None = None) -> Self:
        """The producers of a .snapshot file."""
        states = cls()
        entries = snapshot_entries(content, path)
        states._make_room(entries.size)
        producers = np.zeros(entries.size, dtype=_PRODUCER)
        for name in ENTRY.names or ():
            producers[name] = entries[name]
        without_batch = producers["lastOffset"] < 0
        producers["lastSequence"][without_batch] = -1
        producers["lastOffset"][without_batch] = -1
        producers["offsetDelta"][without_batch] = 0
        np.maximum(producers["currentTxnFirstOffset"], -1, out=producers["currentTxnFirstOffset"])
        _load(producers, states._producers, states._slots, states._ends)
        return states

    def copy(self) -> Self:
        """A copy that can be updated with other batches."""
        other = type(self)()
        other._producers = self._producers.copy()
        other._slots = self._slots.copy()
        other._ends = self._ends.copy()
        return other

    def __len__(self) -> int:
        return int(self._ends[_COUNT])

    @property
    def entries(self) -> npt.NDArray[np.void]:
        """A row for each producer in the order in which they came, with a snapshot's fields."""
        return self._producers[: len(self)]

    @property
    def first_open_offset(self) -> int | None:
        """The start offset of the earliest open transaction, if there is one."""
        first = int(self._ends[_FIRST])
        return None if first == _NOBODY else int(self._producers["currentTxnFirstOffset"][first])

    def snapshot(self) -> bytes:
        """The content of the .snapshot file that a broker writes."""
        return producer_snapshot_bytes(self.entries)

    def update(
        self, batches: Batches, markers: Markers, path: str | None = None
    ) -> npt.NDArray[np.void]:
        """Update the producers with the next batches of the log.

        Args:
            batches: the batches.
            markers: the markers in those batches for which `are_markers` is true.
            path: of the log, for errors.

        Returns:
            The transactions that the batches abort, as rows of a .txnindex.

        Raises:
            InvalidRecordError: a broker would fail here. The batches before have been taken.
        """
        rows = np.flatnonzero(batches.header["producerId"] >= 0)
        if not rows.size:
            return np.empty(0, dtype=ABORTED)
        aborted = np.zeros(len(markers), dtype=ABORTED.newbyteorder("="))
        done = marker = found = 0
        while True:
            done, marker, found, status = _update(
                batches.header,
                batches.last_sequence,
                rows,
                markers,
                done,
                marker,
                found,
                self._producers,
                self._slots,
                self._ends,
                aborted,
            )
            if status != _NO_ROOM:
                break
            self._make_room(2 * self._producers.size)
        if status != OK:
            row = int(rows[done])
            type_id = int(markers.type_id[marker]) if status == INVALID_CONTROL_TYPE else 0
            raise error_for(
                status,
                int(batches.header["producerId"][row]),
                type_id,
                path=path,
                position=int(batches.position[row]),
                base_offset=int(batches.header["baseOffset"][row]),
            )
        return aborted[:found].astype(ABORTED)

    def _make_room(self, size: int) -> None:
        """Make room for this number of producers, and for twice as many slots."""
        if size <= self._producers.size:
            return
        producers = np.empty(size, dtype=_PRODUCER)
        producers[: len(self)] = self.entries
        self._producers = producers
        self._slots = np.full(1 << (2 * size - 1).bit_length(), _NOBODY, dtype=np.int64)
        _hash(producers[: len(self)], self._slots)


def are_markers(batches: Batches) -> npt.NDArray[np.bool_]:
    """The batches whose markers `update` needs: those of producers, not of Raft."""
    return batches.is_control & (batches.header["producerId"] >= 0)


def markers_of(source: Source, batches: Batches, *, check_crcs: bool = False) -> Markers:
    """Read the markers that `update` needs; a marker that cannot be read is an error."""
    control = batches[are_markers(batches)]
    if not len(control):
        return NO_MARKERS
    decoder = Decoder(source, ColumnMemory(Wanted(fields=True)))
    markers, error = read_markers(decoder, control, decoder.sound(control, check_crcs=check_crcs))
    if error is not None:
        raise error
    return markers


@kernel
def _slot(id_, producers, slots):
    """The slot of a producer, or the free slot for it."""
    mask = slots.size - 1
    slot = np.int64((np.uint64(id_) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while slots[slot] != _NOBODY and producers[slots[slot]]["producerId"] != id_:
        slot = (slot + 1) & mask
    return slot


@kernel
def _hash(producers, slots):
    for row in range(producers.size):
        slots[_slot(producers[row]["producerId"], producers, slots)] = row


@kernel
def _load(entries, producers, slots, ends):
    """Load the producers of a snapshot; of two entries for one producer the last counts."""
    for entry in range(entries.size):
        slot = _slot(entries[entry]["producerId"], producers, slots)
        row = slots[slot]
        if row == _NOBODY:
            row = ends[_COUNT]
            ends[_COUNT] += 1
            slots[slot] = row
        elif producers[row]["currentTxnFirstOffset"] >= 0:
            _end_transaction(row, producers, ends)
        producers[row] = entries[entry]
        if entries[entry]["currentTxnFirstOffset"] >= 0:
            _begin_transaction(row, producers, ends)


@kernel
def _begin_transaction(row, producers, ends):
    """Add a producer to the list of open transactions; mostly it is the last."""
    first_offset = producers[row]["currentTxnFirstOffset"]
    before, behind = ends[_LAST], np.int64(_NOBODY)
    while before != _NOBODY and producers[before]["currentTxnFirstOffset"] > first_offset:
        behind, before = before, producers[before]["before"]
    _link(before, row, producers, ends)
    _link(row, behind, producers, ends)


@kernel
def _end_transaction(row, producers, ends):
    """Remove a producer from the list of open transactions."""
    _link(producers[row]["before"], producers[row]["behind"], producers, ends)
    producers[row]["currentTxnFirstOffset"] = -1


@kernel
def _link(one, next_, producers, ends):
    if one == _NOBODY:
        ends[_FIRST] = next_
    else:
        producers[one]["behind"] = next_
    if next_ == _NOBODY:
        ends[_LAST] = one
    else:
        producers[next_]["before"] = one


@kernel
def _last_stable_offset(row, marker_offset, producers, ends):
    """The start of the earliest other transaction, or the offset behind the marker."""
    other = ends[_FIRST]
    if other == row:
        other = producers[other]["behind"]
    return marker_offset + 1 if other == _NOBODY else producers[other]["currentTxnFirstOffset"]


@kernel
def _update(
    headers,
    last_sequences,
    rows,
    markers,
    done,
    marker,
    found,
    producers,
    slots,
    ends,
    aborted,
):
    """Return the numbers of rows, markers and aborted transactions done, and the status."""
    type_ids = markers.type_id
    while done < rows.size:
        header = headers[rows[done]]
        slot = _slot(header["producerId"], producers, slots)
        row = slots[slot]
        is_new = row == _NOBODY
        if is_new:
            row = ends[_COUNT]
            if row == producers.size:
                return done, marker, found, _NO_ROOM
        is_open = not is_new and producers[row]["currentTxnFirstOffset"] >= 0
        is_control = header["attributes"] & CONTROL_MASK != 0
        if is_control and type_ids[marker] not in (ABORT, COMMIT, NO_MARKER):
            return done, marker, found, INVALID_CONTROL_TYPE
        if is_open and not is_control and not header["attributes"] & TRANSACTIONAL_MASK:
            return done, marker, found, INVALID_TXN_STATE
        if is_new:
            _begin_producer(header["producerId"], row, producers)
            slots[slot] = row
            ends[_COUNT] += 1
        if not is_control:
            _take_batch(header, last_sequences[rows[done]], row, producers, ends)
        elif type_ids[marker] != NO_MARKER:
            if is_open:
                if type_ids[marker] == ABORT:
                    entry = aborted[found]
                    entry["producerId"] = header["producerId"]
                    entry["firstOffset"] = producers[row]["currentTxnFirstOffset"]
                    entry["lastOffset"] = header["baseOffset"]
                    entry["lastStableOffset"] = _last_stable_offset(
                        row, header["baseOffset"], producers, ends
                    )
                    found += 1
                _end_transaction(row, producers, ends)
            _take_epoch(header["producerEpoch"], row, producers)
            producers[row]["coordinatorEpoch"] = markers.coordinator_epoch[marker]
            producers[row]["timestamp"] = markers.timestamp[marker]
        marker += is_control
        done += 1
    return done, marker, found, OK


@kernel
def _begin_producer(id_, row, producers):
    """ProducerStateEntry.empty."""
    producer = producers[row]
    producer["producerId"] = id_
    producer["producerEpoch"] = -1
    producer["lastSequence"] = -1
    producer["lastOffset"] = -1
    producer["offsetDelta"] = 0
    producer["timestamp"] = -1
    producer["coordinatorEpoch"] = -1
    producer["currentTxnFirstOffset"] = -1


@kernel
def _take_epoch(epoch, row, producers):
    """Set a producer's epoch, and forget its batches of another epoch."""
    producer = producers[row]
    if producer["producerEpoch"] != epoch:
        producer["producerEpoch"] = epoch
        producer["lastSequence"] = -1
        producer["lastOffset"] = -1
        producer["offsetDelta"] = 0


@kernel
def _take_batch(header, last_sequence, row, producers, ends):
    """Update a producer with a batch of data."""
    producer = producers[row]
    delta = np.int64(header["lastOffsetDelta"])
    producer["producerEpoch"] = header["producerEpoch"]
    producer["lastSequence"] = last_sequence
    producer["lastOffset"] = header["baseOffset"] + delta
    producer["offsetDelta"] = delta
    producer["timestamp"] = header["maxTimestamp"]
    is_transactional = header["attributes"] & TRANSACTIONAL_MASK != 0
    if is_transactional and producer["currentTxnFirstOffset"] < 0:
        producer["currentTxnFirstOffset"] = header["baseOffset"]
        _begin_transaction(row, producers, ends)
