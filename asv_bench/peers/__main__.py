"""kafkajit side by side with other readers of the same bytes, one core each.

Subjects take turns (A B C A B C ...), each in a process of its own that is bound to one CPU, warm.
Segments are made once, in KAFKAJIT_BENCH_DIR or ~/.cache/kafkajit/bench: 5 GB at scale 1. With
Java 17 and Maven a real broker writes those of v2 that are read, and Kafka's own Java and its
DumpLogSegments take part; without, kafkajit.testing encodes them. franz-go takes part where Go is.

  python -m asv_bench.peers                                 everything, 45 minutes
  python -m asv_bench.peers --scale 0.1 --only p100         a quick look
  python -m asv_bench.peers --record                        and into docs/performance
  python -m asv_bench.peers --report                        tables and charts, measures nothing
  python -m asv_bench.peers --check                         do they agree with the record?
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from asv_bench.benchmarks.segments import Commits, Segment, cache_folder
from asv_bench.peers import report
from asv_bench.peers.jvm import SERIAL, broker, has_kafka, java
from asv_bench.peers.options import add_measuring, add_record, add_warm, finish, keep, parser_of
from asv_bench.peers.produced import Produced
from asv_bench.peers.publish import check, publish
from asv_bench.peers.record import measured_with
from asv_bench.peers.rounds import REPO, Command, Worker, measure, python, summary

Subjects = dict[str, Callable[[], Worker | Command]]

PRODUCED = ("p100", "p1000", "lz4", "zstd", "snappy", "gzip", "headers", "headers-as-values")
DECODE = "kafkajit decode"  # without a process's start and text around it
FRANZ_GO = Path(__file__).with_name("franzgo")


def segments(scale: float) -> dict[str, Segment]:
    """The segment of each comparison."""

    def records(count: int) -> int:
        return max(1, round(count * scale))

    headers_bytes = Segment(1, headers=3).plain_bytes - Segment(1).plain_bytes
    return {
        "p100": Segment(records(4_000_000)),
        "p1000": Segment(records(480_000), value_size=1000),
        "lz4": Segment(records(2_000_000), codec="lz4"),
        "zstd": Segment(records(2_000_000), codec="zstd"),
        "snappy": Segment(records(2_000_000), codec="snappy"),
        "gzip": Segment(records(2_000_000), codec="gzip"),
        "v0": Segment(records(1_000_000), magic=0),
        "v1": Segment(records(1_000_000), magic=1),
        "v1-lz4": Segment(records(1_000_000), codec="lz4", magic=1),
        "encode": Segment(records(4_000_000)),
        **{
            f"encode-{codec}": Segment(records(2_000_000), codec=codec)
            for codec in ("lz4", "zstd", "snappy", "gzip")
        },
        "headers": Segment(records(2_000_000), headers=3),
        "headers-as-values": Segment(records(2_000_000), value_size=100 + headers_bytes),
        "dump": Segment(records(4_000_000)),
        "dump-headers": Segment(records(4_000_000)),
        "dump-commits": Commits(records(1_000_000)),
        "memory": Segment(records(8_970_000)),  # 1 GiB
    }


def readers(segment: Segment) -> Subjects:
    """The subjects that read records, and the limits of what is possible."""
    path = str(segment.path())
    ours = "kafkajit headers" if segment.headers else "kafkajit"
    names = {report.US: ours}
    if segment.codec == "none" and segment.magic == 2:
        names |= {report.VIEWS: f"{ours} binary_view"}
    names |= {"aiokafka": "aiokafka"}
    if segment.codec == "none" or segment.magic < 2:  # it is Python all through, and takes long
        names |= {"kafka-python": "kafka-python"}
    if segment.magic == 2:
        limits = report.FLOOR if segment.codec == "none" else (report.CODEC,)
        names |= {limit: limit for limit in limits}
    found: Subjects = {
        name: partial(Worker, python("asv_bench.peers.subjects", subject, path))
        for name, subject in names.items()
    }
    if has_kafka():
        command = java(max(2 << 10, (segment.path().stat().st_size >> 20) * 2 + 1024))
        for how in ("copy", "touch"):
            found[f"Java, {how}"] = partial(Worker, [*command, "ReadRecords", how, path])
    if shutil.which("go"):
        found["franz-go"] = partial(Worker, [str(franz_go()), path])
    return found


def writers(segment: Segment) -> Subjects:
    """The subjects that build batches of the segment's records, and the bare codec."""
    path = str(segment.path())
    names = {report.US: "kafkajit encode", "aiokafka": "aiokafka encode"}
    if segment.codec != "none":
        names[report.CODEC] = "bare encoder"
    found: Subjects = {
        name: partial(Worker, python("asv_bench.peers.subjects", subject, path))
        for name, subject in names.items()
    }
    if has_kafka():
        command = java((segment.records * 256 >> 20) + 2048)
        found["Java"] = partial(Worker, [*command, "WriteRecords", segment.codec, path])
    return found


def dumpers(segment: Segment, *flags: str) -> Subjects:
    """The subjects that print a segment as text, as whole processes."""
    arguments = ("--files", str(segment.path()), *flags)
    found: Subjects = {report.US: partial(Command, python("kafkajit.cli", "dump-log", *arguments))}
    if has_kafka():
        command = ["java", SERIAL, "-Dfile.encoding=UTF-8", "-cp", broker.classpath()]
        tool = [*command, "kafka.tools.DumpLogSegments", *arguments]
        found[report.DUMPER] = partial(Command, tool)
    return found


@cache
def franz_go() -> Path:
    """The program that reads with franz-go."""
    program = cache_folder() / "franzgo"
    subprocess.run(["go", "build", "-o", program, "."], cwd=FRANZ_GO, check=True)
    return program


def compare(name: str, segment: Segment, *, warm: float, rounds: int) -> dict[str, Any]:
    """Run one comparison, and return its part of the report."""
    path = segment.path()
    result: dict[str, Any] = {
        "records": segment.records,
        "valueSize": segment.value_size,
        "headers": segment.headers,
        "codec": segment.codec,
        "magic": segment.magic,
        "bytes": path.stat().st_size,
        "plainBytes": segment.plain_bytes,
    }
    if name == "memory":
        code = "from asv_bench.peers.subjects import *; import json, sys; "
        code += "print(json.dumps(peak_memory(Path(sys.argv[1]))))"
        command = [sys.executable, "-c", code, str(path)]
        done = subprocess.run(command, cwd=REPO, check=True, capture_output=True, text=True)
        return result | json.loads(done.stdout)
    if name == "dump":
        seconds = measure(dumpers(segment, "--print-data-log"), warm=0, rounds=min(rounds, 3))
    elif name == "dump-headers":
        seconds = measure(dumpers(segment), warm=0, rounds=rounds)
    elif name == "dump-commits":
        seconds = measure(dumpers(segment, "--offsets-decoder"), warm=0, rounds=rounds)
        worker = partial(Worker, python("asv_bench.peers.subjects", DECODE, str(path)))
        seconds |= measure({DECODE: worker}, warm=1, rounds=rounds)
    elif name.startswith("encode"):
        seconds = measure(writers(segment), warm=warm, rounds=rounds)
    else:
        seconds = measure(readers(segment), warm=warm, rounds=rounds)
    return result | {"seconds": {subject: summary(all_) for subject, all_ in seconds.items()}}


def main() -> None:
    """Run the chosen comparisons and print a table of each."""
    known = list(segments(1))
    parser = parser_of(None, __doc__)
    add_measuring(parser, known, rounds=7)
    add_warm(parser, 8)
    parser.add_argument(
        "--encoder",
        action="store_true",
        help="read segments that kafkajit.testing encodes, as without Maven (default: start a "
        "broker that writes the segments of v2)",
    )
    where = add_record(parser)
    where.add_argument(
        "--report",
        action="store_true",
        help="measure nothing: write README's tables, those of docs/performance.md and the charts "
        "anew from docs/performance/peers.json",
    )
    where.add_argument(
        "--check",
        action="store_true",
        help="measure nothing: exit with 1 if a table or chart does not agree with that file",
    )
    options = parser.parse_args()
    if options.report:
        publish()
        return
    if options.check:
        check()
        return
    chosen = segments(options.scale)
    for name in options.only:
        segment = chosen[name]
        writer = "kafkajit.testing"
        if name in PRODUCED and has_kafka() and not options.encoder:
            segment, writer = Produced.of(segment), f"Kafka {broker.KAFKA.version}"
        result = compare(name, segment, warm=options.warm, rounds=options.rounds)
        print(report.text(name, result), flush=True)
        keep(
            options, "comparisons", {name: result | {"with": versions() | {"segments of": writer}}}
        )
    finish(options)


def versions() -> dict[str, str]:
    """The versions of all that take part."""
    others = {"Kafka": broker.KAFKA.version} if has_kafka() else {}
    if shutil.which("go"):
        (module,) = re.findall(r"franz-go (v[\d.]+)", (FRANZ_GO / "go.mod").read_text())
        others["franz-go"] = module.removeprefix("v")
    return measured_with(("aiokafka", "kafka-python"), **others)


if __name__ == "__main__":
    main()
