"""Kafka's log in Spark: SQL functions, table functions and the data source `kafkaLog`.

>>> from kafkajit.spark import register
>>> register(spark)  # your own session, or one that `local_session` starts
>>> spark.sql('''
...     SELECT log.* FROM (SELECT kafka_log_path('/k/orders-3/00000000000000000042.log') AS log)
... ''').show()
+------+---------+----------+------+
| topic|partition|baseOffset|suffix|
+------+---------+----------+------+
|orders|        3|        42|  .log|
+------+---------+----------+------+
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafkajit.spark.folder_report import report
    from kafkajit.spark.local.session import local_session
    from kafkajit.spark.session import register

__all__ = ["local_session", "register", "report"]

_HOME = {
    "local_session": "kafkajit.spark.local.session",
    "register": "kafkajit.spark.session",
    "report": "kafkajit.spark.folder_report",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'kafkajit.spark' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
