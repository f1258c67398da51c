"""Options that the commands of this package share: scale, rounds, and where results go."""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from asv_bench.peers.publish import publish
from asv_bench.peers.record import RECORD, add


def parser_of(module: str | None, description: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the module's docstring, unchanged."""
    name = "asv_bench.peers" + (f".{module}" if module else "")
    return argparse.ArgumentParser(
        prog=f"python -m {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_measuring(
    parser: argparse.ArgumentParser, names: Sequence[str], *, rounds: int, of: str = "segments"
) -> None:
    """Add the options for what to measure, at which scale and how often."""
    parser.add_argument(
        "--scale", type=_positive, default=1, help=f"of all {of}, 0.1 for a tenth (default: 1)"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=names,
        default=names,
        metavar="NAME",
        help=f"what to measure: {', '.join(names)} (default: all)",
    )
    parser.add_argument(
        "--rounds", type=_whole, default=rounds, help=f"passes of each (default: {rounds})"
    )


def add_warm(parser: argparse.ArgumentParser, seconds: float) -> None:
    parser.add_argument(
        "--warm",
        type=float,
        default=seconds,
        metavar="SECONDS",
        help=f"of passes that do not count, for each subject (default: {seconds:g})",
    )


def _positive(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < float(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"expected a number above 0, not {text!r}")


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, not {text!r}")
    return int(text)


def add_record(parser: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Add the options for where results go; options that exclude both may be added to the group."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--json", type=Path, metavar="FILE", help="add the results to FILE")
    where.add_argument(
        "--record",
        action="store_true",
        help="add them to docs/performance/peers.json, and write the pages' tables and charts",
    )
    return where


def keep(options: argparse.Namespace, kind: str, parts: Mapping[str, dict[str, Any]]) -> None:
    """Add results to the file of --json or --record, if one of them was given."""
    path = RECORD if options.record else options.json
    if path:
        add(path, kind, parts)


def finish(options: argparse.Namespace) -> None:
    """Write pages and charts after --record."""
    if options.record:
        publish()
