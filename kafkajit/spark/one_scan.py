"""The data source of `kafkajit sql` for a table that one statement scans once.

Its reader prunes by the conditions of the scan, which `KafkaLogReader` must not: its docstring says
why. So only a caller that knows that a relation has one scan, in this statement and in all later
ones, may use it. `cli/sql/scans.py` asks Spark's plan; users have no way to get at this source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkajit.spark.datasource import KafkaLogDataSource, KafkaLogReader
from kafkajit.spark.filters import predicate_of
from kafkajit.spark.worker import reported

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter


class OneScanDataSource(KafkaLogDataSource):
    """`kafkaLog` whose relations are scanned once."""

    @classmethod
    def name(cls) -> str:
        return "kafkaLogOneScan"

    def _reader_class(self) -> type[KafkaLogReader]:
        return OneScanReader


class OneScanReader(KafkaLogReader):
    """Reads what the conditions of its only scan may need."""

    @reported
    def pushFilters(self, filters: list[Filter]) -> list[Filter]:  # noqa: N802
        """Keep conditions that can drop files, batches or rows; Spark judges all of them too."""
        predicates = map(predicate_of, filters)
        self._predicates = [predicate for predicate in predicates if predicate is not None]
        return filters
