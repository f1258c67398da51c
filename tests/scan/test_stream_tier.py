"""Streams over tiered storage: alone, and in front of a broker's folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import data
import pytest
from partitions import log_name
from streaming import Query, append, started

import kafkajit.testing as kt
from asv_bench.benchmarks.tiered_objects import PLAIN, TOPIC_ID, Options, key_pair, write_segment
from kafkajit.errors import OffsetOutOfRangeError
from kafkajit.places import tiered_files
from kafkajit.scan.stream.tasks import read_stream_task
from kafkajit.scan.table import schema_of

OTHER_ID = "pUM3BMsVQk2fe-klgEgLLA"
MIXED = data.objects() / "aiven-mixed"


def log_of(base_offset: int, count: int = 10) -> bytes:
    return b"".join(
        kt.batch([kt.Record(value=b"%d" % at)] * 5, base_offset=at, base_timestamp=1000 + at)
        for at in range(base_offset, base_offset + count, 5)
    )


class Tiered:
    """A partition whose segments of ten records a broker copies and deletes."""

    def __init__(self, root: Path, topic_id: str = TOPIC_ID) -> None:
        self.bucket = root / "tier"
        self.local = root / "logs" / "orders-0"
        self.topic_id = topic_id
        self.options: Options = PLAIN

    def write(self, *bases: int) -> None:
        for base in bases:
            append(self.local, log_of(base), base_offset=base)
        (self.local / "partition.metadata").write_text(f"version: 0\ntopic_id: {self.topic_id}")

    def copy(self, *bases: int, epochs: dict[int, int] | None = None) -> None:
        for base in bases:
            write_segment(
                self.bucket / f"orders-{self.topic_id}" / "0",
                base,
                log_of(base),
                self.options,
                end_offset=base + 9,
                epochs=epochs or {0: base},
                segment_id=f"{base:018}{0:03}A",
            )

    def delete(self, *bases: int) -> None:
        for base in bases:
            (self.local / log_name(base)).unlink()

    def query(self, **options: object) -> Query:
        return started(self.bucket, self.local.parent, **options)


@pytest.fixture
def tiered(tmp_path: Path) -> Tiered:
    return Tiered(tmp_path)


def test_finished_segments_are_read_as_they_come(tiered: Tiered) -> None:
    tiered.copy(0, 10)
    query = started(tiered.bucket)
    assert query.offsets() == list(range(20))
    assert query.offsets() == []
    tiered.copy(20, 30)
    (log,) = tiered.bucket.rglob(f"{30:020}*.log")
    manifest = log.with_suffix(".rsm-manifest")
    manifest.rename(manifest.with_suffix(".later"))
    assert query.offsets() == list(range(20, 30))
    manifest.with_suffix(".later").rename(manifest)
    assert query.restart().offsets() == list(range(30, 40))


def test_the_bucket_may_be_empty_at_first(tiered: Tiered) -> None:
    tiered.bucket.mkdir()
    query = started(tiered.bucket)
    tiered.copy(0)
    assert query.offsets() == []  # the partition begins
    assert query.offsets() == list(range(10))


@pytest.mark.parametrize("limit", [{}, {"records": 7}, {"bytes": 150}, {"files": 1}])
def test_a_segment_that_is_copied_and_deleted_between_triggers_is_read_once(
    tiered: Tiered, limit: dict[str, int]
) -> None:
    tiered.write(0, 10, 20)
    tiered.bucket.mkdir()
    query = tiered.query()
    found = query.offsets(**limit)
    tiered.copy(0, 10)
    tiered.delete(0, 10)
    tiered.write(30)
    found += query.offsets(**limit)
    tiered.copy(20)
    tiered.delete(20)
    query.restart()
    while more := query.offsets(**limit):
        found += more
    assert found == list(range(40))


def test_what_is_in_both_is_read_from_the_broker(tiered: Tiered) -> None:
    tiered.write(0, 10, 20)
    tiered.copy(0, 10)
    tiered.delete(0)
    query = tiered.query()
    assert query.plan()
    (task,) = query.stream.tasks({"orders": {"0": 0}}, query.planned[-1])
    assert [split.file.path.startswith(str(tiered.local)) for split in task] == [False, True, True]
    assert query.read(["offset"])["offset"].to_pylist() == list(range(30))


def test_a_segment_deleted_after_the_plan_is_read_from_the_bucket(tiered: Tiered) -> None:
    tiered.write(0, 10, 20)
    tiered.copy(0, 10)
    query = tiered.query()
    assert query.plan()
    tasks = query.stream.tasks({"orders": {"0": 0}}, query.planned[-1])
    tiered.delete(0, 10)
    rows = [
        offset
        for task in tasks
        for batch in read_stream_task(task, schema_of(query.options.scan), query.options)
        for offset in batch["offset"].to_pylist()
    ]
    assert rows == list(range(30))


def test_a_gap_is_a_loss(tiered: Tiered) -> None:
    tiered.write(0, 10, 20, 30)
    tiered.copy(0, 20)
    tiered.delete(0, 10, 20)
    with pytest.raises(OffsetOutOfRangeError, match="offsets 10 to 19 of orders-0 are gone"):
        tiered.query().offsets()
    query = tiered.query(failOnDataLoss=False)
    assert query.offsets() == [*range(10), *range(20, 40)]
    behind = tiered.query(startingOffsets='{"orders": {"0": 20}}')
    assert behind.offsets() == list(range(20, 40))


def test_segments_that_an_election_has_lost_are_not_read(tiered: Tiered) -> None:
    tiered.copy(0, epochs={0: 0})
    tiered.copy(10, epochs={0: 0, 1: 10})
    stale = tiered.bucket / f"orders-{TOPIC_ID}" / "0"
    write_segment(stale, 5, log_of(5), end_offset=14, epochs={0: 0}, segment_id=f"{7:018}{0:03}A")
    assert started(tiered.bucket).offsets() == list(range(20))


def test_of_two_topics_of_one_name_the_option_chooses(tmp_path: Path) -> None:
    old, new = Tiered(tmp_path, OTHER_ID), Tiered(tmp_path)
    old.copy(0)
    new.copy(0, 10)
    with pytest.raises(ValueError, match=r"both hold partition orders-0: .* option topicId"):
        started(old.bucket)
    assert started(old.bucket, topicId=OTHER_ID).offsets() == list(range(10))
    new.write(10, 20)
    assert new.query(topicId=TOPIC_ID).offsets() == list(range(30))


def test_a_timestamp_begins_in_the_bucket(tiered: Tiered) -> None:
    tiered.write(0, 10, 20)
    tiered.copy(0, 10)
    tiered.delete(0, 10)
    assert tiered.query(startingTimestamp="1015ms").offsets() == list(range(15, 30))


def test_a_query_knows_how_far_it_is_behind_the_bucket(tiered: Tiered) -> None:
    tiered.write(0, 10, 20)
    tiered.copy(0, 10)
    tiered.delete(0, 10)
    query = tiered.query()
    assert query.stream.metrics()["totalOffsetsBehindLatest"] == "30"
    assert query.stream.metrics()["totalSegmentsBehindLatest"] == "3"
    query.trigger(files=2)
    assert query.stream.metrics()["totalBytesBehindLatest"] == str(len(log_of(20)))


def test_a_compressed_and_encrypted_bucket_is_a_stream(tiered: Tiered, tmp_path: Path) -> None:
    pair = key_pair(tmp_path, "one")
    tiered.options = Options(chunk_size=100, compresses=True, pair=pair)
    tiered.copy(0, 10)
    key = {"encryption.key.pairs.one.private.key.file": str(pair.file)}
    query = started(tiered.bucket, **key)
    assert query.trigger(["value"], records=12)["value"].to_pylist()[-1] == b"5"
    assert query.offsets() == list(range(10, 20))


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_what_a_real_broker_left_is_read_once(isolation: str) -> None:
    keys = {
        f"encryption.key.pairs.{path.name.partition('.')[0]}.private.key.file": path
        for path in (data.objects() / "keys").rglob("*.private.pem")
    }
    whole = started(MIXED / "logs" / "orders-0", isolationLevel=isolation)
    both = started(
        MIXED / "remote" / "tier", MIXED / "logs" / "orders-0", isolationLevel=isolation, **keys
    )
    columns = ["topic", "partition", "offset", "key", "value"]
    assert both.trigger(columns) == whole.trigger(columns)


def test_local_tiered_storage_is_a_stream(tmp_path: Path) -> None:
    folder = data.objects() / "local-storage"
    shutil.copytree(folder / "remote", tmp_path / "remote")
    found = started(tmp_path / "remote", failOnDataLoss=False).places()
    assert found
    assert len(set(found)) == len(found)


def test_manifests_are_read_once(tiered: Tiered, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    parse = tiered_files.parse_manifest
    monkeypatch.setattr(
        tiered_files, "parse_manifest", lambda text, path: seen.append(path) or parse(text, path)
    )
    tiered.copy(0, 10)
    query = started(tiered.bucket)
    query.offsets()
    tiered.copy(20)
    query.offsets()
    assert len(seen) == 3
