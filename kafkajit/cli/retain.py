"""Delete old segments as a broker does: by time, by size or by log start offset.

The command deletes the segments that Kafka 4.1.1 would delete from the same log, and prints the
reason for each. A topic's configs are not in its log's folder: only the limits given with --config
apply. Logs of compacted topics, of internal topics and of topics in tiered storage are left alone;
to delete from one, name its folder and pass --config cleanup.policy=delete or
remote.storage.enable=false. Deleted files are kept in a folder .kafkajit-retain-TIME beside the
log, unless --no-keep is given.

Exit code: 0 if there is nothing to do, or everything was done; 2 if there is something to do and
--apply was not given; 1 after an error.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from kafkajit.cli import upkeep_command

if TYPE_CHECKING:
    from kafkajit.upkeep.retain.options import RetainOptions
    from kafkajit.upkeep.retain.plan import PartitionRetention

_LIMITS = {"retention.ms", "retention.bytes"}
REST = "dirs"
EXAMPLE = f"""\
{upkeep_command.SAFETY}
{upkeep_command.EXIT_CODES}
examples:
  kafkajit retain --config retention.ms=604800000 /var/kafka/orders-0
  kafkajit retain --config retention.bytes=10737418240 --apply /var/kafka
  kafkajit retain --log-start-offset 4711 --apply /var/kafka/orders-0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments, named as Kafka names them."""
    upkeep_command.add_arguments(
        parser,
        "the limits, and other configs of the topic: retention.ms, retention.bytes, "
        "cleanup.policy, remote.storage.enable",
    )
    parser.add_argument(
        "--log-start-offset",
        type=int,
        metavar="OFFSET",
        help="delete the records before this offset, as kafka-delete-records.sh does; -1 is the "
        "high watermark",
    )
    upkeep_command.add_now_option(parser)


def run(options: argparse.Namespace) -> int:
    """Report the segments that each partition loses, and with --apply delete them."""
    from kafkajit.upkeep.retain.options import RetainOptions

    settings = dict(options.config)
    limits = RetainOptions.of(settings, log_start_offset=options.log_start_offset, now=options.now)
    if options.log_start_offset is None and not _LIMITS & settings.keys():
        raise ValueError(
            "no limit was given: pass --config retention.ms=…, --config retention.bytes=… or "
            "--log-start-offset"
        )
    if options.log_start_offset is not None:
        upkeep_command.check_alone(options, "--log-start-offset")
    with upkeep_command.Report(options) as report:
        retaining = _Retaining(options, limits, report)
        code = upkeep_command.each_partition(options, retaining.partition, report)
        retaining.summary()
        return report.end(code)


class _Retaining:
    """Expires one partition after the other, and sums up all of them."""

    def __init__(
        self, options: argparse.Namespace, limits: RetainOptions, report: upkeep_command.Report
    ) -> None:
        self._options = options
        self._report = report
        self._limits = limits
        self._plans: list[PartitionRetention] = []
        self._kept = 0  # bytes

    def partition(self, folder: Path, is_alone: bool) -> bool:
        from kafkajit.upkeep.retain.plan import plan_of

        is_named = upkeep_command.is_named(folder, self._options)
        plan = plan_of(folder, self._limits, is_named=is_named)
        self._plans.append(plan)
        if plan.left_alone is None and (is_alone or plan.is_needed or plan.notes):
            self._report.lines(plan.lines)
        kept = None
        if plan.is_needed and self._options.apply:
            kept = plan.apply(keep=self._options.keep)
            self._kept += plan.expired_size if kept else 0
            self._report.done(kept)
        self._report.partition(plan, kept)
        return plan.is_needed

    def summary(self) -> None:
        plans = self._plans
        left_alone = Counter(
            (plan.folder.name.rpartition("-")[0], plan.left_alone)
            for plan in plans
            if plan.left_alone is not None
        )
        for (topic, reason), count in left_alone.items():
            partitions = "1 partition" if count == 1 else f"{count} partitions"
            self._report.summary(f"{topic}: {partitions} left alone: {reason}")
        if len(plans) > 1 or self._options.quiet:
            done = "deleted" if self._options.apply else "to delete"
            places = "1 partition" if len(plans) == 1 else f"{len(plans):,} partitions"
            self._report.summary(
                f"{places}, {sum(len(plan.expired) for plan in plans):,} of "
                f"{sum(plan.segments for plan in plans):,} segments {done}, "
                f"{sum(plan.expired_size for plan in plans):,} of "
                f"{sum(plan.size for plan in plans):,} bytes"
            )
        for line in upkeep_command.room_of_kept(self._kept):
            self._report.summary(line)
