from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from partitions import (
    data,
    drop_kept,
    files_in,
    log_name,
    make_partition,
    marker,
    offsets_in,
    transactional,
)

import kafkajit
from kafkajit.cli import main

CONFIG = ["--config", "index.interval.bytes=100"]
SEGMENTS = {0: [data(0), data(2), data(4)], 6: [data(6), data(8), data(10)], 12: [data(12)]}


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = make_partition(tmp_path / "kafka" / "orders-0", SEGMENTS)
    flip(folder / log_name(6), len(data(6)) + 65)
    return folder


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_a_dry_run_lists_each_change_and_the_command_for_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_in(folder)
    assert main(["repair", *CONFIG, str(folder)]) == 2
    assert files_in(folder) == before
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "orders-0:"
    position = len(data(6))
    assert lines[1].startswith(
        f"  {log_name(6)}        cut off at {position}, {2 * position} bytes: CorruptRecordError: "
    )
    assert lines[1].endswith("; offsets from 8 on are missing")
    size, beside = len(data(12)), "with its indexes and snapshot"
    removed = f"remove, {size} bytes, offsets 12 to 13, {beside}: it is behind what is cut away"
    assert f"  {log_name(12)}        {removed}" in lines
    assert lines[-4:] == [
        f"  then: 2 segments, {4 * position} bytes, offsets 0 to 7",
        "  6 records lost, 8 kept",
        "  2 sound batches behind damage; --salvage keeps them",
        f"Nothing was changed. To do it: kafkajit repair --apply {' '.join(CONFIG)} {folder}",
    ]


def test_what_is_applied_is_done_and_not_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["repair", *CONFIG, "--apply", "--salvage", str(folder)]) == 0
    (kept,) = folder.glob(".kafkajit-repair-*")
    assert f"  done; the old files are kept in {kept}" in capsys.readouterr().out
    assert offsets_in(folder) == [*range(8), *range(10, 14)]
    drop_kept(folder)
    for options in ([], ["--apply"]):
        assert main(["repair", *CONFIG, *options, str(folder)]) == 0
        size = sum(path.stat().st_size for path in folder.glob("*.log"))
        assert capsys.readouterr().out == (
            f"orders-0: 3 segments, {size} bytes, offsets 0 to 13: nothing to do\n"
        )
    assert not list(folder.glob(".kafkajit-*"))


def test_missing_segments_are_trouble_that_no_repair_mends(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in folder.glob(f"{log_name(6, '')}*"):
        path.unlink()
    text = f"offsets 6 to 11 are missing between {log_name(0)} and {log_name(12)}"
    for options in ([], ["--apply"]):
        assert main(["repair", *CONFIG, *options, str(folder)]) == 1
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].endswith("offsets 0 to 13: records are missing")
        assert lines[1] == f"  missing: {text}, and nothing tells that the log was compacted"
    assert main(["repair", *CONFIG, "--format", "json", str(folder)]) == 1
    (partition,) = json.loads(capsys.readouterr().out)["partitions"]
    (missing,) = partition["missing"]
    assert (missing["firstMissingOffset"], missing["lastMissingOffset"]) == (6, 11)
    assert missing["isTrouble"]
    assert main(["repair", *CONFIG, "--quiet", str(folder)]) == 1
    assert "1 partition: records are missing" in capsys.readouterr().out
    assert main(["repair", *CONFIG, "--allow-missing", str(folder)]) == 0
    assert text in capsys.readouterr().out
    (folder.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 12\n")
    assert main(["repair", *CONFIG, str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("nothing to do")
    assert (
        "note: offsets 6 to 11 are missing between segments: cleaner-offset-checkpoint" in lines[1]
    )


def test_a_log_is_truncated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repair", *CONFIG, "--truncate-to", "3", "--apply", str(folder)]) == 0
    assert "cut off at" in capsys.readouterr().out
    assert offsets_in(folder) == [0, 1]
    assert main(["repair", "--truncate-to", "-1", str(folder)]) == 1
    assert "Cannot truncate to a negative offset (-1)" in capsys.readouterr().err


def test_lost_markers_are_named_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batches = [data(0), transactional(2, 7), marker(4, 7), transactional(5, 7, 2), marker(7, 7, 1)]
    folder = make_partition(tmp_path / "kafka" / "orders-0", {0: batches})
    flip(folder / log_name(0), len(data(0)) + len(transactional(2, 7)) + 70)
    command = ["repair", *CONFIG, "--salvage"]
    assert main([*command, str(folder)]) == 2
    text = capsys.readouterr().out
    assert "it was aborted, and it becomes committed by the producer's next marker" in text
    assert main([*command, "--format", "json", str(folder)]) == 2
    (found,) = json.loads(capsys.readouterr().out)["partitions"][0]["transactions"]
    assert (found["producerId"], found["was"], found["becomes"]) == (7, "aborted", "committed")
    for option in (["--abort-open"], ["--commit-open", "--abort-producer", "7"]):
        assert main([*command, *option, str(folder)]) == 2
        assert "write the ABORT marker of producer 7 at offset 4" in capsys.readouterr().out
    assert main([*command, "--abort-open", "--apply", str(folder)]) == 0
    assert kafkajit.Log(folder).aborted_transactions(0, 9).to_pylist() == [
        {"producerId": 7, "firstOffset": 2, "lastOffset": 4}
    ]
    assert main(["repair", *CONFIG, "--abort-open", str(folder)]) == 1
    assert "only if the log is salvaged" in capsys.readouterr().err


def test_partitions_that_are_right_are_counted_only(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = folder.parent
    make_partition(root / "orders-1", SEGMENTS)
    monkeypatch.chdir(root)
    assert main(["repair", *CONFIG, "--salvage", "."]) == 2
    output = capsys.readouterr().out
    assert "orders-0:" in output
    assert "orders-1:" not in output
    assert output.splitlines()[-2:] == [
        "2 partitions, 1 to be repaired",
        f"Nothing was changed. To do it: kafkajit repair --apply {' '.join(CONFIG)} --salvage .",
    ]
    assert main(["repair", *CONFIG, "--apply", "."]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 partitions, 1 repaired"
    assert main(["repair", *CONFIG, "."]) == 0
    assert capsys.readouterr().out == "2 partitions, none to be repaired\n"
    assert main(["repair", "--truncate-to", "3", "."]) == 1
    assert "--truncate-to is for one log" in capsys.readouterr().err


def test_an_error_of_one_partition_does_not_stop_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_partition(folder.parent / "orders-1", SEGMENTS)
    flip(folder.parent / "orders-1" / log_name(12), 65)
    access = os.access
    unreadable = str(folder / log_name(6))
    monkeypatch.setattr(
        "os.access", lambda path, mode: str(path) != unreadable and access(path, mode)
    )
    assert main(["repair", *CONFIG, str(folder.parent)]) == 1
    output = capsys.readouterr()
    assert "orders-1:" in output.out
    assert output.err.count("\n") == 1
    assert "no permission to read this file" in output.err
    assert unreadable in output.err


def test_a_wrong_option_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repair", "--config", "no.such=1", str(folder)]) == 1
    error = capsys.readouterr().err
    assert "unknown topic config name 'no.such'" in error
    assert error.count("\n") == 1


def test_a_place_without_logs_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in (tmp_path, tmp_path / "none"):
        for options in ([], ["--apply"]):
            assert main(["repair", *options, str(place)]) == 1
            assert capsys.readouterr().err.count("\n") == 1


def test_an_obstacle_reports_what_is_left_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.parent / "replication-offset-checkpoint").write_text("noise")
    assert main(["repair", *CONFIG, "--apply", "--salvage", str(folder)]) == 1
    capsys.readouterr()
    assert main(["repair", *CONFIG, str(folder)]) == 1
    assert "  obstacle: " in capsys.readouterr().out


def test_a_log_dirs_folder_is_described_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dirs = folder.parent
    make_partition(log_dirs / "orders-1", SEGMENTS)
    spoilt = make_partition(log_dirs / "orders-2", SEGMENTS)
    flip(spoilt / log_name(6), len(data(6)) + 65)
    (log_dirs / "replication-offset-checkpoint").write_text("noise")
    (log_dirs / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (log_dirs / "lost+found").mkdir()
    assert main(["repair", *CONFIG, str(log_dirs)]) == 1
    out = capsys.readouterr().out
    assert out.count("replication-offset-checkpoint: CorruptCheckpointError: ") == 1
    assert "orders-1" not in out
    assert "orders-2:\n" in out
    assert f"{log_dirs}/lost+found: a broker does not start: move this folder away\n" in out


def test_a_terminal_gets_lines_that_fit_it(folder: Path) -> None:
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "kafkajit.cli", "repair", *CONFIG, str(folder)]
    environment = os.environ | {"COLUMNS": "80", "NO_COLOR": "1"}
    with subprocess.Popen(command, stdout=terminal, env=environment) as process:
        os.close(terminal)
        output = b""
        while True:
            try:
                output += os.read(controller, 1 << 16)
            except OSError:  # it has ended
                break
    os.close(controller)
    assert process.returncode == 2
    lines = output.decode().splitlines()
    assert all(len(line) <= 80 for line in lines[:-1])  # a command is not broken
    assert any(line.startswith(" " * 34) for line in lines)


def test_help_explains_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["repair", "--help"])
    assert exit_.value.code == 0
    output = capsys.readouterr().out
    assert "2 if there is something" in output
    assert all(len(line) <= 100 for line in output.splitlines())


def test_the_folder_may_be_named_as_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder, folder.parent / "copy-1")
    monkeypatch.chdir(folder)
    assert main(["repair", *CONFIG, "."]) == 2
    assert capsys.readouterr().out.startswith("orders-0:")


def test_a_plan_prints_what_the_command_does(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.parent / "replication-offset-checkpoint").write_text("noise")
    config = {"index.interval.bytes": 100}
    for words, said in [([], False), (["--salvage"], True), (["--salvage", "--apply"], True)]:
        plan = kafkajit.repair(folder, salvage=said, config=config)
        main(["repair", *CONFIG, *words, str(folder)])
        lines = capsys.readouterr().out.splitlines()
        assert str(plan).splitlines() == lines[:-1]
    main(["repair", *CONFIG, str(folder)])
    plan = kafkajit.repair(folder, config=config)
    assert str(plan) + "\n" == capsys.readouterr().out


def foreign(folder: Path) -> Path:
    path = folder / log_name(6)
    path.write_bytes(b"<html>404</html>")
    return path


def test_a_file_that_is_no_log_is_left_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = foreign(folder)
    before = files_in(folder)
    for options in ([], ["--salvage"], ["--apply"], ["--apply", "--no-keep"]):
        assert main(["repair", *options, str(folder)]) == 1
        assert files_in(folder) == before
        run = capsys.readouterr()
        assert run.out == ""
        assert f"it seems to be HTML at position 0 in {path}: nothing is done" in run.err


def test_a_file_that_is_no_log_is_discarded_if_it_is_named_and_always_kept(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = foreign(folder)
    content = path.read_bytes()
    discard = ["repair", "--salvage", "--discard", str(path)]
    assert main([*discard, "--apply", "--no-keep", str(folder)]) == 1
    assert "--discard keeps what it replaces" in capsys.readouterr().err
    assert path.read_bytes() == content
    with pytest.raises(ValueError, match="discarded files are kept"):
        kafkajit.repair(folder, discard=[path]).apply(keep=False)
    assert path.read_bytes() == content
    assert main([*discard, "--apply", str(folder)]) == 0
    assert path.read_bytes() == b""
    (kept,) = folder.glob(f".kafkajit-repair-*/**/{path.name}*")
    assert kept.read_bytes() == content
    offsets = kafkajit.Log(folder).read(0, columns=["offset"])["offset"].to_pylist()
    assert offsets[0] < 6
    assert offsets[-1] >= 12


def test_a_log_is_not_discarded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / log_name(12)
    assert main(["repair", "--discard", str(path), str(folder)]) == 1
    assert f"{path} is a Kafka log: it is not discarded" in capsys.readouterr().err
    assert main(["repair", "--discard", "x.log", str(folder)]) == 1
    assert "is not a segment of a partition that is to be repaired" in capsys.readouterr().err
