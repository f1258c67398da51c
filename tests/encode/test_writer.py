"""encode_batches from end to end: any table, with any options, is read back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import reference
from corpus import DAMAGED_LOGS, DATA, NO_JIT, SOUND_LOGS, log_id, rows_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import INT64, NULLABLE

import kafkajit
import kafkajit.testing as kt
from kafkajit import encode_batches, iter_encoded_batches
from kafkajit.encode import record_writer as encode
from kafkajit.encode import windows as pieces
from kafkajit.encode.encode_options import EncodeOptions
from kafkajit.encode.writer import Encoder

# Logs of a broker, of other clients and of kafkajit.testing

CLIENTS_LOGS = sorted(DATA.glob("clients/*/*.log")) + sorted(DATA.glob("messages/*/*.log"))


def is_readable(path: Path) -> bool:
    try:
        return kafkajit.read_records(path).num_rows > 0
    except kafkajit.KafkaJitError:
        return False


LOGS = [path for path in [*SOUND_LOGS, *DAMAGED_LOGS, *CLIENTS_LOGS] if is_readable(path)]


def of_log(path: Path) -> tuple[bytes, pa.Table, pa.Table]:
    """The log's whole batches, and its two tables."""
    log = path.read_bytes()
    return (
        log[: kafkajit.valid_bytes(log)],
        kafkajit.read_records(log),
        kafkajit.read_record_batches(log),
    )


def is_stamped(batches: pa.Table) -> bool:
    """Whether v2 records have timestamps that differ from that of the append."""
    kinds = zip(batches["timestampType"].to_pylist(), batches["magic"].to_pylist(), strict=True)
    return (1, 2) in set(kinds)


def is_plain(batches: pa.Table) -> bool:
    return set(batches["compressionType"].to_pylist()) == {"none"}


def says_all(records: pa.Table, batches: pa.Table) -> bool:
    """Whether records describe their batches completely: nothing was compacted."""
    last = dict(zip(records["position"].to_pylist(), records["offset"].to_pylist(), strict=True))
    return (
        set(batches["position"].to_pylist()) == last.keys()
        and list(last.values()) == batches["lastOffset"].to_pylist()
        and batches["deleteHorizonMs"].null_count == batches.num_rows
    )


def has_offsets_in_order(records: pa.Table) -> bool:
    return all(before < here for before, here in pairwise(records["offset"].to_pylist()))


PLAIN_LOGS = [path for path in LOGS if is_plain(kafkajit.read_record_batches(path))]
COMPRESSED_LOGS = [path for path in LOGS if path not in PLAIN_LOGS]


def test_there_are_logs_of_every_kind() -> None:
    magics = {
        (magic, path in PLAIN_LOGS)
        for path in LOGS
        for magic in kafkajit.read_record_batches(path)["magic"].to_pylist()
    }
    assert magics == {(magic, is_plain) for magic in (0, 1, 2) for is_plain in (True, False)}
    assert len(PLAIN_LOGS) > 90
    assert len(COMPRESSED_LOGS) > (80 if NO_JIT else 90)


@pytest.mark.parametrize("path", PLAIN_LOGS, ids=log_id)
def test_a_log_that_is_not_compressed_comes_out_byte_for_byte(path: Path) -> None:
    log, records, batches = of_log(path)
    stated = encode_batches(records, batches=batches).to_pybytes()
    if is_stamped(batches):
        assert kafkajit.read_records(stated).equals(records)
        assert stated != log
        return
    assert stated == log
    if has_offsets_in_order(records) and says_all(records, batches):
        assert encode_batches(records).to_pybytes() == log


def test_most_logs_come_out_without_anything_but_their_records() -> None:
    tables = [of_log(path) for path in PLAIN_LOGS]
    whole = [
        has_offsets_in_order(records) and says_all(records, batches) and not is_stamped(batches)
        for _, records, batches in tables
    ]
    assert sum(whole) > 80
    assert sum(is_stamped(batches) for _, _, batches in tables) == 1


def same_columns(records: pa.Table) -> pa.Table:
    """All columns except position, which depends on the compressor."""
    return records.drop_columns(["position"])


@pytest.mark.parametrize("path", COMPRESSED_LOGS, ids=log_id)
def test_a_log_that_is_compressed_comes_out_with_the_same_columns(path: Path) -> None:
    _, records, batches = of_log(path)
    encoded = encode_batches(records, batches=batches)
    again, headers = kafkajit.read_records(encoded), kafkajit.read_record_batches(encoded)
    assert same_columns(again).equals(same_columns(records))
    of_bytes = ["position", "sizeInBytes", "crc"]
    if path in SOUND_LOGS:  # other logs have headers that a writer does not produce
        assert headers.drop_columns(of_bytes).equals(batches.drop_columns(of_bytes))


@pytest.mark.parametrize("codec", kt.CODECS)
@pytest.mark.parametrize(
    "name", ["v2/none-0", "v2/transactions-zstd-0", "v2/headers-0", "old/v1-none-0"]
)
def test_a_log_comes_out_with_the_same_columns_in_every_codec(name: str, codec: str) -> None:
    (path,) = (path for path in SOUND_LOGS if path.parent == DATA / name)
    records = kafkajit.read_records(path.read_bytes())
    if codec == "zstd" and name.startswith("old"):
        with pytest.raises(kafkajit.InvalidRecordError, match="Magic v1 does not support zstd"):
            encode_batches(records, compression_type=codec)
        return
    encoded = encode_batches(records, compression_type=codec)
    assert same_columns(kafkajit.read_records(encoded)).equals(same_columns(records))


# Any table


def typed(draw: st.DrawFn, values: list[Any], kinds: list[pa.DataType]) -> pa.Array:
    """The values as one of these types, in a slice of a longer column."""
    kind = draw(st.sampled_from(kinds))
    before = draw(st.integers(0, 2))
    filler = next((value for value in values if value is not None), None)
    return pa.array([filler] * before + values + [filler], kind).slice(before, len(values))


BYTES = [
    *(pa.binary(), pa.large_binary(), pa.binary_view()),
    *(pa.dictionary(pa.int8(), pa.binary()), pa.dictionary(pa.int32(), pa.large_binary())),
]
_STRUCT = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=4), NULLABLE), max_size=3)


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, dict[str, Any], list[dict[str, Any]]]:
    """A table, options, and the rows expected back."""
    count = draw(st.integers(0, 25))
    magic = draw(st.sampled_from([2, 2, 2, 1, 0]))
    codecs = kt.CODECS if magic == 2 else kt.CODECS[:4]

    def of(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    options: dict[str, Any] = {
        "compression_type": draw(st.sampled_from([None, *codecs])),
        "batch_size": draw(st.sampled_from([None, 1, 100, 300, 2000])),
        "batch_records": draw(st.sampled_from([None, 1, 3])),
        "timestamp": draw(INT64),
    }
    if magic < 2 or draw(st.booleans()):
        options["magic"] = magic
    columns: dict[str, Any] = {}
    rows: list[dict[str, Any]] = [
        {"key": None, "value": None, "headers": None, "timestamp": options["timestamp"]}
        for _ in range(count)
    ]

    def put(name: str, values: list[Any], kinds: list[pa.DataType]) -> None:
        columns[name] = typed(draw, values, kinds)
        for row, value in zip(rows, values, strict=True):
            row[name] = value

    for name in ("key", "value"):
        if draw(st.booleans()):
            put(name, of(NULLABLE), BYTES)
    if draw(st.booleans()):
        milliseconds = [pa.int64(), pa.timestamp("ms"), pa.timestamp("ms", "UTC")]
        put("timestamp", of(INT64), milliseconds)
    if draw(st.booleans()):
        steps = st.integers(1, 4) | st.sampled_from([64, 2**31, 2**40])
        offset, offsets = draw(st.integers(0, 2**50)), []
        for step in of(steps):
            offset += step
            offsets.append(offset)
        put("offset", offsets, [pa.int64(), pa.uint64()])
    else:
        options["base_offset"] = base = draw(st.integers(0, 2**50))
        for place, row in enumerate(rows):
            row["offset"] = base + place
    if magic == 2 and draw(st.booleans()):
        headers = of(HEADERS)
        kinds = [pa.list_(_STRUCT), pa.large_list(_STRUCT)]
        if draw(st.booleans()):
            put("headers", headers, [pa.map_(pa.string(), pa.binary())])
        else:
            structs = [
                row and [{"key": key, "value": value} for key, value in row] for row in headers
            ]
            put("headers", structs, kinds)
        for row, given_headers in zip(rows, headers, strict=True):
            row["headers"] = [{"key": k, "value": v} for k, v in given_headers or ()] or None
    if magic == 2 and draw(st.booleans()):
        _say_producers(draw, count, columns, options, rows)
    table = pa.table(columns) if columns else pa.table({"key": pa.nulls(count)})
    expected = [_as_read(row, magic) for row in rows]
    return table, options, expected


def _say_producers(
    draw: st.DrawFn, count: int, columns: dict[str, Any], options: dict[str, Any], rows: list[Any]
) -> None:
    """Batch fields, for each record or for all of them."""
    for column, option, values in (
        ("partitionLeaderEpoch", "partition_leader_epoch", [0, 3, 2**31 - 1]),
        ("producerId", "producer_id", [-1, 0, 2**63 - 1]),
        ("producerEpoch", "producer_epoch", [-1, 0, 2**15 - 1]),
        ("isTransactional", "is_transactional", [False, True]),
    ):
        how = draw(st.sampled_from(["column", "option", "neither"]))
        default = 0 if column == "partitionLeaderEpoch" else values[0]
        said = [default] * count
        if how == "column":
            said = draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))
            columns[column] = pa.array(said)
        elif how == "option":
            options[option] = draw(st.sampled_from(values))
            said = [options[option]] * count
        for row, value in zip(rows, said, strict=True):
            row[column] = value


def _as_read(row: dict[str, Any], magic: int) -> dict[str, Any]:
    old = {"partitionLeaderEpoch": -1, "isTransactional": False}
    new = {"partitionLeaderEpoch": 0, "isTransactional": False}
    defaults = {"producerId": -1, "producerEpoch": -1, **(new if magic == 2 else old)}
    read = defaults | row | {"magic": magic}
    if magic == 0:
        read["timestamp"] = -1
    return read


@given(tables(), st.lists(st.integers(0, 25), max_size=4), st.sampled_from([2, 7, 65536]))
def test_whatever_is_written_is_read_again(
    given_table: tuple[pa.Table, dict[str, Any], list[dict[str, Any]]],
    cuts: list[int],
    window: int,
) -> None:
    table, options, expected = given_table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "_WINDOW_ROWS", window)
        patch.setattr(pieces, "_FEW_ROWS", min(window, 4))
        patch.setattr(encode, "_SCRATCH_BYTES", 300)
        parts = list(iter_encoded_batches(in_pieces(table, cuts), **options))
    log = b"".join(map(bytes, parts))
    names = list(expected[0]) if expected else []
    rows = reference.rows(log)
    assert [{name: row[name] for name in names} for row in rows] == expected
    assert rows_of(kafkajit.read_records(log)) == rows
    batches, end = reference.read_batches(log)
    assert end == len(log)
    limit = options["batch_size"] or 16384
    for batch in batches:
        assert batch.is_valid
        count = len(reference.read_records(batch))
        assert count <= (options["batch_records"] or count)
        plain = reference.decompress(batch.codec, batch.payload) if batch.magic == 2 else b""
        assert count == 1 or 61 + len(plain) <= limit


def in_pieces(table: pa.Table, cuts: list[int]) -> list[pa.RecordBatch]:
    """The table as Arrow record batches that end at these rows."""
    ends = [0, *sorted(min(cut, table.num_rows) for cut in cuts), table.num_rows]
    return [
        piece
        for start, end in pairwise(ends)
        for piece in table.slice(start, end - start).to_batches()
    ]


@given(
    st.lists(st.tuples(NULLABLE, NULLABLE, INT64), min_size=1, max_size=8),
    st.integers(0, 2**40),
    st.integers(-1, 2**31 - 1),
)
def test_a_batch_is_byte_for_byte_that_of_the_twin(
    given_records: list[tuple[bytes | None, bytes | None, int]], base_offset: int, epoch: int
) -> None:
    records = [kt.Record(key, value, timestamp=stamp) for key, value, stamp in given_records]
    columns = zip(("key", "value", "timestamp"), zip(*given_records, strict=True), strict=True)
    kinds = {"key": pa.binary(), "value": pa.binary(), "timestamp": pa.int64()}
    table = pa.table({name: pa.array(values, kinds[name]) for name, values in columns})
    encoded = encode_batches(
        table, base_offset=base_offset, partition_leader_epoch=epoch, batch_size=1 << 20
    )
    assert encoded.to_pybytes() == kt.batch(
        records,
        base_offset=base_offset,
        base_timestamp=given_records[0][2],
        # No record of a batch has an earlier timestamp than its first.
        max_timestamp=max(stamp for _, _, stamp in given_records),
        partition_leader_epoch=epoch,
    )


# Things that records do not hold


def test_records_without_offsets_are_counted_from_the_base_offset() -> None:
    assert offsets_in(encode_batches(pa.table({"key": ["a", "b"]}))) == [0, 1]
    assert offsets_in(encode_batches(pa.table({"key": ["a", "b"]}), base_offset=42)) == [42, 43]
    most = 2**63 - 1
    assert offsets_in(encode_batches(pa.table({"key": ["a"]}), base_offset=most)) == [most]
    with pytest.raises(kafkajit.InvalidOffsetError, match="row 1: its offset would be larger than"):
        encode_batches(pa.table({"key": ["a", "b"]}), base_offset=most)


def offsets_in(log: bytes | pa.Buffer) -> list[int]:
    return [row["offset"] for row in reference.rows(bytes(log))]


def test_records_without_timestamps_are_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkajit.encode.writer.time.time", lambda: 1_700_000_000.123)
    table = pa.table({"timestamp": pa.array([5, None], pa.timestamp("us"))})
    for found, expected in (
        (encode_batches(pa.table({"key": ["a"]})), [1_700_000_000_123]),
        (encode_batches(pa.table({"key": ["a"]}), timestamp=-7), [-7]),
        (encode_batches(table), [0, 1_700_000_000_123]),
        (encode_batches(table, timestamp=9), [0, 9]),
    ):
        assert [row["timestamp"] for row in reference.rows(bytes(found))] == expected


@pytest.mark.parametrize("table", [pa.table({}), pa.table({"key": pa.array([], pa.string())})])
def test_no_records_are_no_bytes(table: pa.Table) -> None:
    assert encode_batches(table).size == 0
    assert list(iter_encoded_batches(table)) == []
    assert list(iter_encoded_batches([])) == []


def test_an_encoder_continues_where_it_ended() -> None:
    options = EncodeOptions(base_offset=5, base_sequence=2**31 - 2, producer_id=1)
    encoder = Encoder(options)
    logs = [b"".join(map(bytes, encoder.encode(pa.table({"key": ["a"] * 3})))) for _ in range(2)]
    rows = reference.rows(b"".join(logs))
    assert [row["offset"] for row in rows] == [5, 6, 7, 8, 9, 10]
    assert [row["sequence"] for row in rows] == [2**31 - 2, 2**31 - 1, 0, 1, 2, 3]
    assert encoder.next_offset == 11
    with pytest.raises(kafkajit.InvalidOffsetError, match="row 0: offset 10 is not behind 10"):
        list(encoder.encode(pa.table({"offset": [10]})))


# Rows in errors and windows


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of a few rows, so that a small table needs many."""
    monkeypatch.setattr(pieces, "_WINDOW_ROWS", 8)
    monkeypatch.setattr(pieces, "_FEW_ROWS", 4)


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize("rows_before", [1, 7, 8, 9, 16])
@pytest.mark.parametrize("goes_back", [True, False], ids=["back", "twice"])
def test_an_offset_behind_no_other_is_an_error_at_a_windows_edge_too(
    rows_before: int, goes_back: bool
) -> None:
    offsets = list(range(100, 100 + rows_before))
    offsets.append(99 if goes_back else offsets[-1])
    message = f"row {rows_before}: offset {offsets[-1]} is not behind {offsets[-2]} of the record"
    with pytest.raises(kafkajit.InvalidOffsetError, match=message):
        encode_batches(pa.table({"offset": offsets}), batch_records=4)


@pytest.mark.usefixtures("small_windows")
def test_an_error_names_the_row_of_the_whole_table() -> None:
    table = pa.table({"offset": [*range(20), None]})
    with pytest.raises(kafkajit.InvalidRecordError, match="row 20: offset is null"):
        encode_batches(table, batch_records=1)
    given_pieces = iter(in_pieces(table, [6, 12]))
    with pytest.raises(kafkajit.InvalidRecordError, match="row 20: offset is null"):
        list(iter_encoded_batches(given_pieces, batch_records=1))
    named = pa.table({"position": [*[0] * 9, *[1] * 9, None]})
    with pytest.raises(kafkajit.InvalidRecordError, match="row 18: position is null"):
        encode_batches(pa.Table.from_batches(in_pieces(named, [6, 12])))


@pytest.mark.usefixtures("small_windows")
def test_the_largest_timestamp_of_a_batch_is_its_own_at_a_windows_edge_too() -> None:
    table = pa.table({"timestamp": range(40)})
    batches = kafkajit.read_record_batches(encode_batches(table, batch_records=3))
    latest = [min(last, 39) for last in range(2, 42, 3)]
    assert batches["maxTimestamp"].cast(pa.int64()).to_pylist() == latest


def test_a_batch_larger_than_a_window_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_WINDOW_ROWS", 3)
    table = pa.table({"position": [0] * 20 + [1] * 2 + [2] * 50})
    batches = kafkajit.read_record_batches(encode_batches(table))
    assert batches["recordsCount"].to_pylist() == [20, 2, 50]
    monkeypatch.setattr(pieces, "_WINDOW_BYTES", 10)
    assert kafkajit.read_record_batches(encode_batches(table)).num_rows == 3


def batches_of(log: bytes | pa.Buffer) -> Iterator[tuple[int, list[int]]]:
    """The base offset of each batch, and its records' offsets."""
    for batch in reference.read_batches(bytes(log))[0]:
        yield batch.base_offset, [record.offset for record in reference.read_records(batch)]


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=8),
    st.lists(st.integers(0, 96), max_size=6),
    st.booleans(),
)
def test_records_stay_in_the_batches_that_they_name_however_they_come(
    counts: list[int], cuts: list[int], has_windows: bool
) -> None:
    names = [name for name, count in enumerate(counts) for _ in range(count)]
    table = pa.table({"position": names, "offset": range(len(names))})
    expected, base = [], 0
    for count in counts:
        expected.append((base, list(range(base, base + count))))
        base += count
    with pytest.MonkeyPatch.context() as patch:
        if has_windows:
            patch.setattr(pieces, "_WINDOW_ROWS", 8)
            patch.setattr(pieces, "_FEW_ROWS", 4)
        cuts = [cut for cut in cuts if cut < len(names)]
        parts = list(iter_encoded_batches(in_pieces(table, cuts)))
    assert list(batches_of(b"".join(map(bytes, parts)))) == expected


# Memory


@pytest.mark.thorough
@pytest.mark.skipif(NO_JIT, reason="megabytes")
@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize(("rows", "size"), [(20_000, 100), (500, 4000), (4, 1 << 20), (1, 9 << 20)])
def test_memory_stays_bounded_however_long_the_log(rows: int, size: int, codec: str) -> None:
    piece = pa.record_batch({"value": pa.array([bytes(size)] * rows)})
    times = (128 << 20) // piece.nbytes
    before, most, total = pa.total_allocated_bytes(), 0, 0
    for part in iter_encoded_batches((piece for _ in range(times)), compression_type=codec):
        most = max(most, pa.total_allocated_bytes() - before)
        total += part.size
    assert total > (100 << 20 if codec == "none" else 0)
    assert most < 64 << 20


def test_what_a_buffer_does_not_need_is_given_back() -> None:
    table = pa.table({"value": [bytes(1000)] * 4000})
    before = pa.total_allocated_bytes()
    (part,) = iter_encoded_batches(table, compression_type="zstd", batch_size=1 << 20)
    assert part.size < 100_000
    assert pa.total_allocated_bytes() - before < 200_000


def test_a_batch_beyond_2_gib_is_an_error_that_names_its_first_row() -> None:
    # A dictionary of one value.
    value = pa.DictionaryArray.from_arrays(pa.array([1] + [0] * 4000), [bytes(1 << 20), b"a"])
    table = pa.table({"value": value, "position": [0] + [1] * 4000})
    before = pa.total_allocated_bytes()
    parts = iter_encoded_batches(table)
    assert next(parts).size < 100
    with pytest.raises(kafkajit.InvalidRecordError, match="row 1: its batch of 4000 records would"):
        next(parts)
    assert pa.total_allocated_bytes() - before < 64 << 20
