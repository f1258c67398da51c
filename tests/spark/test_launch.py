from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from corpus import REPOSITORY

from kafkajit.spark import class_archive, launch

# What a session's program finds out about itself; the tests look at it afterwards.
PROGRAM = """
import json, os, sys
from kafkajit.spark import launch

spark = launch.local_session(cores="2", conf={"spark.sql.shuffle.partitions": "3"})

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
    processes = {"jvm": launch._jvm.process.pid, "server": launch._fork_server.pid}
    print(json.dumps(more | processes | {"folder": str(launch._jvm.folder)}), flush=True)

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
again = launch.local_session(conf={"spark.sql.shuffle.partitions": "5"})
system = spark._jvm.java.lang.System
report(
    workers=[json.loads(row.facts) for row in rows],
    count=spark.table("seen").count(),
    refused=refused,
    same=again is spark,
    zone=spark.conf.get("spark.sql.session.timeZone"),
    pushdown=spark.conf.get("spark.sql.python.filterPushdown.enabled"),
    partitions=spark.conf.get("spark.sql.shuffle.partitions"),
    parallelism=spark.sparkContext.defaultParallelism,
    property=system.getProperty("kafkajit.test"),
    tasks=len(os.listdir(f"/proc/{launch._fork_server.pid}/task")),
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


def environment(**more: str) -> dict[str, str]:
    """Of a program that imports kafkajit from this checkout, and makes no archives."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    return clean | {"PYTHONPATH": str(REPOSITORY), "KAFKAJIT_CACHE": "0"} | more


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


def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


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


def test_a_session_answers_in_utc_and_pushes_filters_down(
    session: tuple[dict[str, Any], str],
) -> None:
    facts, _ = session
    assert facts["count"] == 1
    assert facts["refused"] == "AnalysisException"
    assert (facts["zone"], facts["pushdown"]) == ("UTC", "true")
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


def test_an_interrupted_query_is_a_keyboard_interrupt_and_leaves_nothing(tmp_path: Path) -> None:
    with running(PROGRAM + LONG_QUERY, tmp_path) as (process, facts):
        time.sleep(1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, stderr = process.communicate(timeout=20)
        assert stderr.rstrip().endswith("KeyboardInterrupt")
        assert process.returncode == -signal.SIGINT
        assert_gone(facts)


def test_without_the_fork_server_workers_are_plain_python(tmp_path: Path) -> None:
    stop = "os.remove(launch._jvm.folder / 'fork_server')\n"
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


def fake_java(folder: Path, script: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return java


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no test before had started a session in this process."""
    monkeypatch.setattr(launch, "_jvm", None)
    monkeypatch.setattr(launch, "_is_running", lambda: False)


OLD = """echo 'openjdk version "1.8.0_292"' >&2"""


def test_no_java_is_one_line_that_says_what_to_install(
    nothing_runs: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(launch.JavaNotFoundError) as raised:
        launch.local_session()
    assert re.fullmatch(
        r"there is no java on the PATH: Spark needs Java 17 or newer: install one \(.*\), "
        r"or set JAVA_HOME",
        str(raised.value),
    )


@pytest.mark.parametrize("version", ["1.8.0_292", "11.0.2", "16"])
def test_a_java_that_is_too_old_is_named(
    nothing_runs: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    java = fake_java(tmp_path, OLD.replace("1.8.0_292", version))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(java.parent))
    number = version.removeprefix("1.").partition(".")[0]
    with pytest.raises(launch.JavaNotFoundError, match=f"^{java} is Java {number}: Spark needs"):
        launch.local_session()


def test_java_home_goes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = fake_java(tmp_path, "exit 1")
    (tmp_path / "release").write_text('IMPLEMENTOR="X"\nJAVA_VERSION="21.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert launch.find_java().path == str(java)


@pytest.mark.parametrize("script", ["exit 1", "echo no Java here >&2; exit 1"])
def test_a_java_that_does_not_work_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(launch.JavaNotFoundError, match=r"^JAVA_HOME=.* has no bin/java: Spark"):
        launch.find_java()
    java = fake_java(tmp_path, script)
    with pytest.raises(launch.JavaNotFoundError, match=f"^{java} is no Java that works: Spark"):
        launch.find_java()


def test_no_pyspark_is_one_line_that_says_what_to_install(
    nothing_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "find_spec", lambda _: None)
    with pytest.raises(launch.SparkNotFoundError) as raised:
        launch.local_session()
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = " ".join(f"'{each}'" for each in project["optional-dependencies"]["spark"])
    assert str(raised.value) == f"pyspark is not installed; run pip install {wanted}"


def test_the_jvm_opens_what_sparks_own_launcher_opens() -> None:
    (jar,) = (path for path in launch.spark_jars() if path.name.startswith("spark-launcher"))
    with zipfile.ZipFile(jar) as content:
        options = content.read("org/apache/spark/launcher/JavaModuleOptions.class")
    opened = re.findall(rb"--add-opens=([\w./]+)=ALL-UNNAMED", options)
    ours = {f"java.base/{package}" for package in launch.OPENED}
    assert {name.decode() for name in opened} == ours | {"java.security.jgss/sun.security.krb5"}


def test_the_heap_is_half_of_the_memory_and_never_too_large_for_an_archive() -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 2**30 <= launch._heap() <= max(min(memory // 2, 31 * 2**30), 2**30)


# Archives. The JVM starts without one that it cannot use, and says nothing.


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("KAFKAJIT_CACHE", raising=False)
    return tmp_path / "kafkajit"


def archive_name() -> Path:
    name = launch.archive_name(launch.find_java(), launch.spark_jars())
    assert name is not None
    return name


def archived(content: bytes, said: int | None = None) -> Path:
    """An archive in the cache whose name says how large it is."""
    name = archive_name()
    size = len(content) if said is None else said
    path = name.with_name(f"{name.name}-{size}.jsa")
    path.write_bytes(content)
    return path


def test_an_archive_is_named_after_java_and_the_jars(cache: Path, tmp_path: Path) -> None:
    java, jars = launch.find_java(), [tmp_path / "a.jar"]
    jars[0].write_bytes(b"1")
    first = launch.archive_name(java, jars)
    assert first is not None
    assert first.parent == cache
    assert launch.archive_name(java, jars) == first
    assert launch.archive_name(launch.Java(java.path, "another"), jars) != first
    jars[0].write_bytes(b"22")
    assert launch.archive_name(java, jars) != first


def test_the_cache_can_be_turned_off(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKAJIT_CACHE", "0")
    assert launch.archive_name(launch.find_java(), launch.spark_jars()) is None


def test_there_is_no_archive_where_none_can_be_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert launch.archive_name(launch.find_java(), launch.spark_jars()) is None


def test_no_archive_is_taken_from_where_others_can_write(cache: Path) -> None:
    archive_name().parent.chmod(0o777)
    assert launch.archive_name(launch.find_java(), launch.spark_jars()) is None


def test_an_archive_that_is_not_as_large_as_it_was_is_none(cache: Path) -> None:
    assert launch.find_archive(archive_name()) is None
    path = archived(b"whole")
    assert launch.find_archive(archive_name()) == path
    path.write_bytes(b"who")
    assert launch.find_archive(archive_name()) is None


@pytest.fixture(scope="module")
def small_archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A sound archive of the few classes that a program loads which starts nothing."""
    path = tmp_path_factory.mktemp("archive") / "small.jsa"
    subprocess.run(
        [
            launch.find_java().path,
            "-Xlog:disable",
            f"-XX:ArchiveClassesAtExit={path}",
            "-cp",
            ":".join(map(str, launch.spark_jars())),
            "org.apache.spark.launcher.Main",
        ],
        check=False,
        capture_output=True,
    )
    return path.read_bytes()


STARTED = """
from kafkajit.spark import launch
jvm = launch._start_from_archive(launch.find_java(), launch.spark_jars(), {}, verbose=False)
launch.atexit.unregister(launch._make_archive)
print(jvm.port)
"""


@pytest.mark.parametrize("what", ["sound", "of another Java", "zeros", "text"])
def test_java_starts_in_silence_whatever_the_archive_is(
    cache: Path, small_archive: bytes, what: str
) -> None:
    contents = {
        "sound": small_archive,
        "of another Java": re.sub(rb"JRE \(\S+", rb"JRE (99.0.0+1", small_archive),
        "zeros": bytes(len(small_archive)),
        "text": b"not an archive" * 100_000,
    }
    archived(contents[what])
    done = started()
    assert int(done.stdout) > 0
    assert done.stderr == ""


def started(**more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", STARTED],
        env=environment() | {"KAFKAJIT_CACHE": "1"} | more,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_archive_in_which_java_dies_is_removed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = launch.find_java()
    fake_java(tmp_path, f'grep -q SharedArchive "${{1#@}}" && exit 1\nexec {real.path} "$@"')
    (tmp_path / "release").write_text(real.release)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    path = archived(b"deadly")
    done = started()
    assert int(done.stdout) > 0
    assert done.stderr == ""
    assert not path.exists()


# The maker.


@pytest.fixture
def recorded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What the maker has recorded, with everything slow about it taken out."""
    done: list[Path] = []

    def record(java: launch.Java, jars: list[Path], target: Path) -> None:
        done.append(target)
        target.write_bytes(b"classes")

    monkeypatch.setattr(class_archive, "_record", record)
    monkeypatch.setattr(class_archive, "_check", lambda *_: None)
    monkeypatch.setattr(os, "nice", lambda _: 0)
    monkeypatch.setattr(signal, "alarm", lambda _: 0)
    return done


def test_an_archive_is_made_once(recorded: list[Path], cache: Path) -> None:
    assert class_archive.main() == 0
    archive = launch.find_archive(archive_name())
    assert archive is not None
    assert archive.read_bytes() == b"classes"
    assert class_archive.main() == 0
    assert len(recorded) == 1
    assert sorted(path.suffix for path in cache.iterdir()) == [".jsa", ".lock"]


def test_only_one_maker_runs_at_a_time(recorded: list[Path], cache: Path) -> None:
    archive_name()
    with (cache / "spark.lock").open("w") as lock:
        class_archive.fcntl.flock(lock, class_archive.fcntl.LOCK_EX)
        assert class_archive.main() == 0
    assert recorded == []
    assert class_archive.main() == 0
    assert len(recorded) == 1


def test_what_a_killed_maker_left_is_replaced(recorded: list[Path], cache: Path) -> None:
    name = archive_name()
    name.with_suffix(".unfinished").write_bytes(b"half")
    truncated = archived(b"half", said=100)
    assert launch.find_archive(name) is None
    assert class_archive.main() == 0
    assert launch.find_archive(name) is not None
    assert not truncated.exists()


def test_a_maker_that_failed_is_not_followed_by_another_for_a_day(
    recorded: list[Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(java: launch.Java, jars: list[Path], archive: Path) -> None:
        raise subprocess.CalledProcessError(1, "java")

    with monkeypatch.context() as patch:
        patch.setattr(class_archive, "_check", fail)
        with pytest.raises(subprocess.CalledProcessError):
            class_archive.main()
    assert class_archive.main() == 0
    assert len(recorded) == 1
    assert launch.find_archive(archive_name()) is None
    yesterday = time.time() - 90_000
    os.utime(archive_name().with_suffix(".failed"), (yesterday, yesterday))
    assert class_archive.main() == 0
    assert launch.find_archive(archive_name()) is not None


def test_archives_that_nobody_uses_are_removed(recorded: list[Path], cache: Path) -> None:
    archive_name()
    used, unused = cache / "spark-used-1.jsa", cache / "spark-unused-1.jsa"
    for path in (used, unused):
        path.write_bytes(b"1")
    past = time.time() - 40 * 86_400
    os.utime(unused, (past, past))
    assert class_archive.main() == 0
    assert used.exists()
    assert not unused.exists()


def test_what_java_cannot_use_is_not_published(cache: Path, tmp_path: Path) -> None:
    unfinished = tmp_path / "archive"
    unfinished.write_bytes(b"no classes" * 10_000)
    with pytest.raises(subprocess.CalledProcessError):
        class_archive._check(launch.find_java(), launch.spark_jars(), unfinished)


def test_a_session_starts_from_the_archive_that_the_maker_made(cache: Path, tmp_path: Path) -> None:
    program = (
        "from kafkajit.spark import class_archive\n"
        "class_archive._QUERIES = class_archive._QUERIES[:1]\n"
        "raise SystemExit(class_archive.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment() | {"KAFKAJIT_CACHE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    archive = launch.find_archive(archive_name())
    assert archive is not None
    loaded = tmp_path / "classes.txt"
    assert started(_JAVA_OPTIONS=f"-Xlog:class+load:file={loaded}").returncode == 0
    gateway = next(line for line in loaded.read_text().splitlines() if launch._GATEWAY in line)
    assert gateway.endswith("source: shared objects file (top)")
