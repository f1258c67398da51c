from __future__ import annotations

import gc
import os

import pytest

from kafkajit.spark.worker import guest, reported


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HIDE_TRACEBACK", "")


@pytest.mark.parametrize("error", [ValueError, TypeError, FileNotFoundError])
def test_what_a_user_can_cause_is_reported_without_a_traceback(error: type[Exception]) -> None:
    with pytest.raises(error), guest():
        raise error
    assert os.environ["SPARK_HIDE_TRACEBACK"] == "1"


def test_a_bug_keeps_its_traceback() -> None:
    @reported
    def bug() -> None:
        raise AssertionError

    with pytest.raises(AssertionError):
        bug()
    assert os.environ["SPARK_HIDE_TRACEBACK"] == ""


def test_the_collector_does_not_walk_numbas_modules() -> None:
    import kafkajit.kernel  # noqa: F401
    from kafkajit.spark.worker import _leave_modules_alone

    _leave_modules_alone.cache_clear()
    try:
        with guest():
            pass
        assert gc.get_freeze_count() > 100_000
    finally:
        gc.unfreeze()
