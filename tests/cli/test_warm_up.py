from __future__ import annotations

import pytest

from kafkajit import cli


def test_warm_up_reads_the_sample_as_tasks_do_and_says_how_long_it_took(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    warmed = []
    monkeypatch.setattr("kafkajit.spark.warm_up.warm_up", lambda: warmed.append(True))
    assert cli.main(["warm-up"]) == 0
    assert warmed == [True]
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("kernels are ready (0.0 s)")
