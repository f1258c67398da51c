"""`df.write.format("kafkaLog")`: Spark's side of `kafkajit.produce`.

Spark makes the writer where the query is executed, sends it to the tasks, and brings what they say
back to it: to `commit` if all have succeeded, else to `abort`. These are several Python processes.

Until the job is committed all that it writes is in one folder below the one that is written to. Its
name is one that a broker gives to logs that are to be deleted: if the driver dies, a broker that is
started there removes the folder by itself.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from kafkajit.spark.worker import Arrival, guest, reported

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkajit.produce.options import ProduceOptions
    from kafkajit.produce.task_output import StagedSegment


@dataclass
class TaskMessage(WriterCommitMessage):
    """What a task has written."""

    staged: list[StagedSegment]


class KafkaLogWriter(DataSourceArrowWriter):
    """Writes the rows of one DataFrame."""

    def __init__(self, options: ProduceOptions, *, overwrite: bool) -> None:
        self._options = options
        self._overwrite = overwrite
        self._arrival = Arrival()
        self._now = int(time.time() * 1000)
        self._made = _make_folder(options.path)
        self._work = options.path / f".kafkajit-0.{uuid.uuid4().hex}-delete"
        try:
            self._work.mkdir()
        except OSError:
            self.abort([])
            raise

    @classmethod
    def of(cls, given: Mapping[str, str], schema: pa.Schema, *, overwrite: bool) -> KafkaLogWriter:
        """A writer of rows of this schema, if they can be written."""
        from kafkajit.produce.checks import check_columns, check_folder
        from kafkajit.produce.options import ProduceOptions

        options = ProduceOptions.parse(given)
        check_columns(schema, options)
        check_folder(options, overwrite=overwrite)
        return cls(options, overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """A task's rows, into a folder of its own: Spark may try a task more than once."""
        from kafkajit.produce.task_output import TaskOutput

        with guest():
            context = TaskContext.get()
            if not self._work.is_dir():
                raise FileNotFoundError(
                    f"{self._work} is not there: either the job was given up, or "
                    f"{self._options.path} is a folder of the driver's alone. Driver and executors "
                    "must share it"
                )
            with TaskOutput(
                self._work / uuid.uuid4().hex,
                self._options,
                timestamp=self._now,
                task=0 if context is None else context.partitionId(),
            ) as writer:
                for records in iterator:
                    writer.write(records)
                return TaskMessage(writer.close())

    @reported
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        from kafkajit.produce.commit import commit

        staged = [
            segment
            for message in messages
            if isinstance(message, TaskMessage)
            for segment in message.staged
        ]
        commit(staged, self._work / "together", self._options, overwrite=self._overwrite)
        self._remove()

    @reported
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        self._remove()
        for folder in self._made:
            with suppress(OSError):  # another job has written there
                folder.rmdir()

    def _remove(self) -> None:
        """Remove what only this job knows."""
        # Tasks may still be writing; under another name they find nothing to write to.
        gone = self._work.with_name(self._work.name.replace("-0.", "-1."))
        with suppress(FileNotFoundError):
            self._work.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def _make_folder(path: Path) -> list[Path]:
    """Make a folder and those above it; which of them were made, the innermost first."""
    missing = [path]
    while not missing[-1].exists():
        missing.append(missing[-1].parent)
    made = missing[:-1]
    os.makedirs(path, exist_ok=True)  # noqa: PTH103
    return made
