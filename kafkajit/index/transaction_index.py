"""The .txnindex file: aborted transactions that end in a segment (TransactionIndex, AbortedTxn).

An entry is 34 bytes: version, producer id, first and last offset, and the last stable offset. There
is no file where no transaction was aborted.
"""

from __future__ import annotations

import os
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kafkajit.errors import CorruptIndexError, InvalidOffsetError
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
    """A segment's aborted transactions, in a file that is there once there is one of them.

    >>> TransactionIndex("/no/such/folder/00000000000000000000.txnindex").aborted
    []
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._last_offset: int | None = None  # when it is known

    @property
    def aborted(self) -> list[AbortedTxn]:
        """All of them."""
        content = whole(str(self.path))[0] if self.path.exists() else as_bytes(b"")
        entries = transaction_entries(content, str(self.path))
        return [AbortedTxn(*entry[1:]) for entry in entries.tolist()]

    def append(self, transaction: AbortedTxn) -> None:
        """Add one that ends behind all those that are there.

        Kafka knows only of those that were added since it opened the file.
        """
        if self._last_offset is None:
            self._last_offset = max((entry.last_offset for entry in self.aborted), default=-1)
        if self._last_offset >= transaction.last_offset:
            raise InvalidOffsetError(
                "The last offset of appended transactions must increase sequentially, but "
                f"{transaction.last_offset} is not greater than current last offset "
                f"{self._last_offset} of index",
                path=str(self.path),
            )
        with self.path.open("ab") as file:
            file.write(np.array([(0, *transaction)], ENTRY).tobytes())
        self._last_offset = transaction.last_offset

    def truncate_to(self, offset: int) -> None:
        """Forget the first that ends at this offset or behind it, and all behind that one."""
        stay = (transaction.last_offset < offset for transaction in self.aborted)
        kept = sum(takewhile(bool, stay))
        self._last_offset = None
        if self.path.exists():
            os.truncate(self.path, kept * ENTRY.itemsize)

    def collect_aborted_txns(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> tuple[list[AbortedTxn], bool]:
        """Those with an offset in a range, and whether later segments cannot have any more."""
        aborted = []
        for transaction in self.aborted:
            if (
                transaction.last_offset >= fetch_offset
                and transaction.first_offset < upper_bound_offset
            ):
                aborted.append(transaction)
            if transaction.last_stable_offset >= upper_bound_offset:
                return aborted, True
        return aborted, False

    def sanity_check(self, base_offset: int) -> None:
        """What a broker asks of an index when it starts."""
        for transaction in self.aborted:
            if transaction.last_offset < base_offset:
                raise CorruptIndexError(
                    f"Last offset of aborted transaction {transaction} in index {self.path} is "
                    f"less than start offset {base_offset}"
                )


def read_transaction_index(source: Any) -> pa.Table:
    """All of a .txnindex file, in the columns of `kafkajit.schema.TRANSACTION_INDEX_COLUMNS`.

    Args:
        source: bytes, a memoryview, a numpy array, a pyarrow Buffer, or a path.

    >>> read_transaction_index(bytes(34)).to_pylist()
    [{'producerId': 0, 'firstOffset': 0, 'lastOffset': 0, 'lastStableOffset': 0}]
    """
    return parse_transaction_index(*whole(source))


def parse_transaction_index(content: Bytes, path: str | None = None) -> pa.Table:
    """The same of bytes and the path that they came from."""
    entries = transaction_entries(content, path)
    columns = [entries[name].astype(np.int64) for name in TRANSACTION_INDEX_COLUMNS]
    return pa.Table.from_arrays(columns, schema=table_schema(TRANSACTION_INDEX_COLUMNS))


def transaction_entries(content: Bytes, path: str | None = None) -> npt.NDArray[np.void]:
    """All entries, each looked at; what is wrong with one is an error that names it.

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
    """The same as what readers ask batches about.

    >>> aborted_transactions(as_bytes(b"")).producer_id.size
    0
    """
    entries = transaction_entries(content, path)
    return AbortedTransactions(
        *(entries[name].astype(np.int64) for name in ("producerId", "firstOffset", "lastOffset"))
    )
