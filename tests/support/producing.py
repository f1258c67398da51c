"""Jobs of `df.write.format("kafkaLog")` as Spark does them, but in this process."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from corpus import REPOSITORY

import kafkajit
from kafkajit.schema import HEADERS_TYPE, RECORD_COLUMNS
from kafkajit.spark.writer import KafkaLogWriter, TaskMessage

TIMESTAMP = pa.timestamp("us", "UTC")
_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": HEADERS_TYPE,
    "topic": pa.string(),
    "partition": pa.int32(),
    "timestamp": TIMESTAMP,
    "offset": pa.int64(),
}

# A task receives its rows in record batches.
Task = Sequence[pa.RecordBatch]


def rows(**columns: Sequence[Any]) -> pa.RecordBatch:
    """Rows in Spark's types."""
    arrays = {name: pa.array(values, _TYPES[name]) for name, values in columns.items()}
    return pa.RecordBatch.from_pydict(arrays)


class Job:
    """A job whose tasks run one after the other, or do not run."""

    def __init__(
        self, folder: Path, schema: pa.Schema, mode: str = "append", **options: object
    ) -> None:
        given = {name.lower(): str(value) for name, value in options.items()}
        writer = KafkaLogWriter.of(
            {"path": str(folder), **given}, schema, overwrite=mode == "overwrite"
        )
        self._sent = pickle.dumps(writer)  # to tasks, and where it is committed

    def attempt(self, task: Iterable[pa.RecordBatch]) -> TaskMessage:
        """Run a task; the caller decides whether it counts."""
        message = pickle.loads(self._sent).write(iter(task))
        return pickle.loads(pickle.dumps(message))

    def commit(self, messages: Sequence[TaskMessage]) -> None:
        try:
            pickle.loads(self._sent).commit(list(messages))
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        pickle.loads(self._sent).abort([])


def write(folder: Path, tasks: Sequence[Task], mode: str = "append", **options: object) -> None:
    """Run a whole job."""
    job = Job(folder, tasks[0][0].schema, mode, **options)
    try:
        messages = [job.attempt(task) for task in tasks]
    except BaseException:
        job.abort()
        raise
    job.commit(messages)


def files_of(folder: Path) -> dict[str, bytes]:
    """The content of all files below a folder, by their paths there; empty for folders."""
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    return {name: path.read_bytes() if path.is_file() else b"" for name, path in found.items()}


def log_of(folder: Path, *columns: str) -> list[tuple[Any, ...]]:
    """The records of a partition, from the first segment to the last."""
    names = list(columns or ("offset", "key", "value"))
    tables = [kafkajit.read_records(path, columns=names) for path in sorted(folder.glob("*.log"))]
    return [tuple(row.values()) for table in tables for row in table.select(names).to_pylist()]


def all_columns(path: Path) -> pa.RecordBatch:
    """A log's rows as Spark's reader returns them."""
    table = kafkajit.read_records(path, columns=list(RECORD_COLUMNS))
    at = table.column_names.index("timestamp")
    table = table.set_column(at, "timestamp", table["timestamp"].cast(TIMESTAMP))
    return table.combine_chunks().to_batches()[0]


_HOLD = """
import sys, time
from kafkajit.change.lock import FolderLock
with FolderLock(sys.argv[1] + "/any-0"):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def holding(folder: Path, seconds: float) -> subprocess.Popen[str]:
    """Have another process hold the folder's lock, as a broker does."""
    command = [sys.executable, "-c", _HOLD, str(folder), str(seconds)]
    holder = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder
