"""Commands over folders with many partitions, or a partition with many segments: two sizes of each.

`python -m asv_bench.peers.commands` measures more sizes, in processes of their own.
"""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kafkajit
from kafkajit.report.info import info
from kafkajit.report.take import ALL, ReportOptions, take

from .many_segments import folder_of

_RETENTION = {"retention.ms": 86_400_000}
Command = Callable[[Path, Path], Any]

# A command over a folder, which must not change, with a place for its results.
COMMANDS: dict[str, Command] = {
    "info": lambda logs, _: info([str(logs)]),
    "report": lambda logs, _: take(ReportOptions((str(logs),))),
    "report --deep": lambda logs, _: take(ReportOptions((str(logs),), depth=ALL)),
    "export again": lambda logs, new: kafkajit.export(logs, new, to="parquet"),
    "repair": lambda logs, _: str(kafkajit.repair(logs)),
    "retain": lambda logs, _: str(kafkajit.retain(logs, config=_RETENTION)),
    "compact": lambda logs, _: str(kafkajit.compact(logs)),
    "restore": lambda logs, new: str(kafkajit.restore(logs, new)),
}


class Growth:
    """A command over folders of small segments, warm."""

    params = (["partitions", "segments"], [250, 1_000], list(COMMANDS))
    param_names = ("axis", "size", "command")
    timeout = 300

    def setup(self, axis: str, size: int, command: str) -> None:
        self.logs = folder_of(axis, size, is_compacted=command != "retain")
        self.work = Path(tempfile.mkdtemp())
        if command == "export again":
            self.time_command(axis, size, command)
        else:  # kernels are compiled
            COMMANDS[command](folder_of(axis, 2), self.work / "few")

    def teardown(self, axis: str, size: int, command: str) -> None:
        shutil.rmtree(self.work)

    def time_command(self, axis: str, size: int, command: str) -> None:
        COMMANDS[command](self.logs, self.work / "new")
