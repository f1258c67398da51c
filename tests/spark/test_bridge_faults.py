"""Faults in the middle of a scan through the bridge: what a query, and the next one, answer.

Each task pauses at one row, so that its worker waits with most of the rows still to come. A worker
that reads a log has it open, and by this the tests find it among their own descendants.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from cluster import ARCHIVES, PYTHON, Cluster, environment_of, run, server, spark_class
from corpus import DATA
from local_java import environment
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from spark_state import BY_COLUMNS, arrow_bytes, plan_of, setting
from waiting import eventually

import kafkajit
import kafkajit.testing as kt

DAMAGED = DATA / "damaged" / "crc"
ROWS, VALUE_BYTES = 6000, 16384  # 94 MiB
PAUSE = "IF(offset % 3000 = 100, reflect('java.lang.Thread', 'sleep', 1500L), NULL)"
COLUMNS = ("offset", "crc32(value)", PAUSE)
PATIENCE = 120.0

Rows = list[list[int]]


@pytest.fixture(scope="module")
def values() -> list[bytes]:
    content = np.random.default_rng(7).bytes(ROWS + VALUE_BYTES)
    return [content[start : start + VALUE_BYTES] for start in range(ROWS)]


@pytest.fixture(scope="module")
def log(values: list[bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = kafkajit.encode_batches(pa.table({"value": values}), batch_records=32)
    path = tmp_path_factory.mktemp("log") / f"{0:020}.log"
    path.write_bytes(content)
    return path


@pytest.fixture(scope="module")
def all_rows(values: list[bytes]) -> Rows:
    return [[offset, crc32(value)] for offset, value in enumerate(values)]


@pytest.fixture
def folder(log: Path, tmp_path: Path) -> Path:
    return linked(log, tmp_path / "orders-0")


def linked(log: Path, folder: Path) -> Path:
    """A partition's folder with this log, which is not copied."""
    folder.mkdir(parents=True)
    (folder / log.name).hardlink_to(log)
    return folder


@pytest.fixture
def warm(spark: SparkSession) -> Iterator[SparkSession]:
    """A session for which no worker compiles: such a worker seems to wait.

    A scan is one task, because a TCP socket can take more than 32 MiB.
    """
    spark.read.format("kafkaLog").load(kt.SAMPLE).collect()
    with setting(spark, "spark.sql.leafNodeDefaultParallelism", "1"):
        yield spark


def scan(spark: SparkSession, folder: Path, *, pauses: bool = False) -> DataFrame:
    columns = COLUMNS if pauses else COLUMNS[:2]
    return spark.read.format("kafkaLog").load(str(folder)).selectExpr(*columns)


def rows_of(frame: DataFrame) -> Rows:
    return sorted([offset, crc] for offset, crc, *_ in frame.collect())


def state_of(process: int) -> list[str]:
    """Its state, its parent, and more, up to its CPU time (proc_pid_stat(5))."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:13]


def descendants(ancestor: int) -> list[int]:
    children = defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*"):
        process = int(entry.name)
        with contextlib.suppress(OSError):  # it has ended
            children[int(state_of(process)[1])].append(process)
    found = []
    left = [ancestor]
    while left:
        begotten = children[left.pop()]
        found += begotten
        left += begotten
    return found


def has_open(process: int, folder: Path) -> bool:
    with contextlib.suppress(OSError):
        opened = Path(f"/proc/{process}/fd").iterdir()
        return any(str(file.readlink()).startswith(f"{folder}/") for file in opened)
    return False


def readers_of(folder: Path) -> list[int]:
    """The tests' own descendants that have a log of this folder open."""
    return [process for process in descendants(os.getpid()) if has_open(process, folder)]


def tasks_of(folder: Path) -> list[int]:
    """Of these, the workers of executors. On a cluster, those of the driver plan scans."""
    executors = filter(is_executor, descendants(os.getpid()))
    workers = {worker for executor in executors for worker in descendants(executor)}
    return [process for process in readers_of(folder) if process in workers]


def is_waiting(process: int) -> bool:
    """Whether it does nothing: Spark takes no more rows. A worker that plans a scan never waits."""
    with contextlib.suppress(OSError):
        before = state_of(process)
        time.sleep(0.1)
        return before == state_of(process) and before[0] == "S"
    return False


@contextlib.contextmanager
def in_the_middle_of_a_scan(
    folder: Path,
    act: Callable[[list[int]], object],
    readers_of: Callable[[Path], list[int]] = readers_of,
) -> Iterator[None]:
    """Within the block, do something to the workers that wait midway through a folder, once."""
    has_ended = threading.Event()

    def wait_and_act() -> None:
        while not (readers := [*filter(is_waiting, readers_of(folder))]):
            assert not has_ended.wait(0.02), "no worker has waited midway through a scan"
        act(readers)

    with ThreadPoolExecutor(1) as thread:
        acted = thread.submit(wait_and_act)
        try:
            yield
        finally:
            has_ended.set()
            acted.result()


def kill(processes: list[int]) -> None:
    for process in processes:
        os.kill(process, signal.SIGKILL)


def test_a_killed_worker_fails_its_query_and_no_other(
    warm: SparkSession, folder: Path, all_rows: Rows
) -> None:
    before = arrow_bytes(warm)
    with (
        in_the_middle_of_a_scan(folder, kill),
        pytest.raises(Py4JJavaError, match="Python worker exited unexpectedly"),
    ):
        rows_of(scan(warm, folder, pauses=True))
    assert eventually(lambda: arrow_bytes(warm) <= before)
    frame = scan(warm, folder)
    assert rows_of(frame) == all_rows
    assert BY_COLUMNS in plan_of(frame)


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_cancelled_query_ends_and_frees_its_memory(
    is_interrupted: bool, warm: SparkSession, folder: Path, all_rows: Rows
) -> None:
    before = arrow_bytes(warm)
    context = warm.sparkContext
    context.setInterruptOnCancel(is_interrupted)
    try:
        with (
            in_the_middle_of_a_scan(folder, lambda _: context.cancelAllJobs()),
            pytest.raises(Py4JJavaError, match="SPARK_JOB_CANCELLED"),
        ):
            rows_of(scan(warm, folder, pauses=True))
    finally:
        context.setInterruptOnCancel(False)
    assert eventually(lambda: arrow_bytes(warm) <= before and not readers_of(folder))
    assert rows_of(scan(warm, folder)) == all_rows


@pytest.mark.parametrize("is_small", [True, False])
def test_a_scan_that_stops_early_leaves_its_worker_to_the_next(
    is_small: bool, warm: SparkSession, folder: Path
) -> None:
    small = warm.read.format("kafkaLog").load(kt.SAMPLE).where("offset > 3")
    frame = (small if is_small else scan(warm, folder)).limit(3)
    frame.collect()
    before = set(descendants(os.getpid()))
    for _ in range(5):
        assert len(frame.collect()) == 3
    assert set(descendants(os.getpid())) <= before


# A program with a session of its own. It scans some folders, one after the other.
SCANS = """
import json, sys

cores, columns, *folders = sys.argv[1:]
if cores:
    from kafkajit.spark.local import session
    spark = session.local_session(cores=cores)
    session.atexit.unregister(session.start_maker)
else:
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.getOrCreate()
from kafkajit.spark import register
register(spark)
spark.read.format("kafkaLog").load("sample:").collect()  # it compiles before

context = spark.sparkContext
tracker = context.statusTracker()
found = []
for folder in folders:
    group = f"{len(found)}"
    context.setJobGroup(group, folder)
    frame = spark.read.format("kafkaLog").load(folder).selectExpr(*json.loads(columns))
    rows = sorted([offset, crc] for offset, crc, _ in frame.collect())
    jobs = tracker.getJobIdsForGroup(group)
    stages = [stage for job in jobs for stage in tracker.getJobInfo(job).stageIds]
    found.append({
        "rows": rows,
        "failures": sum(tracker.getStageInfo(stage).numFailedTasks for stage in stages),
        "plan": frame._jdf.queryExecution().executedPlan().toString(),
    })
print(json.dumps(found))
spark.stop()
"""


def run_scans(command: list[str], *folders: Path, cores: str = "", **around: Any) -> list[Any]:
    """The answers of a program that scans folders."""
    arguments = [cores, json.dumps(COLUMNS), *map(str, folders)]
    answers = json.loads(run([*command, *arguments], **around).splitlines()[-1])
    for answer in answers:
        assert BY_COLUMNS in answer["plan"]
    return list(answers)


@pytest.mark.thorough
def test_a_task_whose_worker_was_killed_is_tried_again(folder: Path, all_rows: Rows) -> None:
    command = [sys.executable, "-c", SCANS]
    around = environment(KAFKAJIT_CACHE="1")
    with in_the_middle_of_a_scan(folder, kill):
        answers = run_scans(command, folder, folder, cores="2,4", env=around)
    assert [answer["rows"] == all_rows for answer in answers] == [True] * 2
    assert [answer["failures"] > 0 for answer in answers] == [True, False]


# It stops scans early, and reads damaged logs.
ROUNDS = """
import sys
from kafkajit.spark import register
from kafkajit.spark.local import session

spark = session.local_session(cores="2")
session.atexit.unregister(session.start_maker)
register(spark)
sound, damaged = (spark.read.format("kafkaLog").load(path) for path in sys.argv[1:])
root = spark._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()

def ask(times):
    for number in range(times):
        assert [row.offset for row in sound.limit(3).collect()] == [0, 1, 2]
        if number % 2:
            try:
                damaged.collect()
            except Exception as error:
                assert "CorruptRecordError: Record is corrupt" in str(error)
            else:
                raise AssertionError("it read a damaged log")
    print(root.getAllocatedMemory(), flush=True)
    sys.stdin.readline()

ask(5)
ask(50)
assert sound.count() == sound.select("offset").distinct().count()
"""


@pytest.mark.thorough
def test_scans_that_stop_early_leave_no_memory_and_no_workers(folder: Path) -> None:
    command = [sys.executable, "-c", ROUNDS, str(folder), str(DAMAGED)]
    around = environment(KAFKAJIT_CACHE="1")
    with subprocess.Popen(
        command, env=around, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == "0\n"
        assert eventually(lambda: not readers_of(folder))
        before = len(descendants(program.pid))
        print(file=program.stdin, flush=True)
        assert program.stdout.readline() == "0\n"
        assert eventually(lambda: len(descendants(program.pid)) <= before)
        print(file=program.stdin, flush=True)
        assert program.wait(PATIENCE) == 0


@pytest.fixture(scope="module")
def driver(cluster: Cluster) -> Path:
    program: Path = cluster.folder / "scans.py"
    program.write_text(SCANS)
    return program


def run_on(cluster: Cluster, driver: Path, *folders: Path, **settings: str) -> list[Any]:
    # A Unix socket takes less than a MiB.
    settings = {
        "spark.task.maxFailures": "4",
        "spark.python.unix.domain.socket.enabled": "true",
    } | settings
    command = cluster.submit("--archives", ARCHIVES, str(driver), **settings)
    around = cluster.variables(PYTHON)
    return run_scans(command, *folders, cwd=cluster.folder, env=around)


def kill_executors(readers: list[int]) -> None:
    """Kill the JVMs among the tests' own descendants whose workers these are."""
    executors = [
        process
        for process in descendants(os.getpid())
        if is_executor(process) and set(readers) & set(descendants(process))
    ]
    assert executors
    kill(executors)


def is_executor(process: int) -> bool:
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{process}/cmdline").read_text().split("\0")
        return "org.apache.spark.executor.CoarseGrainedExecutorBackend" in command
    return False


@pytest.mark.thorough
def test_a_cluster_survives_the_loss_of_a_worker_and_of_an_executor(
    cluster: Cluster, driver: Path, log: Path, all_rows: Rows, tmp_path: Path
) -> None:
    names = ["worker", "executor", "after"]
    folders = [linked(log, tmp_path / name / "orders-0") for name in names]
    with (
        in_the_middle_of_a_scan(folders[0], kill, tasks_of),
        in_the_middle_of_a_scan(folders[1], kill_executors, tasks_of),
    ):
        answers = run_on(cluster, driver, *folders)
    assert [answer["rows"] == all_rows for answer in answers] == [True] * 3
    assert [answer["failures"] > 0 for answer in answers] == [True, True, False]


@pytest.mark.thorough
def test_a_task_that_hangs_is_overtaken_by_its_copy(
    cluster: Cluster, driver: Path, folder: Path, all_rows: Rows
) -> None:
    nodes = cluster.folder / "nodes"
    # Spark copies a task only to a host of another name.
    other = ["--host", "localhost", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
    worker = [*spark_class("worker.Worker"), *other, "--work-dir", str(nodes / "other")]
    settings = {
        "spark.cores.max": "3",
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1",
    }
    stopped: list[int] = []

    def stop(readers: list[int]) -> None:
        stopped.append(os.pidfd_open(readers[0]))
        os.kill(readers[0], signal.SIGSTOP)

    try:
        with (
            server([*worker, cluster.url], nodes, environment_of(nodes), lambda: True),
            in_the_middle_of_a_scan(folder, stop, tasks_of),
        ):
            answers = run_on(cluster, driver, folder, folder, **settings)
    finally:
        for process in stopped:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGKILL)
            os.close(process)
    assert [answer["rows"] == all_rows for answer in answers] == [True] * 2
    assert [answer["failures"] for answer in answers] == [0, 0]
