"""Put a partition's log right after a crash, damage or a bad copy, as a broker would, or gently.

Without --apply nothing is changed, and a line says each thing that would be done. Damage ends a
log: what is behind it goes, as when a broker recovers it; with --salvage only the damaged bytes do.
Indexes, snapshots of producers, leader epochs and checkpoints are made to fit. What is replaced or
removed is kept in a folder .kafkajit-repair-TIME beside the log.

Exit code: 0 where nothing is to be done, or all was done; 2 where something is to be done and
--apply was not given; 1 after an error.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import textwrap
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from kafkajit.cli.progress import Progress

if TYPE_CHECKING:
    from kafkajit.segment.recover import PartitionPlan
    from kafkajit.segment.repairs import Options

EXAMPLE = """\
exit code:
  0 when nothing is to be done, or all was done; 2 when something is to be done
  and --apply was not given; 1 after an error

example:
  kafkajit repair /var/kafka/orders-0
  kafkajit repair --salvage --apply /var/kafka/orders-0
  kafkajit repair --truncate-to 4711 --apply /var/kafka/orders-0
"""

_NEEDED = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What a log is, and what may become of it."""
    parser.add_argument(
        "dir", metavar="DIR", help="a partition's folder, or a log.dirs folder: all in it"
    )
    parser.add_argument(
        "--apply", action="store_true", help="do it; without this option it is only said"
    )
    parser.add_argument(
        "--salvage",
        action="store_true",
        help="keep every sound batch behind damage; without this option a log ends there, and "
        "segments behind it go",
    )
    parser.add_argument(
        "--truncate-to",
        type=int,
        metavar="OFFSET",
        help="cut the log at this offset; the batch that it is in goes too",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the topic's, where it has its own: index.interval.bytes, segment.index.bytes",
    )
    parser.add_argument(
        "--force", action="store_true", help="go on where a broker has locked the folder"
    )


def run(options: argparse.Namespace) -> int:
    """Say what is to be done to each partition, or do it."""
    from kafkajit.segment.lock import FolderLock
    from kafkajit.segment.recover import partitions_at

    asked = _options(options)
    lock = FolderLock(options.dir, force=options.force) if options.apply else nullcontext()
    with lock:
        folders = partitions_at(options.dir)
        if options.truncate_to is not None and len(folders) > 1:
            raise ValueError("--truncate-to is for one log: let DIR be a partition's folder")
        codes = [_repair(folder, asked, options, is_alone=len(folders) == 1) for folder in folders]
    if len(folders) > 1:
        done = "repaired" if options.apply else "to be repaired"
        found = sum(code == _NEEDED for code in codes)
        print(f"{len(folders)} partitions, {found or 'none'} {done}")
    if 1 in codes:
        return 1
    if options.apply or _NEEDED not in codes:
        return 0
    print(f"Nothing was changed. To do it: {_command(options)}")
    return _NEEDED


def _options(options: argparse.Namespace) -> Options:
    from kafkajit.segment.config import LogConfig
    from kafkajit.segment.repairs import Options

    settings = {}
    for setting in options.config:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--config is NAME=VALUE, not {setting!r}")
        settings[name] = value
    return Options(LogConfig.of(settings), options.salvage, options.truncate_to)


def _repair(folder: Path, asked: Options, options: argparse.Namespace, *, is_alone: bool) -> int:
    """One partition; an error is said, and the others are looked at all the same."""
    from kafkajit.segment.recover import plan_of

    try:
        total = sum(path.stat().st_size for path in folder.glob("*.log"))
        read = 0
        with Progress(folder.name, total, before_output=True) as shown:

            def progress(count: int) -> None:
                nonlocal read
                read += count
                shown.update(min(read, total))

            plan = plan_of(folder, asked, progress)
        if plan.is_needed or plan.notes or is_alone:
            _print(plan, asked)
        if plan.is_needed and options.apply:
            kept = plan.carry_out()
            print("  done" + (f"; what was there is kept in {kept}" if kept else ""))
    except (OSError, ValueError) as error:
        if options.debug or is_alone:
            raise
        sys.stdout.flush()
        print(f"kafkajit repair: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return _NEEDED if plan.is_needed else 0


def _print(plan: PartitionPlan, asked: Options) -> None:
    after = f"{_count(plan.segments, 'segment')}, {_size(plan.bytes)}, {_offsets(plan)}"
    if not plan.is_needed:
        print(f"{plan.folder.name}: {after}: nothing to do")
    else:
        print(f"{plan.folder.name}:")
    width = max((len(name) for name, _ in plan.lines), default=0)
    for name, what in plan.lines:
        _print_line(f"  {name:{width}}  ", what)
    for note in plan.notes:
        _print_line("  note: ", note)
    if plan.is_needed:
        print(f"  then: {after}")
    if plan.loses and not asked.salvage:
        _print_line("  ", "with --salvage sound batches behind damage stay")


def _print_line(head: str, text: str) -> None:
    """A line, or more on a terminal that is not wide enough."""
    if not sys.stdout.isatty():
        print(head + text)
        return
    columns = max(shutil.get_terminal_size().columns, len(head) + 20)
    print(textwrap.fill(text, columns, initial_indent=head, subsequent_indent=" " * len(head)))


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else _count(count, "byte")


def _offsets(plan: PartitionPlan) -> str:
    if plan.log_start_offset >= plan.log_end_offset:
        return f"empty at offset {plan.log_end_offset}"
    return f"offsets {plan.log_start_offset} to {plan.log_end_offset - 1}"


def _command(options: argparse.Namespace) -> str:
    words = ["kafkajit", "repair", "--apply"]
    if options.salvage:
        words.append("--salvage")
    if options.truncate_to is not None:
        words += ["--truncate-to", str(options.truncate_to)]
    for setting in options.config:
        words += ["--config", setting]
    return shlex.join([*words, options.dir])
