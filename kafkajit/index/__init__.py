"""The indexes beside a log: their tables, lookups, and the entries that do not fit the log.

>>> from kafkajit.index import read_offset_index
>>> read_offset_index(bytes([0, 0, 0, 7, 0, 0, 1, 0]), base_offset=100).to_pylist()
[{'offset': 107, 'position': 256}]
"""

from kafkajit.index.offset_index import OffsetIndex, read_offset_index
from kafkajit.index.time_index import TimeIndex, read_time_index
from kafkajit.index.transaction_index import TransactionIndex, read_transaction_index
from kafkajit.index.verify import verify_offset_index, verify_time_index
from kafkajit.index.verify_transactions import verify_transaction_index

__all__ = [
    "OffsetIndex",
    "TimeIndex",
    "TransactionIndex",
    "read_offset_index",
    "read_time_index",
    "read_transaction_index",
    "verify_offset_index",
    "verify_time_index",
    "verify_transaction_index",
]
