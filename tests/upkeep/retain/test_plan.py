from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from corpus import rows_of, run_python
from histories import Step, histories
from partitions import data, make_partition, offsets_in
from retaining import (
    RECORDS,
    SIZE,
    TIME,
    bases_in,
    broker_of,
    checkpoint,
    files_in,
    log_name,
    make_log,
)

import kafkajit
from kafkajit.change.change import Change
from kafkajit.change.lock import FolderLock
from kafkajit.upkeep.retain.plan import PartitionRetention

STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
EPOCHS = "leader-epoch-checkpoint"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five segments of an idempotent producer, a second apart."""
    return make_log(tmp_path / "orders-0", [TIME + 1000 * at for at in range(5)], producer=9)


def planned(folder: Path, config: Mapping[str, Any], **options: int) -> PartitionRetention:
    (partition,) = kafkajit.retain(folder, config=config, **options).partitions
    return partition


def gone(partition: PartitionRetention) -> list[int]:
    return [segment.base_offset for segment in partition.expired]


def start_in(root: Path) -> int | None:
    path = root / STARTS
    rows = rows_of(kafkajit.read_checkpoint(path)) if path.exists() else []
    assert [row["offset"] for row in rows if row["topic"] == "other"] == [99] * bool(rows)
    return next((row["offset"] for row in rows if row["topic"] == "orders"), None)


def kept_in(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()]


# What Kafka's own log did


def deletions() -> Iterator[Step]:
    for history in histories("retain"):
        for step in history:
            if step.stated["commands"][-1]["do"] == "deleteOldSegments":
                yield step


DELETIONS = list(deletions())


@pytest.mark.parametrize("step", DELETIONS, ids=range(len(DELETIONS)))
def test_what_goes_and_what_stays_is_what_kafka_left(step: Step, tmp_path: Path) -> None:
    opening, state = step.stated["open"], step.stated["state"]
    folder = tmp_path / "orders-0"
    folder.mkdir()
    for name, content in step.before.items():
        (folder / name).write_bytes(content)
    config = step.stated["config"]
    was = step.stated["opened"]["logStartOffset"]
    if was > bases_in(folder)[0]:
        checkpoint(tmp_path, STARTS, "orders-0", was)
    plan = kafkajit.retain(
        folder,
        config={name: config[name] for name in config if name.startswith("retention.")},
        log_start_offset=next(
            (c["offset"] for c in step.stated["commands"] if "offset" in c), None
        ),
        now=opening["now"],
    )
    (partition,) = plan.partitions
    deleted = step.stated["commands"][-1]["answer"]["deleted"]
    assert gone(partition) == bases_in(folder)[:deleted]
    assert partition.new_log_start_offset == state["logStartOffset"]
    assert partition.log_end_offset == state["logEndOffset"]
    assert files_in(folder) == step.before
    plan.apply(keep=False)
    dropped = dropped_by_loading(step.before, was)
    after = files_in(folder)
    assert {name: after[name] for name in after.keys() - dropped} == {
        name: step.after[name] for name in step.after.keys() - dropped
    }
    first = state["segments"][0]["baseOffset"]
    expected = state["logStartOffset"] if state["logStartOffset"] > first else None
    if partition.is_needed:
        assert (kafkajit.Log(folder).start_offset, start_of(tmp_path)) == (
            state["logStartOffset"],
            expected,
        )


def start_of(root: Path) -> int | None:
    path = root / STARTS
    rows = rows_of(kafkajit.read_checkpoint(path)) if path.exists() else []
    return next((row["offset"] for row in rows if row["topic"] == "orders"), None)


def dropped_by_loading(files: dict[str, bytes], start: int) -> set[str]:
    """Snapshots of the log's start or from before it, which a broker ignores."""
    return {name for name in files if name.endswith(".snapshot") and int(name[:20]) <= start}


def test_the_histories_have_all_that_there_is() -> None:
    counts = [step.stated["commands"][-1]["answer"]["deleted"] for step in DELETIONS]
    segments = [sum(name.endswith(".log") for name in step.before) for step in DELETIONS]
    assert 0 in counts
    assert any(0 < count < of for count, of in zip(counts, segments, strict=True))
    assert any(count == of for count, of in zip(counts, segments, strict=True))


# What becomes of a log


def test_a_plan_touches_nothing(folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.parent.rglob("*")}
    plan = kafkajit.retain(
        folder, config={"retention.ms": 0, "retention.bytes": 0}, now=TIME + 10**9
    )
    assert plan.is_needed
    assert {path: path.stat().st_mtime_ns for path in folder.parent.rglob("*")} == before


def test_segments_go_with_all_that_is_beside_them(folder: Path) -> None:
    (folder / log_name(2, ".txnindex")).write_bytes(b"")
    before = files_in(folder)
    plan = kafkajit.retain(folder, config={"retention.bytes": 2 * SIZE})
    assert gone(plan.partitions[0]) == [0, 2, 4]
    plan.apply(keep=False)
    after = files_in(folder)
    stays = {name for name in before if name[0] != "0" or int(name[:20]) >= 6}
    assert set(after) == stays
    assert {n: after[n] for n in stays - {EPOCHS}} == {n: before[n] for n in stays - {EPOCHS}}
    log = kafkajit.Log(folder)
    assert (log.start_offset, log.end_offset) == (6, 10)
    assert log.read(6, columns=["offset"])["offset"].to_pylist() == [6, 7, 8, 9]
    assert not kept_in(folder)


def test_where_all_go_a_new_segment_begins_at_the_end(folder: Path) -> None:
    snapshot = (folder / log_name(10, ".snapshot")).read_bytes()
    kafkajit.retain(folder, config={"retention.ms": 0}, now=TIME + 10**6).apply(keep=False)
    assert files_in(folder) == {
        log_name(10): b"",
        log_name(10, ".index"): b"",
        log_name(10, ".timeindex"): b"",
        log_name(10, ".snapshot"): snapshot,
        EPOCHS: b"0\n1\n2 10\n",
    }
    log = kafkajit.Log(folder)
    assert (log.start_offset, log.end_offset) == (10, 10)


def test_an_append_goes_on_behind_what_went(folder: Path) -> None:
    kafkajit.retain(folder, config={"retention.bytes": 0}).apply()
    with kafkajit.LogWriter(folder) as log:
        assert log.log_end_offset == 10
        log.append(kafkajit.testing.batch([kafkajit.testing.Record(b"k")], base_offset=10))
    assert kafkajit.Log(folder).read(10, columns=["offset"])["offset"].to_pylist() == [10]


def test_leader_epochs_begin_where_the_log_does(folder: Path) -> None:
    assert (folder / EPOCHS).read_bytes() == b"0\n3\n0 0\n1 4\n2 8\n"
    kafkajit.retain(folder, log_start_offset=7).apply()
    assert (folder / EPOCHS).read_bytes() == b"0\n2\n1 7\n2 8\n"


def test_a_start_in_the_midst_of_a_segment_is_kept_beside_the_partition(folder: Path) -> None:
    checkpoint(folder.parent, STARTS, "elsewhere-0", 5)
    kafkajit.retain(folder, log_start_offset=5).apply()
    assert bases_in(folder) == [4, 6, 8]
    assert start_in(folder.parent) == 5
    assert kafkajit.Log(folder).start_offset == 5


def test_a_start_that_is_the_first_segments_is_not(folder: Path) -> None:
    checkpoint(folder.parent, STARTS, "orders-0", 1)
    kafkajit.retain(folder, log_start_offset=4).apply()
    assert bases_in(folder) == [4, 6, 8]
    assert start_in(folder.parent) is None


def test_a_log_of_nobodys_broker_remembers_its_start_too(folder: Path) -> None:
    kafkajit.retain(folder, log_start_offset=3).apply()
    assert (folder.parent / STARTS).read_bytes() == b"0\n1\norders 0 3\n"
    kafkajit.retain(folder, log_start_offset=4).apply()
    assert (folder.parent / STARTS).read_bytes() == b"0\n0\n"


def test_producers_of_what_goes_are_remembered(folder: Path) -> None:
    (folder / log_name(10, ".snapshot")).rename(folder.parent / "expected")
    kafkajit.retain(folder, config={"retention.bytes": 0}).apply()
    snapshot = (folder / log_name(10, ".snapshot")).read_bytes()
    assert snapshot == (folder.parent / "expected").read_bytes()
    ((producer, last),) = (
        (row["producerId"], row["lastOffset"])
        for row in rows_of(kafkajit.read_producer_snapshot(snapshot))
    )
    assert (producer, last) == (9, 9)


def test_snapshots_from_before_the_first_segment_go(folder: Path) -> None:
    (folder / log_name(3, ".snapshot")).write_bytes(b"stray")
    kafkajit.retain(folder, config={"retention.bytes": 2 * SIZE}).apply()
    snapshots = sorted(int(path.stem) for path in folder.glob("*.snapshot"))
    assert snapshots == [6, 8, 10]  # it keeps the log start's until it loads the log


def test_nothing_goes_above_the_high_watermark_that_a_broker_has_written(folder: Path) -> None:
    checkpoint(folder.parent, HIGH_WATERMARKS, "orders-0", 5)
    partition = planned(folder, {"retention.bytes": 0})
    assert gone(partition) == [0, 2]
    assert partition.notes == [f"{log_name(4)} reaches beyond the high watermark 5"]
    with pytest.raises(kafkajit.OffsetOutOfRangeError, match="the high watermark 5"):
        kafkajit.retain(folder, log_start_offset=6)
    assert planned(folder, {}, log_start_offset=-1).new_log_start_offset == 5


def test_a_log_without_a_high_watermark_has_its_end(folder: Path) -> None:
    checkpoint(folder.parent, HIGH_WATERMARKS, "orders-1", 5)
    assert gone(planned(folder, {"retention.bytes": 0})) == [0, 2, 4, 6, 8]


# Keeping


def test_what_goes_is_kept_unless_it_is_not_to_be(folder: Path) -> None:
    before = files_in(folder)
    kept = kafkajit.retain(folder, config={"retention.bytes": 2 * SIZE}).apply()
    assert kept == kept_in(folder)
    assert kept[0].name.startswith(".kafkajit-retain-")
    found = kafkajit.read_records(str(kept[0] / "orders-0" / log_name(0)))
    assert found.num_rows == RECORDS
    assert (kept[0] / "orders-0" / log_name(0)).read_bytes() == before[log_name(0)]
    assert bases_in(folder) == [6, 8]
    assert kafkajit.retain(folder, config={"retention.bytes": 0}).apply(keep=False) == []
    assert kept_in(folder) == kept


def test_a_plan_that_needs_nothing_does_nothing(folder: Path) -> None:
    before = files_in(folder)
    plan = kafkajit.retain(folder, config={"retention.bytes": 5 * SIZE})
    assert not plan.is_needed
    assert plan.apply() == []
    assert files_in(folder) == before
    assert not kept_in(folder)


# Other processes


def test_a_log_that_a_broker_has_open_is_not_touched(folder: Path) -> None:
    plan = kafkajit.retain(folder, config={"retention.bytes": 0})
    with broker_of(folder.parent):
        with pytest.raises(kafkajit.LockedError):
            plan.apply()
        assert bases_in(folder) == [0, 2, 4, 6, 8]
        plan.apply(force=True)
        assert bases_in(folder) == [10]


def test_a_log_that_has_changed_since_it_was_planned_is_not_touched(folder: Path) -> None:
    plan = kafkajit.retain(folder, config={"retention.bytes": 2 * SIZE})
    with kafkajit.LogWriter(folder) as log:
        log.append(kafkajit.testing.batch([kafkajit.testing.Record(b"k")], base_offset=10))
    with pytest.raises(kafkajit.KafkaJitError, match="make another plan"):
        plan.apply()
    assert bases_in(folder)[0] == 0
    plan = kafkajit.retain(folder, config={"retention.bytes": 2 * SIZE})
    checkpoint(folder.parent, HIGH_WATERMARKS, "orders-0", 1)
    with pytest.raises(kafkajit.KafkaJitError, match="make another plan"):
        plan.apply()


def test_a_change_that_was_interrupted_is_finished_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Change(folder, "test") as change:
        change.remove(folder / log_name(0))

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("kafkajit.change.change.carry_out", stop)
        with pytest.raises(KeyboardInterrupt):
            change.commit()
    monkeypatch.undo()
    plan = kafkajit.retain(folder, config={"retention.bytes": 4 * SIZE})
    assert any("a change was interrupted" in note for note in plan.partitions[0].notes)
    plan.apply()
    assert bases_in(folder) == [2, 4, 6, 8]  # four segments are left: no more has to go


def test_several_partitions_are_retained_each_by_itself(tmp_path: Path) -> None:
    for partition in range(3):
        times = [TIME + 1000 * at for at in range(2 + partition)]
        make_log(tmp_path / f"orders-{partition}", times)
    make_log(tmp_path / "__consumer_offsets-0", [TIME] * 3)
    (tmp_path / "empty-0").mkdir()
    plan = kafkajit.retain(tmp_path, config={"retention.bytes": 3 * SIZE})
    assert [(one.folder.name, gone(one), one.left_alone is None) for one in plan.partitions] == [
        ("__consumer_offsets-0", [], False),
        ("empty-0", [], True),
        ("orders-0", [], True),
        ("orders-1", [], True),
        ("orders-2", [0], True),
    ]
    with FolderLock(tmp_path):
        pass
    (kept,) = plan.apply()
    assert kept.parent == tmp_path / "orders-2"
    assert bases_in(tmp_path / "orders-2") == [2, 4, 6]


# What must not go, and what is wrong


def test_what_is_not_retentions_to_delete_is_refused_by_name(tmp_path: Path) -> None:
    folder = make_log(tmp_path / "__consumer_offsets-0", [TIME] * 3)
    with pytest.raises(kafkajit.KafkaJitError, match="an internal topic") as raised:
        kafkajit.retain(folder, config={"retention.bytes": 0})
    assert raised.value.path == str(folder)
    assert gone(planned(folder, {"retention.bytes": 0, "cleanup.policy": "compact,delete"})) == [
        0,
        2,
        4,
    ]
    folder = make_log(tmp_path / "tiered-0", [TIME] * 3, first=10)
    (tmp_path / STARTS).write_text("0\n1\ntiered 0 3\n")
    with pytest.raises(kafkajit.KafkaJitError, match="a topic in tiered storage"):
        kafkajit.retain(folder, config={"retention.bytes": 0})
    assert gone(planned(folder, {"retention.bytes": 0, "remote.storage.enable": False})) == [
        10,
        12,
        14,
    ]


def test_an_offset_for_several_logs_is_refused(tmp_path: Path) -> None:
    make_log(tmp_path / "orders-0", [TIME] * 2)
    make_log(tmp_path / "orders-1", [TIME] * 2)
    with pytest.raises(ValueError, match="a log start offset is for one partition"):
        kafkajit.retain(tmp_path, log_start_offset=1)


def test_a_folder_without_a_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    with pytest.raises(FileNotFoundError, match="no segments"):
        kafkajit.retain(tmp_path / "orders-0", config={"retention.bytes": 0})


@pytest.mark.parametrize("tail", [b"\x00" * 100, b"\x01" * 5, b"\x01" * 100], ids=repr)
def test_a_log_that_does_not_end_in_a_whole_batch_is_to_be_repaired_first(
    folder: Path, tail: bytes
) -> None:
    path = folder / log_name(8)
    path.write_bytes(path.read_bytes() + tail)
    with pytest.raises(kafkajit.CorruptRecordError, match="run `kafkajit repair` on"):
        kafkajit.retain(folder, config={"retention.bytes": 0})


def test_a_last_batch_that_is_damaged_is_to_be_repaired_first(folder: Path) -> None:
    path = folder / log_name(8)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(kafkajit.CorruptRecordError, match="run `kafkajit repair` on"):
        kafkajit.retain(folder, config={"retention.bytes": 0})


def test_damage_in_what_goes_does_not_matter(folder: Path) -> None:
    (folder / log_name(0)).write_bytes(b"\x07" * SIZE)
    (folder / log_name(2, ".timeindex")).write_bytes(b"\x07" * 5)
    assert gone(planned(folder, {"retention.bytes": 2 * SIZE})) == [0, 2, 4]


def test_a_segment_with_offsets_of_those_that_stay_does_not_go(folder: Path) -> None:
    logs = [folder / log_name(RECORDS * place) for place in range(3)]
    # As after a copy over an older file: the first segment has the third one's offsets, too.
    logs[0].write_bytes(b"".join(log.read_bytes() for log in logs))
    assert gone(planned(folder, {}, log_start_offset=6)) == [0, 2, 4]
    match = rf"up to 5, and those from 4 on stay: run `kafkajit repair` .*{log_name(0)}"
    with pytest.raises(kafkajit.InvalidOffsetError, match=match):
        planned(folder, {}, log_start_offset=4)
    with pytest.raises(kafkajit.InvalidOffsetError, match=match):
        planned(folder, {"retention.bytes": 3 * SIZE})


def test_a_segment_that_nobody_can_tell_the_age_of_is_to_be_repaired_first(folder: Path) -> None:
    (folder / log_name(0)).write_bytes(b"\x07" * SIZE)
    with pytest.raises(kafkajit.CorruptRecordError, match="run `kafkajit repair` on"):
        kafkajit.retain(folder, config={"retention.ms": 0})


def test_an_index_that_is_not_believed_is_told(folder: Path) -> None:
    (folder / log_name(0, ".timeindex")).write_bytes(bytes(24))
    partition = planned(folder, {"retention.ms": 500}, now=TIME + 1000)
    assert gone(partition) == [0]
    assert partition.notes == [
        f"{log_name(0)}: the time index ends in zeros; the log was read instead"
    ]


def test_a_young_segment_stays_although_its_time_index_has_lost_its_end(tmp_path: Path) -> None:
    folder = make_log(tmp_path / "orders-0", [TIME, TIME + 10**6, TIME + 10**6])
    log, young = folder / log_name(0), folder / log_name(RECORDS)
    batches = log.read_bytes() + young.read_bytes()
    for path in folder.glob(f"{RECORDS:020d}.*"):
        path.unlink()
    log.write_bytes(batches)  # and its .timeindex ends with the first batch
    partition = planned(folder, {"retention.ms": 1000}, now=TIME + 10**6)
    assert not partition.is_needed
    assert partition.notes == [
        f"{log_name(0)}: the time index ends with timestamp {TIME}, the log has {TIME + 10**6}; "
        "the log was read instead"
    ]


def test_indexes_that_nobody_has_closed_are_not_believed(folder: Path) -> None:
    for suffix in (".index", ".timeindex"):
        path = folder / log_name(8, suffix)
        path.write_bytes(path.read_bytes() + bytes(120))
    partition = planned(folder, {"retention.ms": 0}, now=TIME + 4000)
    assert gone(partition) == [0, 2, 4, 6]  # the last has exactly that timestamp
    assert planned(folder, {"retention.ms": 0}, now=TIME + 4001).new_log_start_offset == 10


def test_a_swap_that_a_broker_did_not_finish_is_to_be_repaired_first(folder: Path) -> None:
    shutil.copy(folder / log_name(0), folder / f"{log_name(0)}.swap")
    with pytest.raises(kafkajit.KafkaJitError, match="run `kafkajit repair` on"):
        kafkajit.retain(folder, config={"retention.bytes": 0})


def test_a_log_that_is_said_to_start_behind_its_end_is_refused(folder: Path) -> None:
    checkpoint(folder.parent, STARTS, "orders-0", 11)
    with pytest.raises(kafkajit.InvalidOffsetError, match="a broker that loads it would delete it"):
        kafkajit.retain(folder, config={"retention.bytes": 0})


def test_leader_epochs_that_cannot_be_read_are_to_be_repaired_first(folder: Path) -> None:
    (folder / EPOCHS).write_text("0\n7\n0 0\n")
    with pytest.raises(kafkajit.CorruptCheckpointError, match="run `kafkajit repair` on"):
        kafkajit.retain(folder, config={"retention.bytes": 0})
    assert not kafkajit.retain(folder, config={"retention.bytes": 5 * SIZE}).is_needed


@pytest.mark.parametrize("name", [STARTS, HIGH_WATERMARKS, "cleaner-offset-checkpoint"])
def test_a_checkpoint_that_cannot_be_read_is_an_error(folder: Path, name: str) -> None:
    (folder.parent / name).write_text("0\n7\norders 0 3\n")
    with pytest.raises(kafkajit.CorruptCheckpointError) as raised:
        kafkajit.retain(folder, config={"retention.bytes": 0})
    assert name in str(raised.value)


UNREADABLE = """
import os, sys
import kafkajit
folder, path = sys.argv[1:]
kafkajit.retain(folder, config={"retention.bytes": 0})  # to import everything
os.chmod(path, 0)
if os.geteuid() == 0:  # root may read everything
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    kafkajit.retain(folder, config={"retention.bytes": 0})
except OSError as error:
    print(error)
"""


def test_a_file_that_may_not_be_read_is_an_error_that_names_it() -> None:
    with TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        path = make_log(root / "orders-0", [TIME] * 3) / log_name(4)
        said = run_python(UNREADABLE, f"{root}/orders-0", str(path))
        assert said == f"[Errno 13] Permission denied: '{path}'\n"


# The text of a plan


def test_a_plan_says_what_goes_and_why(folder: Path) -> None:
    checkpoint(folder.parent, STARTS, "orders-0", 3)
    plan = kafkajit.retain(
        folder, config={"retention.ms": 0, "retention.bytes": 3 * SIZE}, now=TIME + 4001
    )
    assert str(plan).splitlines() == [
        "orders-0: 5 of 5 segments to delete, 885 of 885 bytes",
        "  due to log start offset 3 breach:",
        "    00000000000000000000.log         177  2023-11-14T22:13:20.000Z",
        "  due to log retention size 531 breach:",
        "    00000000000000000002.log         177  2023-11-14T22:13:21.000Z",
        "  due to log retention time 0ms breach:",
        "    00000000000000000004.log         177  2023-11-14T22:13:22.000Z",
        "    00000000000000000006.log         177  2023-11-14T22:13:23.000Z",
        "    00000000000000000008.log         177  2023-11-14T22:13:24.000Z",
        "  a new segment begins at offset 10",
        "  log start offset 3 becomes 10",
    ]
    assert max(map(len, str(plan).splitlines())) <= 80


def test_a_time_that_is_a_files_is_said_to_be(tmp_path: Path) -> None:
    folder = make_log(tmp_path / "orders-0", [-1, -1])
    os.utime(folder / log_name(0), ns=(0, TIME * 1_000_000))
    lines = str(kafkajit.retain(folder, config={"retention.bytes": SIZE})).splitlines()
    assert (
        lines[2] == "    00000000000000000000.log         177  2023-11-14T22:13:20.000Z  (modified)"
    )


def test_what_stays_is_said_in_a_line(folder: Path) -> None:
    assert str(kafkajit.retain(folder)) == (
        "orders-0: none of 5 segments to delete, 0 of 885 bytes"
    )


@pytest.mark.parametrize("change", ["retain", "truncate"])
def test_a_copy_of_a_partition_may_have_any_name(change: str, tmp_path: Path) -> None:
    copy = make_partition(tmp_path / "orders-0", {0: [data(0)], 2: [data(2)], 4: [data(4)]})
    copy = copy.rename(tmp_path / "mylog")
    for _ in range(2):
        if change == "retain":
            kafkajit.retain(copy, config={"retention.ms": 1}).apply()
        else:
            kafkajit.repair(copy, truncate_to=2).apply()
    assert offsets_in(copy) == ([] if change == "retain" else [0, 1])
