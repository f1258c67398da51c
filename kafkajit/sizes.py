"""Kafka's sizes, computed for whole arrays: what varints, records and headers take in bytes.

Numbers in, sizes out. Answers to ByteUtils.sizeOfVarint and sizeOfVarlong, and to
DefaultRecord.sizeInBytes.

>>> import kafkajit.sizes
>>> kafkajit.sizes.record_size_in_bytes(0, 0, key_size=3, value_size=100).tolist()
112
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kafkajit.format.varint import varlong_size
from kafkajit.kernel import kernel

__all__ = ["header_size_in_bytes", "record_size_in_bytes", "size_of_varint", "size_of_varlong"]


def size_of_varint(values: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """The bytes that each int32 takes as a varint.

    >>> size_of_varint([0, -1, 63, 64, -64, -65, 2**31 - 1]).tolist()
    [1, 1, 1, 2, 1, 2, 5]
    """
    return _sizes(np.asarray(values, dtype=np.int32).astype(np.int64))


def size_of_varlong(values: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """The bytes that each int64 takes as a varlong.

    >>> size_of_varlong([0, 2**34, -(2**63)]).tolist()
    [1, 6, 10]
    """
    return _sizes(np.asarray(values, dtype=np.int64))


def record_size_in_bytes(
    offset_delta: npt.ArrayLike,
    timestamp_delta: npt.ArrayLike,
    key_size: npt.ArrayLike,
    value_size: npt.ArrayLike,
    headers_count: npt.ArrayLike = 0,
    headers_size: npt.ArrayLike = 0,
) -> npt.NDArray[np.int32]:
    """The bytes that each record takes in a batch of format v2, its length field included.

    Arguments are broadcast against each other. Nothing is encoded.

    Args:
        offset_delta: the record's offset minus the batch's base offset.
        timestamp_delta: its timestamp minus the batch's base timestamp.
        key_size: the bytes of its key; negative for null.
        value_size: the bytes of its value; negative for null.
        headers_count: how many headers it has.
        headers_size: the bytes of all its headers (see `header_size_in_bytes`).

    >>> record_size_in_bytes([0, 1], [0, 7], [3, -1], [100, 0]).tolist()
    [112, 7]
    """
    table, shape = _table(
        offset_delta, timestamp_delta, key_size, value_size, headers_count, headers_size
    )
    sizes = np.empty(table.shape[1], dtype=np.int32)
    _record_sizes(table, sizes)
    return sizes.reshape(shape)


def header_size_in_bytes(
    key_size: npt.ArrayLike, value_size: npt.ArrayLike
) -> npt.NDArray[np.int32]:
    """The bytes that each header takes in a record; a negative value size stands for null.

    >>> header_size_in_bytes([5, 5], [3, -1]).tolist()
    [10, 7]
    """
    table, shape = _table(key_size, value_size)
    sizes = np.empty(table.shape[1], dtype=np.int32)
    _header_sizes(table, sizes)
    return sizes.reshape(shape)


def _table(*columns: npt.ArrayLike) -> tuple[npt.NDArray[np.int64], tuple[int, ...]]:
    """The columns as rows of one array, and the shape that they have in common."""
    broadcast = np.broadcast_arrays(*columns)
    rows = [np.ravel(column) for column in broadcast]
    return np.stack(rows).astype(np.int64), broadcast[0].shape


def _sizes(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    sizes = np.empty(values.shape, dtype=np.int32)
    _sizes_of_varlongs(values.reshape(-1), sizes.reshape(-1))
    return sizes


@kernel
def _sizes_of_varlongs(values, sizes):
    for i in range(values.size):
        sizes[i] = varlong_size(values[i])


@kernel
def _record_sizes(table, sizes):
    for i in range(sizes.size):
        body = 1 + varlong_size(table[1, i]) + varlong_size(table[0, i])
        body += _sized(table[2, i]) + _sized(table[3, i])
        body += varlong_size(table[4, i]) + table[5, i]
        sizes[i] = varlong_size(body) + body


@kernel
def _header_sizes(table, sizes):
    for i in range(sizes.size):
        sizes[i] = _sized(table[0, i]) + _sized(table[1, i])


@kernel
def _sized(size):
    """Bytes of a field with its length in front; null has the length -1."""
    return varlong_size(max(size, np.int64(-1))) + max(size, np.int64(0))
