"""`df.write.format("kafkaLog")`: Spark's side of `kafkajit.produce`.

Spark creates the writer where it executes the query and sends it to the tasks. Spark passes their
messages to `commit` if all tasks succeeded, else to `abort`. All of these may run in different
Python processes.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from kafkajit.produce.job_folder import JobFolder
from kafkajit.spark.worker import AckOnUnpickle, in_worker, reported

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkajit.produce.options import ProduceOptions
    from kafkajit.produce.task_output import StagedSegment


@dataclass
class TaskMessage(WriterCommitMessage):
    """The segments that a task has written."""

    staged: list[StagedSegment]


class KafkaLogWriter(DataSourceArrowWriter):
    """Writes the rows of one DataFrame."""

    def __init__(self, options: ProduceOptions, *, overwrite: bool) -> None:
        self._options = options
        self._overwrite = overwrite
        self._ack = AckOnUnpickle()
        self._now = int(time.time() * 1000)
        self._job = JobFolder(options.path)
        self._work = self._job.path

    @classmethod
    def of(cls, given: Mapping[str, str], schema: pa.Schema, *, overwrite: bool) -> KafkaLogWriter:
        """Create a writer for rows of this schema; raise an error if they cannot be written."""
        from kafkajit.produce.checks import check_columns, check_folder
        from kafkajit.produce.options import ProduceOptions

        options = ProduceOptions.parse(given)
        check_columns(schema, options)
        check_folder(options, overwrite=overwrite)
        return cls(options, overwrite=overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Write a task's rows into a folder of its own: Spark may run a task more than once."""
        from kafkajit.produce.task_output import TaskOutput

        with in_worker():
            context = TaskContext.get()
            if not self._work.is_dir():
                raise FileNotFoundError(
                    f"{self._work} does not exist: the job was aborted, or executors do not see "
                    f"the driver's {self._options.path}, which they must share with the driver"
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
        self._job.remove()

    @reported
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        self._job.abort()
