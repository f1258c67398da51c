"""Export records to Parquet, Arrow, CSV, JSON lines or Avro files.

A run into the same folder goes on where the last one stopped, also if that was killed, and adds
only new records.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kafkajit.cli.look import add_color_option, complain
from kafkajit.cli.problems import Problems, shortened
from kafkajit.cli.readable import print_line
from kafkajit.cli.shared_options import (
    TIME,
    add_isolation_level_option,
    add_mode_option,
    add_partition_option,
    add_private_key_option,
    add_topic_option,
    number,
    time,
)
from kafkajit.format.moment import option_text

if TYPE_CHECKING:
    from kafkajit.cli.progress import Progress
    from kafkajit.scan.export.exporter import ExportedPartition, ExportResult
    from kafkajit.scan.export.options import ExportOptions

EXAMPLE = """\
A PATH is a log.dirs folder, a partition's folder, a glob, or a URI such as
s3://bucket/orders-0, which may be tiered storage. Without --topic and
--partition, internal topics and a registry's topic are left out.

OUT is a folder, local or a URI; or a file, if its name ends in .parquet,
.arrow, .csv, .jsonl or .avro; or - for stdout (csv, jsonl and arrow). Each file
in a folder has the records of one partition. Its name has the partition and
its first offset. It appears complete or not at all. The folder OUT/_kafkajit
records how far each partition is exported. Transaction markers are left out
unless --columns names controlType.

exit code:
  0 if all records were exported; 2 if damaged or malformed ones were left out
    or exported as rows with the reason, as --mode asks; 1 if a partition or a
    folder could not be read, a segment is missing, or retention took offsets
    before they were exported, and the rest was exported; or after an error

examples:
  kafkajit export /var/kafka -o /data/kafka --to parquet
  kafkajit export /var/kafka --topic orders -o orders.parquet
  kafkajit export /var/kafka -o s3://bucket/kafka --to parquet \\
      --partition-by topic,partition,date --file-size 512m
  kafkajit export /var/kafka --partition orders-0 --starting-offset 1000 \\
      -o - --to jsonl
  kafkajit export sample:typed --schemas auto -o shipments.avro
"""
REST = "paths"  # the argument that receives the words behind options

_LEFT_OUT = 2
# The options that kafkaLog has under the same names.
_SCAN = {
    "topic-id": ("ID", "the id of the topic, if an earlier topic had the same name"),
    "value-schema": (
        "SCHEMA",
        "an Avro schema, a JSON Schema or .proto text, or the path of such a file: "
        "the column value becomes typed, and rawValue has the bytes",
    ),
    "key-schema": ("SCHEMA", "the same for the column key, with rawKey"),
    "value-message": ("NAME", "the Protobuf message to read values into"),
    "key-message": ("NAME", "the same for keys"),
    "schemas": (
        "PATH",
        "where to find the schemas that values and keys name: a registry's log (_schemas-0), "
        ".avsc or .proto files, or a registry's JSON; auto: the registry's log beside the "
        "topic",
    ),
    "framing": (
        "NAME",
        "the form of the bytes in front of values and keys that name a schema, as for "
        "kafkaLog (default: auto)",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments; those of reading are named as the options of kafkaLog."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="folders of logs, or segments")
    parser.add_argument(
        "-o",
        "--output",
        dest="out",
        required=True,
        metavar="OUT",
        help="the folder or the file to write",
    )
    parser.add_argument(
        "--to",
        choices=("parquet", "arrow", "csv", "jsonl", "avro"),
        help="the format of the files (default: the suffix of OUT decides)",
    )
    add_topic_option(parser)
    add_partition_option(parser)
    parser.add_argument(
        "--columns",
        metavar="NAMES",
        help="the columns of records, separated by commas, such as offset,key,value.id; "
        "or all (default: topic,partition,offset,timestamp,timestampType,key,value,headers)",
    )
    parser.add_argument(
        "--partition-by",
        default="none",
        metavar="NAMES",
        help="the columns that divide files among folders, such as "
        "topic=orders/partition=0/date=2026-01-01: topic, partition and date (of the timestamp, "
        "in UTC; default: %(default)s)",
    )
    parser.add_argument(
        "--file-size",
        default="256m",
        metavar="SIZE",
        help="begin a new file when one reaches this size (default: %(default)s)",
    )
    parser.add_argument(
        "--codec",
        metavar="CODEC",
        help="parquet: zstd, none, snappy, gzip, lz4 or brotli; arrow: none, lz4 or zstd; csv and "
        "jsonl: none, gzip or zstd; avro: snappy, none, deflate or zstd (default: the first)",
    )
    parser.add_argument("--level", type=int, metavar="N", help="the codec's level")
    parser.add_argument(
        "--encoding",
        choices=("text", "base64"),
        default="text",
        help="how csv and jsonl write bytes: as text, which must be UTF-8, or in base64, in the "
        "columns keyBase64 and valueBase64 (default: %(default)s)",
    )
    for which, words in (("starting", "begin with"), ("ending", "end before")):
        parser.add_argument(
            f"--{which}-offset",
            type=number,
            metavar="OFFSET",
            help=f"{words} this offset; needs one --partition",
        )
        parser.add_argument(
            f"--{which}-timestamp",
            type=time,
            metavar="TIME",
            help=f"{words} the first record of each partition that has this timestamp or a later "
            f"one: {TIME}",
        )
    for name, (example, meaning) in _SCAN.items():
        parser.add_argument(f"--{name}", metavar=example, help=meaning)
    add_isolation_level_option(parser)
    add_mode_option(
        parser,
        "FAILFAST fails at a damaged batch, DROPMALFORMED leaves it out, PERMISSIVE also adds "
        "a row that reports it in the column corruption (default: %(default)s)",
        default="FAILFAST",
    )
    add_private_key_option(parser)
    add_color_option(parser)
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="print only errors and the records that were left out, on stderr",
    )


def run(options: argparse.Namespace) -> int:
    """Export the records, and print a line for each partition."""
    from kafkajit.cli.progress import Progress
    from kafkajit.scan.export.exporter import export_to_file, export_to_folder
    from kafkajit.scan.export.options import STDOUT, ExportOptions, codec_of, format_of

    format_, is_file = format_of(options.out, options.to)
    if is_file and options.partition_by != "none":
        raise ValueError("--partition-by needs a folder, not a single file")
    asked = ExportOptions.of(
        options.paths,
        format_=format_,
        columns=options.columns,
        partition_by=options.partition_by,
        file_size=options.file_size,
        codec=codec_of(options.out, format_, options.codec) if is_file else options.codec,
        level=options.level,
        encoding=options.encoding,
        topics=options.topics,
        partitions=options.partitions,
        scan=_scan(options),
    )
    with Progress(before_output=options.out != STDOUT) as progress:
        problems = Problems(options.command, progress.hide)
        notes = Problems(options.command, progress.hide)
        asked = replace(asked, scan=replace(asked.scan, failed=problems.add), note=notes.say)
        progress.update("listing", 0, 0)
        if options.out == STDOUT:
            result = _to_stdout(asked, progress)
        elif is_file:
            result = export_to_file(options.out, asked, progress=progress.update)
        else:
            report = None if options.quiet else partial(_print, progress)
            result = export_to_folder(options.out, asked, report, progress.update)
    if is_file and options.out != STDOUT and not options.quiet:
        for partition in result.partitions:
            print_line(str(partition))
    return problems.code(_warned(result))


def _to_stdout(asked: ExportOptions, progress: Progress) -> ExportResult:
    import pyarrow as pa

    from kafkajit.scan.export.exporter import export_to_file
    from kafkajit.scan.export.options import STDOUT

    sys.stdout.flush()
    # The sink closes what it writes to.
    with (
        os.fdopen(os.dup(sys.stdout.fileno()), "wb") as copy,
        pa.PythonFile(copy, "w") as sink,
    ):
        return export_to_file(STDOUT, asked, sink, progress.update)


def _print(progress: Progress, partition: ExportedPartition) -> None:
    progress.hide()
    print_line(str(partition))
    sys.stdout.flush()


def _warned(result: ExportResult) -> int:
    """Report on stderr the records that are left out, and return the exit code."""
    gaps = result.gaps
    for line in shortened(list(map(_line_of, gaps)), "places are damaged"):
        complain("export", line)
    for partition in result.partitions:
        for example in partition.passed.examples:
            complain("export", f"{example} (malformed)")
    if result.malformed:
        are = "record is" if result.malformed == 1 else "records are"
        complain("export", f"{result.malformed:,} {are} malformed")
    return _LEFT_OUT if gaps or result.malformed else 0


def _line_of(gap: dict[str, Any]) -> str:
    place = "" if gap["position"] is None else f" at position {gap['position']}"
    length = "" if gap["length"] is None else f": {gap['length']:,} bytes are damaged"
    return f"{gap['path']}: {gap['reason']}{place}{length}"


def _scan(options: argparse.Namespace) -> dict[str, Any]:
    """The options of reading, as kafkaLog has them."""
    scan = {name.replace("-", "_"): getattr(options, name.replace("-", "_")) for name in _SCAN}
    scan |= {"isolation_level": options.isolation_level, "mode": options.mode}
    for which in ("starting", "ending"):
        time_ = getattr(options, f"{which}_timestamp")
        scan[f"{which}_timestamp"] = None if time_ is None else option_text(time_)
    for id_, file in options.private_keys:
        scan[f"encryption.key.pairs.{id_}.private.key.file"] = file
    for which in ("starting", "ending"):
        offset = getattr(options, f"{which}_offset")
        if offset is None:
            continue
        if len(options.partitions) != 1 or options.topics:
            raise ValueError(f"--{which}-offset is for one partition: pass --partition orders-0")
        topic, _, number = options.partitions[0].rpartition("-")
        scan[f"{which}_offsets"] = json.dumps({topic: {number: offset}})
    return scan
