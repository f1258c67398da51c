"""kafkajit side by side with other readers of the same bytes, one core each.

Subjects take turns (A B C A B C ...), each in a process of its own that is bound to one CPU, warm.
Segments are made once, in KAFKAJIT_BENCH_DIR or ~/.cache/kafkajit/bench: 2.8 GB at scale 1.
Kafka's own Java and its DumpLogSegments need Java 17 and, the first time, Maven.

  python -m asv_bench.peers                                 everything, a quarter of an hour
  python -m asv_bench.peers --scale 0.1 --only p100         a quick look
  python -m asv_bench.peers --json F; python -m asv_bench.peers --readme F
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from asv_bench.benchmarks.segments import Commits, Segment, cache_folder
from asv_bench.peers import report
from asv_bench.peers.rounds import REPO, Command, Worker, measure, python, summary

sys.path.insert(0, str(REPO / "tests" / "broker"))
import broker  # the tests' own way to Kafka's jars

Subjects = dict[str, Callable[[], Worker | Command]]

DECODE = "kafkajit decode"  # without a process's start and text around it
JAVA_SOURCES = [
    Path(__file__).with_name(f"{name}.java") for name in ("ReadRecords", "WriteRecords")
]
SERIAL = "-XX:+UseSerialGC"


def segments(scale: float) -> dict[str, Segment]:
    """The segment of each comparison."""

    def records(count: int) -> int:
        return max(1, round(count * scale))

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
        "dump": Segment(records(4_000_000)),
        "dump-headers": Segment(records(4_000_000)),
        "dump-commits": Commits(records(1_000_000)),
        "memory": Segment(records(8_970_000)),  # 1 GiB
    }


def readers(segment: Segment) -> Subjects:
    """Those who read records, and the limits of what can be done."""
    path = str(segment.path())
    limits = ["memcpy", "crc32c"] if segment.codec == "none" else ["bare codec"]
    views = ["kafkajit binary_view"] if segment.codec == "none" else []
    others = ["aiokafka"]
    if segment.magic < 2:
        limits, views, others = [], [], ["aiokafka", "kafka-python"]
    heap = max(2 << 10, (segment.path().stat().st_size >> 20) * 2 + 1024)
    java = ["java", SERIAL, f"-Xms{heap}m", f"-Xmx{heap}m", "-cp", broker.classpath(compiled())]

    def worker(name: str) -> Worker:
        return Worker(python("asv_bench.peers.subjects", name, path))

    found: Subjects = {
        name: partial(worker, name) for name in ["kafkajit", *views, *others, *limits]
    }
    for how in ("copy", "touch"):
        found[f"Java, {how}"] = partial(Worker, [*java, "ReadRecords", how, path])
    return found


def writers(segment: Segment) -> Subjects:
    """Those who build batches of the segment's records, and the codec by itself."""
    path = str(segment.path())
    names = {report.US: "kafkajit encode", "aiokafka": "aiokafka encode"}
    if segment.codec != "none":
        names["bare codec"] = "bare encoder"
    heap = (segment.records * 256 >> 20) + 2048
    java = ["java", SERIAL, f"-Xms{heap}m", f"-Xmx{heap}m", "-cp", broker.classpath(compiled())]
    return {
        **{
            name: partial(Worker, python("asv_bench.peers.subjects", subject, path))
            for name, subject in names.items()
        },
        "Java": partial(Worker, [*java, "WriteRecords", segment.codec, path]),
    }


def dumpers(segment: Segment, *flags: str) -> Subjects:
    """Those who print a segment as text, as whole processes."""
    arguments = ("--files", str(segment.path()), *flags)
    java = ["java", SERIAL, "-Dfile.encoding=UTF-8", "-cp", broker.classpath()]
    return {
        "kafkajit": partial(Command, python("kafkajit.cli", "dump-log", *arguments)),
        report.DUMPER: partial(Command, [*java, "kafka.tools.DumpLogSegments", *arguments]),
    }


@cache
def compiled() -> Path:
    """The folder with the classes."""
    folder = cache_folder() / "classes"
    for source in JAVA_SOURCES:
        target = folder / f"{source.stem}.class"
        if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
            broker.compile_java([source], folder)
    return folder


def compare(name: str, segment: Segment, *, warm: float, rounds: int) -> dict[str, Any]:
    """Run one comparison; its part of the report."""
    path = segment.path()
    result: dict[str, Any] = {
        "records": segment.records,
        "valueSize": segment.value_size,
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
    """Run what was asked for and print a table of it."""
    known = list(segments(1))
    parser = argparse.ArgumentParser(
        prog="python -m asv_bench.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scale", type=float, default=1, help="of all segments (default: 1)")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=known,
        metavar="NAME",
        default=known,
        help=f"comparisons to run: {', '.join(known)} (default: all)",
    )
    parser.add_argument("--rounds", type=int, default=7, help="passes of each subject (default: 7)")
    parser.add_argument(
        "--warm",
        type=float,
        default=8,
        metavar="SECONDS",
        help="of passes that do not count, for each subject (default: 8)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="add the results to it")
    parser.add_argument(
        "--readme",
        type=Path,
        metavar="FILE",
        help="measure nothing: print the results in FILE as Markdown",
    )
    options = parser.parse_args()
    if options.readme:
        print(report.markdown(json.loads(options.readme.read_text())))
        return
    results: dict[str, Any] = {"comparisons": {}}
    if options.json and options.json.exists():
        results = json.loads(options.json.read_text())
    results["machine"] = report.machine() | {"Kafka": broker.KAFKA.version}
    chosen = segments(options.scale)
    for name in options.only:
        result = compare(name, chosen[name], warm=options.warm, rounds=options.rounds)
        results["comparisons"][name] = result
        print(report.text(name, result), flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
