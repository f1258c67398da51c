"""Compact logs as a broker's cleaner does: keep the last record of each key.

The command prints a line for each segment, with what stays of it. Planning takes as long as
compacting. A topic's configs are not in its log's folder: pass them with --config, or Kafka's
defaults apply. The file cleaner-offset-checkpoint lists the logs that a broker has compacted
before. All others are left alone, because a topic that is not compacted would lose records; to
compact one, name its folder and pass --config cleanup.policy=compact. Replaced files are kept in a
folder .kafkajit-compact-TIME beside the log, unless --no-keep is given.

Exit code: 0 if there is nothing to do, or everything was done; 2 if there is something to do and
--apply was not given; 1 after an error.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from kafkajit.cli import upkeep_command
from kafkajit.cli.shared_options import Size

if TYPE_CHECKING:
    from kafkajit.upkeep.compact.options import CompactOptions
    from kafkajit.upkeep.compact.plan import PartitionCompaction

REST = "dirs"
EXAMPLE = f"""\
{upkeep_command.SAFETY}
{upkeep_command.EXIT_CODES}
examples:
  kafkajit compact /var/kafka
  kafkajit compact --apply /var/kafka/users-0
  kafkajit compact --config cleanup.policy=compact --apply /tmp/users-0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments, named as Kafka names them."""
    upkeep_command.add_arguments(
        parser,
        "how the topic is compacted: cleanup.policy, delete.retention.ms, min.compaction.lag.ms, "
        "segment.bytes, segment.index.bytes, index.interval.bytes",
    )
    parser.add_argument(
        "--dedupe-buffer-size",
        type=Size(1, 1 << 40),
        default=128 << 20,
        metavar="SIZE",
        help="memory for the keys, as log.cleaner.dedupe.buffer.size (default: 128m, enough for "
        "five million keys); a log with more keys is read several times",
    )
    upkeep_command.add_now_option(parser)


def run(options: argparse.Namespace) -> int:
    """Report the records that each partition keeps, and with --apply compact it."""
    from kafkajit.log.config import LogConfig
    from kafkajit.upkeep.compact.options import CompactOptions

    settings = dict(options.config)
    config = LogConfig.of(settings)
    if "cleanup.policy" in settings and not config.compact:
        raise ValueError(f"with cleanup.policy={settings['cleanup.policy']} nothing is compacted")
    asked = CompactOptions.of(
        config, now=options.now, dedupe_buffer_size=options.dedupe_buffer_size
    )
    with upkeep_command.Report(options) as report:
        compacting = _Compacting(options, asked, report)
        code = upkeep_command.each_partition(options, compacting.partition, report)
        compacting.summary()
        return report.end(code)


class _Compacting:
    """Compacts one partition after the other, and sums up all of them."""

    def __init__(
        self, options: argparse.Namespace, asked: CompactOptions, report: upkeep_command.Report
    ) -> None:
        self._options = options
        self._report = report
        self._asked = asked
        self._plans: list[PartitionCompaction] = []
        self._kept = 0  # bytes

    def partition(self, folder: Path, is_alone: bool) -> bool:
        from kafkajit.upkeep.compact.plan import plan_of

        is_named = upkeep_command.is_named(folder, self._options)
        plan = plan_of(folder, self._asked, is_named=is_named)
        self._plans.append(plan)
        kept = self._compact(plan) if plan.is_needed else None
        if plan.left_alone is None and (plan.is_needed or is_alone):
            self._report.lines(plan.lines)
        if plan.is_needed and self._options.apply:
            self._kept += sum(s.bytes_before for s in plan.segments if s.is_changed and kept)
            self._report.done(kept)
        self._report.partition(plan, kept)
        return plan.is_needed

    def _compact(self, plan: PartitionCompaction) -> Path | None:
        """Apply the plan if asked to; return the folder of the replaced files."""
        plan.report_to(self._report.progress.update)
        if self._options.apply:
            return plan.apply(keep=self._options.keep)
        plan.find_out()
        return None

    def summary(self) -> None:
        plans = self._plans
        left_alone = Counter(plan.left_alone for plan in plans if plan.left_alone is not None)
        for reason, count in left_alone.items():
            partitions = "1 partition" if count == 1 else f"{count} partitions"
            self._report.summary(f"{partitions} left alone: {reason}")
        if len(plans) > 1 or self._options.quiet:
            needed = [plan for plan in plans if plan.is_needed]
            before = sum(s.bytes_before for plan in needed for s in plan.segments)
            after = sum(s.bytes for plan in needed for s in plan.segments)
            done = "compacted" if self._options.apply else "to compact"
            sizes = f" from {before:,} to {after:,} bytes" if needed else ""
            places = "1 partition" if len(plans) == 1 else f"{len(plans):,} partitions"
            self._report.summary(f"{places}, {len(needed) or 'none'} {done}{sizes}")
        for line in upkeep_command.room_of_kept(self._kept):
            self._report.summary(line)
