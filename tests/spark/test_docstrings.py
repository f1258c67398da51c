"""The examples in the docstrings of `kafkajit.spark` hold."""

from __future__ import annotations

import doctest
import importlib

import pytest
from corpus import REPOSITORY
from pyspark.sql import SparkSession

SPARK = REPOSITORY / "kafkajit" / "spark"
MODULES = sorted(
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
    for path in SPARK.rglob("*.py")
)
# One column for each name of a parameter, for the examples of functions.
COLUMNS = {
    "records": "array(named_struct('key', 'k'))",
    "path": "'orders-3'",
    "partitions": "12",
    "timestamp": "0",
    "base_offset": "0",
    "target_offset": "0",
    **dict.fromkeys(("content", "log", "index", "time_index", "key", "value"), "X''"),
}


@pytest.mark.parametrize("name", MODULES)
def test_every_example_gives_what_it_says(name: str, spark: SparkSession) -> None:
    frame = spark.sql(f"SELECT {', '.join(f'{sql} AS {name}' for name, sql in COLUMNS.items())}")
    results = doctest.testmod(
        importlib.import_module(name),
        extraglobs={"spark": spark, "df": frame},
        optionflags=doctest.NORMALIZE_WHITESPACE,
    )
    assert results.failed == 0


def test_every_function_has_an_example() -> None:
    from kafkajit.spark import functions
    from kafkajit.spark.catalogue import FUNCTIONS

    for name in FUNCTIONS:
        assert "df.select(" in getattr(functions, name).__doc__
