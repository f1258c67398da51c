"""Report on a folder of logs as one HTML page: sizes, savings, lag, trouble.

The page needs no network and can be sent to a colleague. The same figures come as JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkajit.cli.destination import add_force_option, destination
from kafkajit.cli.look import DAMAGE, add_color_option, painted
from kafkajit.cli.problems import Problems, shortened
from kafkajit.cli.shared_options import (
    add_private_key_option,
    add_spark_options,
    add_topic_option,
)
from kafkajit.format.amounts import number_of, size_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkajit.cli.progress import Progress

EXAMPLE = """\
A PATH is a log.dirs folder, a partition's folder, a segment, a glob, or a URI
such as s3://bucket/kafka.

Sizes, offsets, codecs and times come from the headers of all batches. Keys,
sizes of records, and the space that other codecs and batch sizes would save
come from a sample of at most 64 MiB, whose size the report shows. --deep reads
all records instead, and --quick reads none. The report shows the space that
kafkajit retain and kafkajit compact would free only with --deep, or if the
sample has all records.

--spark computes the same figures with all cores of this machine, or of a
master's cluster. Executors need kafkajit and the same paths: docs/deploy.md. No
broker may write to the folder meanwhile. Without --spark one may.

examples:
  kafkajit report /var/kafka
  kafkajit report -o orders.html --topic orders --deep s3://backup/kafka
  kafkajit report --format json -o monday.json /var/kafka
  kafkajit report --compare monday.json /var/kafka
  kafkajit report --spark spark://host:7077 --deep s3://backup/kafka

exit code:
  0 if the report was written and has no damage; 1 if it was written and has
    damage, or lacks a folder that cannot be read, or after an error
"""
REST = "paths"  # the argument that receives the words behind options
_PAGE = "report.html"
_ALL_CORES = "local[*]"
# Spark's master URLs, and those of Spark Connect. Another word behind --spark is a path.
_MASTER = re.compile(r"local(?:\[.+\])?|yarn|(?:spark|k8s|sc)://.+")
_STEPS = {
    "headers": "reading headers",
    "records": "sampling records",
    "savings": "encoding",
    "plans": "planning",
}
_UNITS = {"savings": "topics", "plans": "partitions"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="folders of logs")
    add_topic_option(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"the new file to write, - for standard output (default: {_PAGE}, or standard output "
        "for JSON)",
    )
    add_force_option(parser)
    parser.add_argument(
        "--format",
        choices=("html", "json"),
        default="html",
        help="an HTML page, or its figures in JSON (default: %(default)s)",
    )
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument("--deep", action="store_true", help="read all records, not a sample")
    depth.add_argument(
        "--quick", action="store_true", help="read only headers of batches, and no record"
    )
    parser.add_argument(
        "--compare",
        metavar="FILE",
        help="an earlier report in JSON: the page also shows what has changed since",
    )
    add_private_key_option(parser)
    add_color_option(parser)
    parser.add_argument(
        "--spark",
        nargs="?",
        action=_Spark,
        metavar="MASTER",
        help="read through Spark: with all cores of this machine, or at a master such as local[4], "
        "spark://host:7077, yarn, or sc://host of Spark Connect",
    )
    add_spark_options(parser)
    parser.set_defaults(behind_spark=[])


class _Spark(argparse.Action):
    """Takes a master, or leaves the word to the paths."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        _option_string: str | None = None,
    ) -> None:
        word = None if values is None else str(values)
        if word is None or _MASTER.fullmatch(word):
            namespace.spark = word or _ALL_CORES
        else:
            namespace.spark, namespace.behind_spark = _ALL_CORES, [word]


def run(options: argparse.Namespace) -> int:
    """Take the figures and write the report."""
    options.paths = [*options.behind_spark, *options.paths]
    if not options.paths:
        raise ValueError("no path is given: name folders, segments or URIs; see --help")
    if options.spark is None and (options.conf or options.verbose):
        given = "--conf" if options.conf else "--verbose"
        raise ValueError(f"{given} is for Spark: add --spark, or leave it out")
    is_page = options.format == "html"
    if options.compare is not None and not is_page:
        raise ValueError("--compare is for a page: compare the JSON of two reports with jq or diff")
    earlier = None if options.compare is None else _document_at(Path(options.compare))
    if is_page:
        from kafkajit.report.page import page
    output = options.output or (_PAGE if is_page else "-")
    with destination(None if output == "-" else output, force=options.force) as out:
        document = _taken(options)
        text = page(document, earlier) if is_page else json.dumps(document) + "\n"
        out.write(text.encode())
    problems = Problems(options.command)
    damages = _damage(document)
    for text in shortened(damages, "places are damaged"):
        problems.say(text)
    if output == "-":
        return problems.code()
    totals = document["totals"]
    print(
        f"{output}: {number_of(totals['topics'], 'topic')}, "
        f"{number_of(totals['partitions'], 'partition')}, {size_text(totals['bytes'])}, "
        f"{number_of(len(document['trouble']), 'finding')}"
        + (painted(f", {len(damages):,} of damage", DAMAGE, sys.stderr) if damages else ""),
        file=sys.stderr,
    )
    return problems.code()


def _damage(document: dict[str, Any]) -> list[str]:
    """Lines about damage, and about folders that could not be read."""
    return [
        ": ".join(filter(None, (one["path"], one["problem"])))
        + ("" if one["position"] is None else f" at position {one['position']}")
        for one in document["trouble"]
        if one["severity"] == "damage"
    ]


def _taken(options: argparse.Namespace) -> dict[str, Any]:
    from kafkajit.cli.progress import Progress
    from kafkajit.places.private_keys import PrivateKeys
    from kafkajit.report.take import ALL, HEADERS, SAMPLE, ReportOptions, take

    depth = ALL if options.deep else HEADERS if options.quick else SAMPLE
    if options.spark is not None:
        return _taken_by_spark(options, depth)
    asked = ReportOptions(
        tuple(options.paths),
        topics=tuple(options.topics),
        depth=depth,
        keys=PrivateKeys.of(dict(options.private_keys)),
    )
    with Progress() as progress:
        progress.update("listing", 0, 0)
        return take(asked, partial(_show, progress))


def _taken_by_spark(options: argparse.Namespace, depth: str) -> dict[str, Any]:
    from kafkajit.cli.progress import TaskProgress
    from kafkajit.cli.sql.error_report import report_of
    from kafkajit.spark.folder_report import report
    from kafkajit.spark.session import session_at

    session: SparkSession | None = None
    try:
        with TaskProgress(lambda: session):
            session = session_at(options.spark, dict(options.conf), verbose=options.verbose)
            return report(
                session,
                *options.paths,
                topics=options.topics,
                depth=depth,
                private_keys=dict(options.private_keys),
            )
    except Exception as error:
        if options.debug:
            raise
        raise ValueError(report_of(error, "").message) from None


def _document_at(path: Path) -> dict[str, Any]:
    """An earlier report."""
    from kafkajit.report.changes import is_document
    from kafkajit.storage.named_file import read_named

    try:
        document = json.loads(read_named(path))
    except (ValueError, RecursionError):
        document = None
    if not is_document(document):
        raise ValueError(
            f"{path} is not a report of this version: make it with kafkajit report --format json"
        )
    found: dict[str, Any] = document
    return found


def _show(progress: Progress, step: str, done: int, total: int) -> None:
    """Show the step that is being taken."""
    progress.update(_STEPS[step], done, total, _UNITS.get(step, ""))
