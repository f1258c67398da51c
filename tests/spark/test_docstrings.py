"""The examples in the docstrings of `kafkajit.spark` hold."""

from __future__ import annotations

import doctest
import importlib

import pytest
from corpus import REPOSITORY
from pyspark.sql import SparkSession

MODULES = sorted(
    f"kafkajit.spark.{path.stem}".removesuffix(".__init__")
    for path in (REPOSITORY / "kafkajit/spark").glob("*.py")
)


@pytest.mark.parametrize("name", MODULES)
def test_every_example_gives_what_it_says(name: str, spark: SparkSession) -> None:
    results = doctest.testmod(
        importlib.import_module(name),
        extraglobs={"spark": spark},
        optionflags=doctest.NORMALIZE_WHITESPACE,
    )
    assert results.failed == 0


def test_every_function_has_an_example() -> None:
    from kafkajit.spark import functions
    from kafkajit.spark.catalogue import FUNCTIONS

    for name in FUNCTIONS:
        assert ">>> df" in getattr(functions, name).__doc__
