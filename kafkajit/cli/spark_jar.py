"""Write the bridge's jar, for a Spark that cannot make its own."""

from __future__ import annotations

import argparse

from kafkajit.cli.destination import add_force_option, destination

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
    add_force_option(parser)


def run(options: argparse.Namespace) -> int:
    """Compile the classes with the Spark that is installed here, and write them."""
    from kafkajit.spark.bridge import write_jar
    from kafkajit.spark.local.session import local_session

    with destination(options.output, force=options.force) as out:
        write_jar(local_session(cores="1"), out)
    return 0
