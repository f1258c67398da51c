"""Measure how the commands' processor time and memory grow with partitions and with segments.

Each point is one run of a command in a process of its own, with the start of Python, over a folder
of tiny segments that the system has in memory: what is measured is the cost of a partition and of
a segment, not of bytes. Folders are made once, in KAFKAJIT_BENCH_DIR or ~/.cache/kafkajit/bench.

  python -m asv_bench.peers.commands                       everything, 40 minutes
  python -m asv_bench.peers.commands --axis partitions --sizes 250,1000 --only repair,report
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from asv_bench.benchmarks.many_segments import folder_of
from asv_bench.benchmarks.segments import cache_folder

AXES = {"partitions": (250, 1_000, 4_000, 16_000), "segments": (500, 2_000, 8_000, 32_000)}
# It deletes all but the last of a partition's many segments.
_RETENTION = ("--config", "retention.ms=86400000")

# The words of each command: LOGS is the folder, COPY a copy of it, and NEW a place for results.
COMMANDS: dict[str, tuple[str, ...]] = {
    "info": ("info", "LOGS"),
    "report --quick": ("report", "LOGS", "--quick", "-o", "NEW.html"),
    "report": ("report", "LOGS", "-o", "NEW.html"),
    "report --deep": ("report", "LOGS", "--deep", "-o", "NEW.html"),
    "tail": ("tail", "LOGS"),
    "grep": ("grep", "nothing", "LOGS"),
    "export": ("export", "LOGS", "-o", "NEW", "--to", "parquet"),
    "export again": ("export", "LOGS", "-o", "NEW", "--to", "parquet"),
    "repair": ("repair", "LOGS"),
    "retain": ("retain", "LOGS", *_RETENTION),
    "compact": ("compact", "LOGS"),
    "restore": ("restore", "LOGS", "NEW"),
    "repair --apply": ("repair", "COPY", "--apply"),
    "retain --apply": ("retain", "COPY", *_RETENTION, "--apply"),
    "compact --apply": ("compact", "COPY", "--apply"),
    "restore --apply": ("restore", "LOGS", "NEW", "--apply"),
}


class Cost(NamedTuple):
    """The processor time and memory of one run."""

    seconds: float  # of the processor
    megabytes: float


def measured(name: str, logs: Path) -> Cost:
    """Run a command over logs."""
    with tempfile.TemporaryDirectory(dir=cache_folder()) as work:
        new, copied = Path(work) / "new", Path(work) / "copy"
        places = {"LOGS": logs, "COPY": copied, "NEW": new, "NEW.html": new.with_suffix(".html")}
        words = [str(places.get(word, word)) for word in COMMANDS[name]]
        if "COPY" in COMMANDS[name]:
            shutil.copytree(logs, copied)
        if name == "export again":
            _run(words)
        return _run(words)


def _run(words: Sequence[str]) -> Cost:
    command = [sys.executable, "-m", "kafkajit.cli", *words]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    # 2: a plan has something to do; 1: grep has no match.
    is_plan = words[0] in ("repair", "retain", "compact", "restore") and "--apply" not in words
    if process.returncode not in (0, 2 if is_plan else 0, 1 if words[0] == "grep" else 0):
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def exponent(sizes: Sequence[int], costs: Sequence[Cost]) -> float:
    """The power of the size with which the time grows, by the last three of a row of sizes.

    Each size is the one before it, times the same. So what every run takes, such as the start of
    Python, does not matter.
    """
    less, some, more = (cost.seconds for cost in costs[-3:])
    grown = max(more - some, 1e-3) / max(some - less, 1e-3)
    return math.log(grown) / math.log(sizes[-1] / sizes[-2])


def lines(axis: str, sizes: Sequence[int], names: Sequence[str]) -> Iterator[str]:
    """A table in Markdown: seconds and megabytes at each size."""
    yield f"| {axis} | " + " | ".join(f"{size:,}" for size in sizes) + " | exponent | memory |"
    yield "| --- |" + " ---: |" * (len(sizes) + 2)
    for name in names:
        is_compacted = not name.startswith("retain")
        logs = [folder_of(axis, size, is_compacted=is_compacted) for size in sizes]
        costs = [measured(name, folder) for folder in logs]
        cells = [f"{cost.seconds:.1f}" for cost in costs]
        power = f"{exponent(sizes, costs):.2f}" if len(sizes) > 2 else ""
        memory = max(cost.megabytes for cost in costs)
        yield f"| `{name}` | {' | '.join(cells)} | {power} | {memory:,.0f} MB |"


def main() -> None:
    """Print a table for each axis."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--axis", choices=AXES, action="append")
    parser.add_argument("--sizes", help="of the one axis, with commas")
    parser.add_argument("--only", help="commands, with commas")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(COMMANDS)
    for axis in options.axis or AXES:
        sizes = [int(size) for size in options.sizes.split(",")] if options.sizes else AXES[axis]
        for line in lines(axis, sizes, names):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
