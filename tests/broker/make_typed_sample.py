"""Make kafkajit/sample/typed again: a topic with Avro values, and the log of its registry.

    python tests/broker/make_typed_sample.py

A real broker writes both. shipments: two versions of a schema, by two producers that take turns,
and a tombstone. _schemas: what a registry writes when it starts, when its compatibility is set and
when a version is registered. The bytes are the same every time.

Needs Java 17, and Maven the first time.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from broker import AVRO, KAFKA, SHORT_LIVED, classpath, library, running_broker

TARGET = Path(__file__).resolve().parents[2] / "kafkajit" / "sample" / "typed"
SEGMENT = f"{0:020}.log"


def main(work: Path) -> None:
    """Start a broker, produce, stop it, and copy the segments."""
    source = Path(__file__).with_name("TypedSample.java")
    classes = work / "classes"
    classes.mkdir()
    path = classpath(classes, library(AVRO) / "*", release=KAFKA)
    subprocess.run(["javac", "-Xlint:all", "-d", classes, "-cp", path, source], check=True)
    with running_broker(work / "broker") as broker:
        settings = ("-Dfile.encoding=UTF-8", "-cp", path)
        command = ["java", *SHORT_LIVED, *settings, "TypedSample", broker.bootstrap]
        subprocess.run(command, check=True)
        log_dir = broker.log_dir
    for folder in ("_schemas-0", "shipments-0"):
        (TARGET / folder).mkdir(parents=True, exist_ok=True)
        shutil.copyfile(log_dir / folder / SEGMENT, TARGET / folder / SEGMENT)
        size = (TARGET / folder / SEGMENT).stat().st_size
        print(f"{size} bytes in {folder}/{SEGMENT}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="kafkajit-") as work:
        main(Path(work))
