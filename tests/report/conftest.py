from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from corpus import NO_JIT

from kafkajit.report import savings

_MOST_ROWS = 20
_LONGEST_VALUE = 2000


@pytest.fixture(autouse=True)
def _few_records_are_encoded_without_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty-one encodings of a megabyte take minutes as plain Python."""
    measured = savings.measured

    def of_few(records: pa.Table, encoding: savings.Encoding) -> dict[str, Any]:
        lengths = pc.fill_null(pc.binary_length(records["value"]), 0)
        short = records.filter(pc.less_equal(lengths, _LONGEST_VALUE))
        return measured(short.slice(0, _MOST_ROWS), encoding)

    if NO_JIT:
        monkeypatch.setattr(savings, "measured", of_few)
