"""A running broker compacts __consumer_offsets: its logs are read again if a segment has gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from corpus import DATA

from kafkajit.report.commits import read_commits
from kafkajit.report.tasks import Unread

PATHS = (str(DATA / "internal"),)


class Failing:
    """Runs tasks here, but the first ones of some turns fail."""

    def __init__(self, *problems: Exception) -> None:
        self.problems = list(problems)

    def share(self, cost: int) -> None:
        del cost

    def run(self, tasks: Iterable[Any]) -> Iterator[Any]:
        for task in tasks:
            yield Unread.of(self.problems.pop(0)) if self.problems else task.run()


def test_a_segment_that_has_gone_is_no_problem() -> None:
    runner = Failing(FileNotFoundError("gone"), EOFError("cut"))
    found = read_commits(PATHS, runner=runner)
    assert found
    assert found == read_commits(PATHS)
    assert not runner.problems


def test_other_problems_are_reported_at_once() -> None:
    runner = Failing(OSError("the disk is gone"), OSError("again"))
    assert read_commits(PATHS, runner=runner) == "the disk is gone"
    assert len(runner.problems) == 1


def test_a_segment_that_goes_again_and_again_is_a_problem() -> None:
    assert read_commits(PATHS, runner=Failing(*[EOFError("cut")] * 100)) == "cut"
