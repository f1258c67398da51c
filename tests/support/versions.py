"""Runs the core of the tests with other versions of Python, of dependencies and of Spark.

    python tests/support/versions.py build/versions             # all of them
    python tests/support/versions.py build/versions lowest 3.14

Needs uv (`pip install uv`). Each row of VERSIONS gets a new environment in the folder, with machine
code of its own, and tests.log. Pythons are those of pyenv and of the PATH;
`tests/support/debian_python.sh` unpacks one that the machine does not have. Prints the table of
docs/contributing.md.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
# All that reads, writes and checks bytes and values, without Spark and without servers.
CORE = (
    *("format", "kernel", "index", "records", "walk", "encode", "test_reader.py", "test_arrow.py"),
    *("state", "topics", "text", "values"),
)
SPARK = ("spark/test_datasource.py", "spark/test_functions.py")
# What these tests import, from the extras `test` and `dev`.
TOOLS = (
    *("cramjam", "fastavro", "googleapis-common-protos", "grpcio-tools", "hypothesis", "pytest"),
    *("pytest-xdist", "zstandard"),
)
# Spark 4.1 does not close the sockets of its Python workers, and here warnings are errors.
LENIENT = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning")
SHOWN = ("numba", "numpy", "pyarrow", "pyspark")


class Versions(NamedTuple):
    python: str
    resolution: str = "highest"  # of uv: lowest-direct takes the versions that pyproject.toml names
    pyspark: str | None = None


VERSIONS = {
    "lowest": Versions("3.11.2", "lowest-direct"),  # Debian 12's
    "3.11": Versions("3.11"),
    "3.12": Versions("3.12"),
    "3.13": Versions("3.13"),
    "3.14": Versions("3.14"),
    "3.15": Versions("3.15"),
    "spark-4.0": Versions("3.11", pyspark="4.0.*"),
    "spark-4.1": Versions("3.11", pyspark="4.1.*"),
    "spark-4.2": Versions("3.12", pyspark="4.2.*"),
    "spark-4.3": Versions("3.13", pyspark="4.3.*"),
}


def main() -> int:
    folder, *names = sys.argv[1:]
    print(f"| | Python | {' | '.join(SHOWN)} | result |\n|---|---|{'---|' * len(SHOWN)}---|")
    results = [run(name, Path(folder).resolve() / name) for name in names or VERSIONS]
    return 0 if all(results) else 1


def run(name: str, environment: Path) -> bool:
    """Print the row of one environment."""
    versions = VERSIONS[name]
    shutil.rmtree(environment, ignore_errors=True)
    try:
        install(versions, environment)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or [str(error)]
        blank = " |" * len(SHOWN)
        print(f"| {name} | {versions.python} |{blank} {lines[-1].strip()} |", flush=True)
        return False
    began = time.monotonic()
    tests = CORE if versions.pyspark is None else SPARK
    options = ["-q", "-p", "no:cacheprovider", "--tb=short"]
    options += [] if versions.pyspark is None else LENIENT
    tested = subprocess.run(
        [environment / "bin/python", "-m", "pytest", *options]
        + [REPOSITORY / "tests" / test for test in tests],
        cwd=REPOSITORY,
        env=os.environ
        | {
            "NUMBA_CACHE_DIR": str(environment / "machine-code"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYSPARK_PYTHON": str(environment / "bin/python"),
        },
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    (environment / "tests.log").write_text(tested.stdout)
    last = tested.stdout.strip().splitlines()[-1]
    result = re.sub(r" in .*|=+ ?", "", last) + f", {time.monotonic() - began:.0f} s"
    print(f"| {name} | {' | '.join(installed(environment))} | {result} |", flush=True)
    return tested.returncode == 0


def install(versions: Versions, environment: Path) -> None:
    project = f"{REPOSITORY}[encryption{',spark' if versions.pyspark else ''}]"
    wanted = ["-e", project]
    if versions.pyspark is not None:
        wanted.append(f"pyspark[connect]=={versions.pyspark}")
    uv("venv", "--python", interpreter(versions.python), str(environment))
    python = str(environment / "bin/python")
    uv("pip", "install", "--python", python, "--resolution", versions.resolution, *wanted)
    uv("pip", "install", "--python", python, *tools())


def interpreter(version: str) -> str:
    """A Python of pyenv, whose names on the PATH need not work, or the version for uv to find."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return next(map(str, root.glob(f"versions/{version}.*/bin/python")), version)


def tools() -> list[str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    lines = {re.split(r"[<>=\[]", line)[0]: line for line in extras["dev"] + extras["test"]}
    return [lines[tool] for tool in TOOLS] + ["pandas<3"]


def uv(*arguments: str) -> None:
    subprocess.run(["uv", "-q", *arguments], check=True, text=True, stderr=subprocess.PIPE)


def installed(environment: Path) -> list[str]:
    """The versions of Python and of what is SHOWN; empty if it is not installed."""
    script = (
        "import platform, importlib.metadata as found\n"
        "names = {name.metadata['Name']: name.version for name in found.distributions()}\n"
        f"print(platform.python_version(), *[names.get(name, '') for name in {SHOWN}], sep='\\n')"
    )
    printed = subprocess.check_output([environment / "bin/python", "-c", script], text=True)
    return printed.split("\n")[: 1 + len(SHOWN)]


if __name__ == "__main__":
    sys.exit(main())
