"""Makes the archive of Spark's parsed and verified classes that a local session starts from.

This program starts, niced, when the first session has ended. It runs a session with typical queries
and has the JVM store its classes. That takes half a minute of one core and 170 MB on disk.

Only one instance runs at a time, and after a failure the program does not run for a day. An archive
gets its name once it is complete and on disk. A JVM that cannot use it starts without it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from kafkajit.spark.local.class_archive import archive_name, find_archive
from kafkajit.spark.local.java import Java, find_java, spark_jars
from kafkajit.spark.local.jvm import start_jvm
from kafkajit.spark.local.session import connect
from kafkajit.system.durable import sync
from kafkajit.system.file_lock import try_lock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DAY = 86_400
_UNUSED = 30 * _DAY
_PATIENCE = 600
_ROOM = 2**30

_QUERIES = (
    "SELECT count(*) FROM log",
    "SELECT topic, partition, count(*), min(offset), max(timestamp), avg(length(value)) FROM log"
    " WHERE offset >= 2 GROUP BY topic, partition HAVING count(*) > 1 ORDER BY 3 DESC LIMIT 5",
    "SELECT offset, timestamp, CAST(key AS STRING), CAST(value AS STRING), headers FROM log"
    " WHERE partition = 0 AND timestamp < now() AND CAST(value AS STRING) LIKE '%a%' LIMIT 10",
    "SELECT owner, date_trunc('hour', timestamp) AS hour, sum(size(headers)), count(DISTINCT key)"
    " FROM log JOIN own USING (topic) GROUP BY ALL ORDER BY ALL",
    "SELECT lag(offset) OVER (PARTITION BY topic ORDER BY offset), get_json_object(json, '$.id'),"
    " from_json(json, 'id INT') FROM (SELECT *, CAST(value AS STRING) AS json FROM log)",
    "SELECT path, kafka_log_path(path).topic, kafka_valid_bytes(content) FROM segment",
    "SELECT path, r.* FROM (SELECT path, explode(kafka_records(content)) AS r FROM segment)",
    "SELECT inline(kafka_record_batches(content)) FROM segment",
    "SELECT count(*), max(offset) FROM kafka_log(TABLE(SELECT path FROM segment))",
    "WITH late AS (SELECT * FROM log WHERE offset > 1) SELECT * FROM late UNION SELECT * FROM log",
    "SHOW TABLES",
    "DESCRIBE log",
    "EXPLAIN SELECT * FROM log",
    "SELECT no_such_column FROM log",
)


def main() -> int:
    """Make the archive for this Java and this Spark unless it exists or is being made."""
    os.nice(19)
    signal.alarm(_PATIENCE)  # ends this process, and with it the JVM
    java, jars = find_java(), spark_jars()
    name = archive_name(java, jars)
    if name is None:
        return 1
    with (name.parent / "spark.lock").open("w") as lock:
        try:
            if not try_lock(lock.fileno()):
                return 0
        except OSError:
            return 0  # no locks: two makers could write one archive
        failed = name.with_suffix(".failed")
        if find_archive(name) or _age(failed) < _DAY:
            return 0
        if shutil.disk_usage(name.parent).free < _ROOM:
            return 1
        _remove_unused(name)
        failed.touch()
        unfinished = name.with_suffix(".unfinished")
        _record(java, jars, unfinished)
        _check(java, jars, unfinished)
        _publish(unfinished, name)
        failed.unlink()
    return 0


def _record(java: Java, jars: list[Path], target: Path) -> None:
    conf = {"spark.driver.memory": "2g"}
    jvm = start_jvm(java, jars, [f"-XX:ArchiveClassesAtExit={target}"], conf)
    spark = connect(jvm, conf, cores="2")
    _train(spark)
    spark.stop()  # otherwise this process reports the end of the JVM on stderr
    assert jvm.process.stdin is not None
    jvm.process.stdin.close()
    jvm.process.wait()


def _train(spark: SparkSession) -> None:
    """Run typical queries: the archive holds the classes that they load."""
    from kafkajit.spark.session import register

    register(spark)
    sample = Path(__file__).parents[2] / "sample"
    spark.sql(f"CREATE TEMPORARY VIEW log USING kafkaLog OPTIONS (path '{sample}')")
    segments = spark.read.format("binaryFile").load(f"{sample}/*/*.log")
    segments.createOrReplaceTempView("segment")
    spark.createDataFrame([("orders", 1)], "topic STRING, owner INT").createOrReplaceTempView("own")
    folder = spark.conf.get("spark.sql.warehouse.dir")
    for number, query in enumerate(_QUERIES):
        # A query that fails has loaded its classes anyway.
        with contextlib.suppress(Exception), contextlib.redirect_stdout(None):
            rows = spark.sql(query)
            rows.show()
            rows.collect()
            rows.toPandas()
            for writer in ("csv", "json", "parquet"):
                rows.write.format(writer).save(f"{folder}/{number}.{writer}")
                spark.read.format(writer).load(f"{folder}/{number}.{writer}").count()


def _check(java: Java, jars: list[Path], archive: Path) -> None:
    """Check that a JVM can use an archive: with -Xshare:on it fails if it cannot."""
    class_path = os.pathsep.join(map(str, jars))
    flags = ["-Xshare:on", f"-XX:SharedArchiveFile={archive}", "-cp", class_path, "-version"]
    subprocess.run([java.path, *flags], check=True, capture_output=True)  # noqa: S603


def _publish(unfinished: Path, name: Path) -> None:
    """Give an archive its name once it is on disk."""
    sync(unfinished)
    size = unfinished.stat().st_size
    unfinished.replace(name.with_name(f"{name.name}-{size}.jsa"))


def _remove_unused(name: Path) -> None:
    """Remove unfinished archives, damaged ones, and those that were not used for a month."""
    for path in name.parent.glob("spark-*"):
        damaged = path.suffix == ".jsa" and path.name.startswith(name.name)
        if path.suffix == ".unfinished" or damaged or _age(path) > _UNUSED:
            path.unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")


if __name__ == "__main__":
    sys.exit(main())
