"""Spark's types in Arrow, with timestamps in UTC, whatever pyspark calls the option for that."""

from __future__ import annotations

from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of Spark's columns."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, **_in_utc())


def arrow_type(type_: DataType) -> pa.DataType:
    """The Arrow type of one of Spark's types."""
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(type_, **_in_utc())


@cache
def _in_utc() -> dict[str, Any]:
    """The arguments that make timestamps UTC; in pyspark 4.1 they are so by default."""
    from pyspark.sql.pandas.types import to_arrow_type

    return {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}
