from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from corpus import rows_of
from histories import KINDS, Step, histories

import kafkajit
from kafkajit import Log

PRODUCER = (
    *("producerId", "producerEpoch", "lastSequence", "lastOffset", "coordinatorEpoch"),
    "currentTxnFirstOffset",
)
ABORTED = ("producerId", "firstOffset", "lastOffset", "lastStableOffset")


@pytest.mark.parametrize("kind", KINDS)
def test_files_agree_with_what_kafka_states(kind: str, tmp_path: Path) -> None:
    steps = [step for history in histories(kind) for step in history if "state" in step.stated]
    assert len(steps) >= 12
    for place, step in enumerate(steps):
        assert list(step.after) == sorted(step.after)
        folder = tmp_path / str(place) / "orders-0"
        folder.mkdir(parents=True)
        for name, content in step.after.items():
            (folder / name).write_bytes(content)
        state = step.stated["state"]
        # After a truncation of nothing Kafka's own end, in memory, may be later.
        assert Log(folder).end_offset == state["segments"][-1]["nextOffset"]
        logs = [int(name[:20]) for name in step.after if name.endswith(".log")]
        assert logs == [segment["baseOffset"] for segment in state["segments"]]
        epochs = kafkajit.read_leader_epochs(step.after["leader-epoch-checkpoint"])
        assert [list(row.values()) for row in rows_of(epochs)] == state["leaderEpochs"]
        for segment in state["segments"]:
            check_segment(step, segment)
        does_expire = step.stated["open"]["producerIdExpirationMs"] < 2**31 - 1
        if step.stated["ends"] == "close" and not does_expire:
            snapshot = step.after[f"{state['logEndOffset']:020}.snapshot"]
            rows = rows_of(kafkajit.read_producer_snapshot(snapshot))
            assert sorted(map(producer, rows)) == sorted(map(producer, state["producers"]))


def check_segment(step: Step, segment: dict[str, Any]) -> None:
    stem = f"{segment['baseOffset']:020}"
    log = step.after[f"{stem}.log"]
    assert len(log) == segment["size"]
    ends = [row["lastOffset"] + 1 for row in rows_of(kafkajit.read_record_batches(log))]
    assert (ends or [segment["baseOffset"]])[-1] == segment["nextOffset"]
    offsets = kafkajit.index.read_offset_index(step.after[f"{stem}.index"], segment["baseOffset"])
    assert offsets.num_rows == segment["offsetIndexEntries"]
    times = kafkajit.index.read_time_index(step.after[f"{stem}.timeindex"], segment["baseOffset"])
    last = times.num_rows - segment["timeIndexEntries"]
    assert last in (0, 1)  # which closing adds
    if last or step.stated["ends"] == "close":
        assert [list(row.values()) for row in rows_of(times)][-1:] == [
            [segment["largestTimestamp"], segment["offsetOfLargestTimestamp"]]
        ] * (segment["largestTimestamp"] >= 0)
    aborted = rows_of(
        kafkajit.index.read_transaction_index(step.after.get(f"{stem}.txnindex", b""))
    )
    assert [[row[name] for name in ABORTED] for row in aborted] == segment["abortedTransactions"]


def producer(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(-1 if row[name] is None else row[name] for name in PRODUCER)


@pytest.mark.thorough
def test_the_cleaners_goldens_show_every_effect() -> None:
    shown: Counter[str] = Counter()
    for history in histories("compact"):
        for step in history:
            if step.stated["commands"][-1]["do"] == "clean":
                before, after = counts(step.before), counts(step.after)
                shown += after - before
                shown += Counter({f"less {name}": n for name, n in (before - after).items()})
    assert shown["emptied"] > 0
    assert shown["delete horizons"] > 0
    for gone in ("records", "tombstones", "markers", "aborted", "delete horizons"):
        assert shown[f"less {gone}"] > 0


def counts(files: dict[str, bytes]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, content in files.items():
        if name.endswith(".log"):
            for batch in rows_of(kafkajit.read_record_batches(content)):
                found["emptied"] += batch["recordsCount"] == 0
                found["delete horizons"] += batch["deleteHorizonMs"] is not None
            for record in rows_of(kafkajit.read_records(content)):
                found["records"] += 1
                found["markers"] += record["controlType"] is not None
                found["tombstones"] += record["value"] is None
        elif name.endswith(".txnindex"):
            found["aborted"] += kafkajit.index.read_transaction_index(content).num_rows
    return found
