from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest
from corpus import DATA
from hypothesis import given, settings
from hypothesis import strategies as st
from producing import all_columns, files_of, log_of, rows
from strategies import NULLABLE

import kafkajit
from kafkajit.errors import InvalidOffsetError, InvalidRecordError, RecordTooLargeError
from kafkajit.produce import task_output as staging
from kafkajit.produce.options import ProduceOptions
from kafkajit.produce.task_output import StagedSegment, TaskOutput

ROW = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 3), NULLABLE)
TRANSACTIONS = DATA / "v2" / "transactions-0" / f"{0:020}.log"


def begun(folder: Path, timestamp: int = 7, **options: object) -> TaskOutput:
    given = {name.replace("_", "."): str(value) for name, value in options.items()}
    return TaskOutput(
        folder, ProduceOptions.parse({"path": "/kafka", **given}), timestamp=timestamp
    )


def staged(folder: Path, *records: pa.RecordBatch, **options: object) -> list[StagedSegment]:
    with begun(folder, **options) as writer:
        for part in records:
            writer.write(part)
        return writer.close()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("staging")


@pytest.mark.thorough
@pytest.mark.parametrize("window", [1, 200, 1 << 30])
@given(pieces=st.lists(st.lists(ROW, max_size=6), max_size=4))
@settings(deadline=None, max_examples=40)
def test_a_partition_has_its_rows_in_the_order_they_came_from_offset_0_on(
    window: int, pieces: list[list[tuple[str, int, bytes | None]]], scratch: Path
) -> None:
    folder = scratch / str(len(list(scratch.iterdir())))
    expected = defaultdict(list)
    for piece in pieces:
        for topic, partition, value in piece:
            log = expected[f"{topic}-{partition}"]
            log.append((len(log), value, value))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staging, "_WINDOW_BYTES", window)
        columns = [zip(*piece, strict=True) if piece else ([], [], []) for piece in pieces]
        segments = staged(
            folder,
            *(rows(topic=t, partition=p, key=v, value=v) for t, p, v in map(tuple, columns)),
        )
    assert {str(segment.partition) for segment in segments} == expected.keys()
    for name, log in expected.items():
        assert log_of(folder / name) == log


def test_a_task_keeps_few_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_MOST_OPEN", 4)
    monkeypatch.setattr(staging, "_WINDOW_BYTES", 1)
    opened = Path("/proc/self/fd")
    before = len(list(opened.iterdir()))
    writer = begun(tmp_path / "task", topic="a")
    for _ in range(2):
        writer.write(rows(partition=range(50), value=[b"v"] * 50))
        writer.write(rows(partition=range(50), value=[b"w"] * 50))
        assert len(list(opened.iterdir())) <= before + 4
    segments = writer.close()
    assert len(segments) == 50
    assert {tuple(log_of(tmp_path / "task" / f"a-{n}", "value")) for n in range(50)} == {
        ((b"v",), (b"w",), (b"v",), (b"w",))
    }


def test_a_staged_segment_has_its_offsets(tmp_path: Path) -> None:
    records = rows(topic=["a"] * 6, partition=[0] * 6, value=[bytes(100)] * 6)
    segments = staged(tmp_path / "task", records, batch_size=1, segment_bytes=400)
    assert [(s.base_offset, s.next_offset) for s in segments] == [(0, 2), (2, 4), (4, 6)]
    for segment in segments:
        assert segment.path(".log").stat().st_size == segment.size
        assert kafkajit.read_records(segment.path(".log"))["offset"][0].as_py() == (
            segment.base_offset
        )


def test_a_row_without_a_timestamp_has_the_jobs(tmp_path: Path) -> None:
    records = rows(topic=["a"] * 2, partition=[0] * 2, value=[b""] * 2, timestamp=[None, 2_000])
    staged(tmp_path / "task", records, timestamp=41)
    (log,) = tmp_path.rglob("*.log")
    found = kafkajit.read_records(log)["timestamp"].cast(pa.int64())
    assert found.to_pylist() == [41, 2]


def test_columns_of_a_log_that_was_read_do_not_matter_for_new_offsets(tmp_path: Path) -> None:
    committed = all_columns(DATA / "v2" / "none-0" / f"{0:020}.log")
    staged(tmp_path / "task", committed)
    (log,) = tmp_path.rglob("*.log")
    batches = kafkajit.read_record_batches(log)
    assert set(batches["producerId"].to_pylist()) == {-1}
    expected = [row[1:] for row in log_of(DATA / "v2" / "none-0")]
    assert [row[1:] for row in log_of(log.parent)] == expected


def test_markers_of_transactions_are_no_data(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rows with a controlType .*controlType IS NULL"):
        staged(tmp_path / "task", all_columns(TRANSACTIONS))


@pytest.mark.parametrize("window", [1, 4000, 1 << 30])
@pytest.mark.parametrize("name", ["transactions-0", "none-0", "headers-0", "epochs-0"])
def test_offsets_that_are_kept_stay_in_their_batches(
    name: str, window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "_WINDOW_BYTES", window)
    log = DATA / "v2" / name / f"{0:020}.log"
    records = all_columns(log)
    pieces = [records.slice(start, 5) for start in range(0, len(records), 5)]
    (segment,) = staged(tmp_path / "task", *pieces, keepOffsets="true", segment_ms=2**62)
    assert segment.path(".log").read_bytes() == log.read_bytes()


@pytest.mark.parametrize("window", [1, 1 << 30])
@pytest.mark.parametrize("offsets", [[5, 4], [5, 5], [5, 6, 6], [7, 8, 2]])
def test_offsets_that_are_kept_come_in_order(
    offsets: list[int], window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "_WINDOW_BYTES", window)
    pieces = [
        rows(topic=["a"], partition=[3], value=[b"secret"], offset=[offset]) for offset in offsets
    ]
    with pytest.raises(InvalidOffsetError, match=r"those of a-3 are not: .*sortWithin") as e:
        staged(tmp_path / "task", *pieces, keepOffsets="true")
    assert "secret" not in str(e.value)


def test_a_log_can_go_on_behind_every_offset_that_is_kept(tmp_path: Path) -> None:
    last = 2**63 - 1
    given = {"topic": ["a"], "partition": [3], "value": [b"secret"]}
    (segment,) = staged(tmp_path / "one", rows(**given, offset=[last - 1]), keepOffsets="true")
    assert (segment.base_offset, segment.next_offset) == (last - 1, last)
    with pytest.raises(InvalidOffsetError, match=f"{last}, behind which no log .*{last - 1}$"):
        staged(tmp_path / "two", rows(**given, offset=[last]), keepOffsets="true")


def test_batches_that_are_kept_lie_behind_one_another(tmp_path: Path) -> None:
    records = rows(topic=["a"] * 2, partition=[3] * 2, value=[b""] * 2, offset=[5, 6])
    records = records.append_column("baseOffset", pa.array([2, 4], pa.int64()))
    with pytest.raises(InvalidOffsetError, match="baseOffset, 4, is not behind offset 5"):
        staged(tmp_path / "task", records, keepOffsets="true")


def test_every_offset_that_is_kept_is_there(tmp_path: Path) -> None:
    records = rows(topic=["a"] * 2, partition=[0] * 2, value=[b""] * 2, offset=[3, None])
    with pytest.raises(ValueError, match="every row needs an offset, and some are null"):
        staged(tmp_path / "task", records, keepOffsets="true")


def test_a_batch_that_no_topic_takes_is_an_error(tmp_path: Path) -> None:
    records = rows(topic=["a"], partition=[0], value=[bytes(2000)])
    with pytest.raises(RecordTooLargeError, match=r"2070 bytes is larger than max.message.bytes"):
        staged(tmp_path / "task", records, max_message_bytes=2000)
    with pytest.raises(RecordTooLargeError, match=r"larger than segment.bytes, 1000"):
        staged(tmp_path / "other", records, segment_bytes=1000)


def test_an_error_shows_nothing_of_a_rows_contents(tmp_path: Path) -> None:
    headers = [[{"key": None, "value": b"secret"}]]
    records = rows(topic=["a"], partition=[0], value=[b"secret"], headers=headers)
    with pytest.raises(InvalidRecordError) as raised:
        staged(tmp_path / "task", records)
    assert str(raised.value).startswith("a row for a-0: Invalid null header key")
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_task_that_fails_leaves_nothing(tmp_path: Path) -> None:
    writer = begun(tmp_path / "task", topic="a")
    writer.write(rows(partition=[0, 1], value=[b"", b""]))
    writer.close()
    assert len(files_of(tmp_path)) > 6
    writer.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert files_of(tmp_path) == {}


@pytest.mark.parametrize("transactions", ["error", "open", "plain"])
def test_transactions_need_their_producers(transactions: str, tmp_path: Path) -> None:
    options = {"keepOffsets": "true", "transactions": transactions, "topic": "t"}
    parts = {"partition": [0, 0], "offset": [4, 5], "value": [b"v", b"w"]}
    bad = rows(**parts).append_column("isTransactional", pa.array([False, True]))
    if transactions == "plain":
        assert staged(tmp_path / "plain", bad, **options)
    else:
        with pytest.raises(ValueError, match="offset 5 has isTransactional and no producerId"):
            staged(tmp_path / "bad", bad, **options)
    marker = rows(**parts).append_column("controlType", pa.array([None, "COMMIT"]))
    marker = marker.append_column("producerId", pa.array([1, -1]))
    with pytest.raises(ValueError, match="offset 5 has controlType and no producerId"):
        staged(tmp_path / "marker", marker, **options)
