"""Mutated batches by the million: whatever the bytes, a reader returns what the reference returns.

    PYTHONPATH=.:tests python tests/support/fuzz.py --batches 1000000

Each round is a log of mutants with a sound batch behind each, in memory that ends where the log
does (a guard page follows). If the reference accepts a mutant, the reader must return exactly its
records. Every other mutant must be one gap, and the batches between mutants must be there. A round
that takes too long ends the run, as does memory above the limit. NUMBA_BOUNDSCHECK=1 switches on
numba's bounds checks.

The decoders of gzip, snappy, lz4 and zstd accept different malformed input. For one, Python's gzip
refuses bytes behind the last member, and Java and isal ignore them. So a batch is compared in two
steps. The reference reads the records from the output of *kafkajit's* decoder. If the reference's
decoder also accepts the batch, both must return the same bytes. LENIENT lists the payloads that
only one of them accepts.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import json
import mmap
import random
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import reference
from corpus import batch_records, batch_rows, rows_of
from mutations import framed_mutant, seeds

import kafkajit
from kafkajit import testing as kt
from kafkajit.format.compression import DecodeError, OutputFull, decompress_into
from kafkajit.records.columns import BinaryColumn, ColumnMemory, Wanted
from kafkajit.storage.source import Source
from kafkajit.text.log_dump import LogDump, Style
from kafkajit.walk.damage import Gap
from kafkajit.walk.walk import Walk

# codec: payloads that only our decoder accepts, and those that only the reference's accepts
LENIENT = {
    1: ("bytes behind the last member, as in Java", "nothing"),
    2: ("streams one behind the other; the byte order from the first block", "a cut last block"),
    3: ("a stored block of no bytes for the end mark, as in Java", "nothing"),
    4: ("nothing", "a frame that ends early, which Java refuses"),
}
ROOM = 1 << 22  # the largest decompressed batch

ROUND = 100  # mutants in a log
SECONDS_PER_ROUND = 60
MEGABYTES = 700  # bytes above the process's memory before the first round
_GUARDED_BYTES = 4 << 20


def our_decompress(codec: int, payload: bytes, room: int = ROOM) -> bytes:
    """The result of kafkajit's decoder for a payload, in the reference's form."""
    if codec == 0:
        return payload
    if codec > 4:
        raise reference.Invalid(f"codec {codec}")
    out = np.empty(room, dtype=np.uint8)
    try:
        size = decompress_into(codec, memoryview(payload), out)
    except (DecodeError, OutputFull) as error:
        raise reference.Invalid(str(error)) from error
    return out[:size].tobytes()


def check_decoders(log: bytes) -> None:
    """Check that both decoders return the same bytes for every batch that both accept."""
    try:
        batches, _ = reference.read_batches(log)
    except reference.Invalid:
        return
    for batch in batches:
        if not batch.is_valid or not 1 <= batch.codec <= 4 or batch.magic != 2:
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


def same_rows(found: list[dict[str, Any]], expected: list[dict[str, Any]], log: bytes) -> bool:
    """Whether rows are equal, except for header keys that Java and Python repair differently."""
    if re.search(rb"[\x80-\xff]", log):
        for row in (*found, *expected):
            for header in row["headers"] or ():
                if "\ufffd" in header["key"]:
                    header["key"] = "\ufffd"
    return found == expected


def values_of(column: BinaryColumn, rows: int, has_nulls: bool) -> list[bytes | None]:
    """A binary column's values."""
    ends = column.offsets[: rows + 1].tolist()
    data = column.data[: ends[-1]].tobytes()
    valid = np.unpackbits(column.validity, bitorder="little").tolist()
    return [
        data[start:end] if is_valid or not has_nulls else None
        for start, end, is_valid in zip(ends, ends[1:], valid, strict=False)
    ]


class Guarded:
    """Memory with a page behind it that must not be touched."""

    def __init__(self, size: int = _GUARDED_BYTES) -> None:
        self._memory = mmap.mmap(-1, size + mmap.PAGESIZE)
        self._size = size
        self.end = ctypes.addressof(ctypes.c_char.from_buffer(self._memory)) + size
        libc = ctypes.CDLL(None, use_errno=True)
        failed = libc.mprotect(ctypes.c_void_p(self.end), mmap.PAGESIZE, 0)
        assert failed == 0, ctypes.get_errno()

    def holding(self, log: bytes) -> memoryview:
        """The same bytes, moved to the very end of the memory."""
        self._memory[self._size - len(log) : self._size] = log
        return memoryview(self._memory)[self._size - len(log) : self._size]


Check = Callable[[list[bytes], memoryview], None]

SOUND = [kt.batch([kt.Record(value=b"sound")], base_offset=i) for i in range(ROUND)]


@dataclass
class Fuzzer:
    """Rounds of mutants, and their results."""

    seed: int
    guarded: Guarded = field(default_factory=Guarded)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._seeds = seeds()
        self._memory = ColumnMemory(Wanted(True, True, True, True, True, True))

    def round(self, size: int = ROUND) -> None:
        """Read one log of mutants."""
        mutants = [framed_mutant(self._random, self._seeds) for _ in range(size)]
        checks = [self._check_rows if self._random.random() < 0.1 else self._check_records]
        if self._random.random() < 0.03:
            checks.append(self._read_otherwise)
        try:
            self._check(mutants, checks)
        except BaseException:
            self._say_which(mutants, checks)
            raise

    def _say_which(self, mutants: list[bytes], checks: list[Check]) -> None:
        for mutant in mutants:
            try:
                self._check([mutant], checks)
            except Exception:
                print(f"mutant of seed {self.seed}: {mutant.hex()}", file=sys.stderr)  # noqa: T201
                return
        log = b"".join(mutants).hex()
        print(f"together only, of seed {self.seed}: {log}", file=sys.stderr)  # noqa: T201

    def _check(self, mutants: list[bytes], checks: list[Check]) -> None:
        log = b"".join(mutant + SOUND[i] for i, mutant in enumerate(mutants))
        for check in checks:
            check(mutants, self.guarded.holding(log))
        self.counts["mutants"] += len(mutants)

    def _check_records(self, mutants: list[bytes], content: memoryview) -> None:
        """Check offsets, timestamps, keys and values: without Arrow, in half the time."""
        found: dict[int, list[tuple[Any, ...]]] = {}
        gaps: dict[int, int] = {}
        for part in Walk(Source(content), mode="PERMISSIVE").chunks(
            self._memory, max_decompressed_bytes=ROOM
        ):
            if isinstance(part, Gap):
                gaps[part.position] = part.length
                self.counts[re.sub(r":.*", "", part.reason)] += 1
                continue
            columns = part.columns
            offsets = columns.offset[: part.rows].tolist()
            timestamps = columns.timestamp[: part.rows].tolist()
            keys = values_of(columns.key, part.rows, bool(columns.has_nulls[0]))
            values = values_of(columns.value, part.rows, bool(columns.has_nulls[1]))
            records = list(zip(offsets, timestamps, keys, values, strict=True))
            ends = np.cumsum(part.counts).tolist()
            for place, end, count in zip(
                part.batches.position.tolist(), ends, part.counts.tolist(), strict=True
            ):
                found[place] = records[end - count : end]
        position = 0
        for i, mutant in enumerate(mutants):
            expected = self._records(mutant)
            if expected is None:
                assert gaps.pop(position, None) == len(mutant), position
            else:
                self.counts["taken"] += 1
                assert found.pop(position) == [
                    (record.offset, record.timestamp, record.key, record.value)
                    for record in expected
                ], position
            position += len(mutant)
            ((offset, _, _, value),) = found.pop(position)
            assert (offset, value) == (i, b"sound")
            position += len(SOUND[i])
        assert not found
        assert not gaps

    def _records(self, mutant: bytes) -> list[reference.Record] | None:
        try:
            batches, end, _ = reference.framed(mutant, is_beginning=False)
            return batch_records(batches[0]) if end == len(mutant) else None
        except reference.Invalid:
            return None

    def _check_rows(self, mutants: list[bytes], content: memoryview) -> None:
        """Check every column, as Arrow."""
        table = kafkajit.read_records(content, mode="PERMISSIVE", max_decompressed_bytes=ROOM)
        table.validate(full=True)
        found: dict[int, list[dict[str, Any]]] = {}
        gaps: dict[int, int] = {}
        for row in rows_of(table):
            gap = row.pop("corruption")
            if gap is None:
                found.setdefault(row["position"], []).append(row)
            else:
                gaps[gap["position"]] = gap["length"]
                self.counts[re.sub(r"\d+|:.*", "", gap["reason"])] += 1
        position = 0
        for i, mutant in enumerate(mutants):
            rows = self._expected(mutant, position)
            if rows is None:
                assert gaps.pop(position, None) == len(mutant), position
            else:
                self.counts["taken"] += 1
                assert same_rows(found.pop(position, []), rows, mutant), position
            position += len(mutant)
            (sound,) = found.pop(position)
            assert (sound["offset"], sound["value"]) == (i, b"sound")
            position += len(SOUND[i])
        assert not found
        assert not gaps

    def _expected(self, mutant: bytes, position: int) -> list[dict[str, Any]] | None:
        try:
            batches, end, _ = reference.framed(mutant, is_beginning=False)
            if end != len(mutant):
                return None
            rows = batch_rows(mutant, batches[0])
        except reference.Invalid:
            return None
        return [row | {"position": position} for row in rows]

    def _read_alone(self, content: memoryview) -> None:
        """Read a mutant with nothing between it and the guard page."""
        for check_crcs in (True, False):
            try:
                kafkajit.read_records(content, check_crcs=check_crcs, max_decompressed_bytes=ROOM)
            except kafkajit.KafkaJitError as error:
                self.counts[f"alone: {type(error).__name__}"] += 1

    def _read_otherwise(self, mutants: list[bytes], content: memoryview) -> None:
        """Check that other readers only raise named errors; then read each mutant alone."""
        for reader in (
            kafkajit.read_records,
            lambda log: kafkajit.read_records(log, check_crcs=False, max_decompressed_bytes=ROOM),
            lambda log: kafkajit.read_records(
                log, columns=["key", "value", "headers"], binary_view=True, mode="DROPMALFORMED"
            ).to_pylist(),
            kafkajit.read_record_batches,
            kafkajit.find_corruption,
        ):
            try:
                reader(content)
            except kafkajit.KafkaJitError as error:
                self.counts[f"otherwise: {type(error).__name__}"] += 1
        for style in (Style(), Style(True, True)):
            for mode in (None, "FAILFAST", "PERMISSIVE"):
                dump = LogDump(Source(content), style, mode=mode)
                for _ in dump.text():
                    pass
                assert mode != "PERMISSIVE" or dump.error is None
        for mutant in mutants:
            check_decoders(mutant)
            self._read_alone(self.guarded.holding(mutant))


def run(batches: int, seed: int) -> Counter[str]:
    """Read mutants in this process; the first error ends the run."""
    reference.decompress = our_decompress
    fuzzer = Fuzzer(seed)
    fuzzer.round()
    limit = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 + MEGABYTES
    while fuzzer.counts["mutants"] < batches:
        faulthandler.dump_traceback_later(SECONDS_PER_ROUND, exit=True)
        fuzzer.round()
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        assert megabytes < limit, f"{megabytes} MB after {fuzzer.counts['mutants']} mutants"
    faulthandler.cancel_dump_traceback_later()
    fuzzer.counts["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return fuzzer.counts


def main() -> None:
    """Share the mutants among processes, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, default=100_000, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first process (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (%(default)s)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(run(options.batches, options.seed)))  # noqa: T201
        return
    started = time.monotonic()
    share = -(-options.batches // options.jobs)
    command = [sys.executable, __file__, "--worker", "--batches", str(share)]
    workers = [
        subprocess.Popen([*command, "--seed", str(options.seed + i)], stdout=subprocess.PIPE)
        for i in range(options.jobs)
    ]
    counts: Counter[str] = Counter()
    megabytes = 0
    for worker in workers:
        output, _ = worker.communicate()
        if worker.returncode:
            sys.exit(f"a worker ended with code {worker.returncode}")
        of_worker = Counter(json.loads(output))
        megabytes = max(megabytes, of_worker.pop("megabytes"))
        counts += of_worker
    print(f"{time.monotonic() - started:.0f} s, {megabytes} MB at most")  # noqa: T201
    for name, count in counts.most_common():
        print(f"{count:>12,} {name}")  # noqa: T201


if __name__ == "__main__":
    main()
