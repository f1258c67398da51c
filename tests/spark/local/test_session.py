from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from corpus import REPOSITORY
from local_java import environment
from waiting import eventually

import kafkajit.testing as kt

# What a session's program finds out about itself; the tests look at it afterwards.
PROGRAM = """
import json, os, sys
from kafkajit.spark.local import jvm, session

spark = session.local_session(cores="2", conf={"spark.sql.shuffle.partitions": "3"})

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.functions import udf

class Reader(DataSourceReader):
    def partitions(self):
        return [InputPartition(0), InputPartition(1)]
    def read(self, partition):
        with open("/proc/self/cmdline") as file:
            command = file.read().split(chr(0))
        import kafkajit
        facts = dict(executable=sys.executable, package=kafkajit.__file__, command=command)
        yield (json.dumps(facts),)

class Source(DataSource):
    @classmethod
    def name(cls):
        return "facts"
    def schema(self):
        return "facts STRING"
    def reader(self, schema):
        return Reader()

def report(**more):
    processes = {"jvm": session._jvm.process.pid, "server": jvm._fork_server.pid}
    print(json.dumps(more | processes | {"folder": str(session._jvm.folder)}), flush=True)

spark.dataSource.register(Source)
"""

ANSWERS = """
rows = spark.read.format("facts").load().collect()
spark.sql("CREATE TABLE made AS SELECT 1 AS one")
spark.sql("CREATE TEMPORARY VIEW seen AS SELECT * FROM made")
try:
    spark.sql("SELECT no_such_column FROM made")
except Exception as error:
    refused = type(error).__name__
again = session.local_session(conf={"spark.sql.shuffle.partitions": "5"})
system = spark._jvm.java.lang.System
report(
    workers=[json.loads(row.facts) for row in rows],
    count=spark.table("seen").count(),
    refused=refused,
    same=again is spark,
    zone=spark.conf.get("spark.sql.session.timeZone"),
    partitions=spark.conf.get("spark.sql.shuffle.partitions"),
    parallelism=spark.sparkContext.defaultParallelism,
    property=system.getProperty("kafkajit.test"),
    tasks=len(os.listdir(f"/proc/{jvm._fork_server.pid}/task")),
    environment=sorted(name for name in os.environ if "PYSPARK" in name),
)
"""

LONG_QUERY = """
report()
spark.range(10**12).selectExpr("sum(id * id % 7)").collect()
"""

SLEEPING_WORKER = """
import time
report()
spark.range(2).select(udf(lambda number: time.sleep(600) or 1)("id")).collect()
"""


def facts_of(program: str, cwd: Path, **more: str) -> tuple[dict[str, Any], str]:
    """What a program reported, and what it said on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        env=environment(**more),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@contextmanager
def running(program: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A program that has reported and goes on."""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())


def processes_of(facts: dict[str, Any]) -> list[str]:
    """Command lines of what runs for a session: the folder's name is in all of them."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text() + (process / "environ").read_text()
        except OSError:
            continue
        if facts["folder"] in command:
            found.append(command.split("\0\0")[0].replace("\0", " ")[:200])
    return found


def assert_gone(facts: dict[str, Any]) -> None:
    assert eventually(lambda: not processes_of(facts)), processes_of(facts)
    assert not Path(facts["folder"]).exists()


@pytest.fixture(scope="module")
def cwd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cwd")


@pytest.fixture(scope="module")
def session(cwd: Path) -> tuple[dict[str, Any], str]:
    """What a program with a session reported; it has ended."""
    return facts_of(PROGRAM + ANSWERS, cwd, JAVA_TOOL_OPTIONS="-Dkafkajit.test='a b'")


def test_a_session_answers_in_utc(session: tuple[dict[str, Any], str]) -> None:
    facts, _ = session
    assert facts["count"] == 1
    assert facts["refused"] == "AnalysisException"
    assert facts["zone"] == "UTC"
    assert facts["parallelism"] == 2


def test_spark_and_java_say_nothing(session: tuple[dict[str, Any], str]) -> None:
    _, stderr = session
    assert stderr == ""


def test_workers_are_this_python_with_this_package(session: tuple[dict[str, Any], str]) -> None:
    facts, _ = session
    assert len(facts["workers"]) == 2
    for worker in facts["workers"]:
        assert worker["executable"] == sys.executable
        assert worker["package"] == str(REPOSITORY / "kafkajit" / "__init__.py")


def test_workers_are_forked_from_a_server_without_threads(
    session: tuple[dict[str, Any], str],
) -> None:
    facts, _ = session
    assert facts["tasks"] == 1
    assert all("--serve" in worker["command"] for worker in facts["workers"])


def test_nothing_is_written_where_the_user_is(
    session: tuple[dict[str, Any], str], cwd: Path
) -> None:
    assert list(cwd.iterdir()) == []


def test_a_second_call_returns_the_session_with_the_new_settings(
    session: tuple[dict[str, Any], str],
) -> None:
    facts, _ = session
    assert facts["same"]
    assert facts["partitions"] == "5"


def test_java_options_of_the_environment_hold(session: tuple[dict[str, Any], str]) -> None:
    facts, _ = session
    assert facts["property"] == "a b"


def test_the_environment_of_the_program_stays_as_it_was(
    session: tuple[dict[str, Any], str],
) -> None:
    facts, _ = session
    assert facts["environment"] == []


def test_everything_has_gone_after_the_program(session: tuple[dict[str, Any], str]) -> None:
    facts, _ = session
    assert_gone(facts)


@pytest.mark.thorough
def test_a_session_listens_on_the_loopback_only_and_goes_when_its_driver_is_killed(
    tmp_path: Path,
) -> None:
    with running(PROGRAM + SLEEPING_WORKER, tmp_path) as (process, facts):
        workers = eventually(
            lambda: any("pyspark.worker" in command for command in processes_of(facts)), 20
        )
        assert workers, "no task has started"
        assert listening(facts["jvm"]) == {"127.0.0.1"}
        process.kill()
        assert_gone(facts)


@pytest.mark.thorough
def test_an_interrupted_query_is_a_keyboard_interrupt_and_leaves_nothing(tmp_path: Path) -> None:
    with running(PROGRAM + LONG_QUERY, tmp_path) as (process, facts):
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, stderr = process.communicate(timeout=20)
        assert stderr.rstrip().endswith("KeyboardInterrupt")
        assert process.returncode == -signal.SIGINT
        assert_gone(facts)


@pytest.mark.thorough
def test_without_the_fork_server_workers_are_plain_python(tmp_path: Path) -> None:
    stop = "os.remove(session._jvm.folder / 'fork_server')\n"
    facts, stderr = facts_of(PROGRAM + stop + ANSWERS, tmp_path)
    assert stderr == ""
    for worker in facts["workers"]:
        assert worker["command"][1:3] == ["-m", "pyspark.daemon"]
        assert worker["executable"] == sys.executable
        assert worker["package"] == str(REPOSITORY / "kafkajit" / "__init__.py")


def listening(pid: int) -> set[str]:
    """Addresses on which a process accepts TCP connections."""
    sockets = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets.add(str(descriptor.readlink()))
        except OSError:
            continue
    addresses = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                last = bytes.fromhex(fields[1].partition(":")[0])[-4:]
                addresses.add(".".join(str(byte) for byte in reversed(last)))
    return addresses


PLAIN = """
import json, os, sys
from kafkajit.spark import local_session
from kafkajit.spark.local import session

spark = local_session(cores="2")
count = spark.read.format("kafkaLog").load(sys.argv[1]).where("topic = 'orders'").count()
print(json.dumps({"count": count, "ours": session._jvm is not None,
                  "zone": spark.conf.get("spark.sql.session.timeZone")}))
"""


@pytest.mark.thorough
def test_the_quick_start_can_be_switched_off(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, kt.SAMPLE],
        cwd=tmp_path,
        env=environment(KAFKAJIT_QUICK_START="0"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"count": 27, "ours": False, "zone": "UTC"}
    assert list(tmp_path.iterdir()) == []
