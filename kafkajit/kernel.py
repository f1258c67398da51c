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
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
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


def _address(context, builder, signature, arguments, array_at, index_at):
    """Of an array argument's element, in an intrinsic."""
    array = context.make_array(signature.args[array_at])(context, builder, arguments[array_at])
    return builder.gep(array.data, [arguments[index_at]])


def _call(builder, name, result, *arguments):
    """An LLVM intrinsic."""
    function_type = ir.FunctionType(result, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, function_type, name)
    return builder.call(function, arguments)


@intrinsic
def _copy_wide(typing_context, target, t, source, s):  # noqa: ARG001
    signature = types.void(target, types.int64, source, types.int64)

    def generate(context, builder, signature, arguments):
        wide = ir.VectorType(ir.IntType(8), WIDE).as_pointer()
        place = partial(_address, context, builder, signature, arguments)
        block = builder.load(builder.bitcast(place(2, 3), wide))
        block.align = 1
        stored = builder.store(block, builder.bitcast(place(0, 1), wide))
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


# Whether crc32c_word and crc32c_byte are there: x86 with SSE 4.2, and not in the checked modes.
HAS_CRC32C = not _PLAIN and bool(get_host_cpu_features().get("sse4.2"))


@intrinsic
def crc32c_word(typing_context, crc, content, position):  # noqa: ARG001
    """Take 8 bytes into a CRC-32C, unchecked, with the processor's instruction."""
    signature = types.uint64(types.uint64, content, types.int64)

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        pointer = _address(context, builder, signature, arguments, 1, 2)
        value = builder.load(builder.bitcast(pointer, word.as_pointer()))
        value.align = 1
        return _call(builder, "llvm.x86.sse42.crc32.64.64", word, arguments[0], value)

    return signature, generate


@intrinsic
def crc32c_byte(typing_context, crc, byte):  # noqa: ARG001
    """Take one byte into a CRC-32C."""
    signature = types.uint64(types.uint64, types.uint8)

    def generate(context, builder, signature, arguments):  # noqa: ARG001
        crc = builder.trunc(arguments[0], ir.IntType(32))
        name = "llvm.x86.sse42.crc32.32.8"
        result = _call(builder, name, ir.IntType(32), crc, arguments[1])
        return builder.zext(result, ir.IntType(64))

    return signature, generate


@intrinsic
def prefetch(typing_context, content, position):  # noqa: ARG001
    """Have a cache line brought; any position will do, there or not."""
    signature = types.void(content, types.int64)

    def generate(context, builder, signature, arguments):
        number = ir.IntType(32)
        pointer = _address(context, builder, signature, arguments, 0, 1)
        read, keep, data = number(0), number(3), number(1)
        _call(builder, "llvm.prefetch.p0", ir.VoidType(), pointer, read, keep, data)
        return context.get_dummy_value()

    return signature, generate
