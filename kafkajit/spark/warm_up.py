"""`python -m kafkajit.spark.warm_up`, or `kafkajit warm-up`: compiles what Spark's tasks run.

Machine code is kept in the installation if that is writable. An environment that is packed
afterwards, or an image that is built with it, contains the machine code: executors load it in half
a second instead of compiling for about ten seconds.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import kafkajit
from kafkajit.scan.options import KINDS, ScanOptions
from kafkajit.scan.table import PLANNED, plan_tasks, read_task, schema_of
from kafkajit.spark.catalogue import FUNCTIONS, evaluator
from kafkajit.storage.source import SAMPLE_FOLDER, SAMPLE_LOGS


def warm_up() -> None:
    """Compile, or load, the kernels of the data source and of the functions that read logs."""
    read_sample()
    for kind in set(KINDS) - set(PLANNED):
        options = ScanOptions(
            paths=(str(SAMPLE_LOGS),), kind=kind, isolation_level="read_committed"
        )
        for task in plan_tasks(options, []):
            for _ in read_task(task, schema_of(options), options):
                pass
    contents = pa.array([path.read_bytes() for path in _sound_logs()], pa.binary())
    for name in ("kafka_records", "kafka_record_batches", "kafka_corruption"):
        evaluator(name)(contents)
    empty, zeros = pa.array([b""], pa.binary()), pa.array([0])
    for name in ("kafka_offset_lookup", "kafka_time_lookup"):
        evaluator(name)(empty, zeros, zeros)
    for name in FUNCTIONS:
        if name.startswith("kafka_decode_") and name != "kafka_decode_value":
            evaluator(name)(empty.slice(1), empty.slice(1))
    evaluator("kafka_schema_id")(empty)
    evaluator("kafka_decode_value")(pa.array([b"\0"], pa.binary()), pa.array(['"long"']))


def read_sample() -> None:
    """Load the kernels that most queries need. It starts no threads: the fork server calls it."""
    for path in _sound_logs():
        content = path.read_bytes()
        kafkajit.read_records(content)
        kafkajit.read_record_batches(content)


if __name__ == "__main__":
    warm_up()


def _sound_logs() -> list[Path]:
    return [path for path in SAMPLE_FOLDER.rglob("*.log") if path.parts[-3] != "damaged"]
