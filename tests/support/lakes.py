"""Another pyspark, with the packages of the tests: the one that Iceberg and Delta have jars for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from corpus import REPOSITORY
from local_java import environment
from needs import give_up

CACHE = Path.home() / ".cache" / "kafkajit"


def older_spark(requirement: str) -> dict[str, str]:
    """The environment of programs that run with another pyspark; pip fetches it the first time."""
    folder = CACHE / requirement.replace("==", "-").removesuffix(".*")
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", partial, requirement]
        if subprocess.run(command, check=False).returncode:
            shutil.rmtree(partial, ignore_errors=True)
            give_up("pip", f"needs {requirement}, which pip could not install")
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    # Jars come from Maven Central into a home of their own: Ivy fails at a ~/.m2 that has the
    # description of a jar without the jar.
    return environment(
        PYTHONPATH=os.pathsep.join([str(folder), str(REPOSITORY)]),
        KAFKAJIT_CACHE="1",
        PYSPARK_PYTHON=sys.executable,
        SPARK_LOCAL_IP="127.0.0.1",
        JAVA_TOOL_OPTIONS=f"-Duser.home={CACHE / 'lakes'}",
    )
