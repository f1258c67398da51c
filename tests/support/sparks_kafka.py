"""Gets the schema of Spark's own Kafka connector from its class."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from needs import need
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

ARTIFACTS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.0",
)
CONVERTER = "org.apache.spark.sql.kafka010.KafkaRecordToRowConverter"


def jars() -> list[Path]:
    """The connector's jars; Maven fetches those that are missing."""
    folder = Path.home() / ".cache" / "kafkajit" / "spark-kafka-4.0.0"
    if not folder.exists():
        need("mvn")
        partial = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        for artifact in ARTIFACTS:
            command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}"]
            subprocess.run([*command, f"-DoutputDirectory={partial}"], check=True)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    return sorted(folder.glob("*.jar"))


def schema_with_headers(spark: SparkSession) -> StructType:
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    found = jars()
    urls = gateway.new_array(jvm.java.net.URL, len(found))
    for i, jar in enumerate(found):
        urls[i] = jvm.java.io.File(str(jar)).toURI().toURL()
    parent = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    converter = jvm.java.net.URLClassLoader(urls, parent).loadClass(CONVERTER)
    types = gateway.new_array(jvm.java.lang.Class, 1)
    types[0] = jvm.java.lang.Boolean.TYPE
    arguments = gateway.new_array(jvm.java.lang.Object, 1)
    arguments[0] = True
    schema = converter.getMethod("kafkaSchema", types).invoke(None, arguments)
    return StructType.fromJson(json.loads(schema.json()))
