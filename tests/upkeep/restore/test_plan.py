"""Logs out of tiered storage and backups are those that brokers had, byte for byte."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import data
import numpy as np
import pytest
from changes import Stopped, hidden, live, stopping_after
from corpus import DATA, rows_of
from scanning import far_away, read_in_small_pieces

import kafkajit
import kafkajit.testing as kt
from asv_bench.benchmarks.tiered_objects import TOPIC_ID, write_segment
from kafkajit.change.journal import READY
from kafkajit.change.lock import FolderLock
from kafkajit.storage.source import SAMPLE_LOGS
from kafkajit.upkeep.restore.partition_restoration import PartitionRestoration

OBJECTS = data.objects()
ARCHIVES = ["local-storage", *sorted(path.name for path in OBJECTS.glob("aiven-*"))]
PREFIXES = {"aiven-compressed": "some/prefix", "aiven-mixed": "tier"}
KEYS = {
    path.name.removesuffix(".private.pem"): str(path)
    for path in (OBJECTS / "keys").glob("*.private.pem")
}
LOCAL = OBJECTS / "local-storage"
STARTS = "log-start-offset-checkpoint"
Files = dict[str, bytes]


def tier(name: str) -> Path:
    return OBJECTS / name / "remote" / PREFIXES.get(name, "")


def originals(name: str) -> Path:
    return OBJECTS / name / ("original" if name == "local-storage" else "logs")


def files_in(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def restored(sources: object, folder: Path, **options: Any) -> list[PartitionRestoration]:
    plan = kafkajit.restore(sources, folder, **options)  # type: ignore[arg-type]
    plan.apply()
    return plan.partitions


def one(sources: object, folder: Path, **options: Any) -> PartitionRestoration:
    (partition,) = restored(sources, folder, **options)
    return partition


def records(folder: Path) -> list[dict[str, Any]]:
    return [
        row
        for segment in kafkajit.Log(folder).segments
        for row in kafkajit.read_records(segment.log.path).drop_columns(["position"]).to_pylist()
    ]


def bases(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*.log"))


def expected_files(original: Path, end: int) -> Files:
    """The files of a broker's folder that belong to the log before an offset."""
    epochs = [
        (row["epoch"], row["startOffset"])
        for row in rows_of(kafkajit.read_leader_epochs(original / "leader-epoch-checkpoint"))
        if row["startOffset"] < end
    ]
    starts = {int(path.stem) for path in original.glob("*.log") if int(path.stem) < end}
    lines = [f"{epoch} {at}" for epoch, at in epochs]
    text = "\n".join(["0", str(len(lines)), *lines, ""]).encode()
    kept: Files = {"leader-epoch-checkpoint": text}
    for name, content in files_in(original).items():
        base = int(name[:20]) if name[:20].isdigit() else None
        if base is None:
            continue
        # Brokers also take snapshots when they stop.
        is_snapshot = name.endswith(".snapshot") and base in {*starts, end} - {min(starts)}
        if is_snapshot or (base in starts and not name.endswith(".snapshot")):
            kept[name] = content
    return kept


@pytest.mark.parametrize("name", ARCHIVES)
@pytest.mark.parametrize("is_remote", [False, True])
def test_what_brokers_have_tiered_comes_back_byte_for_byte(
    name: str, is_remote: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = str(tier(name))
    if is_remote:
        read_in_small_pieces(monkeypatch)
        source = far_away(monkeypatch, tier(name))
    partitions = restored(source, tmp_path, private_keys=KEYS)
    compared = set()
    for partition in partitions:
        expected = expected_files(originals(name) / partition.folder.name, partition.end_offset)
        found = files_in(partition.folder)
        id_ = found.pop("partition.metadata")
        assert id_ == f"version: 0\ntopic_id: {partition.topic_id}".encode()
        assert found == expected
        compared |= {Path(file).suffix for file in found}
    assert {".log", ".index", ".timeindex", ".txnindex", ".snapshot"} <= compared
    assert hidden(tmp_path) == []


def test_tiered_storage_and_a_brokers_folder_become_one_log(tmp_path: Path) -> None:
    sources = [LOCAL / "remote", LOCAL / "logs"]
    partitions = restored(sources, tmp_path)
    assert [partition.folder.name for partition in partitions] == [
        "orders-0",
        "orders-1",
        "orders-1-0",
    ]
    for partition in partitions:
        original = LOCAL / "original" / partition.folder.name
        first = [row for row in records(original) if row["offset"] >= partition.start_offset]
        again = [
            row for row in records(partition.folder) if row["offset"] >= partition.start_offset
        ]
        assert again == first
        found = files_in(partition.folder)
        assert {name: found[name] for name in found if name.endswith(".log")} == {
            name: content for name, content in files_in(original).items() if name.endswith(".log")
        }
    # DeleteRecords has hidden the beginning of a batch.
    starts = rows_of(kafkajit.read_checkpoint(tmp_path / STARTS))
    assert starts == [{"topic": "orders-1", "partition": 0, "offset": 8}]
    assert kafkajit.Log(tmp_path / "orders-1-0").start_offset == 8


@pytest.mark.parametrize("start", [0, 9, 10, 15, 29])
def test_segments_before_the_log_start_offset_of_a_backup_are_left_out(
    start: int, backup: Path, tmp_path: Path
) -> None:
    (backup.parent / STARTS).write_text(f"0\n1\norders 0 {start}\n")
    one(backup, tmp_path / "kafka")
    assert offsets_in(tmp_path / "kafka") == list(range(start, 30))
    folder = tmp_path / "kafka" / "orders-0"
    assert bases(folder) == list(range(start // 10 * 10, 30, 10))
    assert files_in(folder)[f"{20:020d}.log"] == files_in(backup)[f"{20:020d}.log"]


def test_a_restored_log_needs_no_repair(tmp_path: Path) -> None:
    restored(LOCAL / "remote", tmp_path)
    assert not kafkajit.repair(tmp_path).is_needed


BACKUPS = sorted(
    folder
    for kind in ("v2", "old", "internal", "tiered")
    for folder in (DATA / kind).glob("*-[0-9]")
    if any(folder.glob("*.log"))
)


@pytest.mark.parametrize(
    "folder", BACKUPS, ids=lambda folder: f"{folder.parent.name}/{folder.name}"
)
def test_a_backup_comes_back_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    one(folder, tmp_path, topics=[folder.name.rpartition("-")[0]])
    found, expected = files_in(tmp_path / folder.name), files_in(folder)
    logs = {name for name in expected if name.endswith(".log")}
    assert {name for name in found if name.endswith(".log")} == logs
    for name in logs:  # some end in zeros, or in a batch that a crash has cut off
        assert expected[name].startswith(found[name])
        assert len(found[name]) == kafkajit.valid_bytes(folder / name)
    if not kafkajit.repair(folder).is_needed:
        kept = found.keys() & expected.keys() - {"leader-epoch-checkpoint"}
        assert {name: found[name] for name in kept} == {name: expected[name] for name in kept}
    assert not kafkajit.repair(tmp_path).is_needed


def test_the_plan_lists_what_would_be_written_and_writes_nothing(tmp_path: Path) -> None:
    plan = kafkajit.restore(LOCAL / "remote", tmp_path / "kafka", partitions=["orders-0"])
    assert str(plan) == (
        "orders-0: 10 segments, 31,615 bytes, offsets 0 to 298, 2023-11-14T22:13:21.000Z to "
        "2023-11-15T22:15:40.000Z\n"
        "  topic id p-KjpqSmTLGaf_K7A1cplg"
    )
    assert not (tmp_path / "kafka").exists()


# Which partitions.


def test_topics_and_partitions_are_chosen_by_name(tmp_path: Path) -> None:
    def names(**options: Any) -> list[str]:
        plan = kafkajit.restore(LOCAL / "remote", tmp_path, **options)
        assert not plan.left_out
        return [partition.folder.name for partition in plan.partitions]

    assert names(topics=["orders"]) == names(topics="orders") == ["orders-0", "orders-1"]
    assert names(partitions=["orders-1"]) == ["orders-1"]
    assert names(topics=["orders-1"], partitions=["orders-0"]) == ["orders-0", "orders-1-0"]


def test_a_name_that_the_sources_lack_is_an_error_with_the_names_that_they_have(
    tmp_path: Path,
) -> None:
    for options in ({"topics": ["order"]}, {"partitions": ["order"]}, {"topic_ids": {"order": ID}}):
        with pytest.raises(
            FileNotFoundError, match=r"no segments of order at .*: did you mean 'orders'"
        ):
            kafkajit.restore(LOCAL / "remote", tmp_path, **options)  # type: ignore[arg-type]


ID = "P59-lla6QvGi-iV56RZfKg"


def test_brokers_own_topics_are_left_out_unless_they_are_named(tmp_path: Path) -> None:
    plan = kafkajit.restore(LOCAL / "logs", tmp_path)
    assert {name for name, _ in plan.left_out} == {f"__remote_log_metadata-{n}" for n in range(3)}
    assert "__remote_log_metadata-0: left out: a topic of the brokers' own" in str(plan)
    assert len(plan.partitions) == 3
    named = kafkajit.restore(LOCAL / "logs", tmp_path, topics=["__remote_log_metadata"])
    assert len(named.partitions) == 3
    cluster = kafkajit.restore(DATA / "internal", tmp_path)
    assert ("__cluster_metadata-0", "the metadata of the cluster that it comes from") in (
        cluster.left_out
    )
    assert not cluster.partitions


def test_a_partition_that_is_in_two_places_is_an_error_that_names_them(tmp_path: Path) -> None:
    for copy in ("a", "b"):
        kt_log(tmp_path / copy / "orders-0")
    places = f"{tmp_path}/a/orders-0, {tmp_path}/b/orders-0"
    with pytest.raises(kafkajit.KafkaJitError, match=f"orders-0 is in several places.*{places}"):
        kafkajit.restore([tmp_path / "a", tmp_path / "b"], tmp_path / "c")


def kt_log(folder: Path, batches: int = 3, first: int = 0, *, epoch: int = 5) -> Path:
    """A segment of batches of two records each, a second apart."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{first:020d}.log"
    log.write_bytes(b"".join(batch(first + 2 * number, epoch) for number in range(batches)))
    return log


def batch(offset: int, epoch: int = 5) -> bytes:
    return kt.batch(
        [kt.Record(b"k", b"%d" % at) for at in (offset, offset + 1)],
        base_offset=offset,
        base_timestamp=1_700_000_000_000 + 1000 * offset,
        partition_leader_epoch=epoch,
    )


@pytest.mark.parametrize("topic", ["..", "."])
def test_a_name_that_no_topic_can_have_is_refused(topic: str, tmp_path: Path) -> None:
    hostile = tmp_path / "tier" / f"{topic}-{TOPIC_ID}" / "0"
    write_segment(hostile, 0, batch(0), end_offset=1)
    backup = kt_log(tmp_path / "backup" / f"{topic}-0").parent
    for source in (hostile, hostile.parent, backup):
        with pytest.raises(ValueError, match="Topic name is invalid"):
            kafkajit.restore(source, tmp_path / "kafka")


def test_a_manifest_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "tier" / f"orders-{TOPIC_ID}" / "0"
    write_segment(folder, 0, batch(0), end_offset=1)
    (manifest,) = folder.glob("*.rsm-manifest")
    for topic in ("../../orders", "/etc/orders", ".."):
        text = manifest.read_text()
        assert '"topic": "orders"' in text
        manifest.write_text(text.replace('"topic": "orders"', f'"topic": "{topic}"'))
        with pytest.raises(
            kafkajit.RemoteStorageError, match="the manifest belongs to another segment"
        ):
            kafkajit.restore(tmp_path / "tier", tmp_path / "kafka")
        manifest.write_text(text)


def test_a_folder_without_topic_and_partition_in_its_name_is_refused(tmp_path: Path) -> None:
    log = kt_log(tmp_path / "backup")
    with pytest.raises(kafkajit.KafkaJitError, match=r"the folder's name is not TOPIC-PARTITION"):
        kafkajit.restore(log, tmp_path / "kafka")


# Which records.


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """Offsets 0 to 29 in batches of two, in segments of five batches."""
    folder = tmp_path / "backup" / "orders-0"
    for first in (0, 10, 20):
        kt_log(folder, 5, first)
    return folder


def offsets_in(root: Path) -> list[int]:
    log = kafkajit.Log(root / "orders-0")
    return [row["offset"] for row in log.read(log.start_offset, 1000).to_pylist()]


@pytest.mark.parametrize("start", range(30))
def test_a_log_starts_at_the_offset_and_has_its_whole_batch(
    start: int, backup: Path, tmp_path: Path
) -> None:
    one(backup, tmp_path / "kafka", starting_offset=start)
    assert offsets_in(tmp_path / "kafka") == list(range(start, 30))
    folder = tmp_path / "kafka" / "orders-0"
    assert bases(folder) == [start // 2 * 2, *(base for base in (10, 20) if base > start)]
    assert (tmp_path / "kafka" / STARTS).exists() == (start % 2 == 1)
    epochs = rows_of(kafkajit.read_leader_epochs(folder / "leader-epoch-checkpoint"))
    assert epochs == [{"epoch": 5, "startOffset": start}]
    assert not kafkajit.repair(folder).is_needed


@pytest.mark.parametrize("end", range(1, 31))
def test_a_log_ends_exactly_before_the_end(end: int, backup: Path, tmp_path: Path) -> None:
    partition = one(backup, tmp_path / "kafka", ending_offset=end)
    assert offsets_in(tmp_path / "kafka") == list(range(end))
    assert partition.end_offset == end
    notes = [note for note in partition.notes if "rewritten" in note]
    last = end - 1
    rewritten = f"batch at offset {last} is rewritten with 1 of 2 records, offset {last}"
    assert notes == ([rewritten] if end % 2 else [])
    assert not kafkajit.repair(tmp_path / "kafka" / "orders-0").is_needed


def test_a_log_of_its_first_record_ends_behind_it(backup: Path, tmp_path: Path) -> None:
    partition = one(backup, tmp_path / "kafka", ending_offset=1)
    assert partition.end_offset == 1
    assert "offset 0" in str(partition)


@pytest.mark.parametrize("with_indexes", [False, True])
@pytest.mark.parametrize("first", range(-1, 30, 3))
@pytest.mark.parametrize("length", [1, 2, 7, 15, 100])
def test_timestamps_choose_records(
    first: int, length: int, with_indexes: bool, backup: Path, tmp_path: Path
) -> None:
    source = backup
    if with_indexes:
        one(backup, tmp_path / "indexed")
        source = tmp_path / "indexed" / "orders-0"
    start, end = (1_700_000_000_000 + 1000 * at for at in (first, first + length))
    plan = kafkajit.restore(
        source, tmp_path / "kafka", starting_timestamp=start, ending_timestamp=end
    )
    plan.apply()
    # Both records of a batch have its time.
    expected = [at for at in range(30) if first <= at // 2 * 2 < first + length]
    if expected:
        assert offsets_in(tmp_path / "kafka") == expected
    else:
        assert str(plan) == "orders-0: left out: there is no record in the range"
        assert not (tmp_path / "kafka" / "orders-0").exists()


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("start", [0, 3, 4, 7])
def test_messages_of_old_formats_are_cut_at_the_borders_of_their_sets(
    codec: str, start: int, tmp_path: Path
) -> None:
    folder = tmp_path / "backup" / "orders-0"
    folder.mkdir(parents=True)
    sets = [
        kt.message_set(
            [kt.Record(b"k", b"%d" % at) for at in (offset, offset + 1, offset + 2)],
            base_offset=offset,
            codec=codec,
        )
        for offset in (0, 3, 6)
    ]
    (folder / f"{0:020d}.log").write_bytes(b"".join(sets))
    one(folder, tmp_path / "kafka", starting_offset=start, ending_offset=9)
    assert offsets_in(tmp_path / "kafka") == list(range(start, 9))
    (base,) = bases(tmp_path / "kafka" / "orders-0")
    assert base == (start if codec == "none" else start // 3 * 3)


def test_offsets_are_for_one_partition(tmp_path: Path) -> None:
    for options in ({"starting_offset": 1}, {"ending_offset": 1}):
        with pytest.raises(ValueError, match="for one partition, and 3 are chosen: name it with"):
            kafkajit.restore(LOCAL / "remote", tmp_path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("at", range(0, 290, 29))
def test_transactions_and_producers_are_right_behind_a_cut(at: int, tmp_path: Path) -> None:
    """What a broker would rebuild of them is what was written."""
    restored(LOCAL / "remote", tmp_path, partitions=["orders-0"], starting_offset=at)
    plan = kafkajit.repair(tmp_path)
    assert not plan.is_needed, str(plan)
    log, whole = (kafkajit.Log(root / "orders-0") for root in (tmp_path, LOCAL / "original"))
    ends = [
        {row["lastOffset"] for row in rows_of(of.aborted_transactions(log.start_offset, 298))}
        for of in (log, whole)
    ]
    assert ends[0] == {end for end in ends[1] if end < 299}


# What is wrong with the source.


def test_a_damaged_segment_is_named_and_its_partition_is_not_written(tmp_path: Path) -> None:
    for number in range(2):
        for first in (0, 6):
            kt_log(tmp_path / "backup" / f"orders-{number}", 3, first)
    log = tmp_path / "backup" / "orders-0" / f"{6:020d}.log"
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    plan = kafkajit.restore(tmp_path / "backup", tmp_path / "kafka")
    with pytest.raises(kafkajit.CorruptRecordError, match=f"position 79, base offset 8 in {log}"):
        plan.apply()
    assert not (tmp_path / "kafka" / "orders-0").exists()
    restored(tmp_path / "backup", tmp_path / "kafka", partitions=["orders-1"])
    assert live(tmp_path / "kafka").keys() > {f"orders-1/{6:020d}.log"}


def test_a_segment_in_the_middle_must_be_whole(backup: Path, tmp_path: Path) -> None:
    log = backup / f"{10:020d}.log"
    log.write_bytes(log.read_bytes()[:-1])
    with pytest.raises(kafkajit.CorruptRecordError, match=r"00000000000000000020\.log follows"):
        restored(backup, tmp_path / "kafka")
    assert not (tmp_path / "kafka" / "orders-0").exists()


def test_a_backup_of_an_interrupted_swap_is_refused(backup: Path, tmp_path: Path) -> None:
    swap = backup / f"{10:020d}.log.swap"
    swap.write_bytes(batch(10))
    with pytest.raises(kafkajit.KafkaJitError, match=f"run `kafkajit repair` on a copy.*{swap}"):
        kafkajit.restore(backup, tmp_path / "kafka")


@pytest.mark.parametrize("tail", [batch(30)[:-1], bytes(100)])
def test_a_torn_tail_is_left_out_and_counted(tail: bytes, backup: Path, tmp_path: Path) -> None:
    log = backup / f"{20:020d}.log"
    log.write_bytes(log.read_bytes() + tail)
    partition = one(backup, tmp_path / "kafka")
    assert f"left out: the last {len(tail)} bytes of {log}, which are not a whole batch" in (
        partition.notes
    )
    assert offsets_in(tmp_path / "kafka") == list(range(30))


def test_damage_in_the_last_segment_is_no_torn_tail(backup: Path, tmp_path: Path) -> None:
    log = backup / f"{20:020d}.log"
    log.write_bytes(log.read_bytes()[:-400] + bytes(40) + log.read_bytes()[-360:])
    with pytest.raises(kafkajit.KafkaJitError):
        restored(backup, tmp_path / "kafka")


def test_offsets_that_go_back_are_an_error(tmp_path: Path) -> None:
    log = kt_log(tmp_path / "backup" / "orders-0")
    log.write_bytes(log.read_bytes() + batch(2))
    with pytest.raises(kafkajit.InvalidOffsetError, match="does not begin behind offset 5"):
        restored(tmp_path / "backup", tmp_path / "kafka")


def test_a_name_that_is_no_offset_is_an_error(backup: Path, tmp_path: Path) -> None:
    (backup / f"{'9' * 20}.log").write_bytes(batch(30))
    with pytest.raises(kafkajit.InvalidOffsetError, match="its name has no offset of Kafka's"):
        kafkajit.restore(backup, tmp_path / "kafka")


def test_offsets_that_no_source_has_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / "tier" / f"orders-{TOPIC_ID}" / "0"
    for number, first in enumerate((0, 4)):
        write_segment(folder, first, batch(first), end_offset=first + 1, segment_id=f"{number:022}")
    partition = one(tmp_path / "tier", tmp_path / "kafka")
    assert "missing: offsets 2 to 3 are in no source" in partition.notes
    assert offsets_in(tmp_path / "kafka") == [0, 1, 4, 5]


@pytest.mark.parametrize("start", [10, 13, 30])
def test_segments_before_the_log_start_offset_are_left_out_and_named(
    start: int, backup: Path, tmp_path: Path
) -> None:
    note = f"left out: segments before {start}, the log start offset of the source"
    assert note not in one(backup, tmp_path / "whole").notes
    (backup.parent / STARTS).write_text(f"0\n1\norders 0 {start}\n")
    partition = one(backup, tmp_path / "kafka", starting_offset=5)
    assert note in partition.notes
    assert partition.start_offset == start


def test_the_log_start_offset_of_a_folder_counts_if_tiered_storage_hides_its_segments(
    tmp_path: Path,
) -> None:
    tier = tmp_path / "tier" / f"orders-{TOPIC_ID}" / "0"
    for number, first in enumerate((0, 4)):
        log = batch(first) + batch(first + 2)
        write_segment(tier, first, log, end_offset=first + 3, segment_id=f"{number:022}")
    local = tmp_path / "logs" / "orders-0"
    local.mkdir(parents=True)
    (local / f"{6:020}.log").write_bytes(batch(6))
    (local.parent / STARTS).write_text("0\n1\norders 0 2\n")
    partition = one([tmp_path / "tier", tmp_path / "logs"], tmp_path / "kafka")
    assert partition.start_offset == 2


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex", ".snapshot"])
def test_files_beside_the_log_that_do_not_fit_it_are_built_anew(
    suffix: str, tmp_path: Path
) -> None:
    folder = tmp_path / "backup" / "orders-0"
    shutil.copytree(LOCAL / "original" / "orders-0", folder)
    for path in folder.glob(f"*{suffix}"):
        content = np.frombuffer(path.read_bytes(), np.uint8)
        path.write_bytes((content ^ 1).tobytes())
    one(folder, tmp_path / "kafka")
    assert not kafkajit.repair(tmp_path / "kafka" / "orders-0").is_needed


def test_an_empty_log_stays_where_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "backup" / "orders-0"
    folder.mkdir(parents=True)
    (folder / f"{42:020d}.log").touch()
    plan = kafkajit.restore(folder, tmp_path / "kafka")
    assert str(plan).startswith("orders-0: 1 segment, empty, from offset 42 on")
    plan.apply()
    assert kafkajit.Log(tmp_path / "kafka" / "orders-0").end_offset == 42


def test_a_transaction_that_stays_open_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "backup" / "orders-0"
    folder.mkdir(parents=True)
    log = kt.batch(
        [kt.Record()], base_offset=7, producer_id=1, producer_epoch=0, is_transactional=True
    )
    (folder / f"{0:020d}.log").write_bytes(log)
    partition = one(folder, tmp_path / "kafka")
    assert partition.notes[-1] == (
        "a transaction is open since offset 7, where read_committed consumers stop: "
        "`kafka-transactions.sh abort` ends it"
    )


# Topic ids and leader epochs.


def id_in(root: Path) -> str | None:
    path = root / "orders-0" / "partition.metadata"
    return rows_of(kafkajit.read_partition_metadata(path))[0]["topicId"] if path.exists() else None


def test_the_topics_id_is_the_sources_or_the_given_one_or_none(
    backup: Path, tmp_path: Path
) -> None:
    (backup / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    other: Any
    for name, other, expected in (
        ("source", {}, TOPIC_ID),
        ("given", {"orders": ID}, ID),
        ("none", None, None),
    ):
        one(backup, tmp_path / name, topic_ids=other)
        assert id_in(tmp_path / name) == expected


def test_a_topic_has_one_id_in_a_folder(backup: Path, tmp_path: Path) -> None:
    (backup / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    empty_log(tmp_path / "kafka").rename(tmp_path / "kafka" / "orders-1")
    with pytest.raises(ValueError, match=f"orders-1 has the topic id {ID}.*--topic-id orders={ID}"):
        kafkajit.restore(backup, tmp_path / "kafka")
    one(backup, tmp_path / "kafka", topic_ids={"orders": ID})
    assert id_in(tmp_path / "kafka") == ID


def test_a_leader_epoch_replaces_those_of_all_batches(backup: Path, tmp_path: Path) -> None:
    one(backup, tmp_path / "kafka", leader_epoch=0)
    folder = tmp_path / "kafka" / "orders-0"
    assert {row["partitionLeaderEpoch"] for row in records(folder)} == {0}
    kept = ("offset", "key", "value", "timestamp")
    assert [[row[name] for name in kept] for row in records(folder)] == [
        [row[name] for name in kept] for row in records(backup)
    ]
    assert (folder / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    assert not kafkajit.repair(folder).is_needed


# What is there already.


def empty_log(root: Path) -> Path:
    """The folder that a broker makes for a new topic's partition."""
    folder = root / "orders-0"
    folder.mkdir(parents=True)
    for suffix in (".log", ".index", ".timeindex"):
        (folder / f"{0:020d}{suffix}").touch()
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {ID}")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", STARTS):
        (root / name).write_text("0\n2\norders 0 0\nother 1 99\n")
    return folder


def test_a_partition_that_is_there_is_refused_before_anything_is_written(
    backup: Path, tmp_path: Path
) -> None:
    shutil.copytree(backup, backup.with_name("orders-1"))
    kt_log(tmp_path / "kafka" / "orders-1")
    before = live(tmp_path)
    with pytest.raises(FileExistsError, match=f"{tmp_path}/kafka/orders-1 is not overwritten"):
        restored(backup.parent, tmp_path / "kafka")
    assert live(tmp_path) == before
    assert hidden(tmp_path / "kafka") == []


def test_an_empty_log_is_replaced_only_if_that_is_asked_for(backup: Path, tmp_path: Path) -> None:
    folder = empty_log(tmp_path / "kafka")
    with pytest.raises(FileExistsError, match="--into-existing-topics replaces empty logs"):
        kafkajit.restore(backup, tmp_path / "kafka")
    partition = one(backup, tmp_path / "kafka", into_existing_topics=True, starting_offset=5)
    assert "replaces the empty log that a broker has made" in partition.notes
    assert id_in(tmp_path / "kafka") == partition.topic_id == ID
    assert bases(folder) == [4, 10, 20]
    assert {row["partitionLeaderEpoch"] for row in records(folder)} == {0}
    assert not kafkajit.repair(folder).is_needed
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        assert (tmp_path / "kafka" / name).read_text() == "0\n1\nother 1 99\n"
    assert (tmp_path / "kafka" / STARTS).read_text() == "0\n2\norders 0 5\nother 1 99\n"


def test_files_that_are_not_a_brokers_stay_beside_a_replaced_log(
    backup: Path, tmp_path: Path
) -> None:
    folder = empty_log(tmp_path / "kafka")
    names = ["notes.txt", "notes.cleaned"]
    names += [f"{0:020d}{end}" for end in (".txt", ".parquet", "-notes.txt", ".index.bak")]
    for name in names:
        (folder / name).write_text("by hand")
    brokers = [f"{7:020d}.snapshot", f"{7:020d}.index.deleted"]
    for name in brokers:
        (folder / name).write_bytes(b"")
    one(backup, tmp_path / "kafka", into_existing_topics=True)
    assert {(folder / name).read_text() for name in names} == {"by hand"}
    assert not any((folder / name).exists() for name in brokers)


def test_a_log_with_records_is_never_replaced(backup: Path, tmp_path: Path) -> None:
    folder = empty_log(tmp_path / "kafka")
    log = folder / f"{0:020d}.log"
    for content, name in ((b"x", log), (b"", folder / f"{7:020d}.log"), (b"", f"{log}.deleted")):
        Path(name).write_bytes(content)
        with pytest.raises(FileExistsError, match="it is there already"):
            kafkajit.restore(backup, tmp_path / "kafka", into_existing_topics=True)
        Path(name).unlink()
        log.touch()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (f"{0:020d}.index", b"\0\0\0\7\0\0\0\1", "offsets 0 to 7 are missing"),
        (f"{0:020d}.timeindex", b"\0" * 7 + b"\1\0\0\0\7", "offsets 0 to 7 are missing"),
        (f"{0:020d}.txnindex", kt.transaction_index([(7, 0, 7, 0)]), "offsets 0 to 7 are missing"),
        (f"{4:020d}.index", b"\0\0\0\3\0\0\0\1", "offsets 0 to 7 are missing"),
        (
            f"{8:020d}.snapshot",
            kt.producer_snapshot([kt.Producer(7, last_offset=7)]),
            "offsets 0 to 7 are missing",
        ),
        ("leader-epoch-checkpoint", b"0\n2\n0 0\n1 8\n", "offsets 0 to 7 are missing"),
        ("../replication-offset-checkpoint", b"0\n1\norders 0 8\n", "0 to 7 are missing"),
        ("../recovery-point-offset-checkpoint", b"0\n1\norders 0 8\n", "0 to 7 are missing"),
        (f"../{STARTS}", b"0\n1\norders 0 8\n", f"the log starts at 8 by {STARTS}"),
    ],
)
def test_an_empty_log_that_has_had_records_is_never_replaced(
    name: str, content: bytes, words: str, backup: Path, tmp_path: Path
) -> None:
    folder = empty_log(tmp_path / "kafka")
    (folder / name).write_bytes(content)
    with pytest.raises(FileExistsError, match=f"not overwritten: its log is empty, but .*{words}"):
        kafkajit.restore(backup, tmp_path / "kafka", into_existing_topics=True)


def test_a_log_that_a_broker_fills_after_the_plan_is_not_replaced(
    backup: Path, tmp_path: Path
) -> None:
    folder = empty_log(tmp_path / "kafka")
    plan = kafkajit.restore(backup, tmp_path / "kafka", into_existing_topics=True)
    (folder / f"{0:020d}.log").write_bytes(batch(0))
    with pytest.raises(kafkajit.KafkaJitError, match="files have changed since the plan was made"):
        plan.apply()
    assert (folder / f"{0:020d}.log").read_bytes() == batch(0)


def test_a_topic_that_should_exist_and_does_not_is_an_error(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    with pytest.raises(
        FileNotFoundError, match=r"orders-0: no such folder in .*: create the topic"
    ):
        kafkajit.restore(backup, tmp_path / "kafka", into_existing_topics=True)


def test_a_running_broker_keeps_its_folder(backup: Path, tmp_path: Path) -> None:
    plan = kafkajit.restore(backup, tmp_path / "kafka")
    (tmp_path / "kafka").mkdir()
    with FolderLock(tmp_path / "kafka" / "?-0"), pytest.raises(kafkajit.LockedError):
        plan.apply()
    assert not (tmp_path / "kafka" / "orders-0").exists()


def test_an_interrupted_change_is_finished_before_a_folder_is_filled(
    backup: Path, tmp_path: Path
) -> None:
    (tmp_path / "kafka" / "orders-0" / READY).mkdir(parents=True)
    with pytest.raises(FileExistsError, match="`kafkajit repair --apply` finishes it"):
        kafkajit.restore(backup, tmp_path / "kafka", into_existing_topics=True)


def test_what_does_not_fit_on_the_disk_is_not_begun(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = kafkajit.restore(backup, tmp_path / "new" / "kafka")
    size = plan.partitions[0].size
    usage = shutil.disk_usage(tmp_path)
    for free in (size - 1, size):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage._replace(free=free))
        if free < size:
            with pytest.raises(OSError, match=f"the logs need {size:,} bytes, and {free:,}"):
                plan.apply()
            assert not (tmp_path / "new").exists()
        else:
            plan.apply()


def test_a_partitions_folder_is_no_place_for_partitions(backup: Path) -> None:
    with pytest.raises(ValueError, match=r"is a partition's folder: name the log\.dirs folder"):
        kafkajit.restore(LOCAL / "remote", backup)


@pytest.mark.parametrize("folder", ["orders-0", "new/kafka", "../link"])
def test_a_folder_in_a_brokers_is_no_place_for_partitions(
    folder: str, backup: Path, tmp_path: Path
) -> None:
    broker = tmp_path / "kafka"
    broker.mkdir()
    (broker / "meta.properties").touch()
    (tmp_path / "link").symlink_to(broker / "new")
    with pytest.raises(ValueError, match=f"is in {broker}, a broker's folder .*: name that one"):
        kafkajit.restore(backup, broker / folder)
    kafkajit.restore(backup, broker)


# Crashes.


@pytest.fixture
def memory() -> Iterator[Path]:
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


@pytest.mark.parametrize("case", ["new", "empty log", "old start offset"])
def test_a_crash_at_any_step_leaves_no_log_or_the_whole_log(
    case: str, backup: Path, memory: Path
) -> None:
    root = memory / "kafka"

    def prepare() -> None:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        if case == "empty log":
            empty_log(root)
        if case == "old start offset":
            (root / STARTS).write_text("0\n1\norders 0 1000\n")

    def run() -> None:
        restored(backup, root, into_existing_topics=case == "empty log", starting_offset=5)

    prepare()
    before = live(root)
    run()
    after = live(root)
    outcomes = set()
    for step in count():
        prepare()
        try:
            with stopping_after(step):
                run()
        except Stopped:
            pass
        else:
            break
        found = live(root)
        logs = loaded(found)
        assert logs in ({}, loaded(after)), step
        # A broker deletes a log that ends before its start.
        assert not logs or start_in(root) != 1000, step
        assert logs or case == "old start offset" or start_in(root) != 5, step
        with FolderLock(root / "?-0"):
            pass  # finishes or forgets what was interrupted
        found = live(root)
        assert found in (before, after), step
        outcomes.add(found == after)
        if found == before:
            run()
            assert live(root) == after
    assert outcomes == {False, True}


def loaded(found: Files) -> Files:
    """The logs with records that a broker has if it starts then."""
    swaps = {name.removesuffix(".swap"): name for name in found if name.endswith(".log.swap")}
    if any(name.endswith(".cleaned") for name in found):
        swaps = {}
    names = {name: name for name in found if name.endswith(".log")} | swaps
    return {name: found[file] for name, file in names.items() if found[file]}


def start_in(root: Path) -> int | None:
    """The log start offset in the checkpoint."""
    return start_of({path.name: path.read_bytes() for path in root.glob(STARTS)})


def start_of(found: Files) -> int | None:
    rows = rows_of(kafkajit.read_checkpoint(found[STARTS])) if STARTS in found else []
    return next((row["offset"] for row in rows if row["topic"] == "orders"), None)


def test_the_first_time_of_a_compacted_log_is_that_of_a_record(tmp_path: Path) -> None:
    folder = tmp_path / "source" / "orders-0"
    folder.mkdir(parents=True)
    time = 1_700_000_000_000
    tombstone = kt.batch(
        [kt.Record(b"k", None, timestamp=time)], delete_horizon_ms=time + 86_400_000
    )
    behind = kt.batch([kt.Record(b"a", b"b", timestamp=time + 5)], base_offset=1)
    (folder / f"{0:020}.log").write_bytes(tombstone + behind)
    (partition,) = kafkajit.restore(folder, tmp_path / "kafka", topic_ids=None).partitions
    assert partition.timestamps == (time, time + 5)


@pytest.mark.parametrize(
    ("of_folder", "of_file", "folder_mode", "file_mode"),
    [
        (0o755, 0o644, 0o755, 0o644),
        (0o700, 0o600, 0o700, 0o600),
        (0o750, 0o640, 0o750, 0o640),
        (0o755, 0o600, 0o700, 0o600),
        (0o700, 0o644, 0o700, 0o600),
    ],
)
def test_a_restored_log_is_no_more_open_than_its_source(
    of_folder: int,
    of_file: int,
    folder_mode: int,
    file_mode: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = tmp_path / "backup" / "orders-0"
    shutil.copytree(SAMPLE_LOGS / "orders-0", source)
    for path in source.iterdir():
        path.chmod(of_file)
    source.chmod(of_folder)
    made = tmp_path / "kafka" / "orders-0"
    asked: list[int] = []  # the mode at first: a run that is killed leaves the folder
    make = os.mkdir

    def mkdir(path: Any, mode: int = 0o777, **options: Any) -> None:
        if Path(path).name == made.name:
            asked.append(mode)
        make(path, mode, **options)

    monkeypatch.setattr(os, "mkdir", mkdir)
    before = os.umask(0o022)
    try:
        kafkajit.restore(source, made.parent).apply()
    finally:
        os.umask(before)
    assert [mode & ~0o022 for mode in asked][:1] == [folder_mode]
    assert made.stat().st_mode & 0o777 == folder_mode
    assert {path.stat().st_mode & 0o777 for path in made.iterdir()} == {file_mode}
