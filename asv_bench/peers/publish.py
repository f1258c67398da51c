"""The record's tables on the pages and its charts, and whether they are what the record says.

A page has a place for a section of report.py between two comments, `<!-- speed NAME: … -->` and
`<!-- /speed NAME -->`. A chart has a digest of what it shows in its metadata: pictures of two
versions of matplotlib differ, what they show does not.
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
    """A page with these sections in their places."""

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
        draw(chart, path.with_name(f"{name}.svg"), path.with_name(f"{name}.png"))


def check(path: Path = RECORD, pages: tuple[Path, ...] = PAGES) -> None:
    """Exit with 1, and say why, unless all is as the record says."""
    found = disagreements(path, pages)
    for line in found:
        print(line, file=sys.stderr)
    if found:
        sys.exit(f"this is not what {path.name} says; run: {COMMAND}")


def disagreements(path: Path = RECORD, pages: tuple[Path, ...] = PAGES) -> list[str]:
    """What is not as the record says, a line each."""
    record = load(path)
    texts = sections(record)
    found = []
    for page in pages:
        text = page.read_text()
        wanted = filled(text, texts)
        found += [
            f"{page.name}: what stands between <!-- speed {here[1]} --> and its end differs"
            for here, there in zip(_PLACE.finditer(text), _PLACE.finditer(wanted), strict=True)
            if here[0] != there[0]
        ]
    for name, chart in charts(record).items():
        mark = digest(chart).encode()
        for suffix in ("svg", "png"):
            file = path.with_name(f"{name}.{suffix}")
            if not file.exists():
                found.append(f"{file.name}: is not there")
            elif mark not in file.read_bytes():
                found.append(f"{file.name}: shows other figures")
    return found
