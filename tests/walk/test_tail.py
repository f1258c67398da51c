"""Every byte of a log is a record batch's, a torn tail's, a preallocated zero, or damage."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lz4.frame
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import reference
import zstandard
from corpus import NO_JIT, rows_of
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
from kafkajit import testing as kt
from kafkajit.errors import CorruptRecordError, KafkaJitError, NotALogError

MODES = ("FAILFAST", "DROPMALFORMED", "PERMISSIVE")
by_mode = pytest.mark.parametrize("mode", MODES)


def batch(offset: int, records: int = 2, size: int = 20) -> bytes:
    return kt.batch([kt.Record(b"key", b"v" * size)] * records, base_offset=offset)


LOG = [batch(0), batch(2), batch(4, size=300), kt.message_set([kt.Record(b"k")], base_offset=6)]


def with_size(entry: bytes, size: int) -> bytes:
    return entry[:8] + struct.pack(">i", size) + entry[12:]


def offsets(source: Any, mode: str = "FAILFAST") -> list[int]:
    table = kafkajit.read_records(source, columns=["offset"], mode=mode)
    return [offset for offset in table["offset"].to_pylist() if offset is not None]


def gaps(source: Any) -> list[tuple[int, int]]:
    table = kafkajit.find_corruption(source)
    return [(row["position"], row["length"]) for row in rows_of(table)]


DOORS: dict[str, Callable[[Any], Any]] = {
    "read_records": kafkajit.read_records,
    "threads": lambda source: kafkajit.read_records(source, threads=3),
    "iter_records": lambda source: list(kafkajit.iter_records(source)),
    "read_record_batches": kafkajit.read_record_batches,
    "valid_bytes": kafkajit.valid_bytes,
}
by_door = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)


@by_door
@pytest.mark.parametrize("bad", range(len(LOG)))
@pytest.mark.parametrize("size", [5000, 2**31 - 1, 0, -1, 13, -(2**31)])
def test_a_damaged_size_is_an_error_wherever_it_stands(
    door: Callable[[Any], Any], bad: int, size: int
) -> None:
    parts = [with_size(part, size) if i == bad else part for i, part in enumerate(LOG)]
    with pytest.raises(CorruptRecordError) as caught:
        door(b"".join(parts))
    assert caught.value.position == sum(map(len, LOG[:bad]))


@pytest.mark.parametrize("bad", range(len(LOG)))
@pytest.mark.parametrize("size", [5000, 2**31 - 1, 0, -1, 13, -(2**31)])
def test_a_damaged_size_costs_its_batch_alone(bad: int, size: int) -> None:
    log = b"".join(with_size(part, size) if i == bad else part for i, part in enumerate(LOG))
    start = sum(map(len, LOG[:bad]))
    expected = [
        offset for i in range(len(LOG)) if i != bad for offset in ([0, 1], [2, 3], [4, 5], [6])[i]
    ]
    assert gaps(log) == [(start, len(LOG[bad]))]
    for mode in MODES[1:]:
        assert offsets(log, mode) == expected


def test_the_table_of_batches_has_a_row_for_damage() -> None:
    log = LOG[0] + with_size(LOG[1], 5000) + LOG[2]
    dropped = kafkajit.read_record_batches(log, mode="DROPMALFORMED")
    assert dropped["baseOffset"].to_pylist() == [0, 4]
    rows = kafkajit.read_record_batches(log, mode="PERMISSIVE").to_pylist()
    assert [row["baseOffset"] for row in rows] == [0, None, 4]
    gap = rows[1]["corruption"]
    assert (gap["position"], gap["length"]) == (len(LOG[0]), len(LOG[1]))


def test_the_error_says_where_the_log_goes_on_and_what_to_do() -> None:
    log = LOG[0] + with_size(LOG[1], 5000) + LOG[2]
    start, behind = len(LOG[0]), len(LOG[0] + LOG[1])
    with pytest.raises(CorruptRecordError) as caught:
        kafkajit.read_records(log)
    assert str(caught.value) == (
        f"record size 5000 leads past the end of the log, but a sound batch begins at {behind} at "
        f"position {start}, base offset 2: read it with mode DROPMALFORMED or PERMISSIVE, or see "
        "`kafkajit repair`"
    )


@pytest.mark.parametrize(
    "tail", [b"", b"torn", bytes(17), bytes(500), batch(9)[:30], batch(9)[:80]]
)
@pytest.mark.parametrize("entry", [batch(6), kt.message(kt.Record(b"k", b"v"), offset=6)])
def test_a_whole_last_batch_with_a_damaged_size_is_no_torn_tail(tail: bytes, entry: bytes) -> None:
    log = LOG[0] + with_size(entry, 5000) + tail
    if tail == b"torn":  # which no batch begins with, so it may as well be the last one's
        assert offsets(log) == [0, 1]
        return
    with pytest.raises(CorruptRecordError, match="leads past the end of the log, but its checksum"):
        kafkajit.read_records(log)
    assert gaps(log)[0][0] == len(LOG[0])


@by_mode
def test_a_batch_that_was_never_finished_is_the_end_of_the_last_segment(mode: str) -> None:
    last = batch(2)
    for cut in range(1, len(last)):
        log = LOG[0] + last[:-cut]
        assert offsets(log, mode) == [0, 1]
        assert gaps(log) == []
        first = last[:-cut]  # of a log that has no other
        assert offsets(first, mode) == []
        assert gaps(first) == []


@by_mode
def test_a_message_that_was_never_finished_is_an_empty_log(mode: str) -> None:
    for magic in (0, 1):
        whole = kt.message(kt.Record(b"key" * 9, b"value"), magic=magic, offset=70_000)
        for cut in range(1, len(whole)):
            assert offsets(whole[:-cut], mode) == []
            assert gaps(whole[:-cut]) == []


def segments(tmp_path: Path, *contents: bytes) -> list[Path]:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    paths = [folder / f"{10 * i:020}.log" for i in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return paths


TAILS = {
    "a torn batch": batch(2)[:-1],
    "a byte": b"\0",
    "zeros": bytes(5000),
    "17 bytes": b"\xff" * 17,
}


@by_door
@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
def test_a_segment_that_another_follows_ends_with_a_batch(
    door: Callable[[Any], Any], tail: bytes, tmp_path: Path
) -> None:
    cut, last = segments(tmp_path, LOG[0] + tail, batch(10) + tail)
    with pytest.raises(CorruptRecordError, match=f"{last.name} follows this segment") as caught:
        door(cut)
    assert caught.value.position == len(LOG[0])
    door(last)
    door(cut.read_bytes())  # bytes have no folder
    last.unlink()
    door(cut)


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
def test_a_cut_segment_costs_its_tail_alone(tail: bytes, tmp_path: Path) -> None:
    cut, last = segments(tmp_path, LOG[0] + tail, batch(10) + tail)
    assert gaps(cut) == [(len(LOG[0]), len(tail))]
    assert gaps(last) == []
    for mode in MODES[1:]:
        assert offsets(cut, mode) == [0, 1]
        log = kafkajit.Log(cut.parent, mode=mode)
        assert log.read(0, columns=["offset"])["offset"].to_pylist() == [0, 1, 10, 11]
    log = kafkajit.Log(cut.parent)
    assert log.read(0, 2, columns=["offset"])["offset"].to_pylist() == [0, 1]
    with pytest.raises(CorruptRecordError, match="follows this segment"):
        log.read(0)
    assert log.end_offset == 12


def test_an_empty_segment_may_be_followed(tmp_path: Path) -> None:
    empty, last = segments(tmp_path, b"", batch(10))
    assert offsets(empty) == []
    assert offsets(last) == [10, 11]


def test_other_files_do_not_follow_a_segment(tmp_path: Path) -> None:
    (cut,) = segments(tmp_path, LOG[0] + b"torn")
    for name in (f"{20:020}.index", f"{20:020}.log.deleted", "20.log", f"{2**63:020}.log"):
        cut.with_name(name).write_bytes(b"")
    assert offsets(cut) == [0, 1]


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": range(1000)}), sink)
    return sink.getvalue()


def arrow(make: Callable[..., Any]) -> bytes:
    table, sink = pa.table({"a": range(1000)}), io.BytesIO()
    with make(sink, table.schema) as writer:
        writer.write(table)
    return sink.getvalue()


def tar() -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as file:
        file.addfile(tarfile.TarInfo("orders-0/x"))
    return sink.getvalue()


FOREIGN: dict[str, tuple[bytes, str]] = {
    "gzip": (gzip.compress(b"".join(LOG)), r"gzip at .*: decompress it first \(gunzip\)"),
    "zstd": (zstandard.compress(b"".join(LOG)), r"zstd at .*: decompress it first"),
    "lz4": (lz4.frame.compress(b"".join(LOG)), r"an lz4 frame at .*: decompress it first"),
    "parquet": (parquet(), "Parquet at"),
    "arrow file": (arrow(pa.ipc.new_file), "Arrow at"),
    "arrow stream": (arrow(pa.ipc.new_stream), "Arrow at"),
    "html": (b"\n<!DOCTYPE html><html><body>404</body></html>" * 9, "HTML at"),
    "xml": (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "XML at"),
    "json": (b'{"error": "no such key"}', "JSON at"),
    "text": ("no such k\xe9y\n".encode() * 99, "text at"),
    "a word": (b"torn", "text at"),
    "tar": (tar(), "tar at .*: unpack it first"),
    "zip": (b"PK\x03\x04" + bytes(range(200)), "zip at .*: unpack it first"),
    "noise": (random.Random(1).randbytes(100_000), "unknown bytes at"),
    "little noise": (random.Random(4).randbytes(70), "unknown bytes at"),
    "zeros, then noise": (bytes(100) + random.Random(2).randbytes(1000), "unknown bytes at"),
}
by_foreign = pytest.mark.parametrize(("content", "text"), FOREIGN.values(), ids=FOREIGN)


@by_door
@by_foreign
def test_a_file_that_is_no_log_is_refused_with_what_it_seems_to_be(
    door: Callable[[Any], Any], content: bytes, text: str
) -> None:
    with pytest.raises(NotALogError, match=f"this is not a Kafka log: it seems to be {text}"):
        door(content)


@by_foreign
def test_a_file_that_is_no_log_is_one_gap(content: bytes, text: str) -> None:
    del text
    assert gaps(content) == [(0, len(content))]
    assert offsets(content, "DROPMALFORMED") == []
    (row,) = kafkajit.read_records(content, mode="PERMISSIVE")["corruption"].to_pylist()
    assert row["reason"].startswith("NotALogError: ")


def test_noise_that_is_framed_as_a_batch_is_no_log_either() -> None:
    noise = bytearray(random.Random(3).randbytes(10_000))
    noise[8:12] = struct.pack(">i", 5000)
    for door in DOORS.values():
        with pytest.raises(NotALogError, match="unknown bytes"):
            door(bytes(noise))


@pytest.mark.parametrize("at", [0, 8, 12, 16, 17, 21, 22, 40, 57, 70])
def test_a_log_whose_first_batch_is_damaged_is_a_log(at: int) -> None:
    for behind in (b"", LOG[1]):
        log = bytearray(LOG[0] + behind)
        log[at] ^= 0x90
        try:
            kafkajit.read_records(bytes(log))
        except NotALogError:
            pytest.fail("it is a log")
        except KafkaJitError:
            pass


def test_magics_above_2_are_refused_and_gone_past() -> None:
    for magic in (3, 4, 127, 200):
        entry = bytearray(LOG[1])
        entry[16] = magic
        log = LOG[0] + bytes(entry) + LOG[2]
        with pytest.raises(CorruptRecordError, match="Invalid magic found in record: ") as caught:
            kafkajit.read_records(log)
        assert caught.value.position == len(LOG[0])
        for mode in MODES[1:]:
            assert offsets(log, mode) == [0, 1, 4, 5]
        assert gaps(log) == [(len(LOG[0]), len(LOG[1]))]


def mutated(rng: random.Random) -> tuple[bytes, list[bytes]]:
    """A log with a few changes to its bytes, and the batches that it was."""
    parts = [
        kt.batch(
            [kt.Record(b"k", rng.randbytes(rng.randrange(60)))] * rng.randint(1, 4),
            base_offset=10 * i,
            codec=rng.choice(["none", "none", "lz4"]),
        )
        if rng.random() < 0.8
        else kt.message(kt.Record(b"k", rng.randbytes(9)), offset=10 * i, magic=rng.randint(0, 1))
        for i in range(rng.randint(1, 6))
    ]
    log = bytearray(b"".join(parts))
    for _ in range(rng.randint(1, 3)):
        start = rng.choice([0, *(sum(map(len, parts[:i])) for i in range(len(parts)))])
        kind = rng.randrange(7)
        if kind == 0:  # what no checksum covers: the size, and the magic
            at = min(start + rng.choice([8, 9, 10, 11, 16]), len(log) - 1)
            log[at] = rng.choice([0, 0x7F, 0xFF, log[at] ^ 1 << rng.randrange(8)])
        elif kind == 1:
            at = rng.randrange(len(log))
            log[at] = rng.randrange(256)
        elif kind == 2:
            at = rng.randrange(len(log))
            log[at : at + rng.randrange(80)] = bytes(rng.randrange(80))
        elif kind == 3:
            at = rng.randrange(len(log))
            del log[at : at + rng.randrange(1, 80)]
        elif kind == 4:
            del log[rng.randrange(1, len(log) + 1) :]
        elif kind == 5:
            log += bytes(rng.randrange(200))
        else:
            at = rng.randrange(len(log))
            log[at:at] = rng.randbytes(rng.randrange(1, 80))
        if not log:
            log += b"\0"
    return bytes(log), parts


def covered(log: bytes) -> None:
    """Hold a log against the rule in this file's first line."""
    table = kafkajit.read_records(log, mode="PERMISSIVE")
    found = [row["corruption"] for row in rows_of(table) if row["corruption"] is not None]
    extents = [(gap["position"], gap["length"]) for gap in found]
    rows = kafkajit.read_records(log, mode="DROPMALFORMED")
    positions = sorted(set(rows["position"].to_pylist()))
    sizes = {}
    for position in positions:
        batches, _, _ = reference.framed(log[position:])
        sizes[position] = batches[0].size
        assert batches[0].is_valid or batches[0].magic < 2
    at = 0
    for start, length in sorted([*extents, *sizes.items()]):
        if start != at:  # a batch without records
            batches, end, _ = reference.framed(log[at:start])
            assert end == start - at
            assert all(batch.records_count == 0 and batch.is_valid for batch in batches)
        at = start + length
    batches, end, problem = reference.framed(log[at:]) if at else reference.framed(log)
    assert all(batch.records_count == 0 and batch.is_valid for batch in batches)
    if at < len(log):
        assert problem is None or at > 0
        assert not reference.any_sound(log, at + end)  # it is torn, or zeros
    merged = gaps(log)
    assert sum(length for _, length in merged) == sum(length for _, length in extents)
    try:
        strict = kafkajit.read_records(log)
    except KafkaJitError:
        assert extents
    else:
        assert not extents
        assert rows_of(strict) == rows_of(rows)


@pytest.mark.parametrize("seed", range(20 if NO_JIT else 300))
def test_every_byte_of_a_mutated_log_is_read_reported_torn_or_zero(seed: int) -> None:
    log, _ = mutated(random.Random(seed))
    covered(log)


@given(st.lists(st.one_of(st.sampled_from(LOG), st.binary(max_size=100)), max_size=4))
def test_every_byte_of_anything_is_read_reported_torn_or_zero(parts: list[bytes]) -> None:
    covered(b"".join(parts))
