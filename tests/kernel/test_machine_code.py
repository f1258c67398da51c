from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from corpus import NO_JIT, REPOSITORY, run_python
from strangers import IS_ROOT, NOBODY, folder_that_others_enter

SIZES = """
from kafkajit import sizes
print(sizes.record_size_in_bytes([0, 70], 0, 3, 4).tolist())
print(sum(getattr(sizes._record_sizes, "stats").cache_hits.values())
      if hasattr(sizes._record_sizes, "stats") else 1)
"""


def copied_package(folder: Path) -> Path:
    shutil.copytree(
        REPOSITORY / "kafkajit",
        folder / "kafkajit",
        ignore=shutil.ignore_patterns("__pycache__", "*.nb?"),
    )
    return folder


def with_longer_varints(source: str) -> str:
    """varint.py where each of a record's six varints, being short, takes two bytes more.

    It is longer than before: Python would keep its own code for a source of the same size that was
    written in the same second.
    """
    assert source.count("return np.int64(1) + ") == 1
    return source.replace("return np.int64(1) + ", "return np.int64(3) + ") + "# changed\n"


CACHE = {"NUMBA_CACHE_DIR": "", "KAFKAJIT_CACHE": "1"}
VARINT = Path("kafkajit/format/varint.py")


def sizes_and_hits(parent: Path) -> tuple[str, int]:
    """What a kernel returns, and how many kernels a new process found compiled."""
    sizes, hits = run_python(SIZES, package_parent=parent, **CACHE).splitlines()
    return sizes, int(hits)


def test_machine_code_is_kept_until_a_function_that_the_kernel_calls_changes(
    tmp_path: Path,
) -> None:
    parent = copied_package(tmp_path)
    assert sizes_and_hits(parent)[0] == "[14, 15]"
    assert sizes_and_hits(parent) == ("[14, 15]", 1)
    source = (parent / VARINT).read_text()
    (parent / VARINT).write_text(with_longer_varints(source))
    assert sizes_and_hits(parent)[0] == "[26, 27]"
    (parent / VARINT).write_text(source)
    assert sizes_and_hits(parent)[0] == "[14, 15]"


PLANTED = """
import os, pickle, sys
from pathlib import Path
os.setuid(int(sys.argv[2]))
class Planted:
    def __reduce__(self):
        return open, (sys.argv[3], "w")
for path in [*Path(sys.argv[1]).rglob("*.nb?")]:
    path.unlink()
    path.write_bytes(pickle.dumps(Planted()))
"""


@pytest.mark.skipif(NO_JIT, reason="nothing is compiled")
@pytest.mark.parametrize("whose", ["a folder of all", "one by name", "a file of another user's"])
def test_machine_code_that_others_may_have_written_is_not_run(whose: str) -> None:
    with folder_that_others_enter() as root:
        cache = {"NUMBA_CACHE_DIR": str(root / "cache"), "KAFKAJIT_CACHE": "1"}
        if whose == "one by name":  # newer numbas have this setting
            cache["NUMBA_CACHE_LOCATOR_CLASSES"] = "UserProvidedCacheLocator"
        assert run_python(SIZES, **cache).splitlines() == ["[14, 15]", "0"]
        folders = [root / "cache", *(root / "cache").iterdir()]
        for folder in folders:
            folder.chmod(0o777)
        stranger = NOBODY if IS_ROOT else os.getuid()
        mark = root / "mark"
        run_python(PLANTED, str(root / "cache"), str(stranger), str(mark))
        if whose == "a file of another user's":
            for folder in folders:
                folder.chmod(0o755)
            for path in (root / "cache").rglob("*.nb?"):
                path.chmod(0o666)
        assert run_python(SIZES, **cache).splitlines()[0] == "[14, 15]"
        assert not mark.exists()


COMPILER = """
import gc, sys
print("numba.np.arrayobj" in sys.modules, gc.isenabled())
"""


@pytest.mark.skipif(NO_JIT, reason="nothing is compiled")
def test_a_process_that_finds_machine_code_does_without_numbas_compiler(tmp_path: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(tmp_path), "KAFKAJIT_CACHE": "1"}
    compiled, loaded = (run_python(SIZES + COMPILER, **cache).splitlines() for _ in range(2))
    assert compiled == ["[14, 15]", "0", "True True"]
    assert loaded == ["[14, 15]", "1", "False True"]


PARTLY_KEPT = """
sizes.header_size_in_bytes([1], [1])
print(sizes.record_size_in_bytes([0, 70], 0, 3, 4).tolist())
"""


@pytest.mark.skipif(NO_JIT, reason="nothing is compiled")
def test_a_process_that_finds_some_of_the_machine_code_compiles_the_rest(tmp_path: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(tmp_path), "KAFKAJIT_CACHE": "1"}
    run_python(SIZES, **cache)
    assert run_python(SIZES + PARTLY_KEPT, **cache).splitlines() == ["[14, 15]", "1", "[14, 15]"]


def _with_a_comment(parent: Path) -> None:
    source = (parent / VARINT).read_text()
    kernel = source.index("@kernel\ndef varlong_size")
    (parent / VARINT).write_text(f"{source[:kernel]}# a line more\n{source[kernel:]}")


def _with_another_docstring(parent: Path) -> None:
    source = (parent / VARINT).read_text()
    assert source.count('"""The bytes of one varlong') == 1
    (parent / VARINT).write_text(
        source.replace('"""The bytes of one', '"""How many bytes are in one')
    )


def _with_another_command(parent: Path) -> None:
    with (parent / "kafkajit" / "cli" / "__init__.py").open("a") as file:
        file.write("ANOTHER = 1\n")


def _with_another_error(parent: Path) -> None:
    with (parent / "kafkajit" / "errors.py").open("a") as file:
        file.write("ANOTHER_STATUS = 999\n")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "edit",
    [_with_a_comment, _with_another_docstring, _with_another_command, _with_another_error],
)
def test_an_edit_that_a_kernel_does_not_see_recompiles_nothing(
    tmp_path: Path, edit: Callable[[Path], None]
) -> None:
    parent = copied_package(tmp_path)
    sizes_and_hits(parent)
    edit(parent)
    assert sizes_and_hits(parent) == ("[14, 15]", 1)


@pytest.mark.thorough
def test_machine_code_is_stale_once_a_constant_that_the_kernel_reads_changes(
    tmp_path: Path,
) -> None:
    parent = copied_package(tmp_path)
    source = (parent / VARINT).read_text()
    assert source.count("return np.int64(1) + ") == 1
    named = source.replace("return np.int64(1) + ", "return np.int64(_LEAST) + ")
    for least, sizes in ((1, "[14, 15]"), (3, "[26, 27]")):
        (parent / VARINT).write_text(f"{named}\n_LEAST = {least}  {'#' * least}\n")
        assert sizes_and_hits(parent)[0] == sizes


FINGERPRINTS = """
import importlib, pkgutil, kafkajit
from kafkajit.kernel.machine_code import fingerprint
found = {}
for module in pkgutil.walk_packages(kafkajit.__path__, "kafkajit."):
    if module.name.startswith(("kafkajit.spark", "kafkajit.cli")) or "__main__" in module.name:
        continue
    for name, value in vars(importlib.import_module(module.name)).items():
        if hasattr(value, "py_func") or hasattr(value, "_defn"):
            found[f"{value.__module__}.{value.__name__}"] = fingerprint(value)
print(len(found))
print(sorted(found.items()))
"""


@pytest.mark.thorough
@pytest.mark.skipif(NO_JIT, reason="nothing is compiled")
def test_every_kernel_has_the_same_fingerprint_in_every_process() -> None:
    first, second = (run_python(FINGERPRINTS, PYTHONHASHSEED=seed) for seed in "12")
    assert int(first.splitlines()[0]) > 100
    assert first == second


READ_ONLY = """
import tempfile
def refuse(*args, **kwargs):
    raise PermissionError("a read-only file system")
tempfile.TemporaryFile = refuse  # with which numba finds out
"""


@pytest.mark.thorough
def test_machine_code_that_a_read_only_installation_brings_is_used(tmp_path: Path) -> None:
    parent = copied_package(tmp_path)

    def run(before: str) -> list[str]:
        cache = {"NUMBA_CACHE_DIR": "", "KAFKAJIT_CACHE": "1"}
        return run_python(before + SIZES, package_parent=parent, **cache).splitlines()

    assert run(READ_ONLY) == ["[14, 15]", "1" if NO_JIT else "0"]  # compiled, and not kept
    assert not any(parent.rglob("*.nbc"))
    run("")
    assert run(READ_ONLY) == ["[14, 15]", "1"]
    (parent / VARINT).write_text(with_longer_varints((parent / VARINT).read_text()))
    assert run(READ_ONLY) == ["[26, 27]", "1" if NO_JIT else "0"]


@pytest.mark.thorough
def test_a_zip_file_keeps_machine_code_until_it_changes(tmp_path: Path) -> None:
    parent = copied_package(tmp_path / "package")
    callee = parent / "kafkajit" / "format" / "varint.py"
    source = callee.read_text()

    def run() -> tuple[str, int]:
        packed = shutil.make_archive(str(tmp_path / "kafkajit"), "zip", parent)
        code = f"import sys; sys.path.insert(0, {packed!r})\n{SIZES}"
        home = {"NUMBA_CACHE_DIR": "", "KAFKAJIT_CACHE": "1", "HOME": str(tmp_path / "home")}
        sizes, hits = run_python(code, package_parent=tmp_path, **home).splitlines()
        return sizes, int(hits)

    assert run()[0] == "[14, 15]"
    assert run() == ("[14, 15]", 1)
    callee.write_text(with_longer_varints(source))
    assert run()[0] == "[26, 27]"


@pytest.mark.thorough
def test_processes_that_compile_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    parent = copied_package(tmp_path)
    cache = {"NUMBA_CACHE_DIR": "", "KAFKAJIT_CACHE": "1"}
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(run_python, SIZES, package_parent=parent, **cache) for _ in range(3)]
    assert {run.result().splitlines()[0] for run in runs} == {"[14, 15]"}
    assert run_python(SIZES, package_parent=parent, **cache).splitlines() == ["[14, 15]", "1"]


COMPILED = """
from numba.core import event
class Listener(event.Listener):
    def on_start(self, event):
        print("compiled", event.data["dispatcher"].__name__)
    def on_end(self, event):
        pass
event.register("numba:compile", Listener())
"""


@pytest.mark.thorough
@pytest.mark.skipif(NO_JIT, reason="nothing is compiled")
def test_of_many_processes_one_compiles_each_kernel(tmp_path: Path) -> None:
    parent = copied_package(tmp_path)
    cache = {"NUMBA_CACHE_DIR": "", "KAFKAJIT_CACHE": "1"}

    def run() -> list[str]:
        return run_python(COMPILED + SIZES, package_parent=parent, **cache).splitlines()

    with ThreadPoolExecutor(4) as pool:
        runs = [run.result() for run in [pool.submit(run) for _ in range(4)]]
    assert [lines[-2] for lines in runs] == ["[14, 15]"] * 4
    compiled = [line for lines in runs for line in lines if line.startswith("compiled")]
    assert len(compiled) == len(set(compiled)) > 1


WAITS = """
from kafkajit.kernel import machine_code
machine_code._PATIENCE = 0.1
comes, waits = machine_code._comes, []
machine_code._comes = lambda file: waits.append(comes(file)) or waits[-1]
"""
MORE_SIZES = """
sizes.header_size_in_bytes([1], [1])
print(waits.count(False))
"""


@pytest.mark.thorough
@pytest.mark.skipif(NO_JIT, reason="nothing is compiled")
def test_who_waited_too_long_for_another_process_compiles_and_waits_no_more(
    tmp_path: Path,
) -> None:
    parent = copied_package(tmp_path)
    cache = {"NUMBA_CACHE_DIR": "", "KAFKAJIT_CACHE": "1"}
    folder = parent / "kafkajit" / "__pycache__"
    folder.mkdir()
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        code = WAITS + SIZES + MORE_SIZES
        sizes, _, waits = run_python(code, package_parent=parent, **cache).splitlines()
    finally:
        os.close(held)
    assert (sizes, waits) == ("[14, 15]", "1")


OUT_OF_BOUNDS = """
import numpy as np
from kafkajit.format.varint import varint_rest
from kafkajit.storage.source import as_bytes
try:
    varint_rest(as_bytes(b"\\x80\\x80"), 1, np.int64(0x80))
except IndexError:
    print("refused")
else:
    print("read")
"""


@pytest.mark.thorough
def test_the_mode_that_checks_bounds_runs_no_unchecked_code_from_the_cache(tmp_path: Path) -> None:
    parent = copied_package(tmp_path)

    def run(boundscheck: str) -> str:
        modes = {"NUMBA_CACHE_DIR": "", "NUMBA_BOUNDSCHECK": boundscheck}
        return run_python(OUT_OF_BOUNDS, package_parent=parent, **modes).strip()

    unchecked = "refused" if NO_JIT else "read"  # numpy checks every index
    assert [run(mode) for mode in "0101"] == [unchecked, "refused"] * 2


@pytest.mark.thorough
@pytest.mark.parametrize(("setting", "kept"), [("0", False), ("1", True)])
def test_the_cache_can_be_turned_off(tmp_path: Path, setting: str, kept: bool) -> None:
    parent = copied_package(tmp_path)
    cache = {"NUMBA_CACHE_DIR": "", "KAFKAJIT_CACHE": setting}
    run_python(SIZES, package_parent=parent, **cache)
    assert any(parent.rglob("*.nbc")) == (kept and not NO_JIT)


MODES = """
import numpy as np
import kafkajit.testing as kt
from corpus import SOUND_LOGS, expected_rows, rows_of, log_of
import kafkajit
for name in ("none-0", "zstd-0", "headers-0", "transactions-0"):
    log = log_of(name)
    assert rows_of(kafkajit.read_records(log)) == expected_rows(log)[0]
for name in kt.BREAKS:
    try:
        kafkajit.read_records(kt.broken(name))
    except kafkajit.KafkaJitError as error:
        print(error)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT"])
def test_a_mode_changes_nothing_that_is_read(mode: str, tmp_path: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}  # leaves the package's own to this mode
    plain = {"NUMBA_BOUNDSCHECK": "0", "NUMBA_DISABLE_JIT": "0"}
    errors = run_python(MODES, **(plain | cache | {mode: "1"}))
    assert errors == run_python(MODES)
    assert errors.count("\n") > 20
