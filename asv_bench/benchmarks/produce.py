"""kafkajit.produce: writes rows, as Spark passes them, to logs."""

# ruff: noqa: ARG002  # asv hands every parameter to every method
from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import kafkajit
from kafkajit.produce.commit import commit
from kafkajit.produce.options import ProduceOptions
from kafkajit.produce.task_output import StagedSegment, TaskOutput

from . import segments
from .rolled_logs import temporary_folder

TASKS = 2
# Spark's spark.sql.execution.arrow.maxRecordsPerBatch
ROWS = 10_000


class WriteLogs:
    """16 MiB of rows by each of two tasks, partitioned by a column or by key."""

    params = ([8, 1000], ["partition", "key"])
    param_names = ("partitions", "by")
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, partitions: int, by: str) -> None:
        path = segments.small().path()
        table = kafkajit.read_records(path, columns=["key", "value", "timestamp"])
        if by == "partition":
            numbers = np.arange(table.num_rows, dtype=np.int32) % partitions
            table = table.append_column("partition", pa.array(numbers))
        self.rows = table.to_batches(ROWS)
        self.folder = temporary_folder()
        self.given = {"topic": "orders", "partitions": str(partitions)}
        self.time_write(partitions, by)

    def teardown(self, partitions: int, by: str) -> None:
        self.folder.cleanup()

    def time_tasks(self, partitions: int, by: str) -> None:
        """Without the commit."""
        self.tasks(self.new_job())

    def time_write(self, partitions: int, by: str) -> None:
        """With the commit, which merges small files and syncs everything."""
        options = self.new_job()
        staged = self.tasks(options)
        commit(staged, options.path / ".together-delete", options, overwrite=False)

    def new_job(self) -> ProduceOptions:
        return ProduceOptions.parse({**self.given, "path": tempfile.mkdtemp(dir=self.folder.name)})

    def tasks(self, options: ProduceOptions) -> list[StagedSegment]:
        staged = []
        for task in range(TASKS):
            folder = Path(options.path) / f".{task}-delete"
            with TaskOutput(folder, options, timestamp=1, task=task) as writer:
                for records in self.rows:
                    writer.write(records)
                staged += writer.close()
        return staged


class ImportFiles:
    """An import of 16 MiB of exported records, with the commit."""

    params = ["parquet", "jsonl", "csv", "avro"]
    param_names = ["format"]
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self, format_: str) -> None:
        self.folder = temporary_folder()
        self.files = Path(self.folder.name) / "files"
        kafkajit.export(segments.small().path().parent, self.files, to=format_)
        self.time_import(format_)

    def teardown(self, format_: str) -> None:
        self.folder.cleanup()

    def time_import(self, format_: str) -> None:
        """Into a new folder."""
        kafkajit.import_files(self.files, tempfile.mkdtemp(dir=self.folder.name)).apply()
