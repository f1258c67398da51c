"""Options that several commands have, each with the same name and meaning in all of them."""

from __future__ import annotations

import argparse
import re

from kafkajit.format.moment import milliseconds

TIME = "ISO 8601 (in UTC without a zone) or milliseconds"
_MODES = ("FAILFAST", "DROPMALFORMED", "PERMISSIVE")
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
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
        type=size,
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


def size(text: str) -> int:
    """Parse an argument as a number of bytes, with a unit or without.

    >>> size("1048576"), size("128m"), size("1GB")
    (1048576, 134217728, 1073741824)
    """
    found = re.fullmatch(r"(-?[0-9]+)([kmgt]?)b?", text.strip().lower())
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a number of bytes such as 128m, not {text!r}")
    return int(found[1]) << _UNITS[found[2]]


def number(text: str) -> int:
    """Parse an argument as a number that is not negative."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"expected a number, not {text!r}")
    return int(text)


def time(text: str, *, is_now: bool = False) -> int:
    """Parse an argument as a time in milliseconds."""
    try:
        return milliseconds(text, is_now=is_now)
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
