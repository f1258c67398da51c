"""The .txnindex file: the aborted transactions that end in a segment (TransactionIndex).

An entry (AbortedTxn) is 34 bytes: version, producer id, first and last offset, and the last stable
offset. A segment in which no aborted transaction ends has no such file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import CorruptIndexError
from kafkajit.records.transactions import AbortedTransactions
from kafkajit.schema import TRANSACTION_INDEX_COLUMNS, table_schema
from kafkajit.storage.source import Bytes, as_bytes, whole

ENTRY = np.dtype(
    [
        ("version", ">i2"),
        ("producerId", ">i8"),
        ("firstOffset", ">i8"),
        ("lastOffset", ">i8"),
        ("lastStableOffset", ">i8"),
    ]
)


class AbortedTxn(NamedTuple):
    """An aborted transaction, and the last stable offset when its marker was written."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    def __str__(self) -> str:
        return (
            f"AbortedTxn(version=0, producerId={self.producer_id}, "
            f"firstOffset={self.first_offset}, lastOffset={self.last_offset}, "
            f"lastStableOffset={self.last_stable_offset})"
        )


class TransactionIndex:
    """The aborted transactions that end in a segment; a missing file stands for no transaction.

    >>> TransactionIndex("/no/such/folder/00000000000000000000.txnindex").aborted
    []
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def aborted(self) -> list[AbortedTxn]:
        """All entries, in the file's order."""
        content = whole(str(self.path))[0] if self.path.exists() else as_bytes(b"")
        entries = transaction_entries(content, str(self.path))
        return [AbortedTxn(*entry[1:]) for entry in entries.tolist()]

    def sanity_check(self, base_offset: int) -> None:
        """Check what a broker checks when it starts."""
        for transaction in self.aborted:
            if transaction.last_offset < base_offset:
                raise CorruptIndexError(
                    f"Last offset of aborted transaction {transaction} in index {self.path} is "
                    f"less than start offset {base_offset}"
                )


def read_transaction_index(source: Any) -> pa.Table:
    """Read all entries of a .txnindex file, in `kafkajit.schema.TRANSACTION_INDEX_COLUMNS`.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.

    >>> read_transaction_index(bytes(34)).to_pylist()
    [{'producerId': 0, 'firstOffset': 0, 'lastOffset': 0, 'lastStableOffset': 0}]
    """
    return parse_transaction_index(*whole(source))


def parse_transaction_index(content: Bytes, path: str | None = None) -> pa.Table:
    """As `read_transaction_index`, from bytes and the path that they came from."""
    entries = transaction_entries(content, path)
    columns = [entries[name].astype(np.int64) for name in TRANSACTION_INDEX_COLUMNS]
    return pa.Table.from_arrays(columns, schema=table_schema(TRANSACTION_INDEX_COLUMNS))


def transaction_entries(content: Bytes, path: str | None = None) -> npt.NDArray[np.void]:
    """All entries, after a check of each one; an error names the first that fails.

    >>> transaction_entries(as_bytes(b"")).size
    0
    """
    if content.size % ENTRY.itemsize:
        raise CorruptIndexError(
            f"a transaction index of {content.size} bytes is not made of entries of "
            f"{ENTRY.itemsize}",
            path=path,
        )
    entries = content.view(ENTRY)
    unknown = np.flatnonzero(entries["version"] != 0)
    if unknown.size:
        raise CorruptIndexError(
            f"Unexpected aborted transaction version {entries['version'][unknown[0]]} "
            f"(entry {unknown[0]})",
            path=path,
            position=int(unknown[0]) * ENTRY.itemsize,
        )
    return entries


def aborted_transactions(content: Bytes, path: str | None = None) -> AbortedTransactions:
    """The entries in the form in which readers match them with batches.

    >>> aborted_transactions(as_bytes(b"")).producer_id.size
    0
    """
    entries = transaction_entries(content, path)
    return AbortedTransactions(
        *(entries[name].astype(np.int64) for name in ("producerId", "firstOffset", "lastOffset"))
    )
