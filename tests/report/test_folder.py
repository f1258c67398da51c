"""All that lies in a folder counts: logs, files beside them, brokers, and leftovers."""

from __future__ import annotations

from pathlib import Path

import pytest
from scanning import write_partition

import kafkajit.testing as kt
from kafkajit.report.folder import look_at

LOG = kt.batch([kt.Record(value=b"v")])
ID = "0123456789abcdef" * 2


def write(path: Path, content: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_partitions_belong_to_their_broker_s_folder(tmp_path: Path) -> None:
    for number in (1, 2):
        root = tmp_path / f"broker-{number}"
        write_partition(root, {0: LOG}, "orders-0")
        write_partition(root, {0: LOG}, "payments-1")
        write(root / "meta.properties", b"version=1\nnode.id=%d\ncluster.id=c\n" % number)
    found = look_at([f"{tmp_path}/broker-*"])
    assert [(root.path, root.broker_id, root.cluster_id) for root in found.roots] == [
        (f"{tmp_path}/broker-{number}", number, "c") for number in (1, 2)
    ]
    assert [(root.partitions, root.bytes, len(root.topics)) for root in found.roots] == [
        (2, 2 * len(LOG), 2)
    ] * 2


def test_a_damaged_meta_properties_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_partition(tmp_path, {0: LOG}, "orders-0")
    write(tmp_path / "meta.properties", b"version=9\n")
    (root,) = look_at([str(tmp_path)]).roots
    assert root.broker_id is None
    assert "meta.properties" in caplog.text


@pytest.mark.parametrize("id_", ["A", "", "-1", "9" * 5000, "\u0661"])
def test_an_id_that_is_not_a_number_is_left_out_with_a_warning(
    id_: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_partition(tmp_path, {0: LOG}, "orders-0")
    write(tmp_path / "meta.properties", f"version=1\nnode.id={id_}\ncluster.id=c\n".encode())
    (root,) = look_at([str(tmp_path)]).roots
    assert root.broker_id is None
    assert len(caplog.records) == 1


def test_files_beside_logs_are_counted_by_topic(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: LOG}, "orders-0")
    write(tmp_path / "orders-0" / f"{0:020}.index", bytes(8))
    write(tmp_path / "orders-0" / "leader-epoch-checkpoint", b"0\n0\n")
    write(tmp_path / "log-start-offset-checkpoint", b"0\n0\n")
    found = look_at([str(tmp_path)])
    assert found.other_bytes == {"orders": 12, None: 4}


def test_topics_have_the_ids_of_their_partitions(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: LOG}, "orders-0")
    write(
        tmp_path / "orders-0" / "partition.metadata",
        b"version: 0\ntopic_id: pUM3BMsVQk2fe-klgEgLLA",
    )
    assert look_at([str(tmp_path)]).topic_ids == {"orders": "pUM3BMsVQk2fe-klgEgLLA"}


def test_leftovers_of_deletions_moves_and_compactions_are_found(tmp_path: Path) -> None:
    write_partition(tmp_path, {0: LOG}, "orders-0")
    for kind in ("delete", "future", "stray"):
        write(tmp_path / f"old.topic-3.{ID}-{kind}" / f"{0:020}.log", LOG)
    for suffix in ("deleted", "cleaned", "swap"):
        write(tmp_path / "orders-0" / f"{0:020}.log.{suffix}", b"12345")
    found = look_at([str(tmp_path)])
    assert {
        (Path(one.path).name, one.topic, one.partition, one.bytes) for one in found.problems()
    } == {
        (f"old.topic-3.{ID}-delete", "old.topic", 3, len(LOG)),
        (f"old.topic-3.{ID}-future", "old.topic", 3, len(LOG)),
        (f"old.topic-3.{ID}-stray", "old.topic", 3, len(LOG)),
        (f"{0:020}.log.deleted", "orders", 0, 5),
        (f"{0:020}.log.cleaned", "orders", 0, 5),
        (f"{0:020}.log.swap", "orders", 0, 5),
    }
    assert len(found.partitions) == 1
    assert found.other_bytes == {}


def test_only_the_topics_that_are_asked_for_are_looked_at(tmp_path: Path) -> None:
    for topic in ("orders", "payments"):
        write_partition(tmp_path, {0: LOG}, f"{topic}-0")
        write(tmp_path / f"{topic}-0" / "x.index", b"1")
        write(tmp_path / f"{topic}-0.{ID}-delete" / f"{0:020}.log", LOG)
    found = look_at([str(tmp_path)], topics=["orders"])
    assert [partition[0].path.topic for partition in found.partitions] == ["orders"]
    assert found.other_bytes == {"orders": 1}
    assert [one.topic for one in found.leftovers] == ["orders"]


@pytest.mark.parametrize(
    ("topics", "problem"),
    [
        (["nothing"], "there are no segments of nothing at PATH; there are: orders"),
        (["order"], "there are no segments of order at PATH: did you mean 'orders'?"),
        (["orders", "b", "a"], "there are no segments of a, b at PATH; there are: orders"),
    ],
)
def test_a_topic_that_is_not_there_is_an_error(
    tmp_path: Path, topics: list[str], problem: str
) -> None:
    write_partition(tmp_path, {0: LOG}, "orders-0")
    with pytest.raises(FileNotFoundError) as failure:
        look_at([str(tmp_path)], topics=topics)
    assert str(failure.value).replace(str(tmp_path), "PATH") == problem


def test_a_segment_by_itself_has_no_broker(tmp_path: Path) -> None:
    path = write(tmp_path / f"{0:020}.log", LOG)
    (root,) = look_at([str(path)]).roots
    assert (root.path, root.partitions) == (str(tmp_path), 1)
