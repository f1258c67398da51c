"""How an error of ours reaches a Spark user: as its own message, not as a worker's traceback."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# What users can cause: bytes, names, options, files. Anything else is a bug, and keeps its trace.
_EXPECTED = (ValueError, TypeError, OSError)


@contextmanager
def one_message() -> Iterator[None]:
    """Within it, an error that a user can cause is reported without a traceback.

    Spark's worker asks the environment how to report, and ends after it has: nobody else is
    affected by what is set here.
    """
    try:
        yield
    except _EXPECTED:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


def reported(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """`one_message` for a function."""

    @wraps(function)
    def wrapper(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with one_message():
            return function(*args, **kwargs)

    return wrapper
