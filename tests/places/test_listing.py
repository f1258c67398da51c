"""Listing large buckets: how many requests, how many at once, and which folders."""

from __future__ import annotations

import pytest
from pyarrow.fs import FileInfo, FileSelector, PyFileSystem

import kafkajit.places.location
from asv_bench.benchmarks.memory_store import MemoryStore
from kafkajit.places.locations import find_files, find_segments


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
    assert store.requests < 500
