"""Restore logs from tiered storage or a backup into a broker's folder.

Without --apply the command writes nothing, and prints a line for each partition with its segments,
bytes, offsets and times. It refuses a partition that exists in the folder, or leaves it alone with
--skip-existing. It verifies checksums while it copies segments, and does not restore a damaged
partition.

Exit code: 0 if there is nothing to restore, or everything was restored; 2 if there is something to
restore and --apply was not given; 1 after an error, or if the sources lack a part of what they were
asked for.
"""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from typing import TYPE_CHECKING

from kafkajit.cli import upkeep_command
from kafkajit.cli.shared_options import (
    TIME,
    add_partition_option,
    add_private_key_option,
    add_topic_option,
    number,
    time,
)
from kafkajit.cli.upkeep_command import NEEDED

if TYPE_CHECKING:
    from kafkajit.upkeep.restore.options import RestoreOptions
    from kafkajit.upkeep.restore.partition_restoration import PartitionRestoration

EXAMPLE = """\
A SRC is a folder or a bucket with segments in tiered storage, a backup of a
log.dirs folder, a partition's folder, a glob, or a URI such as s3://bucket/t.
Tiered segments and a broker's folder are read as one log if they have the same
topic id. DIR is the log.dirs folder to write to; the command makes it if it
does not exist.

Stop the broker before --apply. Each partition is restored whole or not at all,
and nothing is overwritten. Batches are copied byte for byte, but the batch that
has the end is rewritten with the records before it, and the plan names it.

exit code:
  0 if there is nothing to restore, or everything was restored; 2 if there is
    something to restore and --apply was not given; 1 after an error, or if
    the sources lack a part of it, which stderr names

examples:
  kafkajit restore s3://bucket/tiered /var/kafka
  kafkajit restore --apply --topic orders s3://bucket/tiered /var/kafka
  kafkajit restore --into-existing-topics --apply /backup/kafka /var/kafka
  kafkajit restore --partition orders-0 \\
      --ending-timestamp 2025-11-22T01:00:00Z s3://bucket/tiered /tmp/restored
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments; bounds are named as the options of kafkaLog."""
    parser.add_argument(
        "sources", nargs="+", metavar="SRC", help="folders or buckets with segments"
    )
    parser.add_argument("dir", metavar="DIR", help="the log.dirs folder to write to")
    parser.add_argument(
        "--apply",
        action="store_true",
        help="write the partitions (default: only print what would be written)",
    )
    add_topic_option(parser, "all topics but the brokers' own")
    add_partition_option(parser, "all topics but the brokers' own")
    for which, offset, words in (
        (
            "starting",
            "the log start offset; for one partition",
            "begin with the first record that has this timestamp or a later one",
        ),
        (
            "ending",
            "end exactly before this offset; for one partition",
            "end exactly before the first record that has this timestamp or a later one",
        ),
    ):
        parser.add_argument(f"--{which}-offset", type=number, metavar="OFFSET", help=offset)
        parser.add_argument(
            f"--{which}-timestamp",
            type=time,
            metavar="TIME",
            help=f"{words}: {TIME}",
        )
    ids = parser.add_mutually_exclusive_group()
    ids.add_argument(
        "--topic-id",
        dest="topic_ids",
        action="append",
        type=_topic_id,
        default=[],
        metavar="TOPIC=ID",
        help="the id that a topic has in the cluster (default: the source's)",
    )
    ids.add_argument(
        "--no-topic-id",
        action="store_true",
        help="write no partition.metadata, for brokers with ZooKeeper",
    )
    ids.add_argument(
        "--into-existing-topics",
        action="store_true",
        help="replace the empty logs that a broker has made in DIR, keep their topics' ids, and "
        "write leader epoch 0 into all batches; producers get other ids",
    )
    parser.add_argument(
        "--leader-epoch",
        type=number,
        metavar="EPOCH",
        help="write this leader epoch into all batches, for another cluster: producers get other "
        "ids, too (default: each batch keeps its own epoch)",
    )
    parser.add_argument(
        "--skip-existing",
        action="store_true",
        help="leave partitions alone that exist in DIR (default: refuse to begin)",
    )
    add_private_key_option(parser)
    upkeep_command.add_force_option(parser)
    upkeep_command.add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Report what is restored of each partition, and with --apply restore it."""
    from kafkajit.change.files import local_folder
    from kafkajit.upkeep.restore.plan import lock_of, plan_of

    asked = _asked(options)
    folder = local_folder(options.dir)
    damaged: list[Exception] = []
    with ExitStack() as held:
        report = held.enter_context(upkeep_command.Report(options))
        report.progress.update("listing", 0, 0)
        # The lock's taker finishes an interrupted restoration, which the plan then finds.
        is_there = folder.is_dir()
        if options.apply and is_there:
            held.enter_context(lock_of(folder, force=options.force))
        failed = None if options.debug else damaged.append
        plan = plan_of(options.sources, folder, asked, failed)
        if options.apply:
            plan.check_room()
            if not is_there:
                held.enter_context(lock_of(folder, force=options.force))
        codes = []
        for number, partition in enumerate(plan.partitions):
            report.progress.count(number, len(plan.partitions), "partitions")
            codes.append(_restore(partition, options, report))
    for error in [*damaged, *plan.losses]:
        report.error(error)
    for name, why in plan.left_out:
        report.lines([f"{name}: left out: {why}"])
    report.note("leftOut", [{"partition": name, "reason": why} for name, why in plan.left_out])
    done = [one for one, code in zip(plan.partitions, codes, strict=True) if code == NEEDED]
    if len(codes) > 1 or options.quiet:
        _sum_up(done, options, report)
    is_part = bool(damaged or plan.losses or 1 in codes)
    return report.end(1 if is_part else max(codes, default=0))


def _asked(options: argparse.Namespace) -> RestoreOptions:
    from kafkajit.places.private_keys import PrivateKeys
    from kafkajit.upkeep.restore.options import RestoreOptions

    return RestoreOptions.of(
        topics=options.topics,
        partitions=options.partitions,
        starting_offset=options.starting_offset,
        ending_offset=options.ending_offset,
        starting_timestamp=options.starting_timestamp,
        ending_timestamp=options.ending_timestamp,
        topic_ids=None if options.no_topic_id else dict(options.topic_ids),
        into_existing_topics=options.into_existing_topics,
        skip_existing=options.skip_existing,
        leader_epoch=options.leader_epoch,
        keys=PrivateKeys.of(dict(options.private_keys)),
    )


def _restore(
    plan: PartitionRestoration, options: argparse.Namespace, report: upkeep_command.Report
) -> int:
    """Report a partition, and with --apply restore it; return its exit code."""
    report.lines(plan.lines)
    if plan.is_needed and options.apply:
        known = len(plan.notes)
        plan.report_to(report.progress.update)
        try:
            plan.apply()
        except (OSError, ValueError) as error:
            if options.debug or isinstance(error, BrokenPipeError):
                raise
            report.error(error)
            return 1
        report.lines(f"  {note}" for note in plan.notes[known:])
        report.done(None)
    report.partition(plan, None)
    return NEEDED if plan.is_needed else 0


def _sum_up(
    plans: list[PartitionRestoration], options: argparse.Namespace, report: upkeep_command.Report
) -> None:
    places = "1 partition" if len(plans) == 1 else f"{len(plans):,} partitions"
    segments = sum(len(plan.segments) for plan in plans)
    logs = "1 segment" if segments == 1 else f"{segments:,} segments"
    report.summary(
        f"{places}, {logs}, {sum(plan.size for plan in plans):,} bytes "
        f"{'restored' if options.apply else 'to restore'}"
    )


def _topic_id(text: str) -> tuple[str, str]:
    topic, equals, id_ = text.partition("=")
    if not (topic and equals and id_):
        raise argparse.ArgumentTypeError(f"expected a topic, = and its id, not {text!r}")
    return topic, id_
