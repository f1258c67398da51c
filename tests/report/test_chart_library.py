from __future__ import annotations

import sys
from pathlib import Path

import pytest
import vl_convert

from kafkajit.report.chart_library import chart_library


def test_the_library_is_bundled_once_and_then_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = []
    monkeypatch.delenv("KAFKAJIT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(
        vl_convert, "javascript_bundle", lambda snippet: bundled.append(snippet) or "é // vega"
    )
    assert [chart_library(), chart_library()] == ["é // vega"] * 2
    assert len(bundled) == 1
    (kept,) = (tmp_path / "kafkajit").iterdir()
    assert kept.name.startswith("vega-")


def test_without_a_cache_the_library_is_bundled_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKAJIT_CACHE", "0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda _: "vega")
    assert chart_library() == "vega"
    assert not list(tmp_path.iterdir())


def test_a_missing_library_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(
        ModuleNotFoundError,
        match="the page's charts need vl-convert: pip install vl-convert-python",
    ):
        chart_library()
