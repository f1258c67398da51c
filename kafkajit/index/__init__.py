"""The indexes beside a log: read, looked up, and checked against their log.

`OffsetIndex`, `TimeIndex` and `TransactionIndex` are public: they look up one target or millions.
The functions that read an index into a table, or verify it, are in `kafkajit` itself.
"""

from kafkajit.index.offset_index import OffsetIndex
from kafkajit.index.time_index import TimeIndex
from kafkajit.index.transaction_index import TransactionIndex

__all__ = ["OffsetIndex", "TimeIndex", "TransactionIndex"]
