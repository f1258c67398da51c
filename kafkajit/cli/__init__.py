"""The command `kafkajit`: its subcommands, and what they have in common.

Errors are one line on stderr and a non-zero exit; --debug shows the traceback.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from kafkajit.cli import compact, dump_log, repair, retain, sql, warm_up
from kafkajit.cli.error_text import reason


class _Parser(argparse.ArgumentParser):
    """Refuses arguments in one line and with exit code 1, as Kafka's tools do."""

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.prog}: {message}; see {self.prog} --help\n")


class _Version(argparse.Action):
    """Looks the version up when it is asked for: what does that takes long to import."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("kafkajit")
        except PackageNotFoundError:  # run from a checkout
            found = "(not installed)"
        parser.exit(0, f"kafkajit {found}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = _Parser(
        prog="kafkajit",
        description="Reads, writes and mends Apache Kafka's on-disk log without a broker.",
        epilog="'kafkajit COMMAND --help' shows a command's options.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    _add(commands, "compact", compact)
    _add(commands, "dump-log", dump_log)
    _add(commands, "repair", repair)
    _add(commands, "retain", retain)
    _add(commands, "sql", sql)
    _add(commands, "warm-up", warm_up)
    words = sys.argv[1:] if arguments is None else list(arguments)
    options, unknown = parser.parse_known_args(words)
    if unknown:  # which argparse would say of the whole command, whose --help does not help
        commands.choices[options.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    options.words = words[1:]
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough; nothing more may be flushed into the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if options.debug:
            raise
        print(f"kafkajit: {reason(error)}", file=sys.stderr)
        return 1
    return code


def _add(commands: Any, name: str, module: Any) -> None:
    summary = module.__doc__.partition("\n")[0]
    parser = commands.add_parser(
        name,
        help=summary,
        description=summary,
        epilog=module.EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.set_defaults(run=module.run, command=name)
