"""The latest measurements, kept in the repository: docs/performance/peers.json.

It has a part for each comparison, in `comparisons`, `spark`, `upkeep`, `export`, `growth`, `values`
and `grep`. Parts are measured separately, so each names the processor's model and the versions of
all that took part.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from asv_bench.peers.rounds import REPO

RECORD = REPO / "docs" / "performance" / "peers.json"
KINDS = ("comparisons", "spark", "upkeep", "export", "growth", "values", "grep")

Record = dict[str, dict[str, dict[str, Any]]]


def load(path: Path = RECORD) -> Record:
    """All recorded parts, by kind and name."""
    found = json.loads(path.read_text()) if path.exists() else {}
    return {kind: found.get(kind, {}) for kind in KINDS}


def add(path: Path, kind: str, parts: Mapping[str, dict[str, Any]]) -> None:
    """Replace parts of the same names; the others, and the order, stay."""
    found = load(path)
    found[kind] |= parts
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")


def measured_with(packages: Sequence[str], **others: str) -> dict[str, str]:
    """The processor and versions, without anything that identifies the machine."""
    cpus = Path("/proc/cpuinfo")
    models = [
        line.split(":", 1)[1].strip()
        for line in (cpus.read_text().splitlines() if cpus.exists() else ())
        if line.startswith("model name")
    ]
    cpu = models[0] if models else platform.machine()
    versions = {name: version(name) for name in ("numba", "numpy", "pyarrow", *packages)}
    return {"cpu": cpu, "Python": platform.python_version()} | versions | others
