"""Writes the recorded figures into the pages and charts, and checks that they agree.

A page marks the place of a section of report.py with two comments, `<!-- speed NAME: … -->` and
`<!-- /speed NAME -->`. The metadata of a chart holds a digest of its figures: two versions of
matplotlib draw different pictures of the same figures.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from asv_bench.peers.charts import charts, digest, draw
from asv_bench.peers.record import RECORD, load
from asv_bench.peers.report import sections
from asv_bench.peers.rounds import REPO

PAGES = (REPO / "README.md", REPO / "docs" / "performance.md")
COMMAND = "python -m asv_bench.peers --report"
_PLACE = re.compile(r"<!-- speed ([\w-]+)[^\n]*-->\n.*?<!-- /speed \1 -->", re.DOTALL)


def filled(page: str, texts: Mapping[str, str]) -> str:
    """Put these sections into their places on a page."""

    def place(found: re.Match[str]) -> str:
        name = found[1]
        if name not in texts:
            raise ValueError(f"no section {name!r}; there are: {', '.join(texts)}")
        return f"<!-- speed {name}: {COMMAND} -->\n{texts[name]}\n<!-- /speed {name} -->"

    return _PLACE.sub(place, page)


def publish(path: Path = RECORD, pages: tuple[Path, ...] = PAGES) -> None:
    """Write the sections into the pages, and the charts beside the record."""
    record = load(path)
    texts = sections(record)
    for page in pages:
        page.write_text(filled(page.read_text(), texts))
    for name, chart in charts(record).items():
        draw(chart, path.with_name(f"{name}.svg"))


def check(path: Path = RECORD, pages: tuple[Path, ...] = PAGES) -> None:
    """Exit with 1 and list the differences if a page or chart disagrees with the record."""
    found = disagreements(path, pages)
    for line in found:
        print(line, file=sys.stderr)
    if found:
        sys.exit(f"pages and {path.name} disagree; run: {COMMAND}")


def disagreements(path: Path = RECORD, pages: tuple[Path, ...] = PAGES) -> list[str]:
    """List the pages and charts that disagree with the record, one line each."""
    record = load(path)
    texts = sections(record)
    found = []
    for page in pages:
        text = page.read_text()
        wanted = filled(text, texts)
        found += [
            f"{page.name}: the table <!-- speed {here[1]} --> has other figures"
            for here, there in zip(_PLACE.finditer(text), _PLACE.finditer(wanted), strict=True)
            if here[0] != there[0]
        ]
    for name, chart in charts(record).items():
        file = path.with_name(f"{name}.svg")
        if not file.exists():
            found.append(f"{file.name}: is missing")
        elif digest(chart).encode() not in file.read_bytes():
            found.append(f"{file.name}: shows other figures")
    return found
