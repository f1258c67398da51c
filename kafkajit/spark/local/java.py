"""Finds Java and Spark's jars for a local session."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

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
    path = shutil.which("java", path=str(Path(home) / "bin") if home else None)
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


def spark_jars() -> list[Path]:
    """Spark's jars in the order of its own class path, without spark-mllib.

    Spark loads spark-mllib's functions into every session, which takes 0.5 s in Scala's reflection.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkNotFoundError(f"pyspark is not installed; run {INSTALL_SPARK}")
    folder = Path(spec.origin).parent / "jars"
    jars = [jar for jar in folder.glob("*.jar") if not jar.name.startswith("spark-mllib_")]
    if not jars:
        raise SparkNotFoundError(f"{folder} has no jars; run {INSTALL_SPARK}")
    return sorted(jars, key=lambda jar: (not jar.name.startswith("slf4j-api-"), jar.name))
