"""kafkajit.export to Parquet beside pyarrow's writer alone, one core each.

pyarrow writes the records as columns that are in memory already; an export also reads, checks and
decodes them, and writes in row groups of bounded memory. Both write into memory, in turns, in one
process.

  python -m asv_bench.peers.export                 2 M records of 100 bytes: two minutes
  python -m asv_bench.peers.export --record        and into docs/performance
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import kafkajit
from asv_bench.benchmarks.segments import Segment
from asv_bench.peers import report
from asv_bench.peers.options import add_measuring, add_record, finish, keep, parser_of
from asv_bench.peers.record import measured_with
from asv_bench.peers.rounds import summary
from kafkajit.scan.export.options import DEFAULT_COLUMNS

MEMORY = Path("/dev/shm")
CODECS = {"parquet": "none", "parquet-zstd": "zstd"}


def main() -> None:
    """Run the chosen comparisons and print them."""
    parser = parser_of("export", __doc__)
    add_measuring(parser, tuple(report.EXPORTS), rounds=7)
    add_record(parser)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    pa.set_cpu_count(1)
    segment = Segment(round(2_000_000 * options.scale)).path()
    table = kafkajit.read_records(segment, columns=DEFAULT_COLUMNS, threads=1)
    for name in options.only:
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as scratch:
            subjects = writers(segment, table, CODECS[name], Path(scratch))
            seconds: dict[str, list[float]] = {subject: [] for subject in subjects}
            for turn in range(options.rounds + 1):  # the first one warms up
                for subject, write in subjects.items():
                    begun = time.perf_counter()
                    write()
                    spent = time.perf_counter() - begun
                    shutil.rmtree(Path(scratch) / "out")
                    if turn:
                        seconds[subject].append(spent)
        result = {
            "bytes": segment.stat().st_size,
            "seconds": {subject: summary(all_) for subject, all_ in seconds.items()},
            "with": measured_with(()),
        }
        print(f"\n{name}\n{report.ratios(result)}", flush=True)
        keep(options, "export", {name: result})
    finish(options)


def writers(
    segment: Path, table: pa.Table, codec: str, scratch: Path
) -> dict[str, Callable[[], object]]:
    """Both ways to write the same records."""
    out = scratch / "out"

    def columns() -> None:
        out.mkdir()
        pq.write_table(table, out / "all.parquet", compression=codec)

    def export() -> None:
        result = kafkajit.export(segment.parent, out, to="parquet", codec=codec)
        assert result.records == table.num_rows

    return {"kafkajit.export, from the log": export, "pyarrow, columns in memory": columns}


if __name__ == "__main__":
    main()
