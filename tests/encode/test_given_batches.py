from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
import reference
from corpus import rows_of, split
from encoding import T, log_of_all_kinds
from hypothesis import given
from hypothesis import strategies as st

import kafkajit
from kafkajit import InvalidOffsetError, InvalidRecordError, encode_batches
from kafkajit import testing as kt

LOG = log_of_all_kinds()
# The compared columns of a batch: not its position, and nothing that depends on the compressor.
OF_PLACE = ("position", "sizeInBytes", "crc")


def read(log: bytes | pa.Buffer) -> tuple[pa.Table, pa.Table]:
    return kafkajit.read_records(log), kafkajit.read_record_batches(log)


def without_place(batches: pa.Table) -> list[dict[str, Any]]:
    return rows_of(batches.drop_columns(list(OF_PLACE)))


def test_records_come_out_in_the_batches_that_are_stated() -> None:
    records, batches = read(LOG)
    encoded = encode_batches(records, batches=batches)
    assert reference.rows(bytes(encoded)) == [
        row | {"position": mine["position"]}
        for row, mine in zip(reference.rows(LOG), reference.rows(bytes(encoded)), strict=True)
    ]
    assert without_place(kafkajit.read_record_batches(encoded)) == without_place(batches)


def test_what_is_not_compressed_comes_out_byte_for_byte() -> None:
    plain = [
        whole
        for whole, batch in zip(split(LOG), reference.read_batches(LOG)[0], strict=True)
        # Records under LogAppendTime store timestamps of their own, which no column holds.
        if not batch.codec and batch.timestamp_type != 1
    ]
    log = b"".join(plain)
    records, batches = read(log)
    assert encode_batches(records, batches=batches).to_pybytes() == log


@given(st.sets(st.integers(0, 33)), st.lists(st.integers(0, 33), max_size=4), st.booleans())
def test_records_that_are_gone_leave_their_batches_behind(
    gone: set[int], cuts: list[int], has_windows: bool
) -> None:
    records, batches = read(LOG)
    kept = [row for row in range(records.num_rows) if row not in gone]
    left = records.take(pa.array(kept, pa.int64()))
    with pytest.MonkeyPatch.context() as patch:
        if has_windows:
            patch.setattr("kafkajit.encode.windows._WINDOW_ROWS", 3)
            patch.setattr("kafkajit.encode.windows._FEW_ROWS", 2)
        ends = sorted({0, left.num_rows, *(cut for cut in cuts if cut < left.num_rows)})
        pieces = [left.slice(a, b - a) for a, b in pairwise(ends)]
        parts = list(kafkajit.iter_encoded_batches(pieces, batches=batches))
    assert all(part.size for part in parts)
    log = b"".join(map(bytes, parts))
    names = [name for name in records.column_names if name not in ("position", "baseOffset")]
    again, headers = read(log)
    assert again.select(names).equals(left.select(names))
    assert all(headers["isValid"].to_pylist())
    positions = left["position"].to_pylist()
    expected = [
        row
        for row in rows_of(batches)
        if row["magic"] == 2 or row["position"] in positions  # v0 and v1 have no empty batches
    ]
    assert headers["lastOffset"].to_pylist()[-1] == 90
    for found, stated in zip(rows_of(headers), expected, strict=True):
        rows = [at for at, position in enumerate(positions) if position == stated["position"]]
        if found["recordsCount"] is not None:
            assert found["recordsCount"] == len(rows)
        if found["magic"] == 2:
            same = ("baseOffset", "lastOffset", "producerId", "baseSequence", "deleteHorizonMs")
            assert [found[name] for name in same] == [stated[name] for name in same]
        if not rows:
            assert found["compressionType"] == "none"
            assert found["sizeInBytes"] == 61


def test_the_largest_timestamp_is_that_of_what_is_left() -> None:
    records = [kt.Record(timestamp=T + n) for n in (5, 9, 3)]
    table, batches = read(kt.batch(records) + kt.batch(records, timestamp_type=1, max_timestamp=T))
    left = table.take([0, 2, 3, 5])
    found = kafkajit.read_record_batches(encode_batches(left, batches=batches))
    assert found["maxTimestamp"].cast(pa.int64()).to_pylist() == [T + 5, T]


@pytest.mark.parametrize("codec", kt.CODECS)
def test_another_codec_may_be_asked_for(codec: str) -> None:
    log = b"".join(split(LOG)[:6])
    records, batches = read(log)
    encoded = encode_batches(records, batches=batches, compression_type=codec)
    counts = batches["recordsCount"].to_pylist()
    expected = [codec if count else "none" for count in counts]  # an empty batch is not compressed
    assert kafkajit.read_record_batches(encoded)["compressionType"].to_pylist() == expected
    assert kafkajit.read_records(encoded, columns=["offset", "key", "timestamp"]).equals(
        records.select(["offset", "key", "timestamp"])
    )


def test_a_table_of_several_chunks_and_a_record_batch_state_batches_too() -> None:
    records, batches = read(LOG)
    expected = encode_batches(records, batches=batches)
    chunked = pa.concat_tables([batches.slice(0, 3), batches.slice(3)])
    assert encode_batches(records, batches=chunked).equals(expected)
    (record_batch,) = batches.combine_chunks().to_batches()
    assert encode_batches(records, batches=record_batch).equals(expected)
    narrow = batches.drop_columns(["lastSequence", "sizeInBytes", "crc", "isValid"])
    assert encode_batches(records, batches=narrow).equals(expected)


def test_batches_alone_are_written_without_records() -> None:
    records, batches = read(kt.batch([], base_offset=4, last_offset_delta=3) * 2)
    assert records.num_rows == 0
    encoded = encode_batches(records, batches=batches)
    assert [batch.base_offset for batch in reference.read_batches(bytes(encoded))[0]] == [4, 4]
    assert encode_batches(records, batches=batches.slice(0, 0)).size == 0


def test_a_delete_horizon_is_the_one_that_is_stated() -> None:
    records, batches = read(kt.batch([kt.Record(timestamp=T)], base_timestamp=T))
    horizon = batches.set_column(
        batches.column_names.index("deleteHorizonMs"), "deleteHorizonMs", [[T + 7]]
    )
    encoded = encode_batches(records, batches=horizon)
    (batch,) = reference.read_batches(bytes(encoded))[0]
    assert batch.delete_horizon_ms == T + 7
    assert reference.read_records(batch)[0].timestamp == T


# Options and columns that exclude each other


def changed(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, [values])


RECORDS, BATCHES = read(LOG)


def error_of(records: pa.Table = RECORDS, batches: Any = BATCHES, **options: Any) -> Exception:
    with pytest.raises((ValueError, TypeError)) as raised:
        encode_batches(records, batches=batches, **options)
    return raised.value


def test_records_out_of_the_order_of_their_batches_are_an_error() -> None:
    swapped = RECORDS.take([0, 4, 1, *range(5, 10)])
    error = error_of(swapped)
    assert isinstance(error, InvalidRecordError)
    assert str(error).startswith("row 2: position 0 is before that of the record before it")


def test_that_holds_between_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkajit.encode.windows._WINDOW_ROWS", 4)
    order = [*range(8), 0]
    error = error_of(RECORDS.take(order))
    assert str(error).startswith("row 8: position 0 is before that of the record before it")


def test_a_record_of_a_batch_that_is_not_stated_is_an_error() -> None:
    position = RECORDS["position"][4].as_py()
    error = error_of(batches=BATCHES.filter(pa.compute.not_equal(BATCHES["position"], position)))
    assert isinstance(error, InvalidRecordError)
    assert str(error) == f"row 4: batches have no row for position {position}, which the record has"


@pytest.mark.parametrize("name", ["position", "offset", "timestamp"])
def test_records_need_the_columns_that_locate_them(name: str) -> None:
    error = error_of(RECORDS.drop_columns([name]))
    assert isinstance(error, ValueError)
    assert str(error) == f"with batches, records need the column {name}"
    nulls = pa.nulls(RECORDS.num_rows, RECORDS.schema.field(name).type)
    error = error_of(changed(RECORDS, name, nulls))
    assert str(error) == f"row 0: {name} is null, and must be a number"


@pytest.mark.parametrize("row", [1, 3])
@pytest.mark.parametrize("offset", [-1, 2**31])
def test_a_record_that_is_not_in_the_reach_of_its_batch_is_an_error(row: int, offset: int) -> None:
    offsets = [0, 1, 2, 3]
    offsets[row] = offset
    records, batches = read(kt.batch([kt.Record()] * 4))
    error = error_of(changed(records, "offset", pa.array(offsets)), batches)
    assert isinstance(error, InvalidOffsetError)
    assert str(error) == (
        f"row {row}: offset {offset} is not within an int32 behind its batch's baseOffset, 0"
    )


def test_headers_that_an_old_message_cannot_have_are_an_error() -> None:
    records, batches = read(kt.message_set([kt.Record()] * 3))
    headers = pa.array(
        [None, None, [{"key": "a", "value": b""}]], records.schema.field("headers").type
    )
    error = error_of(changed(records, "headers", headers), batches)
    assert str(error) == "row 2: a message of v0 or v1 does not support record headers"


def test_batches_that_are_no_table_are_a_type_error() -> None:
    error = error_of(batches=[1])
    assert isinstance(error, TypeError)
    assert str(error) == "batches must be an Arrow table, not a list"


@pytest.mark.parametrize("name", ["position", "baseOffset", "compressionType", "deleteHorizonMs"])
def test_batches_without_a_column_are_an_error(name: str) -> None:
    error = error_of(batches=BATCHES.drop_columns([name]))
    assert str(error) == f"batches have no column {name}: see read_record_batches"


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 5},
        {"batch_records": 5},
        {"base_offset": 5},
        {"timestamp": 5},
        {"timestamp_type": 0},
        {"partition_leader_epoch": 0},
        {"producer_id": -1},
        {"producer_epoch": -1},
        {"base_sequence": -1},
        {"is_transactional": False},
        {"control_type": "COMMIT"},
        {"coordinator_epoch": 0},
        {"delete_horizon_ms": 0},
        {"magic": 2},
    ],
    ids=str,
)
def test_an_option_that_batches_already_set_is_an_error(options: dict[str, Any]) -> None:
    (name,) = options
    error = error_of(**options)
    assert str(error) == f"batches already set {name}: leave the option out"


COUNT = BATCHES.num_rows


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("position", [0, 9, 9], "position is not after that of the batch before it"),
        ("position", [0, 9, 5], "position is not after that of the batch before it"),
        ("lastOffset", [0, 0, 2**31], "lastOffsetDelta is more than int32 holds"),
        ("producerEpoch", [0, 0, 2**15], "producerEpoch is more than int16 holds"),
        ("partitionLeaderEpoch", [0, 0, 2**31], "partitionLeaderEpoch is more than int32 holds"),
        ("baseSequence", [0, 0, -(2**31) - 1], "baseSequence is more than int32 holds"),
        ("magic", [2, 2, 3], "magic is neither 0, 1 nor 2"),
        ("magic", [2, 2, -1], "magic is neither 0, 1 nor 2"),
        ("producerId", [1, 1, None], "producerId is null, and must be a number"),
        ("baseTimestamp", [1, 1, None], "baseTimestamp is null, and must be a number"),
        (
            "compressionType",
            ["none", "lz4", "br"],
            "compressionType is not one of none, gzip, snappy,",
        ),
        (
            "compressionType",
            ["none", "lz4", None],
            "compressionType is not one of none, gzip, snappy,",
        ),
    ],
)
def test_a_batch_that_cannot_be_written_is_an_error_that_names_its_row(
    name: str, values: list[Any], message: str
) -> None:
    log = b"".join(kt.batch([kt.Record()]) for _ in range(3))
    records, batches = read(log)
    error = error_of(records, changed(batches, name, pa.array(values)))
    assert isinstance(error, InvalidRecordError)
    assert str(error).startswith(f"row 2: batches' {message}")


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_not_compressed_with_zstd(magic: int) -> None:
    records, batches = read(
        kt.batch([kt.Record()]) + kt.message(kt.Record(), offset=1, magic=magic)
    )
    error = error_of(records, batches, compression_type="zstd")
    assert str(error) == (
        "row 1: batches' magic is of messages that have no zstd: give another compression_type"
    )
