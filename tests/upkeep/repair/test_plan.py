"""Repairs as a caller sees them; tests/data has what Kafka makes of the same logs."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from corpus import DATA, NO_JIT
from histories import histories
from hypothesis import given
from hypothesis import strategies as st
from partitions import (
    CONFIG,
    check_soundness,
    data,
    drop_kept,
    files_in,
    log_name,
    make_partition,
    marker,
    offsets_in,
    to_do,
    transactional,
)

import kafkajit
import kafkajit.testing as kt
from kafkajit.change.journal import DONE, READY, STAGED
from kafkajit.errors import KafkaJitError, LockedError
from kafkajit.log.config import LogConfig

SEGMENTS: Mapping[int, list[bytes]] = {
    0: [
        data(0),
        transactional(2, 7),
        data(4, partition_leader_epoch=1),
        transactional(6, 8),
        data(8),
    ],
    10: [data(10), marker(12, 7), data(13), data(15), data(17, 3)],
    20: [transactional(20, 7, 2), marker(22, 8, 1), data(23, partition_leader_epoch=3), data(25)],
}
EVERY = list(range(27))


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_partition(tmp_path / "kafka" / "orders-0", SEGMENTS)


def repair(folder: Path, **options: object) -> kafkajit.RepairPlan:
    return kafkajit.repair(folder, config=CONFIG, **options)  # type: ignore[arg-type]


def repaired(folder: Path, **options: object) -> str:
    """The text of the plan, which was applied; after that no repair is left."""
    before = files_in(folder)
    plan = repair(folder, **options)
    assert files_in(folder) == before
    assert plan.is_needed
    plan.apply()
    check_soundness(folder)
    drop_kept(folder)
    return "\n".join(to_do(plan))


def flip(path: Path, position: int, bit: int = 1) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= bit
    path.write_bytes(content)


@pytest.mark.parametrize("length", [14, 48])
@pytest.mark.parametrize("salvage", [False, True])
def test_a_length_that_has_no_room_for_a_header_is_damage(
    folder: Path, length: int, salvage: bool
) -> None:
    path = folder / log_name(10)
    content, at = bytearray(path.read_bytes()), len(data(10) + marker(12, 7))
    content[at + 8 : at + 12] = length.to_bytes(4)
    path.write_bytes(content)
    stated = repaired(folder, salvage=salvage)
    assert f"Record batch is corrupt (the size {length + 12} is smaller than the minimum" in stated
    later = range(15, 27) if salvage else []
    assert offsets_in(folder) == [*range(13), *later]


def test_what_is_right_is_left_alone(folder: Path) -> None:
    check_soundness(folder)
    assert offsets_in(folder) == EVERY
    assert repair(folder).apply() == []
    assert not list(folder.glob(".kafkajit-*"))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["append", "recover", "truncate", "retain", "compact"])
def test_what_a_broker_left_when_it_ended_is_left_alone(kind: str, tmp_path: Path) -> None:
    closed = [step for log in histories(kind) for step in log if step.stated.get("ends") == "close"]
    assert closed
    for place, step in enumerate(closed):
        folder = put(tmp_path / str(place), step.after)
        start = step.stated["state"]["logStartOffset"]
        (folder.parent / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {start}\n")
        plan = kafkajit.repair(folder, config=LogConfig.of(step.stated["config"]))
        # In memory a truncated log ends at that offset, which may be a batch later.
        if (
            step.stated["state"]["segments"][-1]["nextOffset"]
            == step.stated["state"]["logEndOffset"]
        ):
            lines = to_do(plan)
            if kind == "truncate":  # Kafka forgets its last timestamp
                lines = [line for line in lines if "timeindex: rebuild: it is empty" not in line]
            assert lines == [], (kind, place)


def put(parent: Path, files: Mapping[str, bytes]) -> Path:
    folder = parent / "orders-0"
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_a_damaged_log_becomes_what_kafka_makes_of_it(tmp_path: Path) -> None:
    compared = 0
    for place, log in enumerate(histories("recover")):
        _, damaged, recovered = log
        folder = put(tmp_path / str(place), damaged.after)
        # A broker rebuilds all of them.
        for suffix in (".index", ".timeindex", ".txnindex", ".snapshot"):
            for path in folder.glob(f"*{suffix}"):
                path.unlink()
        config = LogConfig.of(recovered.stated["config"])
        kafkajit.repair(folder, config=config).apply()
        found, expected = files_in(folder), dict(recovered.after)
        for name, content in list(expected.items()):
            if name.endswith(".txnindex") and not content:  # the file was there before
                del expected[name]
        point = recovered.stated["open"]["recoveryPoint"]
        if point == 0:
            assert found == expected, damaged.stated
            compared += 1
        assert kafkajit.Log(folder).end_offset == recovered.stated["state"]["logEndOffset"]
    assert compared >= 2


def test_a_log_is_truncated_as_kafka_does_it(tmp_path: Path) -> None:
    compared = 0
    for place, log in enumerate(histories("truncate")):
        for step in log[1:]:
            folder = put(tmp_path / f"{place} {compared}", step.before)
            (command,) = step.stated["commands"]
            config = LogConfig.of(step.stated["config"])
            plan = kafkajit.repair(folder, config=config, truncate_to=command["offset"])
            plan.apply()
            found = {name: files_in(folder)[name] for name in files_in(folder)}
            expected = dict(step.after)
            # The log's end is only in memory; here it is the end of the last batch left.
            for files in (found, expected):
                for name in list(files):
                    if name.endswith((".snapshot", "-checkpoint", ".metadata")):
                        del files[name]
            for name, content in list(expected.items()):
                # Kafka writes an empty file, and forgets its last timestamp.
                if not content and name.endswith((".txnindex", ".timeindex")):
                    found.pop(name, None)
                    del expected[name]
            assert found == expected, step.stated["commands"]
            state = step.stated["state"]
            assert kafkajit.Log(folder).end_offset == state["segments"][-1]["nextOffset"]
            compared += 1
    assert compared >= 8


def test_a_log_ends_before_damage_and_the_segments_behind_it_go(folder: Path) -> None:
    flip(folder / log_name(10), len(data(10)) + len(marker(12, 7)) + 65)
    text = repaired(folder)
    assert "Record is corrupt" in text
    assert "with its indexes and snapshot: it is behind what is cut away" in text
    assert offsets_in(folder) == EVERY[: EVERY.index(13)]
    assert sorted(files_in(folder)) == sorted(
        [
            *(log_name(base, suffix) for base in (0, 10) for suffix in (".log", ".index")),
            *(log_name(base, ".timeindex") for base in (0, 10)),
            log_name(10, ".txnindex"),
            log_name(10, ".snapshot"),
            log_name(13, ".snapshot"),
            "leader-epoch-checkpoint",
        ]
    )
    epochs = kafkajit.read_leader_epochs(str(folder / "leader-epoch-checkpoint")).to_pylist()
    assert epochs == [{"epoch": 0, "startOffset": 0}, {"epoch": 1, "startOffset": 4}]


def test_salvage_keeps_every_sound_batch_and_says_what_is_lost(folder: Path) -> None:
    position = len(data(10)) + len(marker(12, 7))
    flip(folder / log_name(10), position + 65)
    plan = repair(folder, salvage=True)
    (gap,) = plan.partitions[0].gaps
    found = kafkajit.find_corruption(str(folder / log_name(10))).to_pylist()
    assert [list(gap)[1:6]] == [list(row.values()) for row in found]
    assert gap.records == 2
    text = repaired(folder, salvage=True)
    assert f"cut out {position} to {position + len(data(13))}" in text
    assert "offsets from 13 to 14 are missing" in text
    assert offsets_in(folder) == [offset for offset in EVERY if offset not in (13, 14)]
    assert (folder / log_name(10)).read_bytes() == b"".join(
        [SEGMENTS[10][0], SEGMENTS[10][1], *SEGMENTS[10][3:]]
    )


def test_what_is_wrong_with_a_batch_beyond_its_checksum_is_found(tmp_path: Path) -> None:
    bad = {
        "InvalidRecordError: Invalid control record type": kt.control_batch(
            9, producer_id=7, base_offset=4
        ),
        "InvalidRecordError: Expected transactional write": data(4, 1, producer_id=7),
        "CorruptRecordError: Invalid magic found": data(4, 1)[:16] + b"\x07" + data(4, 1)[17:],
    }
    for place, (reason, batch) in enumerate(bad.items()):
        for salvage in (False, True):
            folder = tmp_path / f"{place} {salvage}" / "orders-0"
            batches = [data(0), transactional(2, 7), batch, marker(5, 7), data(6)]
            folder.mkdir(parents=True)
            (folder / log_name(0)).write_bytes(b"".join(batches))
            assert reason in repaired(folder, salvage=salvage)
            expected = [0, 1, 2, 3] + ([5, 6, 7] if salvage else [])
            assert offsets_in(folder) == expected
            aborted = kafkajit.Log(folder).aborted_transactions(0, 99).num_rows
            assert aborted == salvage


@pytest.mark.thorough
@pytest.mark.skipif(NO_JIT, reason="thousands of logs, with kernels that are interpreted")
def test_a_log_cut_anywhere_is_right_up_to_there(tmp_path: Path) -> None:
    batches = [data(0), transactional(2, 7), marker(4, 7), data(5)]
    whole = b"".join(batches)
    ends = [len(b"".join(batches[:count])) for count in range(len(batches) + 1)]
    expected = [list(range(count)) for count in (0, 2, 4, 5, 7)]
    original = make_partition(tmp_path / "whole" / "orders-0", {0: batches})
    for size in range(len(whole) + 1):
        folder = tmp_path / str(size) / "orders-0"
        shutil.copytree(original, folder)
        os.truncate(folder / log_name(0), size)
        if size < len(whole):
            repaired(folder)
        kept = max(place for place, end in enumerate(ends) if end <= size)
        assert offsets_in(folder) == expected[kept]
        assert (folder / log_name(0)).stat().st_size == ends[kept]
        shutil.rmtree(folder.parent)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        (log_name(10, ".index"), "missing"),
        (log_name(10, ".index"), "empty"),
        (log_name(10, ".index"), "noise"),
        (log_name(10, ".index"), "of another"),
        (log_name(10, ".index"), "too long"),
        (log_name(10, ".index"), "zeros"),
        (log_name(10, ".timeindex"), "missing"),
        (log_name(10, ".timeindex"), "empty"),
        (log_name(10, ".timeindex"), "noise"),
        (log_name(10, ".timeindex"), "of another"),
        (log_name(10, ".timeindex"), "too long"),
        (log_name(10, ".txnindex"), "missing"),
        (log_name(10, ".txnindex"), "empty"),
        (log_name(10, ".txnindex"), "noise"),
        (log_name(20, ".snapshot"), "missing"),
        (log_name(20, ".snapshot"), "noise"),
        (log_name(20, ".snapshot"), "of another"),
        (log_name(27, ".snapshot"), "empty"),
        ("leader-epoch-checkpoint", "missing"),
        ("leader-epoch-checkpoint", "noise"),
    ],
)
def test_a_file_beside_a_log_becomes_what_it_was(folder: Path, name: str, damage: str) -> None:
    path = folder / name
    before = files_in(folder)
    others = {".index": 0, ".timeindex": 0, ".snapshot": 10}
    if damage == "missing":
        path.unlink()
    else:
        content = {
            "empty": b"",
            "noise": b"\x05" * 61,
            "of another": before.get(log_name(others.get(path.suffix, 0), path.suffix), b""),
            "too long": before[name] + before[name],
            "zeros": before[name] + bytes(4096),
        }[damage]
        assert content != before[name]
        path.write_bytes(content)
    text = repaired(folder)
    assert name in text
    assert files_in(folder) == before


def test_files_without_a_log_and_behind_its_end_go(folder: Path) -> None:
    before = files_in(folder)
    strays = [
        *(log_name(5, suffix) for suffix in (".index", ".timeindex", ".txnindex")),
        log_name(99, ".snapshot"),
        f"{log_name(0)}.deleted",
        f"{log_name(0, '.index')}.cleaned",
    ]
    for name in strays:
        (folder / name).write_bytes(b"x")
    text = repaired(folder)
    assert len(text.splitlines()) == len(strays)
    assert files_in(folder) == before


def test_a_snapshot_that_brokers_leave_when_they_end_is_no_damage(folder: Path) -> None:
    stray = folder / log_name(13, ".snapshot")
    shutil.copy(folder / log_name(10, ".snapshot"), stray)
    assert not repair(folder).is_needed
    (folder / log_name(10, ".index")).unlink()
    assert stray.name in repaired(folder)
    assert not stray.exists()


def test_a_swap_of_which_nothing_stays_goes_with_what_it_was_to_replace(folder: Path) -> None:
    for suffix in (".log", ".index"):
        shutil.copy(folder / log_name(0, suffix), f"{folder / log_name(20, suffix)}.swap")
    repaired(folder)
    assert offsets_in(folder) == EVERY[: EVERY.index(20)]
    assert not list(folder.glob(f"{20:020d}.*index"))


def test_a_log_of_which_all_records_were_deleted_is_right(folder: Path) -> None:
    starts, epochs = folder.parent / "log-start-offset-checkpoint", "leader-epoch-checkpoint"
    starts.write_text("0\n1\norders 0 27\n")
    (folder / log_name(20, ".snapshot")).unlink()  # it is before all repairs
    for left in ("0\n1\n3 27\n", "0\n0\n"):
        (folder / epochs).write_text(left)
        check_soundness(folder)
    (folder / epochs).unlink()
    repaired(folder, truncate_to=25)
    assert starts.read_text() == "0\n1\norders 0 25\n"
    assert repair(folder).partitions[0].log_start_offset == 25


def test_a_start_offset_that_is_none_is_no_segments_name(folder: Path) -> None:
    (folder.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 -5\n")
    for path in folder.glob("*.log"):
        path.unlink()
    repaired(folder)
    assert [path.name for path in folder.glob("*.log")] == [log_name(0)]
    (folder / log_name(0)).unlink()
    with kafkajit.LogWriter(folder) as log:
        assert log.log_end_offset == 0


def test_a_snapshot_that_contradicts_itself_is_no_beginning(folder: Path) -> None:
    for base in (0, 10):  # so that the producers before 20 are unknown
        (folder / log_name(base)).unlink()
    wrong = [[kt.Producer(7, last_offset=20)], [kt.Producer(7, last_offset=5)] * 2]
    for entries in wrong:
        (folder / log_name(20, ".snapshot")).write_bytes(kt.producer_snapshot(entries))
        repaired(folder)


def test_a_name_that_is_no_offset_is_no_segments(folder: Path) -> None:
    for content in (b"", data(0)[:-1] + b"x", data(0)):
        for suffix in (".log", ".index", ".snapshot"):
            (folder / f"{2**63}{suffix}".zfill(20 + len(suffix))).write_bytes(content)
        stated = repaired(folder)
        assert f"{2**63:020d}.log: remove, {len(content)} bytes" in stated
        assert "with its indexes and snapshot: its name is not an offset" in stated
        check_soundness(folder)
        assert offsets_in(folder) == EVERY


def test_the_records_that_an_empty_swap_replaces_are_counted(folder: Path) -> None:
    (folder / f"{log_name(10)}.swap").write_bytes(b"")
    (plan,) = kafkajit.repair(folder, config=CONFIG).partitions
    (note,) = plan.notes
    assert note.startswith(f"{log_name(10)}.swap, which takes the place of {log_name(10)}, ")


def test_an_interrupted_swap_is_finished(folder: Path) -> None:
    for path in folder.glob(f"{log_name(10, '')}.*index"):
        path.rename(f"{path}.swap")
    swap = folder / f"{log_name(10)}.swap"
    # What the cleaner has made of the second and third segments.
    swap.write_bytes(b"".join([*SEGMENTS[10], *SEGMENTS[20]]))
    text = repaired(folder)
    assert f"{log_name(10)}: create from {swap.name}: a swap was interrupted" in text
    assert offsets_in(folder) == EVERY
    assert [path.name for path in sorted(folder.glob("*.log*"))] == [log_name(0), log_name(10)]


@pytest.mark.parametrize("salvage", [False, True])
def test_of_overlapping_segments_stays_what_a_consumer_from_the_start_reads(
    folder: Path, salvage: bool
) -> None:
    with (folder / log_name(0)).open("ab") as log:
        log.write(data(10, 2, base_timestamp=1))
    before = files_in(folder)
    lost = "another batch with its offsets stays: the one that consumers from the log's start read"
    assert f"cut out 0 to 93, 93 bytes, offsets 10 to 11: {lost}" in repaired(
        folder, salvage=salvage
    )
    assert offsets_in(folder) == EVERY
    after = files_in(folder)
    assert after[log_name(0)] == before[log_name(0)]
    assert after[log_name(12)] == before[log_name(10)][93:]
    assert after[log_name(20)] == before[log_name(20)]
    assert log_name(10) not in after


def test_a_part_of_a_batch_keeps_the_time_from_which_its_tombstones_may_go(tmp_path: Path) -> None:
    records = [kt.Record(b"k", None, timestamp=1_700_000_000_000)] * 6
    marked = kt.batch(records, base_offset=5, delete_horizon_ms=1_700_000_000_005)
    folder = put(tmp_path, {log_name(0): data(0, 8), log_name(5): marked})
    repaired(folder)
    assert offsets_in(folder) == list(range(11))
    (batch,) = kafkajit.read_record_batches(folder / log_name(8)).to_pylist()
    assert (batch["baseOffset"], batch["deleteHorizonMs"]) == (8, 1_700_000_000_005)


def test_a_sound_batch_beside_damage_is_named(tmp_path: Path) -> None:
    """Its header may be right, and then the damaged bytes had the offset that is missing."""
    damaged = data(12, 1)[:-1] + b"?"
    first = b"".join(data(offset, 1) for offset in range(8) if offset != 2)
    second = b"".join(data(offset, 1) for offset in range(8, 12)) + damaged + data(2, 1) + data(13)
    folder = put(tmp_path, {log_name(0): first, log_name(8): second})
    records = repair(folder, salvage=True).partitions[0].records
    assert records == (13, 1, len(damaged))
    which = (
        "(and 1 more, among them a sound batch with offset 2 in its header); offset 12 is missing"
    )
    assert which in repaired(folder, salvage=True)


def test_of_a_batch_without_records_no_part_stays(tmp_path: Path) -> None:
    first = kt.batch([kt.Record(b"k", b"v")] * 4, base_offset=0)
    empty = kt.batch([], base_offset=2, last_offset_delta=3)
    folder = put(tmp_path, {log_name(0): first, log_name(2): empty + data(6)})
    repaired(folder)
    assert offsets_in(folder) == [0, 1, 2, 3, 6, 7]


def test_a_log_under_another_name_is_given_its_own(folder: Path) -> None:
    before = files_in(folder)
    (folder / log_name(10)).rename(folder / log_name(15))
    text = repaired(folder)
    assert f"{log_name(10)}: create from {log_name(15)}" in text
    assert files_in(folder) == before


def test_logs_under_each_others_names_are_exchanged(folder: Path) -> None:
    before = files_in(folder)
    for place, name in ((10, "aside"), (20, log_name(10)), ("aside", log_name(20))):
        source = log_name(place) if isinstance(place, int) else place
        (folder / source).rename(folder / name)
    text = repaired(folder)
    assert f"{log_name(10)}: create from {log_name(20)}" in text
    assert files_in(folder) == before


def test_damage_in_a_log_with_a_wrong_name_ends_only_this_log(folder: Path) -> None:
    (folder / log_name(0)).write_bytes(b"".join(SEGMENTS[0][:-1]))
    (folder / log_name(30)).write_bytes(data(8) + data(5))
    text = repaired(folder)
    assert f"{log_name(8)}: create from {log_name(30)}: its offsets begin here" in text
    assert "offsets 5 to 6: InvalidOffsetError: its offsets contradict those of other" in text
    assert offsets_in(folder) == EVERY


def test_what_is_behind_damage_in_a_log_with_a_wrong_name_goes(folder: Path) -> None:
    (folder / log_name(0)).write_bytes(b"".join(SEGMENTS[0][:2]))
    rest = bytearray(b"".join(SEGMENTS[0][2:]))
    rest[70] ^= 1
    (folder / log_name(30)).write_bytes(rest)
    text = repaired(folder)
    assert "186 bytes, offsets 6 to 9: it is behind what is cut away" in text
    assert offsets_in(folder) == [offset for offset in EVERY if not 3 < offset < 10]


def test_batches_that_only_a_log_with_a_wrong_name_has_are_salvaged(folder: Path) -> None:
    (folder / log_name(0)).write_bytes(b"".join(SEGMENTS[0][:-1]))
    (folder / log_name(30)).write_bytes(data(8) + data(5))
    text = repaired(folder, salvage=True)
    assert "offsets 5 to 6: another batch with its offsets stays" in text
    assert offsets_in(folder) == EVERY


def test_records_that_only_an_index_still_knows_are_told(folder: Path) -> None:
    (folder / log_name(10)).write_bytes(b"")
    (partition,) = repair(folder).partitions
    assert [one.text for one in partition.missing] == [
        f"offsets 10 to 19 are missing between {log_name(10)} and {log_name(20)}, but "
        f"{log_name(10, '.index')}, {log_name(10, '.timeindex')} and {log_name(10, '.txnindex')} "
        "have entries"
    ]
    (folder / log_name(10, ".txnindex")).unlink()
    for base in (10, 20):
        (folder / log_name(base, ".timeindex")).unlink()
    (folder / log_name(20)).unlink()
    (folder / log_name(27, ".snapshot")).unlink()
    (partition,) = repair(folder).partitions
    assert [(one.first, one.last) for one in partition.missing] == [(10, 24)]
    assert (
        f"at the log's end: {log_name(20, '.index')} has offsets up to 24"
        in partition.missing[0].text
    )
    for base in (10, 20):
        (folder / log_name(base, ".index")).write_bytes(bytes(80))  # preallocated
    assert [one.last for one in repair(folder).partitions[0].missing] == [22]  # leader epochs


def test_offsets_of_a_batch_that_lies_in_another_segment_are_not_missing(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    for base, batches in {0: [data(0), data(9, 1)], 2: [data(2, 7)], 10: [data(10)]}.items():
        (folder / log_name(base)).write_bytes(b"".join(batches))
    (partition,) = repair(folder).partitions
    assert [(one.first, one.last) for one in partition.missing] == [(9, 9)]
    plan = repair(folder, salvage=True)
    assert plan.partitions[0].missing == []
    plan.apply()
    assert offsets_in(folder) == list(range(12))


def test_a_log_of_empty_segments_is_empty(folder: Path) -> None:
    for base in SEGMENTS:
        (folder / log_name(base)).write_bytes(b"")
    assert "then: 3 segments, 0 bytes, empty at offset 20" in str(repair(folder))


def test_a_copy_of_another_segment_costs_nothing(folder: Path) -> None:
    shutil.copy(folder / log_name(10), folder / log_name(13))
    text = repaired(folder)
    assert offsets_in(folder) == EVERY
    assert "offsets 10 to 19, with its indexes and snapshot: an equal batch stays" in text
    shutil.copy(folder / log_name(0), folder / log_name(999))
    repaired(folder)
    assert offsets_in(folder) == EVERY
    assert not (folder / log_name(999)).exists()


def test_a_segment_too_wide_for_its_indexes_is_split(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    far = 2**31 + 5
    folder.mkdir()
    (folder / log_name(0)).write_bytes(data(0) + data(far) + data(far + 2))
    repaired(folder)
    assert (folder / log_name(far)).read_bytes() == data(far) + data(far + 2)
    assert offsets_in(folder) == [0, 1, far, far + 1, far + 2, far + 3]


def test_a_folder_without_a_segment_is_given_one(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 42\n")
    repaired(folder)
    assert sorted(files_in(folder)) == [
        log_name(42, suffix) for suffix in (".index", ".log", ".timeindex")
    ]
    assert kafkajit.Log(folder).end_offset == 42


CHECKPOINTS = (
    "cleaner-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)


def test_checkpoints_are_not_beyond_the_logs_end(folder: Path) -> None:
    for name in CHECKPOINTS:
        (folder.parent / name).write_text("0\n3\nother 0 99\norders 0 25\norders 1 99\n")
    assert not repair(folder).is_needed
    text = repaired(folder, truncate_to=14)
    assert text.count("orders-0: 25 becomes 13") == 3
    for name in CHECKPOINTS:
        text = (folder.parent / name).read_text()
        assert text == "0\n3\nother 0 99\norders 0 13\norders 1 99\n"


def test_a_checkpoint_that_cannot_be_read_is_left_alone(folder: Path) -> None:
    (folder.parent / CHECKPOINTS[0]).write_text("noise")
    plan = repair(folder)
    assert not plan.is_needed
    assert CHECKPOINTS[0] in plan.partitions[0].obstacles[0]


@pytest.mark.parametrize(
    ("offset", "kept", "end"),
    [
        (0, [], 0),
        (1, [], 0),  # a batch goes whole
        (2, [0, 1], 2),
        (9, EVERY[:8], 8),
        (10, EVERY[: EVERY.index(10)], 10),
        (24, EVERY[: EVERY.index(23)], 23),
    ],
)
def test_a_log_is_cut_at_an_offset(folder: Path, offset: int, kept: list[int], end: int) -> None:
    repaired(folder, truncate_to=offset)
    assert offsets_in(folder) == kept
    assert kafkajit.Log(folder).end_offset == end
    assert not repair(folder, truncate_to=offset).is_needed


def test_to_cut_a_log_behind_its_end_changes_nothing(folder: Path) -> None:
    assert not repair(folder, truncate_to=27).is_needed


def test_a_log_cut_before_its_start_begins_there(tmp_path: Path) -> None:
    folder = make_partition(tmp_path / "orders-0", {20: SEGMENTS[20]})
    starts = tmp_path / "log-start-offset-checkpoint"
    starts.write_text("0\n2\norders 0 23\norders 1 7\n")
    repaired(folder, truncate_to=5)
    assert sorted(path.name for path in folder.glob("*.log")) == [log_name(5)]
    assert (kafkajit.Log(folder).start_offset, kafkajit.Log(folder).end_offset) == (5, 5)
    assert starts.read_text() == "0\n1\norders 1 7\n"


def test_a_log_that_ends_before_its_start_begins_anew_there(folder: Path) -> None:
    (folder.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 30\n")
    assert "the log ends at 27, before its start 30" in repaired(folder)
    assert (kafkajit.Log(folder).start_offset, kafkajit.Log(folder).end_offset) == (30, 30)


def test_what_is_replaced_or_removed_is_kept(folder: Path) -> None:
    flip(folder / log_name(10), 65)
    before = files_in(folder)
    (kept,) = repair(folder).apply()
    gone = {
        name: content for name, content in before.items() if files_in(folder).get(name) != content
    }
    assert files_in(kept / "orders-0") == gone
    assert {log_name(10), log_name(20), log_name(10, ".index")} <= set(gone)


def test_a_repaired_log_is_as_old_as_it_was(folder: Path) -> None:
    flip(folder / log_name(10), 65)
    os.utime(folder / log_name(10), (1, 2))
    repaired(folder, salvage=True)
    assert (folder / log_name(10)).stat().st_mtime == 2


def test_all_partitions_of_a_log_dirs_folder_are_repaired(folder: Path) -> None:
    root = folder.parent
    (root / "meta.properties").write_text("version=1\n")
    for name in CHECKPOINTS:
        (root / name).write_text("0\n2\norders 0 25\norders 1 25\n")
    for name in ("orders-1", f"orders-2.{'0' * 32}-delete", "notes"):
        shutil.copytree(folder, root / name)
    for name in ("orders-0", "orders-1", f"orders-2.{'0' * 32}-delete"):
        flip(root / name / log_name(20), 65)
    plan = repair(root)
    assert [partition.folder.name for partition in plan.partitions] == ["orders-0", "orders-1"]
    assert len(plan.apply()) == 2
    assert to_do(repair(root)) == []
    for name in CHECKPOINTS:
        assert (root / name).read_text() == "0\n2\norders 0 20\norders 1 20\n"


def test_a_partition_that_cannot_be_planned_does_not_stop_the_others(folder: Path) -> None:
    root = folder.parent
    for name in ("orders-1", "orders-2", "orders-3"):
        shutil.copytree(folder, root / name)
    (root / "orders-1" / log_name(10)).write_bytes(b"<html></html>" * 9)
    (root / "orders-2" / log_name(99)).symlink_to("nowhere")
    flip(root / "orders-3" / log_name(20), 65)
    plan = repair(root)
    assert [partition.folder.name for partition in plan.partitions] == ["orders-0", "orders-3"]
    first, second = plan.problems
    assert "orders-1" in str(first)
    assert "orders-2" in str(second)
    assert "a link to nowhere, which does not exist: remove the link, or" in str(second)
    assert "problem: " in str(plan)
    assert "2 problems" in repr(plan)
    with pytest.raises(kafkajit.NotALogError) as raised:
        plan.apply()
    assert "and 1 more partition: " in raised.value.__notes__[0]
    drop_kept(root / "orders-3")
    assert [partition.is_needed for partition in repair(root).partitions] == [False, False]
    with pytest.raises(kafkajit.NotALogError):
        repair(root / "orders-1")


def test_a_partition_that_cannot_be_changed_does_not_stop_the_others(folder: Path) -> None:
    root = folder.parent
    shutil.copytree(folder, root / "orders-1")
    for name in ("orders-0", "orders-1"):
        flip(root / name / log_name(20), 65)
    plan = repair(root)
    flip(folder / log_name(20), 66)
    with pytest.raises(KafkaJitError, match="files have changed since"):
        plan.apply()
    assert [partition.is_needed for partition in repair(root).partitions] == [True, False]


def test_a_place_without_logs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not a partition's folder"):
        repair(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        repair(tmp_path / "orders-0")


def test_only_a_log_that_is_named_is_truncated(folder: Path) -> None:
    for place in (folder.parent, f"file://{folder.parent}"):
        with pytest.raises(ValueError, match="truncate_to is for one partition"):
            repair(place, truncate_to=3)
    assert repair(f"file://{folder}", truncate_to=3).partitions[0].folder == folder


def test_a_plan_is_of_the_files_that_it_was_made_for(folder: Path) -> None:
    flip(folder / log_name(20), 65)
    plan = repair(folder)
    flip(folder / log_name(20), 66)
    before = files_in(folder)
    with pytest.raises(KafkaJitError, match="files have changed since"):
        plan.apply()
    assert files_in(folder) == before


def test_many_files_wait_on_the_disk_to_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_in(folder)
    for path in [*folder.glob("*index"), *folder.glob("*.snapshot")]:
        path.unlink()
    monkeypatch.setattr("kafkajit.upkeep.repair.file_repair._IN_MEMORY", 20)
    repaired(folder)
    assert files_in(folder) == before


def test_a_locked_folder_is_left_alone_unless_by_force(folder: Path) -> None:
    flip(folder / log_name(20), 65)
    (folder.parent / ".lock").touch()
    holder = "import fcntl, sys, time; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX)"
    command = [sys.executable, "-c", f"{holder}; print(1, flush=True); time.sleep(600)"]
    with subprocess.Popen([*command, folder.parent / ".lock"], stdout=subprocess.PIPE) as broker:
        try:
            assert broker.stdout is not None
            broker.stdout.readline()
            with pytest.raises(LockedError):
                repair(folder).apply()
            repair(folder).apply(force=True)
        finally:
            broker.kill()
    check_soundness(folder)


def test_a_disk_that_is_full_changes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flip(folder / log_name(20), 65)
    before = files_in(folder)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    plan = repair(folder, salvage=True)
    monkeypatch.setattr("os.copy_file_range", full)
    with pytest.raises(OSError, match="No space left"):
        plan.apply()
    assert files_in(folder) == before
    assert [path.name for path in folder.iterdir() if path.is_dir()] == []


def test_a_file_system_that_copies_no_ranges_is_no_obstacle(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("os.copy_file_range", unknown)
    flip(folder / log_name(20), 65)
    repaired(folder, salvage=True)
    assert offsets_in(folder) == [offset for offset in EVERY if offset not in (20, 21)]


@pytest.mark.parametrize("left", [READY, STAGED, DONE])
def test_what_an_interrupted_change_has_left_is_something_to_do(folder: Path, left: str) -> None:
    (folder / left).mkdir()
    plan = repair(folder)
    assert plan.is_needed
    assert left in str(plan)
    if left == STAGED:
        plan.apply()
        assert not repair(folder).is_needed


def killed_at(step: int, plan: kafkajit.RepairPlan) -> bool:
    """Apply a plan in a process that dies after `count` calls; whether it was done before that."""
    process = os.fork()
    if process == 0:
        calls = count()

        def counted(really: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **named: Any) -> Any:
                if next(calls) == step:
                    os._exit(9)
                return really(*arguments, **named)

            return call

        for name in ("rename", "unlink", "rmdir", "link", "mkdir", "fsync", "chmod", "utime"):
            setattr(os, name, counted(getattr(os, name)))
        plan.apply()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0


@pytest.mark.thorough
@pytest.mark.skipif(NO_JIT, reason="the same files are renamed")
def test_a_repair_that_is_killed_anywhere_is_finished_by_the_next(
    folder: Path, tmp_path: Path
) -> None:
    flip(folder / log_name(0), len(SEGMENTS[0][0]) + 65)
    (folder / log_name(10, ".index")).unlink()
    (folder.parent / CHECKPOINTS[0]).write_text("0\n1\norders 0 99\n")
    original = tmp_path / "damaged"
    shutil.copytree(folder.parent, original)
    repair(folder, salvage=True).apply()
    drop_kept(folder)
    expected = files_in(folder) | files_in(folder.parent)
    for step in count(0, 3):
        shutil.rmtree(folder.parent)
        shutil.copytree(original, folder.parent)
        if killed_at(step, repair(folder, salvage=True)):
            break
        repair(folder, salvage=True).apply()
        (folder.parent / ".lock").unlink(missing_ok=True)  # left by a process that died
        assert to_do(repair(folder, salvage=True)) == []
        assert files_in(folder) | files_in(folder.parent) == expected
    assert step > 50


@pytest.mark.thorough
@given(st.data())
def test_noise_in_any_file_is_repaired(
    tmp_path_factory: pytest.TempPathFactory, choice: st.DataObject
) -> None:
    folder = make_partition(tmp_path_factory.mktemp("noise") / "orders-0", SEGMENTS)
    for _ in range(choice.draw(st.integers(1, 3))):
        path = choice.draw(st.sampled_from(sorted(folder.iterdir())))
        content = bytearray(path.read_bytes())
        at = choice.draw(st.integers(0, len(content)))
        content[at : at + choice.draw(st.integers(0, 40))] = choice.draw(st.binary(max_size=40))
        path.write_bytes(content)
    salvage = choice.draw(st.booleans())
    repair(folder, salvage=salvage).apply()
    check_soundness(folder)
    assert set(offsets_in(folder)) <= set(EVERY) or not salvage


def test_the_sample_is_a_folder_with_things_to_repair() -> None:
    assert repair(Path(kt.SAMPLE)).is_needed


def test_logs_of_real_brokers_are_right(tmp_path: Path) -> None:
    for name in ("segments-0", "transactions-0", "idempotent-0", "gzip-0"):
        if (DATA / "v2" / name).exists():
            shutil.copytree(DATA / "v2" / name, tmp_path / name)
            assert not kafkajit.repair(tmp_path / name).is_needed


@pytest.mark.parametrize("name", [1, 3, 10, 99])
@pytest.mark.parametrize("kind", ["link", "absolute link", "hard link"])
@pytest.mark.parametrize("salvage", [False, True])
def test_a_link_to_a_segment_counts_once_and_is_not_written_through(
    tmp_path: Path, name: int, kind: str, salvage: bool
) -> None:
    batches = {0: [data(0), data(2), data(4)], 6: [data(6)]}
    folder = make_partition(tmp_path / "kafka" / "orders-0", batches)
    log, other = folder / log_name(0), folder / log_name(name)
    before = files_in(folder)
    if kind == "hard link":
        other.hardlink_to(log)
    else:
        other.symlink_to(log if kind == "absolute link" else log.name)
    plan = repair(folder, salvage=salvage)
    what = "a hard link of the file" if kind == "hard link" else "a link to"
    assert to_do(plan) == [
        f"{other.name}: remove: it is {what} {log.name}, whose records count once"
    ]
    plan.apply(keep=False)
    assert files_in(folder) == before
    check_soundness(folder)


def test_a_segment_on_another_disk_is_read_and_its_file_stays(folder: Path, tmp_path: Path) -> None:
    log, target = folder / log_name(10), tmp_path / "elsewhere.log"
    log.rename(target)
    log.symlink_to(target)
    plan = repair(folder)
    assert not plan.is_needed
    note = f"{log.name} is a link to {target}; a repair puts a file in its place"
    assert plan.partitions[0].notes == [note]
    flip(target, 65)
    damaged = target.read_bytes()
    assert "offsets from 10 to 11 are missing" in repaired(folder, salvage=True)
    assert not log.is_symlink()
    assert target.read_bytes() == damaged


def test_a_snapshot_from_before_a_compaction_is_right(tmp_path: Path) -> None:
    fields = {"producer_id": 13, "producer_epoch": 0, "base_sequence": 0, "base_offset": 0}
    records = [kt.Record(b"a", b"1"), kt.Record(b"b", b"2", timestamp=1005)]
    before = kt.batch(records, base_timestamp=1000, **fields)  # type: ignore[arg-type]
    folder = make_partition(tmp_path / "kafka" / "orders-0", {0: [before], 2: [data(2)]})
    # What the cleaner leaves of the batch is older than the batch that the snapshot knows.
    after = kt.batch(records[:1], base_timestamp=1000, last_offset_delta=1, **fields)  # type: ignore[arg-type]
    (folder / log_name(0)).write_bytes(after)
    for suffix in (".index", ".timeindex"):
        (folder / log_name(0, suffix)).unlink()
    repair(folder).apply()
    drop_kept(folder)
    snapshot = folder / log_name(2, ".snapshot")
    snapshot.write_bytes(kt.producer_snapshot([kt.Producer(13, 0, 1, 1, 1, 1005)]))
    assert to_do(repair(folder)) == []


def test_files_that_wait_to_be_deleted_are_no_repair(folder: Path) -> None:
    for name in (log_name(0, ".log.deleted"), log_name(3, ".snapshot.deleted")):
        (folder / name).write_bytes(b"x")
        assert not repair(folder).is_needed
    (folder / log_name(10, ".index")).unlink()
    repaired(folder)
    assert not [*folder.glob("*.deleted")]


def test_the_untrimmed_indexes_of_the_metadata_log_are_no_repair(tmp_path: Path) -> None:
    for name, is_needed in (("__cluster_metadata-0", False), ("orders-0", True)):
        folder = make_partition(tmp_path / "kafka" / name, {0: [data(0), data(2)]})
        with (folder / log_name(0, ".index")).open("ab") as index:
            index.write(bytes(4096))
        assert repair(folder).is_needed == is_needed


def test_what_salvage_keeps_is_told_if_the_damage_is_before_the_log_start(folder: Path) -> None:
    checkpoint = folder.parent / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n1\norders 0 15\n")
    flip(folder / log_name(0), 20)
    plan = repair(folder)
    assert "the log ends at 0, before its start 15" in str(plan)
    assert re.search(r"\d+ sound batches behind damage; --salvage keeps them", str(plan))
    text = repaired(folder, salvage=True)
    assert "before its start" not in text
    assert offsets_in(folder)[-1] == 26


def test_a_log_with_the_last_of_all_offsets_is_refused(tmp_path: Path) -> None:
    """A broker of 4.1.1 that loads such a log deletes all of its segments."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    first = 2**63 - 3
    one, two = ([kt.Record(b"k")] * count for count in (1, 2))
    batches = kt.batch(one, base_offset=first) + kt.batch(two, base_offset=first + 1)
    (folder / log_name(first)).write_bytes(batches)
    with pytest.raises(kafkajit.InvalidOffsetError, match="which is the last one there can be"):
        kafkajit.repair(folder)
    kafkajit.repair(folder, truncate_to=2**63 - 1).apply()
    assert offsets_in(folder) == [first]
    assert log_name(first + 1, ".snapshot") in files_in(folder)


@pytest.mark.parametrize("are_single", [False, True])
def test_gaps_that_compaction_has_left_in_a_followers_last_segment_are_no_damage(
    are_single: bool, tmp_path: Path
) -> None:
    """A follower that has fetched them has no checkpoint of a cleaner, and may have crashed."""
    batches = [
        kt.batch(
            [kt.Record(value=b"v", offset_delta=delta) for delta in deltas],
            base_offset=base,
            last_offset_delta=deltas[-1] if are_single else deltas[-1] + 1,
        )
        for base, deltas in ((500, (0,)), (504, (0,)), (509, (0,)), (515, (0,)), (530, (0,)))
    ]
    folder = tmp_path / "orders-0"
    folder.mkdir()
    first = kt.batch([kt.Record(value=b"v")] * 9, base_offset=491)
    (folder / log_name(491)).write_bytes(first)
    (folder / log_name(500)).write_bytes(b"".join(batches))
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\norders 0 500\n")
    repair(folder).apply()
    assert offsets_in(folder) == [*range(491, 500), 500, 504, 509, 515, 530]


OLD = sorted(path.name for path in (DATA / "old").iterdir() if path.is_dir())


@pytest.mark.parametrize("has_checkpoint", [False, True])
@pytest.mark.parametrize("name", OLD)
def test_sets_of_messages_of_old_brokers_are_sound(
    name: str, has_checkpoint: bool, tmp_path: Path
) -> None:
    """The header of a compressed set has its last offset: there is no gap before it."""
    folder = tmp_path / name
    shutil.copytree(DATA / "old" / name, folder)
    topic, _, number = name.rpartition("-")
    if has_checkpoint:
        text = f"0\n1\n{topic} {number} 1\n"
        (tmp_path / "replication-offset-checkpoint").write_text(text)
    before = offsets_in(folder)
    assert "  0 records lost, " in str(repair(folder))
    repair(folder).apply()
    assert offsets_in(folder) == before
