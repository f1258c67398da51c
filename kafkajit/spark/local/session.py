"""`local_session`: the Spark session of `kafkajit sql`, in a JVM beside this process.

A plain pyspark session takes 12 s to its first row from a Python data source. This one takes a
third of that, prints nothing, and leaves out the parts of Spark that a local SQL session does not
use. Everything that Spark writes goes into one folder, which is removed when the session ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kafkajit.places.uri import REDACTED
from kafkajit.spark.local.class_archive import archive_name, find_archive, start_maker
from kafkajit.spark.local.java import Java, find_java, spark_home, spark_jars
from kafkajit.spark.local.jvm import (
    CAN_START_QUICKLY,
    FOREIGN,
    Jvm,
    JvmEndedError,
    child_environment,
    heap_setting,
    start_jvm,
)
from kafkajit.system.current_folder import temporary_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_jvm: Jvm | None = None


def local_session(
    *, verbose: bool = False, cores: str = "*", conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session on this machine, which ends with this process.

    If this process already has a session, the function returns that session, and changes the
    settings that can change. With KAFKAJIT_QUICK_START=0 in the environment the session starts as
    pyspark starts it.

    >>> from kafkajit.spark import local_session
    >>> local_session(cores="2").sql("SELECT 1 + 1 AS two").first().two
    2

    Args:
        verbose: show Spark's and Java's own messages on stderr
        cores: the number of cores to use, as in Spark's local[*]
        conf: Spark's settings, which replace kafkajit's or add to them

    Raises:
        SparkNotFoundError: pyspark is not installed
        JavaNotFoundError: Java is not installed, or is too old
    """
    global _jvm
    given = dict(conf or {})
    if _jvm is None and not _is_running():
        java, jars = find_java(), spark_jars()
        if not CAN_START_QUICKLY or os.environ.get("KAFKAJIT_QUICK_START", "1") == "0":
            return _plain_session(given, verbose=verbose, cores=cores)
        _jvm = _start_from_archive(java, jars, given, verbose)
    return connect(_jvm, given, verbose=verbose, cores=cores)


def _start_from_archive(
    java: Java, jars: Sequence[Path], conf: Mapping[str, str], verbose: bool
) -> Jvm:
    """Start a JVM from the class archive; without one, have it made when this process ends."""
    name = archive_name(java, jars)
    archive = name and find_archive(name)
    if archive:
        with contextlib.suppress(OSError):
            os.utime(archive)  # unused archives are removed
        try:
            flags = [f"-XX:SharedArchiveFile={archive}"]
            return start_jvm(java, jars, flags, conf, verbose=verbose)
        except JvmEndedError:
            archive.unlink(missing_ok=True)
    jvm = start_jvm(java, jars, [], conf, verbose=verbose)
    if name:
        atexit.register(start_maker, name)
    return jvm


def _is_running() -> bool:
    """Whether this process has a JVM that pyspark started."""
    context = sys.modules.get("pyspark.core.context")
    return context is not None and context.SparkContext._gateway is not None


def connect(
    jvm: Jvm | None, conf: Mapping[str, str], *, verbose: bool = False, cores: str = "*"
) -> SparkSession:
    """The session of a JVM, or this process's own session without a JVM."""
    if jvm is None:
        return _session({**_every_session(verbose), **conf}, {}, verbose=True)
    folder = str(jvm.folder)
    settings = {
        **_every_session(verbose),
        **_local(cores, folder, verbose),
        # `row_limit` decides by this setting which rows are too large.
        "spark.driver.memory": heap_setting(conf),
        # The first query is 0.15 s faster. The path of a socket must be shorter than 108 bytes.
        "spark.python.unix.domain.socket.enabled": str(len(folder) < 60).lower(),
        "spark.python.unix.domain.socket.dir": folder,
    }
    environment = dict.fromkeys(FOREIGN) | {
        "PYSPARK_GATEWAY_PORT": str(jvm.port),
        "PYSPARK_GATEWAY_SECRET": jvm.secret,
        "PYSPARK_PYTHON": jvm.python,
    }
    return _session({**settings, **conf}, environment, verbose=verbose)


def _plain_session(conf: Mapping[str, str], *, verbose: bool, cores: str) -> SparkSession:
    """The same session, started by pyspark."""
    folder = str(temporary_folder())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    settings = {**_every_session(verbose), **_local(cores, folder, verbose)}
    child = child_environment()
    environment = {name: child.get(name) for name in os.environ.keys() | child.keys()}
    environment |= dict.fromkeys(FOREIGN) | {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(spark_home()),
    }
    session = _session({**settings, **conf}, environment, verbose=verbose)
    if not verbose:
        session.sparkContext.setLogLevel("OFF")
    return session


def _every_session(verbose: bool) -> dict[str, str]:
    return {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.pyspark.udf.hideTraceback.enabled": str(not verbose).lower(),
        "spark.sql.redaction.string.regex": REDACTED,
    }


def _local(cores: str, folder: str, verbose: bool) -> dict[str, str]:
    return {
        "spark.app.name": "kafkajit",
        "spark.master": f"local[{cores}]",
        "spark.api.mode": "classic",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Any user of this machine reaches the driver's ports, and would read paths and secrets.
        "spark.authenticate": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(verbose).lower(),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.local.dir": folder,
    }


def _session(
    settings: Mapping[str, str], environment: Mapping[str, str | None], *, verbose: bool
) -> SparkSession:
    from pyspark.sql import SparkSession

    with _environment(environment):
        session = SparkSession.builder.config(map=dict(settings)).getOrCreate()
    if not verbose:
        _silence_loggers()
    return session


def _silence_loggers() -> None:
    """Silence the loggers that print each error that pyspark raises, as JSON on stderr."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


@contextlib.contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Change environment variables within a block; None removes a variable."""
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
