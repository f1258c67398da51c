"""kafkajit grep beside GNU grep on the raw file, and beside Kafka's tool with grep behind it.

All search a segment for the key of one record, on one core, and take turns. Segments are made once,
in KAFKAJIT_BENCH_DIR or ~/.cache/kafkajit/bench. Kafka's tool needs Java 17 and, the first time,
Maven.

  python -m asv_bench.peers.grep                      everything, five minutes
  python -m asv_bench.peers.grep --only lz4 --scale 0.1
  python -m asv_bench.peers.grep --record             and into docs/performance
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import kafkajit
from asv_bench.benchmarks.segments import Segment
from asv_bench.peers import report
from asv_bench.peers.jvm import SERIAL, has_kafka
from asv_bench.peers.options import add_measuring, add_record, finish, keep, parser_of
from asv_bench.peers.record import measured_with
from asv_bench.peers.rounds import REPO, python, summary
from kafkajit.cli import main as kafkajit_command

sys.path.insert(0, str(REPO / "tests" / "broker"))
import broker

# One pass: the count that is printed.
Subjects = dict[str, Callable[[], str]]


def main() -> None:
    """Run the chosen comparisons and print them."""
    parser = parser_of("grep", __doc__)
    add_measuring(parser, tuple(report.SEARCHES), rounds=5)
    add_record(parser)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # the others' too
    for name in options.only:
        segment = Segment(
            round((4_000_000 if name == "none" else 2_000_000) * options.scale), codec=name
        )
        path = segment.path()
        result = {
            "records": segment.records,
            "valueSize": segment.value_size,
            "codec": name,
            "bytes": path.stat().st_size,
            "plainBytes": segment.plain_bytes,
            "seconds": {
                subject: summary(all_)
                for subject, all_ in compare(subjects(path, name), options.rounds).items()
            },
            "with": measured_with((), **({"Kafka": broker.KAFKA.version} if has_kafka() else {})),
        }
        print(f"\n{name}\n{report.ratios(result)}", flush=True)
        keep(options, "grep", {name: result})
    finish(options)


def subjects(path: Path, codec: str) -> Subjects:
    """Searches for the key of a record in the middle of the segment."""
    keys = next(kafkajit.iter_records(path, columns=["key"]))["key"]
    key = keys[len(keys) // 2].as_py().decode()

    def ours(*words: str) -> Callable[[], str]:
        def search() -> str:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                kafkajit_command(["grep", "-c", *words, str(path)])
            return printed.getvalue().split()[-1]

        return search

    found: Subjects = {
        report.GREP: ours(key),
        f"{report.GREP}, start to end": piped(python("kafkajit.cli", "grep", "-c", key, str(path))),
        f"{report.GREP} of an expression": ours(f"^{key}$"),
        f"{report.GREP} --no-check-crcs": ours("--no-check-crcs", key),
    }
    if codec == "none":
        found["grep -c on the raw file"] = piped(["grep", "-c", key, str(path)])
    if has_kafka():
        tool = ["java", SERIAL, "-cp", broker.classpath(), "kafka.tools.DumpLogSegments"]
        dump = [*tool, "--print-data-log", "--files", str(path)]
        found["kafka-dump-log.sh | grep -c"] = piped(dump, ["grep", "-c", key])
    return found


def piped(command: Sequence[str], then: Sequence[str] | None = None) -> Callable[[], str]:
    """A program, with another one behind it."""

    def run() -> str:
        if then is None:
            done = subprocess.run(command, cwd=REPO, check=True, capture_output=True, text=True)
            return done.stdout.split()[-1]
        with subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE) as first:
            done = subprocess.run(
                then, stdin=first.stdout, check=True, capture_output=True, text=True
            )
        return done.stdout.split()[-1]

    return run


def compare(subjects: Subjects, rounds: int) -> dict[str, list[float]]:
    """The seconds of each pass: one round to warm up, then `rounds` that count."""
    seconds: dict[str, list[float]] = {subject: [] for subject in subjects}
    for turn in range(rounds + 1):
        counts = set()
        for subject, one_pass in subjects.items():
            start = time.perf_counter()
            counts.add(one_pass())
            if turn:
                seconds[subject].append(time.perf_counter() - start)
        if len(counts) > 1:
            raise RuntimeError(f"subjects do not agree on what is there: {counts}")
    return seconds


if __name__ == "__main__":
    main()
