"""Producers of a log that goes to another cluster, which numbers its own ones from 0."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from corpus import DATA

import kafkajit
import kafkajit.testing as kt
from kafkajit.format.limits import MAX_INT64
from kafkajit.index import verify_transaction_index
from kafkajit.upkeep.restore.producer_ids import STEP, other_ids

SOURCES = (
    "transactions-0",
    "transactions-open-0",
    "transactions-segments-0",
    "transactions-zstd-0",
    "compacted-transactions-0",
    "segments-idempotent-0",
    "epochs-0",
)
CHANGED = ("producer_id", "crc", "partition_leader_epoch")
FOLDERS = [DATA / "v2" / name for name in SOURCES]


def restored(source: Path, to: Path, **options: Any) -> Path:
    kafkajit.restore(source, to, **options).apply()
    return to / source.name


def batches(folder: Path) -> list[reference.Batch]:
    logs = (path.read_bytes() for path in sorted(folder.glob("*.log")))
    return [row for log in logs for row in reference.read_batches(log)[0]]


def other(id_: int) -> int:
    return id_ if id_ == -1 else id_ + STEP


def committed(folder: Path) -> list[tuple[int, bytes]]:
    table = kafkajit.dataset(folder, isolation_level="read_committed").to_table()
    return list(zip(table["offset"].to_pylist(), table["value"].to_pylist(), strict=True))


@pytest.mark.parametrize("source", FOLDERS, ids=lambda folder: folder.name)
def test_producers_get_ids_that_no_cluster_reaches(source: Path, tmp_path: Path) -> None:
    folder = restored(source, tmp_path / "new", leader_epoch=0)
    before, after = batches(source), batches(folder)
    assert any(batch.producer_id >= 0 for batch in before)
    for old, new in zip(before, after, strict=True):
        assert new.is_valid
        assert new.producer_id == other(old.producer_id)
        assert replace(old, **dict.fromkeys(CHANGED, 0)) == replace(
            new, **dict.fromkeys(CHANGED, 0)
        )
    assert committed(folder) == committed(source)
    assert not kafkajit.repair(folder).is_needed
    for index in source.glob("*.txnindex"):
        copy = folder / index.name
        assert verify_transaction_index(copy.with_suffix(".log"), copy).num_rows == 0
        found, wanted = map(kafkajit.index.read_transaction_index, (copy, index))
        assert found.drop_columns("producerId") == wanted.drop_columns("producerId")
    for snapshot in folder.glob("*.snapshot"):
        ids = kafkajit.read_producer_snapshot(snapshot)["producerId"].to_pylist()
        assert all(id_ >= STEP for id_ in ids)


@pytest.mark.parametrize("source", FOLDERS[:1], ids=lambda folder: folder.name)
def test_producers_keep_their_ids_in_their_own_cluster(source: Path, tmp_path: Path) -> None:
    folder = restored(source, tmp_path / "same")
    for log in source.glob("*.log"):
        assert (folder / log.name).read_bytes() == log.read_bytes()


def test_producers_of_three_clusters_stay_apart(tmp_path: Path) -> None:
    """The second cluster has given an id of the first one to a producer of its own."""
    source = tmp_path / "source" / "orders-0"
    source.mkdir(parents=True)
    fields = {"is_transactional": True, "producer_epoch": 0}
    record = [kt.Record(value=b"v")]
    (source / f"{0:020}.log").write_bytes(
        kt.batch(record, base_offset=0, producer_id=STEP + 7, base_sequence=0, **fields)
        + kt.batch(record, base_offset=1, producer_id=7, base_sequence=0, **fields)
        + kt.control_batch(0, base_offset=2, producer_id=7, producer_epoch=0)
    )
    folder = restored(source, tmp_path / "new", leader_epoch=0)
    assert [batch.producer_id for batch in batches(folder)] == [2 * STEP + 7, STEP + 7, STEP + 7]
    assert committed(folder) == []  # the first transaction is still open
    (row,) = kafkajit.index.read_transaction_index(folder / f"{0:020}.txnindex").to_pylist()
    assert (row["producerId"], row["firstOffset"], row["lastOffset"]) == (STEP + 7, 1, 2)
    assert not kafkajit.repair(folder).is_needed


def test_ids_without_room_for_another_stay() -> None:
    ids = np.array([MAX_INT64, MAX_INT64 - STEP, -1], dtype=np.int64)
    assert other_ids(ids).tolist() == [MAX_INT64, MAX_INT64, -1]


def test_the_plan_names_the_change(tmp_path: Path) -> None:
    text = str(kafkajit.restore(FOLDERS[0], tmp_path / "new", leader_epoch=0))
    assert "leader epoch 0 in all batches, and other producer ids" in text
