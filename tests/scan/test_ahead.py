"""Tasks read by several threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from kafkajit.scan.ahead import read_ahead

THREADS = pytest.mark.parametrize("threads", [1, 2, 5])


def slowly(task: int) -> Iterator[int]:
    for row in range(task):
        time.sleep(0.001)
        yield row


def reading() -> int:
    return sum("reads ahead" in thread.name for thread in threading.enumerate())


@THREADS
def test_rows_come_in_the_order_of_the_tasks(threads: int) -> None:
    assert list(read_ahead([5, 1, 3], slowly, threads)) == [*range(5), 0, *range(3)]


@THREADS
@pytest.mark.parametrize("taken", [0, 1, 7])
def test_no_thread_reads_on_once_the_rows_are_not_wanted(threads: int, taken: int) -> None:
    rows = read_ahead([5] * 9, slowly, threads)
    for _ in range(taken):
        next(rows)
    rows.close()  # type: ignore[attr-defined]
    # A thread in a kernel would abort a process that ends.
    assert reading() == 0
