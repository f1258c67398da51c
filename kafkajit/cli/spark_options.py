"""The options of commands that start Spark."""

from __future__ import annotations

import argparse

from kafkajit.cli.shared_options import setting


def add_spark_options(parser: argparse.ArgumentParser) -> None:
    """Add --conf, which becomes a list of names and values, and --verbose."""
    parser.add_argument(
        "--conf",
        action="append",
        type=setting,
        default=[],
        metavar="NAME=VALUE",
        help="a configuration property of Spark, such as spark.driver.memory=8g",
    )
    parser.add_argument("--verbose", action="store_true", help="show Spark's own log output")
