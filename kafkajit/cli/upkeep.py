"""What the commands that change logs have in common: whose folders, and what --apply does.

Each DIR is a partition's folder, or a log.dirs folder with several. Without --apply nothing is
touched; with it the folder's lock is held, and each partition is changed whole or not at all.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafkajit.cli.error_text import reason
from kafkajit.cli.progress import CountProgress
from kafkajit.format.moment import milliseconds

if TYPE_CHECKING:
    from kafkajit.change.partition_plan import PartitionPlan

# What each command says at the end of its help.
SAFETY = """\
Stop the broker before --apply. Each partition is changed whole or not at all.
What is replaced or removed is kept in a folder .kafkajit-COMMAND-TIME in the
partition's, which is named when it is done.
"""
EXIT_CODES = """\
exit code:
  0 when nothing is to be done, or all was done; 2 when something is to be done
  and --apply was not given; 1 after an error
"""
_ERROR, NEEDED = 1, 2
TIME_HELP = "what time it is, to try it out: ISO 8601 (in UTC, unless it says) or milliseconds"
_BEHIND = re.compile(r" *(?:\S+ {2,})?")


def add_arguments(parser: argparse.ArgumentParser, config: str) -> None:
    """The arguments that they all have; `config` says which topic configs matter."""
    parser.add_argument(
        "dirs",
        nargs="+",
        metavar="DIR",
        help="a partition's folder, or a log.dirs folder: then all partitions in it",
    )
    parser.add_argument(
        "--apply",
        action="store_true",
        help="do it; without this option nothing is changed, and it is only said",
    )
    parser.add_argument(
        "--config", action="append", default=[], type=_setting, metavar="NAME=VALUE", help=config
    )
    parser.add_argument(
        "--force", action="store_true", help="go on where a broker has locked the folder"
    )
    parser.add_argument(
        "--no-keep",
        dest="keep",
        action="store_false",
        help="keep nothing of what goes or is replaced; without this option its room is not free",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="print the summary alone, and errors on stderr"
    )
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="text (the default), or one JSON object when all is done: command, applied, "
        "partitions, errors",
    )


class Report:
    """What a command prints: lines as it goes and a summary, the summary alone, or one object."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._is_text = options.format == "text"
        self._progress = CountProgress("partitions")
        self._partitions: list[dict[str, Any]] = []
        self._errors: list[str] = []

    def progress(self, done: int, total: int) -> None:
        """So many partitions are done."""
        self._progress.update(done, total)

    def lines(self, lines: Iterable[str]) -> None:
        """Lines about a partition."""
        if self._is_text and not self._options.quiet:
            for line in lines:
                self._progress.clear()
                print_line(line)

    def done(self, kept: Path | None) -> None:
        """Say that a partition is changed, and where what was there is kept."""
        where = f"; what was there is kept in {kept}" if kept else ""
        if self._is_text and not self._options.quiet:
            self._progress.clear()
            print(f"  done{where}")

    def partition(self, plan: PartitionPlan, kept: Path | None) -> None:
        """Remember a partition for the object."""
        if not self._is_text:
            self._partitions.append(
                {
                    "folder": str(plan.folder),
                    "isNeeded": plan.is_needed,
                    "keptIn": str(kept) if kept else None,
                    **plan.document(),
                }
            )

    def error(self, error: Exception) -> None:
        """Say what is wrong with a partition; the others are done all the same."""
        self._progress.clear()
        sys.stdout.flush()
        print(f"kafkajit {self._options.command}: {reason(error)}", file=sys.stderr)
        self._errors.append(reason(error))

    def summary(self, line: str) -> None:
        """A line about all partitions."""
        self._progress.clear()
        if self._is_text:
            print_line(line)

    def end(self, code: int) -> int:
        """Print what is left to say; the command's exit code, of that of its partitions."""
        self._progress.clear()
        options = self._options
        if not self._is_text:
            document = {
                "command": options.command,
                "applied": bool(options.apply),
                "partitions": self._partitions,
                "errors": self._errors,
            }
            print(json.dumps(document))
        elif code == NEEDED and not options.apply:
            words = ["kafkajit", options.command, "--apply", *options.words]
            print(f"Nothing was changed. To do it: {shlex.join(words)}")
        return 0 if code == NEEDED and options.apply else code


def each_partition(
    options: argparse.Namespace,
    change: Callable[[Path, bool], bool],
    report: Report | None = None,
) -> int:
    """Do one partition after the other; 2 where something was to be done, 1 after an error, or 0.

    Args:
        options: of the command.
        change: is given a partition's folder, and whether it is the only one; it returns whether
            something was to be done. An error is said, and the others are done all the same.
        report: is told how far it is, and of errors.
    """
    from kafkajit.change.files import local_folder
    from kafkajit.change.lock import FolderLock
    from kafkajit.change.partitions import partitions_at

    report = report or Report(options)
    places = list(map(local_folder, options.dirs))
    # Or an error that says what DIR is to be, before one of its lock.
    total = sum(len(partitions_at(place)) for place in places)
    is_alone = total == 1
    codes = {0}
    begun = 0

    @contextmanager
    def told(*, raises: bool) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:
            if options.debug or raises:
                raise
            report.error(error)
            codes.add(_ERROR)

    for place in places:
        lock = FolderLock(place, force=options.force) if options.apply else nullcontext()
        with told(raises=len(places) == 1), lock:
            for folder in partitions_at(place):
                begun += 1
                report.progress(begun, total)
                with told(raises=is_alone):
                    codes.add(NEEDED if change(folder, is_alone) else 0)
    return _ERROR if _ERROR in codes else max(codes)


def is_named(folder: Path, options: argparse.Namespace) -> bool:
    """Whether a DIR is this partition's folder, and not a log.dirs folder around it."""
    from kafkajit.change.files import local_folder

    return folder in map(local_folder, options.dirs)


def check_alone(options: argparse.Namespace, name: str) -> None:
    """Refuse an option that is for one partition where none was named."""
    from kafkajit.change.files import local_folder
    from kafkajit.change.partitions import partitions_at

    first, *others = options.dirs
    if others or not is_named(partitions_at(local_folder(first))[0], options):
        raise ValueError(f"{name} is for one log: let DIR be a partition's folder")


def room_of_kept(size: int) -> Iterator[str]:
    """Of all partitions: that what goes has freed nothing, if so many bytes of it are kept."""
    if size:
        yield f"{size:,} bytes are still used by what is kept: remove it, or pass --no-keep"


def print_line(line: str) -> None:
    """A line, or more on a terminal that is not wide enough.

    Those begin under the first, or where a name and two spaces stand in it, behind these.
    """
    if not sys.stdout.isatty():
        print(line)
        return
    behind = line[: _BEHIND.match(line).end()]  # type: ignore[union-attr]
    columns = max(shutil.get_terminal_size().columns, len(behind) + 20)
    print(
        textwrap.fill(
            line[len(behind) :],
            columns,
            initial_indent=behind,
            subsequent_indent=" " * len(behind),
            break_on_hyphens=False,
        )
    )


def time(text: str) -> int:
    """Milliseconds, of what an argument says."""
    try:
        return milliseconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"it is NAME=VALUE, not {text!r}")
    return name.strip(), value.strip()
