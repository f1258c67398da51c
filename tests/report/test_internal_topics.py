"""A running broker compacts internal topics: their logs are read again if a segment has gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from corpus import DATA

from kafkajit.report.groups import OFFSETS_TOPIC
from kafkajit.report.internal_topics import newest_values
from kafkajit.report.newest import Newest
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
    found = newest_values(OFFSETS_TOPIC, PATHS, runner=runner)
    expected = newest_values(OFFSETS_TOPIC, PATHS)
    assert isinstance(found, Newest)
    assert isinstance(expected, Newest)
    assert found.decided
    assert found.decided == expected.decided
    assert not runner.problems


def test_other_problems_are_reported_at_once() -> None:
    runner = Failing(OSError("the disk is gone"), OSError("again"))
    assert newest_values(OFFSETS_TOPIC, PATHS, runner=runner) == "the disk is gone"
    assert len(runner.problems) == 1


def test_a_segment_that_goes_again_and_again_is_a_problem() -> None:
    assert newest_values(OFFSETS_TOPIC, PATHS, runner=Failing(*[EOFError("cut")] * 100)) == "cut"
