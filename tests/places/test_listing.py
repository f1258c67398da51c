"""Listing large buckets: how many requests, how many at once, and which folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow.fs import FileInfo, FileSelector, PyFileSystem
from scanning import options_of, read_rows

import kafkajit.places.location
from asv_bench.benchmarks.memory_store import MemoryStore
from kafkajit.places.locations import find_files, find_segments
from kafkajit.places.wanted import of_topics
from kafkajit.scan.predicates import Predicate
from kafkajit.scan.stream.folders import Folders
from kafkajit.scan.table import plan_table, plan_tasks


def stored_at(monkeypatch: pytest.MonkeyPatch, store: MemoryStore) -> str:
    """Have locations open this store, and return the URI of its root."""
    opened = PyFileSystem(store), "bucket"
    there = type("Memory", (), {"from_uri": staticmethod(lambda _: opened)})
    monkeypatch.setattr(kafkajit.places.location, "FileSystem", there)
    return "memory://bucket/kafka"


def test_remote_folders_are_listed_at_once_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(200, 400, topics=7, latency=0.01)
    uri = stored_at(monkeypatch, store)
    files = find_files(uri)
    paths = [file.path for file in files]
    assert len(paths) == 400 * 3
    assert paths == sorted(paths)
    assert 16 < store.at_once <= 32
    assert store.requests == 2 + 1 + 200  # is it a glob, is it there; the root; each partition
    assert find_files(f"{uri}/*/") == find_files(f"{uri}/topic-*") == files


def test_more_folders_than_wait_for_a_thread_are_listed_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafkajit.places.location, "_WAITING", 33)
    uri = stored_at(monkeypatch, MemoryStore(100, 100))
    paths = [file.path for file in find_files(uri)]
    assert len(paths) == 300
    assert paths == sorted(paths)


def test_a_folder_that_cannot_be_listed_ends_the_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(MemoryStore):
        def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
            found = super().get_file_info_selector(selector)
            if selector.base_dir.endswith("-0"):
                raise OSError("out of order")
            return found

    store = Broken(3000, 3000, latency=0.001)
    uri = stored_at(monkeypatch, store)
    with pytest.raises(OSError, match="out of order"):
        find_segments([uri])
    assert store.requests < 2000


CONDITIONS = [
    ([Predicate("topic", "=", "topic-03")], 10),
    ([Predicate("topic", "in", ("topic-01", "topic-12", "other"))], 20),
    ([Predicate("topic", "startswith", "topic-0")], 100),
    ([Predicate("topic", "=", "topic-03"), Predicate("partition", "<", 4)], 4),
    ([Predicate("partition", "=", 4)], 20),
]


@pytest.mark.parametrize(("conditions", "folders"), CONDITIONS)
def test_only_the_folders_that_a_query_asks_for_are_listed(
    conditions: list[Predicate], folders: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore(200, 400, topics=20)
    options = options_of(stored_at(monkeypatch, store))
    plan = plan_table(options, conditions)
    assert store.requests == 3 + folders
    assert plan.segments == plan.segments_read == 2 * folders
    store.requests = 0
    assert len(plan_tasks(options_of(*options.paths, kind="indexes"), conditions)) > 0
    assert store.requests == 3 + folders
    store.requests = 0
    rows = read_rows(*options.paths, predicates=conditions, kind="files")
    assert store.requests == 3 + folders
    assert len(rows) == 6 * folders


def test_a_topic_that_is_not_there_has_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(1000, 1000, topics=20, latency=0.002)
    options = options_of(stored_at(monkeypatch, store))
    missing = [Predicate("topic", "=", "missing")]
    assert plan_table(options, missing).tasks == []
    assert plan_tasks(options_of(*options.paths, kind="producers"), missing) == []
    assert store.requests < 1000  # not 2,000 folders: the first that has segments ends the search


def test_a_place_without_segments_is_an_error_whatever_is_asked(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log.gz").touch()
    for conditions in ([], [Predicate("topic", "=", "missing")]):
        with pytest.raises(FileNotFoundError, match=r"orders-0/0{20}\.log\.gz: decompress them"):
            plan_table(options_of(tmp_path), conditions)
        with pytest.raises(FileNotFoundError, match="and no segments at"):
            plan_tasks(options_of(tmp_path, kind="producers"), conditions)


def test_a_stream_of_a_topic_lists_that_topic_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(200, 200, topics=20)
    folders = Folders(options_of(stored_at(monkeypatch, store)), ["topic-07"])
    assert len(folders.refresh()) == 10
    assert store.requests == 3 + 10


def test_files_in_the_root_do_not_depend_on_what_is_asked(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").touch()
    (tmp_path / "meta.properties").touch()
    files = find_files(str(tmp_path), wanted=of_topics(["payments"]))
    assert [file.name for file in files] == ["meta.properties"]
