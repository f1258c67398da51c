"""`register`: adds the SQL functions, the table function and the data source to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkajit.spark import bridge
from kafkajit.spark.catalogue import FUNCTIONS, TABLE_FUNCTION
from kafkajit.spark.columns import arrow_function
from kafkajit.spark.datasource import KafkaLogDataSource
from kafkajit.spark.table_functions import kafka_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Add the SQL functions, the table function and the data source to this session.

    The data source reads through the bridge if the session can have it (docs/datasource.md). This
    works with Spark Connect as well. Executors need the package: see docs/deploy.md.

    >>> from kafkajit.spark import register
    >>> register(spark)
    >>> spark.sql("SELECT kafka_valid_bytes(X'')").first()[0]
    0
    """
    for name in FUNCTIONS:
        spark.udf.register(name, arrow_function(name))
    spark.udtf.register(TABLE_FUNCTION, kafka_log())
    spark.dataSource.register(KafkaLogDataSource)
    bridge.install(spark)
