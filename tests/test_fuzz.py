"""Spoilt logs: whatever the bytes, a reader gives what the reference gives, or a named error.

Default: a few thousand of them. KAFKAJIT_FUZZ=N makes it N.

The decoders of gzip, snappy, lz4 and zstd differ in what they let pass (Python's gzip, for one,
refuses what stands behind the last member, where Java and isal end). So a batch is held in two
steps: the reference reads the records that *our* decoder gives; and where the reference's decoder
takes a batch too, both have to give the same bytes. What only one of them takes is in LENIENT.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import numpy as np
import pytest
import reference
from corpus import NO_JIT, expected_rows, rows_of, run_python, without_gaps
from mutations import mutants

import kafkajit
from kafkajit.format.compression import DecodeError, OutputFull, decompress_into

COUNT = int(os.environ.get("KAFKAJIT_FUZZ", "3000" if NO_JIT else "20_000"))
SEED = 20_000
SHARDS = 10

# codec: what our decoder takes and the reference's does not, and the other way round
LENIENT = {
    1: ("bytes behind the last member, as in Java", "nothing"),
    2: ("streams one behind the other; the byte order from the first block", "a cut last block"),
    3: ("nothing", "nothing"),
    4: ("nothing", "a frame that ends early, which Java refuses"),
}
ROOM = 1 << 22


def our_decompress(codec: int, payload: bytes) -> bytes:
    if codec == 0:
        return payload
    if codec > 4:
        raise reference.Invalid(f"codec {codec}")
    out = np.empty(ROOM, dtype=np.uint8)
    try:
        size = decompress_into(codec, memoryview(payload), out)
    except (DecodeError, OutputFull) as error:
        raise reference.Invalid(str(error)) from error
    return out[:size].tobytes()


def check(log: bytes, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Hold one log against the reference; whether it is read to the end."""
    with monkeypatch.context() as patch:
        patch.setattr(reference, "decompress", our_decompress)
        expected, invalid = expected_rows(log)
    error: kafkajit.KafkaJitError | None = None
    rows = []
    try:
        for batch in kafkajit.iter_records(log, max_decompressed_bytes=ROOM):
            batch.validate(full=True)
            rows += rows_of(batch)
    except kafkajit.KafkaJitError as caught:
        error = caught
    assert (error is None) == (invalid is None), f"{error!r} where the reference says {invalid!r}"
    if not_utf8(log):  # Java's replacement is another than Python's
        blank_header_keys(rows)
        blank_header_keys(expected)
    assert rows == expected
    return error is None


def not_utf8(log: bytes) -> bool:
    return re.search(rb"[\x80-\xff]", log) is not None


def blank_header_keys(rows: list[dict]) -> None:
    for row in rows:
        for header in row["headers"] or ():
            if "\ufffd" in header["key"]:
                header["key"] = "\ufffd"


def check_decoders(log: bytes) -> None:
    try:
        batches, _ = reference.read_batches(log)
    except reference.Invalid:
        return
    for batch in batches:
        if not batch.is_valid or not 1 <= batch.codec <= 4:
            continue
        try:
            ours: bytes | None = our_decompress(batch.codec, batch.payload)
        except reference.Invalid:
            ours = None
        try:
            theirs: bytes | None = reference.decompress(batch.codec, batch.payload)
        except reference.Invalid:
            theirs = None
        if ours is None or theirs is None:
            taken_by_one = LENIENT[batch.codec][0 if theirs is None else 1]
            assert ours == theirs or taken_by_one != "nothing", batch
        else:
            assert ours == theirs


def numbered(count: int, seed: int) -> Iterator[tuple[int, bytes]]:
    return enumerate(mutants(count, seed))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_spoilt_logs_are_read_as_the_reference_reads_them(
    shard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0
    for number, log in numbered(COUNT // SHARDS, SEED + shard):
        try:
            read += check(log, monkeypatch)
            check_decoders(log)
        except BaseException:
            print(f"log {number} of shard {shard}: {log.hex()}")  # noqa: T201 - for the report
            raise
    # neither all refused nor all taken, or nothing was learnt
    assert 0.1 < read / (COUNT // SHARDS) < 0.9


@pytest.mark.parametrize("shard", range(SHARDS))
def test_of_a_spoilt_log_only_the_gaps_are_lost(
    shard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "decompress", our_decompress)
    for number, log in numbered(COUNT // SHARDS // 4, 2 * SEED + shard):
        try:
            check_gaps(log)
        except BaseException:
            print(f"log {number} of shard {shard}: {log.hex()}")  # noqa: T201 - for the report
            raise


def check_gaps(log: bytes) -> None:
    table = kafkajit.read_records(log, mode="PERMISSIVE", max_decompressed_bytes=ROOM)
    table.validate(full=True)
    rows = rows_of(table)
    gaps = [row["corruption"] for row in rows if row["corruption"] is not None]
    expected, invalid = expected_rows(without_gaps(log, gaps))
    assert invalid is None
    found = [row for row in rows if row.pop("corruption") is None]
    if not_utf8(log):
        blank_header_keys(found)
        blank_header_keys(expected)
    for row in [*found, *expected]:
        del row["position"]  # the log without its gaps is shorter
    assert found == expected


GUARDED = """
import ctypes, mmap, sys
import kafkajit
from kafkajit import testing as kt
from mutations import mutants, seeds

libc = ctypes.CDLL(None, use_errno=True)
memory = mmap.mmap(-1, 5 * mmap.PAGESIZE)
end = 4 * mmap.PAGESIZE
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
protected = libc.mprotect(ctypes.c_void_p(address + end), mmap.PAGESIZE, 0)
assert protected == 0, ctypes.get_errno()

def read(log):
    start = end - len(log)
    memory[start:end] = log
    flush = memoryview(memory)[start:end]
    for reader in readers:
        try:
            reader(flush)
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
    read(log[:end])
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
    """What the test above relies on: a byte read behind the log ends the process."""
    beyond = GUARDED.replace("logs = seeds()", "ctypes.string_at(address + end, 1)")
    with pytest.raises(AssertionError, match="exit code -"):
        run_python(beyond, "1", "1")
