"""Runs work that can be stopped in a thread of its own, while the main thread only waits.

A call into Java that is interrupted leaves its answer in the connection, where the next call finds
it. Therefore another thread calls Spark. On Ctrl-C a third thread cancels the work, whose call then
ends like any failed call.
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

# Seconds between two attempts to cancel: between two jobs there is nothing to cancel.
_BETWEEN_ATTEMPTS = 0.2
# Seconds to wait for the work's end. Planning cannot be cancelled, and is then left to itself.
_PATIENCE = 3.0


class Terminated(BaseException):
    """The process has received SIGTERM."""


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `Terminated` in the main thread if SIGTERM arrives within this context."""

    def terminate(*_: object) -> NoReturn:
        raise Terminated

    previous = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def interrupt_main_thread() -> None:
    """Interrupt the main thread as Ctrl-C does, even while it waits for input.

    On Windows the interrupt comes when the line is finished: input waits there without signals.
    """
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def run_cancellable(work: Callable[[], None], cancel: Callable[[], None]) -> None:
    """Do the work in a thread, and raise what it raises.

    After an interrupt `cancel` is called until the work has ended; then the interrupt is raised.
    """
    raised: list[BaseException] = []
    # An interrupted Thread.join takes the thread for ended (Python 3.11).
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
