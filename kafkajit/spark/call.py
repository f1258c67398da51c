"""How a function of SQL is called from Python: as a function of columns, without registration."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import getdoc
from inspect import signature as _signature
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pyarrow as pa
from pyspark.sql.functions import col, lit
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from kafkajit.spark.catalogue import FUNCTIONS
from kafkajit.spark.worker import Arrival

if TYPE_CHECKING:
    from pyspark.sql import Column

    ColumnOrName = Column | str

_Function = TypeVar("_Function", bound="Callable[..., Column]")


def call(name: str, argument: ColumnOrName, *literals: str | None) -> Column:
    """The function of a column, and of what is said once for all rows."""
    given = list(literals)
    while given and given[-1] is None:
        given.pop()
    called: Column = arrow_function(name)(as_column(argument), *map(lit, given))
    return called


def call_columns(name: str, *arguments: ColumnOrName | int) -> Column:
    """The function of columns, each of which may be a number instead."""
    called: Column = arrow_function(name)(*map(as_column, arguments))
    return called


def try_twin(function: _Function, damaged: bytes = b"\xff") -> _Function:
    """The function that gives NULL where the given one raises because of damage.

    Args:
        function: one of the catalogue, of columns
        damaged: bytes that it refuses, for an example
    """
    name = f"try_{function.__name__}"

    def attempt(*arguments: Any, **named: Any) -> Column:
        bound = _signature(function).bind(*arguments, **named)
        return call_columns(name, *bound.args)

    attempt.__name__ = attempt.__qualname__ = name
    attempt.__module__ = function.__module__
    attempt.__signature__ = _signature(function)  # type: ignore[attr-defined]
    attempt.__doc__ = _twins_doc(function, damaged)
    return cast("_Function", attempt)


def _twins_doc(function: Callable[..., Column], damaged: bytes) -> str:
    """What is different: the first line, and an example of damage."""
    name, doc = function.__name__, getdoc(function) or ""
    first, _, rest = doc.partition("\n")
    parameters = rest[rest.index(".. versionadded") : rest.index("Examples:")]
    columns = [
        name
        for name, parameter in _signature(function).parameters.items()
        if "int" not in str(parameter.annotation)
    ]
    numbers = len(_signature(function).parameters) - len(columns)
    schema = ", ".join(f"{column} BINARY" for column in columns)
    row = ", ".join([f"bytearray({damaged!r})"] * len(columns))
    given = ", ".join([f'"{column}"' for column in columns] + ["0"] * numbers)
    return f"""{first.removesuffix(".")}, NULL where it is damaged.

{parameters}Examples:
--------
>>> from kafkajit.spark.functions import try_{name}
>>> df = spark.createDataFrame([({row},)], "{schema}")
>>> df.select(try_{name}({given}).isNull().alias("isNull")).show()
+------+
|isNull|
+------+
|  true|
+------+
"""


def as_column(argument: ColumnOrName | int) -> Column:
    """A name is that of a column, a number is itself."""
    if isinstance(argument, str):
        return col(argument)
    return lit(argument) if isinstance(argument, int) else argument


@cache
def arrow_function(name: str) -> Any:
    """The function of that name in SQL, as Spark registers it."""
    make: Any = arrow_udf  # whose overloads know no function of hinted *args
    return make(_deferred(name), from_arrow_type(FUNCTIONS[name]))


def _deferred(name: str) -> Any:
    """A function of arrays, looked up where it runs: a driver needs none of the kernels."""
    arrival = Arrival()

    def evaluate(*args: pa.Array, **kwargs: pa.Array) -> pa.Array:
        from kafkajit.spark.evaluate import function_of_arrays

        _ = arrival  # comes along
        return function_of_arrays(name)(*args, **kwargs)

    evaluate.__name__ = name
    return evaluate
