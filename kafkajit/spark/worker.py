"""How our code lives in a Python worker of Spark: its errors, its log and its garbage."""

from __future__ import annotations

import gc
import logging
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


@cache
def _leave_modules_alone() -> None:
    """Take what is alive now out of the collector's sight, once.

    A worker collects garbage after each task, and numba's modules make that 65 ms.
    """
    gc.freeze()
