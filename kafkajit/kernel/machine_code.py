"""The cache of the kernels' machine code, and its rules for what is stale.

numba's cache looks at a function's own file alone: it would recompile a kernel if a comment above
it changed, and use machine code that holds yesterday's callees. Here the key is what the kernel
is compiled from: its bytecode, and that of every function and every constant that it reaches.

The code lies in the package's own __pycache__ folders if they can be written to. If they cannot,
but were filled before, it is read from there: that is how an image or a packed environment brings
its machine code along. Otherwise it lies under the user's home. NUMBA_CACHE_DIR names another
place, and KAFKAJIT_CACHE=0 keeps nothing.

Whoever writes these files has their code run, so only files of this user and root are read; in
the package's own folders also those of whoever may write the Python code there.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    UserWideCacheLocator,
)

from kafkajit.system.file_lock import open_folder, try_lock
from kafkajit.system.ownership import others_of_file, others_of_folder

_log = logging.getLogger(__name__)

CHECKED = bool(numba.config.BOUNDSCHECK)  # type: ignore[attr-defined]
_IS_ON = os.environ.get("KAFKAJIT_CACHE", "1") != "0"
_PACKAGE = __name__.partition(".")[0]
# A value of these types is its own fingerprint.
_LITERALS = (bool, int, float, str, bytes, type(None))

Dispatcher = Any  # numba's, of a compiled function


def keep(compiled: Dispatcher) -> None:
    """Have a function's machine code kept on disk, and found there by the next process."""
    compiled.compile = _uncollected(compiled.compile)
    if _IS_ON and (cache := _cache_of(compiled.py_func)) is not None:
        cache.dispatcher = compiled
        compiled._cache = cache
        compiled.compile = cache.holding_turn(compiled.compile)


def _uncollected(compile_: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap numba's method that compiles, so that Python collects no garbage meanwhile.

    numba makes millions of small objects, most of which live until it ends: looking through them
    again and again takes an eighth of the time.
    """

    @functools.wraps(compile_)
    def compiling(*args: Any) -> Any:
        if not gc.isenabled():  # a kernel compiles those that it calls
            return compile_(*args)
        gc.disable()
        try:
            return compile_(*args)
        finally:
            gc.enable()

    return compiling


@functools.cache
def _is_private(folder: str) -> bool:
    """Whether no other user may have written machine code into a folder."""
    with contextlib.suppress(OSError):  # others_of_folder names the problem
        Path(folder).mkdir(parents=True, exist_ok=True)
    others = others_of_folder(folder)
    if others is not None:
        _log.debug("no machine code is kept in %s: %s", folder, others)
    return others is None


def _if_private(locator: Any) -> Any:
    """A locator of numba's that passes a folder over if others may write to it."""

    class IfPrivate(locator):  # type: ignore[misc]
        @classmethod
        def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Any:
            found = super().from_function(py_func, py_file)
            return found if found is not None and _is_private(found.get_cache_path()) else None

    return IfPrivate


class _Files(CompileResultCacheImpl):
    """numba's file names without line numbers: a function that moves keeps its machine code."""

    _locator_classes = [  # noqa: RUF012  numba's name
        locator if locator is InTreeCacheLocator else _if_private(locator)
        for locator in CompileResultCacheImpl._locator_classes
    ]

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        version = sys.version_info
        name = fullname.replace("<", "").replace(">", "")
        return f"{name}.py{version.major}{version.minor}{abiflags}"


class _OwnFiles(IndexDataCacheFile):
    """numba's files of a function. Those that others may have written count as missing."""

    source: str | None = None  # whoever may write to it may also write here

    def _load_index(self) -> Any:
        return super()._load_index() if self._is_own(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not self._is_own(path):
            raise FileNotFoundError(path)
        return super()._load_data(name)

    def _is_own(self, path: str) -> bool:
        try:
            others = others_of_file(path, self.source)
        except FileNotFoundError:
            return False
        if others is not None:
            _log.debug("%s is not used: it %s", path, others)
        return others is None


class _Cache(FunctionCache):
    """numba's cache of a function, fresh until what the function is compiled from changes."""

    _impl_class = _Files
    dispatcher: Dispatcher = None

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._cache_file._source_stamp
        self._cache_file = _OwnFiles(self._cache_path, self._impl.filename_base, stamp)
        if isinstance(self._impl.locator, InTreeCacheLocator):
            self._cache_file.source = function.__code__.co_filename
        elif not _is_private(self._cache_path):
            # numba has a setting for other locators than those of _Files.
            raise RuntimeError(f"others may write to {self._cache_path}")
        self._turn = contextlib.ExitStack()
        self._has_stamp = False

    def _stamp(self) -> None:
        # Not when the kernel is defined: it may call one that is defined below it.
        if not self._has_stamp:
            self._cache_file._source_stamp = fingerprint(self.dispatcher)
            self._has_stamp = True

    def holding_turn(self, compile_: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap numba's method that loads, compiles and saves, so that it ends our turn."""

        @functools.wraps(compile_)
        def compiling(*args: Any) -> Any:
            with contextlib.ExitStack() as self._turn:
                return compile_(*args)

        return compiling

    def load_overload(self, *args: Any) -> Any:
        self._stamp()
        found = self._load(*args)
        if found is None:
            self._turn.enter_context(_turn(self._cache_path))
            found = self._load(*args)  # another process had the turn before us
        if found is None:
            _announce()
        return found

    def _load(self, signature: Any, target_context: Any) -> Any:
        # numba's own load_overload first loads all that its compiler knows of types and functions
        # (0.2 s): machine code that is there needs none of it.
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target_context)

    @property
    def is_filled(self) -> bool:
        folder, base = Path(self._cache_path), self._impl.filename_base
        return (folder / f"{base}.nbi").exists()

    def save_overload(self, *args: Any) -> None:
        # A folder that cannot be written to, a full disk: the next process compiles again.
        with contextlib.suppress(OSError):
            super().save_overload(*args)


class _InPackage(InTreeCacheLocator):
    """__pycache__ beside the function's file, even if it cannot be written to."""

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _InPackage:
        return cls(py_func, py_file)

    def get_source_stamp(self) -> str:
        return ""  # _Cache has its own


class _PackageFiles(_Files):
    _locator_classes = [_InPackage]  # noqa: RUF012  numba's name


class _PackageCache(_Cache):
    _impl_class = _PackageFiles


def _cache_of(function: Callable[..., Any]) -> _Cache | None:
    """The cache of a function; None if there is no folder for its machine code."""
    found = None
    with contextlib.suppress(RuntimeError):
        found = _Cache(function)
    if found is None or isinstance(found._impl.locator, UserWideCacheLocator):
        with contextlib.suppress(RuntimeError):
            brought = _PackageCache(function)
            if brought.is_filled:
                return brought
    return found


# Folders whose turn this process has: kernels compile those that they call.
_turns: set[str] = set()
# Compiling a kernel takes seconds, on a busy machine a minute. A process that has waited longer
# compiles without a turn.
_PATIENCE = 120


@contextlib.contextmanager
def _turn(folder: str) -> Iterator[None]:
    """Let one process at a time compile what is kept in a folder; others wait, then find it.

    Otherwise processes that start at once would all compile the same kernels. Also, numba gives the
    first machine code of each kernel one name, whichever signature it is for: two processes
    with two signatures could leave one's code under the other's name.
    """
    with contextlib.suppress(OSError):
        Path(folder).mkdir(parents=True, exist_ok=True)
    # We have the turn already, or nothing can be kept.
    if folder in _turns or not os.access(folder, os.R_OK | os.W_OK):
        yield
        return
    file = open_folder(folder)
    came = False
    try:
        came = _comes(file)
        _turns.add(folder)
        yield
    finally:
        os.close(file)
        if came:  # otherwise this process does not wait for it again
            _turns.discard(folder)


def _comes(file: int) -> bool:
    """Wait for the turn, and return whether it came."""
    patient_until = time.monotonic() + _PATIENCE
    while time.monotonic() < patient_until:
        try:
            if try_lock(file):
                return True
        except OSError:
            break  # a file system without locks
        time.sleep(0.02)
    return False


@functools.cache
def _announce() -> None:
    """Explain at a terminal, once, why the first call takes seconds."""
    if sys.stderr is not None and sys.stderr.isatty():
        # A line of progress may be there.
        clear = "" if os.environ.get("TERM") == "dumb" else "\r\x1b[K"
        sys.stderr.write(
            f"{clear}kafkajit: compiling kernels on first use; later runs start at once\n"
        )


def fingerprint(compiled: Dispatcher) -> str:
    """A hash of everything that a kernel's machine code depends on.

    Lines, comments, docstrings and modules that the kernel does not reach leave it unchanged. The
    mode is part of it, lest NUMBA_BOUNDSCHECK=1 run unchecked code that another process kept.
    """
    digest = hashlib.sha256(f"{numba.__version__} {CHECKED}".encode())
    reached = {id(compiled): compiled}
    waiting = [compiled]
    while waiting:
        text, callees = _described(waiting.pop())
        digest.update(text)
        for callee in callees:
            if id(callee) not in reached:
                reached[id(callee)] = callee
                waiting.append(callee)
    return digest.hexdigest()


_descriptions: dict[int, tuple[bytes, list[Any]]] = {}


def _described(function: Any) -> tuple[bytes, list[Any]]:
    """A function's own part of a fingerprint, and the functions that it refers to."""
    found = _descriptions.get(id(function))
    if found is None:
        parts: list[str] = []
        callees: list[Any] = []
        plain = _plain(function)
        options = getattr(function, "targetoptions", {})
        parts.append(f"{plain.__module__}.{plain.__qualname__} {options.get('inline')}")
        _describe_code(plain, plain.__code__, parts, callees)
        for cell in plain.__closure__ or ():
            _describe(cell.cell_contents, parts, callees)
        _describe((plain.__defaults__, plain.__kwdefaults__), parts, callees)
        found = _descriptions[id(function)] = "\n".join(parts).encode(), callees
    return found


def _plain(function: Any) -> FunctionType:
    """The Python function of a kernel or an intrinsic."""
    for name in ("py_func", "_defn"):
        function = getattr(function, name, function)
    assert isinstance(function, FunctionType)
    return function


def _describe_code(
    function: FunctionType, code: CodeType, parts: list[str], callees: list[Any]
) -> None:
    parts.append(f"{code.co_code.hex()} {code.co_varnames} {code.co_freevars} {code.co_names}")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _describe_code(function, constant, parts, callees)
        elif constant is not function.__doc__:
            parts.append(repr(constant))
    for name in code.co_names:
        if name not in function.__globals__:
            continue  # an attribute, or one of Python's own
        value = function.__globals__[name]
        parts.append(name)
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] == _PACKAGE:
            for attribute in code.co_names:
                if hasattr(value, attribute):
                    _describe(getattr(value, attribute), parts, callees)
        else:
            _describe(value, parts, callees)


def _describe(value: Any, parts: list[str], callees: list[Any]) -> None:
    """Add a value that a kernel refers to."""
    if isinstance(value, (np.ndarray, np.generic)):
        parts.append(f"{value.dtype.descr} {value.shape} {value.tobytes().hex()}")
    elif isinstance(value, (tuple, list)):
        parts.append(f"{type(value).__name__} of {len(value)}")
        for item in value:
            _describe(item, parts, callees)
    elif isinstance(value, functools.partial):
        _describe((value.func, value.args, tuple(value.keywords.items())), parts, callees)
    elif isinstance(value, (*_LITERALS, np.dtype)):
        parts.append(repr(value))
    elif isinstance(value, ModuleType):
        parts.append(value.__name__)
    elif _is_ours(value):
        callees.append(value)
    elif hasattr(value, "__qualname__"):  # somebody else's: their version is numba's business
        fields = getattr(value, "_fields", "")
        parts.append(f"{value.__module__}.{value.__qualname__} {fields}")
    else:
        parts.append(f"{type(value).__qualname__} {value}")  # numba's and llvmlite's types


def _is_ours(value: Any) -> bool:
    if hasattr(value, "py_func") or hasattr(value, "_defn"):
        return True
    return isinstance(value, FunctionType) and value.__module__.partition(".")[0] == _PACKAGE
