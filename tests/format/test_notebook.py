"""Objects in notebooks: tables, in which nothing of a log's is run."""

from __future__ import annotations

import re
from pathlib import Path

import kafkajit
import kafkajit.testing as kt
from kafkajit.format.notebook import html_table


def test_texts_are_escaped() -> None:
    html = html_table("<script>", ["<b>"], [["<img>", "a & b"]])
    assert re.findall(r"<(\w+)>", html) == ["p", "code", "table", "tr", "th", "tr", "td", "td"]
    assert "a &amp; b" in html


def test_a_log_shows_its_segments() -> None:
    html = kafkajit.Log("sample:payments-1")._repr_html_()
    assert "/payments-1&#x27;)" in html
    cells = re.findall(r"<td>(.*?)</td>", html)
    assert cells[:2] == ["00000000000000000000.log", "0"]
    assert cells[3:5] == ["00000000000000000006.log", "6"]


def test_a_plan_shows_its_lines(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    log = kt.batch([b"1"]) + b"\0\0"
    (folder / f"{0:020}.log").write_bytes(log)
    plan = kafkajit.repair(folder)
    html = plan._repr_html_()
    assert html.startswith("<p><code>&lt;RepairPlan orders-0:")
    assert "print()" not in html
    assert len(re.findall(r"<td>", html)) == len(str(plan).splitlines()) > 0
