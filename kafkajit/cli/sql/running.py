"""Work that can be stopped: it runs beside the main thread, which only waits.

A call into Java that an interrupt tears apart leaves its answer in the connection, where the next
call finds it. So other threads call Spark. On Ctrl-C one more tells it to cancel, and what was
running ends as any failed call does.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

# Seconds between two attempts to cancel: between jobs there is nothing that could be.
_BETWEEN_ATTEMPTS = 0.2
# Seconds for it to end. Planning cannot be cancelled: it is left alone after that.
_PATIENCE = 3.0


class Terminated(BaseException):
    """Somebody sent SIGTERM."""


@contextmanager
def terminable() -> Iterator[None]:
    """Within it SIGTERM raises `Terminated` in the main thread."""

    def terminate(*_: object) -> NoReturn:
        raise Terminated

    previous = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def do(work: Callable[[], None], cancel: Callable[[], None]) -> None:
    """Do the work in a thread, and raise what it raises.

    On an interrupt `cancel` is called until the work has ended, and then the interrupt is raised.
    """
    raised: list[BaseException] = []
    # Thread.join takes a thread for ended when an interrupt comes between (Python 3.11).
    ended = threading.Event()

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)
        ended.set()

    def keep_cancelling() -> None:
        while not ended.is_set():
            cancel()
            ended.wait(_BETWEEN_ATTEMPTS)

    threading.Thread(target=run, daemon=True).start()
    try:
        ended.wait()
    except (KeyboardInterrupt, Terminated):
        threading.Thread(target=keep_cancelling, daemon=True).start()
        ended.wait(_PATIENCE)
        raise
    if raised:
        raise raised[0]
