"""The report as a page: one HTML file that shows a document's figures and makes no request.

The document and the library of the charts are in the file, compressed; the browser inflates them. A
Content-Security-Policy in the file forbids all requests, and all scripts but these two.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafkajit.report.changes import changes_since
from kafkajit.report.chart_library import chart_library

_ASSETS = Path(__file__).with_name("assets")
_SCRIPTS = (
    "text.js",
    "elements.js",
    "tables.js",
    "charts.js",
    "treemap.js",
    "overview.js",
    "savings.js",
    "trouble.js",
    "topic.js",
    "start.js",
)


def page(document: Mapping[str, Any], earlier: Mapping[str, Any] | None = None) -> str:
    """The page of a document, and what changed since an earlier one, as HTML.

    Needs `pip install vl-convert-python`. The same documents give the same page.

    >>> html = page(json.loads(Path("report.json").read_text()))  # doctest: +SKIP
    >>> Path("report.html").write_text(html)  # doctest: +SKIP
    """
    if earlier is not None:
        document = {**document, "changes": changes_since(earlier, document)}
    library = chart_library()
    scripts = "\n".join(_asset(name) for name in _SCRIPTS)
    script = f'(() => {{\n"use strict";\n{scripts}}})();\n'
    style = _asset("page.css")
    parts = {
        "notices": _asset("notices.txt"),
        "policy": _policy([script, library], style),
        "style": style,
        "script": script,
        "document": _embedded(_text(document)),
        "vega": _embedded(library),
    }
    # The parts are set between pieces of the template: a part is never searched for names.
    before, *rest = _asset("page.html").split("{{")
    pieces = [before]
    for piece in rest:
        name, _, after = piece.partition("}}")
        pieces += [parts[name], after]
    return "".join(pieces)


def _policy(scripts: list[str], style: str) -> str:
    """A policy that allows these scripts and this style alone, and no request."""
    allowed = " ".join(_hash(script) for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _embedded(text: str) -> str:
    """A text as letters that end no element: compressed, in base64."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(_columns(document), separators=(",", ":"), allow_nan=False)


def _columns(value: Any) -> Any:
    """The value with lists of similar objects as columns, which compress to three quarters."""
    if isinstance(value, Mapping):
        return {key: _columns(part) for key, part in value.items()}
    if not isinstance(value, (list, tuple)):
        return value
    first = value[0] if value else None
    if len(value) < 2 or not isinstance(first, Mapping) or not first:
        return [_columns(part) for part in value]
    if any(not isinstance(row, Mapping) or row.keys() != first.keys() for row in value):
        return [_columns(part) for part in value]
    return {"$rows": len(value), "columns": {k: _columns([row[k] for row in value]) for k in first}}
