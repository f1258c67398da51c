"""asv_bench.peers publishes the recorded figures, and computes the right ones from them."""

from __future__ import annotations

import copy
import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kafkajit.testing as kt
from asv_bench.peers import growth_report, record
from asv_bench.peers.charts import Bars, Curve, charts, digest, draw, figure_of
from asv_bench.peers.floor import walk_varints
from asv_bench.peers.publish import PAGES, check, disagreements, filled, publish
from asv_bench.peers.report import SECTIONS, median_of, sections, text
from asv_bench.peers.rounds import REPO


def seconds(**medians: float) -> dict[str, dict[str, float]]:
    return {name.replace("_", " "): {"median": m, "best": m / 2} for name, m in medians.items()}


PLAIN = {
    "records": 4_000_000,
    "valueSize": 100,
    "codec": "none",
    "magic": 2,
    "headers": 0,
    "bytes": 480_000_000,
    "plainBytes": 480_000_000,
    "seconds": seconds(kafkajit=0.12, aiokafka=1.2, crc32c=0.03, memcpy=0.04, varint_floor=0.05),
    "with": {"cpu": "Z80", "numba": "1.0"},
}
HEADERS = PLAIN | {"headers": 3, "seconds": seconds(kafkajit=0.36)}
ZSTD = PLAIN | {"codec": "zstd", "seconds": seconds(kafkajit=0.5, bare_codec=0.4)}
POINTS = [
    {"x": x, "records": 1, "seconds": {"median": y, "best": y}}
    for x, y in ((1, 0.003), (10, 0.012), (100, 0.102), (1000, 2.004))
]
RECORD: record.Record = {
    "comparisons": {
        "p100": PLAIN,
        "headers": HEADERS,
        "headers-as-values": PLAIN,
        "zstd": ZSTD,
        "encode": PLAIN | {"seconds": seconds(kafkajit=0.2, Java=0.4)},
        "dump": PLAIN
        | {
            "seconds": {"kafkajit": {"median": 2.0, "best": 1.0}}
            | {"Java, DumpLogSegments": {"median": 30.0, "best": 29.0}}
        },
        "memory": PLAIN | {"imported": 100_000_000, "peak": 250_000_000},
    },
    "spark": {
        name: {"records": 4_000_000, "bytes": 480_000_000, "with": {"Spark": "4.3.0"}}
        | {"seconds": seconds(**subjects)}
        for name, subjects in {
            "table": {"kafkaLog": 1.7, "Parquet,_none": 0.6},
            "write": {"kafkaLog": 3.9, "noop": 1.2},
        }.items()
    },
    "export": {"parquet": {"bytes": 1 << 28, "seconds": seconds(ours=1.5, theirs=1.2), "with": {}}},
    "upkeep": {"compact": {"bytes": 1 << 30, "seconds": seconds(ours=1.5, theirs=7.5), "with": {}}},
    "grep": {
        "none": PLAIN
        | {"seconds": seconds(**{"kafkajit grep -c": 0.2, "grep -c on the raw file": 0.6})}
    },
    "growth": {"files": {"points": POINTS, "with": {"cpu": "6502"}}},
    "values": {
        "avro": {"bytes": 66.0, "seconds": seconds(kafkajit=0.1, fastavro=8.0), "with": {}},
        "json": {"bytes": 200.0, "seconds": seconds(kafkajit=0.4), "with": {}},
    },
}


@pytest.fixture
def published(tmp_path: Path) -> tuple[Path, tuple[Path, ...]]:
    """A record with a page of all sections and its charts."""
    path, page = tmp_path / "peers.json", tmp_path / "page.md"
    path.write_text(json.dumps(RECORD))
    places = [f"<!-- speed {name}: -->\n<!-- /speed {name} -->" for name in SECTIONS]
    page.write_text("Before.\n" + "\nBetween.\n".join(places) + "\nBehind.\n")
    publish(path, (page,))
    return path, (page,)


def test_pages_and_charts_agree_with_the_record() -> None:
    assert disagreements() == [], "run: python -m asv_bench.peers --report"


def test_the_command_that_ci_runs_measures_nothing_and_needs_nothing_to_draw() -> None:
    code = "import runpy, sys; sys.argv[1:] = ['--check']; "
    code += "runpy.run_module('asv_bench.peers', run_name='__main__'); "
    code += "print(sorted({'matplotlib', 'pyspark', 'aiokafka'} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_every_section_is_on_a_page() -> None:
    text = "".join(page.read_text() for page in PAGES)
    assert {*re.findall(r"<!-- speed ([\w-]+)", text)} == SECTIONS.keys()


def test_the_record_does_not_identify_a_machine() -> None:
    names = {name for kind in record.load().values() for part in kind.values() for name in part}
    assert names <= {*PLAIN, "imported", "peak", "points"}
    assert not re.search(r"[/\\]", record.RECORD.read_text())
    assert {"cpu", "Python", "numba"} < record.measured_with(()).keys()


@pytest.mark.thorough
def test_publishing_keeps_the_words_around_the_tables(
    published: tuple[Path, tuple[Path, ...]],
) -> None:
    path, (page,) = published
    assert page.read_text().startswith("Before.\n<!-- speed versus: ")
    assert page.read_text().count("\nBetween.\n") == len(SECTIONS) - 1
    check(path, (page,))


def test_a_figure_changed_by_hand_is_reported(
    published: tuple[Path, tuple[Path, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, (page,) = published
    page.write_text(page.read_text().replace("**4.00**", "**5.00**", 1))
    with pytest.raises(SystemExit, match=r"pages and peers\.json disagree") as stop:
        check(path, (page,))
    assert stop.value.code != 0
    assert capsys.readouterr().err == (
        "page.md: the table <!-- speed reading --> has other figures\n"
    )


def test_charts_of_other_figures_are_reported(published: tuple[Path, tuple[Path, ...]]) -> None:
    path, pages = published
    changed = copy.deepcopy(RECORD)
    changed["comparisons"]["zstd"]["seconds"]["kafkajit"]["median"] = 0.6
    path.write_text(json.dumps(changed))
    found = disagreements(path, pages)
    assert [line for line in found if "shows other figures" in line] == [
        "reading.svg: shows other figures",
    ]
    path.with_name("growth.svg").unlink()
    assert "growth.svg: is missing" in disagreements(path, pages)


def test_a_place_for_an_unknown_section_is_an_error() -> None:
    with pytest.raises(ValueError, match="no section 'raeding'; there are: versus, summary, "):
        filled("<!-- speed raeding: -->\n<!-- /speed raeding -->", sections(RECORD))


def test_a_run_of_some_parts_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "peers.json"
    record.add(path, "comparisons", {"p100": {"a": 1}, "zstd": {"a": 2}})
    record.add(path, "spark", {"table": {"a": 3}})
    record.add(path, "comparisons", {"p100": {"a": 4}})
    assert record.load(path) == {
        "comparisons": {"p100": {"a": 4}, "zstd": {"a": 2}},
        "spark": {"table": {"a": 3}},
        "upkeep": {},
        "export": {},
        "growth": {},
        "values": {},
        "grep": {},
    }


def test_the_limit_is_the_floors_parts_together_or_the_bare_codec() -> None:
    assert median_of(PLAIN, "limit") == pytest.approx(0.03 + 0.04 + 0.05)
    assert median_of(ZSTD, "limit") == 0.4
    assert median_of(HEADERS, "limit") is None


def test_tables_have_speeds_and_ratios() -> None:
    found = sections(RECORD)
    assert found["reading"].splitlines()[2:] == [
        "| 4 M × 100 B, 480 MB | **4.00** | 0.40 (10×) | 4.00 (1.0×) |",
        "| 4 M × 100 B + 3 headers, 480 MB | **1.33** |  |  |",
        "| 4 M × 100 B, zstd, 480 MB | **0.96** |  | 1.20 (0.80×) |",
    ]
    assert found["limits"].splitlines()[0].endswith("| floor | ours ÷ floor |")
    assert found["limits"].splitlines()[2] == (
        "| 4 M × 100 B, 480 MB | 120.0 |  | 30.0 | 40.0 | 50.0 | 120.0 | 1.00 |"
    )
    assert found["headers"] == (
        "3 headers a record take kafkajit 3.0× as long as the same bytes as values: 360 ms and "
        "120 ms, 60 ns a record more."
    )
    assert found["writing"].splitlines()[2] == "| 4 M × 100 B, 480 MB | **2.40** | 1.20 (2.0×) |"
    assert found["dumping"].splitlines()[2].endswith("| 2.00 | 30.00 | 15× |")
    assert "480 MB: 150 MB above the import's" in found["memory"]
    assert found["spark"].splitlines()[0].startswith("| In Spark 4.3.0, local[2]")
    assert found["spark"].splitlines()[2:] == [
        "| `kafkaLog`: five aggregates over key, value, offset, timestamp | 480 MB | 1.70 | 0.85 |",
        "| the same rows as Parquet, uncompressed | 480 MB | 0.60 | 0.30 |",
    ]
    assert found["spark-writing"].splitlines()[2:] == [
        "| `kafkaLog`, by a column partition | 3.90 | 1.95 |",
        "| rows read, none written | 1.20 | 0.60 |",
    ]
    assert found["export"].splitlines()[3].endswith("theirs | 1.20 | 0.60 | 0.80× |")
    assert found["upkeep"].splitlines()[3].endswith("theirs | 7.50 | 3.75 | 5.0× |")
    assert found["grep"].splitlines()[2:] == [
        "| 4 M × 100 B, 480 MB: `kafkajit grep -c` | 0.20 | 2.40 | 1.0× |",
        "| 4 M × 100 B, 480 MB: `grep -c on the raw file` | 0.60 | 0.80 | 3.0× |",
    ]
    assert found["machine"] == "Measured with: cpu Z80 and 6502, numba 1.0, Spark 4.3.0."
    assert "byte for byte, 15× as fast" in found["versus"]
    assert found["summary"].splitlines()[2:] == [
        "| write batches, 480 MB | **0.20 s** | Kafka's MemoryRecordsBuilder: 0.40 s | 2.0× |",
        "| print keys and values, 480 MB | **2.00 s** | kafka-dump-log.sh: 30.00 s | 15× |",
    ]


def test_comparisons_that_were_not_recorded_are_named() -> None:
    nothing: record.Record = {kind: {} for kind in record.KINDS}
    found = sections(nothing)
    assert {found[name] for name in SECTIONS if name != "machine"} == {"*Not recorded yet.*"}
    assert charts(nothing) == {}


def test_a_terminal_sees_the_floor_too() -> None:
    (floor,) = [line for line in text("p100", PLAIN).splitlines() if line.startswith("  floor")]
    assert floor.split() == ["floor", "0.120", "0.060", "1.00", "4.00"]


def test_a_point_off_the_line_is_named() -> None:
    assert growth_report.verdict("files", POINTS[:3]) == "within 0%"
    assert growth_report.words("files", POINTS[:3]) == "2.0 ms + 1.0 ms a file"
    assert "off the line: " in growth_report.verdict("files", POINTS)
    table = growth_report.tables({"files": {"points": POINTS}})
    assert table.splitlines()[0].endswith("| 1 | 10 | 100 | 1,000 |")
    assert table.splitlines()[2] == "| ms, median | 3 | 12 | 102 | 2,004 |"


def test_time_that_does_not_grow_has_a_line_without_slope() -> None:
    line = growth_report.fit([1, 2, 4], [5.0, 4.0, 3.0])
    assert line.slope == 0
    assert 3 < line.fixed < 5


def test_the_examples_of_the_growth_report_hold() -> None:
    results = doctest.testmod(growth_report)
    assert results.attempted > 0
    assert results.failed == 0


def test_bars_are_sorted_and_ours_stand_out() -> None:
    found = charts(RECORD)
    panel = found["reading"].panels[0]
    assert isinstance(panel, Bars)
    assert [(bar.label, bar.kind) for bar in panel.bars] == [
        ("kafkajit", "ours"),
        ("limit: floor", "bound"),
        ("aiokafka", "theirs"),
    ]
    assert isinstance(found["growth"].panels[0], Curve)
    assert len({digest(chart) for chart in found.values()}) == len(found)


@pytest.mark.thorough
@pytest.mark.parametrize("name", charts(RECORD))
def test_a_chart_is_drawn_alike_every_time(name: str, tmp_path: Path) -> None:
    chart = charts(RECORD)[name]
    first, second = (tmp_path / f"{turn}.svg" for turn in "ab")
    for file in (first, second):
        draw(chart, file)
    assert first.read_bytes() == second.read_bytes()
    assert digest(chart).encode() in first.read_bytes()
    assert first.stat().st_size < 150_000
    assert b"<dc:date>" not in first.read_bytes()


@pytest.mark.thorough
@pytest.mark.parametrize("name", charts(record.load()))
def test_no_text_of_a_chart_is_cut(name: str) -> None:
    figure = figure_of(charts(record.load())[name])
    figure.draw_without_rendering()
    shown = [*figure.texts, *(one for axes in figure.axes for one in axes.texts)]
    assert shown
    for one in shown:
        box = one.get_window_extent()
        assert box.x0 >= 0, one.get_text()
        assert box.x1 <= figure.bbox.x1, one.get_text()


@pytest.mark.thorough
def test_the_floor_looks_at_every_varint() -> None:
    headers = [("h", b"x"), ("name", None)]
    records = [kt.Record(b"k", b"v" * 20_000, headers), kt.Record(None, None), kt.Record(b"", b"")]
    log = kt.batch(records[:2], base_offset=5) + kt.batch(records[2:])
    starts = np.array([61, len(kt.batch(records[:2])) + 61])
    found, sink = walk_varints(np.frombuffer(log, dtype=np.uint8), starts, np.array([2, 1]))
    # Per record: timestampDelta, offsetDelta, key's and value's sizes, how many headers; per
    # header the sizes of its key and value.
    deltas_and_sizes = (0 + 0 + 1 + 20_000 + 2) + (1 + 1 + 4 - 1) + (0 + 1 - 1 - 1 + 0) + 0
    assert (found, sink) == (3, deltas_and_sizes)
