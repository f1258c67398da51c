from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from compaction_twin import seen
from corpus import NO_JIT
from histories import Step, histories

import kafkajit
import kafkajit.testing as kt
from kafkajit.errors import KafkaJitError, LockedError
from kafkajit.log.config import LogConfig
from kafkajit.upkeep.compact.plan import PartitionCompaction, compact

COMPACTED = LogConfig(cleanup_policy=("compact",))
TIME = 1_700_000_000_000
DAY = 24 * 60 * 60 * 1000


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def only(folder: Path, **options: Any) -> PartitionCompaction:
    (partition,) = compact(folder, **{"config": COMPACTED} | options).partitions
    return partition


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three segments: some of the first stays, nothing of the next, all of the last."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (tmp_path / "meta.properties").touch()
    logs = {
        0: kt.batch([kt.Record(b"a", b"1"), kt.Record(b"b", b"2"), kt.Record(b"c", b"3")]),
        3: kt.batch([kt.Record(b"a", b"4"), kt.Record(None, b"5")], base_offset=3),
        5: kt.batch([kt.Record(b"a", b"6"), kt.Record(b"b", b"7")], base_offset=5),
        7: b"",
    }
    for place, (base, log) in enumerate(logs.items()):
        path = folder / f"{base:020d}.log"
        path.write_bytes(log)
        path.with_suffix(".index").touch()
        os.utime(path, (TIME // 1000 + place, TIME // 1000 + place))
        if base:
            path.with_suffix(".snapshot").write_bytes(kt.producer_snapshot([]))
    return folder


SMALL = LogConfig(cleanup_policy=("compact",), segment_bytes=14)  # no two segments fit into one


def values(folder: Path) -> list[tuple[int, bytes]]:
    records = [
        kafkajit.read_records(path, columns=["offset", "value"]).to_pylist()
        for path in sorted(folder.glob("*.log"))
    ]
    return [(row["offset"], row["value"]) for rows in records for row in rows]


# --- compared with Kafka -----------------------------------------------------------------------


def rolled(folder: Path, step: Step) -> None:
    """The folder before a step that rolled the log; the log was closed after it."""
    for name, content in step.before.items():
        (folder / name).write_bytes(content)
    for place, path in enumerate(sorted(folder.glob("*.log"))):
        os.utime(path, ((TIME + place * 1000) // 1000,) * 2)
    base = step.stated["commands"][0]["answer"]["baseOffset"]
    for suffix in (".log", ".index", ".timeindex"):
        (folder / f"{base:020d}{suffix}").touch()


def cleanings() -> list[tuple[str, Step, dict[str, int]]]:
    found = []
    for place, history in enumerate(histories("compact")):
        checkpoint: dict[str, int] = {}
        for number, step in enumerate(history):
            if step.stated["commands"][-1]["do"] == "clean":
                found.append((f"{place}-{number}", step, checkpoint))
                checkpoint = step.stated["commands"][-1]["answer"]["checkpoint"]
    return found[::3] if NO_JIT else found


@pytest.mark.parametrize(
    ("step", "checkpoint"),
    [pytest.param(*one, id=name) for name, *one in cleanings()],
)
def test_a_log_becomes_what_kafka_s_cleaner_makes_of_it(
    tmp_path: Path, step: Step, checkpoint: dict[str, int]
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    rolled(folder, step)
    offsets = tmp_path / "cleaner-offset-checkpoint"
    lines = [f"orders 0 {offset}\n" for offset in checkpoint.values()]
    offsets.write_text(f"0\n{len(lines)}\n{''.join(lines)}")
    before = contents(folder)
    answer = step.stated["commands"][-1]["answer"]
    plan = only(
        folder,
        config=LogConfig.of(step.stated["config"]),
        now=step.stated["open"]["now"],
        producer_expiration_ms=step.stated["open"]["producerIdExpirationMs"],
    )
    assert plan.is_needed == answer["cleaned"]
    plan.apply(keep=False)
    after = contents(folder)
    if not answer["cleaned"]:
        assert after == before
        return
    assert plan.cleanable is not None
    assert plan.cleanable.first_dirty_offset == answer["firstDirtyOffset"]
    assert plan.cleanable.first_uncleanable_offset == answer["endOffset"]
    assert plan.cleanable.dirty_ratio == pytest.approx(answer["cleanableRatio"])
    assert sum(segment.records for segment in plan.segments) == answer["stats"]["messagesWritten"]
    assert offsets.read_text() == f"0\n1\norders 0 {answer['endOffset']}\n"

    assert after.keys() == set(step.stated["files"])
    stayed = {segment.logs[0][:20] for segment in plan.segments if not segment.is_changed}
    stayed |= {name[:20] for name in after if int_of(name) >= answer["endOffset"]}
    for name, content in after.items():
        is_plain = not any(batch.codec for batch in batches_of(step.after, name))
        if name.endswith(".log"):
            assert seen(content) == seen(step.after[name])
        if is_plain and (name[:20] not in stayed or name.endswith(".log")):
            assert content == step.after[name], name


def int_of(name: str) -> int:
    return int(name[:20]) if name[:20].isdigit() else -1


def batches_of(files: dict[str, bytes], name: str) -> list[Any]:
    import reference

    return reference.read_batches(files.get(name[:20] + ".log", b""))[0]


# --- what a plan shows, and what it does ----------------------------------------------------------


def test_a_plan_changes_nothing_and_says_what_stays_of_each_segment(folder: Path) -> None:
    before = contents(folder)
    plan = compact(folder, config=SMALL)
    assert plan.is_needed
    assert str(plan) == (
        "orders-0: dirty from offset 0 to 6, 100% of 245 bytes\n"
        "  00000000000000000000.log: 1 of 3 records, 70 of 88 bytes\n"
        "  00000000000000000003.log: 0 of 2 records, 0 of 78 bytes\n"
        "  00000000000000000005.log: 2 records, 79 bytes: stays\n"
        "  cleaner-offset-checkpoint: a new entry with offset 7, in a new file\n"
        "  records without a key: 1, which go: brokers do not accept them in a compacted topic"
    )
    assert contents(folder) == before
    assert not (folder.parent / "cleaner-offset-checkpoint").exists()


def test_what_stays_is_in_the_same_segments_with_their_indexes_and_times(folder: Path) -> None:
    (kept,) = compact(folder, config=SMALL).apply()
    assert values(folder) == [(2, b"3"), (5, b"6"), (6, b"7")]
    files = contents(folder)
    assert files["00000000000000000003.log"] == b""
    assert files["00000000000000000000.timeindex"] == kt.time_index([(1_700_000_000_000, 2)])
    for place, base in enumerate((0, 3, 5)):
        assert (folder / f"{base:020d}.log").stat().st_mtime == TIME // 1000 + place
    assert "00000000000000000003.snapshot" in files
    assert (kept / "orders-0" / "00000000000000000000.log").stat().st_size == 88


def test_segments_that_fit_together_become_one(folder: Path) -> None:
    plan = only(folder)
    plan.apply()
    assert [segment.logs for segment in plan.segments] == [
        ("00000000000000000000.log", "00000000000000000003.log", "00000000000000000005.log")
    ]
    assert "00000000000000000000.log and the 2 behind it: 3 of 7 records" in str(plan)
    assert values(folder) == [(2, b"3"), (5, b"6"), (6, b"7")]
    names = {path.name for path in folder.iterdir() if path.is_file()}
    assert names == {
        "00000000000000000000.log",
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
        "00000000000000000007.log",
        "00000000000000000007.index",
        "00000000000000000007.snapshot",
    }
    assert (folder / f"{0:020d}.log").stat().st_mtime == TIME // 1000 + 2


def test_the_next_time_nothing_is_dirty(folder: Path) -> None:
    compact(folder, config=COMPACTED).apply()
    assert (folder.parent / "cleaner-offset-checkpoint").read_text() == "0\n1\norders 0 7\n"
    plan = compact(folder)  # the checkpoint shows that the topic is compacted
    assert not plan.is_needed
    end = "the active segment begins there"
    assert str(plan) == f"orders-0: nothing to compact before offset 7: {end}"
    before = contents(folder)
    assert plan.apply() == []
    assert contents(folder) == before


def test_other_partitions_in_the_checkpoint_stay(folder: Path) -> None:
    path = folder.parent / "cleaner-offset-checkpoint"
    path.write_text("0\n2\norders 0 3\norders 1 42\n")
    compact(folder).apply()
    assert path.read_text() == "0\n2\norders 0 7\norders 1 42\n"


def test_batches_that_lose_nothing_are_copied_byte_for_byte(tmp_path: Path) -> None:
    """Also compressed ones that another writer has compressed in another way."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    rows = pa.table({"key": [f"{at}" for at in range(9)], "value": ["some words " * 40] * 9})
    stays, others = (
        bytes(
            kafkajit.encode_batches(
                rows, base_offset=1, compression_type="gzip", compression_level=level
            )
        )
        for level in (1, 9)
    )
    assert stays != others
    log = kt.batch([kt.Record(b"a", b"1")]) + stays + kt.batch([kt.Record(b"a")], base_offset=10)
    (folder / f"{0:020d}.log").write_bytes(log)
    (folder / f"{11:020d}.log").write_bytes(b"")
    only(folder).apply()
    assert (folder / f"{0:020d}.log").read_bytes().startswith(stays)


def test_no_checkpoint_is_made_beside_a_copied_folder(folder: Path) -> None:
    (folder.parent / "meta.properties").unlink()
    compact(folder, config=COMPACTED).apply()
    assert not (folder.parent / "cleaner-offset-checkpoint").exists()


def test_files_that_are_replaced_need_not_be_kept(folder: Path) -> None:
    assert compact(folder, config=COMPACTED).apply(keep=False) == []
    assert not list(folder.glob(".kafkajit*"))


def test_nothing_is_changed_where_a_batch_is_damaged(folder: Path) -> None:
    path = folder / f"{5:020d}.log"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    before = contents(folder)
    with pytest.raises(KafkaJitError, match="Record is corrupt"):
        compact(folder, config=COMPACTED).apply()
    assert contents(folder) == before
    assert not list(folder.glob(".kafkajit*"))


def test_files_that_have_changed_since_are_refused(folder: Path) -> None:
    plan = compact(folder, config=COMPACTED)
    (folder / f"{7:020d}.log").write_bytes(kt.batch([kt.Record(b"a")], base_offset=7))
    with pytest.raises(KafkaJitError, match="files have changed since"):
        plan.apply()


def test_committed_records_that_a_transaction_index_calls_aborted_stay(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    log = kt.batch([kt.Record(b"a")], **producer)  # type: ignore[arg-type]
    log += kt.control_batch(1, producer_id=7, base_offset=1)
    log += kt.batch([kt.Record(b"b")], base_offset=2, **producer)  # type: ignore[arg-type]
    log += kt.control_batch(0, producer_id=7, base_offset=3)
    (folder / f"{0:020d}.log").write_bytes(log)
    (folder / f"{4:020d}.log").touch()
    index = folder / f"{0:020d}.txnindex"
    index.write_bytes(kt.transaction_index([(7, 0, 3, 4)]))
    before = contents(folder)
    with pytest.raises(KafkaJitError, match="contradicts the log: another transaction ends"):
        only(folder)
    assert contents(folder) == before
    kafkajit.repair(folder).apply()
    only(folder).apply()
    assert [offset for offset, _ in values(folder)] == [0, 1, 3]  # and the two markers


@pytest.mark.parametrize("magic", [1, 2])
def test_a_deleted_value_does_not_come_back_after_a_wrong_checkpoint(
    tmp_path: Path, magic: int
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    records = [kt.Record(b"a", b"1"), kt.Record(b"a", None)]
    log = kt.batch(records) if magic == 2 else kt.message_set(records)
    (folder / f"{0:020d}.log").write_bytes(log)
    (folder / f"{2:020d}.log").write_bytes(kt.batch([kt.Record(b"b", b"2")], base_offset=2))
    (folder / f"{3:020d}.log").touch()
    checkpoint = tmp_path / "cleaner-offset-checkpoint"
    for now in (TIME, TIME + 2 * DAY, TIME + 4 * DAY):
        checkpoint.write_text("0\n1\norders 0 2\n")  # no cleaner has looked for older values of a
        os.utime(folder / f"{0:020d}.log", (0, 0))
        only(folder, now=now).apply(keep=False)
        assert [offset for offset, _ in values(folder)] == [0, 1, 2]
    checkpoint.unlink()
    only(folder, now=TIME).apply()
    assert [offset for offset, _ in values(folder)] == [1, 2]


def test_a_log_of_a_running_broker_is_refused(folder: Path) -> None:
    lock = folder.parent / ".lock"
    code = (
        "import fcntl, sys, time\n"
        f"file = open({str(lock)!r}, 'w')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX)\nprint('locked', flush=True)\ntime.sleep(60)\n"
    )
    broker = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert broker.stdout is not None
        broker.stdout.readline()
        with pytest.raises(LockedError):
            compact(folder, config=COMPACTED).apply()
    finally:
        broker.kill()
        broker.communicate()
    assert len(values(folder)) == 7


def test_what_a_broker_left_half_swapped_is_refused(folder: Path) -> None:
    (folder / f"{0:020d}.log.swap").touch()
    with pytest.raises(KafkaJitError, match="stopped while it swapped segments"):
        compact(folder, config=COMPACTED)


# --- which logs -------------------------------------------------------------------------------


def test_a_topic_that_nothing_says_is_compacted_is_left_alone_and_refused_where_it_is_named(
    folder: Path,
) -> None:
    with pytest.raises(KafkaJitError, match="nothing says that the topic is compacted") as error:
        compact(folder)
    assert error.value.path == str(folder)
    # It cannot hold for all logs of a log.dirs folder.
    for config in (None, COMPACTED):
        plan = compact(folder.parent, config=config)
        assert not plan.is_needed
        assert str(plan) == "orders-0: left alone: nothing says that the topic is compacted"
        assert plan.apply() == []
    assert len(values(folder)) == 7


def test_configs_may_be_said_in_kafkas_words(folder: Path) -> None:
    settings = {"cleanup.policy": "compact", "min.compaction.lag.ms": "0"}
    assert str(compact(folder, config=settings)) == str(compact(folder, config=COMPACTED))
    with pytest.raises(ValueError, match=r"did you mean 'cleanup\.policy'"):
        compact(folder, config={"cleanup.polcy": "compact"})


def test_in_a_log_dirs_folder_the_compacted_ones_are_compacted(folder: Path) -> None:
    root = folder.parent
    for name in ("orders-1", "__consumer_offsets-3", "__share_group_state-0"):
        shutil.copytree(folder, root / name)
    (root / "cleaner-offset-checkpoint").write_text("0\n1\norders 1 0\n")
    plan = compact(root)
    done = {partition.folder.name for partition in plan.partitions if partition.is_needed}
    assert done == {"orders-1", "__consumer_offsets-3"}
    assert len(plan.apply()) == 2
    assert [len(values(root / name)) for name in ("orders-0", "orders-1")] == [7, 3]
    assert len(values(root / "__share_group_state-0")) == 7


@pytest.mark.parametrize("name", ["__cluster_metadata-0", "__remote_log_metadata-1"])
def test_internal_topics_that_brokers_do_not_compact_are_left_alone(
    folder: Path, name: str
) -> None:
    folder = folder.rename(folder.parent / name)
    why = "an internal topic that brokers do not compact"
    assert str(compact(folder.parent)) == f"{name}: left alone: {why}"
    with pytest.raises(KafkaJitError, match=why):
        compact(folder, config=COMPACTED)


def test_a_replica_on_its_way_in_is_left_alone(folder: Path) -> None:
    folder = folder.rename(folder.parent / f"orders-0.{'0' * 32}-future")
    assert "left alone: a replica that a broker is moving here" in str(compact(folder.parent))
    with pytest.raises(KafkaJitError, match="a broker is moving here"):
        compact(folder, config=COMPACTED)


# --- producers --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("late", "stays"), [(DAY - 1, True), (DAY, False)], ids=["remembered", "forgotten"]
)
def test_a_producer_s_last_batch_stays_for_as_long_as_it_is_remembered(
    tmp_path: Path, late: int, stays: bool
) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    log = kt.batch([kt.Record(b"a")], base_timestamp=TIME, **producer)  # type: ignore[arg-type]
    log += kt.batch([kt.Record(b"a")], base_offset=1) + kt.batch([kt.Record(b"b")], base_offset=2)
    (folder / f"{0:020d}.log").write_bytes(log)
    (folder / f"{3:020d}.log").touch()
    only(folder, now=TIME + late).apply()
    batches = kafkajit.read_record_batches(folder / f"{0:020d}.log")
    expected = [(0, 0), (1, 1), (2, 1)] if stays else [(1, 1), (2, 1)]
    columns = batches.select(["baseOffset", "recordsCount"]).to_pylist()
    assert [tuple(row.values()) for row in columns] == expected


@pytest.mark.parametrize(
    ("checkpoint", "noted"),
    [
        (None, "a new entry with offset 7, in a new file"),
        ("0\n1\nothers 0 3\n", "a new entry with offset 7"),
        ("0\n1\norders 0 3\n", "3 becomes 7"),
    ],
)
def test_a_plan_shows_the_entry_that_a_broker_finds_afterwards(
    checkpoint: str | None, noted: str, folder: Path
) -> None:
    (folder.parent / "meta.properties").write_text("version=1\n")
    path = folder.parent / "cleaner-offset-checkpoint"
    if checkpoint is not None:
        path.write_text(checkpoint)
    plan = compact(folder, config=SMALL)
    assert f"  cleaner-offset-checkpoint: {noted}" in str(plan).splitlines()
    assert plan.partitions[0].document()["cleanerOffsetCheckpoint"] == noted
    plan.apply()
    assert "orders 0 7\n" in path.read_text()
    assert f"  cleaner-offset-checkpoint: {noted}" in str(plan).splitlines()


def test_a_plan_names_the_segment_that_is_missing(folder: Path) -> None:
    assert "are missing" not in str(compact(folder, config=SMALL))
    (folder / f"{3:020d}.log").unlink()
    plan = compact(folder, config=SMALL)
    assert "  offsets 3 to 4 are missing between " in str(plan)
    (gap,) = plan.partitions[0].document()["missing"]
    assert (gap["firstMissingOffset"], gap["lastMissingOffset"]) == (3, 4)


def test_a_copy_with_another_name_has_no_entry_in_a_checkpoint(folder: Path) -> None:
    checkpoint = folder.parent / "cleaner-offset-checkpoint"
    checkpoint.write_text("0\n1\norders 0 3\n")
    copy = folder.rename(folder.parent / "mylog")
    plan = compact(copy, config=SMALL)
    assert "cleaner-offset-checkpoint" not in str(plan)
    plan.apply()
    assert checkpoint.read_text() == "0\n1\norders 0 3\n"
