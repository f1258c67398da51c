"""The states of segments in tiered storage: a table of them, and what is read because of them."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import data
import pytest
from remote_events import (
    COPY_FINISHED,
    COPY_STARTED,
    DELETE_FINISHED,
    DELETE_STARTED,
    copy_started,
    partition_deleted,
    updated,
    write_events,
)
from scanning import offsets_of, plan_of, read_rows, read_table, write_partition

import kafkajit.testing as kt
from asv_bench.benchmarks.tiered_objects import PLAIN, TOPIC_ID, Options, write_segment
from kafkajit import KafkaJitError
from kafkajit.log.remote_log_metadata import STATES
from kafkajit.scan.predicates import Predicate
from kafkajit.schema import REMOTE_SEGMENT_COLUMNS

OTHER_ID = "pUM3BMsVQk2fe-klgEgLLA"
ARCHIVES = ["local-storage", *sorted(path.name for path in data.objects().glob("aiven-*"))]
REMOTES = {"aiven-compressed": "remote/some/prefix", "aiven-mixed": "remote/tier"}


def log_of(base_offset: int, count: int = 10, *, time: int = 1000) -> bytes:
    return kt.batch([kt.Record()] * count, base_offset=base_offset, base_timestamp=time)


class Tier:
    """A partition in tiered storage, of three segments with ten records each."""

    def __init__(self, root: Path, topic_id: str = TOPIC_ID, options: Options = PLAIN) -> None:
        self.root = root / "tier"
        self.options = options
        self.folder = self.root / f"orders-{topic_id}" / "0"
        self.paths = [self.copy(base) for base in (0, 10, 20)]

    def copy(self, base: int, copy: int = 0, *, time: int = 1000) -> Path:
        return write_segment(
            self.folder,
            base,
            log_of(base, time=time),
            self.options,
            end_offset=base + 9,
            max_timestamp=time,
            epochs={0: base},
            segment_id=f"{base:018}{copy:03}A",
        )


@pytest.fixture
def tier(tmp_path: Path) -> Tier:
    return Tier(tmp_path)


def copied(path: Path, **asked: Any) -> list[bytes]:
    """The events of a segment that has been copied."""
    base = int(path.name[:20])
    started = copy_started(path, base + 9, **({"epochs": {0: base}} | asked))
    return [started, updated(path, COPY_FINISHED)]


def rows_of(*places: Path, **options: Any) -> list[dict[str, Any]]:
    return read_rows(*places, kind="remoteSegments", **options)


def problems_of(*places: Path) -> list[str | None]:
    return [row["problem"] for row in rows_of(*places)]


# The table.


@pytest.mark.parametrize("archive", ARCHIVES)
def test_events_manifests_and_objects_of_real_brokers_agree(archive: str) -> None:
    folder = data.objects() / archive
    remote = folder / REMOTES.get(archive, "remote")
    rows = rows_of(remote, folder / "logs")
    assert {(row["state"], row["problem"]) for row in rows} == {("COPY_SEGMENT_FINISHED", None)}
    assert sorted(row["path"] for row in rows) == sorted(map(str, remote.rglob("*.log")))
    # Without the events a manifest tells the same.
    alone = rows_of(remote)
    events = ("state", "eventTimestamp", "brokerId", "customMetadata")
    for row, known in zip(alone, rows, strict=True):
        there = {name for name, value in row.items() if value is not None}
        assert {name: row[name] for name in there} == {name: known[name] for name in there}
        expected = known.keys() - set(events) - {"problem", "keyId"}
        if archive != "local-storage":
            assert expected <= there | {"keyId"}


def test_a_row_has_what_its_doc_promises(tier: Tier) -> None:
    write_events(tier.root.parent, [*copied(tier.paths[0]), updated(tier.paths[0], 1, b"tags")])
    row = rows_of(tier.root.parent, tier.root)[0]
    assert list(row) == list(REMOTE_SEGMENT_COLUMNS)
    assert row == {
        "topic": "orders",
        "partition": 0,
        "topicId": TOPIC_ID,
        "segmentId": "000000000000000000000A",
        "startOffset": 0,
        "endOffset": 9,
        "maxTimestamp": 1_000_000,
        "leaderEpochs": [{"epoch": 0, "startOffset": 0}],
        "size": tier.paths[0].stat().st_size,
        "objectSize": tier.paths[0].stat().st_size,
        "isCompressed": False,
        "keyId": None,
        "state": "COPY_SEGMENT_FINISHED",
        "eventTimestamp": 6_001_000,
        "brokerId": 2,
        "customMetadata": b"tags",
        "problem": None,
        "path": str(tier.paths[0]),
    }


def test_what_is_noted_and_not_stored_has_a_row(tier: Tier) -> None:
    events = [event for path in tier.paths for event in copied(path)]
    write_events(tier.root.parent, events)
    for path in tier.folder.glob("*10-*"):
        path.unlink()
    assert problems_of(tier.root.parent, tier.root) == [None, "its objects are missing", None]
    # The tier is not at hand here.
    assert problems_of(tier.root.parent / "__remote_log_metadata-0") == [None] * 3


def test_what_is_stored_and_not_noted_has_a_row(tier: Tier) -> None:
    write_events(tier.root.parent, copied(tier.paths[0]))
    missing = "__remote_log_metadata does not have it"
    assert problems_of(tier.root.parent, tier.root) == [None, missing, missing]
    # Another log's metadata says nothing of this one.
    shutil.rmtree(tier.root.parent / "__remote_log_metadata-0")
    other = Tier(tier.root.parent / "other", OTHER_ID)
    write_events(tier.root.parent, copied(other.paths[0]))
    rows = rows_of(tier.root.parent, tier.root)
    assert [row["problem"] for row in rows if row["topicId"] == TOPIC_ID] == [None] * 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_timestamp": 7}, "its latest timestamp: 1000 in storage, 7 in __remote_log_metadata"),
        ({"size": 1}, "its size: 131 in storage, 1 in"),
        ({"epochs": {3: 0}}, "its leader epochs: 0 from 0 on in storage, 3 from 0 on in"),
        ({"start_offset": 5}, "its start offset: 0 in storage, 5 in"),
    ],
)
def test_what_disagrees_is_a_problem(tier: Tier, given: dict[str, Any], words: str) -> None:
    write_events(tier.root.parent, copied(tier.paths[0], **given))
    (problem,) = (
        row["problem"]
        for row in rows_of(tier.root.parent, tier.root)
        if row["path"] == str(tier.paths[0])
    )
    assert problem is not None
    assert words in problem


def test_missing_objects_are_a_problem_also_if_only_their_topic_is_listed(tier: Tier) -> None:
    lost = tier.root.parent / "tier" / f"lost-{OTHER_ID}" / "0"
    path = write_segment(lost, 0, log_of(0), PLAIN, end_offset=9, max_timestamp=1000)
    write_events(tier.root.parent, copied(path))
    shutil.rmtree(lost)
    for predicates in ((), [Predicate("topic", "=", "lost")]):
        rows = rows_of(tier.root.parent, tier.root, predicates=predicates)
        problems = [row["problem"] for row in rows if row["topic"] == "lost"]
        assert problems == ["its objects are missing"]


def test_a_damaged_manifest_is_a_problem_of_its_row(tier: Tier) -> None:
    tier.paths[0].with_suffix(".rsm-manifest").write_text('{"version": "1"}')
    tier.paths[1].with_suffix(".rsm-manifest").unlink()
    damaged, unfinished, sound = problems_of(tier.root)
    assert damaged is not None
    assert "the manifest is malformed" in damaged
    assert (unfinished, sound) == ("its copy is not finished", None)


def test_an_object_alone_has_a_row(tier: Tier) -> None:
    assert [row["path"] for row in rows_of(tier.paths[1])] == [str(tier.paths[1])]
    assert problems_of(tier.paths[1].with_suffix(".rsm-manifest")) == [None]


def test_a_copy_of_the_bucket_has_rows_of_its_own(tier: Tier) -> None:
    copy = shutil.copytree(tier.root, tier.root.with_name("copy"))
    paths = [row["path"] for row in rows_of(tier.root, copy)]
    assert len(paths) == len(set(paths)) == 6


def test_one_topic_of_a_name_can_be_asked_for(tier: Tier, tmp_path: Path) -> None:
    Tier(tmp_path, OTHER_ID)
    assert len(rows_of(tier.root)) == 6
    assert {row["topicId"] for row in rows_of(tier.root, topicId=OTHER_ID)} == {OTHER_ID}


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [("topic", "orders", 3), ("topic", "order", 0), ("partition", 0, 3), ("partition", 1, 0)],
)
def test_conditions_on_partitions_are_exact(
    tier: Tier, column: str, value: object, expected: int
) -> None:
    write_events(tier.root.parent, [event for path in tier.paths for event in copied(path)])
    rows = rows_of(tier.root.parent, tier.root, predicates=[Predicate(column, "=", value)])
    assert len(rows) == expected
    assert {row["state"] for row in rows} <= {STATES[COPY_FINISHED]}


# States.


def test_events_lead_to_the_state_that_a_broker_has(
    tier: Tier, caplog: pytest.LogCaptureFixture
) -> None:
    one, two, three = tier.paths
    events: list[bytes | None] = [
        *copied(one),
        updated(two, COPY_FINISHED),  # of a segment that is not introduced
        b"\xff",
        None,
        copy_started(two, 19, epochs={0: 10}),
        updated(two, DELETE_STARTED),
        updated(two, COPY_FINISHED),  # no way back
        updated(two, DELETE_FINISHED),
        copy_started(three, 29, state=COPY_FINISHED),  # begins with its end
        updated(one, 9),
    ]
    folder = write_events(tier.root.parent, events)
    states = [row["state"] for row in rows_of(tier.root.parent, tier.root)]
    assert states == [STATES[COPY_FINISHED], STATES[DELETE_FINISHED], None]
    left_out = [line for line in caplog.messages if str(folder) in line]
    numbers = [int(line.partition("at offset ")[2].partition(" ")[0]) for line in left_out]
    assert numbers == [2, 3, 7, 9, 10]


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_a_copy_of_the_events_that_lags_behind_does_not_count(
    tier: Tier, names: tuple[str, str]
) -> None:
    events = [event for path in tier.paths for event in copied(path)]
    behind, ahead = (tier.root.parent / name for name in names)
    write_events(behind, events[:-1])
    write_events(ahead, events)
    rows = rows_of(behind, ahead, tier.root)
    assert [row["state"] for row in rows] == [STATES[COPY_FINISHED]] * 3
    assert len(offsets_of(behind, ahead, tier.root)) == 30 + 2 * len(events) - 1


def test_events_of_an_unknown_version_are_left_out(
    tier: Tier, caplog: pytest.LogCaptureFixture
) -> None:
    events = [event for path in tier.paths for event in copied(path)]
    newer = [event[:2] + bytes([1]) + event[3:] for event in events[:2]]
    folder = write_events(tier.root.parent, [*newer, *events])
    rows = rows_of(tier.root.parent, tier.root)
    assert [row["state"] for row in rows] == [STATES[COPY_FINISHED]] * 3
    assert f"{folder}: the event at offset 1 is left out: its version 1 is not known" in caplog.text
    assert len(offsets_of(tier.root.parent, tier.root)) == 30 + len(newer) + len(events)


@pytest.mark.parametrize("state", [0, 1, 2])
def test_a_deleted_partition_is_not_read(tier: Tier, state: int) -> None:
    events = [event for path in tier.paths for event in copied(path)]
    write_events(tier.root.parent, [*events, partition_deleted(tier.paths[0], state)])
    rows = rows_of(tier.root.parent, tier.root)
    expected = DELETE_FINISHED if state == 2 else DELETE_STARTED
    assert {row["state"] for row in rows} == {STATES[expected]}
    assert {row["problem"] for row in rows} == {"it is deleted, but its objects are there"}
    of_another = partition_deleted(tier.folder.with_name("1") / "0", state)
    write_events(tier.root.parent, [*events, of_another])
    rows = rows_of(tier.root.parent, tier.root)
    assert {row["state"] for row in rows} == {STATES[COPY_FINISHED]}
    write_events(tier.root.parent, [*events, partition_deleted(tier.paths[0], state)])
    assert offsets_of(tier.root.parent, tier.root)[: len(events) + 1] == [*range(len(events) + 1)]
    assert len(offsets_of(tier.root.parent, tier.root)) == len(events) + 1


@pytest.mark.parametrize("last", [COPY_STARTED, DELETE_STARTED, DELETE_FINISHED])
def test_only_segments_that_are_copied_are_read(
    tier: Tier, last: int, caplog: pytest.LogCaptureFixture
) -> None:
    *sound, changed = tier.paths
    events = [event for path in sound for event in copied(path)]
    events.append(copy_started(changed, 29, epochs={0: 20}))
    events += [updated(changed, state) for state in range(1, last + 1)]
    write_events(tier.root.parent, events)
    asked = {"predicates": [Predicate("topic", "=", "orders")]}
    assert offsets_of(tier.root.parent, tier.root, **asked) == [*range(20)]
    assert f"{changed}: not read, its state in __remote_log_metadata is {STATES[last]}" in (
        caplog.text
    )
    # Alone, the objects are all that is known.
    assert offsets_of(tier.root) == [*range(30)]


def test_a_retried_copy_replaces_the_one_that_was_not_finished(tier: Tier) -> None:
    first = tier.paths[2]
    again = tier.copy(20, 1)
    events = [event for path in [*tier.paths[:2], again] for event in copied(path)]
    write_events(tier.root.parent, [*events, copy_started(first, 29, epochs={0: 20})])
    asked: dict[str, Any] = {"predicates": [Predicate("topic", "=", "orders")]}
    assert offsets_of(tier.root.parent, tier.root, **asked) == [*range(30)]
    batches = read_table(tier.root.parent, tier.root, kind="batches", **asked)
    assert batches["path"].to_pylist() == [str(path) for path in (*tier.paths[:2], again)]


def test_damaged_metadata_is_an_error_unless_a_mode_allows_it(tier: Tier) -> None:
    folder = write_events(tier.root.parent, copied(tier.paths[0]))
    log = folder / f"{0:020}.log"
    log.write_bytes(kt.broken("wrong crc", base_offset=0) + log.read_bytes())
    with pytest.raises(KafkaJitError):
        rows_of(tier.root.parent, tier.root)
    assert rows_of(tier.root.parent, tier.root, mode="DROPMALFORMED")[0]["state"] is not None


# What manifests and ids leave out.


def test_manifests_leave_out_segments_that_are_too_old(tmp_path: Path) -> None:
    tier = Tier(tmp_path, options=Options(compresses=True))
    for number, base in enumerate((30, 40, 50)):
        tier.copy(base, time=2000 + number)
    late = [Predicate("timestamp", ">=", datetime.fromtimestamp(2.001, UTC))]
    plan = plan_of(tier.root, predicates=late)
    assert plan.segments_read == 2
    assert offsets_of(tier.root, predicates=late) == [*range(40, 60)]
    assert offsets_of(tier.root, startingTimestamp="2001ms") == [*range(40, 60)]
    assert offsets_of(tier.root, startingTimestamp="2003ms") == []


def test_one_topic_of_a_name_can_be_read(tmp_path: Path) -> None:
    tier, other = Tier(tmp_path), Tier(tmp_path, OTHER_ID)
    other.copy(30)
    local = write_partition(tmp_path / "broker", [log_of(40)])
    (local / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_ID}\n")
    places = tier.root, tmp_path / "broker"
    assert offsets_of(*places, topicId=OTHER_ID) == [*range(50)]
    assert offsets_of(*places, topicId=TOPIC_ID) == [*range(30)]
    assert offsets_of(tmp_path / "broker", topicId=OTHER_ID) == [*range(40, 50)]
    with pytest.raises(FileNotFoundError, match=f"no segments of a topic with the id {TOPIC_ID}"):
        offsets_of(tmp_path / "broker", topicId=TOPIC_ID)
