"""The command `kafkajit`: its subcommands, and what they have in common.

Errors are one line on stderr and a non-zero exit; --debug shows the traceback.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NoReturn

from kafkajit.cli import (
    compact,
    completion,
    dump_log,
    export,
    grep,
    import_,
    info,
    repair,
    report,
    restore,
    retain,
    spark_jar,
    sql,
    tail,
    warm_up,
)
from kafkajit.cli.argument_secrets import hidden, note_secrets
from kafkajit.cli.error_text import reason
from kafkajit.cli.guarded import guard_terminals
from kafkajit.cli.look import AUTO, DAMAGE, choose, complain, painted
from kafkajit.cli.streams import flush_or_forget, forget_output, is_closed, open_closed_streams
from kafkajit.errors import did_you_mean
from kafkajit.format.printable import printable
from kafkajit.system.current_folder import leave_out
from kafkajit.system.pandas_import import leave_out_pandas

# `sample:` are logs that come with kafkajit.
_EXAMPLE = """\
'kafkajit COMMAND --help' shows a command's options and examples.

example:
  kafkajit info sample:
"""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Leaves room for the longest command beside its summary."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=16)
        # argparse measures commands without their indent.
        self._action_max_length = 14


class _Parser(argparse.ArgumentParser):
    """Refuses arguments in one line and with exit code 1, as Kafka's tools do."""

    error_code = 1

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not one of the choices, and propose the nearest."""
        if action.choices is None or value in action.choices:
            return
        choices = list(map(str, action.choices))
        hint = did_you_mean(str(value), choices)
        meant = f" ({hint})" if hint else ""
        raise argparse.ArgumentError(
            action, f"unknown value {value!r}{meant}; there are: {', '.join(choices)}"
        )

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help; argparse ignores the error of a full disk."""
        (file or sys.stderr).write(message)

    def error(self, message: str) -> NoReturn:
        name = painted(f"{self.prog}:", DAMAGE, sys.stderr)
        self.exit(self.error_code, f"{name} {printable(hidden(message))}; see {self.prog} --help\n")


class _Version(argparse.Action):
    """Looks up the version only when asked: importlib.metadata is slow to import."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("kafkajit")
        except PackageNotFoundError:  # run from a checkout
            found = "(not installed)"
        print(f"kafkajit {found}")  # on stdout, for scripts
        parser.exit(0)


def new_parser() -> tuple[_Parser, dict[str, _Parser]]:
    """The parser of all arguments, and those of the commands by their names."""
    parser = _Parser(
        prog="kafkajit",
        description="Reads, writes and repairs Apache Kafka's on-disk log without a broker.",
        epilog=_EXAMPLE,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=_Parser)
    _add(commands, "compact", compact)
    _add(commands, "completion", completion)
    _add(commands, "dump-log", dump_log)
    _add(commands, "export", export)
    _add(commands, "grep", grep)
    _add(commands, "import", import_)
    _add(commands, "info", info)
    _add(commands, "repair", repair)
    _add(commands, "report", report)
    _add(commands, "restore", restore)
    _add(commands, "retain", retain)
    _add(commands, "spark-jar", spark_jar)
    _add(commands, "sql", sql)
    _add(commands, "tail", tail)
    _add(commands, "warm-up", warm_up)
    return parser, commands.choices


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    if arguments is None:  # this process runs nothing but the command
        open_closed_streams()
        guard_terminals()
        leave_out()
    options = None
    try:
        words = sys.argv[1:] if arguments is None else list(arguments)
        note_secrets(words)
        options = _parsed(words)
        if arguments is None and not _runs_spark(options):
            leave_out_pandas()
        code: int = 0 if options is None else options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        forget_output()  # the reader of the pipe has closed it
        return _error_code(options)
    except KeyboardInterrupt:
        if getattr(options, "apply", False):
            complain(
                getattr(options, "command", None),
                "interrupted: each partition is as it was or changed whole: run the command again "
                "without --apply to see what is left to do",
            )
        return 130
    except Exception as error:
        if options is not None and options.debug:
            raise
        what = reason(error)
        if is_closed(error):
            what = "standard output is closed: nothing could be printed"
        flush_or_forget()
        complain(getattr(options, "command", None), what)
        return _error_code(options)
    return code


def _runs_spark(options: argparse.Namespace | None) -> bool:
    """Whether a command runs Spark in this process, which imports pandas by itself."""
    command = getattr(options, "command", None)
    return command in ("sql", "spark-jar") or getattr(options, "spark", None) is not None


def _parsed(words: list[str]) -> argparse.Namespace | None:
    """The options of a command; None if there is no command, and the help is printed instead."""
    parser, commands = new_parser()
    if not words:
        parser.print_help()
        return None
    if words[0] in commands:
        _check_options(commands[words[0]], words[1:])
    try:
        options, rest = parser.parse_known_args(words)
    except SystemExit:  # after --help or --version, which may not have been printed
        sys.stdout.flush()
        raise
    if rest:
        _take(rest, options, commands[options.command])
    options.words = words[1:]
    choose(getattr(options, "color", AUTO))
    return options


def _error_code(options: argparse.Namespace | None) -> int:
    return 1 if options is None else int(options.error_code)


def _check_options(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Refuse options that do not exist, before argparse misses an argument because of them."""
    known = parser._option_string_actions
    options = [word.partition("=")[0] for word in takewhile("--".__ne__, words)]
    unknown = [word for word in options if word[:2] == "--" and " " not in word]
    unknown = [word for word in unknown if word not in known]
    if unknown:
        _refuse(parser, unknown)


def _take(rest: list[str], options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Pass the words behind options to the argument that the command names for them."""
    name = getattr(options, "rest", None)
    unknown = [word for word in rest if word[:1] == "-" and word != "-"]
    if name is None or unknown:
        _refuse(parser, unknown or rest)
    setattr(options, name, [*getattr(options, name), *rest])


def _refuse(parser: argparse.ArgumentParser, words: list[str]) -> NoReturn:
    is_option = words[0][:1] == "-"
    if not is_option:
        parser.error(f"unrecognized arguments: {' '.join(words)}")
    text = f"unknown option{'' if len(words) == 1 else 's'} {', '.join(words)}"
    hint = did_you_mean(words[0], parser._option_string_actions, quoted=False)
    parser.error(f"{text}: {hint}" if hint else text)


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
    parser.error_code = getattr(module, "ERROR_CODE", parser.error_code)
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    rest = getattr(module, "REST", None)
    parser.set_defaults(run=module.run, command=name, rest=rest, error_code=parser.error_code)
