"""Filters of datasets compared with Arrow's own over the same rows."""

from __future__ import annotations

import datetime
import itertools
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scanning import write_partition

import kafkajit
import kafkajit.testing as kt

MOMENT = datetime.datetime(2025, 11, 5, 0, 5)
HOUR_EAST = datetime.timezone(datetime.timedelta(hours=1))
VALUES = {
    "floats": [1.5, 2.0, -0.5, math.nan, math.inf, -math.inf],
    "integers": [0, 1, -1, True],
    "texts": ["1", "orders", "", b"Ada", b"", None],
    "times": [
        MOMENT,
        MOMENT.replace(tzinfo=datetime.UTC),
        MOMENT.replace(hour=1, tzinfo=HOUR_EAST),
        MOMENT.date(),
    ],
    "decimals": [Decimal("1.5"), Decimal(2)],
    "lists": [[], [1, 2], (1,), {1, 2}, [1.5, 2], ["orders"], [b"Ada"], [None], [1, None]],
}
TESTS = ("=", "==", "!=", "<", ">", "<=", ">=", "in", "not in")
COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "isTransactional")


@pytest.fixture(scope="module")
def rows() -> ds.Dataset:
    return ds.dataset(kafkajit.dataset("sample:").to_table())


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("column", COLUMNS)
def test_a_filter_keeps_the_rows_that_arrow_keeps(column: str, kind: str, rows: ds.Dataset) -> None:
    for test, value in itertools.product(TESTS, VALUES[kind]):
        filters = [(column, test, value)]
        try:
            expected = rows.to_table(filter=pq.filters_to_expression(filters)).num_rows
        except (pa.ArrowException, TypeError, ValueError):
            with pytest.raises(ValueError, match=r"^filters: ") as failure:
                kafkajit.dataset("sample:", filters=filters).to_table()
            assert type(failure.value) is ValueError
            continue
        log = kafkajit.dataset("sample:", filters=filters, columns=[column])
        assert log.to_table().num_rows == expected, filters


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """Offsets that no float of 32 bits has, nor one of 64."""
    batches = {at: kt.batch([kt.Record(value=b"v")] * 3, base_offset=at) for at in (2**24, 2**60)}
    return write_partition(tmp_path, batches)


@pytest.mark.parametrize(
    "value",
    [
        1.5,
        2.0**24 + 0.5,
        2.0**24 + 1,
        Decimal(2**60) + Decimal("0.5"),
        2**63,
        -(2**70),
        math.inf,
        math.nan,
    ],
)
@pytest.mark.parametrize("test", TESTS[:7])
def test_whole_numbers_are_compared_exactly(test: str, value: Any, far: Path) -> None:
    """Python compares numbers of all types exactly; Arrow refuses these."""
    compare = {
        "=": lambda a: a == value,
        "==": lambda a: a == value,
        "!=": lambda a: a != value,
        "<": lambda a: a < value,
        ">": lambda a: a > value,
        "<=": lambda a: a <= value,
        ">=": lambda a: a >= value,
    }[test]
    offsets = [at + number for at in (2**24, 2**60) for number in range(3)]
    for filters in ([("offset", test, value)], [[("offset", test, value)], [("offset", "<", 0.5)]]):
        log = kafkajit.dataset(far, filters=filters, columns=["offset"])
        assert log.to_table()["offset"].to_pylist() == list(filter(compare, offsets))


def test_an_expression_that_arrow_cannot_compute_is_named(far: Path) -> None:
    log = kafkajit.dataset(far, filters=pc.field("offset") > 1.5)
    with pytest.raises(ValueError, match=r"^filters: .*\(offset > 1\.5\): compare whole numbers"):
        log.to_table()
    assert kafkajit.dataset("sample:", filters=pc.field("offset") > 1.5).count_rows() == 46
