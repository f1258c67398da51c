"""A real Kafka 4.1.1 on 127.0.0.1, and its own DumpLogSegments.

In: a pom.xml beside this file and a folder to work in. Out: a running broker (a context
manager), and what `kafka.tools.DumpLogSegments` prints about the files that it wrote.
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

KAFKA_VERSION = "4.1.1"
POM = Path(__file__).with_name("pom.xml")
START_SECONDS = 90
STOP_SECONDS = 60

# Small JVMs that live for a second: C2 and parallel collectors only cost time.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
UTF8 = {"LC_ALL": "C.UTF-8"}


class Dump(NamedTuple):
    """What one run of the oracle left behind."""

    stdout: bytes
    stderr: bytes
    returncode: int


@cache
def library() -> Path:
    """Return the folder of Kafka's jars, filled by Maven when it is not there yet."""
    default = Path.home() / ".cache" / "kafkajit" / f"kafka-{KAFKA_VERSION}"
    folder = Path(os.environ.get("KAFKAJIT_KAFKA_LIB", default)).expanduser().absolute()
    if not (folder / f"kafka_2.13-{KAFKA_VERSION}.jar").exists():
        # A folder of its own until all is there: a broken download must not look whole.
        partial = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        partial.mkdir(parents=True)
        command = ["mvn", "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"]
        subprocess.run([*command, f"-DoutputDirectory={partial}"], check=True)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    return folder


def classpath(*folders: Path) -> str:
    """Return the class path of Kafka's jars and of any folders of classes."""
    return os.pathsep.join([*map(str, folders), f"{library()}/*"])


def java(main: str, *arguments: str, classes: Sequence[Path] = ()) -> list[str]:
    """Return the command line that runs a Java main class on Kafka's class path."""
    settings = ("-Dfile.encoding=UTF-8", "-cp", classpath(*classes))
    return ["java", *SHORT_LIVED, *settings, main, *arguments]


def compile_java(source: Path, output: Path) -> None:
    """Compile one Java file against Kafka's jars."""
    command = ["javac", "-Xlint:all", "-d", str(output), "-cp", classpath(), str(source)]
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

    def stop(self) -> None:
        """Shut down cleanly: the broker flushes, trims its indexes and writes snapshots."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Crash: SIGKILL, so that the files stay as they are at this moment."""
        self.process.kill()
        self.process.wait()


@contextmanager
def running_broker(folder: Path, config: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """Format `folder` unless it is, start a broker in it, yield it and stop it on the way out.

    `config` overrides broker settings. The broker's own output goes to `folder`/broker.out.
    """
    broker_port, controller_port = free_ports(2)
    properties = folder / "broker.properties"
    log_dir = folder / "logs"
    settings = broker_config(broker_port, controller_port, log_dir) | dict(config or {})
    folder.mkdir(parents=True, exist_ok=True)
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    if not (log_dir / "meta.properties").exists():
        format_storage(properties)
    with (folder / "broker.out").open("wb") as output:
        process = subprocess.Popen(
            ["java", "-Xmx768m", "-XX:+UseSerialGC", "-cp", classpath(), "kafka.Kafka", properties],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    broker = Broker(f"127.0.0.1:{broker_port}", log_dir, process)
    try:
        wait_for_port(broker_port, process)
        yield broker
    finally:
        broker.stop()


def format_storage(properties: Path) -> None:
    """Write a new cluster's metadata, share groups included, into the log folder."""
    uuid = subprocess.run(
        java("kafka.tools.StorageTool", "random-uuid"), check=True, capture_output=True, text=True
    ).stdout.strip()
    options = ("-t", uuid, "-c", str(properties), "--feature", "share.version=1")
    subprocess.run(
        java("kafka.tools.StorageTool", "format", *options), check=True, capture_output=True
    )


def broker_config(broker_port: int, controller_port: int, log_dir: Path) -> dict[str, str]:
    """Return the settings of a cluster of one, with a cleaner that does not wait."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker_port}",
        "log.dirs": str(log_dir),
        "auto.create.topics.enable": "false",
        "num.partitions": "1",
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "2",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.min.cleanable.ratio": "0.01",
        "log.cleaner.backoff.ms": "500",
        # The first start would otherwise set aside 128 MiB for the cleaner.
        "log.cleaner.dedupe.buffer.size": "4194304",
    }


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody listens on."""
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
            raise RuntimeError(f"the broker ended with code {process.returncode}; see broker.out")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(f"no broker on port {port} after {START_SECONDS} s")
