from __future__ import annotations

import random
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import reference
from corpus import (
    DAMAGED_LOGS,
    LOGS,
    NO_JIT,
    SOUND_LOGS,
    by_log,
    by_sound_log,
    expected_rows,
    log_id,
    log_of,
    rows_of,
    without_gaps,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import BATCH

import kafkajit
import kafkajit.testing as kt
from kafkajit.reader import iter_records, read_record_batches, read_records, valid_bytes

by_codec = pytest.mark.parametrize("codec", kt.CODECS)


def read_what_is_good(log: Any, **options: Any) -> tuple[list[dict[str, Any]], Exception | None]:
    """The rows that come before an error, and the error."""
    rows: list[dict[str, Any]] = []
    try:
        for batch in iter_records(log, **options):
            rows += rows_of(batch)
    except kafkajit.KafkaJitError as error:
        return rows, error
    return rows, None


@by_sound_log
def test_the_records_of_a_log_are_those_of_the_reference(path: Path) -> None:
    log = path.read_bytes()
    expected, _ = expected_rows(log)
    assert rows_of(read_records(log)) == expected


@pytest.mark.parametrize("path", DAMAGED_LOGS, ids=log_id)
@pytest.mark.parametrize("check_crcs", [True, False])
def test_a_damaged_log_is_read_up_to_the_damage(path: Path, check_crcs: bool) -> None:
    log = path.read_bytes()
    expected, invalid = expected_rows(log, check_crcs=check_crcs)
    rows, error = read_what_is_good(log, check_crcs=check_crcs)
    assert (error is None) == (invalid is None)
    assert rows == expected
    if error is not None:
        with pytest.raises(type(error), match=re.escape(str(error))):
            read_records(log, check_crcs=check_crcs)


def kafkas_complaints() -> list[Any]:
    """The error of Kafka's own reader when it refused a damaged log."""
    complaint = re.compile(r'in thread "main" \S+\.(\w+)Exception: (.*?)(?: in file .*|, conv.*)?$')
    found = []
    for path in DAMAGED_LOGS:
        err = path.with_name(path.name + ".data.err")
        said = complaint.match(err.read_text().partition("Exception ")[2]) if err.exists() else None
        if path.parent.name == "zeros-100":
            continue  # to us the zeros of a preallocated file, which Java's own reader trips over
        if said and said[1] in ("InvalidRecord", "CorruptRecord"):
            error = {"InvalidRecord": kafkajit.InvalidRecordError}.get(
                said[1], kafkajit.CorruptRecordError
            )
            found.append(pytest.param(path, error, said[2], id=path.parent.name))
    return found


@pytest.mark.parametrize(("path", "error", "message"), kafkas_complaints())
def test_a_refusal_has_kafkas_words(path: Path, error: type[Exception], message: str) -> None:
    if path.parent.name == "gzip-noise":  # Java finds the records wrong before gzip's checksum
        error, message = kafkajit.CorruptRecordError, "Failed to decompress record stream (gzip"
    with pytest.raises(error, match="^" + re.escape(message)):
        read_records(path.read_bytes(), check_crcs=False)  # kafka-dump-log only prints isvalid


def test_the_corpus_has_refusals() -> None:
    assert len(kafkas_complaints()) > 20
    assert len(SOUND_LOGS) > 70


@pytest.mark.parametrize("name", kt.BREAKS)
@by_codec
def test_a_broken_batch_is_a_named_error_with_its_place(name: str, codec: str) -> None:
    good = kt.batch([kt.Record(b"k", b"v")] * 2, base_offset=5)
    breaking = kt.BREAKS[name]
    log = good + kt.broken(name, base_offset=7, codec=codec)
    message = breaking.message if codec == "none" else breaking.when_compressed or breaking.message
    with pytest.raises(kafkajit.KafkaJitError) as caught:
        read_records(log)
    error = caught.value
    assert type(error) is breaking.error
    assert error.message.startswith(message)
    assert error.position == len(good)
    if name != "batch shorter than an entry":  # no batch there, so no base offset
        assert error.base_offset == 7
    assert error.path is None
    rows, _ = read_what_is_good(log)
    assert [row["offset"] for row in rows] == [5, 6]


def test_an_error_from_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "orders-3" / "00000000000000000042.log"
    path.parent.mkdir()
    path.write_bytes(kt.broken("wrong crc", base_offset=42))
    with pytest.raises(kafkajit.CorruptRecordError, match="at position 0, base offset 42 in ") as e:
        read_records(path)
    assert e.value.path == str(path)


@pytest.mark.parametrize("batch_rows", [1, 2, 7, 65536])
def test_iter_records_gives_the_rows_of_read_records(batch_rows: int) -> None:
    names = ("none-0", "zstd-0", "headers-0", "transactions-0", "emptied-0", "large-batch-0")
    for log in [log_of(name) for name in names[: 5 if NO_JIT else 6]]:
        batches = list(iter_records(log, batch_rows))
        assert all(0 < batch.num_rows <= batch_rows for batch in batches)
        assert pa.Table.from_batches(batches, read_records(log).schema.remove_metadata()).equals(
            read_records(log)
        )


def test_iter_records_needs_room_for_a_row() -> None:
    with pytest.raises(ValueError, match="batch_rows must be at least 1, not 0"):
        iter_records(b"", 0)


def test_iter_records_refuses_arguments_before_it_is_asked_for_rows() -> None:
    with pytest.raises(ValueError, match="unknown column 'ofset'"):
        iter_records(b"", columns=["ofset"])
    with pytest.raises(ValueError, match="unknown mode 'LENIENT'"):
        iter_records(b"", mode="LENIENT")


@by_log
def test_the_headers_of_batches_are_those_of_the_reference(path: Path) -> None:
    log = path.read_bytes()
    try:
        batches, end = reference.read_batches(log)
    except reference.Invalid:
        with pytest.raises(kafkajit.CorruptRecordError, match=r"smaller than minim|checksum holds"):
            read_record_batches(log)
        return
    table = read_record_batches(log)
    rows = rows_of(table)
    assert [(row["position"], row["sizeInBytes"]) for row in rows] == [
        (batch.position, batch.size) for batch in batches
    ]
    assert [row["isValid"] for row in rows] == [batch.is_valid for batch in batches]
    for row, batch in zip(rows, batches, strict=True):
        if batch.size >= 61:  # of a smaller one Java reads on into what follows
            is_set = batch.magic < 2 and batch.codec != 0  # which only its records could tell
            assert row == {
                "baseOffset": None if is_set else batch.base_offset,
                "lastOffset": batch.base_offset + batch.last_offset_delta,
                "recordsCount": None if is_set else batch.records_count,
                "baseSequence": batch.base_sequence,
                "lastSequence": batch.last_sequence,
                "producerId": batch.producer_id,
                "producerEpoch": batch.producer_epoch,
                "partitionLeaderEpoch": batch.partition_leader_epoch,
                "isTransactional": batch.is_transactional,
                "isControlBatch": batch.is_control,
                "deleteHorizonMs": batch.delete_horizon_ms,
                "position": batch.position,
                "timestampType": batch.timestamp_type,
                "baseTimestamp": batch.base_timestamp,
                "maxTimestamp": batch.max_timestamp,
                "sizeInBytes": batch.size,
                "magic": batch.magic,
                "compressionType": {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}.get(
                    batch.codec, f"unknown({batch.codec})"
                ),
                "crc": batch.crc,
                "isValid": batch.is_valid,
            }
    assert valid_bytes(log) == end
    assert table.schema.metadata == {
        b"validBytes": str(end).encode(),
        b"trailingBytes": str(len(log) - end).encode(),
    }


def golden_lines(path: Path) -> list[re.Match[str]]:
    batch = re.compile(
        r"baseOffset: (?P<baseOffset>-?\d+) lastOffset: (?P<lastOffset>-?\d+) "
        r"count: (?P<recordsCount>-?\d+) baseSequence: (?P<baseSequence>-?\d+) "
        r"lastSequence: (?P<lastSequence>-?\d+) producerId: (?P<producerId>-?\d+) .*"
        r"position: (?P<position>\d+) .*size: (?P<sizeInBytes>\d+) magic: (?P<magic>-?\d+) .*"
        r"crc: (?P<crc>\d+) isvalid: (?P<isValid>true|false)"
    )
    message = re.compile(
        r"offset: (?P<lastOffset>\d+) position: (?P<position>\d+) \w+: (?P<maxTimestamp>-?\d+) "
        r"size: (?P<sizeInBytes>\d+) magic: (?P<magic>\d) .*crc: (?P<crc>\d+) "
        r"isvalid: (?P<isValid>true|false)"
    )
    text = path.with_name(path.name + ".batches.out").read_text()
    lines = [batch.match(line) or message.match(line) for line in text.splitlines()]
    return [line for line in lines if line]


@pytest.mark.parametrize("path", [path for path in LOGS if path.suffix != ".deleted"], ids=log_id)
def test_the_headers_of_batches_are_those_that_kafka_prints(path: Path) -> None:
    try:
        rows = rows_of(read_record_batches(path))
    except kafkajit.CorruptRecordError:
        return  # of these logs the reference says the same, above
    for row, golden in zip(rows, golden_lines(path), strict=False):
        for name, text in golden.groupdict().items():
            assert row[name] == (text == "true" if name == "isValid" else int(text)), name
    if path in SOUND_LOGS:  # Java may stop in the middle of a damaged one
        assert len(rows) == len(golden_lines(path))


def test_a_batch_with_a_wrong_checksum_is_read_without_checks(three_batches: bytes) -> None:
    wrong = bytearray(three_batches)
    wrong[17] ^= 1
    with pytest.raises(kafkajit.CorruptRecordError, match=r"Record is corrupt \(stored crc = "):
        read_records(bytes(wrong))
    assert read_records(bytes(wrong), check_crcs=False).equals(read_records(three_batches))
    assert read_record_batches(bytes(wrong))["isValid"].to_pylist() == [False, True, True]


@pytest.mark.parametrize("reader", [read_records, read_record_batches], ids=["records", "batches"])
def test_the_metadata_has_the_position_behind_the_last_batch(
    reader: Any, three_batches: bytes
) -> None:
    metadata = reader(three_batches + b"torn").schema.metadata
    assert metadata == {
        b"validBytes": str(len(three_batches)).encode(),
        b"trailingBytes": b"4",
    }


@by_codec
def test_a_log_cut_anywhere_is_its_whole_batches(codec: str) -> None:
    parts = [
        kt.batch([kt.Record(b"k", b"v")] * count, base_offset=10 * count, codec=codec)
        for count in (1, 2, 3)
    ]
    log = b"".join(parts)
    ends = [len(b"".join(parts[:count])) for count in range(4)]
    offsets = read_records(log)["offset"].to_pylist()
    for size in range(0, len(log) + 1, 7 if NO_JIT else 1):
        whole = sum(end <= size for end in ends[1:])
        cut = log[:size]
        table = read_records(cut)
        assert table["offset"].to_pylist() == offsets[: whole * (whole + 1) // 2]
        assert valid_bytes(cut) == ends[whole]
        assert table.schema.metadata[b"trailingBytes"] == str(size - ends[whole]).encode()
        assert read_record_batches(cut).num_rows == whole


@pytest.mark.parametrize("padding", [1, 11, 12, 17, 18, 61, 4096, 3_000_000])
def test_zeros_behind_the_last_batch_are_its_end(padding: int, three_batches: bytes) -> None:
    log = three_batches + bytes(padding)
    assert read_records(log).equals(read_records(three_batches))
    assert valid_bytes(log) == len(three_batches)
    assert read_record_batches(log).num_rows == 3


@pytest.mark.parametrize("at", [18, 4096] if NO_JIT else [18, 1 << 20, 3_000_000])
def test_zeros_with_something_behind_them_are_an_error(at: int, three_batches: bytes) -> None:
    log = three_batches + bytes(at) + b"\x01"
    for reader in (read_records, read_record_batches, valid_bytes):
        with pytest.raises(kafkajit.CorruptRecordError, match="Found record size 0 smaller") as e:
            reader(log)
        assert e.value.position == len(three_batches)


@pytest.mark.parametrize(
    "garbage", [b"", b"\0", bytes(5000), kt.batch([])[:10], kt.batch([kt.Record(b"key")])[:-1]]
)
def test_a_log_without_a_batch_is_empty(garbage: bytes) -> None:
    assert read_records(garbage).num_rows == 0
    assert list(iter_records(garbage)) == []
    assert read_record_batches(garbage).num_rows == 0
    assert valid_bytes(garbage) == 0
    assert read_records(garbage).schema.names == read_records(kt.batch([])).schema.names


def test_a_path_gives_topic_and_partition() -> None:
    path = next(p for p in SOUND_LOGS if p.parent.name == "partitions-2")
    for source in (path, str(path)):
        table = read_records(source)
        assert set(table["topic"].to_pylist()) == {"partitions"}
        assert set(table["partition"].to_pylist()) == {2}
        assert table.drop_columns(["topic", "partition"]).equals(read_records(path.read_bytes()))


def test_a_path_without_topic_and_partition_gives_null(
    tmp_path: Path, three_batches: bytes
) -> None:
    path = tmp_path / "notes.bin"
    path.write_bytes(three_batches)
    rows = read_records(path, columns=["topic", "partition"]).to_pylist()
    assert rows == [{"topic": None, "partition": None}] * 7


def test_bytes_have_neither_topic_nor_partition() -> None:
    assert {"topic", "partition"}.isdisjoint(read_records(b"").schema.names)
    with pytest.raises(ValueError, match="unknown column 'topic'"):
        read_records(b"", columns=["topic"])


def test_a_missing_file_is_pythons_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_records(tmp_path / "none.log")


def test_batches_of_different_codecs_are_read_in_order() -> None:
    log = b"".join(
        kt.batch([kt.Record(b"%d" % place, codec.encode())] * 2, base_offset=2 * place, codec=codec)
        for place, codec in enumerate([*kt.COMPRESSORS, "none"] * 2)
    )
    table = read_records(log)
    assert rows_of(table) == expected_rows(log)[0]
    assert table["offset"].to_pylist() == list(range(table.num_rows))


@pytest.mark.thorough
@pytest.mark.parametrize("codec", kt.COMPRESSORS)
def test_a_log_of_many_chunks_is_read_whole(codec: str) -> None:
    count, size = (6, 20_000) if NO_JIT else (60, 200_000)
    value = np.random.default_rng(1).integers(0, 8, size, dtype=np.uint8).tobytes()
    log = b"".join(
        kt.batch([kt.Record(b"%d" % place, value)], base_offset=place, codec=codec)
        for place in range(count)
    )
    table = read_records(log, columns=["offset", "key", "value"])
    assert table["offset"].to_pylist() == list(range(count))
    assert table["key"].to_pylist() == [b"%d" % place for place in range(count)]
    assert set(table["value"].to_pylist()) == {value}
    views = pa.Table.from_batches(iter_records(log, columns=["value"], binary_view=True))
    assert set(views["value"].to_pylist()) == {value}


@by_codec
def test_threads_that_read_at_once_do_not_disturb_each_other(codec: str) -> None:
    letters = random.Random(codec)
    size = 500 if NO_JIT else 20_000
    logs = [
        b"".join(
            kt.batch(
                [kt.Record(value=bytes(letters.choices(b"abcdef", k=size)))] * 30,
                base_offset=30 * number,
                codec=codec,
            )
            for number in range(4)
        )
        for _ in range(2)
    ]
    alone = list(map(read_records, logs))
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3 if NO_JIT else 30):
            assert all(map(pa.Table.equals, pool.map(read_records, logs), alone))


def test_more_batches_than_one_call_of_the_kernel_finds() -> None:
    count = 16_385 if NO_JIT else 40_000
    log = kt.batch([]) * (count - 1) + kt.batch([kt.Record(b"last")])
    assert valid_bytes(log) == len(log)
    assert read_record_batches(log).num_rows == count
    table = read_records(log, columns=["key", "position"])
    assert table.to_pylist() == [{"key": b"last", "position": 61 * (count - 1)}]


@given(st.lists(BATCH, max_size=4), st.integers(1, 10))
def test_any_log_is_read_as_the_reference_reads_it(batches: list[bytes], batch_rows: int) -> None:
    log = b"".join(batches)
    expected, invalid = expected_rows(log)
    assert invalid is None
    assert rows_of(read_records(log)) == expected
    assert read_what_is_good(log, batch_rows=batch_rows) == (expected, None)


@pytest.mark.parametrize("codec", [name for name in kt.COMPRESSORS if name != "none"])
def test_a_batch_may_grow_to_the_limit_and_not_beyond(codec: str) -> None:
    record = kt.Record(value=bytes(5000))
    size = len(record.encode(0, 0))
    log = kt.batch([record], codec=codec) * 3  # the limit is each batch's own
    assert read_records(log, max_decompressed_bytes=size).num_rows == 3
    with pytest.raises(kafkajit.DecompressionLimitError, match=r"max_decompressed_bytes = \d+ at"):
        read_records(log, max_decompressed_bytes=size - 1)


def test_uncompressed_batches_have_no_limit() -> None:
    log = kt.batch([kt.Record(value=bytes(5000))])
    assert read_records(log, max_decompressed_bytes=10).num_rows == 1


@pytest.mark.parametrize("name", kt.BREAKS)
@by_codec
def test_a_broken_batch_is_left_out_and_the_log_goes_on(name: str, codec: str) -> None:
    before = kt.batch([kt.Record(b"k", b"v")] * 2, base_offset=5)
    bad = kt.broken(name, base_offset=7, codec=codec)
    after = kt.batch([kt.Record(b"k", b"v")], base_offset=10, codec=codec)
    log = before + bad + after
    dropped = read_records(log, mode="DROPMALFORMED")
    assert dropped["offset"].to_pylist() == [5, 6, 10]
    assert dropped.schema.metadata[b"trailingBytes"] == b"0"
    permissive = read_records(log, mode="PERMISSIVE")
    rows = permissive.select(["offset", "corruption"]).to_pylist()
    assert [row["offset"] for row in rows] == [5, 6, None, 10]
    assert [row["corruption"] is None for row in rows] == [True, True, False, True]
    gap = rows[2]["corruption"]
    assert (gap["position"], gap["length"]) == (len(before), len(bad))
    breaking = kt.BREAKS[name]
    message = breaking.message if codec == "none" else breaking.when_compressed or breaking.message
    assert gap["reason"].startswith(f"{breaking.error.__name__}: {message}")
    for column in set(permissive.schema.names) - {"corruption"}:
        assert permissive[column][2].as_py() is None


@pytest.mark.parametrize(
    "name", ["none-0", "zstd-0", "transactions-0", "preallocated-0", "empty-0"]
)
def test_a_sound_log_is_the_same_in_every_mode(name: str) -> None:
    log = log_of(name)
    expected = read_records(log)
    assert read_records(log, mode="DROPMALFORMED").equals(expected)
    permissive = read_records(log, mode="PERMISSIVE")
    assert permissive.drop_columns(["corruption"]).equals(expected)
    assert permissive["corruption"].null_count == expected.num_rows


@pytest.mark.parametrize("path", DAMAGED_LOGS, ids=log_id)
def test_a_damaged_log_gives_the_records_that_the_reference_finds_sound(path: Path) -> None:
    log = path.read_bytes()
    permissive = read_records(log, mode="PERMISSIVE")
    permissive.validate(full=True)
    gaps = [row["corruption"] for row in rows_of(permissive) if row["corruption"]]
    expected, invalid = expected_rows(without_gaps(log, gaps))
    assert invalid is None
    for row in expected:
        del row["position"]
    dropped = read_records(log, mode="DROPMALFORMED").drop_columns(["position"])
    assert rows_of(dropped) == expected
    assert (len(gaps) == 0) == (expected_rows(log)[1] is None)
