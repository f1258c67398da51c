from __future__ import annotations

import struct
from pathlib import Path

import pytest
from kafscale_buckets import write_partition
from partitions import data, log_name

import kafkajit
import kafkajit.testing as kt
from kafkajit import Log
from kafkajit.cli import main
from kafkajit.log.evidence import add_configs, take_evidence
from kafkajit.log.missing_offsets import Evidence, Extent, Missing, find_missing
from kafkajit.log.segment import Segment
from kafkajit.log.segment_gaps import missing_between
from kafkajit.scan.options import ScanOptions
from kafkajit.scan.partitions import find_partitions
from kafkajit.state.checkpoints import (
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
)

WHOLE = [Extent(0, 0, 10), Extent(10, 10, 20), Extent(20, 20, 30)]


def partitions_at(location: str) -> list[list[Segment]]:
    return find_partitions(ScanOptions.parse({"path": location}))


def extents(*ranges: tuple[int, int]) -> list[Extent]:
    return [Extent(first, first, behind) for first, behind in ranges]


def troubles(found: list[Missing]) -> list[tuple[int, int]]:
    return [(one.first, one.last) for one in found if one.is_trouble]


def test_a_whole_log_lacks_nothing() -> None:
    evidence = Evidence(starts=[(0, "leader-epoch-checkpoint")], ends=[(30, HIGH_WATERMARKS)])
    assert find_missing(WHOLE, evidence, has_holes=False) == []
    assert find_missing([], evidence, has_holes=False) == []
    assert find_missing(extents((7, 7)), Evidence(), has_holes=False) == []


def test_a_segment_between_others_is_trouble_unless_the_log_was_compacted() -> None:
    logs = extents((0, 10), (20, 30), (40, 50))
    assert troubles(find_missing(logs, Evidence(), has_holes=False)) == [(10, 19), (30, 39)]
    for evidence, has_holes in ((Evidence(), True), (Evidence("its policy"), False)):
        (note,) = find_missing(logs, evidence, has_holes=has_holes)
        assert not note.is_trouble
        assert "and others at 1 more place" in note.text
    empty = extents((0, 10), (10, 10), (20, 30))
    assert troubles(find_missing(empty, Evidence(), has_holes=False)) == [(10, 19)]


def test_damage_at_the_end_of_a_segment_is_not_a_missing_segment() -> None:
    logs = [Extent(0, 0, 8, ends_in_damage=True), *extents((10, 20))]
    assert find_missing(logs, Evidence(), has_holes=False) == []
    last = [*extents((0, 10)), Extent(10, 10, 12, ends_in_damage=True)]
    assert find_missing(last, Evidence(ends=[(20, HIGH_WATERMARKS)]), has_holes=False) == []


def test_segments_that_overlap_lack_nothing() -> None:
    assert find_missing(extents((0, 25), (10, 12), (25, 30)), Evidence(), has_holes=False) == []


def test_a_log_that_begins_behind_the_next_name_has_a_wrong_name() -> None:
    # 10.log and 20.log have exchanged their names, and the one that is 20.log now is empty.
    logs = [*extents((0, 10)), Extent(10, 20, 30), *extents((20, 20))]
    assert troubles(find_missing(logs, Evidence(), has_holes=False)) == [(10, 19)]
    whole = [*extents((0, 10)), Extent(10, 20, 30), Extent(20, 10, 20)]
    assert find_missing(whole, Evidence(), has_holes=False) == []


def test_offsets_before_a_first_batch_are_missing_unless_the_log_was_compacted() -> None:
    logs = [*extents((0, 10)), Extent(10, 18, 20), *extents((20, 30))]
    (found,) = find_missing(logs, Evidence(), has_holes=False)
    assert (found.first, found.last, found.is_trouble) == (10, 17, True)
    assert f"before the first batch of {10:020d}.log, and nothing tells" in found.text
    assert find_missing(logs, Evidence("its policy"), has_holes=False) == []
    assert find_missing(logs, Evidence(), has_holes=True) == []
    assert find_missing(logs[1:], Evidence(log_start_offset=18), has_holes=False) == []
    assert troubles(find_missing(logs[1:], Evidence(), has_holes=False)) == [(10, 17)]


def test_an_index_under_the_offset_of_a_first_batch_proves_a_wrong_name() -> None:
    # 10.log is missing, and 20.log has its name.
    logs = [*extents((0, 10)), Extent(10, 20, 30), *extents((30, 40))]
    evidence = Evidence("its policy", indexed=[(20, 28, "20.index")])
    (found,) = find_missing(logs, evidence, has_holes=True)
    assert (found.first, found.last, found.is_trouble) == (10, 19, False)


def test_an_index_with_entries_is_evidence_even_in_a_compacted_log() -> None:
    evidence = Evidence("its policy", indexed=[(10, 18, "10.index")])
    found = find_missing(extents((0, 10), (20, 30)), evidence, has_holes=True)
    assert troubles(found) == [(10, 19)]
    evidence.indexed = [(30, 38, "30.index"), (0, 8, "0.index")]
    found = find_missing(extents((10, 30)), evidence, has_holes=True)
    assert troubles(found) == [(0, 9), (30, 38)]


def test_the_first_segment_is_missing_if_another_file_knows_it() -> None:
    starts = [(0, "leader-epoch-checkpoint")]
    (found,) = find_missing(WHOLE[1:], Evidence(starts=starts), has_holes=False)
    assert (found.first, found.last, found.is_trouble) == (0, 9, True)
    assert "leader-epoch-checkpoint knows of them" in found.text
    assert "unless it is killed right then" in found.text
    (note,) = find_missing(WHOLE[1:], Evidence(starts=starts, tiered="why"), has_holes=False)
    assert not note.is_trouble


@pytest.mark.parametrize(
    "evidence",
    [
        Evidence(),  # retention
        Evidence(starts=[(10, "leader-epoch-checkpoint"), (12, "12.snapshot")]),
        Evidence(starts=[(3, "leader-epoch-checkpoint")], is_being_deleted=True),
        # DeleteRecords: the checkpoint knows more than the files beside the log.
        Evidence(starts=[(3, "leader-epoch-checkpoint")], log_start_offset=14),
        Evidence(starts=[(3, "leader-epoch-checkpoint")], log_start_offset=10),
    ],
)
def test_deleted_records_are_not_missing(evidence: Evidence) -> None:
    assert find_missing(WHOLE[1:], evidence, has_holes=False) == []


@pytest.mark.parametrize(
    ("epochs", "snapshots", "missing"),
    [
        (None, [10, 20], []),  # the one at the log's start stays after retention
        (10, [4, 10, 20], []),  # so does one of a broker's stop inside a deleted segment
        (None, [4, 10], [(4, 9)]),
        (0, [10], [(0, 9)]),
        (2, [1, 4], [(2, 9)]),
    ],
)
def test_snapshots_know_of_records_before_the_log_if_its_leader_epochs_do(
    epochs: int | None, snapshots: list[int], missing: list[tuple[int, int]]
) -> None:
    files = {f"{offset:020d}.snapshot": kt.producer_snapshot([]) for offset in snapshots}
    if epochs is not None:
        files["leader-epoch-checkpoint"] = f"0\n1\n0 {epochs}\n".encode()
    sizes = {name: len(content) for name, content in files.items()}
    evidence = take_evidence(sizes, files.__getitem__, {})
    assert troubles(find_missing(WHOLE[1:], evidence, has_holes=False)) == missing


@pytest.mark.parametrize("name", [HIGH_WATERMARKS, RECOVERY_POINTS, "leader-epoch-checkpoint"])
def test_the_last_segment_is_missing_if_another_file_knows_it(name: str) -> None:
    (found,) = find_missing(WHOLE[:2], Evidence(ends=[(30, name), (5, "")]), has_holes=False)
    assert (found.first, found.last, found.is_trouble) == (20, 29, True)
    assert f"at the log's end: {name} has offsets up to 29" in found.text


FILES = {
    "leader-epoch-checkpoint": b"0\n2\n0 4\n3 25\n",
    "00000000000000000010.log": b"x",
    "00000000000000000010.index": b"\0\0\0\5\0\0\0\1",
    "00000000000000000020.log": b"",
    "00000000000000000020.index": b"\0\0\0\7\0\0\0\1" + bytes(16),
    "00000000000000000040.index": bytes(16),
    "00000000000000000030.snapshot": kt.producer_snapshot([kt.Producer(7, last_offset=26)]),
    "00000000000000000099.snapshot": b"damaged",
    "00000000000000000000.log.deleted": b"",
}


def test_a_log_that_starts_behind_its_end_lacks_what_is_between() -> None:
    (missing,) = find_missing(WHOLE, Evidence(log_start_offset=99), has_holes=False)
    assert (missing.first, missing.last, missing.is_trouble) == (30, 98, True)
    assert "a broker deletes all of its segments" in missing.text


def test_evidence_is_taken_from_the_files_beside_a_log() -> None:
    sizes = {name: len(content) for name, content in FILES.items()}
    checkpoints = {HIGH_WATERMARKS: 28, RECOVERY_POINTS: None, START_OFFSETS: 6}
    evidence = take_evidence(sizes, FILES.__getitem__, checkpoints, topic="orders")
    assert evidence.why_cleaned is None
    assert evidence.is_being_deleted
    assert evidence.log_start_offset == 6
    assert sorted(evidence.starts) == [
        (4, "leader-epoch-checkpoint"),
        (30, "00000000000000000030.snapshot"),
    ]
    assert sorted(evidence.ends) == [
        (25, "leader-epoch-checkpoint"),
        (27, "00000000000000000030.snapshot"),
        (28, HIGH_WATERMARKS),
    ]
    assert evidence.indexed == [(20, 27, "00000000000000000020.index")]


@pytest.mark.parametrize(
    ("entries", "last"),
    [
        ([(1000, 0)], 0),
        ([(1000, 2), (1001, 2), (1009, 7), (0, 0)], 7),  # the rest is preallocated
        ([(0, 0), (0, 0)], None),
        ([(-1, 3)], None),
        ([(1000, 3), (999, 7)], None),
        ([(1000, 7), (1001, 3)], None),
    ],
)
def test_the_time_index_of_an_empty_log_is_evidence_if_it_is_in_order(
    entries: list[tuple[int, int]], last: int | None
) -> None:
    name = "00000000000000000020.timeindex"
    content = b"".join(struct.pack(">qi", *entry) for entry in entries)
    log = {name.replace(".timeindex", ".log"): 0}
    found = take_evidence({name: len(content)} | log, {name: content}.__getitem__, {})
    assert found.indexed == ([] if last is None else [(20, 20 + last, name)])
    torn = take_evidence({name: 5}, {name: b"x" * 5}.__getitem__, {})
    assert torn.indexed == []


@pytest.mark.parametrize(
    ("entries", "last"),
    [
        ([(0, 7, 20, 24, 20)], 24),
        ([(0, 7, 3, 24, 20), (0, 8, 21, 30, 20)], 30),
        ([(0, 7, 3, 24, 20), (0, 8, 21, 24, 20)], None),
        ([(1, 7, 20, 24, 20)], None),
        ([(0, 7, 24, 20, 20)], None),
        ([(0, 7, 3, 12, 20)], None),  # its markers are before the segment
        ([], None),
    ],
)
def test_the_transaction_index_of_an_empty_log_is_evidence_if_it_is_in_order(
    entries: list[tuple[int, ...]], last: int | None
) -> None:
    name = "00000000000000000020.txnindex"
    content = b"".join(struct.pack(">hqqqq", *entry) for entry in entries) + b"torn"
    log = {name.replace(".txnindex", ".log"): 0}
    found = take_evidence({name: len(content)} | log, {name: content}.__getitem__, {})
    assert found.indexed == ([] if last is None else [(20, last, name)])


def test_compaction_and_tiers_are_known_from_checkpoints_topics_and_configs() -> None:
    def taken(topic: str = "orders", cleaner: int | None = None, **more: bool) -> Evidence:
        return take_evidence({}, FILES.__getitem__, {CLEANER_OFFSETS: cleaner}, topic=topic, **more)

    assert taken(cleaner=0).why_cleaned == f"{CLEANER_OFFSETS} has an entry for the log"
    assert taken("__consumer_offsets").why_cleaned == "this topic is compacted"
    evidence = taken(may_be_tiered=True)
    assert evidence.tiered is not None
    add_configs(evidence, {"remote.storage.enable": "false", "cleanup.policy": "compact,delete"})
    assert (evidence.why_cleaned, evidence.tiered) == ("its cleanup.policy is compact,delete", None)
    add_configs(evidence, {"remote.storage.enable": "true", "cleanup.policy": "delete"})
    assert evidence.tiered is not None


@pytest.mark.parametrize("between", [{}, {10: b""}], ids=["missing", "empty"])
def test_a_hole_before_the_last_batch_is_no_evidence_of_compaction(
    between: dict[int, bytes], tmp_path: Path
) -> None:
    ends = {0: data(0, 10), 20: data(20, 5) + data(57, 5)} | between
    for base, content in ends.items():
        (tmp_path / log_name(base)).write_bytes(content)
    (gap,) = missing_between(Log(tmp_path).segments)
    assert (gap.first, gap.last) == (10, 19)
    for more in (data(62, 5), data(70, 5)):  # it is believed once another one follows it
        with (tmp_path / log_name(20)).open("ab") as log:
            log.write(more)
        assert missing_between(Log(tmp_path).segments) == []


def set_of(offsets: range, codec: str, magic: int) -> bytes:
    records = [kt.Record(b"k", b"v")] * len(offsets)
    return kt.message_set(records, base_offset=offsets[0], codec=codec, magic=magic)


@pytest.mark.parametrize(("codec", "magic"), [("gzip", 0), ("snappy", 1), ("none", 1)])
def test_sets_of_old_messages_are_no_evidence_of_compaction_unless_some_are_gone(
    codec: str, magic: int, tmp_path: Path
) -> None:
    for base in (0, 20):
        sets = [set_of(range(at, at + 5), codec, magic) for at in (base, base + 5)]
        (tmp_path / log_name(base)).write_bytes(b"".join(sets))
    (gap,) = missing_between(Log(tmp_path).segments)
    assert (gap.first, gap.last) == (10, 19)
    with (tmp_path / log_name(0)).open("r+b") as log:
        whole, thin = set_of(range(5), codec, magic), set_of(range(7, 10), codec, magic)
        log.write(whole + thin)
        log.truncate()
    assert missing_between(Log(tmp_path).segments) == []


def test_a_missing_segment_of_kafscale_is_named(tmp_path: Path) -> None:
    folder = write_partition(tmp_path / "default" / "orders" / "0", (0, 20, 40))
    location = str(tmp_path)
    (whole,) = partitions_at(location)
    assert missing_between(whole) == []
    (folder / f"segment-{20:020}.kfs").unlink()
    (gaps,) = map(missing_between, partitions_at(location))
    assert [(gap.first, gap.last, gap.is_trouble) for gap in gaps] == [(20, 39, True)]
    assert kafkajit.restore(location, tmp_path / "kafka").losses
    assert main(["grep", "-c", "zz", location]) == 2
    out = str(tmp_path / "out")
    assert main(["export", location, "-o", out, "--to", "jsonl"]) == 1
