"""How our code lives in a Python worker of Spark: its errors, its log and its garbage."""

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

# What users can cause: bytes, names, options, files. Anything else is a bug, and keeps its trace.
_EXPECTED = (ValueError, TypeError, OSError)
# Set where the session collects what workers log (spark.sql.pyspark.worker.logging.enabled).
_COLLECTED = "PYSPARK_SPARK_SESSION_UUID"


@contextmanager
def guest() -> Iterator[None]:
    """What is done within it is our work in Spark's worker.

    An error that a user can cause is reported as its message, without a traceback: Spark's worker
    asks the environment how to report, and ends after it has, so nobody else is affected.

    What we log from INFO on gets to a session that collects it: a worker has nobody to configure
    logging, and would stop at WARNING.
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
    """`guest` for a function."""

    @wraps(function)
    def wrapper(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with guest():
            return function(*args, **kwargs)

    return wrapper


def acknowledge() -> None:
    """Tell the JVM now that we have what it sent: until it knows, it holds back what is next.

    What Spark writes to a worker's TCP socket for a task are two or three small messages. The
    JVM's system keeps the second until the first is acknowledged (Nagle's algorithm), and ours
    waits 40 ms for something to say with the acknowledgement: 40 ms for each task. Linux alone can
    be told, for once; a Unix socket (spark.python.unix.domain.socket.enabled) has no such wait.
    """
    option = getattr(socket, "TCP_QUICKACK", None)
    if option is None:
        return
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        with suppress(OSError):  # where it is no socket, or one of another kind
            connection = socket.socket(fileno=int(name))
            try:
                connection.setsockopt(socket.IPPROTO_TCP, option, 1)
            finally:
                connection.detach()


class Arrival:
    """Comes along with what Spark sends to a worker, and acknowledges it before data comes."""

    def __reduce__(self) -> tuple[Callable[[], Arrival], tuple[()]]:
        return _arrived, ()


def _arrived() -> Arrival:
    acknowledge()
    return Arrival()


@cache
def _leave_modules_alone() -> None:
    """Take what is alive now out of the collector's sight, once.

    A worker collects garbage after each task, and numba's modules make that 65 ms.
    """
    gc.freeze()
