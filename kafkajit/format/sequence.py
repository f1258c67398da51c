"""A producer's sequence numbers, which wrap from 2**31 - 1 to 0 (DefaultRecordBatch)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.format.limits import MAX_INT32
from kafkajit.storage.source import Int32s


def increment_sequence(
    sequence: npt.NDArray[np.integer], increment: npt.NDArray[np.integer]
) -> Int32s:
    """DefaultRecordBatch.incrementSequence.

    >>> increment_sequence(np.array([2**31 - 1, 5]), np.array([1, 1])).tolist()
    [0, 6]
    """
    total = sequence.astype(np.int64) + increment.astype(np.int64)
    last_before_wrap = (MAX_INT32 - increment.astype(np.int64)).astype(np.int32)
    return np.where(sequence > last_before_wrap, total - 2**31, total).astype(np.int32)


def decrement_sequence(
    sequence: npt.NDArray[np.integer], decrement: npt.NDArray[np.integer]
) -> Int32s:
    """DefaultRecordBatch.decrementSequence.

    >>> decrement_sequence(np.array([0, 5]), np.array([1, 1])).tolist()
    [2147483647, 4]
    """
    total = sequence.astype(np.int64) - decrement.astype(np.int64)
    return np.where(sequence < decrement, total + 2**31, total).astype(np.int32)
