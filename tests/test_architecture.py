"""The rules of the house, read off the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from corpus import REPOSITORY, run_python

import kafkajit

pytestmark = pytest.mark.whole

PACKAGE = REPOSITORY / "kafkajit"
MODULES = sorted(PACKAGE.rglob("*.py"))
# rooms from left to right: a module imports from its own room and from those before it
ROOMS = [
    ("errors", "kernel", "schema", "storage", "system"),
    ("format",),
    ("places", "records", "sizes"),
    ("walk",),
    ("index", "topics"),
    ("state",),
    ("arrow", "change", "text"),
    ("values",),
    ("reader",),
    ("encode",),
    ("log",),
    ("append",),
    ("upkeep",),
    ("scan",),
    ("produce", "report"),
    ("spark",),
    ("cli",),
]
# Rooms that stand apart although the order would allow it: lines of text and Arrow are two ends of
# the same way.
APART = {
    "arrow": {"change", "text"},
    "change": {"arrow", "text"},
    "text": {"arrow", "change"},
    "values": {"change", "text"},
    "reader": {"text"},
    "encode": {"text"},
    "log": {"text"},
    "append": {"text"},
    "upkeep": {"text"},
    "scan": {"text"},
    "produce": {"text"},
    "spark": {"text"},
    "kernel": {"errors", "schema", "storage"},
    "errors": {"kernel", "schema", "storage"},
    "schema": {"errors", "kernel", "storage"},
    "storage": {"kernel", "schema"},
    "system": {"errors", "kernel", "schema", "storage"},
}
# testing builds bytes for readers to read: it knows the format and stands beside the line
BESIDE = "testing"  # a room of its own: it imports the first two lines of ROOMS only
DECORATORS = {"kernel", "inlined"}


def module_id(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(parsed(path)))


def rule(check: Callable[[Path], None]) -> Callable[[], None]:
    """A test that holds for every module; it lists the modules that break the rule."""

    def test() -> None:
        broken = []
        for path in MODULES:
            try:
                check(path)
            except AssertionError as error:
                broken.append(f"{module_id(path)}: {error}")
        assert not broken, "\n".join(broken)

    test.__name__ = check.__name__
    return test


def functions(path: Path) -> Iterator[ast.FunctionDef]:
    return (node for node in nodes(path) if isinstance(node, ast.FunctionDef))


def is_kernel(function: ast.FunctionDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id in DECORATORS for d in function.decorator_list)


def imports(path: Path) -> Iterator[str]:
    """The full names of all that a module imports, at any place in it."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(name: str) -> int | None:
    """The room of kafkajit.NAME…, None for other packages and for modules beside the line."""
    parts = name.split(".")
    if parts[0] != "kafkajit" or len(parts) < 2 or parts[1] == BESIDE:
        return None
    return next(number for number, room in enumerate(ROOMS) if parts[1] in room)


@rule
def test_imports_point_one_way(path: Path) -> None:
    module = "kafkajit." + module_id(path).removesuffix(".py").replace("/", ".")
    if module == "kafkajit.__init__":
        return  # the public names, loaded when they are asked for: tested below
    rooms = {name: room_of(name) for name in imports(path) if name.startswith("kafkajit.")}
    if module.split(".")[1] == BESIDE:
        others = {name: room for name, room in rooms.items() if name.split(".")[1] != BESIDE}
        assert all(room is not None and room <= 1 for room in others.values()), others
        return
    own = room_of(module)
    assert own is not None, f"{module} has no room in ROOMS"
    for name, room in rooms.items():
        assert room is not None, f"{module} imports {name}"
        assert room <= own, f"{module} imports {name}, which stands behind it"
        kept_out = APART.get(module.split(".")[1], set())
        assert name.split(".")[1] not in kept_out, f"{module} imports {name}"


def test_no_module_imports_itself_through_others() -> None:
    graph = {
        "kafkajit." + module_id(path).removesuffix(".py").replace("/", "."): {
            name for full in imports(path) for name in (full, full.rpartition(".")[0])
        }
        for path in MODULES
        if path != PACKAGE / "__init__.py"
    }

    done = set()  # there are millions of paths: each module's imports are followed once

    def reach(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " imports ".join([*path, module])
        if module in done:
            return
        for name in graph[module] & graph.keys():
            reach(name, (*path, module))
        done.add(module)

    for module in graph:
        reach(module, ())


@rule
def test_only_the_kernel_module_knows_numba(path: Path) -> None:
    numbas = [name for name in imports(path) if name.split(".")[0] in ("numba", "llvmlite")]
    assert not numbas or path.parent.name == "kernel"


@rule
def test_a_function_without_annotations_is_a_kernel(path: Path) -> None:
    if path.parent.name == "kernel":
        return
    for function in functions(path):
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        annotated = function.returns is not None
        assert annotated != is_kernel(function), function.name
        if not annotated:
            assert all(argument.annotation is None for argument in arguments), function.name


def test_kernels_are_found() -> None:
    kernels = [
        function.name for path in MODULES for function in functions(path) if is_kernel(function)
    ]
    assert len(kernels) > 20
    assert {"read_varint", "copy_binary", "read_plain", "_frame"} <= set(kernels)


_LISTS = (ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set, ast.SetComp, ast.GeneratorExp)


@rule
def test_no_kernel_raises_prints_or_builds_lists(path: Path) -> None:
    for function in functions(path):
        if not is_kernel(function):
            continue
        for node in [node for statement in function.body for node in ast.walk(statement)]:
            assert not isinstance(node, (ast.Raise, ast.Try, ast.Assert, *_LISTS)), function.name
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("print", "list", "dict", "set"), function.name


# What may change the disk by itself: the module that others call, and those that write only to
# folders of this user's own (caches, the state of a shell, what a JVM needs to begin).
WRITERS = {
    *("system/disk.py", "system/new_file.py", "system/file_lock.py"),
    *("kernel/machine_code.py", "storage/cache_folder.py", "spark/bridge.py"),
    *("spark/local/archive_maker.py", "spark/local/fork_server.py", "spark/local/jvm.py"),
    *("spark/local/session.py", "spark/local/class_archive.py", "cli/sql/prompt.py"),
    "cli/sql/row_stream.py",
}
_WRITE = {
    *("mkdir", "makedirs", "unlink", "rmdir", "rmtree", "touch", "write_bytes", "write_text"),
    *("hardlink_to", "symlink_to", "chmod", "chown", "utime", "truncate", "link", "symlink"),
}


@rule
def test_only_the_module_of_the_disk_changes_it(path: Path) -> None:
    if module_id(path) in WRITERS:
        return
    for node in nodes(path):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        of, name = node.func.value, node.func.attr
        if isinstance(of, ast.Name) and of.id == "disk":
            continue
        assert name not in _WRITE, f"line {node.lineno}: {name}"
        if name == "rename" or (name == "replace" and isinstance(of, ast.Name) and of.id == "os"):
            raise AssertionError(f"line {node.lineno}: {name}")
        if name in ("open", "memmap", "fdopen"):
            texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
            modes = {one for one in texts if one in ("w", "wb", "a", "ab", "r+", "r+b", "x", "xb")}
            is_own = any(
                isinstance(one, ast.Attribute) and one.attr == "dup" for one in ast.walk(node)
            )
            is_opened = name == "memmap" and isinstance(node.args[0], ast.Name)
            assert not modes or is_own or is_opened, f"line {node.lineno}: {name} {modes}"


def test_importing_the_package_imports_nothing_heavy() -> None:
    loaded = run_python(
        "import sys, kafkajit\n"
        "print([name for name in ('numba', 'llvmlite', 'pyarrow', 'numpy') if name in sys.modules])"
    )
    assert loaded == "[]\n"


def test_a_codec_is_not_needed_to_name_an_error() -> None:
    loaded = run_python(
        "import sys, kafkajit\n"
        "kafkajit.KafkaJitError, kafkajit.parse_log_path\n"
        "print([name for name in ('numba', 'pyarrow') if name in sys.modules])"
    )
    assert loaded == "[]\n"


def test_reading_does_not_import_pandas() -> None:
    loaded = run_python(
        "import sys, kafkajit, pathlib\n"
        "folder = pathlib.Path(kafkajit.__file__).parent / 'sample' / 'logs' / 'orders-0'\n"
        "(log,) = folder.glob('*.log')\n"
        "assert kafkajit.read_records(log).num_rows\n"
        "assert 'pyarrow.compute' not in sys.modules\n"
        "assert kafkajit.Log(folder).read(3).num_rows\n"
        "assert kafkajit.read_record_batches(log).num_rows\n"
        "print('pandas' in sys.modules)"
    )
    assert loaded == "False\n"


@pytest.mark.parametrize("name", kafkajit.__all__)
def test_a_public_name_is_what_its_module_defines(name: str) -> None:
    value = getattr(kafkajit, name)
    assert value.__module__ == kafkajit._HOME[name]
    assert value.__doc__
    assert name in dir(kafkajit)


def test_the_public_names_are_spelled_once_each() -> None:
    assert sorted(kafkajit._HOME) == kafkajit.__all__ == dir(kafkajit)
    typed = next(node for node in parsed(PACKAGE / "__init__.py").body if isinstance(node, ast.If))
    names = {alias.name for node in typed.body for alias in getattr(node, "names", ())}
    assert names == {*kafkajit.__all__, *kafkajit._MODULES}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'kafkajit' has no attribute 'reed'"):
        kafkajit.reed  # noqa: B018


def test_benchmarks_are_in_files_of_their_rooms_and_on_the_page_about_performance() -> None:
    files = {path.stem for path in (REPOSITORY / "asv_bench" / "benchmarks").glob("[a-z]*.py")}
    beside = {
        "segments",
        "rolled_logs",
        "avro_values",
        "tiered_objects",
        "memory_store",
        "protobuf_values",
        "throughput",
        "many_segments",
    }  # data and tools of the other benchmarks
    assert beside < files
    timed = files - beside
    assert timed - {"imports", "growth"} <= {name for room in ROOMS for name in room}
    page = (REPOSITORY / "docs" / "performance.md").read_text()
    assert not {name for name in timed if f"`{name}`" not in page}


def test_benchmarks_import_their_neighbours_from_the_same_folder() -> None:
    # asv imports the folder alone, with the kafkajit of another commit: it has no asv_bench.
    for path in sorted((REPOSITORY / "asv_bench" / "benchmarks").glob("*.py")):
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                assert (node.module or "").partition(".")[0] != "asv_bench", path.name


@rule
def test_every_module_has_a_docstring(path: Path) -> None:
    assert ast.get_docstring(parsed(path))


POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[0-9,]+\})\+|\(\?>")


@rule
def test_no_regular_expression_has_a_possessive_group(path: Path) -> None:
    """Python before 3.11.5, which Debian 12 has, accepts texts that such a group does not match."""
    strings = [node.value for node in nodes(path) if isinstance(node, ast.Constant)]
    assert not [text for text in strings if POSSESSIVE_GROUP.search(str(text))]


MOST_LINES = 400
MOST_PARAMETERS = 12


def test_the_house_has_at_most_28_rooms() -> None:
    # The 27th is report: neither the readers nor the commands are the place of a page. The 28th is
    # system: the kernels' cache locks files, and may not know where logs are stored.
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES}
    rooms.discard("__init__")  # the house itself
    assert len(rooms) <= 28, sorted(rooms)


def test_a_long_module_gives_the_reason_in_its_docstring() -> None:
    long = [
        module_id(path)
        for path in MODULES
        if len(path.read_text().splitlines()) > MOST_LINES
        and f"Over {MOST_LINES} lines" not in (ast.get_docstring(parsed(path)) or "")
    ]
    assert not long, f"longer than {MOST_LINES} lines: {long}"


def test_public_functions_and_kernels_have_few_parameters() -> None:
    # The options of these are flat and keyword-only, as pyarrow's are; those of
    # kafkajit.testing.batch are a batch's fields.
    flat = {"encode_batches", "iter_encoded_batches", "read_records", "iter_records", "batch"}
    wide = [
        f"{module_id(path)}: {function.name} has {count}"
        for path in MODULES
        for function in functions(path)
        if is_kernel(function) or not function.name.startswith("_")
        if (count := len(parameters(function))) > MOST_PARAMETERS and function.name not in flat
    ]
    assert not wide, "\n".join(wide)


def parameters(function: ast.FunctionDef) -> list[str]:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [argument.arg for argument in arguments if argument.arg != "self"]


def floors() -> dict[str, int]:
    """The floor of every room: one above the highest room that it imports."""
    below: dict[str, set[str]] = {}
    for path in MODULES:
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        names = (name.split(".")[1] for name in imports(path) if name.startswith("kafkajit."))
        below.setdefault(room, set()).update(name for name in names if name != room)

    @cache
    def floor(room: str) -> int:
        return 1 + max((floor(name) for name in below.get(room, ()) if name in below), default=0)

    return {room: floor(room) for room in below}


def test_the_house_has_at_most_13_floors() -> None:
    # The ground floor is system, on which the kernels stand.
    assert max(floors().values()) <= 13, floors()
