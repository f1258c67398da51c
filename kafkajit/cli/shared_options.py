"""Options that several commands have, each with the same name and meaning in all of them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from kafkajit.format.amounts import parse_size
from kafkajit.format.limits import MAX_INT32
from kafkajit.format.moment import option_time

TIME = "ISO 8601 (in UTC without a zone), milliseconds, or a number with s or ms"
_MODES = ("FAILFAST", "DROPMALFORMED", "PERMISSIVE")
# The other readers' limit, spelled here so that --help does not import them.
MAX_DECOMPRESSED_BYTES = 256 << 20


def add_topic_option(parser: argparse.ArgumentParser, default: str = "") -> None:
    """Add --topic; `topics` becomes a list. `default` describes what is read without it."""
    _add_names(parser, "topic", "TOPIC", default)


def add_partition_option(parser: argparse.ArgumentParser, default: str = "") -> None:
    """Add --partition, such as orders-0; `partitions` becomes a list."""
    _add_names(parser, "partition", "TOPIC-PARTITION", default)


def _add_names(parser: argparse.ArgumentParser, noun: str, metavar: str, default: str) -> None:
    end = f" (default: {default})" if default else ""
    parser.add_argument(
        f"--{noun}",
        dest=f"{noun}s",
        action="append",
        default=[],
        metavar=metavar,
        help=f"only this {noun}; may be repeated{end}",
    )


def add_isolation_level_option(
    parser: argparse.ArgumentParser, default: str | None = "read_uncommitted"
) -> None:
    """Add --isolation-level, as Kafka's consumers have it."""
    parser.add_argument(
        "--isolation-level",
        choices=("read_uncommitted", "read_committed"),
        type=str.lower,
        default=default,
        help="read_committed leaves out aborted and unfinished transactions (default: "
        "read_uncommitted)",
    )


def add_mode_option(
    parser: argparse.ArgumentParser, meaning: str, default: str | None = None
) -> None:
    """Add --mode, in any case of letters."""
    parser.add_argument("--mode", choices=_MODES, type=str.upper, default=default, help=meaning)


def add_max_decompressed_bytes_option(parser: argparse.ArgumentParser) -> None:
    """Add --max-decompressed-bytes."""
    parser.add_argument(
        "--max-decompressed-bytes",
        type=Size(1, MAX_INT32),
        default=MAX_DECOMPRESSED_BYTES,
        metavar="SIZE",
        help="the largest size of a decompressed batch (default: 256m)",
    )


def add_private_key_option(parser: argparse.ArgumentParser) -> None:
    """Add --private-key; `private_keys` becomes a list of ids and files."""
    parser.add_argument(
        "--private-key",
        dest="private_keys",
        action="append",
        type=_private_key,
        default=[],
        metavar="ID=FILE",
        help="the private key of segments that are encrypted in tiered storage, and its id",
    )


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


@dataclass(frozen=True)
class Size:
    """Parses an argument as a number of bytes, with a unit or without.

    >>> Size()("1048576"), Size()("128m"), Size()("1GB")
    (1048576, 134217728, 1073741824)
    """

    least: int = 0
    most: int = 1 << 40

    def __call__(self, text: str) -> int:
        try:
            return parse_size(text, self.least, self.most)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None


def number(text: str) -> int:
    """Parse an argument as a number that is not negative."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a number, not {text!r}")
    return int(text)


def time(text: str, *, is_now: bool = False) -> int:
    """Parse an argument as a time in milliseconds."""
    try:
        return option_time(text, is_now=is_now)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def setting(text: str) -> tuple[str, str]:
    """Parse an argument as a name and a value."""
    name, equals, value = text.partition("=")
    if not (name.strip() and equals):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, not {text!r}")
    return name.strip(), value.strip()


def _private_key(text: str) -> tuple[str, str]:
    id_, equals, file = text.partition("=")
    if not (id_ and equals and file):
        raise argparse.ArgumentTypeError(f"expected an id, = and a file, not {text!r}")
    return id_, file
