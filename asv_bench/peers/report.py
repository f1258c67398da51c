"""Results → tables: plain text while measuring, Markdown for the README."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

US = "kafkajit"
DUMPER = "Java, DumpLogSegments"
READERS = (
    US,
    "Java, copy",
    "Java, touch",
    "aiokafka",
    "kafka-python",
    "bare codec",
    "memcpy",
    "crc32c",
)
WRITERS = (US, "Java", "aiokafka", "bare codec")
PACKAGES = ("numba", "numpy", "pyarrow", "aiokafka", "kafka-python")


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    cpus = Path("/proc/cpuinfo")
    models = [
        line.split(":", 1)[1].strip()
        for line in (cpus.read_text().splitlines() if cpus.exists() else ())
        if line.startswith("model name")
    ]
    cpu = models[0] if models else platform.machine()
    return {"cpu": cpu, "Python": platform.python_version()} | {
        name: version(name) for name in PACKAGES
    }


def text(name: str, result: dict[str, Any]) -> str:
    """One comparison: seconds, GB/s of uncompressed log, times kafkajit's median."""
    lines = [f"\n{name}: {_describe(result)}"]
    if name == "memory":
        above = result["peak"] - result["imported"]
        lines.append(f"  peak {_mb(result['peak'])}, {_mb(above)} above that of the import")
        return "\n".join(lines)
    lines.append(f"  {'':24}{'median s':>9}{'best s':>9}{'GB/s':>8}{'ratio':>8}")
    ours = result["seconds"][US]["median"]
    for subject, seconds in result["seconds"].items():
        median, best = seconds["median"], seconds["best"]
        speed = result["plainBytes"] / median / 1e9
        lines.append(f"  {subject:24}{median:9.3f}{best:9.3f}{speed:8.2f}{median / ours:8.2f}")
    return "\n".join(lines)


def markdown(results: dict[str, Any]) -> str:
    """All comparisons: GB/s of each reader and how many times as long it takes as kafkajit."""
    comparisons = results["comparisons"]
    writing = {name: result for name, result in comparisons.items() if name.startswith("encode")}
    reading = {
        name: result
        for name, result in comparisons.items()
        if name != "memory" and not name.startswith(("dump", "encode"))
    }
    parts = []
    for title, found, subjects in (
        ("Reading records, one core", reading, READERS),
        ("Writing records, one core, batches of 16 KB", writing, WRITERS),
    ):
        if found:
            rows = [
                [_describe(result), *(_speed(result, subject) for subject in subjects)]
                for result in found.values()
            ]
            parts.append(_table([title, *subjects], rows))
    dumps = {
        "dump": "`--print-data-log`",
        "dump-headers": "batches only",
        "dump-commits": "`--offsets-decoder`",
    }
    rows = [
        [f"{flags}, {_describe(comparisons[name])}"]
        + [f"{comparisons[name]['seconds'][who]['median']:.2f} s" for who in (US, DUMPER)]
        for name, flags in dumps.items()
        if name in comparisons
    ]
    if rows:
        parts.append(_table(["Dumping text, start to end", "kafkajit", "DumpLogSegments"], rows))
    if "memory" in comparisons:
        memory = comparisons["memory"]
        parts.append(
            f"Peak memory of `iter_records` over a file of {_mb(memory['bytes'])}: "
            f"{_mb(memory['peak'] - memory['imported'])} above the import's."
        )
    parts.append(
        "GB/s of uncompressed log, median of interleaved rounds; in brackets how many times as "
        "long as kafkajit. "
        + ", ".join(f"{name} {value}" for name, value in results["machine"].items())
        + ". Printed by `python -m asv_bench.peers`."
    )
    return "\n\n".join(parts)


def _describe(result: dict[str, Any]) -> str:
    codec = "" if result["codec"] == "none" else f", {result['codec']}"
    magic = f"v{result['magic']}, " if result.get("magic", 2) < 2 else ""
    size = f"{result['records'] / 1e6:.3g} M × {result['valueSize']} B"
    return f"{magic}{size}{codec}, {_mb(result['bytes'])}"


def _speed(result: dict[str, Any], subject: str) -> str:
    if subject not in result["seconds"]:
        return ""
    median = result["seconds"][subject]["median"]
    speed = f"{result['plainBytes'] / median / 1e9:.2f}"
    if subject == US:
        return f"**{speed}**"
    return f"{speed} ({median / result['seconds'][US]['median']:.2g}×)"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def _mb(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
