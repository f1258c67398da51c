"""Support for code in Spark's Python workers: error reports, logs, sockets and garbage."""

from __future__ import annotations

import gc
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Errors that users can cause: bytes, names, options, files, also those that change while they are
# read (EOFError). Bugs keep their traceback.
_EXPECTED = (ValueError, TypeError, OSError, EOFError)
# Set if the session collects the logs of workers (spark.sql.pyspark.worker.logging.enabled).
_COLLECTED = "PYSPARK_SPARK_SESSION_UUID"


@contextmanager
def in_worker() -> Iterator[None]:
    """Run kafkajit's code in Spark's worker.

    Spark reports an error that a user can cause as its message alone, without a traceback: its
    worker reads this choice from the environment. The worker ends afterwards, so nothing else is
    affected.

    A session that collects logs gets kafkajit's from INFO on. Without this the level would be
    WARNING, because nothing in a worker configures logging.
    """
    if _COLLECTED in os.environ:
        logging.getLogger("kafkajit").setLevel(logging.INFO)
    try:
        yield
    except _EXPECTED:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
    finally:
        if "numba" in sys.modules:
            _leave_modules_alone()


def reported(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """`in_worker` for a function."""

    @wraps(function)
    def wrapper(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with in_worker():
            return function(*args, **kwargs)

    return wrapper


def acknowledge() -> None:
    """Acknowledge the JVM's first message, so that it sends the rest at once.

    Spark writes two or three small messages to a worker's TCP socket for a task. The JVM's system
    holds the second back until the first is acknowledged (Nagle's algorithm), and the worker's
    system delays the acknowledgement by 40 ms, for each task. On Linux one call sends it now. A
    Unix socket (spark.python.unix.domain.socket.enabled) has no such delay.
    """
    option = getattr(socket, "TCP_QUICKACK", None)
    if option is None:
        return
    try:
        names = os.listdir("/proc/self/fd")  # noqa: PTH208
    except OSError:
        return  # not mounted
    for name in names:
        with suppress(OSError):  # not a socket, or not a TCP socket
            connection = socket.socket(fileno=int(name))
            try:
                connection.setsockopt(socket.IPPROTO_TCP, option, 1)
            finally:
                connection.detach()


class AckOnUnpickle:
    """Acknowledges Spark's messages when it is unpickled in a worker, before data comes."""

    def __reduce__(self) -> tuple[Callable[[], AckOnUnpickle], tuple[()]]:
        return _unpickled, ()


def _unpickled() -> AckOnUnpickle:
    acknowledge()
    return AckOnUnpickle()


@cache
def _leave_modules_alone() -> None:
    """Exclude the objects that exist now from garbage collection, once.

    A worker collects garbage after each task. With numba's modules that takes 65 ms.
    """
    gc.freeze()
