"""A broker appends to a log and rolls it between the moments at which readers look."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from pyarrow.fs import FileInfo, FileSelector, LocalFileSystem
from scanning import write_partition

import kafkajit
import kafkajit.testing as kt
from kafkajit.cli import main
from kafkajit.places.location import Location
from kafkajit.places.locations import find_segments


def batch(offset: int) -> bytes:
    return kt.batch([kt.Record(value=b"v")] * 5, base_offset=offset)


LATE = (f"{5:020}", f"{10:020}")  # segments that a listing lacks


def once_listed(monkeypatch: pytest.MonkeyPatch, folder: Path, change: Callable[[], Any]) -> None:
    """Change a folder after a reader has listed it, once."""
    listed = Location.listed
    left = [change]

    def then(self: Location, path: str, **more: bool) -> list[FileInfo]:
        found = listed(self, path, **more)
        if path == str(folder) and left:
            left.pop()()
        return found

    monkeypatch.setattr(Location, "listed", then)


@pytest.fixture(params=["in a batch", "behind a batch"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A log that is being written: the second batch has not come, or not all of it."""
    end = batch(5)[:40] if request.param == "in a batch" else b""
    return write_partition(tmp_path, {0: batch(0) + end})


def offsets(folder: Path) -> list[int]:
    return [*kafkajit.dataset(folder, columns=["offset"]).to_table()["offset"].to_pylist()]


def test_a_log_that_is_rolled_after_it_was_listed_has_no_gap_and_no_warning(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = folder / f"{0:020}.log", folder / f"{10:020}.log"

    def roll() -> None:
        first.write_bytes(batch(0) + batch(5))
        second.write_bytes(batch(10))

    once_listed(monkeypatch, folder, roll)
    assert offsets(folder) == [*range(5)]  # the log as it was
    assert not caplog.records
    assert offsets(folder) == [*range(15)]


def test_a_log_that_is_rolled_while_it_is_listed_is_read_up_to_its_new_segment(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The listing has the old size of one segment, and the next segment."""
    first, second = folder / f"{0:020}.log", folder / f"{10:020}.log"
    second.write_bytes(batch(10)[:70])
    once_listed(monkeypatch, folder, lambda: first.write_bytes(batch(0) + batch(5)))
    assert offsets(folder) == [*range(10)]
    assert not caplog.records


def test_the_size_of_a_log_at_rest_is_not_asked_for_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for offset in (10, 15):
        (folder / f"{offset:020}.log").write_bytes(batch(offset))
    for path in folder.iterdir():
        os.utime(path, (1_700_000_000, 1_700_000_000))
    stat = os.stat
    monkeypatch.setattr(
        "kafkajit.places.locations.os.stat",
        lambda path, **more: (
            pytest.fail("asked") if str(path).endswith(".log") else stat(path, **more)
        ),
    )
    assert len(find_segments([str(folder)])[0]) == 3


@pytest.mark.parametrize("command", ["info", "grep", "tail", "export", "report"])
def test_commands_raise_no_alarm_while_a_broker_writes(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_partition(tmp_path, {0: batch(0)})
    stopped = threading.Event()

    def write() -> None:
        offset, path = 5, folder / f"{0:020}.log"
        while not stopped.is_set() and offset < 20_000:
            content = batch(offset)
            with path.open("ab", buffering=0) as file:
                file.write(content[:40])
                file.write(content[40:])
            offset += 5
            if offset % 25 == 0:
                path = folder / f"{offset:020}.log"
                path.touch()

    writer = threading.Thread(target=write)
    writer.start()
    words = {
        "info": ["info", str(tmp_path)],
        "grep": ["grep", "-c", "v", str(tmp_path)],
        "tail": ["tail", "-n", "all", str(tmp_path)],
        "export": ["export", str(tmp_path), "-o", str(tmp_path / "out"), "--to", "csv"],
        "report": ["report", "--quick", "--format", "json", str(tmp_path)],
    }[command]
    try:
        for _ in range(3):
            assert main(words) == 0
            assert capsys.readouterr().err == ""
    finally:
        stopped.set()
        writer.join()


@pytest.mark.parametrize("command", ["info", "report"])
def test_a_listing_that_lacks_segments_made_meanwhile_is_no_alarm(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A folder to which files are added is listed with a later one, and without earlier ones."""
    folder = write_partition(tmp_path, {5 * number: batch(5 * number) for number in range(5)})
    listed = Location.listed
    monkeypatch.setattr(
        Location,
        "listed",
        lambda self, path, **more: [
            file for file in listed(self, path, **more) if file.base_name[:20] not in LATE
        ],
    )
    words = [command, "--format", "json", str(tmp_path)] + ["--quick"] * (command == "report")
    assert main(words) == 0
    assert capsys.readouterr().err == ""
    for name in LATE:
        (folder / f"{name}.log").unlink()
    assert main(words) == 1
    assert "offsets 5 to 14 are missing" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["grep", "tail", "export"])
def test_a_listing_that_lacks_segments_made_meanwhile_is_not_used(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The system has the last of five segments in its list, and not two that were made before."""
    folder = write_partition(tmp_path / "logs", {5 * at: batch(5 * at) for at in range(5)})
    once = [True]

    def torn(entries: list[Any], name_of: Callable[[Any], str]) -> list[Any]:
        if not once or not any(name_of(entry).endswith(".log") for entry in entries):
            return entries
        once.clear()
        (folder / "made.meanwhile").touch()
        return [entry for entry in entries if name_of(entry)[:20] not in LATE]

    class Disk:
        def get_file_info(self, asked: Any) -> list[FileInfo]:
            found = LocalFileSystem().get_file_info(asked)
            return torn(found, attrgetter("base_name")) if type(asked) is FileSelector else found

    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: torn(listdir(path), str))
    monkeypatch.setattr(Location, "_opened", Disk())
    out = tmp_path / "out.csv"
    words = {
        "grep": ["grep", "-c", "v", str(folder)],
        "tail": ["tail", "-n", "all", str(folder)],
        "export": ["export", str(folder), "-o", str(out)],
    }[command]
    assert main(words) == 0
    found = capsys.readouterr()
    assert found.err == ""
    assert not once
    assert {
        "grep": lambda: found.out.split()[-1] == "25",
        "tail": lambda: len(found.out.splitlines()) == 25,
        "export": lambda: len(out.read_text().splitlines()) == 26,
    }[command]()
