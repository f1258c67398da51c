"""Arrow's types of Spark's columns, in the pyspark that is there and in older ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyspark.sql.pandas.types
import pytest
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from kafkajit.spark import arrow_types

SCHEMA = StructType([StructField("offset", LongType()), StructField("time", TimestampType())])


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    arrow_types._in_utc.cache_clear()
    yield
    arrow_types._in_utc.cache_clear()


def test_timestamps_are_in_utc() -> None:
    assert arrow_types.arrow_type(TimestampType()) == pa.timestamp("us", tz="UTC")
    assert arrow_types.arrow_schema(SCHEMA).types == [pa.int64(), pa.timestamp("us", tz="UTC")]


def test_a_pyspark_without_the_option_makes_them_utc_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def as_in_4_1(given: Any, timestamp_utc: bool = True) -> tuple[Any, bool]:
        return given, timestamp_utc

    for name in ("to_arrow_type", "to_arrow_schema"):
        monkeypatch.setattr(pyspark.sql.pandas.types, name, as_in_4_1)
    assert arrow_types.arrow_type(LongType()) == (LongType(), True)
    assert arrow_types.arrow_schema(SCHEMA) == (SCHEMA, True)
