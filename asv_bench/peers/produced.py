"""Segments as a real broker writes them, in its own batches, from the records of one of ours.

Kafka's producer sends the records to a Kafka 4.1.1 on this machine, whose log is then kept.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from asv_bench.benchmarks.segments import Segment
from asv_bench.peers.jvm import broker, java

TOPIC = "produced"
# All in one segment, however old its records are.
CONFIG = {"segment.bytes": "2147483647", "retention.ms": "-1", "compression.type": "producer"}


@dataclass(frozen=True)
class Produced(Segment):
    """A broker's segment of v2, with the records of one of ours."""

    @classmethod
    def of(cls, segment: Segment) -> Produced:
        """The same records."""
        return cls(**asdict(segment))

    @property
    def plain_bytes(self) -> int:
        """The plain size; if compressed, that of our segment, which differs by 0.1 % at most."""
        if self.codec != "none":
            return super().plain_bytes
        return self.path().stat().st_size

    def path(self) -> Path:
        """The file, made now if it is missing."""
        ours = super().path()
        path = ours.parent / "produced" / f"{TOPIC}-0" / ours.name
        if not path.exists():
            folder = ours.parent / f"broker.{os.getpid()}.part"
            with broker.running_broker(folder) as running:
                servers = ["--bootstrap-server", running.bootstrap]
                create = ["--create", "--topic", TOPIC, "--partitions", "1"]
                for name, value in CONFIG.items():
                    create += ["--config", f"{name}={value}"]
                tool = "org.apache.kafka.tools.TopicCommand"
                subprocess.run(
                    broker.java(tool, *create, *servers), check=True, stdout=subprocess.DEVNULL
                )
                heap = (ours.stat().st_size >> 20) * 2 + 1024
                send = ["SendRecords", running.bootstrap, TOPIC, self.codec, str(ours)]
                subprocess.run([*java(heap), *send], check=True)
                log_dir = running.log_dir
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(log_dir / f"{TOPIC}-0" / ours.name, path)
            shutil.rmtree(folder)
        return path
