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
)


def test_what_root_makes_belongs_to_whom_the_folder_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    monkeypatch.setattr(os, "chown", lambda path, *owner, **_: given.append((path, owner)))
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
