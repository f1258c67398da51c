"""Spoilt logs: whatever the bytes, a reader gives what the reference gives, or a named error.

A short run of tests/support/fuzz.py, and whole logs that are spoilt anywhere: a few thousand by
default, N with KAFKAJIT_FUZZ=N; pytest runs them with --thorough.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import reference
from corpus import NO_JIT, run_python
from fuzz import Fuzzer, check_decoders, our_decompress
from fuzz_checks import check, check_gaps
from mutations import mutants

COUNT = int(os.environ.get("KAFKAJIT_FUZZ", "3000" if NO_JIT else "20_000"))
SEED = 20_000
SHARDS = 10

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("shard", range(SHARDS))
def test_of_mutated_batches_each_is_read_as_the_reference_reads_it_or_is_a_gap(
    shard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "decompress", our_decompress)
    fuzzer = Fuzzer(SEED + shard)
    for _ in range(1 if NO_JIT else COUNT // SHARDS // 100):
        fuzzer.round(20 if NO_JIT else 100)
    # neither all refused nor all taken, or nothing was learnt
    assert 0.1 < fuzzer.counts["taken"] / fuzzer.counts["mutants"] < 0.9


def numbered(count: int, seed: int) -> Iterator[tuple[int, bytes]]:
    return enumerate(mutants(count, seed))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_spoilt_logs_are_read_as_the_reference_reads_them(shard: int) -> None:
    read = 0
    for number, log in numbered(COUNT // SHARDS, SEED + shard):
        try:
            read += check(log)
            check_decoders(log)
        except BaseException:
            print(f"log {number} of shard {shard}: {log.hex()}")  # noqa: T201 - for the report
            raise
    # neither all refused nor all taken, or nothing was learnt
    assert 0.1 < read / (COUNT // SHARDS) < 0.9


@pytest.mark.parametrize("shard", range(SHARDS))
def test_of_a_spoilt_log_only_the_gaps_are_lost(shard: int) -> None:
    for number, log in numbered(COUNT // SHARDS // 4, 2 * SEED + shard):
        try:
            check_gaps(log)
        except BaseException:
            print(f"log {number} of shard {shard}: {log.hex()}")  # noqa: T201 - for the report
            raise


GUARDED = """
import ctypes, sys
import kafkajit
from fuzz import Guarded
from kafkajit import testing as kt
from mutations import mutants, seeds

guarded = Guarded(1 << 16)

def read(log):
    content = guarded.holding(log)
    for reader in readers:
        try:
            reader(content)
        except kafkajit.KafkaJitError:
            pass

readers = [
    kafkajit.read_records,
    lambda log: kafkajit.read_records(log, check_crcs=False, max_decompressed_bytes=1 << 20),
    lambda log: kafkajit.read_records(
        log, columns=["key", "value", "headers"], binary_view=True
    ).to_pylist(),
    kafkajit.read_record_batches,
    kafkajit.valid_bytes,
]
logs = seeds()
for log in logs[: int(sys.argv[1])]:
    for size in range(len(log) + 1):
        read(log[:size])
for log in mutants(int(sys.argv[2]), 1):
    read(log[: 1 << 16])
# varints that never end, from every field on
record = kt.Record(b"k", b"v", [("h", b"x")], length=60).encode(0, 0)
for size in range(len(record) + 1):
    for rest in range(30):
        read(kt.batch([record[:size] + bytes([0xFF]) * rest], records_count=2))
        read(kt.batch([kt.Record(), record[:size] + bytes([0x80]) * rest]))
print("read")
"""


def test_a_log_that_ends_where_memory_ends_is_read_and_nothing_behind_it() -> None:
    cuts, spoilt = ("1", "30") if NO_JIT else ("6", "1500")
    assert run_python(GUARDED, cuts, spoilt) == "read\n"


def test_the_guard_is_one() -> None:
    """The test above relies on this: a read of one byte behind the log ends the process."""
    beyond = GUARDED.replace("logs = seeds()", "ctypes.string_at(guarded.end, 1)")
    with pytest.raises(AssertionError, match="exit code -"):
        run_python(beyond, "1", "1")
