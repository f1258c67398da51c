"""Print logs, indexes and snapshots as kafka-dump-log.sh does, without a JVM.

Options, lines and exit codes are those of Kafka 4.1.1's DumpLogSegments. If Kafka's tool would
throw and skip the remaining files, this command reports the problem and its position on stderr and
goes on with the next file; it still exits with 1. --mode, which Kafka's tool lacks, reports damage
as the other readers do. DefaultDecoder prints bytes as hex; in Java it prints an array's address.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from kafkajit.cli.look import complain
from kafkajit.cli.shared_options import (
    Size,
    add_max_decompressed_bytes_option,
    add_mode_option,
    add_private_key_option,
)
from kafkajit.cli.value_options import add_value_options, check_value_options
from kafkajit.format.limits import MAX_INT32
from kafkajit.text import DECODER_CLASSES, DECODER_PACKAGE
from kafkajit.topics import TOPICS

if TYPE_CHECKING:
    from kafkajit.text.log_dump import Style

EXAMPLE = """\
A FILE is a path, a folder (all of its files that can be dumped), a glob, a URI
such as s3://bucket/orders-0, or - for standard input.

examples:
  kafkajit dump-log --print-data-log orders-0/00000000000000000000.log
  kafkajit dump-log orders-0/*.log
  kafkajit dump-log --offsets-decoder --format json --files __consumer_offsets-7
  zstd -dc 00000000000000004711.log.zst | kafkajit dump-log - \\
      --stdin-name 00000000000000004711.log
  kafkajit dump-log --value-decoder avro orders-0
  kafkajit dump-log --mode FAILFAST orders-0 > /dev/null || echo damaged
"""

# Kafka's options for internal topics, and the kinds of these topics.
_TOPIC_DECODERS = {
    "offsets-decoder": "offsets",
    "transaction-log-decoder": "transaction_state",
    "cluster-metadata-decoder": "cluster_metadata",
    "share-group-state-decoder": "share_group_state",
    "remote-log-metadata-decoder": "remote_log_metadata",
}
_DEFAULT_DECODER = DECODER_CLASSES[0]
STDIN_NAME = "00000000000000000000.log"
REST = "paths"  # the argument that receives the words behind options
_NO_LIMIT = MAX_INT32
_MAX_MESSAGE_SIZE = 5 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments; those of Kafka's tool have Kafka's names."""
    decoders = f"{DECODER_PACKAGE}. StringDecoder, LongDecoder, IntegerDecoder or DefaultDecoder"
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="FILE",
        help="files to dump: .log, .kfs, .index, .timeindex, .txnindex, .snapshot and .checkpoint",
    )
    parser.add_argument(
        "--files",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE,...",
        help="files to dump, as Kafka's tool takes them: separated by commas or spaces",
    )
    parser.add_argument(
        "--stdin-name",
        default=STDIN_NAME,
        metavar="NAME",
        help="the file name of standard input (-), which decides its kind, its offset and, with a "
        "folder, its topic (default: %(default)s)",
    )
    parser.add_argument(
        "--print-data-log",
        action="store_true",
        help="print keys and values; set by any decoder option",
    )
    parser.add_argument(
        "--deep-iteration",
        action="store_true",
        help="print a line for each record, not only for each batch; set by --print-data-log",
    )
    parser.add_argument(
        "--skip-record-metadata",
        action="store_true",
        help="print only the key and value of each record",
    )
    parser.add_argument(
        "--max-bytes",
        type=Size(-MAX_INT32, MAX_INT32),  # Kafka reports a negative one itself
        default=_NO_LIMIT,
        metavar="SIZE",
        help="read no more than this many bytes of each file",
    )
    parser.add_argument(
        "--max-message-size",
        type=Size(1, MAX_INT32),
        default=_MAX_MESSAGE_SIZE,
        metavar="SIZE",
        help="the largest batch to look for at an index entry (default: 5m)",
    )
    parser.add_argument(
        "--index-sanity-check",
        action="store_true",
        help="check indexes as a broker does when it starts, instead of printing them",
    )
    parser.add_argument(
        "--verify-index-only",
        action="store_true",
        help="compare indexes with their logs without printing them",
    )
    add_max_decompressed_bytes_option(parser)
    for side in ("value", "key"):
        parser.add_argument(
            f"--{side}-decoder-class",
            nargs="?",
            const=_DEFAULT_DECODER,
            type=_decoder_class,
            metavar="CLASS",
            help=f"how to print {side}s: {decoders} (default: StringDecoder)",
        )
    add_value_options(parser)
    add_private_key_option(parser)
    for name, kind in _TOPIC_DECODERS.items():
        parser.add_argument(
            f"--{name}",
            dest="topics",
            action="append_const",
            const=kind,
            help=f"decode records as those of {TOPICS[kind]}; with several such options, only in "
            "the logs of this topic",
        )
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="text prints the lines of Kafka's tool; json prints an object on each line, with the "
        "values of headers, and with bytes that are not UTF-8 in base64 (default: %(default)s)",
    )
    add_mode_option(
        parser,
        "how to treat damage, instead of as Kafka's tool does: FAILFAST ends with an error at "
        "the first damaged batch, DROPMALFORMED skips damage and goes on at the next sound "
        "batch, PERMISSIVE also prints a line for each damaged batch and gap",
    )


def _decoder_class(name: str) -> str:
    if name not in DECODER_CLASSES:
        known = ", ".join(DECODER_CLASSES)
        raise argparse.ArgumentTypeError(f"unknown class {name}; there are: {known}")
    return name


def run(options: argparse.Namespace) -> int:
    """Dump every file; return 1 if one of them could not be read to its end."""
    from kafkajit.cli.dump_file import FileDump
    from kafkajit.cli.dump_names import files_of

    if not (options.files or options.paths):
        raise ValueError("no files to dump: name them, as in kafkajit dump-log orders-0/*.log")
    check_value_options(options)
    dump = FileDump(_style(options), options)
    failed = False
    for file in files_of(
        options.files, options.paths, options.stdin_name, dict(options.private_keys)
    ):
        name = file.name
        dump.say(f"Dumping {name}", {"kind": "file", "path": name})
        try:
            dump.file(file)
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:
            if options.debug:
                raise
            complain("dump-log", f"{name}: {_reason(error)}")
            failed = True
    sys.stdout.flush()
    if options.format == "json":
        sys.stdout.buffer.writelines(dump.findings.objects())
    else:
        for line in dump.findings.lines():
            print(line, file=sys.stderr)
    return 1 if failed else 0


def _style(options: argparse.Namespace) -> Style:
    from kafkajit.text.log_dump import DECODERS, Style

    chosen = (options.key_decoder_class, options.value_decoder_class)
    decoders = [DECODERS[name or _DEFAULT_DECODER] for name in chosen]
    has_decoder = any((*chosen, options.key_decoder, options.value_decoder, options.topics))
    contents = options.print_data_log or has_decoder
    return Style(
        records=options.deep_iteration or contents,
        contents=contents,
        metadata=not options.skip_record_metadata,
        key_decoder=decoders[0],
        value_decoder=decoders[1],
        json=options.format == "json",
    )


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    # The caller prints the path in front of the message.
    path = getattr(error, "path", None)
    text = str(error).replace(f" in {path}", "", 1)
    return f"{type(error).__name__}: {text}" if path else text
