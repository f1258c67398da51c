"""Compact logs as a broker's cleaner does: of each key the last record stays.

A line says of each segment what stays; to find out takes as long as to do it. A topic's configs are
not in its log's folder: what is not given with --config is Kafka's default. Logs that a broker has
compacted before are known by cleaner-offset-checkpoint. Others are left alone, unless the folder is
named and --config cleanup.policy=compact is given: of a topic that is not compacted, records would
be lost. What is replaced is kept in a folder .kafkajit-compact-TIME beside the log, unless
--no-keep is given.

Exit code: 0 where nothing is to be done, or all was done; 2 where something is to be done and
--apply was not given; 1 after an error.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from kafkajit.cli import upkeep as changing
from kafkajit.cli.progress import Progress

if TYPE_CHECKING:
    from kafkajit.upkeep.compact.options import CompactOptions
    from kafkajit.upkeep.compact.plan import PartitionCompaction

REST = "dirs"
EXAMPLE = f"""\
{changing.SAFETY}
{changing.EXIT_CODES}
examples:
  kafkajit compact /var/kafka
  kafkajit compact --apply /var/kafka/users-0
  kafkajit compact --config cleanup.policy=compact --apply /tmp/users-0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Kafka's options, in its words."""
    changing.add_arguments(
        parser,
        "how the topic is compacted: cleanup.policy, delete.retention.ms, min.compaction.lag.ms, "
        "segment.bytes, segment.index.bytes, index.interval.bytes",
    )
    parser.add_argument(
        "--dedupe-buffer-size",
        type=int,
        default=128 << 20,
        metavar="BYTES",
        help="memory for the keys, as log.cleaner.dedupe.buffer.size; by default 134217728, for "
        "five million of them. Where there are more, the log is read more often",
    )
    parser.add_argument("--now", type=changing.time, metavar="TIME", help=changing.TIME_HELP)


def run(options: argparse.Namespace) -> int:
    """Say what stays of each partition, or make it so."""
    from kafkajit.log.config import LogConfig
    from kafkajit.upkeep.compact.options import CompactOptions

    settings = dict(options.config)
    config = LogConfig.of(settings)
    if "cleanup.policy" in settings and not config.compact:
        raise ValueError(f"with cleanup.policy={settings['cleanup.policy']} nothing is compacted")
    asked = CompactOptions.of(
        config, now=options.now, dedupe_buffer_size=options.dedupe_buffer_size
    )
    report = changing.Report(options)
    compacting = _Compacting(options, asked, report)
    code = changing.each_partition(options, compacting.partition, report)
    compacting.summary()
    return report.end(code)


class _Compacting:
    """One partition after the other, and what is said of all of them."""

    def __init__(
        self, options: argparse.Namespace, asked: CompactOptions, report: changing.Report
    ) -> None:
        self._options = options
        self._report = report
        self._asked = asked
        self._plans: list[PartitionCompaction] = []
        self._kept = 0  # bytes

    def partition(self, folder: Path, is_alone: bool) -> bool:
        from kafkajit.upkeep.compact.plan import plan_of

        is_named = changing.is_named(folder, self._options)
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
        """Do it, or find out; where what was there is kept."""
        with Progress(plan.folder.name, max(plan.bytes_to_read, 1)) as shown:
            read = 0

            def progress(count: int) -> None:
                nonlocal read
                read = min(read + count, plan.bytes_to_read)
                shown.update(read)

            plan.progress = progress
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
        for line in changing.room_of_kept(self._kept):
            self._report.summary(line)
