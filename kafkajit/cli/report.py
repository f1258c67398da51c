"""Report on a folder of logs as one HTML page: sizes, savings, lag, trouble.

The page needs no network and can be sent to a colleague. The same figures come as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkajit.cli.look import DAMAGE, add_color_option, painted
from kafkajit.cli.shared_options import add_private_key_option, add_topic_option
from kafkajit.format.amounts import number_of, size_text

if TYPE_CHECKING:
    from kafkajit.cli.progress import Progress

EXAMPLE = """\
A PATH is a log.dirs folder, a partition's folder, a segment, a glob, or a URI
such as s3://bucket/kafka.

Sizes, offsets, codecs and times come from the headers of all batches. Keys,
sizes of records, and what other codecs and batch sizes would save come from a
sample of at most 64 MiB; the report has its size. --deep reads all
records instead, --quick none. What retention and compaction would free is
planned as by kafkajit retain and kafkajit compact: with --deep, and if the
sample is all there is.

examples:
  kafkajit report /var/kafka
  kafkajit report -o orders.html --topic orders --deep s3://backup/kafka
  kafkajit report --format json -o monday.json /var/kafka
  kafkajit report --compare monday.json /var/kafka

exit code:
  0 if the report was written, whatever it says; 1 after an error
"""
REST = "paths"  # the argument that receives the words behind options
_PAGE = "report.html"
_STEPS = {
    "headers": "reading headers",
    "records": "sampling records",
    "savings": "encoding",
    "plans": "planning",
}
_UNITS = {"savings": "topics", "plans": "partitions"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="folders of logs")
    add_topic_option(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"the file to write, - for standard output (default: {_PAGE}, or standard output "
        "for JSON)",
    )
    parser.add_argument(
        "--format",
        choices=("html", "json"),
        default="html",
        help="a page, or the figures that it is drawn from (default: %(default)s)",
    )
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument("--deep", action="store_true", help="read all records, not a sample")
    depth.add_argument(
        "--quick", action="store_true", help="read headers of batches alone, and no record"
    )
    parser.add_argument(
        "--compare",
        metavar="FILE",
        help="an earlier report in JSON: the page also shows what has changed since",
    )
    add_private_key_option(parser)
    add_color_option(parser)


def run(options: argparse.Namespace) -> int:
    """Take the figures and write the report."""
    from kafkajit.cli.progress import Progress
    from kafkajit.places.private_keys import PrivateKeys
    from kafkajit.report.take import ALL, HEADERS, SAMPLE, ReportOptions, take

    is_page = options.format == "html"
    if options.compare is not None and not is_page:
        raise ValueError("--compare is for a page: compare the JSON of two reports with jq or diff")
    earlier = None if options.compare is None else _document_at(Path(options.compare))
    if is_page:
        from kafkajit.report.page import page
    asked = ReportOptions(
        tuple(options.paths),
        topics=tuple(options.topics),
        depth=ALL if options.deep else HEADERS if options.quick else SAMPLE,
        keys=PrivateKeys.of(dict(options.private_keys)),
    )
    with Progress() as progress:
        progress.update("listing", 0, 0)
        document = take(asked, partial(_show, progress))
    text = page(document, earlier) if is_page else json.dumps(document) + "\n"
    output = options.output or (_PAGE if is_page else "-")
    if output == "-":
        sys.stdout.write(text)
        return 0
    _write(Path(output), text)
    totals = document["totals"]
    damages = sum(trouble["severity"] == "damage" for trouble in document["trouble"])
    print(
        f"{output}: {number_of(totals['topics'], 'topic')}, "
        f"{number_of(totals['partitions'], 'partition')}, {size_text(totals['bytes'])}, "
        f"{number_of(len(document['trouble']), 'finding')}"
        + (painted(f", {damages:,} of damage", DAMAGE, sys.stderr) if damages else ""),
        file=sys.stderr,
    )
    return 0


def _document_at(path: Path) -> dict[str, Any]:
    """An earlier report."""
    try:
        document = json.loads(path.read_bytes())
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("version") != 1:
        raise ValueError(
            f"{path} is not a report of this version: make it with kafkajit report --format json"
        )
    return document


def _write(path: Path, text: str) -> None:
    """Write the file whole or not at all."""
    whole = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        whole.write_text(text, encoding="utf-8")
        whole.replace(path)
    finally:
        whole.unlink(missing_ok=True)


def _show(progress: Progress, step: str, done: int, total: int) -> None:
    """Show the step that is being taken."""
    progress.update(_STEPS[step], done, total, _UNITS.get(step, ""))
