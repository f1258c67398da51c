from __future__ import annotations

import pytest
from corpus import run_python

from kafkajit.spark import warm_up
from kafkajit.spark.catalogue import evaluator


def test_every_kind_of_table_and_the_common_functions_are_warmed_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called, kinds = [], []

    def noted(name: str) -> object:
        called.append(name)
        return evaluator(name)

    def read(task: object, schema: object, options: warm_up.ScanOptions) -> list[object]:
        kinds.append(options.kind)
        return []

    monkeypatch.setattr(warm_up, "evaluator", noted)
    monkeypatch.setattr(warm_up, "read_task", read)
    warm_up.warm_up()
    assert {"records", "batches", "corruption", "indexes"} <= {*kinds}
    assert {"kafka_records", "kafka_time_lookup", "kafka_decode_offsets"} <= {*called}


def test_warming_up_needs_no_pyspark() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from kafkajit.spark.warm_up import warm_up; warm_up(); print('warm')"
    )
    assert run_python(code) == "warm\n"
