"""All partitions of a folder ask for the same checkpoints: each is parsed once, and never stale."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.state import checkpoints
from kafkajit.state.checkpoints import (
    CLEANER_OFFSETS,
    NAMES,
    START_OFFSETS,
    offsets_in,
    offsets_text,
    with_offset,
)
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
    checkpoints._newest.clear()
    paths: list[str] = []
    parse = checkpoints.parse_offsets

    def noted(content: Any, path: str | None = None) -> pa.Table:
        paths.append(path or "")
        return parse(content, path)

    monkeypatch.setattr(checkpoints, "parse_offsets", noted)
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


def five_partitions(root: Path) -> Path:
    """A log.dirs folder with its checkpoints: each partition has a record that is superseded."""
    for number in range(5):
        folder = root / f"orders-{number}"
        folder.mkdir(parents=True)
        for base in range(3):
            log = kt.batch([kt.Record(key=b"k")], base_offset=base)
            (folder / f"{base:020}.log").write_bytes(log)
    for name in NAMES:
        end = 3 if name.startswith("re") else 0
        entries = "".join(f"orders {number} {end}\n" for number in range(5))
        written(root / name, f"0\n5\n{entries}")
    return root


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
    root = five_partitions(tmp_path / "logs")
    main([*command, str(root), *([str(tmp_path)] if command == ["restore"] else [])])
    assert len(parsed) == len(set(parsed))


def test_no_change_parses_one_for_each_partition(tmp_path: Path, parsed: list[str]) -> None:
    root = five_partitions(tmp_path / "logs")
    assert main(["repair", "--apply", str(root)]) == 0
    assert main(["compact", "--apply", str(root)]) == 0
    assert offsets_in(file_at(str(root / CLEANER_OFFSETS))) == {
        ("orders", number): 2 for number in range(5)
    }
    assert len(parsed) == len(set(parsed))


@pytest.mark.parametrize("room", range(5))
def test_many_others_before_them_make_no_difference(
    tmp_path: Path, parsed: list[str], room: int
) -> None:
    for number in range(checkpoints._MOST_PARSED - room):
        folder = tmp_path / f"other{number}"
        folder.mkdir()
        offsets_in(file_at(str(written(folder / START_OFFSETS, "0\n1\na 0 1\n"))))
    root = five_partitions(tmp_path / "logs")
    assert main(["repair", "--apply", str(root)]) == 0
    assert main(["compact", "--apply", str(root)]) == 0
    assert len(parsed) == len(set(parsed))


NAMED = st.tuples(st.sampled_from(["a", "b", "a-1", "orders"]), st.integers(0, 12))


@given(
    st.dictionaries(NAMED, st.integers(-1, 10**18)),
    st.lists(st.tuples(NAMED, st.none() | st.integers(0, 10**18)), max_size=6),
)
def test_another_offset_is_written_in_its_place(
    tmp_path_factory: pytest.TempPathFactory,
    offsets: dict[tuple[str, int], int],
    changes: list[tuple[tuple[str, int], int | None]],
) -> None:
    path = tmp_path_factory.mktemp("logs") / START_OFFSETS
    path.write_bytes(offsets_text((*name, offset) for name, offset in offsets.items()))
    for (topic, partition), offset in changes:
        if offset is None:
            offsets.pop((topic, partition), None)
        else:
            offsets[topic, partition] = offset
        path.write_bytes(with_offset(file_at(str(path)), topic, partition, offset))
        assert path.read_bytes() == offsets_text((*name, at) for name, at in offsets.items())
        checkpoints._newest.clear()
        assert offsets_in(file_at(str(path))) == offsets


@pytest.mark.parametrize(
    "text",
    [
        "0\n2\na  0 1\nb 3 2\n",
        "0\n2\na 0 1\nb 3 2",
        "0\r\n2\r\na 0 1\r\nb 3 2\r\n",
        "00\n2\na 0 1\nb 3 2\n",
    ],
)
def test_text_that_kafka_would_not_write_so_is_written_anew(tmp_path: Path, text: str) -> None:
    path = tmp_path / START_OFFSETS
    path.write_bytes(text.encode())
    assert with_offset(file_at(str(path)), "a", 0, 7) == b"0\n2\na 0 7\nb 3 2\n"
    path.write_bytes(text.encode())
    path.write_bytes(with_offset(file_at(str(path)), "b", 3, None))
    checkpoints._newest.clear()
    assert offsets_in(file_at(str(path))) == {("a", 0): 1}
