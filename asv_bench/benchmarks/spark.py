"""kafkajit.spark: queries over 2 million records, local[2], warm; needs Java 17 and pyspark.

Every benchmark has a process and a session of its own, whose start is not measured.
`asv run --bench '^(?!spark)'` leaves these benchmarks out.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import kafkajit

from . import segments

NARROW = "key BINARY, value BINARY, offset BIGINT, timestamp TIMESTAMP"
AGGREGATES = "sum(length(key)), sum(length(value)), max(timestamp), sum(offset)"


class SparkQueries:
    """`kafkaLog` with none, four and all of its columns; kafka_records over whole files."""

    timeout = 300
    # A query takes seconds: some of them, one at a time.
    number = 1
    repeat = 5
    rounds = 1
    warmup_time = 5
    setup_cache = staticmethod(segments.setup_cache)

    def setup(self) -> None:
        if find_spec("pyspark") is None:
            raise NotImplementedError("pyspark is not installed")
        from pyspark.sql import SparkSession

        from kafkajit.spark import register

        os.environ["PYSPARK_PYTHON"] = sys.executable
        # Workers import the package from where this process does.
        os.environ["PYTHONPATH"] = str(Path(kafkajit.__file__).parents[1])
        self.spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.memory", "2g")
            .config("spark.sql.session.timeZone", "UTC")
            .getOrCreate()
        )
        self.spark.sparkContext.setLogLevel("OFF")
        register(self.spark)
        log, file = str(segments.LARGE.path()), str(segments.small().path())
        views = {
            "log": self.spark.read.format("kafkaLog").load(log),
            "narrow": self.spark.read.format("kafkaLog").schema(NARROW).load(log),
            "files": self.spark.read.format("binaryFile").load(file),
        }
        for name, view in views.items():
            view.createOrReplaceTempView(name)
        self.time_four_columns()  # workers have started, kernels are loaded

    def teardown(self) -> None:
        if hasattr(self, "spark"):
            self.spark.stop()

    def time_count(self) -> None:
        self.query("SELECT count(*) FROM log")

    def time_four_columns(self) -> None:
        self.query(f"SELECT {AGGREGATES} FROM narrow")

    def time_all_columns(self) -> None:
        """All columns, which are decoded and sent even if the query needs fewer."""
        self.query(f"SELECT {AGGREGATES} FROM log")

    def time_explode_kafka_records(self) -> None:
        """16 MiB of records in one file, by the function."""
        self.query(
            "SELECT sum(length(record.value)) FROM"
            " (SELECT explode(kafka_records(content)) AS record FROM files)"
        )

    def query(self, statement: str) -> None:
        assert self.spark.sql(statement).first()[0]
