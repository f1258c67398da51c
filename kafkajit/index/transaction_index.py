"""The .txnindex file: aborted transactions that end in a segment (TransactionIndex, AbortedTxn).

An entry is 34 bytes: version, producer id, first and last offset, and the last stable offset.
"""

from __future__ import annotations

import numpy as np

from kafkajit.errors import CorruptIndexError
from kafkajit.records.transactions import AbortedTransactions

ENTRY = np.dtype(
    [
        ("version", ">i2"),
        ("producerId", ">i8"),
        ("firstOffset", ">i8"),
        ("lastOffset", ">i8"),
        ("lastStableOffset", ">i8"),
    ]
)


def read_transaction_index(content: bytes, path: str | None = None) -> AbortedTransactions:
    """The aborted transactions that an index names.

    >>> read_transaction_index(b"").producer_id.size
    0
    """
    if len(content) % ENTRY.itemsize:
        raise CorruptIndexError(
            f"a transaction index of {len(content)} bytes is not made of entries of "
            f"{ENTRY.itemsize}",
            path=path,
        )
    entries = np.frombuffer(content, ENTRY)
    unknown = np.flatnonzero(entries["version"] != 0)
    if unknown.size:
        raise CorruptIndexError(
            f"Unexpected aborted transaction version {entries['version'][unknown[0]]}",
            path=path,
            position=int(unknown[0]) * ENTRY.itemsize,
        )
    return AbortedTransactions(
        *(entries[name].astype(np.int64) for name in ("producerId", "firstOffset", "lastOffset"))
    )
