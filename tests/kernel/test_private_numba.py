"""What the room `kernel` uses of numba and llvmlite exists, private names above all.

numba does not promise to keep these. pyproject.toml therefore ends with the last numba that these
tests have passed with: run them with the next one, and then raise it.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numba
import pytest
from corpus import REPOSITORY
from numba.core import caching, registry
from numba.extending import intrinsic

pytestmark = pytest.mark.whole

SOURCES = sorted((REPOSITORY / "kafkajit" / "kernel").glob("*.py"))


def function() -> None:
    pass


@intrinsic
def an_intrinsic(_typing_context):
    raise NotImplementedError


CACHE = caching.FunctionCache(function)
# numba's objects, and what the code takes of each or overrides in it.
USED: list[tuple[str, Any, str]] = [
    (
        "core.registry.CPUDispatcher",
        registry.CPUDispatcher(function),
        "_cache compile py_func targetoptions",
    ),
    (
        "core.caching.FunctionCache",
        CACHE,
        "_cache_file _cache_path _guard_against_spurious_io_errors _impl _impl_class "
        "_load_overload load_overload save_overload",
    ),
    (
        "core.caching.IndexDataCacheFile",
        CACHE._cache_file,
        "_data_path _index_path _load_data _load_index _source_stamp",
    ),
    (
        "core.caching.CompileResultCacheImpl",
        CACHE._impl,
        "_locator_classes filename_base get_filename_base locator",
    ),
    ("core.caching.InTreeCacheLocator", CACHE._impl.locator, "from_function get_source_stamp"),
    ("core.extending._Intrinsic", an_intrinsic, "_defn"),
    ("config", numba.config, "BOUNDSCHECK CPU_FEATURES DISABLE_JIT _config_fname"),
]
NAMES = [(owner, value, name) for owner, value, names in USED for name in names.split()]


def places(name: str) -> str:
    """The lines of the code that have the name."""
    found = [
        f"{path.relative_to(REPOSITORY)}:{number}"
        for path in SOURCES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if name in line
    ]
    return ", ".join(found)


def gone(owner: str, name: str) -> str:
    version = importlib.import_module(owner.partition(".")[0]).__version__
    return f"{owner.partition('.')[0]} {version} has no {owner}.{name}, used in {places(name)}"


@pytest.mark.parametrize(("owner", "value", "name"), NAMES, ids=[name for *_, name in NAMES])
def test_a_name_of_numbas_objects_is_there(owner: str, value: object, name: str) -> None:
    assert places(name), f"{name} is no longer used: leave it out of USED"
    assert hasattr(value, name), gone(f"numba.{owner}", name)


@pytest.mark.parametrize("option", ["_nrt", "no_cfunc_wrapper", "nogil", "error_model", "inline"])
def test_an_option_of_the_compiler_is_there(option: str) -> None:
    assert hasattr(registry.CPUDispatcher.targetdescr.options, option), gone("numba.njit", option)


def test_the_cache_is_asked_when_a_function_is_compiled() -> None:
    """machine_code puts its own cache into a dispatcher, and wraps the method that asks it."""
    compiles = registry.CPUDispatcher.compile.__code__
    nested = [constant for constant in compiles.co_consts if isinstance(constant, CodeType)]
    reached = {name for code in (compiles, *nested) for name in code.co_names}
    for name in ("_cache", "load_overload", "save_overload"):
        assert name in reached, gone("numba.core.dispatcher.Dispatcher.compile", name)


def imported(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """(module, name, name in the code) of what a module takes from numba and llvmlite."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("numba", "llvm")):
            for alias in node.names:
                yield str(node.module), alias.name, alias.asname or alias.name


@pytest.mark.parametrize("path", SOURCES, ids=[path.stem for path in SOURCES])
def test_what_is_imported_is_there(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for module, name, known_as in imported(tree):
        value = getattr(importlib.import_module(module), name, None)
        assert value is not None, gone(module, name)
        if isinstance(value, ModuleType):
            for node in ast.walk(tree):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    taken = node.value.id == known_as
                    assert not taken or hasattr(value, node.attr), gone(value.__name__, node.attr)


def private_names(tree: ast.Module) -> set[str]:
    """Private attributes that a module reads or overrides and does not make itself."""
    read, own = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            of_self = isinstance(node.value, ast.Name) and node.value.id == "self"
            makes = of_self and isinstance(node.ctx, ast.Store)
            (own if makes else read).add(node.attr)
        elif isinstance(node, ast.ClassDef):
            own |= {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            read |= {
                target.id
                for part in node.body
                if isinstance(part, ast.Assign)
                for target in part.targets
                if isinstance(target, ast.Name) and target.id.startswith("_")
            }
    return {name for name in read - own if not name.endswith("__")}


@pytest.mark.parametrize("path", SOURCES, ids=[path.stem for path in SOURCES])
def test_no_private_name_is_used_without_a_test(path: Path) -> None:
    known = {name for *_, name in NAMES} | {"_fields"}  # a named tuple's
    assert private_names(ast.parse(path.read_text())) <= known
