"""Repair a partition's log after a crash, damage or a bad copy.

Without --apply the command changes nothing, and each line names one change to make. Damage ends a
log: the command removes everything behind it, as a broker's recovery does, or with --salvage only
the damaged bytes. It updates indexes, producer snapshots, leader epochs and checkpoints to match.
It keeps replaced and removed files in a folder .kafkajit-repair-TIME beside the log, unless
--no-keep is given. It leaves a file that is not a Kafka log alone, unless --discard names it.

Exit code: 0 if a broker would load the folder unchanged, or everything was done; 2 if there is
something to do and --apply was not given; 1 after an error, if records are missing that no repair
brings back, such as those of a segment without a file, or if something that the command leaves
alone keeps a broker from starting.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kafkajit.cli import upkeep_command
from kafkajit.format.amounts import number_of

if TYPE_CHECKING:
    from kafkajit.upkeep.repair.options import RepairOptions
    from kafkajit.upkeep.repair.plan import PartitionRepair

REST = "dirs"
EXAMPLE = f"""\
{upkeep_command.SAFETY}
exit code:
  0 if a broker would load the folder unchanged, or everything was done
  1 after an error, or if records are missing that no repair brings back (unless
    --allow-missing is given), or if something that is left alone keeps a broker
    from starting
  2 if there is something to do and --apply was not given

examples:
  kafkajit repair /var/kafka/orders-0
  kafkajit repair --salvage --apply /var/kafka/orders-0
  kafkajit repair --truncate-to 4711 --apply /var/kafka/orders-0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    upkeep_command.add_arguments(
        parser, "the topic's own configs, if it has any: index.interval.bytes, segment.index.bytes"
    )
    parser.add_argument(
        "--salvage",
        action="store_true",
        help="keep every sound batch behind damage (default: the log ends at the damage, and the "
        "segments behind it are removed)",
    )
    for verb, name in (("abort", "ABORT"), ("commit", "COMMIT")):
        parser.add_argument(
            f"--{verb}-open",
            action="store_true",
            help=f"with --salvage, write the {name} marker of each transaction whose marker is "
            "lost or probably lost, at an offset that is missing",
        )
        parser.add_argument(
            f"--{verb}-producer",
            action="append",
            default=[],
            type=int,
            metavar="ID",
            help="the same for the transactions of this producer, even if their marker may be "
            "lost only; this option wins over --abort-open and --commit-open",
        )
    parser.add_argument(
        "--discard",
        action="append",
        default=[],
        metavar="FILE",
        help="replace this segment, which is not a Kafka log, by an empty one, and keep the file; "
        "without this option a partition with such a file is left alone",
    )
    parser.add_argument(
        "--allow-missing",
        action="store_true",
        help="exit with 0 or 2 even if records are missing that no repair brings back, such as "
        "those of a segment without a file (default: exit with 1)",
    )
    parser.add_argument(
        "--truncate-to",
        type=int,
        metavar="OFFSET",
        help="cut the log at this offset, and remove the batch that contains it",
    )


def run(options: argparse.Namespace) -> int:
    """Report the changes that each partition needs, and with --apply make them."""
    from kafkajit.change.files import local_folder
    from kafkajit.change.lock import log_dirs_of
    from kafkajit.change.partitions import partitions_at
    from kafkajit.log.config import LogConfig
    from kafkajit.upkeep.repair.broker_folders import duplicates_in
    from kafkajit.upkeep.repair.broker_start import foreign_folders
    from kafkajit.upkeep.repair.options import Producers, RepairOptions
    from kafkajit.upkeep.repair.plan import check_producers, discarded

    if options.discard and not options.keep:
        raise ValueError("--discard keeps what it replaces: leave --no-keep out")
    folders = [folder for place in options.dirs for folder in partitions_at(local_folder(place))]
    discard = discarded(options.discard, folders) if options.discard else frozenset()
    config = LogConfig.of(dict(options.config))
    asked = RepairOptions(
        config,
        options.salvage,
        options.truncate_to,
        discard,
        Producers(options.abort_open, frozenset(options.abort_producer)),
        Producers(options.commit_open, frozenset(options.commit_producer)),
    )
    with upkeep_command.Report(options) as report:
        needed: list[bool] = []
        plans: list[PartitionRepair] = []
        told: set[str] = set()
        troubled: list[Path] = []
        places = list(map(local_folder, options.dirs))
        has_obstacles = False
        is_one = len({log_dirs_of(place) for place in places}) == 1

        def repair(folder: Path, is_alone: bool) -> bool:
            nonlocal has_obstacles
            needed.append(False)
            title = folder.name if is_one else str(folder)
            plan = _repair(folder, title, asked, options, report, told, is_alone=is_alone)
            plans.append(plan)
            has_obstacles |= bool(plan.obstacles) or plan.lacks_markers
            needed[-1] = plan.is_needed
            if plan.has_trouble:
                troubled.append(folder)
            return needed[-1]

        if options.truncate_to is not None:
            upkeep_command.check_alone(options, "--truncate-to")
        code = upkeep_command.each_partition(options, repair, report)
        if len(needed) > 1 or options.quiet:
            done = "repaired" if options.apply else "to be repaired"
            partitions = "1 partition" if len(needed) == 1 else f"{len(needed):,} partitions"
            report.summary(f"{partitions}, {sum(needed) or 'none'} {done}")
        for place in places:
            for name in foreign_folders(place):
                has_obstacles = True
                text = f"{place / name}: a broker does not start: move this folder away"
                report.obstacle(text)
        for twice in duplicates_in(places):
            has_obstacles |= twice.is_certain
            report.obstacle(twice.text)
        try:
            check_producers(asked, plans)
        except ValueError as error:
            has_obstacles = True
            report.obstacle(str(error))
        if troubled and (len(needed) > 1 or options.quiet):
            report.summary(f"{number_of(len(troubled), 'partition')}: records are missing")
        code = report.end(code)
        return 1 if has_obstacles or (troubled and not options.allow_missing) else code


def _repair(
    folder: Path,
    title: str,
    asked: RepairOptions,
    options: argparse.Namespace,
    report: upkeep_command.Report,
    told: set[str],
    *,
    is_alone: bool,
) -> PartitionRepair:
    """Repair one partition; return the plan for it.

    `told` has the notes about the log.dirs folder that were printed before.
    """
    from kafkajit.upkeep.repair.plan import log_size, plan_of

    plan = plan_of(folder, asked, report.progress.adding(folder.name, log_size(folder)))
    news = [note for note in plan.notes + plan.obstacles if note not in told]
    if plan.is_needed or plan.has_trouble or news or is_alone:
        lines = plan.lines_as(title)
        report.lines(line for line in lines if line.removeprefix("  obstacle: ") not in told)
        told.update(note for note in news if note.startswith(f"{folder.parent}/"))
    kept = None
    if plan.is_needed and options.apply:
        kept = plan.apply(keep=options.keep)
        report.done(kept)
    report.partition(plan, kept)
    return plan
