"""kafkajit.scan: a folder of logs as a table; the data source without Spark."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

import shutil
from pathlib import Path

import kafkajit
import kafkajit.testing as kt
from kafkajit.log import overlaps as ends
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.patterns import Pattern
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.search import Search, Searcher, plan_search
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
        self.options = ScanOptions(paths=(self.folder.name,))
        self.schema = schema_of(self.options)
        self.time_plan_and_read(predicate)

    def teardown(self, predicate: str) -> None:
        self.folder.cleanup()

    def time_plan(self, predicate: str) -> None:
        """The byte ranges that each task reads."""
        plan_tasks(self.options, PREDICATES[predicate])

    def time_plan_and_read(self, predicate: str) -> None:
        """All tasks one by one, every column."""
        for task in plan_tasks(self.options, PREDICATES[predicate]):
            exhaust(read_task(task, self.schema, self.options))


class ManySegments:
    """2,000 segments of three records, 100 to a partition; reading is one process's work."""

    params = ["records", "batches"]
    param_names = ["kind"]

    def setup(self, kind: str) -> None:
        self.folder = temporary_folder()
        records = [kt.Record(b"k", b"v" * 20, [("h", b"x")])] * 3
        for partition in range(20):
            folder = Path(self.folder.name) / f"orders-{partition}"
            folder.mkdir()
            for base in range(0, 300, 3):
                (folder / f"{base:020}.log").write_bytes(kt.batch(records, base_offset=base))
        self.options = ScanOptions(paths=(self.folder.name,), kind=kind)
        self.schema = schema_of(self.options)
        self.tasks = plan_tasks(self.options, [])
        self.time_read(kind)

    def teardown(self, kind: str) -> None:
        self.folder.cleanup()

    def time_plan(self, kind: str) -> None:
        """Find, and pack into tasks."""
        plan_tasks(self.options, [])

    def time_read(self, kind: str) -> None:
        """All tasks one by one, every column."""
        for task in self.tasks:
            exhaust(read_task(task, self.schema, self.options))


class FirstPlan:
    """The same segments, of which the process knows no ends yet; `all` does not look at them."""

    params = ["served", "all"]
    param_names = ["overlaps"]
    number = 1

    def setup(self, overlaps: str) -> None:
        self.folder = temporary_folder()
        for partition in range(20):
            folder = Path(self.folder.name) / f"orders-{partition}"
            folder.mkdir()
            for base in range(0, 300, 3):
                log = kt.batch([kt.Record(b"k", b"v" * 20)] * 3, base_offset=base)
                (folder / f"{base:020}.log").write_bytes(log)
        self.options = ScanOptions(paths=(self.folder.name,), overlaps=overlaps)
        self.time_plan(overlaps)

    def teardown(self, overlaps: str) -> None:
        self.folder.cleanup()

    def time_plan(self, overlaps: str) -> None:
        """Find, look for overlaps, and pack into tasks."""
        ends._known.clear()
        plan_tasks(self.options, [])


class Export:
    """An export of 16 MiB of records to files."""

    params = ["parquet", "arrow", "csv", "jsonl", "avro"]
    param_names = ["format"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, format_: str) -> None:
        self.folder = temporary_folder()
        self.log = segments.small().path().parent
        self.time_export(format_)

    def teardown(self, format_: str) -> None:
        self.folder.cleanup()

    def time_export(self, format_: str) -> None:
        """Into a new folder, with syncs."""
        out = Path(self.folder.name) / "out"
        kafkajit.export(self.log, out, to=format_)
        shutil.rmtree(out)


PATTERNS = {"text": "nosuchtext", "expression": "[0-9]{17}", "everywhere": "id"}


class Searching:
    """A search in the values of one segment, uncompressed or not."""

    params = (["none", "lz4"], list(PATTERNS))
    param_names = ("codec", "pattern")
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, codec: str, pattern: str) -> None:
        path = str(segments.small(codec=codec).path())
        self.searcher = Searcher(
            Search((Pattern.of_regex(PATTERNS[pattern]),), ("value",)),
            ScanOptions(paths=(path,)),
            (),
        )
        self.splits = plan_search(self.searcher.options)
        self.time_search(codec, pattern)

    def time_search(self, codec: str, pattern: str) -> None:
        """All records of the batches that may match, and which do."""
        exhaust(self.searcher.parts(self.splits))
