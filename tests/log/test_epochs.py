from __future__ import annotations

from typing import Any

import log_twin
import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st

import kafkajit.testing as kt
from kafkajit.log.epochs import LeaderEpochs
from kafkajit.records.batches import frame
from kafkajit.storage.source import as_bytes

ENTRIES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 30)), max_size=8)


def both(entries: list[tuple[int, int]]) -> tuple[LeaderEpochs, log_twin.Epochs]:
    twin = log_twin.Epochs()
    for entry in entries:
        twin.assign(*entry)
    return LeaderEpochs(entries), twin


@given(ENTRIES, st.tuples(st.integers(0, 6), st.integers(0, 30)))
def test_entries_that_contradict_a_later_one_are_taken_back(
    entries: list[tuple[int, int]], another: tuple[int, int]
) -> None:
    epochs, twin = both(entries)
    assert epochs.entries == twin.entries
    assert not epochs.is_changed
    before = twin.entries
    epochs.assign(*another)
    twin.assign(*another)
    assert epochs.entries == twin.entries
    assert epochs.is_changed == (twin.entries != before)
    assert epochs.latest == (twin.entries[-1][0] if twin.entries else None)


@given(ENTRIES, st.integers(0, 32))
def test_what_is_cut_off_has_no_epochs(entries: list[tuple[int, int]], offset: int) -> None:
    for cut in ("truncate_from_end", "truncate_from_start"):
        epochs, twin = both(entries)
        before = epochs.entries.copy()
        getattr(epochs, cut)(offset)
        getattr(twin, cut)(offset)
        assert epochs.entries == twin.entries
        assert epochs.is_changed == (epochs.entries != before)


@given(
    ENTRIES,
    st.lists(st.sampled_from([0, 0, 1, 2, 3, 5, 6, "message"]), min_size=1, max_size=12),
)
def test_appended_batches_begin_epochs(entries: list[tuple[int, int]], kinds: list[Any]) -> None:
    epochs, twin = both(entries)
    log = b"".join(
        kt.message(kt.Record(), offset=20 + place)
        if kind == "message"
        else kt.batch([kt.Record()], base_offset=20 + place, partition_leader_epoch=kind)
        for place, kind in enumerate(kinds)
    )
    for batch in reference.read_batches(log)[0]:
        if batch.magic < 2:
            twin.forget()
        else:
            twin.assign(batch.partition_leader_epoch, batch.base_offset)
    batches = frame(as_bytes(log)).batches
    epochs.append(batches, batches.header["partitionLeaderEpoch"])
    assert epochs.entries == twin.entries
    if epochs.entries or not entries:
        assert epochs.text() == (twin.text() or b"0\n0\n")


def test_epochs_are_those_that_are_given_whatever_batches_say() -> None:
    log = kt.batch([kt.Record()], base_offset=7, partition_leader_epoch=-1) * 2
    epochs = LeaderEpochs()
    epochs.append(frame(as_bytes(log)).batches, np.array([4, 5]))
    assert epochs.entries == [(5, 7)]
    epochs.append(frame(as_bytes(log)).batches[:0], np.array([], dtype=np.int32))
    assert epochs.entries == [(5, 7)]


@pytest.mark.parametrize("epochs", [[], [(0, 0)], [(0, 0), (3, 7)]])
def test_the_file_is_kafkas(epochs: list[tuple[int, int]]) -> None:
    lines = ["0", str(len(epochs)), *(f"{epoch} {offset}" for epoch, offset in epochs), ""]
    assert LeaderEpochs(epochs).text() == "\n".join(lines).encode()
