"""The bridge: Java classes through which Spark's planner reads `kafkaLog` by columns.

Spark does not tell a Python data source which columns a query needs, and makes a row of each row
that it returns. It does tell a table written in Java, and takes whole columns from it. The classes
in `java/` are such a table in front of the Python source, which still plans the tasks and reads the
logs.

The classes are compiled by the compiler that Spark carries for its own generated code, for the
Spark that is there, when they are first used. The jar is kept in the cache.
"""

from __future__ import annotations

import contextlib
import logging
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import shorten
from typing import IO, TYPE_CHECKING, Any

from kafkajit.spark.java_sources import java_sources, sources_digest
from kafkajit.storage.cache_folder import cache_folder
from kafkajit.system import file_lock
from kafkajit.system.new_file import NewFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The provider that format("kafkaLog") finds by the service in the jar.
_PROVIDER = "kafkajit.KafkaLog"
# Adds the rules that the session's optimizer gets.
_RULES = "kafkajit.SessionRules"
# Has the digest of the sources that the classes were compiled from.
_VERSION = "kafkajit.Version"
_COMPILERS = "org.codehaus.commons.compiler.CompilerFactoryFactory"
_ENABLED = "spark.kafkajit.bridge.enabled"
_SERVICE = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
_log = logging.getLogger(__name__)


class NoBridgeError(Exception):
    """Why a session has no bridge; its Python source reads the same rows."""


def install(spark: SparkSession) -> bool:
    """Have this session read `kafkaLog` through the bridge; return whether it does.

    If it cannot, the Python source reads the same rows, and one line at INFO gives the reason.
    """
    try:
        _install(spark)
    except NoBridgeError as reason:
        _log.info("kafkaLog is read by Spark's Python source: %s", reason)
        return False
    return True


def _install(spark: Any) -> None:
    if not hasattr(spark, "_jsparkSession"):
        raise NoBridgeError(
            "this is Spark Connect; the server may have the jar that `kafkajit spark-jar` writes"
        )
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        if not _is_on_class_path(spark):
            jar = _jar_in_cache(spark)
            spark._jsparkSession.sessionState().resourceLoader().addJar(str(jar))
            if not _is_on_class_path(spark):
                raise NoBridgeError(f"Spark does not load {_PROVIDER} from {jar}")
        if _digest_on_class_path(spark) != sources_digest():
            spark.conf.set(_ENABLED, "false")
            raise NoBridgeError(
                "Spark's JVM has the classes of another version of kafkajit; start it anew, with "
                "a jar that `kafkajit spark-jar` writes if it was started with one"
            )
        _class(spark, _RULES).newInstance().addTo(spark._jsparkSession)
    except Py4JJavaError as error:
        raise NoBridgeError(_first_line(str(error.java_exception))) from error
    except (OSError, Py4JError, PySparkException) as error:
        raise NoBridgeError(_first_line(str(error))) from error


def _first_line(text: str) -> str:
    """The beginning of an error's text; Spark's compiler lists all methods of a class in a line."""
    return shorten(text.partition("\n")[0], 240, placeholder=" …")


def _is_on_class_path(spark: Any) -> bool:
    """Whether Spark finds the bridge from this thread."""
    from py4j.protocol import Py4JJavaError

    try:
        _class(spark, _PROVIDER)
    except Py4JJavaError:
        return False
    return True


def _digest_on_class_path(spark: Any) -> str | None:
    """The digest of the sources of Spark's classes; None if they are older than the digest."""
    from py4j.protocol import Py4JJavaError

    try:
        return str(_class(spark, _VERSION).getField("SOURCES").get(None))
    except Py4JJavaError:
        return None


def _class(spark: Any, name: str) -> Any:
    """A class as Spark finds it from this thread."""
    jvm = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return jvm.java.lang.Class.forName(name, True, loader)


def _jar_in_cache(spark: Any) -> Path:
    """The path of the jar for this Spark, which the first process compiles."""
    cache = cache_folder()
    if cache is None:
        raise NoBridgeError("there is no folder of this user's own to keep its classes in")
    jar = cache / f"bridge-{spark.version}-{sources_digest()}.jar"
    if not jar.exists():
        with _locked(cache / "bridge.lock"):
            if not jar.exists():
                with NewFile(jar, replaces=True) as out:
                    write_jar(spark, out)
                jar.chmod(0o644)  # executors of other users may load it
    return jar


def write_jar(spark: Any, out: IO[bytes]) -> None:
    """Compile the bridge for this session's Spark into a jar."""
    package, _, name = _VERSION.rpartition(".")
    constant = f'public static final String SOURCES = "{sources_digest()}";'
    version = f"package {package}; public class {name} {{ {constant} }}"
    sources = {**java_sources(), f"{name}.java": version}
    contents = _compiled(spark, sources) | {_SERVICE: f"{_PROVIDER}\n".encode()}
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in sorted(contents.items()):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


def _compiled(spark: Any, sources: Mapping[str, str]) -> dict[str, bytes]:
    """Compile Java sources with Spark's Janino into class files by their names."""
    jvm = spark._jvm
    gateway = spark.sparkContext._gateway
    compilers = jvm.org.codehaus.commons.compiler
    loader = jvm.java.lang.Class.forName("org.apache.spark.sql.SparkSession").getClassLoader()
    loader.loadClass(_COMPILERS)  # py4j takes the name of a missing class for a package
    compiler = compilers.CompilerFactoryFactory.getDefaultCompilerFactory(loader).newCompiler()
    compiler.setTargetVersion(8)  # without it, static methods of interfaces cannot be called
    classes = jvm.java.util.HashMap()
    compiler.setClassFileCreator(compilers.util.resource.MapResourceCreator(classes))
    resources = gateway.new_array(compilers.util.resource.Resource, len(sources))
    for place, (name, text) in enumerate(sources.items()):
        resources[place] = compilers.util.resource.StringResource(name, text)
    compiler.compile(resources)
    return {str(name): bytes(classes[name]) for name in classes}


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        file_lock.lock(lock.fileno())
        yield
