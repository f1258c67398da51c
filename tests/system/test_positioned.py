"""Reads at positions, with the system's calls and without them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kafkajit.system.positioned import copy_range, read_at, read_into

CONTENT = bytes(range(256)) * 40


@pytest.fixture(params=["POSIX", "Windows"])
def file(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[int]:
    if request.param == "Windows":
        for name in ("pread", "preadv", "copy_file_range"):
            monkeypatch.delattr(os, name)
    (tmp_path / "source").write_bytes(CONTENT)
    opened = os.open(tmp_path / "source", os.O_RDONLY)
    yield opened
    os.close(opened)


def test_many_threads_read_one_file(file: int) -> None:
    positions = range(0, len(CONTENT), 7)
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda position: read_at(file, 7, position), positions)
    assert b"".join(found) == CONTENT


def test_memory_is_filled_as_far_as_the_file_goes(file: int) -> None:
    memory = bytearray(100)
    assert read_into(file, memoryview(memory), len(CONTENT) - 60) == 60
    assert bytes(memory) == CONTENT[-60:] + bytes(40)
    assert read_into(file, memoryview(memory), len(CONTENT)) == 0


def test_a_range_is_copied_to_the_end_of_a_file(file: int, tmp_path: Path) -> None:
    with (tmp_path / "target").open("wb") as target:
        for start, end in ((10, 3000), (4000, len(CONTENT))):
            while start < end:
                start += copy_range(file, target.fileno(), end - start, start)
    assert (tmp_path / "target").read_bytes() == CONTENT[10:3000] + CONTENT[4000:]


def test_a_disk_that_is_full_is_reported(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    name = "copy_file_range" if hasattr(os, "copy_file_range") else "write"
    monkeypatch.setattr(os, name, full)
    with pytest.raises(OSError, match="No space left"):
        copy_range(file, file, 10, 0)
