"""An index tells how transactions ended whose markers damage has taken."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
import reference
from scanning import logs_of, offsets_of, write_partition, write_transaction_indexes

import kafkajit
import kafkajit.testing as kt

WITH_DAMAGE = {"mode": "DROPMALFORMED", "isolationLevel": "read_committed"}
_TYPE, _LAST = 69, 77  # where a marker has the last byte of its type, and its last byte


def random_log(rng: random.Random) -> dict[int, bytes]:
    """Segments with many short transactions of three producers."""
    offset, segments = 0, {0: b""}
    for _ in range(rng.randrange(4, 30)):
        event = rng.choice(["send"] * 5 + ["commit", "abort"] * 2 + ["roll", "outside"])
        producer_id, log = rng.randint(1, 3), max(segments)
        if event == "roll":
            segments.setdefault(offset, b"")
        elif event in ("commit", "abort"):
            type_id = int(event == "commit")
            segments[log] += marker_of(producer_id, offset, type_id)
            offset += 1
        else:
            count = rng.randint(1, 3)
            segments[log] += kt.batch(
                [kt.Record(value=b"v")] * count,
                base_offset=offset,
                is_transactional=event == "send",
                producer_id=producer_id if event == "send" else -1,
            )
            offset += count
    return segments


def marker_of(producer_id: int, offset: int, type_id: int) -> bytes:
    return kt.control_batch(type_id, producer_id=producer_id, base_offset=offset)


def data_of(producer_id: int, offset: int) -> bytes:
    return kt.batch(
        [kt.Record(value=b"v")],
        base_offset=offset,
        is_transactional=producer_id >= 0,
        producer_id=producer_id,
    )


def flip_its_last_bit(log: bytearray, position: int, size: int) -> None:
    log[position + _LAST] ^= 1


def overwrite_it(log: bytearray, position: int, size: int) -> None:
    log[position : position + size] = bytes([0xA5]) * size


@pytest.mark.parametrize("damage", [flip_its_last_bit, overwrite_it])
def test_no_aborted_record_is_read_and_no_committed_one_lost_with_an_abort(
    damage: Callable[[bytearray, int, int], None], tmp_path: Path
) -> None:
    without_commits = 0
    for seed in range(80):
        rng = random.Random(seed)
        folder = write_partition(tmp_path / str(seed), random_log(rng))
        write_transaction_indexes(folder)
        logs = logs_of(folder)
        committed = [
            row["offset"] for row in reference.committed_rows([log.read_bytes() for log in logs])
        ]
        markers = [
            (log, batch)
            for log in logs
            for batch in reference.read_batches(log.read_bytes())[0]
            if batch.is_control
        ]
        lost = rng.sample(markers, min(len(markers), rng.randint(1, 3)))
        lost_types = set()
        for log, batch in lost:
            content = bytearray(log.read_bytes())
            lost_types.add(content[batch.position + _TYPE])
            damage(content, batch.position, batch.size)
            log.write_bytes(content)
        read = offsets_of(folder, **WITH_DAMAGE)
        assert set(read) <= set(committed), seed
        if lost_types == {0}:
            assert read == committed, seed
            without_commits += 1
    assert without_commits > 10


def test_a_damaged_marker_with_the_id_of_another_producer_ends_no_aborted_transaction(
    tmp_path: Path,
) -> None:
    lying = bytearray(marker_of(5, 2, 0))
    lying[50] = 7
    parts = [data_of(5, 0), data_of(7, 1), bytes(lying), data_of(7, 3), marker_of(7, 4, 0)]
    folder = write_partition(tmp_path, {0: b"".join([*parts, data_of(-1, 5)])})
    index = folder / "00000000000000000000.txnindex"
    entries = [(5, 0, 2), (7, 1, 4)]
    index.write_bytes(
        b"".join(reference.AbortedTransaction(*entry, 0, 0).encode() for entry in entries)
    )
    assert offsets_of(folder, **WITH_DAMAGE) == [5]


def test_a_damaged_marker_is_an_error_with_failfast_although_the_index_has_it(
    tmp_path: Path,
) -> None:
    marker = bytearray(marker_of(5, 1, 0))
    marker[_LAST] ^= 1
    folder = write_partition(tmp_path, {0: data_of(5, 0) + marker + data_of(-1, 2)})
    entry = reference.AbortedTransaction(5, 0, 1, 2, 0).encode()
    (folder / "00000000000000000000.txnindex").write_bytes(entry)
    with pytest.raises(kafkajit.CorruptRecordError, match="Record is corrupt") as caught:
        offsets_of(folder, isolationLevel="read_committed")
    assert caught.value.position == len(data_of(5, 0))
    assert offsets_of(folder, **WITH_DAMAGE) == [2]


def test_an_entry_that_ends_in_damage_cannot_hide_what_a_sound_marker_committed(
    tmp_path: Path,
) -> None:
    parts = [data_of(5, 0), marker_of(5, 1, 1), b"\xa5" * 100, data_of(-1, 5)]
    folder = write_partition(tmp_path, {0: b"".join(parts)})
    entry = reference.AbortedTransaction(5, 0, 3, 4, 0).encode()
    (folder / "00000000000000000000.txnindex").write_bytes(entry)
    assert offsets_of(folder, **WITH_DAMAGE) == [0, 5]
