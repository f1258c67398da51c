"""How kernels are compiled: the only file that touches numba's decorators.

A kernel is plain `njit`: no Python objects, no exceptions, the GIL released, the machine code
cached on disk. It returns numbers; the stage that calls it decides what they mean.

KAFKAJIT_CACHE=0 turns the cache on disk off. NUMBA_BOUNDSCHECK=1 and NUMBA_DISABLE_JIT=1 are
numba's own switches; the intrinsics below have a plain twin for both, so that every read and write
of a kernel is checked in the first mode and visible to a debugger in the second.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

# Kernels carry no annotations: numba infers their types, and mypy takes them for Any.
Function = Callable[..., Any]

_config: Any = numba.config
_CACHE = os.environ.get("KAFKAJIT_CACHE", "1") != "0"
_PLAIN = bool(_config.DISABLE_JIT or _config.BOUNDSCHECK)

# Bytes that `copy_wide` moves at once: readers and writers leave this much room behind.
WIDE = 32


def kernel(function: Function) -> Function:
    """Compile `function` when it is first called; keep the machine code for the next process."""
    return _compile(function)


def inlined(function: Function) -> Function:
    """A kernel written into its callers: for the few whose call costs more than their work."""
    return _compile(function, inline="always")


def _compile(function: Function, **options: Any) -> Function:
    if _config.DISABLE_JIT:
        # Java's and numba's integers wrap in silence; numpy's scalars would warn.
        return np.errstate(over="ignore")(function)
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if _CACHE:
        # RuntimeError: no folder to cache in (a read-only installation without a home).
        with contextlib.suppress(RuntimeError):
            compiled.enable_caching()
            # numba looks at the function's own file only, and would go on using machine code that
            # holds yesterday's callees.
            compiled._cache._cache_file._source_stamp = _package_digest()
    return compiled  # type: ignore[no-any-return]


@functools.cache
def _package_digest() -> str:
    """A hash of every source file of the package, and of the mode: numba's own key knows neither.

    Without the mode NUMBA_BOUNDSCHECK=1 would run unchecked code that another process had cached.
    """
    digest = hashlib.sha256(f"{numba.__version__} {_PLAIN}".encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@kernel
def _copy_wide_plain(target, t, source, s):
    for i in range(WIDE):
        target[t + i] = source[s + i]


@intrinsic
def _copy_wide(typing_context, target, t, source, s):  # noqa: ARG001
    signature = types.void(target, types.int64, source, types.int64)

    def generate(context, builder, signature, arguments):
        def address(array_at, index_at):
            array_type = signature.args[array_at]
            array = context.make_array(array_type)(context, builder, arguments[array_at])
            pointer = builder.gep(array.data, [arguments[index_at]])
            return builder.bitcast(pointer, ir.VectorType(ir.IntType(8), WIDE).as_pointer())

        block = builder.load(address(2, 3))
        block.align = 1
        stored = builder.store(block, address(0, 1))
        stored.align = 1
        return context.get_dummy_value()

    return signature, generate


# copy_wide(target, t, source, s): WIDE bytes in one load and one store, unchecked. A slice
# assignment costs about 20 ns before it moves its first byte; most keys are shorter than that.
copy_wide = _copy_wide_plain if _PLAIN else _copy_wide


@inlined
def copy_bytes(target, t, source, s, size):
    """Copy `size` bytes. The caller keeps WIDE bytes of room behind the target's end."""
    if s + size + WIDE <= source.size:
        done = np.int64(0)
        while done < size:
            copy_wide(target, t + done, source, s + done)
            done += WIDE
    else:
        for i in range(size):
            target[t + i] = source[s + i]
