"""The output of repair, retain and compact: lines, a summary alone, or one JSON object."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from terminal import Terminal, command, environment

import kafkajit.testing as kt
from kafkajit.cli import main

COMMANDS = {
    "repair": ["repair"],
    "retain": ["retain", "--config", "retention.bytes=1"],
    "compact": ["compact", "--config", "cleanup.policy=compact"],
}


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A log.dirs folder with two partitions."""
    for name in ("orders-0", "payments-0"):
        shutil.copytree(f"{kt.SAMPLE}/{name}", tmp_path / name)
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(list(words))
    return code, capsys.readouterr().out


@pytest.mark.parametrize(
    ("command_", "summary"),
    [
        ("repair", "2 partitions, 2 to be repaired"),
        ("retain", "2 partitions, 1 of 3 segments to delete, 539 of 2,966 bytes"),
    ],
)
def test_quiet_leaves_the_summary(
    command_: str, summary: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*COMMANDS[command_], "--quiet", str(root)]
    code, out = printed(capsys, *words)
    assert code == 2
    assert out.splitlines()[0] == summary
    assert len(out.splitlines()) == 2  # and how to do it
    code, out = printed(capsys, *words, "--apply")
    assert code == 0
    assert " done" not in out


def test_of_one_partition_quiet_has_a_summary_too(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = printed(capsys, "repair", "--quiet", f"{root}/orders-0")
    assert out.splitlines()[0] == "1 partition, 1 to be repaired"


def document(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code, out = printed(capsys, *words, "--format", "json")
    assert out.count("\n") == 1
    return code, json.loads(out)


def test_json_is_one_object_with_what_is_done_to_each_partition(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, plan = document(capsys, "repair", str(root))
    assert code == 2
    assert (plan["command"], plan["applied"], plan["errors"]) == ("repair", False, [])
    orders, payments = plan["partitions"]
    assert orders["folder"] == f"{root}/orders-0"
    assert payments["folder"] == f"{root}/payments-0"
    assert orders["isNeeded"] is True
    assert {"file": "00000000000000000000.index", "what": "create: it is missing"} in orders[
        "changes"
    ]
    assert (orders["logStartOffset"], orders["logEndOffset"]) == (0, 27)
    code, plan = document(capsys, "repair", "--apply", str(root))
    assert (code, plan["applied"]) == (0, True)
    code, plan = document(capsys, "repair", str(root))
    assert code == 0
    assert [partition["isNeeded"] for partition in plan["partitions"]] == [False, False]


def test_json_has_the_position_of_damage_and_what_is_kept(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = root / "orders-0" / f"{0:020}.log"
    content = bytearray(log.read_bytes())
    content[400] ^= 1
    log.write_bytes(content)
    _, plan = document(capsys, "repair", "--apply", f"{root}/orders-0")
    (orders,) = plan["partitions"]
    assert orders["damage"][0]["position"] == 340
    assert orders["damage"][0]["reason"].startswith("CorruptRecordError: Record is corrupt")
    assert Path(orders["keptIn"]).is_dir()


def test_json_has_removed_segments_and_what_stays_of_others(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, plan = document(capsys, *COMMANDS["retain"], str(root))
    assert code == 2
    (gone,) = plan["partitions"][1]["expired"]
    assert "retention size 1 breach" in gone.pop("reason")
    assert gone == {"baseOffset": 0, "bytes": 539, "largestTimestamp": 1762301340000}
    code, plan = document(capsys, *COMMANDS["compact"], f"{root}/payments-0")
    assert code == 2
    (payments,) = plan["partitions"]
    assert payments["leftAlone"] is None
    assert payments["segments"][0]["logs"] == [f"{0:020}.log"]
    assert payments["segments"][0]["records"] < payments["segments"][0]["recordsBefore"]
    code, plan = document(capsys, "compact", str(root))
    assert code == 0
    assert all("nothing says" in partition["leftAlone"] for partition in plan["partitions"])


def test_errors_are_in_the_object_too(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "orders-0" / "leader-epoch-checkpoint").write_text("odd")
    code, plan = document(capsys, *COMMANDS["retain"], "--config", "retention.ms=0", str(root))
    assert code == 1
    assert len(plan["errors"]) == 1
    assert "orders-0" in plan["errors"][0]
    assert len(plan["partitions"]) == 1


def test_progress_counts_partitions_on_a_terminal(tmp_path: Path) -> None:
    count = 900  # more than a second's work
    for number in range(count):
        shutil.copytree(f"{kt.SAMPLE}/payments-0", tmp_path / f"payments-{number}")
    words = command("repair", "--quiet", str(tmp_path))
    with Terminal(words, environment()) as terminal:
        terminal.read_until(f" of {count} partitions", 120)
        code, rest = terminal.wait(120)
    assert code == 2
    assert f"{count} partitions, {count} to be repaired" in rest


@pytest.mark.parametrize("command_", COMMANDS)
def test_an_unknown_config_is_an_error_that_lists_the_known_ones(
    command_: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*COMMANDS[command_], "--config", "foo=1", str(root)]) == 1
    error = capsys.readouterr().err
    assert "unknown topic config name 'foo'; there are: " in error
    assert "remote.storage.enable" in error
