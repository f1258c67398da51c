from __future__ import annotations

from pathlib import Path

import pytest
import reference
from corpus import OLD_LOGS, V2_LOGS, encode, log_id, plain_twin, split
from hypothesis import given
from strategies import VARLONGS

import kafkajit
from kafkajit import testing as kt


@given(VARLONGS)
def test_a_varint_is_read_back(value: int) -> None:
    assert reference._Reader(kt.varint(value)).varlong() == value


def rebuilt(batch: reference.Batch) -> bytes:
    """The batch built again of what was read in it."""
    return kt.batch(
        [
            kt.Record(
                record.key,
                record.value,
                record.headers,
                None if batch.timestamp_type else record.timestamp,
                offset_delta=record.offset - batch.base_offset,
            )
            for record in reference.read_records(batch)
        ],
        base_offset=batch.base_offset,
        base_timestamp=batch.base_timestamp,
        max_timestamp=batch.max_timestamp,
        timestamp_type=batch.timestamp_type,
        is_transactional=batch.is_transactional,
        is_control=batch.is_control,
        delete_horizon_ms=batch.delete_horizon_ms,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
        last_offset_delta=batch.last_offset_delta,
    )


@pytest.mark.parametrize(
    "path", [path for path in V2_LOGS if "large-value" not in str(path)], ids=log_id
)
def test_a_batch_of_a_broker_is_built_again_byte_for_byte(path: Path) -> None:
    log = path.read_bytes()
    batches, end = reference.read_batches(log)
    if all(batch.codec == 0 for batch in batches):
        assert plain_twin(log) == log[:end]
    for batch, whole in zip(reference.read_batches(plain_twin(log))[0], split(log), strict=True):
        if batch.timestamp_type == 1:  # the producer's own timestamps are not read
            assert rebuilt(batch)[:17] == encode(batch)[:17] or batch.codec == 0
        else:
            assert rebuilt(batch) == encode(batch)
        assert len(whole) >= 61


@pytest.mark.parametrize("path", OLD_LOGS, ids=log_id)
def test_a_message_of_a_broker_is_built_again_byte_for_byte(path: Path) -> None:
    for batch in reference.read_batches(path.read_bytes())[0]:
        if batch.magic < 2 and batch.codec == 0:
            (record,) = reference.read_records(batch)
            built = kt.message(
                kt.Record(record.key, record.value, timestamp=record.timestamp),
                offset=batch.base_offset,
                magic=batch.magic,
                timestamp_type=max(batch.timestamp_type, 0),
            )
            assert built == batch.payload


@pytest.mark.parametrize("codec", kt.COMPRESSORS)
def test_every_compressor_writes_what_the_reference_reads(codec: str) -> None:
    records = [kt.Record(b"k", b"v" * 1000), kt.Record(None, None, [("h", b"1")])]
    batch = reference.read_batches(kt.batch(records, codec=codec))[0][0]
    plain = reference.read_batches(kt.batch(records))[0][0]
    assert reference.decompress(batch.codec, batch.payload) == plain.payload
    assert kt.CODECS[batch.codec] == codec.split("-")[0]
    assert batch.is_valid


def test_a_batch_is_that_of_a_producer() -> None:
    records = [kt.Record(b"a", timestamp=50), kt.Record(b"b", timestamp=70, offset_delta=9)]
    (batch,), _ = reference.read_batches(kt.batch(records, base_offset=4, base_timestamp=60))
    assert (batch.base_offset, batch.last_offset_delta, batch.records_count) == (4, 9, 2)
    assert (batch.base_timestamp, batch.max_timestamp) == (60, 70)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    assert (batch.magic, batch.attributes, batch.is_valid) == (2, 0, True)


@pytest.mark.parametrize(
    ("lie", "attribute", "value"),
    [
        ({"attributes": 0x47}, "attributes", 0x47),
        ({"last_offset_delta": 99}, "last_offset_delta", 99),
        ({"records_count": -7}, "records_count", -7),
        ({"crc": 5}, "crc", 5),
        ({"magic": 9}, "magic", 9),
    ],
)
def test_a_false_field_is_written_as_given(lie: dict[str, int], attribute: str, value: int) -> None:
    (batch,), _ = reference.read_batches(kt.batch([kt.Record()], **lie))
    assert getattr(batch, attribute) == value


def test_a_repaired_checksum_is_the_right_one(three_batches: bytes) -> None:
    position = len(split(three_batches)[0])
    broken = bytearray(three_batches)
    broken[position + 30] ^= 1
    repaired = kt.repair_crc(bytes(broken), position)
    assert [batch.is_valid for batch in reference.read_batches(bytes(broken))[0]] == [1, 0, 1]
    assert [batch.is_valid for batch in reference.read_batches(repaired)[0]] == [1, 1, 1]
    assert kt.repair_crc(three_batches) == three_batches


@pytest.mark.parametrize("name", kt.BREAKS)
@pytest.mark.parametrize("codec", kt.CODECS)
def test_the_reference_refuses_every_break(name: str, codec: str) -> None:
    log = kt.broken(name, codec=codec)
    try:
        batches, _ = reference.read_batches(log)
        assert len(batches) == 1 or name == "batch shorter than its header"
        assert batches[0].is_valid == (name not in ("wrong crc", "batch shorter than its header"))
        if batches[0].is_valid and batches[0].magic == 2:
            with pytest.raises(reference.Invalid):
                reference.read_records(batches[0])
    except reference.Invalid:
        assert name in ("batch shorter than an entry", "batch shorter than its header")


def test_a_marker_is_that_of_a_broker() -> None:
    log = kt.control_batch(0, coordinator_epoch=4, producer_id=12, base_offset=7)
    row = kafkajit.read_records(log).to_pylist()[0]
    assert row["key"] == bytes([0, 0, 0, 0])
    assert row["value"] == bytes([0, 0, 0, 0, 0, 4])
    assert (row["controlType"], row["producerId"], row["offset"]) == ("ABORT", 12, 7)
    assert row["isTransactional"]
