"""How far a stream is behind a real broker that is written to; on one core.

    PYTHONPATH=.:tests:tests/support python tests/broker/live_speed.py 20

Kafka's own ProducerPerformance writes 50,000 records of 100 bytes a second. A stream reads their
offsets, times and values, one micro-batch after the other, as Spark drives it
(tests/support/streaming.py). The delay of a micro-batch is the age of its oldest record when all of
it has been read.

Needs Java 17 and Kafka 4.1.1's jars (Maven brings them).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import pyarrow.compute as pc
from broker import (
    KAFKA,
    broker_config,
    format_storage,
    free_ports,
    java,
    kraft_config,
    running_server,
    write_properties,
)
from streaming import Query

RATE = 50_000
COLUMNS = ["topic", "offset", "timestamp", "value"]


def main(work: Path, seconds: int) -> None:
    """Print the delays."""
    port, controller_port = free_ports(2)
    logs = work / "logs"
    settings = broker_config(port, logs) | kraft_config(port, controller_port)
    settings["auto.create.topics.enable"] = "true"
    properties = write_properties(work / "broker.properties", settings)
    format_storage(properties, ())
    with running_server(KAFKA, "kafka.Kafka", properties, port):
        command = java(
            "org.apache.kafka.tools.ProducerPerformance",
            *("--topic", "orders", "--num-records", str(RATE * seconds), "--record-size", "100"),
            *("--throughput", str(RATE), "--producer-props", f"bootstrap.servers=127.0.0.1:{port}"),
        )
        producer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        while producer.poll() is None and not list(logs.glob("orders-0/*.log")):
            time.sleep(0.05)
        delays, rows = follow(Query(logs / "orders-*"), producer)
        report, _ = producer.communicate()
    print(report.splitlines()[-1])
    print(
        f"{rows:,} records in {len(delays)} micro-batches; seconds behind: median "
        f"{statistics.median(delays):.2f}, most {max(delays):.2f}; "
        f"{time.process_time():.1f} s of the processor"
    )
    assert rows == RATE * seconds


def follow(query: Query, producer: subprocess.Popen[str]) -> tuple[list[float], int]:
    """The delays of micro-batches, until the producer has ended and all is read."""
    delays, rows, is_over = [], 0, False
    while True:
        table = query.trigger(COLUMNS)
        if table.num_rows:
            oldest = pc.min(table["timestamp"].cast("int64")).as_py() / 1e6
            delays.append(time.time() - oldest)
            rows += table.num_rows
        elif is_over:
            return delays, rows
        else:
            is_over = producer.poll() is not None
            time.sleep(0.02)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", type=int, nargs="?", default=20, help="of traffic (%(default)s)")
    with tempfile.TemporaryDirectory(prefix="kafkajit-") as temporary:
        main(Path(temporary), parser.parse_args().seconds)
