"""Fit a straight line to each series of measurements, and list the points off it.

In: the measurements of growth.py. Out: Markdown tables, each with its line in words; the charts
draw the same. A line is fitted to the best rounds by the least squares of relative errors: the
smallest point counts as much as the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

# A point that is off by more is named.
TOLERANCE = 0.2


@dataclass(frozen=True)
class Series:
    """One quantity that grows, and the driver over which its time should be a straight line."""

    title: str
    axis: str
    shown: Callable[[float], str]  # a place on the axis, as people say it
    per: str  # what one unit of `driver` is
    driver: Callable[[float], float]
    of_record: bool = False  # nanoseconds of a record instead of milliseconds of it all

    @property
    def unit(self) -> str:
        return "ns" if self.of_record else "ms"

    def y(self, point: Mapping[str, Any], how: str = "best") -> float:
        """The time of a point."""
        seconds = float(point["seconds"][how])
        return seconds / point["records"] * 1e9 if self.of_record else seconds * 1e3


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _bytes(number: float) -> str:
    """In thousands and rounded, but GiB as segments have them.

    >>> [_bytes(size) for size in (10, 998, 9_994_000, 299_900_000, (1 << 30) - 9, (2 << 30) - 9)]
    ['10 B', '1 kB', '10 MB', '300 MB', '1 GiB', '2 GiB']
    """
    if number > 0.9 * (1 << 30):
        return f"{number / (1 << 30):.2g} GiB"
    rounded = float(f"{number:.1e}")
    for size, unit in ((1e6, "MB"), (1e3, "kB")):
        if rounded >= size:
            return f"{rounded / size:g} {unit}"
    return f"{rounded:g} B"


SERIES = {
    "size": Series("size of a file", "bytes", _bytes, "MB", lambda size: size / 1e6),
    "records-per-batch": Series(
        "records in a batch", "records", _count, "batch", lambda count: 1 / count, of_record=True
    ),
    "record-size": Series(
        "size of a record's value", "bytes", _bytes, "kB", lambda size: size / 1e3, of_record=True
    ),
    "files": Series("files that share the same bytes", "files", _count, "file", float),
    "files-of-64-kB": Series("files of 64 kB", "files", _count, "file", float),
    "splits": Series("splits of one file", "splits", _count, "split", float),
}


class Line(NamedTuple):
    """fixed + slope × driver, in the series' unit; how far each point is above it, as a ratio."""

    fixed: float
    slope: float
    ratios: tuple[float, ...]


def fit(drivers: Sequence[float], times: Sequence[float]) -> Line:
    """The line, neither of whose parts is negative.

    >>> line = fit([1, 10, 100], [3, 12, 102])
    >>> round(line.fixed, 6), round(line.slope, 6)
    (2.0, 1.0)
    """
    x, y = np.asarray(drivers, dtype=float), np.asarray(times, dtype=float)
    parts = np.stack([1 / y, x / y], axis=1)
    found = []
    for kept in ([0, 1], [0], [1]):
        both = np.zeros(2)
        both[kept] = np.linalg.lstsq(parts[:, kept], np.ones(y.size))[0]
        if (both >= 0).all():
            found.append(both)
    fixed, slope = min(found, key=lambda both: float(np.sum((parts @ both - 1) ** 2))).tolist()
    return Line(fixed, slope, tuple((y / (fixed + slope * x)).tolist()))


def line_of(name: str, points: Iterable[Mapping[str, Any]]) -> Line:
    """The line through a series' best rounds."""
    series, points = SERIES[name], list(points)
    return fit([series.driver(point["x"]) for point in points], [series.y(p) for p in points])


def words(name: str, points: Sequence[Mapping[str, Any]]) -> str:
    """The line in words, and how well the points fit."""
    series, line = SERIES[name], line_of(name, points)
    parts = []
    if line.fixed:
        parts.append(f"{two_digits(line.fixed)} {series.unit}{' a record' * series.of_record}")
    if line.slope:
        parts.append(f"{two_digits(line.slope)} {series.unit} a {series.per}")
    return " + ".join(parts)


def verdict(name: str, points: Sequence[Mapping[str, Any]]) -> str:
    """The quality of the fit, from the points' distances to the line."""
    ratios = line_of(name, points).ratios
    off = [
        f"{SERIES[name].shown(point['x'])} ({ratio:.2f} ×)"
        for point, ratio in zip(points, ratios, strict=True)
        if abs(ratio - 1) > TOLERANCE
    ]
    if off:
        return f"off the line: {', '.join(off)}"
    return f"within {max(abs(ratio - 1) for ratio in ratios):.0%}"


def tables(growth: Mapping[str, Mapping[str, Any]]) -> str:
    """For each series a table, and its line in words."""
    parts = []
    for name, series in SERIES.items():
        if name not in growth:
            continue
        points = growth[name]["points"]
        unit = "ns a record" if series.of_record else "ms"
        heads = [series.title, *(series.shown(point["x"]) for point in points)]
        rows = [heads, ["---", *["---:"] * len(points)]]
        rows += [
            [f"{unit}, {how}", *(_time(series.y(point, how)) for point in points)]
            for how in ("median", "best")
        ]
        ratios = line_of(name, points).ratios
        rows.append(["best ÷ line", *(f"{ratio:.2f}" for ratio in ratios)])
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        parts.append(f"{table}\n\nLine: {words(name, points)}; {verdict(name, points)}.")
    return "\n\n".join(parts)


def two_digits(number: float) -> str:
    """Two digits that count, and never an exponent.

    >>> [two_digits(number) for number in (0.0524, 0.996, 1.32, 9.96, 17.03, 1234)]
    ['0.052', '1.0', '1.3', '10', '17', '1200']
    """
    exponent = int(f"{number:.1e}".partition("e")[2])
    return f"{round(number, 1 - exponent):.{max(0, 1 - exponent)}f}"


def _time(value: float) -> str:
    """Three digits.

    >>> _time(0.01234), _time(1.2345), _time(123.45), _time(12345.6)
    ('0.0123', '1.23', '123', '12,346')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
