"""Print log segments exactly as kafka-dump-log.sh does, without a JVM.

Options, lines and exit codes are those of Kafka 4.1.1's DumpLogSegments. Where that throws and
leaves the files behind it unread, this says what is wrong and where, on stderr, and goes on with
the next file; the exit code is 1 all the same. --mode, which Kafka's tool has not, goes on past
damage. What DefaultDecoder decodes is printed as hex, where Java prints the array's address.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kafkajit.cli.progress import Progress
from kafkajit.topics import TOPICS

if TYPE_CHECKING:
    from kafkajit.text import Style

EXAMPLE = """\
example:
  kafkajit dump-log --print-data-log --files orders-0/00000000000000000000.log
"""

# Kafka's options for internal topics, and the kinds of those.
_TOPIC_DECODERS = {
    "offsets-decoder": "offsets",
    "transaction-log-decoder": "transaction_state",
    "cluster-metadata-decoder": "cluster_metadata",
    "share-group-state-decoder": "share_group_state",
    "remote-log-metadata-decoder": "remote_log_metadata",
}
_PACKAGE = "org.apache.kafka.tools.api"
_DEFAULT_DECODER = f"{_PACKAGE}.StringDecoder"
_NO_LIMIT = 2**31 - 1
_MAX_DECOMPRESSED_BYTES = 256 << 20  # as for the other readers, without importing them for --help


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Kafka's options, in its words where they are good."""
    decoders = f"{_PACKAGE}. StringDecoder, LongDecoder, IntegerDecoder or DefaultDecoder"
    parser.add_argument(
        "--files",
        required=True,
        metavar="FILE,...",
        help="comma-separated list of .log and .checkpoint files to dump",
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
        type=int,
        default=_NO_LIMIT,
        metavar="SIZE",
        help="read no more than this many bytes of each file",
    )
    parser.add_argument(
        "--max-decompressed-bytes",
        type=int,
        default=_MAX_DECOMPRESSED_BYTES,
        metavar="SIZE",
        help="what one batch may grow to when it is decompressed (default: %(default)s)",
    )
    for side in ("value", "key"):
        parser.add_argument(
            f"--{side}-decoder-class",
            nargs="?",
            const=_DEFAULT_DECODER,
            metavar="CLASS",
            help=f"how to print {side}s: {decoders} (default: StringDecoder)",
        )
    for name, kind in _TOPIC_DECODERS.items():
        parser.add_argument(
            f"--{name}",
            dest="topics",
            action="append_const",
            const=kind,
            help=f"print records as those of {TOPICS[kind]}; with several such options, of the "
            "logs of this topic only",
        )
    parser.add_argument(
        "--mode",
        type=str.upper,
        choices=("FAILFAST", "DROPMALFORMED", "PERMISSIVE"),
        default="FAILFAST",
        help="what to do about damage: FAILFAST (the default) ends where Kafka's tool does, "
        "DROPMALFORMED leaves bad batches out and goes on where the log does, PERMISSIVE also "
        "prints a line for each gap",
    )


def run(options: argparse.Namespace) -> int:
    """Dump every file; 1 if one of them could not be read to its end."""
    style = _style(options)
    non_consecutive: dict[str, list[tuple[int, int]]] = {}
    failed = False
    for name in re.sub(",+$", "", options.files).split(","):
        _print(f"Dumping {Path(name)}")
        try:
            pairs = _dump(Path(name), style, options)
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:
            if options.debug:
                raise
            sys.stdout.flush()
            print(f"kafkajit dump-log: {Path(name)}: {_reason(error)}", file=sys.stderr)
            failed = True
        else:
            if pairs:
                non_consecutive[str(Path(name).absolute())] = pairs
    sys.stdout.flush()
    for path in sorted(non_consecutive, key=_scala_map_order):
        print(f"Non-consecutive offsets in {path}", file=sys.stderr)
        for first, second in reversed(non_consecutive[path]):
            print(f"  {first} is followed by {second}", file=sys.stderr)
    return 1 if failed else 0


def _style(options: argparse.Namespace) -> Style:
    from kafkajit.text import DECODERS, Style

    chosen = (options.key_decoder_class, options.value_decoder_class)
    decoders = []
    for name in chosen:
        if name is not None and name not in DECODERS:
            raise ValueError(f"unknown decoder class {name}; there are: {', '.join(DECODERS)}")
        decoders.append(DECODERS[name or _DEFAULT_DECODER])
    contents = options.print_data_log or chosen != (None, None) or bool(options.topics)
    return Style(
        records=options.deep_iteration or contents,
        contents=contents,
        metadata=not options.skip_record_metadata,
        key_decoder=decoders[0],
        value_decoder=decoders[1],
    )


def _dump(path: Path, style: Style, options: argparse.Namespace) -> list[tuple[int, int]]:
    """Dump one file; the offsets that are not consecutive."""
    from kafkajit.source import Source
    from kafkajit.text import LogDump
    from kafkajit.topics.kinds import topic_kind

    if not path.suffix:
        raise ValueError("the file's name has no suffix that says what it is")
    if path.suffix not in (".log", ".checkpoint"):
        if path.suffix in (".index", ".timeindex", ".txnindex", ".snapshot"):
            raise ValueError(f"{path.suffix} files cannot be dumped yet")
        sys.stdout.flush()
        print(f"Ignoring unknown file {path}", file=sys.stderr)
        return []
    _print(_heading(path.name))
    source = Source(path)
    if source.content.size > _NO_LIMIT:
        raise ValueError(
            f"the segment's size ({source.content.size}) is larger than Kafka's maximum {_NO_LIMIT}"
        )
    if options.max_bytes < 0:
        raise ValueError(f"Invalid size: {options.max_bytes}")
    kind = _kind(path, options.topics or [])
    dump = LogDump(
        source,
        replace(style, topic=topic_kind(kind) if kind else None),
        max_bytes=options.max_bytes,
        max_decompressed_bytes=options.max_decompressed_bytes,
        mode=options.mode,
    )
    with Progress(path.name, min(source.content.size, options.max_bytes)) as progress:
        for text in dump.text():
            sys.stdout.buffer.write(text)
            progress.update(dump.position)
    if dump.error is not None:
        raise dump.error
    return dump.non_consecutive


def _kind(path: Path, kinds: list[str]) -> str | None:
    """The kind of internal topic that a file's records are read as."""
    from kafkajit.format.log_path import parse_log_path

    if len(set(kinds)) == 1:
        return kinds[0]
    if path.suffix == ".checkpoint":
        topic: str | None = TOPICS["cluster_metadata"]
    else:
        topic = parse_log_path(path.absolute()).topic
    return next((kind for kind in kinds if TOPICS[kind] == topic), None)


def _heading(name: str) -> str:
    """What the file's name says of its contents."""
    if name == "bootstrap.checkpoint":
        return "KRaft bootstrap snapshot"
    snapshot = re.fullmatch(r"(\d{20})-(\d{10}).*\.checkpoint", name)
    if snapshot:
        return f"Snapshot end offset: {int(snapshot[1])}, epoch: {int(snapshot[2])}"
    base_offset = name.split(".")[0]
    if not re.fullmatch(r"[+-]?\d+", base_offset) or int(base_offset) >= 2**63:
        raise ValueError(f"the file's name does not begin with an offset: {base_offset!r}")
    return f"Log starting offset: {int(base_offset)}"


def _print(line: str) -> None:
    sys.stdout.buffer.write(f"{line}\n".encode(errors="surrogateescape"))


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    # The path stands in front of the message already.
    path = getattr(error, "path", None)
    text = str(error).removesuffix(f" in {path}")
    return f"{type(error).__name__}: {text}" if path else text


def _scala_map_order(path: str) -> tuple[int, int]:
    """Where Scala's mutable.HashMap of up to 12 entries keeps a string: Kafka prints in order."""
    hash_ = 0
    utf16 = path.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(utf16), 2):
        hash_ = (31 * hash_ + int.from_bytes(utf16[i : i + 2])) & 0xFFFFFFFF
    improved = hash_ ^ (hash_ >> 16)
    return improved & 15, (improved ^ 0x80000000) - 0x80000000
