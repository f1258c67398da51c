from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from corpus import NO_JIT, REPOSITORY, run_python
from hypothesis import example, given
from hypothesis import strategies as st

from kafkajit.kernel import (
    HALF,
    HAS_C,
    WIDE,
    _multiply_high_plain,
    address_of,
    call_c,
    choose,
    copy_bytes,
    copy_half,
    copy_wide,
    kernel,
    multiply_high,
    read_int32,
    read_int64,
    read_word,
    write_word,
)
from kafkajit.source import as_bytes

FENCE = 0xAA


@kernel
def call_copy_bytes(target, t, source, s, size):
    copy_bytes(target, t, source, s, size)


@kernel
def call_copy_wide(target, t, source, s):
    copy_wide(target, t, source, s)


@kernel
def call_copy_half(target, t, source, s):
    copy_half(target, t, source, s)


@kernel
def call_choose(condition, a, b):
    return choose(condition, np.int64(a), np.int64(b))


@kernel
def call_read_word(content, position):
    return read_word(content, np.int64(position))


@kernel
def call_memcmp(function, a, b, size):
    zero = np.int64(0)
    return call_c(function, address_of(a, zero), address_of(b, zero), size, zero, zero, zero, zero)


@kernel
def call_write_word(target, t, word):
    write_word(target, t, np.uint64(word))


@kernel
def call_multiply_high(a, b):
    return multiply_high(np.uint64(a), np.uint64(b))


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
@example(2**64 - 1, 2**64 - 1)
@example(2**32 - 1, 2**63 + 2**32)
def test_the_upper_half_of_a_product_is_what_python_has(a: int, b: int) -> None:
    assert int(call_multiply_high(np.uint64(a), np.uint64(b))) == a * b >> 64
    assert int(_multiply_high_plain(np.uint64(a), np.uint64(b))) == a * b >> 64


@given(st.binary(min_size=8, max_size=8), st.integers(0, 20))
def test_a_word_is_written_with_its_lowest_byte_first(raw: bytes, t: int) -> None:
    target = np.full(50, FENCE, dtype=np.uint8)
    call_write_word(target, t, np.uint64(int.from_bytes(raw, "little")))
    assert target[t : t + 8].tobytes() == raw
    assert (target[:t] == FENCE).all()
    assert (target[t + 8 :] == FENCE).all()


@given(
    st.integers(0, 3 * WIDE + 5),
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(0, 2 * WIDE),
)
def test_copying_writes_what_was_asked_for_and_no_further_than_its_room(
    size: int, s: int, t: int, behind: int
) -> None:
    source = as_bytes(np.arange(s + size + behind, dtype=np.uint8))
    target = np.full(t + size + WIDE + 50, FENCE, dtype=np.uint8)
    call_copy_bytes(target, t, source, s, size)
    assert target[t : t + size].tolist() == source[s : s + size].tolist()
    assert (target[:t] == FENCE).all()
    assert (target[t + size + WIDE :] == FENCE).all()


@pytest.mark.parametrize("size", [0, 1, WIDE - 1, WIDE, WIDE + 1])
def test_copying_reads_nothing_behind_the_source(size: int) -> None:
    memory = np.full(200, FENCE, dtype=np.uint8)
    memory[:size] = 7
    target = np.zeros(size + WIDE, dtype=np.uint8)
    call_copy_bytes(target, 0, as_bytes(memory[:size]), 0, size)
    assert (target[:size] == 7).all()
    assert (target[size:] == 0).all()  # byte by byte: there was no room for a wide copy


def test_a_wide_copy_moves_that_many_bytes() -> None:
    source = as_bytes(np.arange(100, dtype=np.uint8))
    target = np.full(100, FENCE, dtype=np.uint8)
    call_copy_wide(target, 5, source, 9)
    expected = [FENCE] * 5 + list(range(9, 9 + WIDE)) + [FENCE] * (95 - WIDE)
    assert target.tolist() == expected


def test_a_copy_of_half_that_moves_half_as_much() -> None:
    source = as_bytes(np.arange(100, dtype=np.uint8))
    target = np.full(100, FENCE, dtype=np.uint8)
    call_copy_half(target, 5, source, 9)
    assert target.tolist() == [FENCE] * 5 + list(range(9, 9 + HALF)) + [FENCE] * (95 - HALF)


@given(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_one_of_two_is_chosen(condition: bool, a: int, b: int) -> None:
    assert call_choose(condition, np.int64(a), np.int64(b)) == (a if condition else b)


@given(st.binary(min_size=8, max_size=30), st.integers(0, 22))
def test_a_word_is_read_with_its_lowest_byte_first(raw: bytes, at: int) -> None:
    at = min(at, len(raw) - 8)
    word = int.from_bytes(raw[at : at + 8], "little", signed=True)
    assert call_read_word(as_bytes(raw), at) == word


if HAS_C:

    def test_c_functions_are_called_by_their_addresses() -> None:
        function = ctypes.cast(ctypes.CDLL(None).memcmp, ctypes.c_void_p).value

        def compare(a: bytes, b: bytes) -> int:
            result = call_memcmp(function, as_bytes(a), as_bytes(b), len(a))
            return ctypes.c_int32(result & 0xFFFFFFFF).value

        assert compare(b"same", b"same") == 0
        assert compare(b"abcd", b"abce") < 0
        assert compare(b"abce", b"abcd") > 0


SIZES = """
from kafkajit.records import default_records
print(default_records.record_size_in_bytes([0, 70], 0, 3, 4).tolist())
print(sum(getattr(default_records._record_sizes, "stats").cache_hits.values())
      if hasattr(default_records._record_sizes, "stats") else 1)
"""


def copied_package(folder: Path) -> Path:
    shutil.copytree(
        REPOSITORY / "kafkajit",
        folder / "kafkajit",
        ignore=shutil.ignore_patterns("__pycache__", "*.nb?"),
    )
    return folder


def with_longer_varints(source: str) -> str:
    """varint.py where each of a record's six varints, being short, takes two bytes more."""
    assert source.count("return np.int64(1) + ") == 1
    return source.replace("return np.int64(1) + ", "return np.int64(3) + ")


def test_machine_code_is_kept_until_any_file_of_the_package_changes(tmp_path: Path) -> None:
    parent = copied_package(tmp_path)

    def run() -> tuple[str, int]:
        cache = {"NUMBA_CACHE_DIR": "", "KAFKAJIT_CACHE": "1"}
        sizes, hits = run_python(SIZES, package_parent=parent, **cache).splitlines()
        return sizes, int(hits)

    assert run()[0] == "[14, 15]"
    assert run() == ("[14, 15]", 1)  # from the cache
    callee = parent / "kafkajit" / "format" / "varint.py"
    source = callee.read_text()
    callee.write_text(with_longer_varints(source))
    assert run()[0] == "[26, 27]"
    callee.write_text(source)
    assert run()[0] == "[14, 15]"


READ_ONLY = """
import tempfile
def refuse(*args, **kwargs):
    raise PermissionError("a read-only file system")
tempfile.TemporaryFile = refuse  # with which numba finds out
"""


def test_machine_code_that_a_read_only_installation_brings_is_used(tmp_path: Path) -> None:
    parent = copied_package(tmp_path)

    def run(before: str) -> list[str]:
        cache = {"NUMBA_CACHE_DIR": "", "KAFKAJIT_CACHE": "1"}
        return run_python(before + SIZES, package_parent=parent, **cache).splitlines()

    assert run(READ_ONLY) == ["[14, 15]", "1" if NO_JIT else "0"]  # compiled, and not kept
    assert not any(parent.rglob("*.nbc"))
    run("")
    assert run(READ_ONLY) == ["[14, 15]", "1"]
    with (parent / "kafkajit" / "errors.py").open("a") as file:
        file.write("# another version")
    assert run(READ_ONLY) == ["[14, 15]", "1" if NO_JIT else "0"]


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
from kafkajit import kernel
kernel._PATIENCE = 0.1
comes, waits = kernel._comes, []
kernel._comes = lambda file: waits.append(comes(file)) or waits[-1]
"""
MORE_SIZES = """
default_records.header_size_in_bytes([1], [1])
print(waits.count(False))
"""


@pytest.mark.skipif(NO_JIT, reason="nothing is compiled")
def test_who_waited_too_long_for_another_process_compiles_and_waits_no_more(
    tmp_path: Path,
) -> None:
    parent = copied_package(tmp_path)
    cache = {"NUMBA_CACHE_DIR": "", "KAFKAJIT_CACHE": "1"}
    folder = parent / "kafkajit" / "records" / "__pycache__"
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
from kafkajit.source import as_bytes
try:
    varint_rest(as_bytes(b"\\x80\\x80"), 1, np.int64(0x80))
except IndexError:
    print("refused")
else:
    print("read")
"""


def test_the_mode_that_checks_bounds_runs_no_unchecked_code_from_the_cache(tmp_path: Path) -> None:
    parent = copied_package(tmp_path)

    def run(boundscheck: str) -> str:
        modes = {"NUMBA_CACHE_DIR": "", "NUMBA_BOUNDSCHECK": boundscheck}
        return run_python(OUT_OF_BOUNDS, package_parent=parent, **modes).strip()

    unchecked = "refused" if NO_JIT else "read"  # numpy checks every index
    assert [run(mode) for mode in "0101"] == [unchecked, "refused"] * 2


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


@pytest.mark.parametrize("mode", ["NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT"])
def test_a_mode_changes_nothing_that_is_read(mode: str, tmp_path: Path) -> None:
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}  # leaves the package's own to this mode
    plain = {"NUMBA_BOUNDSCHECK": "0", "NUMBA_DISABLE_JIT": "0"}
    errors = run_python(MODES, **(plain | cache | {mode: "1"}))
    assert errors == run_python(MODES)
    assert errors.count("\n") > 20


@given(st.binary(max_size=9), st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_read_as_they_stand_on_the_wire(before: bytes, number: int) -> None:
    content = as_bytes(before + number.to_bytes(8, signed=True))
    assert read_int64(content, len(before)) == number
    assert read_int32(content, len(before)) == number >> 32
