"""kafkajit.scan: a folder of logs as a table; the data source without Spark."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

from pathlib import Path

from kafkajit.scan.options import Options
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.table import plan_tasks, read_task, schema_of

from . import segments
from .reader import exhaust
from .rolled_logs import rolled_log, temporary_folder

PREDICATES = {
    "none": [],
    "one offset": [Predicate("offset", "=", 100_000)],
    "topic": [Predicate("topic", "=", "payments")],
}


class Plan:
    """A query over a log of 82 segments, by what it asks for."""

    params = list(PREDICATES)
    param_names = ["predicate"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, predicate: str) -> None:
        self.folder = temporary_folder()
        rolled_log(Path(self.folder.name))
        self.options = Options(paths=(self.folder.name,))
        self.schema = schema_of(self.options)
        self.time_plan_and_read(predicate)

    def teardown(self, predicate: str) -> None:
        self.folder.cleanup()

    def time_plan(self, predicate: str) -> None:
        """Which bytes of which files each task reads."""
        plan_tasks(self.options, PREDICATES[predicate])

    def time_plan_and_read(self, predicate: str) -> None:
        """All tasks one by one, every column."""
        for task in plan_tasks(self.options, PREDICATES[predicate]):
            exhaust(read_task(task, self.schema, self.options))
