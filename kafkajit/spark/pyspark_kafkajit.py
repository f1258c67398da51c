"""Installed at the top, where Spark looks for modules named pyspark_*: the data source is known.

Spark imports it before the first data source of a session, ours or not: nothing heavy, and nothing
that could fail.
"""

from kafkajit.spark.datasource import KafkaLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
