from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import kafkajit
from kafkajit.format import notebook as module
from kafkajit.format.notebook import in_notebook
from kafkajit.format.progress import Step, ignored


class Notebook:
    """IPython as notebooks have it, and what it was asked to display."""

    def __init__(self, *, has_kernel: bool) -> None:
        shell = SimpleNamespace(kernel=None) if has_kernel else SimpleNamespace()
        self.get_ipython = lambda: shell
        self.display = SimpleNamespace(display=self._display)
        self.texts: list[str] = []

    def _display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        self.texts.append(data["text/html"])
        return self

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.texts.append(data["text/html"])


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    monkeypatch.setattr(module, "_WAIT", 0.0)
    monkeypatch.setattr(module, "_SECONDS_BETWEEN", 0.0)
    found = Notebook(has_kernel=True)
    monkeypatch.setitem(sys.modules, "IPython", found)
    return found


def test_a_notebook_shows_it_until_the_work_is_done(notebook: Notebook) -> None:
    with in_notebook() as progress:
        progress("<orders>", 10, 40)
    first, last = notebook.texts
    assert '<progress max="1" value="0.2500">' in first
    assert "&lt;orders&gt;: 10 bytes of 40 bytes" in first
    assert last == ""


def test_quick_work_shows_nothing(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WAIT", 60.0)
    with in_notebook() as progress:
        progress("orders", 10, 40)
    assert notebook.texts == []


def test_outside_of_notebooks_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", Notebook(has_kernel=False))
    with in_notebook() as progress:
        assert progress is ignored
    monkeypatch.delitem(sys.modules, "IPython")
    with in_notebook() as progress:
        assert progress is ignored


def test_functions_of_the_package_show_their_progress(notebook: Notebook, tmp_path: Any) -> None:
    kafkajit.export("sample:", tmp_path / "out", to="csv", topics=["orders"])
    assert any("orders-0: 0 bytes of 1.95 kB" in text for text in notebook.texts)
    notebook.texts.clear()
    kafkajit.restore("sample:orders-0", tmp_path / "logs", topic_ids=None).apply()
    assert any("orders-0: 1.95 kB of 1.95 kB" in text for text in notebook.texts)
    notebook.texts.clear()
    kafkajit.repair(tmp_path / "logs")
    assert any("orders-0: 1.95 kB of 1.95 kB" in text for text in notebook.texts)


def test_the_rate_begins_anew_with_the_next_step() -> None:
    step = Step("a", 0, 100, begun=0).updated("a", 50, 100)
    assert step.forms(1) == ["a: 50 bytes of 100 bytes, 50 bytes/s, 1 s left", *step.forms(1)[1:]]
    assert step.updated("b", 60, 100).first == 0  # a part of the same work
    assert step.updated("b", 10, 70).first == 10
    assert step.updated("a", 10, 100).first == 10
