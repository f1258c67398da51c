from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from kafkajit.change.files import (
    identity,
    local_folder,
    own,
    say_where,
    sync,
    sync_all,
    sync_around,
)


def test_what_root_makes_belongs_to_whom_the_folder_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    monkeypatch.setattr(os, "chown", lambda path, *owner: given.append((path, owner)))
    brokers = SimpleNamespace(stat=lambda: SimpleNamespace(st_uid=7, st_gid=8))
    own(tmp_path, like=brokers)  # type: ignore[arg-type]
    own(tmp_path, like=tmp_path)
    assert given == [(tmp_path, (7, 8))]


def test_a_file_is_told_from_another_that_took_its_name(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert identity(path) is None
    path.write_bytes(b"one")
    first = identity(path)
    path.rename(tmp_path / "y")
    assert identity(tmp_path / "y") == first
    os.utime(tmp_path / "y", ns=(1, 1))
    assert identity(tmp_path / "y") != first


def test_a_disk_that_fails_is_told_with_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    opened = os.open(tmp_path, os.O_RDONLY)
    os.close(opened)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=rf"^\[Errno 5\] Input/output error: '{tmp_path}'$"):
        sync(tmp_path)
    again = os.open(tmp_path, os.O_RDONLY)
    os.close(again)
    assert again == opened, "a file was left open"


def test_a_folder_is_a_local_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for location in (tmp_path / "a", f"{tmp_path}/b/../a/", "a", f"file://{tmp_path}/a"):
        assert local_folder(location) == tmp_path / "a"
    (tmp_path / "link").symlink_to("/")
    assert local_folder("link") == tmp_path / "link"
    assert local_folder("a:b/c") == tmp_path / "a:b" / "c"
    for location in ("s3://bucket/a", "hdfs:/a", "file://elsewhere/a"):
        with pytest.raises(ValueError, match=r"is not a local file system, .* copy the log"):
            local_folder(location)
    with pytest.raises(ValueError, match="the folder's path is empty"):
        local_folder("")


def test_an_error_that_names_no_place_is_given_one(tmp_path: Path) -> None:
    for error, stated in (
        (
            OSError(28, "No space left on device"),
            f"[Errno 28] No space left on device: '{tmp_path}'",
        ),
        (OSError(28, "No space left on device", "/x"), "[Errno 28] No space left on device: '/x'"),
        (IsADirectoryError("/x is a folder"), "/x is a folder"),
        (ValueError("of no system"), "of no system"),
    ):
        say_where(error, tmp_path)
        assert str(error) == stated


@pytest.mark.parametrize("count", [0, 3, 200])
def test_all_of_many_files_are_synced_and_the_folders_around_them(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{number}" / "file" for number in range(count)]
    for path in paths:
        path.parent.mkdir()
        path.touch()
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda opened: synced.append(os.fstat(opened).st_ino))
    sync_all(paths)
    assert sorted(synced) == sorted(path.stat().st_ino for path in paths)
    synced.clear()
    sync_around([*paths, *paths, tmp_path / "not there" / "file"])
    assert sorted(synced) == sorted(path.parent.stat().st_ino for path in paths)


def test_one_of_many_files_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{number}" for number in range(200)]
    for path in paths:
        path.touch()
    bad = paths[150].stat().st_ino

    def fail(opened: int) -> None:
        if os.fstat(opened).st_ino == bad:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=rf"No space left on device: '{tmp_path}/150'$"):
        sync_all(paths)
