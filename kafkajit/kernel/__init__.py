"""Compile kernels: with `intrinsics`, the only code that touches numba.

A kernel is plain `njit`: no Python objects, no exceptions, the GIL released, its machine code kept
on disk (`machine_code`). It returns numbers; the stage that calls it decides what they mean.

NUMBA_BOUNDSCHECK=1 and NUMBA_DISABLE_JIT=1 are numba's own switches. In both modes, every intrinsic
has a plain twin and no C function is called, so that numba checks every read and write of a kernel
in the first mode, and a debugger sees them in the second.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from kafkajit.kernel import settings_file

with settings_file.unread():
    import numba

import numpy as np

from kafkajit.kernel.machine_code import CHECKED, keep

if sys.byteorder != "little":
    raise ImportError(
        "kafkajit cannot run on a big-endian processor, because its kernels read words with the "
        "lowest byte first: copy the logs to a machine with x86 or ARM"
    )

# Kernels carry no annotations: numba infers their types, and mypy takes them for Any.
Function = Callable[..., Any]

DISABLE_JIT = bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]
# Whether kernels use intrinsics' plain twins.
PLAIN = DISABLE_JIT or CHECKED


def kernel(function: Function) -> Function:
    """Compile `function` when it is first called; keep the machine code for the next process."""
    return _compile(function)


def inlined(function: Function) -> Function:
    """Compile a kernel into its callers: for the few whose call costs more than their work."""
    # Not by LLVM (forceinline), which compiles dump-log's kernels in a tenth less time: reading
    # records with three headers then takes a sixth longer.
    return _compile(function, inline="always")


def _compile(function: Function, **options: Any) -> Function:
    if DISABLE_JIT:
        # Java's and numba's integers wrap silently; numpy's scalars would warn.
        return np.errstate(over="ignore")(function)
    # Kernels create no arrays, so numba need not count references to those that they are given:
    # counting took a third of the time if kernels call each other for every field.
    options["_nrt"] = False
    options["no_cfunc_wrapper"] = True  # no code takes a kernel's address
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    keep(compiled)
    return compiled  # type: ignore[no-any-return]
