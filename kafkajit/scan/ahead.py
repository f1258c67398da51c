"""Tasks read by several threads, and their rows in the order of the tasks."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from queue import Empty, Queue
from typing import Generic, NamedTuple, TypeVar

_Task = TypeVar("_Task")
_Rows = TypeVar("_Rows")

# The batches that each thread reads before someone takes them.
_AHEAD = 2


class _Ended:
    """Stands behind the last rows of a task; `error` is why they are the last."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class _Started(NamedTuple, Generic[_Rows]):
    """A task that is read."""

    rows: Queue[_Rows | _Ended]
    thread: threading.Thread


def read_ahead(
    tasks: Iterable[_Task], read: Callable[[_Task], Iterator[_Rows]], threads: int
) -> Iterator[_Rows]:
    """The rows of all tasks in order, while threads read up to this number of tasks at once.

    An error arrives behind the rows before it. Threads end when the iterator is closed.

    >>> list(read_ahead([3, 2], lambda task: iter(range(task)), threads=2))
    [0, 1, 2, 0, 1]
    """
    if threads == 1:
        for task in tasks:
            yield from read(task)
        return
    stop = threading.Event()
    started: deque[_Started[_Rows]] = deque()
    left = iter(tasks)
    try:
        while True:
            for task in islice(left, threads - len(started)):
                started.append(_start(task, read, stop))
            if not started:
                return
            while not isinstance(rows := started[0].rows.get(), _Ended):
                yield rows
            started.popleft()
            if rows.error is not None:
                raise rows.error
    finally:
        stop.set()
        for one in started:
            _empty(one.rows)  # a thread that waits for room sees that it is to stop
        for one in started:
            one.thread.join()  # Python must not end while a thread is in a kernel


def _start(
    task: _Task, read: Callable[[_Task], Iterator[_Rows]], stop: threading.Event
) -> _Started[_Rows]:
    queue: Queue[_Rows | _Ended] = Queue(_AHEAD)

    def run() -> None:
        try:
            for rows in read(task):
                queue.put(rows)
                if stop.is_set():
                    return
        except BaseException as error:  # the thread that takes the rows raises it
            queue.put(_Ended(error))
        else:
            queue.put(_Ended())

    # A daemon, because a process may end before it has taken all rows.
    thread = threading.Thread(target=run, name="kafkajit reads ahead", daemon=True)
    thread.start()
    return _Started(queue, thread)


def _empty(queue: Queue[_Rows | _Ended]) -> None:
    try:
        while True:
            queue.get_nowait()
    except Empty:
        pass
