"""Print the last records of logs, and with -f new ones as a broker appends them.

Each line has topic and partition, offset, timestamp, key and value, separated by tabs. If a broker
is writing a log, the command prints the last batch once it is whole.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from time import sleep
from typing import TYPE_CHECKING, Any

from kafkajit.cli.look import add_color_option, complain
from kafkajit.cli.problems import Problems
from kafkajit.cli.shared_options import (
    TIME,
    add_isolation_level_option,
    add_partition_option,
    add_private_key_option,
    add_topic_option,
    time,
)
from kafkajit.cli.value_options import add_value_options, check_value_options
from kafkajit.format.moment import option_text

if TYPE_CHECKING:
    from kafkajit.cli.tail_lines import TailLines
    from kafkajit.places.named import Place
    from kafkajit.scan.stream.log_stream import LogStream
    from kafkajit.scan.stream.offsets import StreamOffsets
    from kafkajit.scan.stream.options import StreamOptions

EXAMPLE = """\
A PATH is a log.dirs folder, a partition's folder, a glob, or a URI such as
s3://bucket/orders-0. Without --topic, internal topics and a registry's topic
are left out.

exit code:
  0 if all records were printed; 1 if a partition is damaged, cannot be read or
    lacks a segment, which is named on stderr while the others are printed, or
    after an error

examples:
  kafkajit tail /var/kafka --topic orders
  kafkajit tail -f -n 0 /var/kafka/orders-*
  kafkajit tail -n all --format json /var/kafka/orders-0
  kafkajit tail --value-decoder avro sample:typed/shipments-0
"""
REST = "paths"  # the argument that receives the words behind options
_ALL = "all"
_PAUSE_SECONDS = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="folders of logs")
    add_topic_option(parser)
    add_partition_option(parser)
    parser.add_argument(
        "-n",
        "--records",
        type=_count,
        default=10,
        metavar="N",
        help="the last N offsets of each partition, or all; markers of transactions are not "
        "printed (default: %(default)s)",
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="go on with new records until Ctrl-C"
    )
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="lines of text, or a JSON object for each record (default: %(default)s)",
    )
    add_isolation_level_option(parser)
    parser.add_argument(
        "--starting-timestamp",
        type=time,
        metavar="TIME",
        help="begin with the first record of each partition that has this timestamp or a later "
        f"one, instead of -n: {TIME}",
    )
    add_private_key_option(parser)
    add_color_option(parser)
    add_value_options(parser)


def _count(text: str) -> int | None:
    if text == _ALL:
        return None
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a number of records or {_ALL}, not {text!r}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Print records until the logs' ends, or for ever."""
    import json

    from kafkajit.cli.tail_lines import TailLines
    from kafkajit.places.named import Named
    from kafkajit.scan.stream.log_stream import LogStream
    from kafkajit.scan.stream.options import StreamOptions

    check_value_options(options)
    given = {
        "paths": json.dumps(options.paths),
        "isolationLevel": options.isolation_level,
        "failOnDataLoss": "false",
    }
    if options.starting_timestamp is not None:
        given["startingTimestamp"] = option_text(options.starting_timestamp)
    for id_, file in options.private_keys:
        given[f"encryption.key.pairs.{id_}.private.key.file"] = file
    options.named = Named.of(options.topics, options.partitions)
    topics = tuple(sorted(options.named.of_topics))
    parsed = StreamOptions.parse(given)
    problems = Problems(options.command)
    scan = replace(parsed.scan, failed=problems.add)
    parsed = replace(parsed, topics=topics, scan=scan, waits_for_copies=options.follow)
    _follow(LogStream(parsed), parsed, TailLines(options), options, problems)
    return problems.code()


def _follow(
    stream: LogStream,
    parsed: StreamOptions,
    lines: TailLines,
    options: argparse.Namespace,
    problems: Problems,
) -> None:
    """Print what there is, and with -f what comes, for ever."""
    start = _begin(stream, options, problems)
    for place, text in stream.losses(start):
        if _is_asked(place, options):
            problems.say(text)
    while True:
        end = stream.latest_offsets(start, None)
        asked = _of_topics(start, options), _of_topics(end, options)
        _print(stream, parsed, lines, *asked, problems)
        if not options.follow:
            _report_tails(stream, options, problems)
            return
        stream.commit(end)
        start = end
        sleep(_PAUSE_SECONDS)


def _report_tails(stream: LogStream, options: argparse.Namespace, problems: Problems) -> None:
    """Name bytes at the ends of logs that are not printed, because they may be damage."""
    tails = list(stream.unsound_tails())
    if tails:
        sleep(_PAUSE_SECONDS)  # a broker that writes them has finished by then
        stream.newest_offsets()
    for name, log, position in stream.unsound_tails():
        topic, _, number = name.rpartition("-")
        is_same = (name, log.size, position) in {(one[0], one[1].size, one[2]) for one in tails}
        if is_same and _of_topics({topic: {number: 0}}, options):
            problems.say(
                f"{log.path}: {log.size - position:,} bytes from position {position} on are not a "
                "sound batch, and were not printed: see `kafkajit repair`",
            )


def _begin(stream: LogStream, options: argparse.Namespace, problems: Problems) -> StreamOffsets:
    """The offsets from which on records are printed."""
    from kafkajit.places.left_out import waiting_text
    from kafkajit.scan.stream.offsets import from_json, to_json

    start = stream.initial_offsets()
    _check_there(start, options, problems)
    waiting = waiting_text(options.paths, options.named.has)
    if waiting is not None:
        complain(options.command, waiting)
    if options.starting_timestamp is not None or options.records is None:
        return start
    # What an earlier part of a log lacks does not matter for its last records.
    ends = from_json(stream.newest_offsets())
    # One that has come since then is read from its first offset.
    begins = from_json(start).items()
    return to_json(
        {place: max(first, ends.get(place, first) - options.records) for place, first in begins}
    )


def _check_there(offsets: StreamOffsets, options: argparse.Namespace, problems: Problems) -> None:
    """Raise an error for a name or a path without segments; one that follows logs waits for it."""
    from kafkajit.errors import LeftOutError
    from kafkajit.format.log_path import parse_log_path
    from kafkajit.places.locations import find_segments
    from kafkajit.places.private_keys import PrivateKeys
    from kafkajit.places.wanted import any_partition
    from kafkajit.scan.stream.offsets import from_json

    found = list(from_json(offsets))
    is_complete = not options.named.missing(found) if options.named else bool(found)
    if is_complete and len(options.paths) == 1:
        return

    def failed(error: Exception) -> None:
        if options.follow and not isinstance(error, LeftOutError):
            complain(options.command, f"waits, because {error}")
        else:
            problems.add(error)

    keys = PrivateKeys.of(dict(options.private_keys))
    try:
        wanted = any_partition if options.named else None
        logs, _ = find_segments(options.paths, keys=keys, wanted=wanted, failed=failed)
        options.named.check((parse_log_path(log.path)[:2] for log in logs), options.paths)
    except LeftOutError as error:
        failed(error)  # once: the stream has looked, too
    except FileNotFoundError as error:
        if not options.follow:
            raise
        failed(error)


def _of_topics(offsets: StreamOffsets, options: argparse.Namespace) -> StreamOffsets:
    """The offsets of the partitions that are asked for."""
    from kafkajit.scan.stream.offsets import footings_in, from_json, to_json

    asked = {
        place: offset for place, offset in from_json(offsets).items() if _is_asked(place, options)
    }
    footings = footings_in(offsets)
    return to_json(asked, {place: footings[place] for place in asked if place in footings})


def _is_asked(place: Place, options: argparse.Namespace) -> bool:
    from kafkajit.values.registry import is_internal

    if not options.named:
        return not is_internal(place.topic)
    return bool(options.named.has(*place))


def _print(
    stream: LogStream,
    options: StreamOptions,
    lines: Any,
    start: StreamOffsets,
    end: StreamOffsets,
    problems: Problems,
) -> None:
    import pyarrow as pa

    from kafkajit.cli.tail_lines import COLUMNS
    from kafkajit.errors import CorruptRecordError, KafkaJitError
    from kafkajit.scan.stream.tasks import read_stream_task
    from kafkajit.scan.table import schema_of

    whole = schema_of(options.scan)
    schema = pa.schema([whole.field(name) for name in COLUMNS])
    unread: set[str] = set()  # the folders of partitions that cannot be read on
    for split in (split for task in stream.tasks(start, end) for split in task):
        if split.file.folder in unread:
            continue
        try:
            for rows in read_stream_task([split], schema, options):
                for text in lines.texts(rows, split.file.path):
                    sys.stdout.write(text)
        except KafkaJitError as error:
            if isinstance(error, CorruptRecordError):
                error.advice = "its later records are not printed: see `kafkajit repair`"
            problems.add(error)
            unread.add(split.file.folder)
    sys.stdout.flush()
