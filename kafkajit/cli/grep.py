"""Search logs for records whose key, value or header matches a pattern.

Each line has topic and partition, offset, timestamp, key and value, separated by tabs, and the
headers if there are some and they are searched. The command reports damage on stderr, and goes on
behind it.

Exit code: 0 if a record matches, 1 if none does, 2 after an error or damage.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkajit.cli.look import add_color_option
from kafkajit.cli.shared_options import (
    TIME,
    add_isolation_level_option,
    add_max_decompressed_bytes_option,
    add_partition_option,
    add_private_key_option,
    add_topic_option,
    number,
    time,
)
from kafkajit.cli.value_options import add_value_options, check_value_options

if TYPE_CHECKING:
    from kafkajit.scan.options import ScanOptions
    from kafkajit.scan.patterns import Pattern

EXAMPLE = """\
A PATTERN is a regular expression in RE2's syntax. ^ and $ are the beginning and
the end of a key, a value or a header. A PATH is a segment, a log.dirs folder, a
partition's folder, a glob, or a URI such as s3://bucket/orders-0. Without
--topic or --partition, internal topics and a registry's topic are left out if
there are other topics.

exit code:
  0 if a record matches, 1 if none does, 2 after an error, or if a partition is
    damaged or lacks a segment; with -q, 0 if a record matches

examples:
  kafkajit grep 'orderId":1042' /var/kafka/orders-*
  kafkajit grep -v -i 'timeout|refused' --topic orders /var/kafka
  kafkajit grep --hex -c cafebabe s3://bucket/tiered
  kafkajit grep -C 2 --starting-timestamp 2025-11-05T00:00:05Z -k o-1 /var/kafka
  kafkajit grep --value-decoder avro --field parcels.sku D-2 \\
      sample:typed/shipments-0
"""
REST = "arguments"  # the argument that receives the words behind options
ERROR_CODE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments; those of grep have grep's names, except -v."""
    parser.usage = (
        "%(prog)s [OPTION ...] PATTERN PATH [PATH ...]\n"
        "       %(prog)s [OPTION ...] -e PATTERN [-e PATTERN ...] PATH [PATH ...]"
    )
    parser.add_argument(
        "arguments",
        nargs="+",
        metavar="PATTERN PATH",
        help="a pattern, and folders of logs or segments; with -e only folders and segments",
    )
    parser.add_argument(
        "-e",
        "--regexp",
        dest="patterns",
        action="append",
        default=[],
        metavar="PATTERN",
        help="also search for this pattern; may be repeated",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "-F", "--fixed-strings", action="store_true", help="patterns are texts, not expressions"
    )
    how.add_argument(
        "--hex", action="store_true", help="patterns are bytes in hex, such as cafebabe"
    )
    parser.add_argument(
        "-i", "--ignore-case", action="store_true", help="ignore upper and lower case"
    )
    parser.add_argument(
        "--invert-match", action="store_true", help="find the records that do not match"
    )
    for short, side in (("-k", "key"), ("-v", "value"), ("-H", "headers")):
        parser.add_argument(
            short,
            f"--{side}",
            dest="sides",
            action="append_const",
            const=side,
            help=f"search in {side if side == 'headers' else side + 's'} (default: everywhere)",
        )
    parser.add_argument(
        "--field",
        metavar="NAME",
        help="search only this field of decoded values, such as customer.id; in a list, all items",
    )
    _add_output(parser)
    add_color_option(parser)
    _add_limits(parser)
    add_value_options(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c",
        "--count",
        action="store_true",
        help="print only the number of matches in each partition",
    )
    parser.add_argument(
        "-l",
        "--files-with-matches",
        action="store_true",
        help="print only the paths of segments with a match",
    )
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print nothing, and end at the first match"
    )
    parser.add_argument(
        "-m",
        "--max-count",
        type=number,
        metavar="N",
        help="end each partition after N matches",
    )
    for short, where in (("-A", "after"), ("-B", "before")):
        parser.add_argument(
            short,
            f"--{where}-context",
            type=number,
            metavar="N",
            help=f"also print N records {where} each match",
        )
    parser.add_argument(
        "-C",
        "--context",
        type=number,
        default=0,
        metavar="N",
        help="also print N records before and after each match",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="lines of text, or a JSON object for each record (default: %(default)s)",
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    add_topic_option(parser)
    add_partition_option(parser)
    for which, offset, words in (
        ("starting", "begin with this offset", "begin with"),
        ("ending", "end before this offset", "end before"),
    ):
        parser.add_argument(
            f"--{which}-offset", type=number, metavar="OFFSET", help=f"{offset} in each partition"
        )
        parser.add_argument(
            f"--{which}-timestamp",
            type=time,
            metavar="TIME",
            help=f"{words} the first record of each partition that has this timestamp or a later "
            f"one: {TIME}",
        )
    add_isolation_level_option(parser)
    parser.add_argument(
        "--no-check-crcs",
        dest="check_crcs",
        action="store_false",
        help="verify no checksums, and also search batches whose checksum is wrong",
    )
    add_max_decompressed_bytes_option(parser)
    parser.add_argument(
        "--threads",
        type=_threads,
        metavar="N",
        help="read N segments at once (default: as many as there are processors)",
    )
    add_private_key_option(parser)


def _threads(text: str) -> int:
    count = number(text)
    if not count:
        raise argparse.ArgumentTypeError("expected a number from 1 on, not '0'")
    return count


def run(options: argparse.Namespace) -> int:
    """Print the records that match, and return grep's exit code."""
    from kafkajit.cli.grep_lines import GrepLines
    from kafkajit.cli.grep_output import GrepOutput
    from kafkajit.cli.grep_texts import SearchedTexts
    from kafkajit.places.left_out import waiting_text
    from kafkajit.places.named import Named
    from kafkajit.scan.search import SIDES, Search, plan_search

    _complete(options)
    patterns = _patterns(options)
    sides = tuple(options.sides or (SIDES if options.field is None else ("value",)))
    lines = GrepLines(options, patterns, sides)
    texts = SearchedTexts(options, lines)
    search = Search(patterns, sides, options.invert_match, texts.of(sides))
    output = GrepOutput(options, search, lines)
    scan = _scan_options(options, output.add)
    offsets = (options.starting_offset, options.ending_offset)
    with output.progress as progress:
        progress.update("listing", 0, 0)
        named = Named.of(options.topics, options.partitions)
        splits = plan_search(scan, named, offsets)
        waiting = waiting_text(scan.paths, named.has)
        if waiting is not None:
            output.note(waiting)
        if options.max_count != 0:
            output.search(splits, scan)
    for note in texts.notes():
        output.note(note)
    wrong = texts.missing_field()
    if wrong is not None:
        output.error(wrong)
    return output.code()


def _complete(options: argparse.Namespace) -> None:
    """Tell patterns from paths, and raise a ValueError for options that do not go together."""
    options.paths = options.arguments
    if not options.patterns:
        first, *options.paths = options.arguments
        options.patterns = [first]
    if not options.paths:
        raise ValueError("pass a PATH behind the pattern: a segment, or a folder of logs")
    check_value_options(options)
    if options.field is not None:
        if options.value_decoder is None:
            raise ValueError("--field needs --value-decoder")
        if options.sides and "value" not in options.sides:
            raise ValueError("--field is a field of values: pass -v, too")
    if options.hex and options.ignore_case:
        raise ValueError("pass --hex or --ignore-case, not both: bytes have no case")
    for where in ("before", "after"):
        if getattr(options, f"{where}_context") is None:
            setattr(options, f"{where}_context", options.context)


def _patterns(options: argparse.Namespace) -> tuple[Pattern, ...]:
    from kafkajit.scan.patterns import Pattern

    if options.hex:
        return tuple(map(Pattern.of_hex, options.patterns))
    make = Pattern.of_text if options.fixed_strings else Pattern.of_regex
    return tuple(make(text, ignores_case=options.ignore_case) for text in options.patterns)


def _scan_options(options: argparse.Namespace, failed: Callable[[Exception], None]) -> ScanOptions:
    from kafkajit.places.private_keys import PrivateKeys
    from kafkajit.scan.options import ScanOptions
    from kafkajit.walk.damage import PERMISSIVE

    return ScanOptions(
        paths=tuple(map(os.fspath, options.paths)),
        starting_timestamp=options.starting_timestamp,
        ending_timestamp=options.ending_timestamp,
        isolation_level=options.isolation_level,
        check_crcs=options.check_crcs,
        mode=PERMISSIVE,
        max_decompressed_bytes=options.max_decompressed_bytes,
        max_partition_bytes=2**40,  # one task reads all
        private_keys=PrivateKeys.of(dict(options.private_keys)),
        failed=failed,
    )
