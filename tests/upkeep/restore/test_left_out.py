"""A restoration leaves out nothing without a line that names it."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import data
import pytest
from scanning import write_partition

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli import main

TIERED = data.objects() / "aiven-plain" / "remote"
OBJECTS = {"log": ".log", "manifest": ".rsm-manifest", "indexes": ".indexes"}


def batches(first: int, behind: int) -> bytes:
    """Batches of three records with these offsets."""
    return b"".join(
        kt.batch([kt.Record(b"k", b"%d" % (base + place)) for place in range(3)], base_offset=base)
        for base in range(first, behind, 3)
    )


def offsets_in(folder: Path) -> list[int]:
    rows = kafkajit.dataset(str(folder)).to_table(columns=["offset"])
    return sorted(rows["offset"].to_pylist())


def damaged(tmp_path: Path, kind: str, number: int) -> tuple[Path, int]:
    """Tiered storage with a cut object of one of its segments, and that segment's base offset."""
    copy = tmp_path / "tiered"
    shutil.copytree(TIERED, copy)
    log = sorted(copy.rglob("*.log"))[number]
    cut = log.with_suffix(OBJECTS[kind])
    cut.write_bytes(cut.read_bytes()[:-20])
    return copy, int(log.name[:20])


@pytest.mark.parametrize("number", [1, -1], ids=["inside", "the last"])
@pytest.mark.parametrize("kind", OBJECTS)
def test_a_damaged_tiered_segment_is_an_error_that_says_how_to_restore_the_rest(
    kind: str, number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, offset = damaged(tmp_path, kind, number)
    target = tmp_path / "kafka"
    with pytest.raises(kafkajit.RemoteStorageError) as caught:
        kafkajit.restore(source, target)
    assert f"{offset:020}" in str(caught.value.path)
    assert f"with --ending-offset {offset} the log ends before it" in str(caught.value)
    assert main(["restore", "--apply", "--quiet", str(source), str(target)]) == 1
    assert str(caught.value) in capsys.readouterr().err
    assert not list(target.rglob("*.log"))
    kafkajit.restore(source, target, ending_offset=offset).apply()
    assert offsets_in(target) == [one for one in offsets_in(TIERED) if one < offset]


def test_a_damaged_first_tiered_segment_is_left_out_with_a_later_start(tmp_path: Path) -> None:
    source, _ = damaged(tmp_path, "manifest", 0)
    with pytest.raises(
        kafkajit.RemoteStorageError, match=r"with --starting-offset (\d+)"
    ) as caught:
        kafkajit.restore(source, tmp_path / "kafka")
    start = int(str(caught.value).split("--starting-offset ")[1].split()[0])
    kafkajit.restore(source, tmp_path / "kafka", starting_offset=start).apply()
    assert offsets_in(tmp_path / "kafka") == [one for one in offsets_in(TIERED) if one >= start]


def test_other_partitions_are_restored_beside_a_damaged_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, _ = damaged(tmp_path, "log", 1)
    backup = write_partition(tmp_path / "backup", {0: batches(0, 12)}, "clicks-0").parent
    target = tmp_path / "kafka"
    assert main(["restore", "--apply", str(source), str(backup), str(target)]) == 1
    assert "but its manifest lists" in capsys.readouterr().err
    assert sorted(path.parent.name for path in target.rglob("*.log")) == ["clicks-0"]


def test_segments_with_exchanged_names_are_not_restored_without_their_records(
    tmp_path: Path,
) -> None:
    logs = {0: batches(0, 12), 12: batches(24, 36), 24: batches(12, 24), 36: batches(36, 60)}
    folder = write_partition(tmp_path / "backup", logs)
    with pytest.raises(
        kafkajit.InvalidOffsetError,
        match="a broker does not read offsets 12 to 23, which only this one has",
    ) as caught:
        kafkajit.restore(tmp_path / "backup", tmp_path / "kafka")
    assert caught.value.path == str(folder / f"{24:020}.log")
    kafkajit.repair(folder, salvage=True).apply()
    kafkajit.restore(tmp_path / "backup", tmp_path / "kafka").apply()
    assert offsets_in(tmp_path / "kafka") == list(range(60))


def test_a_base_offset_that_lies_hides_no_segment(tmp_path: Path) -> None:
    lie = struct.pack(">q", 100_000) + batches(9, 12)[8:]
    logs = {0: batches(0, 6) + lie, 12: batches(12, 24), 24: batches(24, 36)}
    write_partition(tmp_path / "backup", logs)
    with pytest.raises(kafkajit.InvalidOffsetError, match="offsets 12 to 23, which only this one"):
        kafkajit.restore(tmp_path / "backup", tmp_path / "kafka")
    kafkajit.restore(tmp_path / "backup", tmp_path / "kafka", ending_offset=6).apply()
    assert offsets_in(tmp_path / "kafka") == list(range(6))


def test_a_copy_over_an_older_copy_is_restored(tmp_path: Path) -> None:
    write_partition(
        tmp_path / "backup", {0: batches(0, 12), 6: batches(6, 12), 12: batches(12, 24)}
    )
    kafkajit.restore(tmp_path / "backup", tmp_path / "kafka").apply()
    assert offsets_in(tmp_path / "kafka") == list(range(24))


@pytest.fixture
def incomplete(tmp_path: Path) -> Path:
    """A backup without a segment, with a folder of the brokers' and one of an odd name."""
    backup = tmp_path / "backup"
    logs = {0: batches(0, 12), 24: batches(24, 36)}
    for name in ("orders-0", "__consumer_offsets-0"):
        write_partition(backup, logs, name)
    write_partition(backup, {0: batches(0, 12)}, "old copy")
    return backup


MISSING = "offsets 12 to 23 are missing between 00000000000000000000.log and"
ODD = "old copy: not read, partitions are looked for only in the folder that a path names"


@pytest.mark.parametrize("words", [[], ["--quiet"], ["--format", "json"]], ids=str)
def test_what_a_backup_lacks_is_named_on_stderr_with_exit_code_1(
    words: list[str], incomplete: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "kafka"
    assert main(["restore", "--apply", *words, str(incomplete), str(target)]) == 1
    printed = capsys.readouterr()
    assert MISSING in printed.err
    assert ODD in printed.err
    assert offsets_in(target) == [*range(12), *range(24, 36)]
    if "json" in words:
        document = json.loads(printed.out)
        assert [MISSING in error for error in document["errors"]] == [False, True]
        (left_out,) = document["leftOut"]
        assert left_out["partition"] == "__consumer_offsets-0"


def test_offsets_that_nobody_asks_for_are_not_missed(
    incomplete: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--partition", "orders-0", "--ending-offset", "12"]
    assert main(["restore", "--apply", *words, str(incomplete), str(tmp_path / "kafka")]) == 0
    assert capsys.readouterr().err == ""


def test_a_log_that_ends_before_its_start_is_an_error(tmp_path: Path) -> None:
    write_partition(tmp_path / "backup", {0: batches(0, 12)})
    checkpoint = tmp_path / "backup" / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n1\norders 0 500\n")
    with pytest.raises(kafkajit.CorruptCheckpointError, match="no record would be restored"):
        kafkajit.restore(tmp_path / "backup", tmp_path / "kafka")
