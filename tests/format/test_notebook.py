"""Objects in notebooks: tables, in which nothing of a log's is run."""

from __future__ import annotations

import re
from pathlib import Path

import kafkajit
import kafkajit.testing as kt
from kafkajit.format.notebook import html_lines, html_table

HOSTILE = "<script>alert(1)</script>"


def cells(html: str) -> list[str]:
    return re.findall(r"<td[^>]*>(.*?)</td>", html)


def test_texts_are_escaped() -> None:
    html = html_table(HOSTILE, ["<b>"], [["<img>", "a & b"][:1]])
    html += html_lines(HOSTILE, HOSTILE)
    assert {*re.findall(r"<(\w+)", html)} == {"p", "code", "table", "tr", "th", "td", "pre"}
    assert cells(html) == ["&lt;img&gt;"]


def test_numbers_and_their_heading_are_on_the_right() -> None:
    html = html_table("t", ["name", "bytes"], [["a", 1_234_567]])
    assert re.findall(r"<th style=\"text-align: (\w+)\"", html) == ["left", "right"]
    assert re.findall(r"<td style=\"text-align: (\w+)\"", html) == ["left", "right"]
    assert cells(html) == ["a", "1,234,567"]


def test_a_long_table_shows_its_ends() -> None:
    rows = cells(html_table("t", ["number"], [[n] for n in range(1_000)]))
    assert rows == [*map(str, range(20)), "… 960 more", *map(str, range(980, 1_000))]
    assert len(cells(html_table("t", ["number"], [[n] for n in range(40)]))) == 40


def test_a_long_text_ends_with_the_number_of_lines_that_are_left_out() -> None:
    text = "\n".join(map(str, range(1_000)))
    assert html_lines("t", text).count("\n") == 100
    assert "99\n… 900 more lines: print() shows all of them</pre>" in html_lines("t", text)
    assert "more" not in html_lines("t", "\n".join("x" * 100))


def test_a_log_shows_its_segments() -> None:
    html = kafkajit.Log("sample:payments-1")._repr_html_()
    assert "/payments-1&#x27;)" in html
    assert cells(html)[:2] == ["00000000000000000000.log", "0"]
    assert cells(html)[3:5] == ["00000000000000000008.log", "8"]


def test_a_plan_shows_its_lines(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    log = kt.batch([b"1"]) + b"\0\0"
    (folder / f"{0:020}.log").write_bytes(log)
    plan = kafkajit.repair(folder)
    html = plan._repr_html_()
    assert html.startswith("<p><code>&lt;RepairPlan orders-0:")
    assert "print()" not in html
    assert f"<pre>{plan}</pre>" in html


def test_an_export_shows_its_partitions_and_an_import_reads_nothing_for_its_name(
    tmp_path: Path,
) -> None:
    result = kafkajit.export("sample:orders-0", tmp_path / "out", to="parquet")
    assert repr(result) == "<ExportResult of 25 records, partitions: 1, files: 1>"
    assert "<pre>orders-0: 25 records, offsets 0 to 26, 1 file" in result._repr_html_()
    plan = kafkajit.import_files(tmp_path / "out", tmp_path / "logs")
    assert repr(plan).startswith(f"<ImportPlan 1 file for {tmp_path / 'logs'};")
    assert "partitions" not in vars(plan)  # the cached result of reading
