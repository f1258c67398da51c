"""Calls SQL functions from Python, as functions of columns, without registration."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec

import pyarrow as pa
import pyspark
from pyspark.sql.functions import col, lit
from pyspark.sql.pandas.types import from_arrow_type

from kafkajit.spark.catalogue import FUNCTIONS
from kafkajit.spark.descriptions import docstring
from kafkajit.spark.local.java import INSTALL_SPARK
from kafkajit.spark.worker import AckOnUnpickle

try:
    from pyspark.sql.pandas.functions import arrow_udf
except ImportError:
    raise ImportError(
        f"kafkajit needs Spark 4.1 or newer, and this is {pyspark.__version__}: older ones have no "
        f"functions of Arrow arrays; run {INSTALL_SPARK}"
    ) from None

if TYPE_CHECKING:
    from pyspark.sql import Column

    ColumnOrName = Column | str

P = ParamSpec("P")
Arguments = tuple[Any, ...]


def sql_function(arguments: Callable[P, Arguments]) -> Callable[P, Column]:
    """A function of columns, made of one that lists the SQL function's arguments.

    The SQL function has the same name, and its file in sql/functions becomes the docstring.
    """
    return _function(arguments.__name__, arguments)


def try_twin(function: Callable[P, Column]) -> Callable[P, Column]:
    """The twin of a function that returns NULL if bytes are damaged."""
    arguments: Callable[P, Arguments] = function.__wrapped__  # type: ignore[attr-defined]
    return _function(f"try_{arguments.__name__}", arguments)


def _function(name: str, arguments: Callable[P, Arguments]) -> Callable[P, Column]:
    @wraps(arguments)
    def call(*args: P.args, **kwargs: P.kwargs) -> Column:
        given = list(arguments(*args, **kwargs))
        while given and given[-1] is None:
            given.pop()
        called: Column = arrow_function(name)(*map(_as_column, given))
        return called

    call.__name__ = call.__qualname__ = name
    call.__annotations__ = arguments.__annotations__ | {"return": "Column"}
    call.__signature__ = signature(arguments).replace(  # type: ignore[attr-defined]
        return_annotation="Column"
    )
    call.__doc__ = docstring(name, signature(arguments))
    return call


def _as_column(argument: ColumnOrName | int | None) -> Column:
    """A string names a column; a number or None is a literal."""
    if isinstance(argument, str):
        return col(argument)
    return lit(argument) if argument is None or isinstance(argument, int) else argument


@cache
def arrow_function(name: str) -> Any:
    """The function as Spark registers it."""
    make: Any = arrow_udf  # its overloads have no function with annotated *args
    return make(_deferred(name), from_arrow_type(FUNCTIONS[name].returns))


def _deferred(name: str) -> Any:
    """A function of arrays that is looked up where it runs: a driver loads no kernels."""
    ack = AckOnUnpickle()

    def evaluate(*args: pa.Array, **kwargs: pa.Array) -> pa.Array:
        from kafkajit.spark.catalogue import evaluator

        _ = ack  # pickled with this function
        return evaluator(name)(*args, **kwargs)

    evaluate.__name__ = name
    return evaluate
