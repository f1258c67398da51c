"""The record as charts: their figures, which can be checked, and how they are drawn.

Drawn for README's width, about 800 pixels, on white in light and dark. The same figures give the
same bytes, with the same matplotlib. Text of SVGs is outlines, which look the same everywhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asv_bench.peers import growth_report, report
from asv_bench.peers.record import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS, THEIRS, BOUND = "ours", "theirs", "bound"
_COLORS = {OURS: "#0b6bcb", THEIRS: "#b9c2cc", BOUND: "#ffffff"}
_INK, _FAINT, _LINE = "#1f2328", "#59636e", "#d1d9e0"
_WIDTH = 8.0  # inches; an inch is 100 pixels of README
_MARGIN, _HEADER, _TITLE = 0.12, 0.68, 0.34
_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": _INK,
    "svg.fonttype": "path",
    "svg.hashsalt": "kafkajit",
    "hatch.linewidth": 0.6,
}

_READING = {
    "p100": "100-byte records",
    "p1000": "1000-byte records",
    "lz4": "100 bytes, lz4",
    "zstd": "100 bytes, zstd",
    "snappy": "100 bytes, snappy",
    "gzip": "100 bytes, gzip",
}
_WRITING = {
    "encode": "100-byte records",
    "encode-lz4": "lz4",
    "encode-zstd": "zstd",
    "encode-snappy": "snappy",
    "encode-gzip": "gzip",
}
_SPARK = {
    "kafkaLog": "kafkaLog",
    "kafkaLog, 2 columns": "kafkaLog, offset and timestamp",
    "Parquet, 2 columns": "Parquet, offset and timestamp",
    "kafkaLog, counted": "kafkaLog, counted",
    "Parquet, counted": "Parquet, counted",
    "kafkaLog, Python source": "kafkaLog without the bridge",
    "ready-made": "limit without the bridge",
    "kafka_log()": "kafka_log(), all columns",
    "Kafka connector": "Spark's Kafka connector",
    "Parquet, none": "Parquet, uncompressed",
}
_SPARK_WRITERS = {
    "noop": "limit: rows only read",
    "kafkaLog": "kafkaLog, by a column",
    "kafkaLog by key": "kafkaLog, by key",
    "Parquet, none": "Parquet, uncompressed",
}


@dataclass(frozen=True)
class Bar:
    """One subject."""

    label: str
    value: float
    kind: str


@dataclass(frozen=True)
class Bars:
    """One comparison."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Curve:
    """One series of growth.py, by its name there: where, how long, and the line's two parts."""

    name: str
    points: tuple[tuple[float, float], ...]
    line: tuple[float, float]
    words: str

    @property
    def title(self) -> str:
        series = growth_report.SERIES[self.name]
        return f"{series.title}, {series.unit}{' a record' * series.of_record}"


@dataclass(frozen=True)
class Chart:
    """A picture: panels in columns."""

    title: str
    subtitle: str
    panels: tuple[Bars | Curve, ...]
    columns: int = 2


def charts(record: Record) -> dict[str, Chart]:
    """The charts of the record, by the names of their files."""
    better = "GB/s of uncompressed log on one core, longer is better"
    found = {
        "reading": Chart("Reading records", better, _speeds(record, _READING, report.READERS)),
        "writing": Chart("Writing records", better, _speeds(record, _WRITING, report.WRITERS)),
        "spark": Chart(
            "In Spark, local[2]", "median seconds, shorter is better", _spark(record), 1
        ),
        "growth": Chart(
            "How time grows",
            "best rounds on one core, and the straight line through them; both axes logarithmic",
            _growth(record["growth"]),
        ),
    }
    found["values"] = Chart(
        "Decoding values", "GB/s of values on one core, longer is better", _values(record)
    )
    return {name: chart for name, chart in found.items() if chart.panels}


def digest(chart: Chart) -> str:
    """A digest of all figures that a chart shows."""
    shown = json.dumps([type(panel).__name__ for panel in chart.panels]) + json.dumps(asdict(chart))
    return f"sha256:{hashlib.sha256(shown.encode()).hexdigest()[:32]}"


def _speeds(record: Record, titles: Mapping[str, str], subjects: Sequence[str]) -> tuple[Bars, ...]:
    found = []
    for name, title in titles.items():
        result = record["comparisons"].get(name)
        if result is None:
            continue
        bars = []
        for subject in subjects:
            speed = report.gigabytes_a_second(result, subject)
            if speed is not None:
                label = subject
                if subject == report.LIMIT:
                    label = "limit: bare codec" if result["codec"] != "none" else "limit: floor"
                bars.append(Bar(label, float(f"{speed:.6g}"), _kind(subject)))
        found.append(Bars(title, tuple(sorted(bars, key=lambda bar: -bar.value))))
    return tuple(found)


def _values(record: Record) -> tuple[Bars, ...]:
    found = []
    for name, title in report.VALUES.items():
        result = record["values"].get(name)
        if result is not None:
            bars = [
                Bar(
                    who,
                    float(f"{report.values_speed(result, who) / 1000:.6g}"),
                    OURS if who.startswith(report.US) else THEIRS,
                )
                for who in result["seconds"]
            ]
            bars.sort(key=lambda bar: -bar.value)
            found.append(Bars(title, tuple(bars)))
    return tuple(found)


def _kind(subject: str) -> str:
    return {report.US: OURS, report.LIMIT: BOUND}.get(subject, THEIRS)


def _spark(record: Record) -> tuple[Bars, ...]:
    found = []
    for name, title in (
        ("table", "Reading: five aggregates over {:.3g} M records"),
        ("write", "Writing {:.3g} M records"),
    ):
        result = record["spark"].get(name)
        if result is not None:
            names = _SPARK if name == "table" else _SPARK_WRITERS
            bars = [
                Bar(names.get(who, who), float(f"{seconds['median']:.6g}"), _spark_kind(who))
                for who, seconds in result["seconds"].items()
            ]
            bars.sort(key=lambda bar: bar.value)
            found.append(Bars(title.format(result["records"] / 1e6), tuple(bars)))
    return tuple(found)


def _spark_kind(subject: str) -> str:
    return BOUND if subject in {"noop", "ready-made"} else OURS if "kafka" in subject else THEIRS


def _growth(growth: Mapping[str, Mapping[str, Any]]) -> tuple[Curve, ...]:
    found = []
    for name, series in growth_report.SERIES.items():
        if name in growth:
            points = growth[name]["points"]
            line = growth_report.line_of(name, points)
            at = tuple((point["x"], float(f"{series.y(point):.4g}")) for point in points)
            parts = (float(f"{line.fixed:.4g}"), float(f"{line.slope:.4g}"))
            found.append(Curve(name, at, parts, growth_report.words(name, points)))
    return tuple(found)


def draw(chart: Chart, svg: Path) -> None:
    """Write the file, with the digest in its metadata."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        figure_of(chart).savefig(
            svg, metadata={"Date": None, "Creator": None, "Description": digest(chart)}
        )


def figure_of(chart: Chart) -> Figure:
    """The chart, drawn."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = [
        chart.panels[first : first + chart.columns]
        for first in range(0, len(chart.panels), chart.columns)
    ]
    tallest = [max(map(_height, row)) for row in rows]
    height = _HEADER + sum(tallest) + len(rows) * (_TITLE + _below(chart)) - _below(chart) + 0.15
    if isinstance(chart.panels[0], Curve):
        height += 0.25  # the last axis's labels
    wide = _WIDTH / chart.columns
    labels = [bar.label for panel in chart.panels if isinstance(panel, Bars) for bar in panel.bars]
    names = max(map(_inches, labels), default=0.0)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(_WIDTH, height), facecolor="white")
        left = _MARGIN / _WIDTH
        figure.text(left, 1 - 0.14 / height, chart.title, fontsize=15, weight="bold", va="top")
        figure.text(left, 1 - 0.42 / height, chart.subtitle, fontsize=10, color=_FAINT, va="top")
        top = height - _HEADER
        for row, tall in zip(rows, tallest, strict=True):
            top -= _TITLE
            for column, panel in enumerate(row):
                before, behind = _room(panel, names)
                start, width = column * wide + before, wide - before - behind
                bottom = top - _height(panel)
                axes = figure.add_axes(
                    (start / _WIDTH, bottom / height, width / _WIDTH, _height(panel) / height)
                )
                axes.annotate(
                    panel.title,
                    (0, 1),
                    (72 * (_MARGIN - before), 6),
                    xycoords="axes fraction",
                    textcoords="offset points",
                    weight="bold",
                    fontsize=10.5,
                )
                if isinstance(panel, Bars):
                    _draw_bars(axes, panel)
                else:
                    _draw_curve(axes, panel)
            top -= tall + _below(chart)
    return figure


def _room(panel: Bars | Curve, names: float) -> tuple[float, float]:
    """Inches left and right of a panel's axes, for names and figures."""
    if isinstance(panel, Curve):
        return 0.8, 0.26
    return _MARGIN + names + 0.1, 0.52


def _inches(label: str) -> float:
    """The width of a bar's name, in the bold type of ours."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(family=_STYLE["font.family"], weight="bold")
    return float(TextPath((0, 0), label, size=_STYLE["font.size"], prop=font).get_extents().x1) / 72


def _below(chart: Chart) -> float:
    """Inches between a panel and the next one's title."""
    return 0.4 if isinstance(chart.panels[0], Curve) else 0.14


def _height(panel: Bars | Curve) -> float:
    """In inches."""
    return 0.235 * len(panel.bars) if isinstance(panel, Bars) else 1.75


def _draw_bars(axes: Axes, panel: Bars) -> None:
    """A line for each bar: name, bar, figure."""
    rows = np.arange(len(panel.bars))
    for row, bar in zip(rows, panel.bars, strict=True):
        ours = bar.kind == OURS
        edge = {"edgecolor": "#8c959f", "linewidth": 0.8, "hatch": "////"}
        axes.barh(
            row, bar.value, 0.72, color=_COLORS[bar.kind], **(edge if bar.kind == BOUND else {})
        )
        weight = "bold" if ours else "normal"
        color = _COLORS[OURS] if ours else _INK
        axes.annotate(
            f"{bar.value:.2f}" if bar.value >= 0.01 else f"{bar.value:.1g}",
            (bar.value, row),
            (4, 0),
            textcoords="offset points",
            va="center_baseline",
            weight=weight,
            color=color,
        )
        axes.annotate(
            bar.label,
            (0, row),
            (-5, 0),
            textcoords="offset points",
            ha="right",
            va="center_baseline",
            weight=weight,
            color=color,
        )
    axes.set_xlim(0, max(bar.value for bar in panel.bars))
    axes.set_ylim(len(panel.bars) - 0.5, -0.5)
    axes.set_axis_off()


def _draw_curve(axes: Axes, panel: Curve) -> None:
    """Points, the fitted line, and the line in words."""
    from matplotlib.ticker import LogLocator

    series = growth_report.SERIES[panel.name]
    x = np.array([at for at, _ in panel.points], dtype=float)
    y = np.array([time for _, time in panel.points])
    fixed, slope = panel.line
    fine = np.geomspace(x.min(), x.max(), 100)
    axes.loglog(fine, [fixed + slope * series.driver(at) for at in fine], color="#8c959f", lw=1.2)
    axes.loglog(x, y, "o", color=_COLORS[OURS], ms=5.5)
    for at, time in panel.points:
        ratio = time / (fixed + slope * series.driver(at))
        if abs(ratio - 1) > growth_report.TOLERANCE:
            axes.annotate(
                f"{ratio:.1f}×",
                (at, time),
                (0, 7 if ratio > 1 else -14),
                textcoords="offset points",
                ha="center",
                fontsize=8.5,
            )
    axes.text(
        0.025,
        0.965,
        panel.words,
        transform=axes.transAxes,
        va="top",
        color=_FAINT,
        fontsize=8.5,
        bbox={"color": "white", "pad": 1.5},
    )
    # A factor of thirty at least, lest noise look like growth; and room for the words.
    middle = np.sqrt(y.min() * y.max())
    low, high = min(y.min() / 1.8, middle / 5.5), max(y.max() * 4, middle * 5.5)
    axes.set_ylim(low, high)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 3) if high / low < 1000 else (1,)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    axes.set_xticks(x, [series.shown(at) for at in x])
    axes.minorticks_off()
    axes.grid(color=_LINE, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(color=_LINE, labelcolor=_FAINT, labelsize=8.5)
    for name, spine in axes.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(_LINE)
