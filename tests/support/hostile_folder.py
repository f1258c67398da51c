"""A folder of logs in which somebody else has left files for the programs that a user starts there.

Each of them writes its name into a file outside when it runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from corpus import REPOSITORY

import kafkajit.testing as kt

# Spark looks for the first; commands, Spark and their libraries import the others.
MODULES = (
    *("pyspark_planted", "sitecustomize", "usercustomize", "argparse", "json", "re", "types"),
    *("numpy", "pyarrow", "pandas", "numba", "llvmlite", "yaml", "pyspark", "py4j", "lz4"),
    *("kafkajit", "zstandard", "backports", "deflate", "isal", "crc32c", "vl_convert"),
)
PROGRAMS = ("java", "python", "python3", "bash", "sh", "setsid", "ps", "dirname", "spark-submit")


class HostileFolder:
    """`here` has three topics of records, and what is planted; all of it is in `root`."""

    def __init__(self, root: Path) -> None:
        self.here = root / "parent" / "here"
        self._machine_code = root / "machine-code"
        self._marks = root / "marks"
        self._script = root / "bin" / "kafkajit"
        shutil.copytree(kt.SAMPLE, self.here)
        for folder in (self.here, self.here / "orders-0"):
            self._plant(folder)
        # pyspark takes a folder with these for its own home.
        self._program(self.here.parent / "bin" / "spark-submit")
        (self.here.parent / "jars").mkdir()
        self._script.parent.mkdir()
        # as pip writes it
        self._script.write_text(
            f"#!{sys.executable}\nimport re\nimport sys\nfrom kafkajit.cli import main\n"
            "if __name__ == '__main__':\n    sys.exit(main())\n"
        )

    def _plant(self, folder: Path) -> None:
        for name in MODULES:
            module = folder / name / "__init__.py" if name == "kafkajit" else folder / f"{name}.py"
            module.parent.mkdir(exist_ok=True)
            module.write_text(f"open({str(self._marks)!r}, 'a').write({str(module)!r} + '\\n')\n")
        for name in PROGRAMS:
            self._program(folder / name)
        for home in (folder, folder / "java-home"):
            self._program(home / "bin" / "java")
            self._program(home / "bin" / "spark-submit")
        (folder / "jars").mkdir()
        (folder / ".numba_config.yaml").write_text(f"cache_dir: {self._machine_code}\n")
        # numba runs an extension's function when it first compiles.
        extension = folder / "planted-1.dist-info"
        extension.mkdir()
        (extension / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1\n")
        (extension / "entry_points.txt").write_text("[numba_extensions]\ninit = lz4:planted\n")
        for settings in (folder, folder / "conf"):
            settings.mkdir(exist_ok=True)
            (settings / "spark-defaults.conf").write_text("spark.driver.extraClassPath planted\n")
            (settings / "spark-env.sh").write_text(f"echo spark-env.sh >> '{self._marks}'\n")
            (settings / "log4j2.properties").write_text("rootLogger.level = trace\n")
        (folder / ".hotspot_compiler").write_text("print\n")

    def _program(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho '{path}' >> '{self._marks}'\nexit 1\n")
        path.chmod(0o755)

    def run(self, *arguments: str, **environment: str) -> str:
        """The output of `kafkajit` that is started there, as a user does who has installed it."""
        return self.run_python(str(self._script), *arguments, **environment)

    def run_python(self, *arguments: str, **environment: str) -> str:
        """The output of a Python that is started there; none of the planted files has run."""
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.here,
            env=self._environment(environment),
            capture_output=True,
            text=True,
            check=False,
        )
        assert not self._marks.exists(), self._marks.read_text()
        assert not self._machine_code.exists()
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _environment(self, changes: dict[str, str]) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
        return (
            inherited
            | {
                "PYTHONPATH": str(REPOSITORY),
                "PATH": os.pathsep.join(["", ".", os.environ["PATH"]]),
                "LD_LIBRARY_PATH": os.pathsep,
                "CLASSPATH": os.pathsep,
                "SPARK_HOME": "",
                "JAVA_HOME": "",
                "NO_COLOR": "1",
            }
            | changes
        )
