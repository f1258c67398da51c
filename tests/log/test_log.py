from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pytest
import reference
from corpus import DATA
from scanning import (
    FOLDERS,
    copied,
    far_away,
    logs_of,
    offsets_of,
    write_partition,
)

import kafkajit
import kafkajit.log.open_segment
import kafkajit.testing as kt
from kafkajit import Log
from kafkajit.errors import InvalidOffsetError

by_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
by_place = pytest.mark.parametrize("is_far", [False, True], ids=["mapped", "in ranges"])


@pytest.fixture(autouse=True)
def _indexes_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafkajit.log.open_segment, "_SMALL", 0)


def all_records(folder: Path) -> pa.Table:
    tables = (kafkajit.read_records(log).replace_schema_metadata() for log in logs_of(folder))
    return pa.concat_tables(tables)


def offsets_at(log: Log, offset: int, count: int) -> list[int]:
    offsets: list[int] = log.read(offset, count, columns=["offset"])["offset"].to_pylist()
    return offsets


def test_a_name_that_is_no_offset_is_told(tmp_path: Path) -> None:
    for base in (0, 2**63):
        (tmp_path / f"{base:020d}.log").touch()
    with pytest.raises(InvalidOffsetError, match=f"name is not an offset.*/{2**63:020d}.log"):
        Log(tmp_path)


@by_folder
@by_place
def test_records_are_read_from_any_offset_on(
    folder: Path, is_far: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = Log(far_away(monkeypatch, folder) if is_far else folder)
    whole = all_records(folder)
    offsets = whole["offset"].to_pylist()
    assert log.read(log.start_offset, 10**6).equals(whole)
    step = max(1, len(offsets) // 6)
    for row in range(0, len(offsets), step):
        # If compaction has removed the offset, reading begins behind it.
        first = offsets[row - 1] + 1 if row else offsets[0]
        for count in (1, 3):
            assert log.read(first, count).equals(whole.slice(row, count))
    assert not caplog.records


@by_folder
def test_the_log_ends_behind_its_last_batch(folder: Path) -> None:
    log = Log(folder)
    last = [
        batch.base_offset + batch.last_offset_delta
        for path in logs_of(folder)
        for batch in reference.read_batches(path.read_bytes())[0]
    ]
    assert log.end_offset == (last[-1] + 1 if last else 0)
    assert log.start_offset == int(logs_of(folder)[0].stem)
    assert log.read(log.end_offset).num_rows == 0
    for outside in (log.end_offset + 1, log.start_offset - 1):
        with pytest.raises(
            kafkajit.OffsetOutOfRangeError, match=rf"request for offset {outside} for partition"
        ):
            log.read(outside)


def test_a_log_ends_where_its_empty_last_segment_begins(tmp_path: Path) -> None:
    # As Kafka leaves it after it truncates to an offset in a gap.
    log = Log(write_partition(tmp_path, {0: kt.batch([kt.Record(value=b"v")]), 7: b""}))
    assert log.end_offset == 7
    assert log.read(7).num_rows == 0


@by_folder
@by_place
def test_a_timestamp_is_found_where_kafka_finds_it(
    folder: Path, is_far: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(far_away(monkeypatch, folder) if is_far else folder)
    table = all_records(folder).select(["timestamp", "offset"])
    rows = list(zip(*(column.cast("int64").to_pylist() for column in table.columns), strict=True))
    times = sorted({timestamp for timestamp, _ in rows})
    step = max(1, len(times) // 8)
    sought = [0, *times[::step], *times[-1:]]
    for asked in [*sought, *(time + 1 for time in sought)]:
        later = [row for row in rows if row[0] >= asked]
        assert log.offset_for_timestamp(asked) == (later[0] if later else None)


def test_a_segment_is_found_for_every_offset() -> None:
    log = Log(DATA / "v2" / "segments-0")
    bases = [int(path.stem) for path in logs_of(DATA / "v2" / "segments-0")]
    assert len(bases) == 4
    for offset in range(200):
        expected = max(base for base in bases if base <= offset)
        assert log.segment_for(offset).base_offset == expected
    assert log.segment_for(-5).base_offset == bases[0]


@pytest.mark.parametrize(
    "name", ["transactions-0", "transactions-segments-0", "transactions-open-0", "none-0"]
)
def test_consumers_of_committed_data_stop_at_the_last_stable_offset(name: str) -> None:
    folder = DATA / "v2" / name
    log = Log(folder)
    aborted, first_open = reference.transactions([path.read_bytes() for path in logs_of(folder)])
    assert log.last_stable_offset == (log.end_offset if first_open is None else first_open)
    for first, last in ((0, 2**62), (3, 7), (10, 10)):
        expected = sorted(
            (txn.last_offset, txn.producer_id, txn.first_offset)
            for txn in aborted
            if txn.first_offset <= last and txn.last_offset >= first
        )
        found = log.aborted_transactions(first, last).to_pylist()
        assert [
            (row["lastOffset"], row["producerId"], row["firstOffset"]) for row in found
        ] == expected


@pytest.mark.parametrize("name", ["transactions-segments-0", "transactions-open-0"])
@pytest.mark.parametrize("snapshot", ["none", "cut", "first"])
def test_the_last_stable_offset_is_the_same_from_any_snapshot(
    name: str, snapshot: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = copied(DATA / "v2" / name, tmp_path)
    first, *later = sorted(folder.glob("*.snapshot"))
    for path in [first, *later] if snapshot == "none" else later:
        path.unlink()
    if snapshot == "cut":
        first.write_bytes(first.read_bytes()[:-1])
    assert Log(folder).last_stable_offset == Log(DATA / "v2" / name).last_stable_offset
    assert ("transactions are looked for without it" in caplog.text) == (snapshot == "cut")


def test_what_is_before_a_snapshot_is_not_read_for_transactions(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: b"\xff" * 100, 5: segment(5, 3)})
    (folder / f"{5:020}.snapshot").write_bytes(
        kt.producer_snapshot([kt.Producer(9, last_offset=2, current_txn_first_offset=2)])
    )
    assert Log(folder).last_stable_offset == 2
    (folder / f"{5:020}.log").write_bytes(
        segment(5, 3) + kt.control_batch(1, base_offset=8, producer_id=9)
    )
    assert Log(folder).last_stable_offset == 9


def test_the_last_stable_offset_is_before_an_open_transaction() -> None:
    log = Log(DATA / "v2" / "transactions-open-0")
    assert log.last_stable_offset < log.end_offset


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("content", [None, b"", b"\x7f" * 48, b"\xff" * 48, b"no index at all"])
def test_whatever_its_indexes_a_log_reads_the_same(
    suffix: str, content: bytes | None, tmp_path: Path
) -> None:
    folder = copied(DATA / "v2" / "segments-0", tmp_path)
    for index in folder.glob(f"*{suffix}"):
        if content is None:
            index.unlink()
        else:
            index.write_bytes(content)
    sound, log = Log(DATA / "v2" / "segments-0"), Log(folder)
    assert log.end_offset == sound.end_offset
    for offset in range(0, log.end_offset, 17):
        assert log.read(offset, 5).equals(sound.read(offset, 5))
        time = sound.read(offset, 1)["timestamp"].cast("int64")[0].as_py()
        assert log.offset_for_timestamp(time) == sound.offset_for_timestamp(time)


def test_a_time_index_whose_entries_do_not_grow_hides_no_record(tmp_path: Path) -> None:
    log = b"".join(
        kt.batch([kt.Record(value=b"v", timestamp=time)], base_offset=offset, base_timestamp=time)
        for offset, time in enumerate((500, 100))
    )
    folder = write_partition(tmp_path, {0: log})
    # Each entry matches its batch.
    entries = (500).to_bytes(8) + (0).to_bytes(4) + (100).to_bytes(8) + (1).to_bytes(4)
    (folder / f"{0:020}.timeindex").write_bytes(entries)
    (folder / f"{0:020}.index").write_bytes((1).to_bytes(4) + (len(log) // 2).to_bytes(4))
    assert Log(folder).offset_for_timestamp(200) == (500, 0)


def segment(first: int, count: int) -> bytes:
    return b"".join(
        kt.batch([kt.Record(value=b"v")], base_offset=offset)
        for offset in range(first, first + count)
    )


def test_a_snapshot_from_behind_the_logs_end_is_not_believed(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: segment(0, 5)})
    producer = kt.Producer(9, last_offset=45, current_txn_first_offset=3)
    (folder / f"{50:020}.snapshot").write_bytes(kt.producer_snapshot([producer]))
    assert Log(folder).last_stable_offset == 5


def test_records_before_the_log_start_offset_are_not_read(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: segment(0, 5), 5: segment(5, 3)})
    checkpoint = tmp_path / "log-start-offset-checkpoint"
    for entries, start in (
        ("other 0 7", 0),
        ("orders 1 7", 0),
        ("orders 0 3", 3),
        ("orders 0 6", 6),
    ):
        checkpoint.write_text(f"0\n1\n{entries}\n")
        log = Log(folder)
        assert log.start_offset == start
        assert offsets_at(log, start, 99) == list(range(start, 8))
        first = log.offset_for_timestamp(0)
        assert first is not None
        assert first.offset == start
        with pytest.raises(kafkajit.OffsetOutOfRangeError):
            log.read(start - 1)
    (folder / f"{0:020}.log").unlink()
    checkpoint.write_text("0\n1\norders 0 3\n")
    assert Log(folder).start_offset == 5  # the records before are gone, whatever the checkpoint has
    checkpoint.write_text("0\n2\norders 0 3\n")
    with pytest.raises(kafkajit.CorruptCheckpointError, match="log-start-offset-checkpoint"):
        Log(folder).read(0)


def test_a_tiered_log_begins_where_its_local_segments_do() -> None:
    checkpoint = kafkajit.read_checkpoint(DATA / "tiered" / "log-start-offset-checkpoint")
    starts = {row["topic"]: row["offset"] for row in checkpoint.to_pylist()}
    assert (starts["tiered"], starts["tiered-expired"]) == (0, 18)
    for topic in ("tiered", "tiered-expired"):
        log = Log(DATA / "tiered" / f"{topic}-0")
        # 20 was aborted, and 21 is its marker. Offsets before 18 are only remote.
        assert (log.start_offset, log.end_offset, log.last_stable_offset) == (18, 23, 23)
        assert offsets_at(log, 18, 9) == [18, 19, 20, 21, 22]
        with pytest.raises(kafkajit.OffsetOutOfRangeError):
            log.read(17)


def test_damage_is_an_error_or_stepped_over_as_the_mode_says(tmp_path: Path) -> None:
    log = segment(0, 3) + kt.broken("wrong crc", base_offset=3) + segment(4, 3)
    folder = write_partition(tmp_path, {0: log, 7: segment(7, 3)})
    assert offsets_at(Log(folder), 0, 3) == [0, 1, 2]
    assert offsets_at(Log(folder), 8, 1) == [8]
    with pytest.raises(kafkajit.CorruptRecordError, match="Record is corrupt"):
        Log(folder).read(0, 4)
    lenient = Log(folder, mode="DROPMALFORMED")
    assert offsets_at(lenient, 0, 100) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert offsets_at(lenient, 3, 2) == [4, 5]
    assert Log(folder, check_crcs=False).read(0, 4).num_rows == 4


def test_bytes_that_are_no_batch_are_an_error_where_they_are_reached(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: segment(0, 3) + b"\xff" * 100 + segment(3, 2)})
    assert offsets_at(Log(folder), 1, 2) == [1, 2]
    with pytest.raises(kafkajit.CorruptRecordError, match="Found record size -1"):
        Log(folder).read(1, 3)
    assert offsets_at(Log(folder, mode="DROPMALFORMED"), 1, 9) == [1, 2, 3, 4]


def test_what_is_appended_after_a_log_was_opened_is_not_seen_nor_complained_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_partition(tmp_path, {0: segment(0, 3)})
    size = (folder / f"{0:020}.log").stat().st_size
    index = folder / f"{0:020}.index"
    index.write_bytes(struct.pack(">ii", 1, size // 3) + bytes(72))
    log = Log(folder)
    (folder / f"{0:020}.log").write_bytes(segment(0, 9))
    index.write_bytes(struct.pack(">iiii", 1, size // 3, 5, 5 * size // 3) + bytes(64))
    assert (log.end_offset, offsets_at(log, 0, 99)) == (3, [0, 1, 2])
    assert Log(folder).end_offset == 9
    assert not caplog.records


def test_the_indexes_of_a_segment_by_itself_are_those_beside_it() -> None:
    path = DATA / "v2" / "segments-0" / f"{0:020}.log"
    log = Log(path)
    assert log.segments[0].index is not None
    assert log.read(20, 3).equals(Log(path.parent).read(20, 3))


def test_a_torn_batch_ends_the_log(tmp_path: Path) -> None:
    folder = write_partition(tmp_path, {0: segment(0, 3) + segment(3, 1)[:-1]})
    log = Log(folder)
    assert (log.end_offset, offsets_at(log, 0, 9)) == (3, [0, 1, 2])


def test_a_batch_larger_than_any_window_is_read(tmp_path: Path) -> None:
    large = kt.batch([kt.Record(value=bytes(300_000))], base_offset=3)
    folder = write_partition(tmp_path, {0: segment(0, 3) + large + segment(4, 2)})
    log = Log(folder)
    assert [offsets_at(log, offset, 2) for offset in (2, 3, 4)] == [[2, 3], [3, 4], [4, 5]]


def test_an_empty_log_has_its_base_offset_and_nothing_to_read(tmp_path: Path) -> None:
    log = Log(write_partition(tmp_path, {42: b""}))
    assert (log.start_offset, log.end_offset, log.last_stable_offset) == (42, 42, 42)
    assert log.read(42).num_rows == 0
    assert log.offset_for_timestamp(0) is None


def test_only_columns_that_are_asked_for_are_read_and_others_are_refused() -> None:
    log = Log(kt.SAMPLE + "/orders-0")
    assert log.read(0, 1, columns=["topic", "offset"]).to_pylist() == [
        {"topic": "orders", "offset": 0}
    ]
    with pytest.raises(ValueError, match="unknown column 'ofset'"):
        log.read(0, columns=["ofset"])
    with pytest.raises(ValueError, match="max_records must be at least 1"):
        log.read(0, 0)


def test_a_log_is_one_partition(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has 3 partitions: a Log is one of them, such as .*-0"):
        Log(kt.SAMPLE)
    with pytest.raises(FileNotFoundError, match="there is nothing at"):
        Log(tmp_path / "none-0")
    assert repr(Log(kt.SAMPLE + "/orders-0")).endswith("orders-0')")


def test_the_data_source_and_the_log_agree() -> None:
    folder = DATA / "v2" / "segments-lz4-0"
    assert Log(folder).read(0, 10**6)["offset"].to_pylist() == offsets_of(folder)
