"""The number of finished tasks is shown on a terminal's stderr and nowhere else."""

from __future__ import annotations

import io
import time
from contextlib import redirect_stderr
from types import SimpleNamespace
from typing import Any

import pytest

from kafkajit.cli.progress import TaskProgress


class Screen(io.StringIO):
    """A terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(TaskProgress, "_WAIT", 0.01)
    return Screen()


def session(*stages: tuple[int, int]) -> Any:
    """A session with stages, each with its numbers of finished tasks and of all tasks."""
    infos = [SimpleNamespace(numCompletedTasks=done, numTasks=total) for done, total in stages]
    tracker = SimpleNamespace(
        getActiveStageIds=lambda: list(range(len(infos))), getStageInfo=infos.__getitem__
    )
    return SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))


def watch(screen: Screen, spark: Any, rows: int = 0) -> str:
    """The text shown, up to the first text and its clearing."""
    with redirect_stderr(screen), TaskProgress(lambda: spark) as progress:
        progress.add_rows(rows)
        end = time.monotonic() + 10
        while not screen.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    shown = screen.getvalue()
    assert shown.endswith("\r" + " " * 79 + "\r")
    first = shown.split("\r")[1]
    assert len(first) == 79
    return first.rstrip()


def test_tasks_of_all_stages_are_counted(screen: Screen) -> None:
    assert (
        watch(screen, session((12, 30), (0, 2)))
        == " 37% ▕███████▌            ▏ 12 of 32 tasks, 0 s"
    )


def test_written_rows_are_counted(screen: Screen) -> None:
    assert watch(screen, session((1, 1)), 12_345).endswith("▏ 1 of 1 task, 12,345 rows, 0 s")


def test_before_there_are_tasks_it_shows_what_is_awaited(screen: Screen) -> None:
    assert watch(screen, None) == " starting Spark, 0 s"


def test_without_stages_it_plans(screen: Screen) -> None:
    assert watch(screen, session()) == " planning, 0 s"


def test_bars_become_ascii_if_they_cannot_be_printed(screen: Screen) -> None:
    screen.encoding = "ascii"  # type: ignore[misc]
    assert watch(screen, session((1, 2))) == " 50% [##########          ] 1 of 2 tasks, 0 s"


def test_a_pipe_sees_nothing(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "isatty", lambda: False)
    with redirect_stderr(screen), TaskProgress(lambda: session((1, 2))):
        time.sleep(0.1)
    assert screen.getvalue() == ""


def test_quick_answers_come_without_a_flicker(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TaskProgress, "_WAIT", 5)
    with redirect_stderr(screen), TaskProgress(lambda: session((1, 2))):
        pass
    assert screen.getvalue() == ""


def test_a_spark_that_has_ended_is_somebody_elses_to_report(screen: Screen) -> None:
    def gone() -> Any:
        raise ConnectionError

    with redirect_stderr(screen), TaskProgress(gone):
        time.sleep(0.1)
    assert screen.getvalue() == ""
