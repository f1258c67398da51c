"""Show what a folder of logs holds: topics, sizes, offsets and newest records.

Only the ends of each partition are read, and all headers of batches if PATH is one segment.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkajit.cli.look import HEADING, WARNING, add_color_option, painted
from kafkajit.cli.problems import Problems, shortened
from kafkajit.cli.readable import table
from kafkajit.cli.shared_options import add_private_key_option, add_topic_option
from kafkajit.format.amounts import minute_text, number_of, size_text, time_text

if TYPE_CHECKING:
    from kafkajit.log.segment import Segment
    from kafkajit.places.private_keys import PrivateKeys

EXAMPLE = """\
A PATH is a log.dirs folder, a partition's folder, a segment, a glob, or a URI
such as s3://bucket/orders-0.

The column "offsets" has the number of offsets between a log's start and its
end. That is the number of records unless compaction has removed some or
transactions have added markers. The column "codecs" has those of the last
batches. kafkajit report takes more time, and shows more.

exit code:
  0 if all partitions were looked at; 1 if one is damaged, lacks records or
    cannot be read, which is named on stderr, or after an error

examples:
  kafkajit info /var/kafka
  kafkajit info /var/kafka/orders-0
  kafkajit info /var/kafka/orders-0/00000000000000000000.log
  kafkajit info --topic orders --format json s3://backup/kafka
"""
REST = "paths"  # the argument that receives the words behind options
_WIDTH = 80
_NAMES = 11  # the width of the facts' names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="folders of logs, or a segment")
    add_topic_option(parser)
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="a table, or one JSON object with the same figures for each partition (default: "
        "%(default)s)",
    )
    add_private_key_option(parser)
    add_color_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the figures."""
    import json

    from kafkajit.cli.progress import Progress
    from kafkajit.places.private_keys import PrivateKeys

    keys = PrivateKeys.of(dict(options.private_keys))
    with Progress() as progress:
        problems = Problems(options.command, progress.hide)
        progress.update("listing", 0, 0)
        segment = None if options.topics else _segment_at(options.paths, keys)
        if segment is not None:
            from kafkajit.report.segment_info import segment_info

            document = segment_info(segment)
            lines = _segment_lines(document)
            for text in _damage(document):
                problems.say(text)
        else:
            from kafkajit.report.info import info

            document = info(options.paths, topics=options.topics, keys=keys, failed=problems.add)
            lines = _lines(document)
            for topic in document["topics"]:
                for one in topic["eachPartition"]:
                    if one["problem"] is not None:
                        problems.say(f"{one['folder']}: {one['problem']}")
                    for missing in one["missing"]:
                        if missing["isTrouble"]:
                            problems.say(f"{one['folder']}: {missing['problem']}")
                    for overlap in one["overlaps"]:
                        problems.say(f"{overlap['path']}: {overlap['problem']}")
    if options.format == "json":
        print(json.dumps(document))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    return problems.code()


def _segment_at(paths: list[str], keys: PrivateKeys) -> Segment | None:
    """The segment at the only path, if that is one."""
    from kafkajit.log.segment import segments_of
    from kafkajit.places.location import SEGMENT_NAME
    from kafkajit.places.locations import find_segments

    if len(paths) != 1 or not paths[0].endswith(".log"):
        return None
    (log, *others), files = find_segments(paths, keys=keys)
    if others or not SEGMENT_NAME.fullmatch(log.name):
        return None
    beside = {file.path: file for file in log.beside()}
    return segments_of([log], files | beside)[0]


def _on_disk(totals: dict[str, Any]) -> str:
    """The space that files beside logs take, if brokers have preallocated them."""
    on_disk = totals["otherBytesOnDisk"]
    return "" if on_disk == totals["otherBytes"] else f" ({size_text(on_disk)} on the disk)"


def _lines(document: dict[str, Any]) -> Iterator[str]:
    totals = document["totals"]
    for folder in document["folders"]:
        broker = "" if folder["brokerId"] is None else f", broker {folder['brokerId']}"
        cluster = "" if folder["clusterId"] is None else f" of cluster {folder['clusterId']}"
        yield (
            f"{folder['path']}: {number_of(folder['partitions'], 'partition')}, "
            f"{size_text(folder['bytes'])}{broker}{cluster}"
        )
    yield (
        f"{number_of(totals['topics'], 'topic')}, {number_of(totals['partitions'], 'partition')}, "
        f"{number_of(totals['segments'], 'segment')}, {size_text(totals['bytes'])}, and "
        f"{size_text(totals['otherBytes'])} beside them{_on_disk(totals)}"
    )
    if totals["leftovers"]:
        yield (
            f"{number_of(totals['leftovers'], 'leftover')} of deletions, moves and compactions: "
            f"{size_text(totals['leftoverBytes'])}"
        )
    yield from shortened(
        [
            f"{one['path']}: {size_text(one['bytes'])}, {one['meaning']}"
            for one in document["waiting"]
        ],
        "such partitions",
    )
    yield ""
    topics = sorted(document["topics"], key=lambda topic: (-topic["bytes"], topic["topic"] or ""))
    if len(topics) == 1:
        yield from _partition_lines(topics[0])
        return
    head = ["topic", "parts", "size", "offsets", "newest record", "codecs"]
    rows = [
        [
            topic["topic"] or "-",
            f"{topic['partitions']:,}",
            size_text(topic["bytes"]),
            f"{topic['offsets']:,}",
            minute_text(topic["lastTimestamp"]),
            ",".join(topic["codecs"]) or "-",
        ]
        for topic in topics
    ]
    yield from _with_heading(table(head, rows, left="topic codecs"))


def _partition_lines(topic: dict[str, Any]) -> Iterator[str]:
    """The partitions of the only topic."""
    id_ = "" if topic["topicId"] is None else f", id {topic['topicId']}"
    yield f"topic {topic['topic'] or '-'}{id_}"
    head = ["partition", "segs", "size", "start", "end", "newest record", "codecs"]
    rows = [
        [
            str(Path(one["folder"]).name if one["partition"] is None else one["partition"]),
            f"{one['segments']:,}",
            size_text(one["bytes"]),
            str(one["startOffset"]),
            str(one["endOffset"]),
            minute_text(one["lastTimestamp"]),
            ",".join(one["codecs"]) or "-",
        ]
        for one in topic["eachPartition"]
    ]
    yield from _with_heading(table(head, rows, left="codecs"))


def _with_heading(lines: list[str]) -> Iterator[str]:
    yield painted(lines[0], HEADING)
    yield from lines[1:]


def _segment_lines(figures: dict[str, Any]) -> Iterator[str]:
    yield f"{figures['path']}: {size_text(figures['bytes'])}"
    facts = {
        "batches": f"{figures['batches']:,}, of {_sizes(figures['bytesPerBatch'], size_text)}",
        "records": f"{figures['records']:,}, in a batch {_sizes(figures['recordsPerBatch'], str)}",
        "offsets": f"{figures['startOffset']} to {figures['endOffset'] - 1}, "
        f"{figures['missingOffsets']:,} missing",
        "timestamps": f"{time_text(figures['firstTimestamp'])} to "
        f"{time_text(figures['lastTimestamp'])}, {_counts(figures['timestampTypes'])}",
        "formats": _counts(figures["formats"]),
        "codecs": ", ".join(
            f"{name} ({number_of(codec['batches'], 'batch', 'batches')}, "
            f"{size_text(codec['bytes'])})"
            for name, codec in figures["codecs"].items()
        ),
        "producers": f"{figures['producers']:,}; {figures['transactionalBatches']:,} batches of "
        f"transactions, {number_of(figures['controlBatches'], 'marker')}",
        "indexes": ", ".join(
            f"{Path(index['path']).suffix} {size_text(index['bytes'])}"
            for index in figures["indexes"]
        )
        or "none",
    }
    for name, fact in facts.items():
        yield textwrap.fill(
            fact,
            80,
            initial_indent=f"{name:<11}",
            subsequent_indent=" " * 11,
            break_on_hyphens=False,
        )
    for trouble in figures["trouble"]:
        if trouble["severity"] != "damage":  # which is named on stderr
            yield painted(f"{trouble['severity']:<{_NAMES}}{trouble['problem']}", WARNING)


def _damage(figures: dict[str, Any]) -> list[str]:
    lines = [
        f"{figures['path']}: {trouble['problem']} at position {trouble['position']}"
        for trouble in figures["trouble"]
        if trouble["severity"] == "damage"
    ]
    return shortened(lines, "places are damaged")


def _sizes(sizes: dict[str, float] | None, text: Callable[[int], str]) -> str:
    if sizes is None:
        return "-"
    return f"{text(int(sizes['p50']))} (median) to {text(int(sizes['max']))}"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in counts.items()) or "-"
