"""The columns that a kernel has written, as rows of Python's values."""

from __future__ import annotations

from typing import Any

from kafkajit.records.columns import BinaryColumn, Columns


def column_rows(columns: Columns, rows: int) -> list[tuple[Any, ...]]:
    """(offset, timestamp, key, value, headers) of the first rows."""

    def binary(column: BinaryColumn, row: int) -> bytes | None:
        if not column.validity[row >> 3] >> (row & 7) & 1:
            return None
        return column.data[column.offsets[row] : column.offsets[row + 1]].tobytes()

    def headers(row: int) -> list[tuple[bytes | None, bytes | None]]:
        offsets, keys, values = columns.headers
        entries = range(offsets[row], offsets[row + 1])
        return [(binary(keys, entry), binary(values, entry)) for entry in entries]

    return [
        (
            int(columns.offset[row]),
            int(columns.timestamp[row]),
            binary(columns.key, row),
            binary(columns.value, row),
            headers(row),
        )
        for row in range(rows)
    ]
