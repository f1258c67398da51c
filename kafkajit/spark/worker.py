"""How our code lives in a Python worker of Spark: its errors, and the garbage collector."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# What users can cause: bytes, names, options, files. Anything else is a bug, and keeps its trace.
_EXPECTED = (ValueError, TypeError, OSError)


@contextmanager
def guest() -> Iterator[None]:
    """What is done within it is our work in Spark's worker.

    An error that a user can cause is reported as its message, without a traceback: Spark's worker
    asks the environment how to report, and ends after it has, so nobody else is affected.
    """
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


@cache
def _leave_modules_alone() -> None:
    """Take what is alive now out of the collector's sight, once.

    A worker collects garbage after each task, and numba's modules make that 65 ms.
    """
    gc.freeze()
