"""All partitions of a folder ask for the same checkpoints: each is parsed once, and never stale."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.state import checkpoints
from kafkajit.state.checkpoints import NAMES, START_OFFSETS, offsets_in
from kafkajit.storage.stored_file import file_at

HOUR_NS = 3_600_000_000_000


def written(path: Path, text: str, *, age_ns: int = HOUR_NS) -> Path:
    """A checkpoint that has been as it is for some time."""
    path.write_text(text)
    modified = path.stat().st_mtime_ns - age_ns
    os.utime(path, ns=(modified, modified))
    return path


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of checkpoints that are parsed from now on."""
    paths: list[str] = []
    read = checkpoints.read_offsets

    def noted(file: checkpoints.StoredFile) -> checkpoints.Offsets:
        paths.append(file.path)
        return read(file)

    monkeypatch.setattr(checkpoints, "read_offsets", noted)
    return paths


def test_one_that_stays_as_it_is_is_parsed_once(tmp_path: Path, parsed: list[str]) -> None:
    path = written(tmp_path / START_OFFSETS, "0\n2\na 0 1\nb 3 2\n")
    for _ in range(3):
        assert offsets_in(file_at(str(path))) == {("a", 0): 1, ("b", 3): 2}
    assert parsed == [str(path)]


def test_one_that_has_changed_is_parsed_again(tmp_path: Path) -> None:
    path = written(tmp_path / START_OFFSETS, "0\n1\na 0 1\n")
    assert offsets_in(file_at(str(path))) == {("a", 0): 1}
    written(path, "0\n1\na 0 2\n", age_ns=HOUR_NS // 2)
    assert offsets_in(file_at(str(path))) == {("a", 0): 2}


def test_one_that_is_new_can_change_unseen_and_is_parsed_again(tmp_path: Path) -> None:
    path = written(tmp_path / START_OFFSETS, "0\n1\na 0 1\n", age_ns=0)
    seen = path.stat()
    assert offsets_in(file_at(str(path))) == {("a", 0): 1}
    path.write_text("0\n1\na 0 2\n")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))  # within one step of the clock
    assert offsets_in(file_at(str(path))) == {("a", 0): 2}


@pytest.mark.parametrize(
    "command",
    [
        ["compact"],
        ["repair"],
        ["restore"],
        ["retain", "--config", "retention.ms=1"],
        ["report", "--deep", "--format", "json"],
        ["info"],
        ["tail"],
    ],
    ids=lambda command: command[0],
)
def test_no_command_parses_one_for_each_partition(
    tmp_path: Path, parsed: list[str], command: list[str]
) -> None:
    root, numbers = tmp_path / "logs", range(5)
    for number in numbers:
        (root / f"orders-{number}").mkdir(parents=True)
        (root / f"orders-{number}" / f"{0:020}.log").write_bytes(kt.batch([kt.Record(key=b"k")]))
    entries = "".join(f"orders {number} 0\n" for number in numbers)
    for name in NAMES:
        written(root / name, f"0\n5\n{entries}")
    main([*command, str(root), *([str(tmp_path)] if command == ["restore"] else [])])
    assert len(parsed) == len(set(parsed))
