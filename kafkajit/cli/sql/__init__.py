"""Query folders of logs in SQL; the command starts its own Spark.

Without a statement the command opens a prompt. Results are printed as a table on a terminal, and as
complete CSV in a pipe, for programs.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkajit.cli.destination import add_force_option, destination, packed
from kafkajit.cli.look import add_color_option, complain
from kafkajit.cli.problems import Problems
from kafkajit.cli.shared_options import (
    add_isolation_level_option,
    add_mode_option,
    add_spark_options,
    number,
    setting,
)
from kafkajit.cli.sql.view_names import BINARY, FORMATS, TOPICS_DOC, VIEW_DOCS
from kafkajit.cli.streams import is_closed
from kafkajit.format.suffixes import JSONL, FileFormat, format_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafkajit.cli.sql.statements import Statement
    from kafkajit.cli.sql.views import Logs

_VIEWS = "\n".join(f"  {name:20}{doc}" for name, doc in (*VIEW_DOCS.items(), TOPICS_DOC))

EXAMPLE = f"""\
views over the logs:
{_VIEWS}

examples:
  kafkajit sql --path /var/kafka
  kafkajit sql --path /var/kafka/orders-* "SELECT count(*) FROM records"
  kafkajit sql --path /var/kafka/orders-0 \\
      "SELECT min(timestamp), count(*) FROM records"
  kafkajit sql --path /var/kafka \\
      "SELECT explode(kafka_records(content)) FROM binaryFile"
  kafkajit sql --path /var/kafka --format parquet -o orders.parquet \\
      "SELECT * FROM records WHERE topic = 'orders'"
"""  # noqa: S608  examples of SQL to type


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options, and those that it passes to the data source and to Spark."""
    parser.add_argument(
        "statement",
        nargs="?",
        metavar="SQL",
        help="statements, separated by semicolons (default: open a prompt)",
    )
    parser.add_argument(
        "--path",
        action=_Paths,
        nargs="+",
        default=[],
        metavar="PATH",
        help="a log.dirs folder, a partition's folder, a segment or a glob. Several may follow, "
        "and the option may be repeated. If several words follow, the last one is the SQL if it "
        "contains a space and no such path exists",
    )
    parser.add_argument(
        "-f", "--file", metavar="FILE", help="read the statements from a file; - is standard input"
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        metavar="FORMAT",
        help=f"the format of results: {', '.join(FORMATS)} (default: table on a terminal, csv "
        "elsewhere)",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write to a new file instead of standard output; its name may end in .csv, .json, "
        ".csv.gz, .json.zst, .arrow or .parquet",
    )
    add_force_option(parser)
    parser.add_argument(
        "--no-header", action="store_true", help="write csv without the line of columns' names"
    )
    parser.add_argument(
        "--rows",
        type=number,
        default=40,
        metavar="N",
        help="how many rows table and line show (default: 40)",
    )
    add_mode_option(
        parser,
        "at a damaged batch: FAILFAST stops, DROPMALFORMED skips it, PERMISSIVE skips it and adds "
        "a row that reports it (default: FAILFAST)",
    )
    add_isolation_level_option(parser, default=None)
    parser.add_argument(
        "--option",
        action="append",
        type=setting,
        default=[],
        metavar="NAME=VALUE",
        help="an option of the data source kafkaLog, as startingTimestamp=2025-11-05T12:00:00Z",
    )
    add_spark_options(parser)
    parser.set_defaults(ends_in_words=False)
    add_color_option(parser)


class _Paths(argparse.Action):
    """Takes paths, and remembers whether the last of them may be the statement."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        _option_string: str | None = None,
    ) -> None:
        words = list(values or ())
        namespace.path = [*namespace.path, *words]
        namespace.ends_in_words = len(words) > 1


def _take_statement(options: argparse.Namespace) -> None:
    """Move the statement out of the paths, if it is behind several that a shell's glob gave."""
    if options.statement is not None or options.file is not None or not options.ends_in_words:
        return
    last = options.path[-1]
    if re.search(r"\s", last.strip()) and not os.path.lexists(last):
        options.statement = options.path.pop()


def run(options: argparse.Namespace) -> int:
    """Run the given statements, or the prompt; return 1 if a statement has failed."""
    from kafkajit.cli.sql.cancellable import Terminated, terminable

    try:
        with terminable():
            return _run(options)
    except Terminated:
        return 143


def _run(options: argparse.Namespace) -> int:
    from kafkajit.cli.sql.error_report import report_of
    from kafkajit.cli.sql.query import Engine
    from kafkajit.cli.sql.shell import Failed, Shell

    statement = None
    try:
        _take_statement(options)
        statements = _statements(options)
        format_, codec = _format(options, is_prompt=statements is None)
        problems = Problems(options.command)
        logs = _logs(options, problems)
        engine = Engine(logs, partial(_start, options))
        if statements is None:
            from kafkajit.cli.sql.prompt import Prompt

            shell = Shell(engine, sys.stdout.buffer, format_, options.rows, in_prompt=True)
            return problems.code(Prompt(shell, logs).run())
        with destination(options.output, force=options.force) as file, packed(file, codec) as out:
            engine.start()
            shell = Shell(engine, out, format_, options.rows, debug=options.debug)
            shell.has_header = not options.no_header
            for statement in statements:
                shell.run(statement)
    except BrokenPipeError:
        raise
    except Failed as failed:
        complain("sql", f"{_where(options, statement)}{failed}", has_lines=True)
        return 1
    except Exception as error:
        if options.debug or is_closed(error):
            raise
        complain("sql", report_of(error, "").message, has_lines=True)
        return 1
    return problems.code()


def _statements(options: argparse.Namespace) -> list[Statement] | None:
    """The statements to run; None if a prompt asks for them."""
    from kafkajit.cli.sql.statements import split
    from kafkajit.storage.named_file import read_named

    if options.statement is not None and options.file is not None:
        raise ValueError("statements are given twice: as an argument and with --file")
    if options.statement is not None:
        text = options.statement
    elif options.file not in (None, "-"):
        text = read_named(options.file).decode("utf-8").replace("\r\n", "\n")
    elif options.file == "-" or not sys.stdin.isatty():
        text = sys.stdin.read()
    else:
        return None
    whole, rest = split(text)
    return [*whole, rest] if rest else whole


def _format(options: argparse.Namespace, *, is_prompt: bool) -> tuple[str, str | None]:
    """The format of results and its codec: by --format, else by the file's suffix."""
    if options.rows < 1:
        raise ValueError(f"--rows must be at least 1, not {options.rows}")
    if is_prompt and (options.output or options.format in BINARY):
        raise ValueError("--output and binary formats need a statement: pass one, or --file")
    named, codec = FileFormat() if options.output is None else format_in(options.output)
    if options.format is not None:
        format_ = str(options.format)
    elif named is not None:
        format_ = "json" if named == JSONL else named
    elif options.output is None:
        format_ = "table" if sys.stdout.isatty() else "csv"
    elif Path(options.output).suffix:
        raise ValueError(
            f"the format of {options.output} is not known: pass --format, or a name that ends in "
            ".csv, .json, .arrow or .parquet"
        )
    else:
        format_ = "csv"
    if options.no_header and (format_ != "csv" or is_prompt):
        raise ValueError(
            "--no-header is for csv and for a statement on the command line: pass --format csv, "
            "or leave it out"
        )
    if format_ not in FORMATS:
        raise ValueError(f"sql does not write {format_}: kafkajit export does")
    if codec is not None and format_ in BINARY:
        raise ValueError(f"{options.output} is not a name for {format_}, which is not compressed")
    if format_ in BINARY and options.output is None and sys.stdout.isatty():
        raise ValueError(
            f"{format_} cannot be shown on a terminal: write it to a file with --output"
        )
    return format_, codec


def _logs(options: argparse.Namespace, problems: Problems) -> Logs | None:
    """The place of the logs, if there are any."""
    from kafkajit.cli.sql.views import Logs

    given = dict(options.option)
    for name in ("mode", "isolationLevel"):
        value = getattr(options, re.sub("[A-Z]", r"_\g<0>", name).lower())
        if value is not None:
            given[name] = value
    if not options.path:
        if given:
            raise ValueError(f"{', '.join(given)} needs --path: name the logs to read")
        return None
    logs = Logs(options.path, given, problems.add)
    logs.leave_out_empty(problems.add)
    logs.find_segments()
    return logs


def _start(options: argparse.Namespace) -> SparkSession:
    from kafkajit.spark import local_session

    return local_session(verbose=options.verbose, conf=dict(options.conf))


def _where(options: argparse.Namespace, statement: Statement | None) -> str:
    if options.file is None or statement is None:
        return ""
    return f"{options.file}, line {statement.line}: "
