"""`python -m kafkajit.spark.warm_up` compiles what Spark's tasks run, once, for all who come after.

Machine code is kept in the installation where that can be written to. An environment that is packed
after this, or an image that is built with it, brings the machine code along: its executors read it
in half a second instead of compiling for some ten.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import kafkajit
from kafkajit.scan.options import KINDS, Options
from kafkajit.scan.table import plan_tasks, read_task, schema_of
from kafkajit.spark import arrays
from kafkajit.spark.catalogue import DECODE_FUNCTIONS
from kafkajit.spark.evaluate import function_of_arrays


def warm_up() -> None:
    """Read the sample log as tasks would."""
    sample = Path(kafkajit.__file__).parent / "sample"
    for kind in set(KINDS) - {"files"}:  # nothing is read for those
        options = Options(paths=(str(sample),), kind=kind, isolation_level="read_committed")
        for task in plan_tasks(options, []):
            for _ in read_task(task, schema_of(options), options):
                pass
    contents = pa.array([path.read_bytes() for path in sample.rglob("*.log")], pa.binary())
    arrays.kafka_records(contents)
    arrays.kafka_record_batches(contents)
    arrays.kafka_corruption(contents)
    none, zeros = pa.array([b""], pa.binary()), pa.array([0])
    for name in ("kafka_offset_lookup", "kafka_time_lookup"):
        function_of_arrays(name)(none, zeros, zeros)
    for name in DECODE_FUNCTIONS:
        function_of_arrays(name)(none.slice(1), none.slice(1))


if __name__ == "__main__":
    warm_up()
