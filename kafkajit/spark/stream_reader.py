"""The stream reader of `kafkaLog`, as Spark calls it: offsets, limits, tasks and their rows.

Spark keeps one reader in one Python process for as long as a query runs, and asks it for offsets
and tasks. It pickles another one for the tasks, which only read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kafkajit.format.limits import MAX_INT64
from kafkajit.spark.readers import TaskPartition
from kafkajit.spark.worker import AckOnUnpickle, in_worker, reported

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkajit.scan.plan import Split
    from kafkajit.scan.stream.log_stream import LogStream
    from kafkajit.scan.stream.offsets import StreamOffsets
    from kafkajit.scan.stream.options import Limits, StreamOptions


class KafkaLogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the records of a folder of logs as they come."""

    def __init__(
        self, options: StreamOptions, schema: pa.Schema, *, is_bridged: bool = False
    ) -> None:
        self._options = options
        self._schema = schema
        self._is_bridged = is_bridged
        self._kept: LogStream | None = None
        self._ack = AckOnUnpickle()

    @property
    def _stream(self) -> LogStream:
        from kafkajit.scan.stream.log_stream import LogStream

        if self._kept is None:
            self._kept = LogStream(self._options)
        return self._kept

    @reported
    def initialOffset(self) -> StreamOffsets:  # noqa: N802
        return self._stream.initial_offsets()

    @reported
    def latestOffset(self, start: StreamOffsets, limit: ReadLimit) -> StreamOffsets:  # noqa: N802
        return self._stream.latest_offsets(start, self._limits(limit))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        # Spark knows one limit at a time. It comes back to latestOffset, which adds the others.
        # ReadAllAvailable would mean Trigger.Once, which has only one micro-batch.
        limits = self._options.limits
        if limits.records is None and limits.bytes is not None:
            return ReadMaxBytes(limits.bytes)
        if limits.records is None and limits.files is not None:
            return ReadMaxFiles(limits.files)
        return ReadMaxRows(MAX_INT64 if limits.records is None else limits.records)

    def _limits(self, limit: ReadLimit) -> Limits | None:
        """All limits of a micro-batch; None if Spark wants everything."""
        limits = self._options.limits
        match limit:
            case ReadAllAvailable():
                return None
            case ReadMaxRows(max_rows) if max_rows < MAX_INT64:
                return limits._replace(records=max_rows)
            case ReadMaxBytes(max_bytes):
                return limits._replace(bytes=max_bytes)
            case ReadMaxFiles(max_files):
                return limits._replace(files=max_files)
        return limits

    @reported
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._stream.freeze()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        # java/LogStream.java takes the metrics out; Spark does not ask a Python source for any.
        offsets = self._stream.reported_offsets()
        if not self._is_bridged:
            return offsets
        return {"offsets": offsets, "metrics": self._stream.metrics()}

    @reported
    def partitions(self, start: StreamOffsets, end: StreamOffsets) -> Sequence[InputPartition]:
        return [TaskPartition(task, "") for task in self._stream.tasks(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from kafkajit.scan.stream.tasks import read_stream_task
        from kafkajit.scan.table import schema_of, with_whole_structs

        with in_worker():
            assert isinstance(partition, TaskPartition)
            scan = self._options.scan
            whole = with_whole_structs(self._schema, schema_of(scan), scan)
            task = cast("list[Split]", partition.task)
            for rows in read_stream_task(task, whole, self._options):
                yield rows if whole == self._schema else rows.cast(self._schema)

    def commit(self, end: StreamOffsets) -> None:
        self._stream.commit(end)

    def __getstate__(self) -> dict[str, Any]:
        # Tasks have their splits, and need nothing that the stream has seen.
        return {**self.__dict__, "_kept": None}
