"""The option of commands that read encrypted segments in tiered storage."""

from __future__ import annotations

import argparse


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


def _private_key(text: str) -> tuple[str, str]:
    id_, equals, file = text.partition("=")
    if not (id_ and equals and file):
        raise argparse.ArgumentTypeError(f"expected an id, = and a file, not {text!r}")
    return id_, file
