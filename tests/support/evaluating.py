"""Evaluates SQL functions over Arrow arrays: no Spark is started."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from kafkajit.spark.catalogue import FUNCTIONS, evaluator


def evaluated(name: str, *arguments: Any) -> list[Any]:
    arrays = [
        argument if isinstance(argument, pa.Array) else pa.array(argument) for argument in arguments
    ]
    result = evaluator(name)(*arrays)
    result.validate(full=True)
    assert result.type == FUNCTIONS[name].returns
    rows: list[Any] = result.to_pylist()
    return rows
