"""Mapped memory, with the system's hints and without them."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from kafkajit.system.memory_map import PAGE, give_back, map_file, reserve


@pytest.fixture(params=["Linux", "Windows"], autouse=True)
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "Windows":
        for name in dir(mmap):
            if name.startswith(("MADV_", "MAP_")):
                monkeypatch.delattr(mmap, name)
    return str(request.param)


@pytest.mark.parametrize("leaps", [False, True])
def test_a_file_stays_what_it_is_after_its_pages_were_given_back(
    leaps: bool, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 3 * PAGE)
    with path.open("rb") as file:
        mapped = map_file(file.fileno(), 3 * PAGE - 1, leaps=leaps)
    assert mapped[:] == b"x" * (3 * PAGE - 1)
    give_back(mapped, 0, 2 * PAGE, is_file=True)
    assert mapped[:] == b"x" * (3 * PAGE - 1)


@pytest.mark.parametrize("is_filled", [False, True])
def test_reserved_memory_is_empty_and_keeps_what_is_written(is_filled: bool, system: str) -> None:
    memory = reserve(3 * PAGE, is_filled=is_filled)
    assert memory[:] == bytes(3 * PAGE)
    memory[:] = b"x" * 3 * PAGE
    give_back(memory, 0, PAGE, is_file=False)
    assert memory[PAGE:] == b"x" * 2 * PAGE
    kept = b"x" if system == "Windows" else b"\0"
    assert memory[:PAGE] == kept * PAGE
    assert len(reserve(0, is_filled=False)) == 1
