"""Make logs that a broker loads out of Parquet, Arrow, CSV, JSON or Avro files.

Without --apply the command writes nothing, and prints a line for each partition with its records
and offsets. Files that `kafkajit export` wrote become the same records again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkajit.cli import upkeep_command
from kafkajit.cli.shared_options import Size, number, setting
from kafkajit.cli.upkeep_command import NEEDED
from kafkajit.format.amounts import number_of
from kafkajit.format.limits import MAX_INT32

if TYPE_CHECKING:
    from kafkajit.cli.progress import Progress

EXAMPLE = """\
A FILE is a file, a folder with all files in it, a glob, or a URI such as
s3://bucket/export. Columns have the names that `kafkajit export` gives them:
topic, partition, offset, timestamp, key, value and headers; keyBase64 and
valueBase64 hold bytes in base64. Folders such as topic=orders/partition=0 also
count as columns.

DIR is the log.dirs folder to write to; the command makes it if it does not
exist. Stop the broker before --apply. All partitions are written or none, and
nothing is overwritten.

The command reads a folder's files, except those that begin with _ or a dot,
or end as unfinished files do (.tmp). On stderr it names each of these that may
hold records, and all columns and rows that it does not import. With --format
json, the field leftOut has them, too.

exit code:
  0 if everything was written, or there are no records; 2 if there are records
    to write and --apply was not given, or if something is not imported: columns
    (see --ignore-column), rows or files; 1 after an error

examples:
  kafkajit import /data/kafka /var/kafka
  kafkajit import --apply orders.parquet /var/kafka
  kafkajit import --apply --topic orders --partitions 12 --key-column id \\
      --value-column payload --timestamp-column ts rows.csv /var/kafka
  kafkajit import --apply --codec zstd --config segment.bytes=104857600 \\
      /data/kafka /tmp/logs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="files to import")
    parser.add_argument("dir", metavar="DIR", help="the log.dirs folder to write to")
    parser.add_argument(
        "--apply",
        action="store_true",
        help="write the partitions (default: only print what would be written)",
    )
    parser.add_argument(
        "--from",
        dest="from_",
        choices=("parquet", "arrow", "csv", "jsonl", "avro"),
        help="the format (default: that of each file's suffix)",
    )
    parser.add_argument("--topic", help="the topic of all records (default: the column topic)")
    parser.add_argument(
        "--partitions",
        type=number,
        metavar="N",
        help="the topic's number of partitions: records without a partition go to the one that "
        "Kafka's producer chooses for their key",
    )
    for name, words in (
        (
            "key",
            "of keys: bytes or text; numbers become text, structs become JSON, and in JSON lines "
            "all but strings stay the JSON that they are",
        ),
        ("value", "of values, in the same way"),
        (
            "timestamp",
            "of timestamps: times, ISO 8601 or milliseconds; finer digits are cut off",
        ),
    ):
        parser.add_argument(
            f"--{name}-column",
            default=name,
            metavar="NAME",
            help=f"the column {words} (default: %(default)s)",
        )
    parser.add_argument(
        "--new-offsets",
        action="store_true",
        help="number records from 0, in the order of the column offset, if there is one "
        "(default: keep that column)",
    )
    parser.add_argument(
        "--ignore-column",
        action="append",
        default=[],
        metavar="GLOB",
        help="leave out a column without a message, such as id or 'meta_*'; may be repeated",
    )
    parser.add_argument(
        "--codec", metavar="CODEC", help="none, gzip, snappy, lz4 or zstd (default: none)"
    )
    parser.add_argument("--level", type=int, metavar="N", help="the codec's level")
    parser.add_argument(
        "--batch-size",
        type=Size(1, MAX_INT32),
        metavar="SIZE",
        help="bytes of a batch before compression (default: 16k)",
    )
    parser.add_argument("--topic-id", metavar="ID", help="the id to write into partition.metadata")
    parser.add_argument(
        "--leader-epoch",
        type=number,
        metavar="EPOCH",
        help="the leader epoch of all batches (default: 0)",
    )
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        type=setting,
        metavar="NAME=VALUE",
        help="a topic's config, such as segment.bytes=104857600; may be repeated",
    )
    upkeep_command.add_force_option(parser)
    upkeep_command.add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Report the partitions, and with --apply write them."""
    from kafkajit.errors import did_you_mean
    from kafkajit.log.config import TOPIC_CONFIGS
    from kafkajit.produce.importer import import_files

    for name, _ in options.config:
        if name.lower() not in TOPIC_CONFIGS:
            hint = did_you_mean(name.lower(), TOPIC_CONFIGS)
            raise ValueError(f"topics have no config {name!r}{f': {hint}' if hint else ''}")
    plan = import_files(
        options.files,
        options.dir,
        format=options.from_,
        key_column=options.key_column,
        value_column=options.value_column,
        timestamp_column=options.timestamp_column,
        new_offsets=options.new_offsets,
        ignore_columns=options.ignore_column,
        topic=options.topic,
        partitions=options.partitions,
        compression_type=options.codec,
        compression_level=options.level,
        batch_size=options.batch_size,
        topic_id=options.topic_id,
        leader_epoch=options.leader_epoch,
        force=options.force,
        **dict(options.config),
    )
    with upkeep_command.Report(options) as report:
        plan.progress = _shown_by(report.progress, len(plan.files))
        partitions = plan.apply() if options.apply else plan.partitions
        for partition in partitions:
            report.lines([str(partition)])
            report.add(partition.document())
            for note in partition.notes:
                report.warn(note)
        if len(partitions) != 1 or options.quiet:
            records = number_of(sum(partition.records for partition in partitions), "record")
            done = "imported" if options.apply else "to import"
            report.summary(f"{number_of(len(partitions), 'partition')}, {records} {done}")
        report.note("leftOut", plan.left_out.document())
        for line in plan.left_out.lines():
            report.warn(line)
        code = report.end(NEEDED if partitions else 0)
        return NEEDED if plan.left_out else code


def _shown_by(progress: Progress, files: int) -> Callable[[str, int], None]:
    """A function that shows the file that is read, its records, and the number of files."""
    seen: set[str] = set()

    def show(path: str, records: int) -> None:
        seen.add(path)
        progress.count(len(seen) - 1, files, "files")
        progress.update(path.rpartition("/")[2], records, 0, "records")

    return show
