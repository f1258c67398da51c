"""Starts the JVM of a local session, with Spark's gateway in it, and the fork server beside it.

While the JVM starts, this process imports pyspark, and the fork server the workers' modules.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kafkajit.spark.local import fork_server
from kafkajit.spark.local.java import Java, LaunchError
from kafkajit.storage.cache_folder import cache_folder
from kafkajit.system.current_folder import (
    entries_in_front,
    temporary_folder,
    without_current_folder,
)

GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"
_SUBMIT = "org.apache.spark.deploy.SparkSubmit"
_GIB = 2**30
# Whether a process can hand pipes to others by number, as POSIX's can.
CAN_START_QUICKLY = sys.platform != "win32"
# Seconds to wait for a JVM that neither answers nor ends.
_PATIENCE = 120.0

# The packages that Spark's launcher opens (checked by tests/spark/local/test_jvm.py). It also
# adds the module jdk.incubator.vector for machine learning, which costs 0.1 s and a warning.
OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)

FLAGS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-XX:-UsePerfData",  # it writes a file in /tmp
    # Arrow's bounds check of each value takes a seventh of a scan of all columns.
    "-Darrow.enable_unsafe_memory_access=true",
    "-Darrow.enable_null_check_for_get=false",
    # Thresholds of C2, ten times the defaults. C2 took a core while Spark started: 4.6 s instead of
    # 3.9 s. A scan crosses the thresholds in its first moments.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

# The JVM logs errors only, on stderr. If an archive does not fit, a new one is made.
_QUIET_FLAGS = ("-Xlog:disable", "-Xlog:all=error:stderr", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")

# Logs only the exception that ends the JVM. Naming the gateway's logger keeps Spark from resetting
# its level to WARN and logging that.
_QUIET_LOGGING = """\
rootLogger.level = off
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %m%n%ex
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = off
logger.uncaught.name = org.apache.spark.util.SparkUncaughtExceptionHandler
logger.uncaught.level = error
"""

# Environment variables that would start another kind of session.
FOREIGN = ("SPARK_HOME", "SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE_ENABLED", "MASTER")


class JvmEndedError(LaunchError):
    """The JVM ended before it was ready."""


@dataclass(frozen=True)
class Jvm:
    """A JVM that waits for its driver."""

    process: subprocess.Popen[bytes]
    folder: Path
    python: str  # the program that Spark starts as Python
    port: int
    secret: str


_fork_server: subprocess.Popen[bytes] | None = None


def start_jvm(
    java: Java,
    jars: Sequence[Path],
    flags: Sequence[str],
    conf: Mapping[str, str],
    *,
    verbose: bool = False,
) -> Jvm:
    """Start a JVM and, while it starts, import Spark's Python side here and in the fork server."""
    folder = temporary_folder()
    process: subprocess.Popen[bytes] | None = None
    try:
        arguments = [*_flags(folder, conf, verbose), *flags, "-cp", _class_path(jars, conf)]
        (folder / "arguments").write_text("\n".join(map(_quoted, [*arguments, *_main(conf)])))
        connection = folder / "connection"
        with contextlib.ExitStack() as handed_over:
            listening, python = _fork_server_address(folder)
            if listening is not None:
                handed_over.enter_context(listening)
            jvm_gone, jvm_lives = os.pipe()
            handed_over.callback(os.close, jvm_gone)
            handed_over.callback(os.close, jvm_lives)
            environment = _jvm_environment(python, connection)
            process = subprocess.Popen(  # noqa: S603
                [java.path, f"@{folder}/arguments"],
                stdin=subprocess.PIPE,  # the JVM ends when this closes, also when this process ends
                stdout=2,  # stdout is for the answers of queries
                env=environment,
                pass_fds=[jvm_lives],
                start_new_session=True,  # Ctrl-C does not reach it
            )
            _import_spark()
            handed = [jvm_gone] if listening is None else [jvm_gone, listening.fileno()]
            _start_fork_server(folder, process.pid, handed, environment, verbose)
        port, secret = _await(connection, process)
    except BaseException:
        if process is not None:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Jvm(process, folder, python, port, secret)


def _flags(folder: Path, conf: Mapping[str, str], verbose: bool) -> list[str]:
    """The JVM's flags. Those in FLAGS decide whether a class archive fits."""
    flags = [
        *FLAGS,
        f"-Xmx{heap_setting(conf)}",
        f"-Djava.io.tmpdir={folder}",
        f"-XX:ErrorFile={_error_file()}",
    ]
    if not verbose:
        logging = folder / "log4j2.properties"
        logging.write_text(_QUIET_LOGGING)
        flags += [*_QUIET_FLAGS, f"-Dlog4j2.configurationFile={logging}"]
    # Java also reads these variables itself, but then prints a line about each.
    flags[:0] = _words(os.environ.get("JAVA_TOOL_OPTIONS"), os.environ.get("JDK_JAVA_OPTIONS"))
    flags += _words(conf.get("spark.driver.extraJavaOptions"), os.environ.get("_JAVA_OPTIONS"))
    return flags


def _error_file() -> str:
    """A path for the JVM's last words, at which nobody else can have planted a link."""
    cache = cache_folder()
    if cache is None:
        return os.devnull
    return f"{str(cache).replace('%', '%%')}/java-error-%p.log"


def _words(*lines: str | None) -> list[str]:
    return [word for line in lines if line for word in shlex.split(line)]


def heap_setting(conf: Mapping[str, str]) -> str:
    """The heap's size as Spark and Java write it."""
    return conf.get("spark.driver.memory") or f"{_heap() >> 20}m"


def _heap() -> int:
    """Half of the memory; Python's workers and the page cache need the other half.

    At most 31 GiB: above that the JVM's pointers double in size and class archives do not fit.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # "max" means no limit
            memory = min(memory, int(Path(limit).read_text()))
    return min(max(memory // 2, _GIB), 31 * _GIB)


def _class_path(jars: Sequence[Path], conf: Mapping[str, str]) -> str:
    extra = conf.get("spark.driver.extraClassPath")
    return os.pathsep.join([*([extra] if extra else []), *map(str, jars)])


def _main(conf: Mapping[str, str]) -> list[str]:
    """The class to run: SparkSubmit, which takes 0.2 s, only if `conf` names packages."""
    if not any(name.startswith(("spark.jars", "spark.submit.")) for name in conf):
        return [GATEWAY]
    settings = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    return [_SUBMIT, *settings, "pyspark-shell"]


def _quoted(argument: str) -> str:
    """An argument for Java's argument file: hundreds of jars do not fit on a command line."""
    return '"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _fork_server_address(folder: Path) -> tuple[socket.socket | None, str]:
    """The fork server's socket, or None if it cannot run here, and Spark's Python program."""
    stub = folder / "python"
    stub.write_text(fork_server.stub())
    stub.chmod(0o700)
    listening = socket.socket(socket.AF_UNIX)
    try:
        # System libraries survive a fork on Linux only. The folder may be mounted noexec.
        if sys.platform != "linux" or not os.access(stub, os.X_OK):
            raise OSError
        listening.bind(str(folder / "fork_server"))
        listening.listen(64)
    except OSError:  # also if the path is too long for a socket
        listening.close()
        return None, sys.executable
    return listening, str(stub)


def _jvm_environment(python: str, connection: Path) -> dict[str, str]:
    """The environment of the JVM, which Python's workers inherit."""
    hidden = (*FOREIGN, "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
    environment = {name: value for name, value in child_environment().items() if name not in hidden}
    return environment | {
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PYTHONHASHSEED": "0",  # as spark-submit sets it: the same in all workers
        "PYTHONUNBUFFERED": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",  # saves a lookup
        fork_server.ADDRESS: str(connection.parent / "fork_server"),
    }


def child_environment() -> dict[str, str]:
    """The environment of a child whose Python imports from the same folders as this process.

    This package may be in a checkout, and the functions of a user's script beside the script. The
    current folder is not added to them. Without SPARK_HOME, Spark does not add pyspark.zip.
    Importing from it takes 0.6 s instead of 0.15 s.
    """
    folders = [str(Path(folder).absolute()) for folder in entries_in_front()]
    package = Path(__file__).parents[3]
    if package.name not in ("site-packages", "dist-packages"):
        folders.insert(0, str(package))
    path = os.pathsep.join(folder for folder in folders if os.pathsep not in folder)
    return without_current_folder({**os.environ, "PYTHONPATH": path})


def _import_spark() -> None:
    """Import a driver's modules while the JVM starts: 0.45 s, most of it for pandas.

    As soon as a list or a dictionary is passed to Java, pyspark imports pyspark.testing, which
    imports pandas.
    """
    importlib.import_module("pyspark.sql")
    with contextlib.suppress(ImportError):
        importlib.import_module("pyspark.testing.utils")


def _start_fork_server(
    folder: Path, jvm: int, handed: Sequence[int], environment: Mapping[str, str], verbose: bool
) -> None:
    global _fork_server
    arguments = ["--serve", str(folder), str(jvm), *map(str, handed)]
    _fork_server = subprocess.Popen(  # noqa: S603
        [sys.executable, fork_server.__file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=2,
        stderr=None if verbose else subprocess.DEVNULL,
        env=environment,
        pass_fds=handed,
        start_new_session=True,
    )


def _await(connection: Path, process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Wait for the JVM to write its port and its secret."""
    deadline = time.monotonic() + _PATIENCE
    while not connection.exists():
        if process.poll() is not None:
            raise JvmEndedError(f"java ended with exit code {process.returncode} while starting")
        if time.monotonic() > deadline:
            raise LaunchError(f"java is not ready after {_PATIENCE:.0f} s")
        time.sleep(0.005)
    content = connection.read_bytes()
    return int.from_bytes(content[:4], "big"), content[8:].decode()
