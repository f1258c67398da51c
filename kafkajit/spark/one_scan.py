"""The data source of `kafkajit sql` for a table that one statement scans once.

Its reader prunes by the conditions of the scan. `KafkaLogReader` must not do that, for the reason
in its docstring. So a caller may use this source only if it knows that a relation has one scan, in
this statement and in all later ones. `cli/sql/scans.py` finds that out from Spark's plan. Users
cannot reach this source.
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
