"""The local Spark session of `kafkajit sql`: one process away, quiet, and started in a hurry.

A bare pyspark session needs 12 s to its first row from a Python data source. Ours starts `java`
itself with an archive of Spark's parsed classes (`class_archive`), has Python's side imported while
the JVM starts (`fork_server`), and leaves out what a local session of SQL does not use. Everything
that Spark drops somewhere goes into one folder, which goes when the session does.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kafkajit.spark import fork_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OLDEST_JAVA = 17
_GATEWAY = "org.apache.spark.api.python.PythonGatewayServer"
_SUBMIT = "org.apache.spark.deploy.SparkSubmit"
_GIB = 2**30
# Seconds until a JVM that neither answers nor ends is given up.
_PATIENCE = 120.0

_INSTALL = (
    "Spark needs Java 17 or newer: install one (apt install openjdk-17-jre-headless, "
    "brew install openjdk@17), or set JAVA_HOME"
)

# Packages that Spark's launcher opens: tests/spark/test_launch.py compares. It also adds the module
# jdk.incubator.vector, for machine learning: that one costs 0.1 s and a warning on stderr.
OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)

_FLAGS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-XX:-UsePerfData",  # a file in /tmp
    # Arrow checks each value that Spark reads for its bounds; a seventh of a scan of all columns.
    "-Darrow.enable_unsafe_memory_access=true",
    "-Darrow.enable_null_check_for_get=false",
    # C2 compiles what runs ten times as often as by default: while Spark starts it took a core from
    # those who start it (3.9 s instead of 4.6 s), and a scan crosses the line in its first moments.
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)

# What the JVM says of itself goes to stderr, and only errors. That a class archive is of no use is
# none: it is made again.
_QUIET_FLAGS = ("-Xlog:disable", "-Xlog:all=error:stderr", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")

# Silent, but for the exception that ends a JVM. The gateway's logger is named because Spark sets
# another level than WARN back, and tells so, where it is not.
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

# Settings of the user's shell that would make another session than this one.
_FOREIGN = ("SPARK_HOME", "SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE_ENABLED", "MASTER")


class LaunchError(RuntimeError):
    """The local Spark session cannot start."""


class JvmEndedError(LaunchError):
    """The JVM has ended before it was ready."""


class SparkNotFoundError(LaunchError):
    """There is no pyspark."""


class JavaNotFoundError(LaunchError):
    """There is no Java, or one that is too old for Spark."""


@dataclass(frozen=True)
class Java:
    """A Java that Spark runs on."""

    path: str
    release: str  # what tells it from another


@dataclass(frozen=True)
class Jvm:
    """A JVM that waits for its driver."""

    process: subprocess.Popen[bytes]
    folder: Path
    python: str  # what Spark is told to start as Python
    port: int
    secret: str


_jvm: Jvm | None = None
_fork_server: subprocess.Popen[bytes] | None = None


def local_session(
    *, verbose: bool = False, cores: str = "*", conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session in this process and a JVM beside it, gone when the process is.

    If a session runs in this process already, it is that one, with the settings that can change.

    >>> from kafkajit.spark import local_session
    >>> local_session(cores="2").sql("SELECT 1 + 1 AS two").first().two
    2

    Args:
        verbose: let Spark and Java say on stderr what they have to say
        cores: how many to use, as in Spark's local[*]
        conf: Spark's settings, instead of ours or beside them

    Raises:
        SparkNotFoundError: pyspark is not installed
        JavaNotFoundError: there is no Java, or one that is too old
    """
    global _jvm
    given = dict(conf or {})
    if _jvm is None and not _is_running():
        _jvm = _start_from_archive(find_java(), spark_jars(), given, verbose)
    return connect(_jvm, given, verbose=verbose, cores=cores)


def _start_from_archive(
    java: Java, jars: Sequence[Path], conf: Mapping[str, str], verbose: bool
) -> Jvm:
    """Start a JVM from the class archive, if there is one; have one made if there is none."""
    name = archive_name(java, jars)
    archive = name and find_archive(name)
    if archive:
        with contextlib.suppress(OSError):
            os.utime(archive)  # those that nobody uses are removed
        try:
            flags = [f"-XX:SharedArchiveFile={archive}"]
            return start_jvm(java, jars, flags, conf, verbose=verbose)
        except JvmEndedError:
            archive.unlink(missing_ok=True)
    jvm = start_jvm(java, jars, [], conf, verbose=verbose)
    if name:
        atexit.register(_make_archive, name)
    return jvm


def _is_running() -> bool:
    """Whether this process has a JVM that is not ours."""
    context = sys.modules.get("pyspark.core.context")
    return context is not None and context.SparkContext._gateway is not None


def connect(
    jvm: Jvm | None, conf: Mapping[str, str], *, verbose: bool = False, cores: str = "*"
) -> SparkSession:
    """The session of a JVM; None is the one that this process has."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.execution.pyspark.udf.hideTraceback.enabled": str(not verbose).lower(),
    }
    if jvm is None:
        return SparkSession.builder.config(map={**settings, **conf}).getOrCreate()
    folder = str(jvm.folder)
    settings |= {
        "spark.app.name": "kafkajit",
        "spark.master": f"local[{cores}]",
        "spark.api.mode": "classic",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(verbose).lower(),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": folder,
        # 0.15 s less for the first query; the system allows 107 bytes for a socket's path
        "spark.python.unix.domain.socket.enabled": str(len(folder) < 60).lower(),
        "spark.python.unix.domain.socket.dir": folder,
    }
    environment = dict.fromkeys(_FOREIGN) | {
        "PYSPARK_GATEWAY_PORT": str(jvm.port),
        "PYSPARK_GATEWAY_SECRET": jvm.secret,
        "PYSPARK_PYTHON": jvm.python,
    }
    with _environment(environment):
        session = SparkSession.builder.config(map={**settings, **conf}).getOrCreate()
    if not verbose:
        _silence_loggers()
    return session


def _silence_loggers() -> None:
    """Those by which pyspark reports on stderr, as JSON, each error that it raises as well."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


@contextlib.contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Within it, environment variables are other ones; None is none."""
    before = {name: os.environ.get(name) for name in changes}

    def change(variables: Mapping[str, str | None]) -> None:
        for name, value in variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    change(changes)
    try:
        yield
    finally:
        change(before)


def start_jvm(
    java: Java,
    jars: Sequence[Path],
    flags: Sequence[str],
    conf: Mapping[str, str],
    *,
    verbose: bool = False,
) -> Jvm:
    """Start a JVM and, while it starts, import Spark's Python side here and in the fork server."""
    folder = Path(tempfile.mkdtemp(prefix="kafkajit-"))
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
                stdin=subprocess.PIPE,  # at its end, which is ours, a JVM ends too
                stdout=2,  # stdout is for answers
                env=environment,
                pass_fds=[jvm_lives],
                start_new_session=True,  # no Ctrl-C
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
    """Of this session's JVM; what decides whether a class archive fits is in _FLAGS."""
    flags = [
        *_FLAGS,
        f"-Xmx{conf.get('spark.driver.memory') or f'{_heap() >> 20}m'}",
        f"-Djava.io.tmpdir={folder}",
        # not into the folder where the user is
        f"-XX:ErrorFile={tempfile.gettempdir()}/kafkajit-java-error-%p.log",
    ]
    if not verbose:
        logging = folder / "log4j2.properties"
        logging.write_text(_QUIET_LOGGING)
        flags += [*_QUIET_FLAGS, f"-Dlog4j2.configurationFile={logging}"]
    # Java reads these by itself too, but tells so.
    flags[:0] = _words(os.environ.get("JAVA_TOOL_OPTIONS"), os.environ.get("JDK_JAVA_OPTIONS"))
    flags += _words(conf.get("spark.driver.extraJavaOptions"), os.environ.get("_JAVA_OPTIONS"))
    return flags


def _words(*lines: str | None) -> list[str]:
    return [word for line in lines if line for word in shlex.split(line)]


def _heap() -> int:
    """Half of the memory: Python's workers and the page cache need the other.

    Not above 31 GiB, where the JVM's pointers double and class archives stop fitting.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # "max" is no number, and no limit
            memory = min(memory, int(Path(limit).read_text()))
    return min(max(memory // 2, _GIB), 31 * _GIB)


def _class_path(jars: Sequence[Path], conf: Mapping[str, str]) -> str:
    extra = conf.get("spark.driver.extraClassPath")
    return os.pathsep.join([*([extra] if extra else []), *map(str, jars)])


def _main(conf: Mapping[str, str]) -> list[str]:
    """The class to run: SparkSubmit, which costs 0.2 s, only for what nobody else resolves."""
    if not any(name.startswith(("spark.jars", "spark.submit.")) for name in conf):
        return [_GATEWAY]
    settings = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    return [_SUBMIT, *settings, "pyspark-shell"]


def _quoted(argument: str) -> str:
    """For a file of Java's arguments: hundreds of jars are too many for a command line."""
    return '"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _fork_server_address(folder: Path) -> tuple[socket.socket | None, str]:
    """Where the fork server listens, and what Spark starts as Python; None where it cannot be."""
    stub = folder / "python"
    stub.write_text(fork_server.stub())
    stub.chmod(0o700)
    listening = socket.socket(socket.AF_UNIX)
    try:
        # Elsewhere system libraries do not survive a fork; and the folder may be mounted noexec.
        if sys.platform != "linux" or not os.access(stub, os.X_OK):
            raise OSError
        listening.bind(str(folder / "fork_server"))
        listening.listen(64)
    except OSError:  # a path too long for a socket
        listening.close()
        return None, sys.executable
    return listening, str(stub)


def _jvm_environment(python: str, connection: Path) -> dict[str, str]:
    """Of the JVM and, through it, of Python's workers."""
    hidden = (*_FOREIGN, "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "PYTHONHASHSEED": "0",  # as spark-submit has it: the same in all workers
        "PYTHONUNBUFFERED": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",  # not looked up
        fork_server.ADDRESS: str(connection.parent / "fork_server"),
    }
    return environment | _python_path(environment)


def _python_path(environment: Mapping[str, str]) -> dict[str, str]:
    """What makes this package importable in another process: from a checkout, its folder.

    Without SPARK_HOME nobody adds pyspark.zip, out of which an import takes 0.6 s instead of 0.15.
    """
    package = Path(__file__).parents[2]
    if package.name in ("site-packages", "dist-packages"):
        return {}
    path = environment.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(package), *([path] if path else [])])}


def _import_spark() -> None:
    """Import what a driver needs, while the JVM starts: 0.45 s, most of it pandas.

    Spark looks for numpy through pyspark.testing, which imports pandas, with the first list or
    dictionary that is handed to Java.
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
        # -P: no module of the user's folder stands in for one that is imported here
        [sys.executable, "-P", fork_server.__file__, *arguments],
        stdin=subprocess.PIPE,
        stdout=2,
        stderr=None if verbose else subprocess.DEVNULL,
        env=environment,
        pass_fds=handed,
        start_new_session=True,
    )


def _await(connection: Path, process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """The port and the secret that the JVM writes when it is ready."""
    deadline = time.monotonic() + _PATIENCE
    while not connection.exists():
        if process.poll() is not None:
            raise JvmEndedError(f"java ended with exit code {process.returncode} at its start")
        if time.monotonic() > deadline:
            raise LaunchError(f"java is not ready after {_PATIENCE:.0f} s")
        time.sleep(0.005)
    content = connection.read_bytes()
    return int.from_bytes(content[:4], "big"), content[8:].decode()


# What the extra [spark] in pyproject.toml has: it works however kafkajit was installed.
_INSTALL_SPARK = "pip install 'pyspark>=4.1' 'pandas<3'"


def spark_jars() -> list[Path]:
    """Spark's jars in the order of its own class path, but for machine learning.

    Spark loads what spark-mllib adds to every session, 0.5 s through Scala's reflection.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkNotFoundError(f"pyspark is not installed; run {_INSTALL_SPARK}")
    folder = Path(spec.origin).parent / "jars"
    jars = [jar for jar in folder.glob("*.jar") if not jar.name.startswith("spark-mllib_")]
    if not jars:
        raise SparkNotFoundError(f"{folder} has no jars; run {_INSTALL_SPARK}")
    return sorted(jars, key=lambda jar: (not jar.name.startswith("slf4j-api-"), jar.name))


def find_java() -> Java:
    """JAVA_HOME's Java, or else the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    if path is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "there is no java on the PATH"
        raise JavaNotFoundError(f"{where}: {_INSTALL}")
    try:
        # Asking Java itself takes 0.05 s.
        release = (Path(path).resolve().parents[1] / "release").read_text()
    except OSError:
        release = _version_of(path)
    version = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', release)
    if version is None:
        raise JavaNotFoundError(f"{path} is no Java that works: {_INSTALL}")
    if int(version[1]) < _OLDEST_JAVA:
        raise JavaNotFoundError(f"{path} is Java {version[1]}: {_INSTALL}")
    return Java(path, release)


def _version_of(java: str) -> str:
    try:
        # stderr, as it comes from Java
        return subprocess.run(  # noqa: S603
            [java, "-version"], capture_output=True, text=True, timeout=_PATIENCE, check=False
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)


def archive_name(java: Java, jars: Sequence[Path]) -> Path | None:
    """The beginning of the name of this Java's and these jars' class archive; None without a cache.

    The JVM sees for itself whether an archive fits, and goes without if not. The name is for
    knowing that before, and making one that does.
    """
    if os.environ.get("KAFKAJIT_CACHE", "1") == "0":
        return None
    maker = Path(__file__).with_name("class_archive.py").read_bytes()
    digest = hashlib.sha256(repr((java, _FLAGS, maker)).encode())
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafkajit"
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = cache.stat()
        for jar in jars:
            found = jar.stat()
            digest.update(f"{jar} {found.st_size} {found.st_mtime_ns}".encode())
    except (OSError, RuntimeError):  # RuntimeError: there is no home
        return None
    if owner.st_uid != os.getuid() or owner.st_mode & 0o022:
        return None  # an archive is code: others could write it
    return cache / f"spark-{digest.hexdigest()[:16]}"


def find_archive(name: Path) -> Path | None:
    """The archive of this name, which ends in its size: the JVM dies in a truncated one."""
    for archive in name.parent.glob(f"{name.name}-*.jsa"):
        with contextlib.suppress(OSError, ValueError):
            if archive.stat().st_size == int(archive.stem.rpartition("-")[2]):
                return archive
    return None


def _make_archive(name: Path) -> None:
    """Have an archive made, when this process ends: so it takes nothing from anybody's query."""
    if not os.access(name.parent, os.W_OK):
        return
    with contextlib.suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-m", "kafkajit.spark.class_archive"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | _python_path(os.environ),
            cwd=name.parent,
            start_new_session=True,
        )
