"""The common part of the commands that change logs: folders, --apply and the report.

Each DIR is a partition's folder, or a log.dirs folder with several. Without --apply nothing is
changed. With it, the command holds the folder's lock, and changes each partition whole or not at
all.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from operator import index
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kafkajit.cli.error_text import reason
from kafkajit.cli.look import add_color_option, complain
from kafkajit.cli.readable import print_line
from kafkajit.cli.shared_options import TIME, setting, time
from kafkajit.places.uri import has_secrets
from kafkajit.system.acting import reading_for

if TYPE_CHECKING:
    from kafkajit.change.partition_plan import PartitionPlan

# The end of each command's help.
SAFETY = """\
Stop the broker before --apply. Each partition is changed whole or not at all.
Replaced and removed files are kept in a folder .kafkajit-COMMAND-TIME in the
partition's folder; the command prints its name.
"""
EXIT_CODES = """\
exit code:
  0 if there is nothing to do, or everything was done; 2 if there is something
    to do and --apply was not given; 1 after an error
"""
_ERROR, NEEDED = 1, 2


def add_arguments(parser: argparse.ArgumentParser, config: str) -> None:
    """Add the arguments that these commands share; `config` is the help text of --config."""
    parser.add_argument(
        "dirs",
        nargs="+",
        metavar="DIR",
        help="a partition's folder, or a log.dirs folder with several partitions",
    )
    parser.add_argument(
        "--apply",
        action="store_true",
        help="apply the changes (default: only print them)",
    )
    parser.add_argument(
        "--config", action="append", default=[], type=setting, metavar="NAME=VALUE", help=config
    )
    add_force_option(parser)
    parser.add_argument(
        "--no-keep",
        dest="keep",
        action="store_false",
        help="delete removed and replaced files (default: keep them; they still use disk space)",
    )
    add_output_options(parser)


def add_force_option(parser: argparse.ArgumentParser) -> None:
    """Add --force, of commands that write into a broker's folder."""
    parser.add_argument(
        "--force", action="store_true", help="go on even if a broker has locked the folder"
    )


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of what is printed."""
    parser.add_argument(
        "--quiet", action="store_true", help="print only the summary, and errors on stderr"
    )
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="lines of text, or one JSON object at the end with the fields command, applied, "
        "partitions and errors (default: %(default)s)",
    )
    add_color_option(parser)


def add_now_option(parser: argparse.ArgumentParser) -> None:
    """Add --now, of commands that compare timestamps with the clock."""
    parser.add_argument(
        "--now",
        type=partial(time, is_now=True),
        metavar="TIME",
        help=f"act as if it were this time: {TIME}",
    )


class Report:
    """Prints a command's lines and summary, the summary alone, or one JSON object."""

    def __init__(self, options: argparse.Namespace) -> None:
        from kafkajit.cli.progress import Progress

        self._options = options
        self._is_text = options.format == "text"
        self.progress = Progress()
        self._partitions: list[dict[str, Any]] = []
        self._errors: list[str] = []
        self._notes: dict[str, Any] = {}

    def __enter__(self) -> Report:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.progress.stop()

    def lines(self, lines: Iterable[str]) -> None:
        """Print lines about a partition."""
        if self._is_text and not self._options.quiet:
            for line in lines:
                self.progress.hide()
                print_line(line)

    def done(self, kept: Path | None) -> None:
        """Report that a partition was changed, and the folder of its old files."""
        where = f"; the old files are kept in {kept}" if kept else ""
        self.lines([f"  done{where}"])

    def partition(self, plan: PartitionPlan, kept: Path | None) -> None:
        """Remember a partition for the JSON object."""
        if not self._is_text:
            self.add(
                {
                    "folder": str(plan.folder),
                    "isNeeded": plan.is_needed,
                    "keptIn": str(kept) if kept else None,
                    **plan.document(),
                }
            )

    def add(self, partition: dict[str, Any]) -> None:
        """Remember a partition that is an object for JSON already."""
        self._partitions.append(partition)

    def note(self, name: str, document: dict[str, Any] | list[Any]) -> None:
        """Remember a field of the JSON object that only this command has."""
        self._notes[name] = document

    def warn(self, text: str) -> None:
        """Print a warning on stderr, also with --quiet."""
        self.progress.hide()
        complain(self._options.command, text)

    def error(self, error: Exception) -> None:
        """Report an error in a partition; the command goes on with the others."""
        self.progress.hide()
        complain(self._options.command, reason(error))
        self._errors.append(reason(error))

    def summary(self, line: str) -> None:
        """Print a line about all partitions."""
        self.progress.hide()
        if self._is_text:
            print_line(line)

    def obstacle(self, line: str) -> None:
        """Print a line about something that keeps a broker from starting; JSON lists it."""
        self._notes.setdefault("obstacles", []).append(line)
        self.summary(line)

    def end(self, code: int) -> int:
        """Print the end of the report, and return the command's exit code."""
        self.progress.stop()
        options = self._options
        if not self._is_text:
            document: dict[str, Any] = {
                "command": options.command,
                "applied": bool(options.apply),
                "partitions": self._partitions,
                "errors": self._errors,
                **self._notes,
            }
            print(json.dumps(document, default=index))  # numbers of kernels may be numpy's
        elif code == NEEDED and not options.apply:
            words = ["kafkajit", options.command, "--apply", *options.words]
            to_do = f"To do it: {shlex.join(words)}"
            if any(map(has_secrets, options.words)):
                to_do = "To do it, pass --apply, too."
            if any(place.startswith("sample:") for place in getattr(options, "dirs", ())):
                to_do = "The sample stays as it is: copy it to a folder of your own."
            print(f"Nothing was changed. {to_do}")
        return 0 if code == NEEDED and options.apply else code


def each_partition(
    options: argparse.Namespace,
    change: Callable[[Path, bool], bool],
    report: Report,
) -> int:
    """Handle one partition after the other, and return the exit code: 0, 1 or 2 as in the help.

    Args:
        options: the command's options.
        change: called with a partition's folder and whether it is the only one; returns
            whether there was something to do. Its errors are reported, and do not stop the
            other partitions.
        report: receives progress and errors.
    """
    from kafkajit.change.files import local_folder
    from kafkajit.change.lock import FolderLock
    from kafkajit.change.partitions import partitions_at
    from kafkajit.places.listing import report_beside

    codes = {0}
    begun = 0

    def leave_out(error: Exception) -> None:
        report.error(error)
        codes.add(_ERROR)

    @contextmanager
    def reported(*, raises: bool) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:
            if options.debug or raises:
                raise
            leave_out(error)

    places = list(map(local_folder, options.dirs))
    # Report a DIR that is not a folder of logs before a lock that another process holds.
    folders: set[tuple[str, Path]] = set()
    readable = []
    for place in places:
        try:
            folders.update(map(_identity, partitions_at(place)))
            readable.append(place)
        except OSError as error:
            is_wrong = isinstance(error, (FileNotFoundError, NotADirectoryError))
            if options.debug or is_wrong or len(places) == 1:
                raise
            leave_out(error)
    total, is_alone = len(folders), len(folders) == 1
    handled = set()  # several DIRs may lead to one folder
    for place in readable:
        if partitions_at(place) != [place]:
            report_beside(str(place), leave_out)
        lock = FolderLock(place, force=options.force) if options.apply else nullcontext()
        with reported(raises=len(places) == 1), lock:
            for folder in partitions_at(place):
                if _identity(folder) in handled:
                    continue
                handled.add(_identity(folder))
                begun += 1
                report.progress.count(begun - 1, total, "partitions")
                with reported(raises=is_alone), reading_for(folder):
                    codes.add(NEEDED if change(folder, is_alone) else 0)
    return _ERROR if _ERROR in codes else max(codes)


def _identity(folder: Path) -> tuple[str, Path]:
    """The partition and the folder that a path leads to: links may give one to two partitions."""
    return folder.name, folder.resolve()


def is_named(folder: Path, options: argparse.Namespace) -> bool:
    """Whether a DIR is this partition's folder, and not a log.dirs folder around it."""
    from kafkajit.change.files import local_folder

    return folder in map(local_folder, options.dirs)


def check_alone(options: argparse.Namespace, name: str) -> None:
    """Refuse an option for one partition if DIR is not a partition's folder."""
    from kafkajit.change.files import local_folder
    from kafkajit.change.partitions import partitions_at

    first, *others = options.dirs
    if others or not is_named(partitions_at(local_folder(first))[0], options):
        raise ValueError(f"{name} is for one log: pass a partition's folder as DIR")


def room_of_kept(size: int) -> Iterator[str]:
    """Yield a line about the disk space of the kept files, if there are any."""
    if size:
        yield f"the kept files still use {size:,} bytes: remove them, or pass --no-keep"
