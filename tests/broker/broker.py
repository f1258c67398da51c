"""A real Kafka on 127.0.0.1, and its own DumpLogSegments.

In: a pom beside this file for each release, and a folder to work in. Out: a running broker (a
context manager), 4.1.1 or the 2.8.2 that still writes message formats v0 and v1, and what
4.1.1's `kafka.tools.DumpLogSegments` prints about the files that they wrote.
Needs Java 17 or newer with javac, and Maven the first time.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

START_SECONDS = 90
STOP_SECONDS = 60

# Small JVMs that live for a second: C2 and parallel collectors only cost time.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
UTF8 = {"LC_ALL": "C.UTF-8"}


class Release(NamedTuple):
    """A release: the jars that Maven copies, and the variable that names their folder."""

    version: str
    pom: Path
    variable: str
    jars: tuple[str, ...]  # that a whole folder has
    project: str = "kafka"


KAFKA = Release(
    "4.1.1",
    Path(__file__).with_name("pom.xml"),
    "KAFKAJIT_KAFKA_LIB",
    ("kafka_2.13-4.1.1.jar", "kafka-storage-4.1.1-test.jar"),
)
OLD_KAFKA = Release(
    "2.8.2",
    Path(__file__).with_name("pom-2.8.2.xml"),
    "KAFKAJIT_OLD_KAFKA_LIB",
    ("kafka_2.13-2.8.2.jar",),
)
AVRO = Release(
    "1.12.1",
    Path(__file__).with_name("pom-avro.xml"),
    "KAFKAJIT_AVRO_LIB",
    ("avro-1.12.1.jar",),
    "avro",
)
# What Aiven's plugin for tiered storage needs; its source is make_aiven_data.py's argument.
AIVEN = Release(
    "1.2.0",
    Path(__file__).with_name("pom-aiven.xml"),
    "KAFKAJIT_AIVEN_LIB",
    ("bcprov-jdk18on-1.83.jar", "zstd-jni-1.5.7-4.jar"),
    "aiven",
)
# In front of Kafka's jars it makes a broker talk.
WORDS = Release(
    "1.7.36",
    Path(__file__).with_name("pom-words.xml"),
    "KAFKAJIT_WORDS_LIB",
    ("slf4j-simple-1.7.36.jar",),
    "words",
)


class Dump(NamedTuple):
    """What one run of the oracle left behind."""

    stdout: bytes
    stderr: bytes
    returncode: int


@cache
def library(release: Release = KAFKA) -> Path:
    """Return the folder of a release's jars, which Maven fills if it is missing.

    A folder that the variable names is taken as it is: it may have another version.
    """
    named = os.environ.get(release.variable)
    if named is not None:
        given = Path(named).expanduser().absolute()
        if not any(given.glob("*.jar")):
            raise FileNotFoundError(f"{release.variable} names {given}, which has no jars")
        return given
    folder = Path.home() / ".cache" / "kafkajit" / f"{release.project}-{release.version}"
    if not all((folder / jar).exists() for jar in release.jars):
        # A folder of its own until it is complete: a broken download must not look whole.
        partial = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        partial.mkdir(parents=True)
        command = ["mvn", "-q", "-B", "-f", str(release.pom), "dependency:copy-dependencies"]
        subprocess.run([*command, f"-DoutputDirectory={partial}"], check=True)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    return folder


def classpath(*folders: Path, release: Release = KAFKA) -> str:
    """Return the class path of a release's jars and of any folders of classes."""
    return os.pathsep.join([*map(str, folders), f"{library(release)}/*"])


def java(main: str, *arguments: str, classes: Sequence[Path] = ()) -> list[str]:
    """Return the command line that runs a Java main class on Kafka's class path."""
    settings = ("-Dfile.encoding=UTF-8", "-cp", classpath(*classes))
    return ["java", *SHORT_LIVED, *settings, main, *arguments]


def compile_java(sources: Sequence[Path], output: Path) -> None:
    """Compile Java files against Kafka's jars."""
    command = ["javac", "-Xlint:all", "-d", str(output), "-cp", classpath(), *map(str, sources)]
    subprocess.run(command, check=True)


def dump_log(files: Path | Sequence[Path], *flags: str) -> Dump:
    """Run DumpLogSegments over files of one folder, from inside it, as their bare names."""
    paths = [files] if isinstance(files, Path) else list(files)
    (folder,) = {path.parent for path in paths}
    names = ",".join(path.name for path in paths)
    return dump_tool(*(["--files", names] if names else []), *flags, cwd=folder)


def dump_tool(*arguments: str, cwd: Path) -> Dump:
    """Run DumpLogSegments with the arguments just as they are."""
    run = subprocess.run(
        java("kafka.tools.DumpLogSegments", *arguments),
        cwd=cwd,
        env=os.environ | UTF8,
        capture_output=True,
        check=False,
    )
    return Dump(run.stdout, run.stderr, run.returncode)


@dataclass
class Broker:
    """A running broker: where to reach it, where it writes, and the process to end."""

    bootstrap: str
    log_dir: Path
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Crash: SIGKILL, so that the files stay as they are at this moment."""
        kill(self.process)


@contextmanager
def running_broker(
    folder: Path,
    config: Mapping[str, str] | None = None,
    features: Sequence[str] = ("share.version=1",),
    *,
    talks: bool = False,
) -> Iterator[Broker]:
    """Format `folder` unless it is, start a broker in it, yield it and stop it on the way out.

    `config` overrides broker settings, `features` are a new cluster's. The broker's own output
    goes to `folder`/broker.out, with its log if it `talks`.
    """
    port, controller_port = free_ports(2)
    log_dir = folder / "logs"
    settings = broker_config(port, log_dir) | kraft_config(port, controller_port)
    properties = write_properties(folder / "broker.properties", settings | dict(config or {}))
    if not (log_dir / "meta.properties").exists():
        format_storage(properties, features)
    words = (library(WORDS) / "*",) if talks else ()
    with running_server(KAFKA, "kafka.Kafka", properties, port, words) as process:
        yield Broker(f"127.0.0.1:{port}", log_dir, process)


@contextmanager
def running_old_broker(folder: Path) -> Iterator[Broker]:
    """Start Kafka 2.8.2 in `folder` with a ZooKeeper beside it, yield it and stop both."""
    port, zookeeper_port = free_ports(2)
    log_dir = folder / "logs"
    zookeeper = write_properties(
        folder / "zookeeper.properties", zookeeper_config(zookeeper_port, folder / "zookeeper")
    )
    settings = broker_config(port, log_dir) | {
        "broker.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
    }
    properties = write_properties(folder / "broker.properties", settings)
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    with (
        running_server(OLD_KAFKA, main, zookeeper, zookeeper_port),
        running_server(OLD_KAFKA, "kafka.Kafka", properties, port) as process,
    ):
        yield Broker(f"127.0.0.1:{port}", log_dir, process)


@contextmanager
def running_server(
    release: Release, main: str, properties: Path, port: int, jars: Sequence[Path] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a Java server, yield its process as soon as its port is open, and end it.

    What it prints goes beside its properties: x.out for x.properties.
    """
    with properties.with_suffix(".out").open("wb") as output:
        settings = ("-Xmx768m", "-XX:+UseSerialGC", "-cp", classpath(*jars, release=release))
        process = subprocess.Popen(
            ["java", *settings, main, str(properties)], stdout=output, stderr=subprocess.STDOUT
        )
    try:
        wait_for_port(port, process)
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """Shut down cleanly: a broker flushes, trims its indexes and writes snapshots."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process at once."""
    process.kill()
    process.wait()


def write_properties(path: Path, settings: Mapping[str, str]) -> Path:
    """Write a file of Java's properties, and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


def format_storage(properties: Path, features: Sequence[str]) -> None:
    """Write a new cluster's metadata into the log folder."""
    uuid = subprocess.run(
        java("kafka.tools.StorageTool", "random-uuid"), check=True, capture_output=True, text=True
    ).stdout.strip()
    options = ["-t", uuid, "-c", str(properties)]
    for feature in features:
        options += ["--feature", feature]
    subprocess.run(
        java("kafka.tools.StorageTool", "format", *options), check=True, capture_output=True
    )


def broker_config(port: int, log_dir: Path) -> dict[str, str]:
    """Return the settings of the only broker there is, with a cleaner that does not wait."""
    return {
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.dirs": str(log_dir),
        "auto.create.topics.enable": "false",
        "num.partitions": "1",
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "2",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.min.cleanable.ratio": "0.01",
        "log.cleaner.backoff.ms": "500",
        # The first start would otherwise set aside 128 MiB for the cleaner.
        "log.cleaner.dedupe.buffer.size": "4194304",
    }


def kraft_config(port: int, controller_port: int) -> dict[str, str]:
    """Return the settings of a broker that is its own controller."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def zookeeper_config(port: int, data_dir: Path) -> dict[str, str]:
    """Return the settings of a ZooKeeper for one broker."""
    return {
        "dataDir": str(data_dir),
        "clientPort": str(port),
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
    }


def free_ports(count: int) -> list[int]:
    """Return free ports of 127.0.0.1."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in sockets]
    for server in sockets:
        server.close()
    return ports


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return as soon as the process accepts connections; raise if it ends or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with code {process.returncode}; see its .out")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(f"no server on port {port} after {START_SECONDS} s")
