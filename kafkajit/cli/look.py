"""Colours by meaning, for terminals whose users want them.

--color decides, or NO_COLOR (https://no-color.org), or FORCE_COLOR and CLICOLOR_FORCE, or whether
the text goes to a terminal other than TERM=dumb, in this order.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TextIO

from kafkajit.cli.argument_secrets import hidden
from kafkajit.format.printable import printable

# The meanings, and how terminals show them. A match, a place and what separates them are those of
# GNU grep.
HEADING = "1"  # bold
DAMAGE = MATCH = "1;31"  # bold red
WARNING = "33"  # yellow
QUIET = "2"  # faint
PLACE = "35"  # magenta
OFFSET = "32"  # green
SEPARATOR = "36"  # cyan

# All that a terminal gets; the first one ends the others.
COLOURS = ("0", HEADING, DAMAGE, WARNING, QUIET, PLACE, OFFSET, SEPARATOR)

AUTO, _ALWAYS, _NEVER = "auto", "always", "never"
_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")
_chosen = AUTO


def add_color_option(parser: argparse.ArgumentParser) -> None:
    """Add --color, with the name and the values that grep, ls and git have."""
    parser.add_argument(
        "--color",
        choices=(AUTO, _ALWAYS, _NEVER),
        default=AUTO,
        help="colours: on a terminal unless NO_COLOR is set, always, or never (default: auto)",
    )


def choose(color: str) -> None:
    """Set the value of --color for this process."""
    global _chosen
    _chosen = color


def is_coloured(stream: TextIO | None = None) -> bool:
    """Whether text for this stream, by default standard output, is coloured."""
    if _chosen != AUTO:
        return _chosen == _ALWAYS
    environment = os.environ
    if environment.get("NO_COLOR"):
        return False
    if any(environment.get(name, "0") not in ("", "0") for name in _FORCING):
        return True
    return (stream or sys.stdout).isatty() and environment.get("TERM") != "dumb"


def painted(text: str, meaning: str, stream: TextIO | None = None) -> str:
    """The text in the colour of its meaning, or as it is."""
    return f"{start_of(meaning)}{text}{END}" if text and is_coloured(stream) else text


END = "\x1b[0m"


def start_of(meaning: str) -> str:
    """The characters that switch a colour on; END switches it off."""
    return f"\x1b[{meaning}m"


def complain(command: str | None, text: str, *, has_lines: bool = False) -> None:
    """Print an error or a warning of a command on stderr, after all that was printed before.

    It is one line, whatever the names of files in it have, unless it is an error in a statement,
    which `has_lines`.
    """
    sys.stdout.flush()
    text = hidden(text)
    text = text if has_lines else printable(text)
    name = "kafkajit:" if command is None else f"kafkajit {command}:"
    print(f"{painted(name, DAMAGE, sys.stderr)} {text}", file=sys.stderr)
