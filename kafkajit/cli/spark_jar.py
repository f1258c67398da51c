"""Write the bridge's jar, for a Spark that cannot make its own."""

from __future__ import annotations

import argparse
from pathlib import Path

EXAMPLE = """\
A session that calls kafkajit.spark.register makes this jar by itself. Put it on
Spark's class path if that is impossible: on the server of Spark Connect, or in
a cluster whose users have no home directory. The jar fits the version of Spark
that is installed here.

example:
  kafkajit spark-jar -o kafkajit-bridge.jar
  spark-submit --jars kafkajit-bridge.jar job.py
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file to write."""
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the jar to write")


def run(options: argparse.Namespace) -> int:
    """Compile the classes with the Spark that is installed here, and write them."""
    from kafkajit.spark.bridge import write_jar
    from kafkajit.spark.local.session import local_session

    jar = Path(options.output)
    if not jar.absolute().parent.is_dir():
        raise ValueError(f"cannot write {jar}: there is no folder {jar.parent}; make it first")
    write_jar(local_session(cores="1"), jar)
    return 0
