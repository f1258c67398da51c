"""`report`: takes a report of a folder through Spark, for folders that outgrow one machine.

The driver lists the folder and cuts the work into tasks (kafkajit/report/tasks.py). Executors run
them, with the storage layer that scans have, and return small pieces. The driver merges these, a
Spark partition at a time.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from kafkajit.places.location import absolute
from kafkajit.places.named import each_name
from kafkajit.places.private_keys import PrivateKeys
from kafkajit.report.take import DEPTHS, SAMPLE, ReportOptions, take
from kafkajit.report.tasks import Task
from kafkajit.spark.worker import AckOnUnpickle, in_worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Piece = TypeVar("_Piece")

# Each core gets this number of tasks, so that none waits long for the slowest one.
_TASKS_PER_CORE = 4
# A task costs Spark some 20 ms; its pieces fit into the driver's memory.
_LEAST_SHARE, _MOST_SHARE = 64 << 20, 1 << 30


def report(
    spark: SparkSession,
    *paths: str,
    topics: Iterable[str] | str = (),
    depth: str = SAMPLE,
    private_keys: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Take the report of `kafkajit report` through Spark, and return its document.

    Works with Spark Connect as well. Executors need the package and the same paths: see
    docs/deploy.md. No broker may write to the folder meanwhile. docs/report.md describes the
    document.

    >>> import kafkajit.testing as kt
    >>> from kafkajit.spark import report
    >>> report(spark, str(kt.SAMPLE))["totals"]["records"]
    49

    Args:
        spark: the session that runs the tasks
        paths: log.dirs folders, partitions' folders, segments, globs or URIs
        topics: only these topics
        depth: "headers" of batches alone, a "sample" of records, or "all" records
        private_keys: files of private keys by their ids, on each executor, for segments that are
            encrypted in tiered storage

    Raises:
        ValueError: the depth is unknown, or no path is given
        FileNotFoundError: a path has no segments, or a topic has none
        pyspark.errors.PythonException: a task has failed; its message has the path and the problem
    """
    if depth not in DEPTHS:
        raise ValueError(f"the depth is one of {', '.join(DEPTHS)}, not {depth!r}")
    if not paths:
        raise ValueError("no path is given: name the folders to report on")
    options = ReportOptions(
        tuple(map(absolute, paths)), each_name(topics), depth, PrivateKeys.of(private_keys)
    )
    return take(options, runner=SparkRunner(spark)) | {"paths": list(paths)}


class SparkRunner:
    """Runs tasks in Spark, several in one of Spark's if they are small."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._cores = _cores(spark)

    def share(self, cost: int) -> int:
        """The cost of one of Spark's tasks."""
        share = cost // (_TASKS_PER_CORE * self._cores)
        return min(max(share, _LEAST_SHARE), _MOST_SHARE)

    def run(self, tasks: Iterable[Task[_Piece]]) -> Iterator[_Piece]:
        """The pieces, in the order of their tasks.

        Spark keeps them on its disks until the driver has merged them, one of its partitions at a
        time: with 1,000 topics, the sketches of all keys would fill the driver's memory.
        """
        packs = [*self._packed(tasks)]
        if not packs:
            return
        numbers = pa.array(range(len(packs)), pa.int32())
        table = pa.table({"number": numbers, "tasks": pa.array(packs, pa.binary())})
        frame = self._spark.createDataFrame(table).repartitionById(len(packs), "number")
        pieces = frame.mapInArrow(_Worker().run, "piece binary")
        if len(packs) == 1:
            yield from (_unpickled(row.piece) for row in pieces.collect())
            return
        from pyspark import StorageLevel

        pieces.persist(StorageLevel.DISK_ONLY)
        try:
            pieces.count()
            for row in pieces.toLocalIterator():
                yield _unpickled(row.piece)
        finally:
            pieces.unpersist()

    def _packed(self, tasks: Iterable[Task[_Piece]]) -> Iterator[bytes]:
        """Tasks in order, those for one of Spark's pickled together."""
        pack: list[Task[_Piece]] = []
        room = 0
        planned = list(tasks)
        share = self.share(sum(task.cost for task in planned))
        for task in planned:
            if pack and task.cost > room:
                yield pickle.dumps(pack)
                pack = []
            room = (room if pack else share) - task.cost
            pack.append(task)
        if pack:
            yield pickle.dumps(pack)


class _Worker:
    """Runs the tasks that Spark hands over."""

    def __init__(self) -> None:
        self._ack = AckOnUnpickle()

    def run(self, packs: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A row for the piece of each task."""
        with in_worker():
            for rows in packs:
                for pack in rows["tasks"]:
                    for task in _unpickled(pack.as_py()):
                        piece = pickle.dumps(_piece_of(task))
                        yield pa.record_batch({"piece": pa.array([piece], pa.binary())})


def _unpickled(content: bytes) -> Any:
    return pickle.loads(content)  # noqa: S301  this job's own driver or worker has written it


def _piece_of(task: Task[_Piece]) -> _Piece:
    try:
        return task.run()
    except Exception as error:
        folder = task.path.rpartition("/")[0]
        if folder in str(error):
            raise
        # A path that leads to the problem, on one of many machines.
        raise RuntimeError(f"{task.path}: {type(error).__name__}: {error}") from error


def _cores(spark: SparkSession) -> int:
    """The number of tasks that run at once by default."""
    from pyspark.sql.functions import spark_partition_id

    numbers = spark.range(1 << 16).select(spark_partition_id().alias("number"))
    (row,) = numbers.groupBy().max("number").collect()
    return int(row[0]) + 1
