"""Sessions with the views of `kafkajit sql`, over a copy of the sample."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

import kafkajit.testing as kt
from kafkajit.cli.sql.topic_views import TOPIC_VIEWS
from kafkajit.cli.sql.views import Logs
from kafkajit.spark import register

KINDS = ("records", "batches", "files", "corruption", "indexes")


def copy_of_sample(folder: Path) -> str:
    """The sample, modified at the time of its newest record (except the one from the future)."""
    shutil.copytree(kt.SAMPLE, folder)
    written = datetime(2025, 11, 5, 1, tzinfo=UTC).timestamp()
    for path in folder.rglob("*.log"):
        os.utime(path, (written, written))
    return str(folder)


def new_session(spark: SparkSession, sample: str) -> SparkSession:
    """A session in which everything is registered, with a view for each kind."""
    session = spark.newSession()
    register(session)
    for kind in KINDS:
        create_view(session, kind, sample)
    for view in TOPIC_VIEWS:  # in a separate folder, so that other views do not include them
        frame = Logs(["sample:internal"], {}).load(session, view)
        frame.createOrReplaceTempView(view)
    typed = Logs(["sample:typed"], {})
    typed.load_topic(session, "shipments").createOrReplaceTempView("shipments")
    typed.load(session, "schemas").createOrReplaceTempView("schemas")
    return session


def create_view(session: SparkSession, kind: str, sample: str, columns: str = "") -> None:
    session.sql(
        f"CREATE TEMPORARY VIEW {kind} {columns} USING kafkaLog "
        f"OPTIONS (path '{sample}', kind '{kind}')"
    )
