"""kafkajit on Windows and macOS, as far as Linux can pretend (tests/support/other_system.py)."""

from __future__ import annotations

import ast
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import other_system
import pytest
from corpus import REPOSITORY, run_python

from kafkajit.storage.source import SAMPLE_LOGS

PACKAGE = REPOSITORY / "kafkajit"
MODULES = sorted(PACKAGE.rglob("*.py"))

# The only modules that may import or name what not every system has, each with what it may.
DOORS = {
    "system/acting.py": {
        "pwd",
        *("os.geteuid", "os.getgid", "os.getgroups"),
        *("os.setegid", "os.seteuid", "os.setgroups"),
    },
    "system/file_lock.py": {"fcntl", "msvcrt"},
    "system/durable.py": {"fcntl"},
    "system/memory_map.py": {"mmap"},
    "system/ownership.py": {"grp", "pwd", "os.getuid"},
    "system/positioned.py": {"os.pread", "os.preadv", "os.copy_file_range"},
    "system/new_file.py": {"os.O_DIRECTORY"},
    "system/disk.py": {"os.chown"},
    "walk/threads.py": {"os.sched_getaffinity"},
    "cli/sql/cancellable.py": {"signal"},
    "cli/sql/local_socket.py": {"socket"},
    "cli/sql/prompt.py": {"readline"},
    "spark/worker.py": {"socket"},  # Spark's own sockets
    # Spark's quick start, which Windows does without.
    "spark/local/archive_maker.py": {"signal", "os.nice"},
    "spark/local/fork_server.py": {"signal", "socket", "select", "os.fork"},
    "spark/local/jvm.py": {"socket", "os.sysconf"},
}
# Modules that exist everywhere and differ.
DIFFERENT = {"mmap", "msvcrt", "select", "selectors", "signal", "socket", "winreg"}
GUARDED = {*other_system.POSIX_MODULES, *DIFFERENT}
GUARDED_OF_OS = {*other_system.POSIX_OF_OS, *other_system.LINUX_OF_OS}


def not_everywhere(path: Path) -> Iterator[str]:
    """What a module imports or names that not every system has."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in GUARDED)
        elif isinstance(node, ast.ImportFrom) and node.module in GUARDED:
            yield node.module
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and (node.value.id, node.attr in GUARDED_OF_OS) == ("os", True)
        ):
            yield f"os.{node.attr}"


def for_type_checkers(path: Path) -> set[str]:
    """What is imported for annotations alone."""
    return {
        alias.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
        for statement in node.body
        if isinstance(statement, ast.Import)
        for alias in statement.names
    }


def test_only_the_doors_use_what_not_every_system_has() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): names
        for path in MODULES
        if (names := set(not_everywhere(path)) - for_type_checkers(path))
    }
    assert found == DOORS


def test_names_of_linux_are_known_to_the_pretender() -> None:
    assert {"pread", "fork", "copy_file_range", "O_NONBLOCK"} <= GUARDED_OF_OS & set(dir(os))


IMPORTS = """
import importlib, pkgutil, sys
import other_system
other_system.become(sys.argv[1])
import kafkajit

names = [
    module.name
    for module in pkgutil.walk_packages(kafkajit.__path__, "kafkajit.", lambda _: None)
    if not module.name.startswith("kafkajit.spark") and not module.name.endswith("__main__")
]
for name in names:
    importlib.import_module(name)
print(len(names), *sorted(set(other_system.POSIX_MODULES) & set(sys.modules)))
"""

READS = """
import json, os, sys
import other_system
other_system.become(sys.argv[1])
import kafkajit
from kafkajit.storage.live_file import LiveFile
from kafkajit.storage.source import SAMPLE_LOGS

path = "sample:orders-0/00000000000000000000.log"
live = LiveFile.at(str(SAMPLE_LOGS / "orders-0" / "00000000000000000000.log"))
ranges = live.open()
ranges.load(live.size)
ranges.forget(live.size)
for source in path, live.read(), ranges.content:
    table = kafkajit.read_records(source)
    print(table.num_rows, table.column("offset").to_pylist()[-1])
print(kafkajit.Log("sample:orders-0").read(20, max_records=5).num_rows)
print(kafkajit.read_records(kafkajit.encode_batches(table)).num_rows)
kafkajit.export("sample:orders-0", sys.argv[2] + "/rows", to="jsonl")
print(sorted(os.listdir(sys.argv[2] + "/rows")))
"""

CHANGES = """
import sys
import other_system
other_system.become(sys.argv[1])
import kafkajit

plan = kafkajit.repair(sys.argv[2])
print(plan.is_needed)
try:
    plan.apply()
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_every_module_can_be_imported(system: str) -> None:
    count, *loaded = run_python(IMPORTS, system).split()
    spark = len(list((PACKAGE / "spark").rglob("*.py")))
    assert int(count) == len(MODULES) - spark - 2  # not kafkajit itself, nor __main__
    assert loaded == [] or system == "darwin"


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_logs_are_read_written_and_exported(system: str, tmp_path: Path) -> None:
    *read, some, encoded, files = run_python(READS, system, str(tmp_path)).splitlines()
    assert read == ["27 26"] * 3
    assert (some, encoded) == ("5", "27")
    assert files == f"['_kafkajit', 'orders-0-{0:020}.jsonl']"


def test_logs_are_changed_on_macos_and_not_on_windows(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    shutil.copytree(SAMPLE_LOGS / "orders-0", folder)
    with (folder / f"{0:020}.log").open("ab") as log:
        log.write(b"torn")
    size = Path(log.name).stat().st_size
    is_needed, refusal = run_python(CHANGES, "win32", str(folder)).splitlines()
    assert is_needed == "True"
    assert "change the log on Linux or macOS" in refusal
    assert (folder / f"{0:020}.log").stat().st_size == size
    assert run_python(CHANGES, "darwin", str(folder)) == "True\n"
    assert (folder / f"{0:020}.log").stat().st_size == size - 4
