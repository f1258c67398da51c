"""What the commands of this package have in common: how they are described, and keep results."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asv_bench.peers.publish import publish
from asv_bench.peers.record import RECORD, add


def parser_of(module: str | None, description: str | None) -> argparse.ArgumentParser:
    """A parser whose help is the module's docstring, as it stands there."""
    name = "asv_bench.peers" + (f".{module}" if module else "")
    return argparse.ArgumentParser(
        prog=f"python -m {name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_record(parser: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Where results go besides the terminal; what else goes with neither may be added."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--json", type=Path, metavar="FILE", help="add the results to FILE")
    where.add_argument(
        "--record",
        action="store_true",
        help="add them to docs/performance/peers.json, and write the pages' tables and charts",
    )
    return where


def keep(options: argparse.Namespace, kind: str, parts: Mapping[str, dict[str, Any]]) -> None:
    """Add results to the file that was asked for, if one was."""
    path = RECORD if options.record else options.json
    if path:
        add(path, kind, parts)


def finish(options: argparse.Namespace) -> None:
    """Write pages and charts, if the results are theirs."""
    if options.record:
        publish()
