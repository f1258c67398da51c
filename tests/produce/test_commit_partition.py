from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
import reference
from corpus import DATA
from hypothesis import given
from hypothesis import strategies as st
from producing import all_columns, files_of, log_of, rows, write
from strategies import BATCH

import kafkajit
import kafkajit.testing as kt
from kafkajit import LogWriter
from kafkajit.errors import InvalidOffsetError
from kafkajit.log.producers import ProducerStates
from kafkajit.produce import commit_partition
from kafkajit.produce.commit_partition import rebase
from kafkajit.storage.source import as_bytes
from kafkajit.system import disk

TOPIC_ID = "pUM3BMsVQk2fe-klgEgLLA"
# Segments of a few batches.
SMALL = {"segment.bytes": 2000, "index.interval.bytes": 300, "batch.size": 200}


def records(first: int, count: int, partition: int = 0) -> Any:
    values = [f"{n}".encode() * (n % 40) for n in range(first, first + count)]
    stamps = [1_700_000_000_000_000 + 1000 * n for n in range(first, first + count)]
    return rows(
        topic=["orders"] * count,
        partition=[partition] * count,
        key=values,
        value=values,
        timestamp=stamps,
    )


def appended(
    folder: Path, first: int, count: int, epoch: int | None = None, **options: Any
) -> None:
    """Append the same rows with LogWriter, which leaves files as a stopped broker does."""
    data = records(first, count).select(["key", "value", "timestamp"])
    codec = options.pop("compression.type", "none")
    size = options.pop("batch.size", 16384)
    with LogWriter(folder, options) as log:
        batches = kafkajit.encode_batches(
            data, base_offset=log.log_end_offset, batch_size=size, compression_type=codec
        )
        log.append(batches, leader_epoch=epoch)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("options", [{}, SMALL], ids=["one segment", "many"])
def test_files_are_those_of_a_broker(codec: str, options: dict[str, Any], tmp_path: Path) -> None:
    ours, brokers = tmp_path / "ours", tmp_path / "brokers" / "orders-0"
    brokers.parent.mkdir()
    for first, count in ((0, 100), (100, 1), (101, 150)):  # each after the one before
        options = {"compression.type": codec, **options}
        write(ours, [[records(first, count)]], **options)
        appended(brokers, first, count, **options)
        assert files_of(ours) == files_of(brokers.parent)


def test_tasks_are_behind_one_another_in_sparks_order(tmp_path: Path) -> None:
    write(tmp_path, [[records(0, 100)], [records(100, 1)], [], [records(101, 150)]][:], **SMALL)
    values = [row["value"] for row in records(0, 251).to_pylist()]
    assert log_of(tmp_path / "orders-0", "offset", "value") == list(enumerate(values))


def test_what_several_tasks_have_little_of_is_one_segment(tmp_path: Path) -> None:
    write(tmp_path / "ours", [[records(3 * n, 3)] for n in range(20)])
    folder = tmp_path / "ours" / "orders-0"
    assert [path.name for path in folder.glob("*.log")] == [f"{0:020}.log"]
    # Each task begins its own batches.
    batches = b"".join(
        kafkajit.encode_batches(records(3 * n, 3), base_offset=3 * n) for n in range(20)
    )
    with LogWriter(tmp_path / "orders-0") as log:
        log.append(batches)
    assert files_of(folder) == files_of(tmp_path / "orders-0")


def test_a_large_segment_is_moved_and_never_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_partition, "_SMALL", 1000)
    moved: dict[int, str] = {}
    renamed = disk.rename

    def rename(path: Path, target: Path) -> None:
        moved[path.stat().st_ino] = target.name
        renamed(path, target)

    monkeypatch.setattr(disk, "rename", rename)
    write(tmp_path, [[records(0, 2)], [records(2, 200)], [records(202, 200)], [records(402, 2)]])
    folder = tmp_path / "orders-0"
    assert sorted(path.name for path in folder.glob("*.log")) == [
        f"{offset:020}.log" for offset in (0, 2, 202, 402)
    ]
    logs = {path.stat().st_ino: path.name for path in folder.glob("*.log")}
    assert logs.items() <= moved.items()
    for log in folder.glob("*.log"):
        assert kafkajit.index.verify_offset_index(log, log.with_suffix(".index")).num_rows == 0
        assert kafkajit.index.verify_time_index(log, log.with_suffix(".timeindex")).num_rows == 0
    assert [row[0] for row in log_of(folder)] == list(range(404))


@pytest.mark.parametrize("said", [None, 7, 9])
def test_batches_have_the_logs_latest_leader_epoch_or_the_options(
    said: int | None, tmp_path: Path
) -> None:
    ours, brokers = tmp_path / "ours", tmp_path / "brokers" / "orders-0"
    brokers.parent.mkdir()
    appended(brokers, 0, 10, epoch=7)
    shutil.copytree(brokers.parent, ours)
    write(ours, [[records(10, 10)]], **({} if said is None else {"leaderEpoch": said}))
    appended(brokers, 10, 10, epoch=said or 7)
    assert files_of(ours) == files_of(brokers.parent)


def test_an_epoch_that_has_passed_is_refused(tmp_path: Path) -> None:
    appended(tmp_path / "orders-0", 0, 10, epoch=7)
    before = files_of(tmp_path)
    with pytest.raises(ValueError, match="leaderEpoch is 6, and orders-0 has had leader epoch 7"):
        write(tmp_path, [[records(10, 10)]], leaderEpoch=6)
    assert files_of(tmp_path) == before


def test_partition_metadata_is_written_if_the_topics_id_is_set(tmp_path: Path) -> None:
    write(tmp_path, [[records(0, 10)]])
    metadata = tmp_path / "orders-0" / "partition.metadata"
    assert not metadata.exists()
    for _ in range(2):
        write(tmp_path, [[records(0, 10)]], topicId=TOPIC_ID)
        assert metadata.read_bytes() == f"version: 0\ntopic_id: {TOPIC_ID}".encode()
    write(tmp_path, [[records(0, 10)]], mode="overwrite")
    assert kafkajit.read_partition_metadata(metadata)["topicId"].to_pylist() == [TOPIC_ID]
    before = files_of(tmp_path)
    other = "B" * 21 + "A"
    with pytest.raises(ValueError, match=f"has the topic's id {TOPIC_ID}, .* topicId is {other}"):
        write(tmp_path, [[records(0, 10)]], topicId=other)
    assert files_of(tmp_path) == before
    write(tmp_path, [[records(0, 10)]], topicId=other, mode="overwrite")
    assert kafkajit.read_partition_metadata(metadata)["topicId"].to_pylist() == [other]


RESTORED = [
    *("none-0", "headers-0", "nulls-0", "epochs-0", "transactions-0", "transactions-open-0"),
    *("segments-0", "transactions-segments-0", "partitions-1"),
]


@pytest.mark.parametrize("name", RESTORED)
@pytest.mark.parametrize("tasks", [1, 3])
def test_offsets_that_are_kept_restore_a_log_as_it_was(
    name: str, tasks: int, tmp_path: Path
) -> None:
    folder = DATA / "v2" / name
    logs = sorted(folder.glob("*.log"))
    options = {"keepOffsets": "true", "segment.bytes": max(log.stat().st_size for log in logs)}
    parts = [[all_columns(log)] for log in logs if log.stat().st_size]
    if tasks == 1:
        parts = [[part for task in parts for part in task]]
    write(tmp_path, parts, **options, **{"segment.ms": 2**62})
    (found,) = tmp_path.iterdir()
    content = lambda where: b"".join(p.read_bytes() for p in sorted(where.glob("*.log")))  # noqa: E731
    assert content(found) == content(folder)
    assert aborted_in(found) == aborted_in(folder)
    assert (found / "leader-epoch-checkpoint").read_bytes() == (
        folder / "leader-epoch-checkpoint"
    ).read_bytes()
    newest = max(found.glob("*.snapshot"))
    if name != "epochs-0":  # its broker took no snapshot at the end
        assert producers(newest) == producers(folder / newest.name)


def aborted_in(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("*.txnindex"))
    return [
        row for file in files for row in kafkajit.index.read_transaction_index(file).to_pylist()
    ]


def producers(snapshot: Path) -> list[Any]:
    return sorted(kafkajit.read_producer_snapshot(snapshot).to_pylist(), key=repr)


def test_offsets_that_are_kept_come_behind_those_that_are_there(tmp_path: Path) -> None:
    log = rows(topic=["a"] * 2, partition=[0] * 2, value=[b"5", b"9"], offset=[5, 9])
    write(tmp_path, [[log]], keepOffsets="true")
    read = kafkajit.Log(tmp_path / "a-0")
    assert (read.start_offset, read.end_offset) == (5, 10)
    before = files_of(tmp_path)
    with pytest.raises(InvalidOffsetError, match="a-0 goes on at 10, and rows begin at 5"):
        write(tmp_path, [[log]], keepOffsets="true")
    assert files_of(tmp_path) == before
    later = rows(topic=["a"], partition=[0], value=[b"12"], offset=[12])
    write(tmp_path, [[later]], keepOffsets="true")
    assert log_of(tmp_path / "a-0", "offset", "value") == [(5, b"5"), (9, b"9"), (12, b"12")]


def test_tasks_whose_kept_offsets_overlap_are_an_error(tmp_path: Path) -> None:
    one, other = (
        rows(topic=["a"] * 2, partition=[0] * 2, value=[b""] * 2, offset=offsets)
        for offsets in ([5, 9], [7, 12])
    )
    with pytest.raises(InvalidOffsetError, match=r"are in several tasks or files, and .*sortWith"):
        write(tmp_path, [[one], [other]], keepOffsets="true")
    assert files_of(tmp_path) == {}
    one, other = one.slice(0, 1), other.slice(0, 1)
    write(
        tmp_path, [[other], [one]], keepOffsets="true"
    )  # in order of offsets, though not of tasks
    assert [row[0] for row in log_of(tmp_path / "a-0")] == [5, 7]


def test_producers_go_on_from_those_that_the_log_knows(tmp_path: Path) -> None:
    begun = kt.batch([kt.Record()], producer_id=9, producer_epoch=0, is_transactional=True)
    abort = kt.control_batch(0, base_offset=1, producer_id=9, producer_epoch=0)
    with LogWriter(tmp_path / "source-0") as log:
        log.append(begun + abort)
    rows_of_both = all_columns(tmp_path / "source-0" / f"{0:020}.log")
    first, rest = rows_of_both.slice(0, 1), rows_of_both.slice(1)
    options = {"keepOffsets": "true", "topic": "a", "segment.ms": 2**62}
    with pytest.raises(ValueError, match="lack the marker of producer 9"):
        write(tmp_path / "ours", [[first]], **options)
    write(tmp_path / "ours", [[first]], transactions="open", **options)
    write(tmp_path / "ours", [[rest]], **options)
    folder = tmp_path / "ours" / "a-0"
    assert aborted_in(folder) == aborted_in(tmp_path / "source-0")
    states = ProducerStates.of_snapshot(as_bytes(max(folder.glob("*.snapshot")).read_bytes()))
    assert (len(states), states.first_open_offset) == (1, None)


# Offsets that are overwritten in place


def rebased(log: bytes, shift: int, epoch: int) -> bytes:
    """The slow twin of rebase."""
    out = bytearray(log)
    for batch in reference.read_batches(log)[0]:
        if batch.magic == 2:
            offset = (batch.base_offset + shift + 2**63) % 2**64 - 2**63
            struct.pack_into(">q", out, batch.position, offset)
            struct.pack_into(">i", out, batch.position + 12, epoch)
    return bytes(out)


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rebase") / "segment"


@given(st.lists(BATCH, max_size=4), st.integers(-(2**40), 2**62), st.integers(0, 2**31 - 1))
def test_only_the_offset_and_epoch_of_batches_are_overwritten(
    segment: Path, batches: list[bytes], shift: int, epoch: int
) -> None:
    log = b"".join(batches)
    segment.write_bytes(log)
    rebase(segment, shift, epoch)
    assert segment.read_bytes() == rebased(log, shift, epoch)


def test_records_are_the_same_at_other_offsets(tmp_path: Path) -> None:
    log = tmp_path / f"{0:020}.log"
    records = [kt.Record(key=b"k", value=b"v"), kt.Record(value=b"w")]
    log.write_bytes(kt.batch(records) + kt.batch(records, base_offset=2, codec="zstd"))
    rebase(log, 40, 7)
    table = kafkajit.read_records(log, columns=["offset", "value", "partitionLeaderEpoch"])
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (40, b"v", 7),
        (41, b"w", 7),
        (42, b"v", 7),
        (43, b"w", 7),
    ]
    assert kafkajit.read_record_batches(log)["isValid"].to_pylist() == [True, True]


def test_messages_of_old_formats_stay_as_they_are(tmp_path: Path) -> None:
    log = tmp_path / "log"
    messages = kt.message(kt.Record(value=b"v"), magic=1) + kt.message(kt.Record(), magic=0)
    log.write_bytes(messages + kt.batch([kt.Record()], base_offset=2))
    rebase(log, 0, 7)
    assert log.read_bytes() == rebased(messages + kt.batch([kt.Record()], base_offset=2), 0, 7)
    assert log.read_bytes().startswith(messages)


def test_an_empty_segment_has_nothing_to_move(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"")
    rebase(tmp_path / "log", 1, 1)
    assert (tmp_path / "log").read_bytes() == b""
