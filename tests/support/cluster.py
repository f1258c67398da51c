"""Spark in several processes on 127.0.0.1: a standalone master, two workers, a Connect server.

They stand for other machines: no environment variable of the tests reaches them, and their
`python3` is not the one that runs the tests. They get kafkajit in an archive, as in docs/deploy.md.
"""

from __future__ import annotations

import json
import os
import shutil
import site
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import queries
from corpus import DATA, REPOSITORY

HOST = "127.0.0.1"
WORKERS = 2
SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS = 120
STOP_SECONDS = 20
RUN_SECONDS = 600

# JVMs that live for a minute: C2 and parallel collectors only cost time.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

LOGS, DAMAGED = DATA / "v2", DATA / "damaged" / "crc"

# As in docs/deploy.md.
ARCHIVE = "pyspark_env.tar.gz"
ARCHIVES = f"{ARCHIVE}#environment"
PYTHON = "./environment/bin/python"
WARM_UP = ["kafkajit", "warm-up"]

SETTINGS = {
    "spark.cores.max": str(WORKERS),
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.driver.extraJavaOptions": SHORT_LIVED,
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    # Both workers take part from the first task on.
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    # A task that fails on damage, as a test wants it to, is not tried four times.
    "spark.task.maxFailures": "1",
}


@dataclass(frozen=True)
class Cluster:
    """A running standalone cluster, and the folder where its users work."""

    url: str
    folder: Path  # with the archive, and the environment that the archive was made from

    def submit(self, *arguments: str, **settings: str) -> list[str]:
        """The command that runs a program on it."""
        pairs = [f"{name}={value}" for name, value in (SETTINGS | settings).items()]
        confs = [word for pair in pairs for word in ("--conf", pair)]
        return [*spark_class("SparkSubmit"), "--master", self.url, *confs, *arguments]

    def variables(self, python: str) -> dict[str, str]:
        """The environment variables of a driver, or a client, whose workers run this Python."""
        return environment_of(self.folder) | {
            "PYSPARK_PYTHON": python,
            "PYTHONPATH": os.pathsep.join(map(str, SPARK_HOME.glob("python/lib/*.zip"))),
        }

    def answers(self, command: list[str], questions: Iterable[str], *options: str) -> Any:
        """The answers of tests/support/queries.py, run by this command in the user's folder."""
        arguments = [str(LOGS), str(DAMAGED), *questions, *options]
        stated = run([*command, queries.__file__, *arguments], self.folder, self.variables(PYTHON))
        return json.loads(stated.splitlines()[-1])


def spark_class(name: str) -> list[str]:
    """The command that bin/spark-submit and sbin/start-master.sh run, which becomes the JVM."""
    return [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]


def environment_of(folder: Path) -> dict[str, str]:
    """The environment variables of another machine, whose user's home is the folder."""
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "PATH") if name in os.environ}
    tests_own = str(Path(sys.executable).parent)
    kept["PATH"] = os.pathsep.join(
        entry for entry in kept["PATH"].split(os.pathsep) if entry != tests_own
    )
    return kept | {
        "HOME": str(folder),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_DAEMON_JAVA_OPTS": f"{SHORT_LIVED} -Dspark.master.rest.enabled=false",
    }


def pack_environment(folder: Path) -> None:
    """An environment with kafkajit, and the archive made of it.

    600 MB of numba, pyarrow and the rest would take a minute to pack and unpack. Here all packages
    except kafkajit and pyspark are links to those in the tests' own environment. Machine code that
    the tests have compiled already comes along; the warm-up compiles the rest.
    """
    environment = folder / "environment"
    venv.create(environment, symlinks=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    for package in Path(site.getsitepackages()[0]).iterdir():
        if "kafkajit" not in package.name and not package.name.startswith("pyspark"):
            (packages / package.name).symlink_to(package)
    python = folder / PYTHON
    run([sys.executable, "-m", "pip", "--python", python, "-q", "install", "--no-deps", REPOSITORY])
    for compiled in (REPOSITORY / "kafkajit").rglob("*.nb[ci]"):
        target = packages / compiled.relative_to(REPOSITORY)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(compiled, target)
    command, *arguments = WARM_UP
    run([environment / "bin" / command, *arguments], cwd=folder, env=environment_of(folder))
    run([sys.executable, "-m", "venv_pack", "-q", "-p", environment, "-o", folder / ARCHIVE])


def run(
    command: Sequence[str | Path], cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """Run a program, and return its output; if it fails, its errors are in the exception."""
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=RUN_SECONDS
    )
    assert done.returncode == 0, f"{command[0]}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def server(
    command: list[str], folder: Path, env: Mapping[str, str], is_ready: Callable[[], bool]
) -> Iterator[None]:
    """A server process, yielded when it is ready, and always ended on the way out."""
    log = folder / f"{command[1]}-{len(list(folder.glob('*.out')))}.out"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[Cluster]:
    pack_environment(folder)
    nodes = folder / "nodes"
    nodes.mkdir()
    env = environment_of(nodes)
    port, page = free_port(), free_port()
    url = f"spark://{HOST}:{port}"

    def workers() -> int:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{page}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (OSError, ValueError):  # Jetty listens before this page is there, and shows another
            return 0

    at = ["--host", HOST, "--webui-port"]
    with ExitStack() as running:
        master = [*spark_class("master.Master"), *at, str(page), "--port", str(port)]
        running.enter_context(server(master, nodes, env, lambda: listens(port)))
        for number in range(WORKERS):
            own = ["0", "--cores", "1", "--memory", "1g", "--work-dir", str(nodes / str(number))]
            worker = [*spark_class("worker.Worker"), *at, *own, url]
            is_last = number == WORKERS - 1
            running.enter_context(
                server(worker, nodes, env, lambda last=is_last: not last or workers() == WORKERS)
            )
        yield Cluster(url, folder)


@contextmanager
def connect_server(cluster: Cluster, python: str, **more: str) -> Iterator[str]:
    """A Spark Connect server whose driver runs on the cluster, with more settings."""
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        **more,
    }
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = cluster.submit("--class", name, "spark-internal", **settings)
    with server(command, cluster.folder, cluster.variables(python), lambda: listens(port)):
        yield f"sc://{HOST}:{port}"
