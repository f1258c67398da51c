"""Progress is shown after a moment on a terminal's stderr, fits it, and vanishes."""

from __future__ import annotations

import fcntl
import io
import struct
import sys
import termios
import time
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from terminal import Terminal, environment

from kafkajit.cli.progress import Progress

NAME = "a-topic-with-quite-a-long-name-0"


class Screen(io.StringIO):
    """A terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        return self.getvalue().split("\r")[1:]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(Progress, "_WAIT", 0.01)
    return Screen()


def wait_for(screen: Screen, lines: int = 1) -> None:
    end = time.monotonic() + 20
    while len(screen.lines()) < lines and time.monotonic() < end:
        time.sleep(0.01)


def shown(screen: Screen) -> str:
    """The line for 1 of 3 partitions, and for a part of the second."""
    with redirect_stderr(screen), Progress() as progress:
        progress.count(1, 3, "partitions")
        progress.update("orders-1", 24_000_000, 48_000_000)
        wait_for(screen)
    return screen.lines()[0].rstrip()


def test_a_line_has_the_amount_of_the_whole_and_of_the_step(screen: Screen) -> None:
    assert shown(screen) == (
        " 50% ▕██████████          ▏ 1 of 3 partitions, orders-1: 24.0 MB of 48.0 MB"
    )


def test_without_an_amount_it_shows_the_time(screen: Screen) -> None:
    with redirect_stderr(screen), Progress() as progress:
        progress.update("listing", 0, 0)
        wait_for(screen)
    assert screen.lines()[0].rstrip() == "listing, 0 s"


def test_it_vanishes(screen: Screen) -> None:
    shown(screen)
    assert screen.getvalue().endswith("\r" + " " * 79 + "\r")


@pytest.mark.parametrize("columns", [10, 40, 60, 80, 120])
def test_a_line_is_never_wider_than_the_terminal(
    columns: int, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with redirect_stderr(screen), Progress() as progress:
        progress.count(1, 3000, "partitions")
        progress.update(NAME, 24_000_000, 48_000_000)
        wait_for(screen)
    assert {len(line) for line in screen.lines()[:-1]} == {columns - 1}
    assert screen.lines()[0].startswith("  0%")


def test_a_source_is_asked_for_the_amount(screen: Screen) -> None:
    done = 0

    def amount() -> tuple[str, int, int]:
        nonlocal done
        done += 1
        return "log", done, 100

    with redirect_stderr(screen), Progress() as progress:
        progress.watch(amount)
        wait_for(screen, 2)
    assert "log: 1 of 100 bytes" in screen.lines()[0].replace("1 byte of", "1 of")
    assert done > 1


def test_output_hides_it_for_a_moment(screen: Screen) -> None:
    with redirect_stderr(screen), Progress() as progress:
        progress.update("log", 1, 2)
        wait_for(screen)
        progress.hide()
        assert screen.getvalue().endswith("\r" + " " * 79 + "\r")
        wait_for(screen, 4)
    assert "log" in screen.lines()[3]


@pytest.mark.parametrize("reason", ["pipe", "dumb", "output"])
def test_nothing_is_shown(reason: str, screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason == "pipe":
        monkeypatch.setattr(screen, "isatty", lambda: False)
    elif reason == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    else:  # which goes to the terminal itself
        monkeypatch.setattr(sys, "stdout", Screen())
    with redirect_stderr(screen), Progress(before_output=reason != "output") as progress:
        progress.update("log", 1, 2)
        time.sleep(0.1)
    assert screen.getvalue() == ""


def test_quick_work_shows_nothing(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Progress, "_WAIT", 1.0)
    with redirect_stderr(screen), Progress() as progress:
        progress.update("log", 1, 2)
    assert screen.getvalue() == ""


PROGRAM = f"""
import time
from kafkajit.cli.progress import Progress

Progress._WAIT = 0.01
with Progress() as progress:
    for done in range(600):
        progress.update({NAME!r}, done * 10**6, 600 * 10**6)
        time.sleep(0.01)
print("the end")
"""


def test_a_resize_does_not_break_lines(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    with Terminal([sys.executable, str(path)], environment(), columns=100) as terminal:
        terminal.read_until("MB/s")
        size = struct.pack("HHHH", 24, 40, 0, 0)
        fcntl.ioctl(terminal._terminal, termios.TIOCSWINSZ, size)
        terminal.read_until("% ")
        terminal.read_until("\r")  # a line that was begun before
        code, rest = terminal.wait()
        assert code == 0
        assert max(map(len, terminal._unread.split("\r"))) <= 40
        assert rest.splitlines()[-1] == "the end"
