"""Where a function of SQL is found by its name, as a function of Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from kafkajit.spark import arrays, encode_arrays, side_arrays


def function_of_arrays(name: str) -> Callable[..., pa.Array]:
    """What evaluates the function of that name in the catalogue."""
    found: Callable[..., pa.Array] | None = _FUNCTIONS.get(name)
    return found if found is not None else getattr(arrays, name)


_FUNCTIONS = {**side_arrays.FUNCTIONS, **encode_arrays.FUNCTIONS}
