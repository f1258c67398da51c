"""A long run: decode, encode, compact and dump in a loop, while what the process holds is watched.

    PYTHONPATH=tests/support python tests/support/long_run.py --minutes 60

Each round writes a log of another codec, other sizes and other keys. It reads the log in every
mode, sound and spoilt, compacts it and dumps it. After each round these are counted: resident
memory, bytes in Arrow's pool, open file descriptors, threads, and memory maps. A line a minute
shows them. The run ends with exit code 1 if one of them grows: if the least of the last third of
the rounds is above the most of the first third, by more than GROWTH. The first rounds, which
compile kernels and fill pools, do not count.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

import kafkajit
from kafkajit.cli import main as command

CODECS = (None, "gzip", "snappy", "lz4", "zstd")
WARM_UP_ROUNDS = 30
ROWS = 20_000
NOW = 1_700_000_000_000


class Held(NamedTuple):
    """What the process holds after a round."""

    resident: int  # bytes
    arrow_pool: int  # bytes
    descriptors: int
    threads: int
    maps: int

    @classmethod
    def now(cls) -> Held:
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return cls(
            pages * os.sysconf("SC_PAGE_SIZE"),
            pa.default_memory_pool().bytes_allocated(),
            sum(1 for _ in Path("/proc/self/fd").iterdir()),
            threads(),
            len(Path("/proc/self/maps").read_text().splitlines()),
        )

    def __str__(self) -> str:
        return (
            f"{self.resident / 2**20:.1f} MiB resident, {self.arrow_pool / 2**20:.1f} MiB in "
            f"Arrow's pool, {self.descriptors} descriptors, {self.threads} threads, "
            f"{self.maps} maps"
        )


# What each may grow by without being a leak: allocators keep pages, and give them back late.
GROWTH = Held(resident=12 << 20, arrow_pool=0, descriptors=0, threads=0, maps=40)


def threads() -> int:
    """The threads of the process, those of libraries included."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("Threads:")[1].split()[0])


def growing(samples: list[Held], slack: Held = GROWTH) -> list[str]:
    """What grew from the first third of the samples to the last, in words."""
    third = len(samples) // 3
    if third == 0:
        return []
    first, last = samples[:third], samples[-third:]
    return [
        f"{name} grew from at most {before} to at least {after}"
        for at, name in enumerate(Held._fields)
        if (after := min(s[at] for s in last)) > (before := max(s[at] for s in first)) + slack[at]
    ]


def table(rng: random.Random, first: int) -> pa.Table:
    """Records with nulls, headers now and then, and keys that come again."""
    size, keys = rng.choice((0, 10, 100, 700)), rng.choice((10, 1000, ROWS))
    rows = range(ROWS)
    pool = [rng.randbytes(size) for _ in range(64)]
    columns = {
        "offset": [first + row for row in rows],
        "timestamp": [NOW + row for row in rows],
        "key": [b"%d" % rng.randrange(keys) for _ in rows],
        "value": [None if rng.random() < 0.05 else rng.choice(pool) for _ in rows],
    }
    if rng.random() < 0.3:
        columns["headers"] = [[{"key": "trace", "value": rng.choice(pool)}] for _ in rows]
    return pa.table(columns)


def one_round(folder: Path, rng: random.Random, codec: str | None) -> int:
    """Encode, decode, dump and compact one log; the records that were decoded."""
    partition = folder / "orders-0"
    records = table(rng, 0)
    config = {"segment.bytes": 1 << 20, "cleanup.policy": "compact"}
    with kafkajit.LogWriter(partition, config) as log:
        for batches in kafkajit.iter_encoded_batches(records, compression_type=codec):
            log.append(batches)
    read = 0
    for path in sorted(partition.glob("*.log")):
        read += sum(batch.num_rows for batch in kafkajit.iter_records(path))
        read += sum(batch.num_rows for batch in kafkajit.iter_records(path, binary_view=True))
        read += spoilt(path.read_bytes(), rng)
        kafkajit.read_record_batches(path)
        dump(path, rng)
    plan = kafkajit.compact(partition, config=kafkajit.LogConfig.of(config), now=NOW + 10**9)
    plan.apply(keep=False)
    kafkajit.repair(partition)
    read += kafkajit.Log(partition).read(0, columns=["offset", "key"]).num_rows
    shutil.rmtree(folder)
    return read


def spoilt(content: bytes, rng: random.Random) -> int:
    """Decode a segment with a few other bytes, in every mode."""
    broken = bytearray(content)
    for _ in range(3):
        broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
    del broken[len(broken) - rng.randrange(100) :]
    data = bytes(broken)
    read = kafkajit.read_records(data, mode="DROPMALFORMED").num_rows
    read += kafkajit.read_records(data, mode="PERMISSIVE").num_rows
    with suppress(kafkajit.KafkaJitError):
        read += kafkajit.read_records(data).num_rows
    kafkajit.find_corruption(data)
    return read


def dump(path: Path, rng: random.Random) -> None:
    """Print a segment as kafka-dump-log does, to nobody."""
    chosen = rng.choice((["--print-data-log"], [], ["--deep-iteration"], ["--format", "json"]))
    with Path(os.devnull).open("w") as nobody, redirect_stdout(nobody), redirect_stderr(nobody):
        command(["dump-log", *chosen, "--files", str(path)])


def watch(
    one_round: Callable[[int], int], seconds: float, warm_up: int = WARM_UP_ROUNDS
) -> list[Held]:
    """Run rounds for a time, print a line a minute, and return what was held after each."""
    samples: list[Held] = []
    begun = time.monotonic()
    said, rounds, read = begun, 0, 0
    while time.monotonic() < begun + seconds:
        read += one_round(rounds)
        rounds += 1
        held = Held.now()
        if rounds > warm_up:
            samples.append(held)
        if time.monotonic() >= said + 60:
            said = time.monotonic()
            minutes = (said - begun) / 60
            print(f"{minutes:5.1f} min: {rounds} rounds, {read:,} records; {held}", flush=True)
    return samples


def main() -> int:
    """Run for the time that the arguments state; 1 if something grew."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="of what is random (default: 1)")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="kafkajit-") as temporary:
        root = Path(temporary)

        def turn(number: int) -> int:
            return one_round(root / str(number), rng, CODECS[number % len(CODECS)])

        samples = watch(turn, options.minutes * 60)
    if len(samples) < 3:
        print("too short: nothing is counted before kernels are compiled and pools are filled")
        return 1
    found = growing(samples)
    print(*found or [f"flat over {len(samples)} rounds"], sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
