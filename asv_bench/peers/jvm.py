"""The Java programs of this folder, compiled against Kafka's jars, and commands that run them."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from pathlib import Path

from asv_bench.benchmarks.segments import cache_folder
from asv_bench.peers.rounds import REPO

sys.path.insert(0, str(REPO / "tests" / "broker"))
import broker  # the tests' own way to Kafka's jars

SOURCES = sorted(Path(__file__).parent.glob("*.java"))
SERIAL = "-XX:+UseSerialGC"


def has_kafka() -> bool:
    """Whether Kafka's own classes can be run here."""
    jars = os.environ.get(broker.KAFKA.variable) or shutil.which("mvn")
    return bool(jars and shutil.which("javac"))


def java(megabytes: int) -> list[str]:
    """The command of a JVM with this much memory, and with Kafka's classes and ours."""
    memory = (f"-Xms{megabytes}m", f"-Xmx{megabytes}m")
    return ["java", SERIAL, *memory, "-cp", broker.classpath(compiled())]


@cache
def compiled() -> Path:
    """The folder with the classes."""
    folder = cache_folder() / "classes"
    for source in SOURCES:
        target = folder / f"{source.stem}.class"
        if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
            broker.compile_java([source], folder)
    return folder
