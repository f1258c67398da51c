"""Installed at the top level, where Spark looks for data sources in modules named pyspark_*.

Spark imports it before the first data source of any session, so it must import nothing heavy and
must not fail.
"""

from kafkajit.spark.datasource import KafkaLogDataSource as DefaultSource

__all__ = ["DefaultSource"]
