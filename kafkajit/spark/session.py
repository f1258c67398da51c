"""`register`: adds the SQL functions, the table function and the data source to a session.

`session_at` starts the session of a command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkajit.spark import bridge
from kafkajit.spark.catalogue import FUNCTIONS, TABLE_FUNCTION
from kafkajit.spark.columns import arrow_function
from kafkajit.spark.datasource import KafkaLogDataSource
from kafkajit.spark.local.java import spark_home
from kafkajit.spark.local.session import local_session
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


def session_at(
    master: str, conf: Mapping[str, str] | None = None, *, verbose: bool = False
) -> SparkSession:
    """A session on this machine, on a cluster, or of a Spark Connect server.

    Args:
        master: `local[*]` or another of Spark's master URLs, or `sc://host` for Spark Connect
        conf: Spark's settings
        verbose: show Spark's own messages
    """
    local = re.fullmatch(r"local(?:\[(.+)\])?", master)
    if local is not None:
        return local_session(verbose=verbose, cores=local[1] or "1", conf=conf)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("kafkajit").config(map=dict(conf or {}))
    if master.startswith("sc://"):
        return builder.remote(master).getOrCreate()
    if not os.environ.get("SPARK_HOME"):
        os.environ["SPARK_HOME"] = str(spark_home())
    session = builder.master(master).getOrCreate()
    if not verbose:
        session.sparkContext.setLogLevel("OFF")
    return session
