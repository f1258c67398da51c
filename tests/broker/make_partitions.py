"""Make tests/data/partitions.tsv again: keys, and their hashes and partitions in Kafka.

In: Kafka's jars, those of the tests or those that KAFKAJIT_KAFKA_LIB names. Out: a key in
hexadecimal, its murmur2 and its partition among each number of them that the head names, a line.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
from pathlib import Path

from broker import compile_java, java

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "data" / "partitions.tsv"
PARTITIONS = [1, 2, 3, 12, 50, 1000, 2**31 - 1]


def main() -> None:
    """Write the table."""
    rng = random.Random(7)
    keys = [rng.randbytes(size) for size in range(70) for _ in range(4)]
    keys += [bytes([value]) * size for value in (0, 0x7F, 0x80, 0xFF) for size in range(1, 9)]
    keys += [text.encode() for text in ("user-1", "übung", "鍵", str(2**63))]
    counts = [str(count) for count in PARTITIONS]
    with tempfile.TemporaryDirectory(prefix="kafkajit-") as work:
        compile_java([HERE / "Partitioner.java"], Path(work))
        run = subprocess.run(
            java("Partitioner", *counts, classes=[Path(work)]),
            input="\n".join(key.hex() for key in keys),
            capture_output=True,
            check=True,
            text=True,
        )
    TARGET.write_text("\t".join(["key", "murmur2", *counts]) + "\n" + run.stdout)
    print(f"{TARGET}: {len(keys)} keys")


if __name__ == "__main__":
    main()
