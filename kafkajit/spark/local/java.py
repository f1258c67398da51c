"""Finds Java and Spark's jars for a local session."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kafkajit.system.current_folder import without_current_folder

_OLDEST_JAVA = 17
_PATIENCE = 120.0

_INSTALL = (
    "Spark needs Java 17 or newer: install one (apt install openjdk-17-jre-headless, "
    "brew install openjdk@17), or set JAVA_HOME"
)


class LaunchError(RuntimeError):
    """The local Spark session cannot start."""


class SparkNotFoundError(LaunchError):
    """pyspark is not installed."""


class JavaNotFoundError(LaunchError):
    """Java is not installed, or is too old for Spark."""


@dataclass(frozen=True)
class Java:
    """A Java that Spark runs on."""

    path: str
    release: str  # identifies its version and build


def find_java() -> Java:
    """The Java of JAVA_HOME, or else the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    programs = without_current_folder(os.environ).get("PATH", os.defpath)
    path = shutil.which("java", path=str(Path(home) / "bin") if home else programs)
    if path is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "there is no java on the PATH"
        raise JavaNotFoundError(f"{where}: {_INSTALL}")
    try:
        # Running `java -version` takes 0.05 s.
        release = (Path(path).resolve().parents[1] / "release").read_text()
    except OSError:
        release = _version_of(path)
    version = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', release)
    if version is None:
        raise JavaNotFoundError(f"{path} is not a working Java: {_INSTALL}")
    if int(version[1]) < _OLDEST_JAVA:
        raise JavaNotFoundError(f"{path} is Java {version[1]}: {_INSTALL}")
    return Java(path, release)


def _version_of(java: str) -> str:
    try:
        # Java prints its version on stderr.
        return subprocess.run(  # noqa: S603
            [java, "-version"], capture_output=True, text=True, timeout=_PATIENCE, check=False
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)


# The packages of the extra [spark] in pyproject.toml: this works however kafkajit was installed.
INSTALL_SPARK = "pip install 'pyspark>=4.1,<5' 'pandas<3'"


def spark_home() -> Path:
    """The folder of the Spark that pyspark brings, for SPARK_HOME.

    Without that variable, pyspark would first look for bin/spark-submit above the current folder.
    """
    package = _pyspark()
    for folder in (package / "spark-distribution", package, package.parents[1]):
        if (folder / "bin" / "spark-submit").is_file():
            return folder
    raise SparkNotFoundError(f"{package} has no bin/spark-submit; run {INSTALL_SPARK}")


def _pyspark() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkNotFoundError(f"pyspark is not installed; run {INSTALL_SPARK}")
    return Path(spec.origin).parent


def spark_jars() -> list[Path]:
    """Spark's jars in the order of its own class path, without spark-mllib.

    Spark loads spark-mllib's functions into every session, which takes 0.5 s in Scala's reflection.
    """
    folder = _pyspark() / "jars"
    jars = [jar for jar in folder.glob("*.jar") if not jar.name.startswith("spark-mllib_")]
    if not jars:
        raise SparkNotFoundError(f"{folder} has no jars; run {INSTALL_SPARK}")
    return sorted(jars, key=lambda jar: (not jar.name.startswith("slf4j-api-"), jar.name))
